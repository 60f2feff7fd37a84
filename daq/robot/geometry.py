"""Computes where the joint axes are, from placements or from Denavit-Hartenberg rows.

Plain Python on purpose: reading a robot file needs no numerical library. Not for the control loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from daq.robot.bodies import DhRow, Link, Placement
from daq.robot.description import Robot

Matrix = tuple[tuple[float, ...], ...]
Line = tuple[float, ...]
"""Plücker coordinates: direction, then moment about the origin."""

IDENTITY: Matrix = (
    (1.0, 0.0, 0.0, 0.0),
    (0.0, 1.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 0.0),
    (0.0, 0.0, 0.0, 1.0),
)


def multiply(*matrices: Matrix) -> Matrix:
    """Return the product of 4×4 matrices, from left to right."""
    product = IDENTITY
    for matrix in matrices:
        columns = tuple(zip(*matrix, strict=True))
        product = tuple(tuple(map(_dot, (row,) * 4, columns)) for row in product)
    return product


def translation(x: float, y: float, z: float) -> Matrix:
    """Return a shift, in metres."""
    return ((1.0, 0.0, 0.0, x), (0.0, 1.0, 0.0, y), (0.0, 0.0, 1.0, z), IDENTITY[3])


def rotation(axis: int, angle_rad: float) -> Matrix:
    """Return a turn about axis 0 (x), 1 (y) or 2 (z)."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = math.cos(angle_rad), math.sin(angle_rad)
    rows = [list(row) for row in IDENTITY]
    rows[i][i], rows[i][j], rows[j][i], rows[j][j] = cosine, -sine, sine, cosine
    return tuple(tuple(row) for row in rows)


def placement_pose(placement: Placement) -> Matrix:
    """Return the pose that a placement states: Txyz·Rz(yaw)·Ry(pitch)·Rx(roll)."""
    roll, pitch, yaw = placement.rpy_rad
    turns = rotation(2, yaw), rotation(1, pitch), rotation(0, roll)
    return multiply(translation(*placement.xyz_m), *turns)


def rpy_of(pose: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of Rz(yaw)·Ry(pitch)·Rx(roll); exact in gimbal lock, too."""
    (a, b, c), (d, e, f), (g, _, _) = (row[:3] for row in pose[:3])
    yaw = math.atan2(d, a) if math.hypot(a, d) > 1e-12 else 0.0
    sine, cosine = math.sin(yaw), math.cos(yaw)
    # The rest is taken from Rz(−yaw)·R: it makes up for a yaw that rounding left undetermined.
    pitch = math.atan2(-g, cosine * a + sine * d)
    return math.atan2(sine * c - cosine * f, cosine * e - sine * b), pitch, yaw


def row_poses(rows: Sequence[DhRow], convention: str) -> tuple[Matrix, ...]:
    """Return the joint frames that DH rows place, each in the turned one before it.

    Args:
        rows: One per joint.
        convention: "standard" or "modified". Standard rows go Rz(θ)·Tz(d)·Tx(a)·Rx(α), so joint i
            stands where the constant part of row i−1 leads; the last row's leads to the tool.
            Modified rows go Rx(α)·Tx(a)·Rz(θ)·Tz(d), and row i alone places joint i.
    """
    poses, before = [], IDENTITY
    for row in rows:
        shift, tilt = translation(row.a_m, 0.0, row.d_m), rotation(0, row.alpha_rad)
        turn = rotation(2, row.theta_offset_rad)
        if convention == "modified":
            along = translation(row.a_m, 0.0, 0.0), translation(0.0, 0.0, row.d_m)
            poses.append(multiply(tilt, *along, turn))
        else:
            poses.append(multiply(before, turn))
            before = multiply(shift, tilt)
    return tuple(poses)


def joint_poses(robot: Robot) -> tuple[Matrix, ...]:
    """Return the pose of each joint's frame in the turned frame of the joint before it.

    Joint i at angle q moves its link by pose i · Rz(q); the parameters of that link refer to the
    frame after that turn. The first pose is in the base frame. Placements place joints; without
    them DH rows do. A joint on the bench, which has neither, stands in the base frame.
    """
    placements = [joint.placement for joint in robot.joints if joint.placement is not None]
    if placements:
        return tuple(placement_pose(placement) for placement in placements)
    rows = [joint.dh for joint in robot.joints if joint.dh is not None]
    if rows:
        return row_poses(rows, robot.dh_convention)
    return (IDENTITY,) * len(robot.joints)


def axes_of(poses: Iterable[Matrix], joint_position_rad: Sequence[float]) -> list[Line]:
    """Return the joint axes as lines, seen from the frame that the last joint turns.

    Poses are each in the turned frame of the joint before it.
    """
    axes, frame = [], IDENTITY
    for pose, position in zip(poses, joint_position_rad, strict=True):
        axes.append(multiply(frame, pose))
        frame = multiply(axes[-1], rotation(2, position))
    return [_z_axis_seen_from(frame, axis) for axis in axes]


def pseudo_inertia(link: Link) -> Matrix:
    """Return the 4×4 matrix ∫(1, x)(1, x)ᵀdm: mass, first and second moments at the joint."""
    inertia, first = link.inertia_kg_m2, link.first_moment_kg_m
    half_trace = (inertia.xx + inertia.yy + inertia.zz) / 2
    return (
        (link.mass_kg, *first),
        (first[0], half_trace - inertia.xx, -inertia.xy, -inertia.xz),
        (first[1], -inertia.xy, half_trace - inertia.yy, -inertia.yz),
        (first[2], -inertia.xz, -inertia.yz, half_trace - inertia.zz),
    )


def is_positive_definite(matrix: Matrix) -> bool:
    """Whether a symmetric matrix is positive definite by more than rounding (pivots)."""
    rows = [list(row) for row in matrix]
    for k, row in enumerate(rows):
        if not row[k] > 1e-9 * abs(matrix[k][k]):
            return False
        for below in rows[k + 1 :]:
            factor = below[k] / row[k]
            below[:] = [value - factor * above for value, above in zip(below, row, strict=True)]
    return True


def is_invertible(matrix: Matrix) -> bool:
    """Whether a square matrix has an inverse by more than rounding (pivots)."""
    rows = [list(row) for row in matrix]
    scale = max((abs(value) for row in rows for value in row), default=1.0)
    while rows:
        pivot = max(rows, key=lambda row: abs(row[0]))
        if not abs(pivot[0]) > 1e-9 * scale:
            return False
        others = [row for row in rows if row is not pivot]
        factors = [row[0] / pivot[0] for row in others]
        rows = [
            [value - factor * above for value, above in zip(row[1:], pivot[1:], strict=True)]
            for row, factor in zip(others, factors, strict=True)
        ]
    return True


def _z_axis_seen_from(frame: Matrix, axis: Matrix) -> Line:
    (*_, zx, x), (*_, zy, y), (*_, zz, z), _ = multiply(_inverse(frame), axis)
    return (zx, zy, zz, y * zz - z * zy, z * zx - x * zz, x * zy - y * zx)


def _inverse(pose: Matrix) -> Matrix:
    rotation_rows, origin = tuple(row[:3] for row in pose[:3]), tuple(row[3] for row in pose[:3])
    transposed = tuple(zip(*rotation_rows, strict=True))
    return (*((*row, -_dot(row, origin)) for row in transposed), IDENTITY[3])


def _dot(left: Iterable[float], right: Iterable[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
