"""Robot files are changed where they must be, and nowhere else."""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.errors import ConfigError
from daq.robot import (
    Control,
    Friction,
    Gains,
    Robot,
    load_robot,
    parse_robot,
    robot_text,
    shipped_robots,
)
from daq.robot.editing.edit import (
    OUTPUT_SHAFT_KG_M2,
    bench_text,
    with_friction,
    with_velocity_gains,
)

ARM_TEXT = robot_text("laas4")
ARM = load_robot("laas4")
JOINTS = [(name, joint.name) for name in shipped_robots() for joint in load_robot(name).joints]
NEW = Friction(viscous_motor_nm_s_per_rad=1.25e-6, coulomb_joint_nm=0.125)
ALL_FOUR = Friction(
    viscous_motor_nm_s_per_rad=1e-6,
    coulomb_joint_nm=0.1,
    viscous_joint_nm_s_per_rad=0.01,
    coulomb_motor_nm=0.002,
)
GAINS = Gains(kp_a_per_rad=1.5, kd_a_s_per_rad=0.25, ki_a_per_rad_s=0.5)
FRICTION = re.compile(
    r"friction = \{ (viscous\S+ = \S+), (coulomb\S+ = \S+) \}\n(friction_cad.*\n)"
)
FORMS = {
    "inline": r"friction = { \1, \2 } # c1\n\3",
    "tight": r"  friction={\2,\1}# c1\n\3",
    "dotted": r"friction.\1 # c1\n# c2\n\3 friction . \2 # c3\n",
    "table": r"\3\n# c1\n[joints.drive.friction] # c2\n  \1 # c3\n\2\n# c4\n",
    "four": r"\3friction.\1 # c1\nfriction.coulomb_motor_nm = 0.003 # c2\nfriction.\2 # c3\n",
}
amounts = st.floats(0.0, allow_nan=False, allow_infinity=False)
frictions = st.builds(
    Friction,
    viscous_motor_nm_s_per_rad=amounts,
    coulomb_joint_nm=amounts,
    viscous_joint_nm_s_per_rad=st.just(0.0) | amounts,
    coulomb_motor_nm=st.just(0.0) | amounts,
)


def arm_text(*forms: str) -> str:
    """The arm's file, with the friction of each joint written in one of the forms."""
    text = ARM_TEXT
    marks = iter(range(1000))
    for form in forms:
        # What is rewritten does not match any more, except in the first form.
        template = FORMS[form].replace("friction = {", "friction  = {")
        text, count = FRICTION.subn(template, text, count=1)
        assert count == 1
    return re.sub(r"# c\d", lambda _: f"# mark {next(marks)}", text).replace(
        "friction  =", "friction ="
    )


def inline(value: Any) -> str:
    """TOML for plain data, all of it on one line."""
    match value:
        case Mapping():
            return f"{{ {', '.join(f'{key} = {inline(item)}' for key, item in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(inline, value))}]"
        case _:
            return msgspec.json.encode(value).decode()


def inline_text(name: str) -> str:
    """A shipped robot without a single table header."""
    data = tomllib.loads(robot_text(name))
    joints = "\n".join(f"  # of {j['name']}\n  {inline(j)}, # it" for j in data.pop("joints"))
    rest = "\n".join(f"{key} = {inline(value)} # its {key}" for key, value in data.items())
    return f"{rest}\njoints = [ # all\n{joints}\n] # end\n"


def apart_text() -> str:
    """The arm's joints in another order, with other tables between them."""
    start, *joints, last = ARM_TEXT.split("[[joints]]\n")
    last, published = last.split("# Estimated")
    start, boards = start.split("[[boards]]", 1)
    between = ["\n[timing] # apart\npriority = 70\n\n", f"[[boards]]{boards}", "# nothing\n", ""]
    pieces = [joints[2], last, joints[0], joints[1]]
    text = start + "".join(f"[[joints]]\n{j}{b}" for j, b in zip(pieces, between, strict=True))
    text = re.sub(r"\[joints\.dh\]\n(.+\n)+", "", text)
    return f"{text}# Estimated{published}"


def expected(robot: Robot, values: Mapping[str, Friction]) -> Robot:
    joints = [
        msgspec.structs.replace(
            joint, drive=msgspec.structs.replace(joint.drive, friction=values[joint.name])
        )
        if joint.name in values
        else joint
        for joint in robot.joints
    ]
    return msgspec.structs.replace(robot, joints=tuple(joints))


def without_friction(text: str) -> list[str]:
    return [line for line in text.splitlines(True) if not re.search(r"viscous_|coulomb_", line)]


def comments(text: str) -> list[str]:
    return re.findall("#.*", text)


def problem_of(action: Callable[[], object], code: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        action()
    assert caught.value.code == code
    (problem,) = caught.value.problems
    return problem


# --- friction -------------------------------------------------------------------------------------


def test_friction_changes_one_line() -> None:
    old = ARM_TEXT.splitlines(True)
    new = with_friction(ARM_TEXT, {"joint3": NEW}).splitlines(True)

    changed = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]

    assert changed == [
        (
            "friction = { viscous_motor_nm_s_per_rad = 2.42e-6, coulomb_joint_nm = 0.122 }\n",
            "friction = { viscous_motor_nm_s_per_rad = 1.25e-06, coulomb_joint_nm = 0.125 }\n",
        )
    ]


def test_friction_that_is_the_same_changes_nothing() -> None:
    values = {joint.name: joint.drive.friction for joint in ARM.joints}
    assert with_friction(ARM_TEXT, values) == with_friction(ARM_TEXT, {}) == ARM_TEXT


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (
            "inline",
            "friction = { viscous_motor_nm_s_per_rad = 1e-06, coulomb_joint_nm = 0.1, "
            "viscous_joint_nm_s_per_rad = 0.01, coulomb_motor_nm = 0.002 } # mark 0\n",
        ),
        (
            "dotted",
            "friction.viscous_motor_nm_s_per_rad = 1e-06 # mark 0\n"
            "friction.viscous_joint_nm_s_per_rad = 0.01\nfriction.coulomb_motor_nm = 0.002\n"
            "# mark 1\n"
            "friction_cad = { viscous_motor_nm_s_per_rad = 5.30e-6, coulomb_joint_nm = 2.00e-1 }\n"
            " friction . coulomb_joint_nm = 0.1 # mark 2\n",
        ),
        (
            "table",
            "[joints.drive.friction] # mark 1\n  viscous_motor_nm_s_per_rad = 1e-06 # mark 2\n"
            "coulomb_joint_nm = 0.1\nviscous_joint_nm_s_per_rad = 0.01\ncoulomb_motor_nm = 0.002\n",
        ),
    ],
)
def test_keys_that_were_left_out_are_added(form: str, lines: str, newline: str) -> None:
    text = arm_text(form).replace("\n", newline)

    new = with_friction(text, {"joint1": ALL_FOUR})

    assert lines.replace("\n", newline) in new
    assert new.count("\n") == new.count(newline)
    assert comments(new) == comments(text)


def test_a_key_that_becomes_zero_is_written_as_zero() -> None:
    new = with_friction(arm_text("four"), {"joint1": NEW})
    assert "friction.coulomb_motor_nm = 0.0 # mark 1\n" in new


@settings(max_examples=examples(60))
@given(
    forms=st.lists(st.sampled_from(list(FORMS)), min_size=4, max_size=4),
    values=st.dictionaries(st.sampled_from([joint.name for joint in ARM.joints]), frictions),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_values_survive_and_all_else_stays(
    forms: list[str], values: dict[str, Friction], newline: str
) -> None:
    text = arm_text(*forms).replace("\n", newline)

    new = with_friction(text, values)

    assert parse_robot(new, "new") == expected(parse_robot(text, "old"), values)
    assert without_friction(new) == without_friction(text)
    assert comments(new) == comments(text)


@settings(max_examples=examples(30))
@given(values=st.dictionaries(st.sampled_from(["joint1", "joint4"]), frictions))
def test_a_file_without_table_headers(values: dict[str, Friction]) -> None:
    text = inline_text("laas4")

    new = with_friction(text, values)

    assert parse_robot(new, "new") == expected(ARM, values)
    assert comments(new) == comments(text)


def test_dotted_keys_inside_an_inline_table() -> None:
    text = re.sub(
        r"friction = \{ (viscous\S+ = [^,]+), (coulomb\S+ = \S+) \}",
        r"friction.\1, friction.\2",
        inline_text("bench1"),
    )
    assert "friction.coulomb_joint_nm = 0.122" in text

    new = with_friction(text, {"joint1": ALL_FOUR})

    assert parse_robot(new, "new") == expected(load_robot("bench1"), {"joint1": ALL_FOUR})
    assert comments(new) == comments(text)


def test_both_line_endings_become_that_of_most_lines() -> None:
    mixed = ARM_TEXT.replace("\n", "\r\n", 3)
    assert with_friction(mixed, {"joint1": NEW}) == with_friction(ARM_TEXT, {"joint1": NEW})


def test_joints_that_stand_apart_are_left_as_they_are() -> None:
    text = apart_text()
    assert [joint.name for joint in parse_robot(text, "apart").joints] == [
        "joint3",
        "joint4",
        "joint1",
        "joint2",
    ]
    problem_of(lambda: with_friction(text, {"joint1": NEW}), "cannot-be-edited")
    problem_of(lambda: with_velocity_gains(text, "joint1", GAINS), "cannot-be-edited")


def test_strings_that_look_like_tables_are_left_alone() -> None:
    trap = '"""\n[[joints]]\nfriction = { # \\""""'
    line = next(line for line in ARM_TEXT.splitlines() if line.startswith("description"))
    text = ARM_TEXT.replace(line, f"description = {trap} # [joints.drive]")

    new = with_friction(text, {"joint1": NEW})

    assert parse_robot(new, "new") == expected(parse_robot(text, "old"), {"joint1": NEW})
    assert without_friction(new) == without_friction(text)


def test_the_last_line_need_not_end() -> None:
    text = robot_text("bench1")
    line = re.search(r"friction = .*\n", text)
    assert line is not None
    moved = text.replace(line[0], "") + f"[joints.drive.{line[0]}".replace(" = {", "]\n").replace(
        ", ", "\n"
    ).replace(" }\n", "")
    assert parse_robot(moved, "moved") == load_robot("bench1")

    new = with_friction(moved, {"joint1": ALL_FOUR})

    assert new.endswith(
        "coulomb_joint_nm = 0.1\nviscous_joint_nm_s_per_rad = 0.01\ncoulomb_motor_nm = 0.002\n"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1.0, "joints[1].drive.friction.coulomb_joint_nm: -1.0, expected a number >= 0"),
        (float("nan"), "joints[1].drive.friction.coulomb_joint_nm: nan, expected a number >= 0"),
        (float("inf"), "joints[1].drive.friction.coulomb_joint_nm: inf, expected a finite number"),
    ],
)
def test_impossible_friction_is_refused(value: float, problem: str) -> None:
    friction = Friction(viscous_motor_nm_s_per_rad=0.0, coulomb_joint_nm=value)
    assert problem_of(lambda: with_friction(ARM_TEXT, {"joint2": friction})) == problem


@pytest.mark.parametrize(
    "action",
    [lambda: with_friction(ARM_TEXT, {"join3": NEW}), lambda: bench_text(ARM_TEXT, "join3")],
)
def test_an_unknown_joint_names_those_there_are(action: Callable[[], object]) -> None:
    problem = problem_of(action, "no-such-joint")
    assert '"join3"' in problem and "joint1, joint2, joint3, joint4" in problem
    assert "joint3?" in problem


def test_a_text_with_mistakes_is_refused_by_its_name() -> None:
    for action in (
        lambda: with_friction("schema = 2", {}, source="mine.toml"),
        lambda: bench_text("schema = ", "joint1", source="mine.toml"),
    ):
        with pytest.raises(ConfigError) as caught:
            action()
        assert caught.value.source == "mine.toml"


def test_gains_stand_beside_a_header_of_their_own() -> None:
    start, _ = robot_text("bench1").split("# Tuned")
    values = "\nkp_a_per_rad = 1.0\nkd_a_s_per_rad = 2.0\n"
    # A dotted key for the velocity would close the table that this header opens.
    text = f"{start}[joints.control.position]{values}"
    (joint,) = parse_robot(bench_text(text, "joint1", gains=GAINS), "new").joints
    assert joint.control == Control(position=GAINS, velocity=GAINS)


# --- one joint alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(("robot", "joint"), JOINTS)
def test_every_shipped_joint_stands_alone_on_the_bench(robot: str, joint: str) -> None:
    source = load_robot(robot)
    original = next(known for known in source.joints if known.name == joint)

    text = bench_text(robot_text(robot), joint)

    assert text.startswith(f"# Made by armature from {robot}: {joint} alone on the bench")
    alone = parse_robot(text, "bench")
    (only,) = alone.joints
    assert (only.name, only.drive, only.control) == (joint, original.drive, original.control)
    assert alone.name == robot
    assert alone.description == f"{joint} of {robot} alone on the bench"
    assert list(alone.motors) == [original.drive.motor]
    assert [board.name for board in alone.boards] == [original.drive.board]
    assert (only.link, only.placement, only.dh, only.home_posture_rad) == (None, None, None, 0.0)
    assert only.load_inertia_kg_m2 == OUTPUT_SHAFT_KG_M2
    assert (only.limits.position_min_rad, only.limits.position_max_rad) == (-1e6, 1e6)
    assert only.limits.velocity_max_rad_s == original.limits.velocity_max_rad_s
    assert only.limits.current_max_a == original.limits.current_max_a
    assert alone.published_parameters == ()
    assert bench_text(text, joint) == text


@pytest.mark.parametrize(
    "control",
    [
        "",
        "\n[joints.control]\n",
        "\n[joints.control]\nvelocity = { kp_a_per_rad = 9.0, kd_a_s_per_rad = 9.0 }\n",
        "\n[joints.control.velocity]\nkp_a_per_rad = 9.0\nkd_a_s_per_rad = 9.0\n",
        "\n[joints.control]\nvelocity.kp_a_per_rad = 9.0\nvelocity.kd_a_s_per_rad = 9.0\n",
        "\n[joints.control]\nposition = { kp_a_per_rad = 9.0, kd_a_s_per_rad = 9.0 }\n",
    ],
)
def test_gains_are_replaced_however_they_were_written(control: str) -> None:
    text = robot_text("bench1")
    text = text[: text.index("# Tuned")] + control

    (joint,) = parse_robot(bench_text(text, "joint1", gains=GAINS), "new").joints

    assert joint.control == Control(velocity=GAINS, position=GAINS)


def test_a_joint_on_the_bench_keeps_its_own_inertia() -> None:
    text = robot_text("bench1").replace("load_inertia_kg_m2 = 1e-4", "load_inertia_kg_m2 = 0.5e-3")
    (joint,) = parse_robot(bench_text(text, "joint1"), "bench").joints
    assert joint.load_inertia_kg_m2 == 0.5e-3


@pytest.mark.parametrize("joint", [joint.name for joint in ARM.joints])
def test_files_written_in_other_ways(joint: str) -> None:
    dotted = ARM_TEXT.replace("\n[joints.link]\n", "\n[joints.link] # its link\n")
    for text in (inline_text("laas4"), apart_text(), dotted):
        alone = parse_robot(bench_text(text, joint, gains=GAINS), "bench")
        usual = parse_robot(bench_text(ARM_TEXT, joint, gains=GAINS), "bench")
        assert msgspec.structs.replace(alone, timing=usual.timing) == usual


def test_a_joint_of_dotted_keys() -> None:
    data = tomllib.loads(ARM_TEXT)
    (first, *_) = data["joints"]

    def lines(prefix: str, value: Any) -> str:
        if isinstance(value, dict):
            return "".join(lines(f"{prefix}.{key}", item) for key, item in value.items())
        return f"{prefix} = {inline(value)} # a\n"

    own = "".join(lines(key, value) for key, value in first.items())
    start, _, *rest = ARM_TEXT.split("[[joints]]\n")
    text = "[[joints]]\n".join([start, own, *rest])
    assert parse_robot(text, "dotted") == ARM

    alone = bench_text(text, "joint1", gains=GAINS)
    changed = with_friction(text, {"joint1": ALL_FOUR})

    usual = bench_text(ARM_TEXT, "joint1", gains=GAINS)
    assert parse_robot(alone, "new") == parse_robot(usual, "usual")
    assert "link." not in alone
    assert parse_robot(changed, "new") == expected(ARM, {"joint1": ALL_FOUR})


# --- gains of velocity control --------------------------------------------------------------------

VELOCITY = re.compile(r"velocity = \{ (kp\S+ = \S+), (kd\S+ = \S+) \}\n")
CONTROL = re.compile(r"\[joints\.control\]\n(position = .*\n)(velocity = .*\n)")
CONTROL_FORMS = {
    "inline": r"[joints.control] # c1\n\1velocity = { \2, \3 } # c2\n",
    "dotted": r"[joints.control]\nvelocity.\2 # c1\n# c2\n\1velocity . \3 # c3\n",
    "table": r"[joints.control]\n\1\n# c1\n[joints.control.velocity] # c2\n  \2\n\3 # c3\n",
    "left out": r"[joints.control] # c1\n\1# c2\n",
    "nothing": "# c1\n",
}
gains_values = st.builds(
    Gains, kp_a_per_rad=amounts, kd_a_s_per_rad=amounts, ki_a_per_rad_s=st.just(0.0) | amounts
)


def controlled_text(*forms: str) -> str:
    """The arm's file, with the gains of each joint written in one of the forms."""
    marks = iter(range(1000))
    templates = iter(forms)

    def written(found: re.Match[str]) -> str:
        values = VELOCITY.fullmatch(found[2])
        assert values is not None
        template = CONTROL_FORMS[next(templates)].replace("\\n", "\n")
        parts = {"1": found[1], "2": values[1], "3": values[2]}
        text = re.sub(r"\\(\d)", lambda place: parts[place[1]], template)
        return re.sub(r"# c\d", lambda _: f"# mark {next(marks)}", text)

    text, count = CONTROL.subn(written, ARM_TEXT)
    assert count == len(forms) == 4
    return text


def with_gains(robot: Robot, joint: str, gains: Gains) -> Robot:
    joints = [
        msgspec.structs.replace(
            other, control=msgspec.structs.replace(other.control, velocity=gains)
        )
        if other.name == joint
        else other
        for other in robot.joints
    ]
    return msgspec.structs.replace(robot, joints=tuple(joints))


def without_gains(text: str) -> list[str]:
    """Every other line that says something."""
    lines = [line for line in text.splitlines() if not re.search(r"velocity\b[^_]|k[pdi]_a", line)]
    return [line for line in lines if line.strip()]


def test_velocity_gains_change_one_line() -> None:
    old = ARM_TEXT.splitlines(True)
    new = with_velocity_gains(ARM_TEXT, "joint2", GAINS).splitlines(True)

    changed = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]

    assert changed == [
        (
            "velocity = { kp_a_per_rad = 5.0, kd_a_s_per_rad = 0.2 }\n",
            "velocity = { kp_a_per_rad = 1.5, kd_a_s_per_rad = 0.25, ki_a_per_rad_s = 0.5 }\n",
        )
    ]


@pytest.mark.parametrize(("robot", "joint"), JOINTS)
def test_velocity_gains_that_are_the_same_change_nothing(robot: str, joint: str) -> None:
    text = robot_text(robot)
    same = next(known.control.velocity for known in load_robot(robot).joints if known.name == joint)
    assert with_velocity_gains(text, joint, same) == text


@settings(max_examples=examples(25))
@given(
    forms=st.lists(st.sampled_from(list(CONTROL_FORMS)), min_size=4, max_size=4),
    joint=st.sampled_from([joint.name for joint in ARM.joints]),
    gains=gains_values,
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_velocity_gains_survive_and_all_else_stays(
    forms: list[str], joint: str, gains: Gains, newline: str
) -> None:
    text = controlled_text(*forms).replace("\n", newline)

    new = with_velocity_gains(text, joint, gains)

    assert parse_robot(new, "new") == with_gains(parse_robot(text, "old"), joint, gains)
    assert new.count("\n") == new.count(newline)
    assert without_gains(new) == without_gains(text)
    assert comments(new) == comments(text)
    assert with_velocity_gains(new, joint, gains) == new


@pytest.mark.parametrize("joint", [joint.name for joint in ARM.joints])
def test_velocity_gains_in_a_file_without_table_headers(joint: str) -> None:
    text = inline_text("laas4")
    new = with_velocity_gains(text, joint, GAINS)
    assert parse_robot(new, "new") == with_gains(parse_robot(text, "old"), joint, GAINS)
    assert comments(new) == comments(text)


def test_velocity_gains_of_a_bench_file() -> None:
    """What a test of a mounted joint does to its file, done to another one."""
    text = bench_text(ARM_TEXT, "joint3", gains=GAINS)
    soft = Gains(kp_a_per_rad=0.44, kd_a_s_per_rad=0.044)
    (joint,) = parse_robot(with_velocity_gains(text, "joint3", soft), "new").joints
    assert joint.control == Control(position=GAINS, velocity=soft)


def test_velocity_gains_that_are_refused() -> None:
    problem = problem_of(lambda: with_velocity_gains(ARM_TEXT, "join3", GAINS), "no-such-joint")
    assert '"join3"' in problem
    with pytest.raises(ConfigError) as caught:
        with_velocity_gains("schema = 2", "joint1", GAINS, source="mine.toml")
    assert caught.value.source == "mine.toml"
    for value in (-1.0, float("nan"), float("inf")):
        wrong = Gains(kp_a_per_rad=value, kd_a_s_per_rad=0.0)
        with pytest.raises(ConfigError, match=r"joints\[0\]\.control\.velocity\.kp_a_per_rad"):
            with_velocity_gains(ARM_TEXT, "joint1", wrong)
