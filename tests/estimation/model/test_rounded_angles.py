"""Ranks of arms whose files round: 1.5708 is meant to be a right angle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_examples import laas4

from daq.robot import Joint, Robot, parse_robot
from daq.robot.bodies import Placement
from daq.robot.geometry import joint_poses
from estimation.model.base import BaseParameters, condition_numbers, find_base
from estimation.model.exact_geometry import meant_robot
from estimation.model.regressor import Regressor
from estimation.urdf import robot_from_urdf, urdf_text

RIGHT = math.pi / 2
LIMITS = (
    "limits = { position_min_rad = -3, position_max_rad = 3, velocity_max_rad_s = 3, "
    "torque_max_nm = 30 }\n"
)
# a, d, alpha of the UR5, as its maker publishes them.
UR5 = (
    (0.0, 0.089159, RIGHT),
    (-0.425, 0.0, 0.0),
    (-0.39225, 0.0, 0.0),
    (0.0, 0.10915, RIGHT),
    (0.0, 0.09465, -RIGHT),
    (0.0, 0.0823, 0.0),
)
# xyz, rpy, axis: seven joints, of axes that are not z, on a base that is turned over twice.
SEVEN = (
    ((0, 0, 0.15), (-math.pi, 0, 0), (0, 0, -1)),
    ((0, 0.005, -0.13), (RIGHT, 0, 0), (0, 0, 1)),
    ((0, -0.21, -0.006), (-RIGHT, 0, 0), (0, 0, 1)),
    ((0, 0.006, -0.21), (0, RIGHT, 0), (1, 0, 0)),
    ((0.06, -0.20, 0), (0, RIGHT, math.pi), (0, 1, 0)),
    ((0, 0, -0.10), (RIGHT, 0, -math.pi / 4), (0, 0, 1)),
    ((0, -0.10, 0), (-RIGHT, 0, 0), (0, 0, 1)),
)


def rounded(digits: int | None) -> Callable[[float], float]:
    return lambda angle: angle if digits is None else round(angle, digits)


def by_rows(rows: Sequence[tuple[float, ...]], convention: str = "standard") -> Robot:
    joints = "".join(
        f'[[joints]]\nname = "q{index}"\n'
        f"dh = {{ a_m = {a!r}, d_m = {d!r}, alpha_rad = {alpha!r}, theta_offset_rad = {theta!r}"
        f" }}\n{LIMITS}"
        for index, (a, d, alpha, theta) in enumerate(rows)
    )
    head = f'schema = 1\nname = "arm"\ndescription = ""\ndh_convention = "{convention}"\n'
    return parse_robot(head + joints, "arm.toml")


def ur5(convention: str, change: Callable[[float], float]) -> Robot:
    # Modified rows state what leads from the axis before, standard ones what leads to the next.
    ways = [(a, change(alpha)) for a, _, alpha in UR5]
    ways = [(0.0, 0.0), *ways[:-1]] if convention == "modified" else ways
    rows = zip(ways, UR5, strict=True)
    return by_rows([(a, d, alpha, 0.0) for (a, alpha), (_, d, _) in rows], convention)


def seven(change: Callable[[float], float]) -> Robot:
    lines = ['<robot name="seven"><link name="l0"/>']
    for index, (xyz, rpy, axis) in enumerate(SEVEN):
        place, turn, along = (
            " ".join(map(repr, values)) for values in (xyz, tuple(map(change, rpy)), axis)
        )
        lines.append(
            f'<link name="l{index + 1}"/><joint name="q{index}" type="revolute">'
            f'<parent link="l{index}"/><child link="l{index + 1}"/><axis xyz="{along}"/>'
            f'<origin xyz="{place}" rpy="{turn}"/>'
            '<limit lower="-3" upper="3" velocity="3" effort="30"/></joint>'
        )
    made = robot_from_urdf("".join([*lines, "</robot>"]), source="seven.urdf")
    return parse_robot(made.text, "seven.toml")


def laas4_through_urdf(change: Callable[[float], float]) -> Robot:
    joints = []
    for joint in laas4().joints:
        assert joint.placement is not None
        rpy = tuple(map(change, joint.placement.rpy_rad))
        placement = Placement(xyz_m=joint.placement.xyz_m, rpy_rad=rpy)  # type: ignore[arg-type]
        joints.append(
            Joint(name=joint.name, limits=joint.limits, placement=placement, link=joint.link)
        )
    robot = msgspec.structs.replace(laas4(), joints=tuple(joints))
    return parse_robot(robot_from_urdf(urdf_text(robot), source="arm.urdf").text, "arm.toml")


ARMS: dict[str, tuple[Callable[[Callable[[float], float]], Robot], int]] = {
    "UR5, standard DH": (lambda change: ur5("standard", change), 52),
    "UR5, modified DH": (lambda change: ur5("modified", change), 52),
    "seven joints, URDF": (seven, 69),
    "laas4, URDF": (laas4_through_urdf, 36),
}


def base_of(robot: Robot) -> BaseParameters:
    return find_base(Regressor(robot))


def expressions(base: BaseParameters) -> list[str]:
    return [base.expression(row) for row in range(base.rank)]


def condition_of(regressor: Regressor, base: BaseParameters) -> float:
    generator = np.random.default_rng(3)
    joints = regressor.parameters.joint_count
    phi = regressor(*(generator.uniform(-size, size, (200, joints)) for size in (np.pi, 3.0, 20.0)))
    return condition_numbers(base.columns(phi).reshape(-1, base.rank))[0]


@pytest.mark.parametrize("digits", [6, 4, 3])
@pytest.mark.parametrize("arm", ARMS)
def test_rounded_angles_change_neither_rank_nor_combinations(arm: str, digits: int) -> None:
    make, rank = ARMS[arm]
    exact, base = base_of(make(rounded(None))), base_of(make(rounded(digits)))
    assert exact.rounded == 0
    assert base.rank == exact.rank == rank
    assert expressions(base) == expressions(exact)
    np.testing.assert_array_equal(base.lost, exact.lost)
    np.testing.assert_allclose(base.mapping, exact.mapping, atol=1e-6)
    assert base.gap > 1e9


@pytest.mark.parametrize("arm", ARMS)
def test_nor_do_angles_like_1_57_and_3_14_change_the_rank(arm: str) -> None:
    make, rank = ARMS[arm]
    assert base_of(make(rounded(2))).rank == rank


@pytest.mark.parametrize("arm", ["UR5, standard DH", "seven joints, URDF"])
def test_what_only_rounding_would_tell_is_counted(arm: str) -> None:
    make, _ = ARMS[arm]
    exact, stated = (Regressor(make(rounded(digits))) for digits in (None, 4))
    base = find_base(stated)
    assert base.rounded > 0
    assert condition_of(stated, base) == pytest.approx(
        condition_of(exact, find_base(exact)), rel=0.01
    )


@pytest.mark.parametrize(("digits", "error"), [(6, 1e-6), (4, 1e-5), (3, 1e-3), (2, 5e-3)])
def test_torques_differ_by_about_what_was_rounded(digits: int, error: float) -> None:
    regressor = Regressor(seven(rounded(digits)))
    base = find_base(regressor)
    generator = np.random.default_rng(0)
    phi = regressor(*(generator.uniform(-size, size, (50, 7)) for size in (np.pi, 3.0, 20.0)))
    theta = generator.normal(size=len(regressor.parameters))
    torque = phi @ theta
    rest = torque - base.columns(phi) @ base.of(theta)
    assert np.linalg.norm(rest) < error * np.linalg.norm(torque)


@given(st.lists(st.floats(-1e-4, 1e-4), min_size=12, max_size=12))
@settings(max_examples=examples(40))
def test_small_errors_of_dh_angles_change_nothing(errors: list[float]) -> None:
    exact = by_rows([(*row, 0.0) for row in UR5])
    rows = zip(UR5, errors[:6], errors[6:], strict=True)
    close = by_rows([(a, d, alpha + by, turn) for (a, d, alpha), by, turn in rows])
    assert expressions(base_of(close)) == expressions(base_of(exact))


@given(st.lists(st.floats(-1e-4, 1e-4), min_size=21, max_size=21))
@settings(max_examples=examples(40))
def test_small_errors_of_urdf_angles_change_nothing(errors: list[float]) -> None:
    left = iter(errors)
    close = seven(lambda angle: angle + next(left))
    assert expressions(base_of(close)) == expressions(base_of(seven(rounded(None))))


@given(st.lists(st.floats(-math.pi, math.pi), min_size=21, max_size=21))
@settings(max_examples=examples(40))
def test_the_arm_that_is_meant_is_the_same_arm(angles: list[float]) -> None:
    left = iter(angles)
    robot = seven(lambda _: next(left))
    meant = meant_robot(robot)
    # Joint 1 stands on the ground however that is turned; gravity is turned with it.
    poses, others = (np.array(joint_poses(each))[1:] for each in (robot, meant))
    np.testing.assert_allclose(poses, others, atol=0.02)
    np.testing.assert_allclose(
        np.array(joint_poses(robot))[0, :3, :3].T @ robot.gravity_m_s2,
        meant.gravity_m_s2,
        atol=0.03,
    )
    np.testing.assert_allclose(others, np.array(joint_poses(meant_robot(meant)))[1:], atol=1e-9)


def test_axes_that_are_tilted_on_purpose_are_told() -> None:
    first, *rest = [(*row, 0.0) for row in UR5]
    a, d, alpha, theta = first
    tilted = base_of(by_rows([(a, d, alpha + 0.01, theta), *rest]))
    assert tilted.rank == base_of(by_rows([first, *rest])).rank + 1
    assert tilted.rounded == 0


@pytest.mark.parametrize("factor", [1e-3, 30.0])
def test_the_size_of_an_arm_does_not_matter(factor: float) -> None:
    sized = base_of(by_rows([(factor * a, factor * d, alpha, 0.0) for a, d, alpha in UR5]))
    base = base_of(by_rows([(*row, 0.0) for row in UR5]))
    np.testing.assert_array_equal(sized.independent, base.independent)


@pytest.mark.parametrize("short_m", [0.3, 0.01, 0.001])
def test_a_short_link_is_no_rounding(short_m: float) -> None:
    # Three upright axes: only the distance of the first two tells where the second link's mass is.
    rows = [(short_m, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)]
    base = base_of(by_rows(rows))
    symbols = {base.symbols[index] for index in base.independent}
    assert {"mcx2", "mcy2", "mcx3", "mcy3"} <= symbols
    assert base.rounded == 0


def test_axes_at_one_place_up_to_a_micrometre_are_at_one_place() -> None:
    at_one, nearly = (
        base_of(by_rows([(away_m, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)]))
        for away_m in (0.0, 1e-6)
    )
    assert expressions(nearly) == expressions(at_one)
    assert nearly.rounded == 2
