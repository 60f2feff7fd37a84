"""Robots that can be analysed, not driven: what their files leave out, and may say."""

import copy
import tomllib
from typing import Any

import msgspec
import pytest
from robot_edits import Edit, put

from daq.errors import ConfigError
from daq.robot import Robot, Transmission, load_robot, robot_text
from daq.robot.editing.edit import bench_text
from daq.robot.parse import build_robot, parse_robot

TEXT = """
schema = 1
name = "two"
description = "Somebody else's arm"
dh_convention = "modified"
coupling = [[1, 0], [0.5, 1]]

[[joints]]
name = "one"
dh = { a_m = 0.0, d_m = 0.3, alpha_rad = 0.0 }
limits = { position_min_rad = -1, position_max_rad = 1, velocity_max_rad_s = 2, torque_max_nm = 9 }
bounds = { mass_max_kg = 3.0 }
[joints.transmission]
gear_reduction = 45.5
direction = -1
joint_offset_rad = 0.1
torque_constant_nm_per_a = 0.2
rotor_inertia_kg_m2 = 1e-4

[[joints]]
name = "two"
dh = { a_m = 0.2, d_m = 0.0, alpha_rad = 1.5707963267948966 }
limits = { position_min_rad = -1, position_max_rad = 1, velocity_max_rad_s = 2, torque_max_nm = 9 }
[joints.link]
mass_kg = 2.0
first_moment_kg_m = [0.2, 0.0, 0.0]
inertia_kg_m2 = { xx = 0.01, xy = 0.0, yy = 0.05, xz = 0.0, yz = 0.0, zz = 0.05 }
"""
DATA = tomllib.loads(TEXT)


def analysed(edit: Edit = lambda _: None) -> Robot:
    data = copy.deepcopy(DATA)
    edit(data)
    return build_robot(data, "two.toml")


def problems_after(edit: Edit) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        analysed(edit)
    return caught.value.problems


def test_nothing_of_a_drive_is_needed() -> None:
    robot = analysed()
    assert not robot.is_driven
    assert (robot.boards, robot.motors) == ((), {})
    assert [joint.drive is not None for joint in robot.joints] == [False, False]
    assert robot.joints[0].limits.current_max_a == float("inf")


def test_who_needs_drives_is_told_what_is_missing() -> None:
    robot = analysed()
    assert robot.bus is None
    with pytest.raises(ConfigError) as refused:
        robot.driven()
    assert (refused.value.source, refused.value.code) == ("robot two", "not-driven")


def test_who_drives_refuses_it() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_robot(TEXT, "two.toml", profiles=("arm",))
    (problem,) = refused.value.problems
    assert problem.startswith("boards: ")


def test_a_driven_robot_keeps_its_drive_and_bus() -> None:
    robot = load_robot("laas4")
    assert robot.is_driven
    first = robot.joints[0]
    changed = msgspec.structs.replace(
        first, drive=msgspec.structs.replace(first.drive, direction=-1)
    )
    assert (changed.drive.direction, changed.direction, first.direction) == (-1, -1, 1)
    assert changed != first
    assert robot.bus.nominal_v == 24.0
    assert msgspec.convert(msgspec.to_builtins(robot), Robot).driven() == robot
    assert robot.driven() is robot


def test_gears_of_both_kinds() -> None:
    first, second = analysed().joints
    assert (first.gear_reduction, first.direction, first.joint_offset_rad) == (45.5, -1, 0.1)
    assert (second.gear_reduction, second.direction, second.joint_offset_rad) == (1.0, 1, 0.0)
    assert (first.rotor_inertia_kg_m2, second.rotor_inertia_kg_m2) == (1e-4, None)
    driven = load_robot("laas4").joints[1]
    assert (driven.gear_reduction, driven.rotor_inertia_kg_m2) == (27.0, 2e-5)


def test_torque_constants() -> None:
    robot, arm = analysed(), load_robot("laas4")
    assert [robot.torque_constant_nm_per_a(joint) for joint in robot.joints] == [0.2, None]
    assert arm.torque_constant_nm_per_a(arm.joints[1]) == pytest.approx(0.021763, rel=1e-4)


def test_coupling_is_identity_by_default() -> None:
    assert analysed().coupling_matrix == ((1.0, 0.0), (0.5, 1.0))
    assert analysed(lambda data: data.pop("coupling")).coupling_matrix == ((1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("edit", "problems"),
    [
        (put("coupling", [[1, 0]]), ["coupling: an array of 1"]),
        (
            put("coupling", [[1, 0], [1]]),
            ["coupling[1]: an array of 1"],
        ),
        (
            put("coupling", [[1, 2], [0.5, 1]]),
            ["coupling: a matrix without inverse"],
        ),
        (
            put("joints.0.transmission.direction", 0),
            ["joints[0].transmission.direction: 0"],
        ),
        (
            put("joints.0.transmission.gear_reduction", 0),
            ["joints[0].transmission.gear_reduction: 0"],
        ),
        (
            put("joints.0.bounds.mass_min_kg", 4.0),
            ["joints[0].bounds.mass_min_kg: 4.0"],
        ),
        (
            put("joints.1.bounds", {"mass_max_kg": 1.5}),
            ["joints[1].bounds.mass_max_kg: 1.5"],
        ),
        (
            put("joints.1.bounds", {"mass_min_kg": 2.5}),
            ["joints[1].bounds.mass_min_kg: 2.5"],
        ),
        (
            put("joints.1.bounds", {"centre_of_mass_min_m": [0, 0, 0]}),
            ["joints[1].bounds.centre_of_mass_max_m: missing"],
        ),
        (
            put(
                "joints.1.bounds",
                {"centre_of_mass_min_m": [0, 0.1, -1], "centre_of_mass_max_m": [0.05, 0.2, -2]},
            ),
            [
                "joints[1].bounds.centre_of_mass_max_m[0]: 0.05",
                "joints[1].bounds.centre_of_mass_min_m[1]: 0.1",
                "joints[1].bounds.centre_of_mass_min_m[2]: -1.0",
            ],
        ),
        (
            put(
                "joints.1.bounds",
                {"ellipsoid_centre_m": [0, 0, 0], "ellipsoid_semi_axes_m": [0.09, 1, 1]},
            ),
            ["joints[1].bounds.ellipsoid_semi_axes_m: an array of 3"],
        ),
        (
            put("estimation", {"total_mass_min_kg": 2.0, "total_mass_max_kg": 1.0}),
            ["estimation.total_mass_min_kg: 2.0"],
        ),
        (
            put("estimation", {"terms": ["viscous", "viscous"]}),
            ['estimation.terms[1]: "viscous"'],
        ),
        (
            put("estimation", {"terms": ["viscose"]}),
            ['estimation.terms[0]: "viscose"'],
        ),
        (
            lambda data: data["joints"][1].pop("dh"),
            [
                "joints[1].dh: missing",
                "joints[0].placement: missing",
                "joints[1].placement: missing",
            ],
        ),
        (
            put("joints.0.placement", {"xyz_m": [0, 0, 0], "rpy_rad": [0, 0, 0]}),
            ["joints[1].placement: missing"],
        ),
    ],
)
def test_contradiction(edit: Edit, problems: list[str]) -> None:
    found = problems_after(edit)
    assert len(found) == len(problems)
    for problem, expected in zip(found, problems, strict=True):
        assert problem.startswith(f"{expected}, ")


def test_half_a_drive_is_named_piece_by_piece() -> None:
    arm = tomllib.loads(robot_text("laas4"))
    drive = {**arm["joints"][0]["drive"], "board": "any", "motor": "any"}
    paths = [p.split(":")[0] for p in problems_after(put("joints.0.drive", drive))]
    expected = ["bus", "boards", "motors", "joints[0].kind", "joints[0].transmission"]
    expected += ["joints[0].limits.current_max_a", "joints[0].link", "joints[1].kind"]
    assert paths == [*expected, "joints[1].drive", "joints[1].limits.current_max_a"]


def test_coupling_beside_boards_is_refused() -> None:
    arm = tomllib.loads(robot_text("laas4"))
    arm["coupling"] = [[float(i == j) for j in range(4)] for i in range(4)]
    with pytest.raises(ConfigError) as caught:
        build_robot(arm, "coupled.toml")
    (problem,) = caught.value.problems
    assert problem.startswith("coupling: ")


def test_rows_and_placements_are_compared_in_the_stated_convention() -> None:
    def place(data: dict[str, Any]) -> None:
        first = {"xyz_m": [0, 0, 0.3], "rpy_rad": [0, 0, 0]}
        second = {"xyz_m": [0.2, 0, 0], "rpy_rad": [1.5707963267948966, 0, 0]}
        for joint, placement in zip(data["joints"], (first, second), strict=True):
            joint["placement"] = placement

    assert analysed(place).joints[1].placement is not None

    def place_standard(data: dict[str, Any]) -> None:
        place(data)
        data["dh_convention"] = "standard"

    (problem,) = problems_after(place_standard)
    assert problem.startswith("joints[0]: its axis is ")


def test_a_joint_of_it_cannot_go_to_the_bench() -> None:
    with pytest.raises(ConfigError) as refused:
        bench_text(TEXT, "one")
    assert refused.value.code == "not-driven"


def test_what_belongs_to_an_arm_leaves_a_joint_on_the_bench() -> None:
    bench = parse_robot(bench_text(robot_text("laas4"), "joint2"), "bench.toml")
    assert bench.joints[0].bounds is None
    assert bench.estimation.total_mass_max_kg is None
    assert bench.workspace.ground_z_m is None


def test_the_arms_own_bounds() -> None:
    arm = load_robot("laas4")
    for joint in arm.joints:
        assert joint.bounds is not None
        assert joint.link is not None
        assert joint.bounds.mass_min_kg == pytest.approx(0.4 * joint.link.mass_kg)
        assert joint.bounds.mass_max_kg == pytest.approx(2.5 * joint.link.mass_kg)
        assert joint.limits.acceleration_max_rad_s2 == 40.0
    assert arm.joints[3].link is not None
    assert arm.joints[3].link.tip_m == (0.10, 0.0, 0.0)
    assert arm.workspace.ground_z_m == -0.75
    assert arm.estimation.terms == ("viscous", "coulomb", "drive_inertia")
    assert (arm.estimation.total_mass_min_kg, arm.estimation.total_mass_max_kg) == (0.9, 2.3)


def test_a_transmission_is_one_to_one_by_default() -> None:
    assert Transmission() == Transmission(gear_reduction=1.0, direction=1, joint_offset_rad=0.0)
