"""A file's mistakes are all reported at once, each with its path and value; nothing else ever."""

import copy
import string
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.errors import ConfigError
from daq.robot import Robot, parse_robot, robot_text
from daq.robot.parse import build_robot
from daq.robot.reading import Unreadable, UnreadableError

ARM_TEXT = robot_text("laas4")
ARM = tomllib.loads(ARM_TEXT)
Path = tuple[str | int, ...]


def test_ten_mistakes_yield_exactly_those_ten() -> None:
    text = ARM_TEXT
    for right, wrong in [
        ("schema = 1", "schema = 2"),
        ("nominal_v = 24.0", "nominal_v = nan"),
        ("kv_rpm_per_v = 380.0", 'kv_rpm_per_v = "380"'),
        ("coil_resistance_ohm = 0.35\n", ""),
        ('device = "/dev/spidev0.1"', 'device = "/dev/ttyUSB0"'),
        ('kind = "axial"', 'kind = "linear"'),
        ("gear_reduction = 31.0", "gear_reductoin = 31.0"),
        ("xyz_m = [0.0, 0.0, 0.167]", "xyz_m = [0.0, true, 0.167]"),
        ("current_max_a = 16.0\n\n[joints.control]", "current_max_a = 17.0\n\n[joints.control]"),
        ('motor = "mn4004"', 'motor = "mn4400"'),
    ]:
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(ConfigError) as caught:
        parse_robot(text, "ten.toml")
    assert caught.value.source == "ten.toml"
    expected = (
        "schema: 2",
        "bus.nominal_v: nan",
        "motors.mn4004.coil_resistance_ohm: missing",
        'motors.mn4006.kv_rpm_per_v: "380"',
        'boards[1].spi.device: "/dev/ttyUSB0"',
        'joints[0].kind: "linear"',
        "joints[0].drive.gear_reductoin: unknown key (31.0)",
        "joints[1].placement.xyz_m[1]: true",
        "joints[1].limits.current_max_a: 17.0",
        'joints[2].drive.motor: "mn4400"',
    )
    for problem, start in zip(caught.value.problems, expected, strict=True):
        assert problem.startswith(f"{start}, ")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "gravity_m_s2 = [0, 0]",
            "gravity_m_s2: an array of 2, expected an array of 3, each a number",
        ),
        ("gravity_m_s2 = [0, 0, -inf]", "gravity_m_s2[2]: -inf, expected a number >= -1000"),
        ("gravity_m_s2 = 9.81", "gravity_m_s2: 9.81, expected an array of 3, each a number"),
        (
            "name = 'a\tb'",
            'name: "a\\tb", expected a name: a letter, then letters, digits or _, at',
        ),
        ('name = "a\\n"', 'name: "a\\n", expected a name'),
        ("colour = 'red'", 'colour: unknown key ("red"), expected one of '),
        ("'a b' = 1979-05-27", '"a b": unknown key (1979-05-27), expected one of '),
        ("bus = 5", "bus: 5, expected a table with nominal_v, min_v, max_v"),
        (
            "motors = []",
            "motors: an array of 0, expected a table of names, each with a table with ",
        ),
        ("motors.9a = {}", 'motors.9a: "9a", expected a name'),
        ("joints = {}", "joints: a table, expected an array, each a table with name, limits"),
        (f"description = [{'1,' * 99}]", "description: an array of 99, expected a text"),
        (f"schema = 0x1{'0' * 99}", "schema: an integer of 397 bits, expected 1"),
        (f"schema = '{'x' * 99}'", f'schema: "{"x" * 56}..., expected 1'),
    ],
)
def test_how_a_mistake_is_shown(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_robot(line, "line.toml")
    assert any(found.startswith(problem) for found in caught.value.problems), caught.value


def test_every_use_of_an_unreadable_value_raises() -> None:
    value: Any = Unreadable()
    for use in (
        lambda: value.name,
        lambda: value == 1,
        lambda: value < 1,
        lambda: abs(value),
        lambda: value * 2.0,
        lambda: 2.0 - value,
        lambda: float(value),
        lambda: value in {1},
        lambda: list(value),
        lambda: f"{value}",
        lambda: bool(value),
    ):
        with pytest.raises(UnreadableError):
            use()


toml_values = st.recursive(
    st.none().map(lambda _: datetime(2024, 1, 1, tzinfo=UTC))
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8),
    lambda values: (
        st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=8), values, max_size=4)
    ),
    max_leaves=15,
)


def paths_in(value: object, path: Path = ()) -> Iterator[Path]:
    """The path of everything in nested tables and arrays."""
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, child in value.items():
            yield from paths_in(child, (*path, key))


def shown(path: Path) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def inside(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


ALL_PATHS = list(paths_in(ARM))
KEY_PATHS = [path for path in ALL_PATHS if isinstance(path[-1], str)]
OPTIONAL = {
    "gravity_m_s2",
    "mode",
    "speed_hz",
    "command_timeout_ms",
    "direction",
    "joint_offset_rad",
    "encoder_counts_per_turn",
    "friction_cad",
    "theta_offset_rad",
    "capsule_radius_m",
    "torque_constant_published_nm_per_a",
    "published_parameters",
    "control",
    "position",
    "velocity",
    "ki_a_per_rad_s",
    "home_posture_rad",
    "acceleration_max_rad_s2",
    "bounds",
    "mass_min_kg",
    "mass_max_kg",
    "tip_m",
    "workspace",
    "ground_z_m",
    "estimation",
    "total_mass_min_kg",
    "total_mass_max_kg",
}
NEEDED_PATHS = [path for path in KEY_PATHS if path[-1] not in OPTIONAL and path[:-1] != ("motors",)]


def problems_of(data: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        build_robot(data, "mutated.toml")
    return caught.value.problems


@given(data=st.dictionaries(st.text(max_size=8), toml_values, max_size=6))
def test_arbitrary_tables_give_only_config_errors(data: dict[str, Any]) -> None:
    assert problems_of(data)


@settings(max_examples=examples(300))
@given(path=st.sampled_from(ALL_PATHS), value=toml_values)
def test_an_arbitrary_value_anywhere_gives_a_robot_or_a_config_error(
    path: Path, value: object
) -> None:
    data = copy.deepcopy(ARM)
    inside(data, path[:-1])[path[-1]] = value
    try:
        assert isinstance(build_robot(data, "mutated.toml"), Robot)
    except ConfigError as error:
        assert error.problems


@given(
    path=st.sampled_from([p for p in ALL_PATHS if isinstance(inside(ARM, p), int | float)]),
    absurd=st.sampled_from([1e308, -1e308, 5e-324, 10**400, -(10**400)]),
)
def test_an_absurd_number_gives_a_robot_or_a_config_error(path: Path, absurd: float) -> None:
    data = copy.deepcopy(ARM)
    inside(data, path[:-1])[path[-1]] = absurd
    try:
        assert isinstance(build_robot(data, "mutated.toml"), Robot)
    except ConfigError as error:
        assert error.problems


@given(path=st.sampled_from(NEEDED_PATHS))
def test_a_deleted_key_is_named(path: Path) -> None:
    data = copy.deepcopy(ARM)
    del inside(data, path[:-1])[path[-1]]
    (problem,) = problems_of(data)
    assert problem.startswith(f"{shown(path)}: missing, expected ")


@given(path=st.sampled_from(ALL_PATHS), data=st.data())
def test_a_value_of_another_type_is_named(path: Path, data: st.DataObject) -> None:
    robot = copy.deepcopy(ARM)
    holder = inside(robot, path[:-1])
    others = [True, datetime(2024, 1, 1, tzinfo=UTC), "0 0", 1.5, [["x"]], {"x": 1}]
    wrong = [other for other in others if type(other) is not type(holder[path[-1]])]
    if not isinstance(holder[path[-1]], str):
        holder[path[-1]] = data.draw(st.sampled_from(wrong))
    else:
        holder[path[-1]] = data.draw(st.sampled_from([w for w in wrong if w != "0 0"]))
    assert any(problem.startswith(shown(path)) for problem in problems_of(robot))


@given(
    path=st.sampled_from([path for path in KEY_PATHS if path[:-1] != ("motors",)]),
    suffix=st.text(string.ascii_letters + " .é", min_size=1, max_size=12),
)
def test_a_renamed_key_is_named(path: Path, suffix: str) -> None:
    data = copy.deepcopy(ARM)
    holder, renamed = inside(data, path[:-1]), f"{path[-1]}{suffix}"
    if renamed in holder:
        return
    holder[renamed] = holder.pop(path[-1])
    where = shown(path[:-1])
    unknown = [problem for problem in problems_of(data) if ": unknown key (" in problem]
    assert len(unknown) == 1
    assert unknown[0].startswith(where)


@given(letter=st.integers(0, 30), path=st.sampled_from(KEY_PATHS))
def test_a_letter_left_out_is_one_mistake_with_the_right_key_suggested(
    letter: int, path: Path
) -> None:
    name = str(path[-1])
    if path[:-1] == ("motors",) or len(name) < 4:
        return
    data = copy.deepcopy(ARM)
    holder = inside(data, path[:-1])
    at = letter % len(name)
    holder[name[:at] + name[at + 1 :]] = holder.pop(name)
    (problem,) = problems_of(data)
    assert problem.endswith(f", expected {name}")


def test_the_description_s_own_values_survive_the_reading() -> None:
    robot = parse_robot(ARM_TEXT, "laas4")
    assert msgspec.convert(ARM, Robot).driven() == robot
