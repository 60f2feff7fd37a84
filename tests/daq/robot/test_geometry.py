"""The arm's placements and DH rows describe the same arm; checked with numpy, apart from ours."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from daq.robot import DhRow, Inertia, Link, Placement, load_robot
from daq.robot.geometry import (
    axes_of,
    is_positive_definite,
    placement_pose,
    pseudo_inertia,
    row_poses,
)

Matrix = npt.NDArray[np.float64]
AXES = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}


def turn(axis: str, angle: float) -> Matrix:
    i, j = AXES[axis]
    pose = np.eye(4)
    pose[i, i] = pose[j, j] = math.cos(angle)
    pose[j, i] = math.sin(angle)
    pose[i, j] = -math.sin(angle)
    return pose


def shift(x: float, y: float, z: float) -> Matrix:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def row_pose(row: DhRow, position: float) -> Matrix:
    turned = turn("z", position + row.theta_offset_rad) @ shift(0, 0, row.d_m)
    return turned @ shift(row.a_m, 0, 0) @ turn("x", row.alpha_rad)


def placed_pose(placement: Placement, position: float) -> Matrix:
    roll, pitch, yaw = placement.rpy_rad
    turned = turn("z", yaw) @ turn("y", pitch) @ turn("x", roll)
    return shift(*placement.xyz_m) @ turned @ turn("z", position)


def chain(poses: Sequence[Matrix]) -> list[Matrix]:
    frames = [np.eye(4)]
    for pose in poses:
        frames.append(frames[-1] @ pose)
    return frames


@pytest.fixture(scope="module")
def rows() -> list[DhRow]:
    return [joint.dh for joint in load_robot("laas4").joints if joint.dh is not None]


@pytest.fixture(scope="module")
def placements() -> list[Placement]:
    return [joint.placement for joint in load_robot("laas4").joints if joint.placement is not None]


@pytest.mark.parametrize("seed", range(5))
def test_axes_elbow_and_last_frame_equal_dh(
    rows: list[DhRow], placements: list[Placement], seed: int
) -> None:
    posture = np.random.default_rng(seed).uniform(-math.pi, math.pi, 4)
    by_dh = chain([row_pose(row, q) for row, q in zip(rows, posture, strict=True)])
    # The DH base lies where the first two axes meet, 0.167 m above ours.
    by_dh = [shift(0, 0, 0.167) @ frame for frame in by_dh]
    placed = chain([placed_pose(p, q) for p, q in zip(placements, posture, strict=True)])
    for index in range(4):
        dh_axis, axis = by_dh[index], placed[index + 1]
        np.testing.assert_allclose(dh_axis[:3, 2], axis[:3, 2], atol=1e-12)
        between = axis[:3, 3] - dh_axis[:3, 3]
        np.testing.assert_allclose(np.cross(between, axis[:3, 2]), 0, atol=1e-12)
    np.testing.assert_allclose(by_dh[3][:3, 3], placed[4][:3, 3], atol=1e-12)
    np.testing.assert_allclose(by_dh[4], placed[4], atol=1e-12)

    ours = axes_of([placement_pose(p) for p in placements], list(posture))
    by_rows = axes_of(row_poses(rows, "standard"), list(posture))
    np.testing.assert_allclose(by_rows, ours, atol=1e-12)
    for index, line in enumerate(ours):
        seen = np.linalg.inv(placed[4]) @ placed[index + 1]
        direction = seen[:3, 2]
        np.testing.assert_allclose(
            line, [*direction, *np.cross(seen[:3, 3], direction)], atol=1e-12
        )


@pytest.mark.parametrize(("degrees", "direction"), [(0, (1, 0, 0)), (90, (0, 0, 1))])
def test_joint_2_at_zero_is_horizontal_and_at_90_degrees_vertical(
    placements: list[Placement], degrees: float, direction: tuple[float, ...]
) -> None:
    posture = (0.0, math.radians(degrees), 0.0, 0.0)
    frames = chain([placed_pose(p, q) for p, q in zip(placements, posture, strict=True)])
    upper_arm = (frames[4][:3, 3] - frames[2][:3, 3]) / 0.65
    np.testing.assert_allclose(upper_arm, direction, atol=1e-12)


def test_a_chain_placed_as_its_dh_rows_say_agrees_whatever_its_tool() -> None:
    rows = [DhRow(a_m=0.3, d_m=0.1, alpha_rad=0.4), DhRow(a_m=0.2, d_m=0.5, alpha_rad=math.pi)]
    placements = [
        Placement(xyz_m=(0.0, 0.0, 0.0), rpy_rad=(0.0, 0.0, 0.0)),
        Placement(xyz_m=(0.3, 0.0, 0.1), rpy_rad=(0.4, 0.0, 0.0)),
    ]
    posture = (0.7, -1.1)
    by_placement = axes_of([placement_pose(placement) for placement in placements], posture)
    by_rows = axes_of(row_poses(rows, "standard"), posture)
    np.testing.assert_allclose(by_rows, by_placement, atol=1e-12)


def test_pseudo_inertia_of_points_is_the_sum_of_their_outer_products() -> None:
    generator = np.random.default_rng(1)
    points, masses = generator.normal(size=(5, 3)), generator.uniform(0.1, 1.0, 5)
    about_origin = sum(
        m * (point @ point * np.eye(3) - np.outer(point, point))
        for m, point in zip(masses, points, strict=True)
    )
    keys = {"xx": (0, 0), "xy": (0, 1), "yy": (1, 1), "xz": (0, 2), "yz": (1, 2), "zz": (2, 2)}
    x, y, z = masses @ points
    link = Link(
        mass_kg=float(masses.sum()),
        first_moment_kg_m=(float(x), float(y), float(z)),
        inertia_kg_m2=Inertia(**{key: float(about_origin[at]) for key, at in keys.items()}),
    )
    extended = np.column_stack([np.ones(5), points])
    expected = extended.T @ np.diag(masses) @ extended
    np.testing.assert_allclose(pseudo_inertia(link), expected, atol=1e-12)
    assert is_positive_definite(pseudo_inertia(link))


@pytest.mark.parametrize("seed", range(20))
def test_definiteness_agrees_with_eigenvalues(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(4, 4))
    matrix = matrix + matrix.T + np.eye(4) * (seed % 5)
    assert is_positive_definite(matrix) == bool(np.linalg.eigvalsh(matrix).min() > 0)


def test_a_singular_or_absurd_matrix_is_not_definite() -> None:
    rod = np.diag([1.0, 0.1, 0.0, 0.2])
    assert not is_positive_definite(rod)
    assert not is_positive_definite(np.full((4, 4), 1e308))
