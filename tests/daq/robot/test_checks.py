"""Each contradiction between values is found, at its path, and nothing else is reported."""

import copy
import re
import tomllib
from typing import Any

import pytest
from robot_edits import Edit, put

from daq.errors import ConfigError
from daq.robot import robot_text
from daq.robot.parse import build_robot

ARM = tomllib.loads(robot_text("laas4"))
BENCH = tomllib.loads(robot_text("bench1"))


def problems_after(edit: Edit, robot: dict[str, Any] = ARM) -> tuple[str, ...]:
    data = copy.deepcopy(robot)
    edit(data)
    with pytest.raises(ConfigError) as caught:
        build_robot(data, "edited.toml")
    assert caught.value.source == "edited.toml"
    return caught.value.problems


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (
            lambda data: data["boards"].append(
                {**data["boards"][0], "spi": {"device": "/dev/spidev1.0"}}
            ),
            'boards[2].name: "shoulder"',
        ),
        (
            put("boards.1.spi.device", "/dev/spidev0.0"),
            'boards[1].spi.device: "/dev/spidev0.0"',
        ),
        (
            put("joints.3.name", "joint2"),
            'joints[3].name: "joint2"',
        ),
        (
            put("joints.1.drive.output", 1),
            'joints[1].drive.output: 1 of "shoulder"',
        ),
        (
            put("published_parameters.1.name", "slsqp"),
            'published_parameters[1].name: "slsqp"',
        ),
        (
            put("joints.2.drive.motor", "mn9999"),
            'joints[2].drive.motor: "mn9999"',
        ),
        (
            put("joints.2.drive.board", "wrist"),
            'joints[2].drive.board: "wrist"',
        ),
        (put("joints.0.drive.direction", 0), "joints[0].drive.direction: 0"),
        (put("joints.0.drive.direction", -2), "joints[0].drive.direction: -2"),
        (
            put("joints.2.bench", {"speed_max_rad_s": 6.0}),
            "joints[2].bench.speed_max_rad_s: 6.0",
        ),
        (
            put("joints.2.bench", {"speed_min_rad_s": 2.0, "speed_max_rad_s": 1.0}),
            "joints[2].bench.speed_min_rad_s: 2.0",
        ),
        (
            put("joints.0.limits.position_min_rad", 7.0),
            "joints[0].limits.position_min_rad: 7.0",
        ),
        (
            put("joints.2.limits.current_max_a", 9.5),
            "joints[2].limits.current_max_a: 9.5",
        ),
        (put("bus.min_v", 24.0), "bus.min_v: 24.0"),
        (put("bus.max_v", 23), "bus.max_v: 23.0"),
        (
            lambda data: data["joints"][1].pop("link"),
            "joints[1].link: missing",
        ),
        (
            lambda data: data["joints"][1].pop("placement"),
            "joints[1].placement: missing",
        ),
        (
            lambda data: data["joints"][1].pop("dh"),
            "joints[1].dh: missing",
        ),
        (
            put("joints.1.load_inertia_kg_m2", 1e-4),
            "joints[1].load_inertia_kg_m2: 0.0001",
        ),
        (
            lambda data: data["published_parameters"][0]["values"].pop(),
            "published_parameters[0].values: 47 numbers",
        ),
        (
            put("joints.2.placement.xyz_m", [0.325, 0.01, 0.0]),
            "joints[1]: its axis is 0.03 off",
        ),
        (
            put("joints.3.link.mass_kg", 0.06),
            "joints[3].link: mass 0.06 with inertia xx 5.1e-05, yy 0.00049, zz 0.000483",
        ),
    ],
)
def test_contradiction(edit: Edit, problem: str) -> None:
    (found,) = problems_after(edit)
    assert re.match(rf"{re.escape(problem)}[, ]", found)


def test_no_joint_and_no_board() -> None:
    def edit(data: dict[str, Any]) -> None:
        data.update(boards=[], joints=[], published_parameters=[])

    boards, joints = problems_after(edit)
    assert boards.startswith("boards: missing, ")
    assert joints.startswith("joints: an array of 0, ")


def test_a_bench_joint_needs_its_load() -> None:
    problems = problems_after(lambda data: data["joints"][0].pop("load_inertia_kg_m2"), BENCH)
    assert [problem.split(":")[0] for problem in problems] == [
        "joints[0].placement",
        "joints[0].link",
    ]


@pytest.mark.parametrize(
    ("path", "value", "axis"),
    [
        ("joints.1.placement.rpy_rad", [1.5707, 0.0, 0.0], 0),  # π/2 as Code A.1 rounds it
        ("joints.1.placement.xyz_m", [0.0, 1e-5, 0.167], 0),
        ("joints.1.dh.theta_offset_rad", 0.0, 0),
        ("joints.2.dh.d_m", 0.64, 1),  # along the axis of joint 3, which stays where it is
        ("joints.3.placement.xyz_m", [0.0, 0.0, 0.326], 1),
        ("joints.3.dh.theta_offset_rad", 0.1, 2),
    ],
)
def test_placement_and_dh_must_agree(path: str, value: object, axis: int) -> None:
    (problem,) = problems_after(put(path, value))
    assert problem.startswith(f"joints[{axis}]: its axis is ")


def test_a_placement_at_the_end_of_the_world_is_refused() -> None:
    def misplace(data: dict[str, Any]) -> None:
        data["joints"][2]["placement"]["xyz_m"] = [1e308, 1e308, 1e308]

    paths = [problem.partition(": 1e+308, ")[0] for problem in problems_after(misplace)]
    assert {f"joints[2].placement.xyz_m[{axis}]" for axis in range(3)} <= set(paths)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("joints.0.placement.xyz_m", [0.5, 0.0, 1.0]),  # the base frame is free
        ("joints.1.placement.xyz_m", [0.0, 0.0, 0.2]),  # along the first axis
        ("joints.3.dh.d_m", 0.1),  # the tool is not placed
        ("joints.0.drive.direction", -1),
    ],
)
def test_what_is_free_is_accepted(path: str, value: object) -> None:
    data = copy.deepcopy(ARM)
    put(path, value)(data)
    build_robot(data, "edited.toml")


def test_an_arm_without_dh_is_accepted() -> None:
    data = copy.deepcopy(ARM)
    for joint in data["joints"]:
        del joint["dh"]
    assert build_robot(data, "edited.toml").joints[0].dh is None


@pytest.mark.parametrize("vector", ["slsqp", "sa"])
def test_the_published_vectors_are_not_physically_consistent(vector: str) -> None:
    values = next(p["values"] for p in ARM["published_parameters"] if p["name"] == vector)

    def edit(data: dict[str, Any]) -> None:
        for index, joint in enumerate(data["joints"]):
            mass, x, y, z, *inertia = values[10 * index : 10 * index + 10]
            keys = ("xx", "xy", "yy", "xz", "yz", "zz")
            joint.pop("bounds")
            joint["link"] = {
                "mass_kg": mass,
                "first_moment_kg_m": [x, y, z],
                "inertia_kg_m2": dict(zip(keys, inertia, strict=True)),
            }

    problems = problems_after(edit)
    assert problems
    assert all(re.match(r"joints\[\d\]\.link: mass ", problem) for problem in problems)


def test_checks_go_on_past_what_could_not_be_read() -> None:
    def edit(data: dict[str, Any]) -> None:
        put("joints.0.name", 5)(data)
        put("joints.0.drive.board", "9")(data)
        put("joints.1.limits.position_max_rad", "wide")(data)
        put("joints.1.limits.current_max_a", 17.0)(data)
        put("joints.2.placement", "here")(data)
        put("joints.3.name", "joint2")(data)
        put("motors.mn4004.current_max_a", -1)(data)
        put("published_parameters.0", 1)(data)
        data["published_parameters"][1]["values"].pop()

    assert [problem.split(":")[0] for problem in problems_after(edit)] == [
        "motors.mn4004.current_max_a",
        "joints[0].name",
        "joints[0].drive.board",
        "joints[1].limits.position_max_rad",
        "joints[2].placement",
        "published_parameters[0]",
        "joints[3].name",
        "published_parameters[1].values",
        "joints[1].limits.current_max_a",
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("joints.0.limits.position_max_rad", 1e8),
        ("joints.0.limits.velocity_max_rad_s", 1e5),
        ("joints.0.limits.torque_max_nm", 1e7),
        ("joints.0.dh.a_m", 101.0),
        ("joints.0.home_posture_rad", 1e300),
        ("joints.0.drive.joint_offset_rad", -1e300),
        ("workspace.ground_z_m", 1e300),
        ("gravity_m_s2", [0.0, 0.0, -1001.0]),
    ],
)
def test_numbers_that_no_robot_has(path: str, value: object) -> None:
    shown = re.sub(r"\.(\d+)\b", r"[\1]", path)
    assert any(problem.startswith(shown) for problem in problems_after(put(path, value)))


def test_too_many_joints() -> None:
    def copy_joints(data: dict[str, Any]) -> None:
        data["joints"] *= 9

    problems = problems_after(copy_joints)
    assert any(problem.startswith("joints: an array of 36, ") for problem in problems)
