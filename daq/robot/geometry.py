"""Where the joint axes are: poses of a chain from placements and from Denavit-Hartenberg rows.

Plain Python on purpose: reading a robot file needs no numerical library. Not for the control loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from daq.robot.description import DhRow, Link, Placement

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
    """The product of 4×4 matrices, from left to right."""
    product = IDENTITY
    for matrix in matrices:
        columns = tuple(zip(*matrix, strict=True))
        product = tuple(tuple(map(_dot, (row,) * 4, columns)) for row in product)
    return product


def translation(x: float, y: float, z: float) -> Matrix:
    """A shift, in metres."""
    return ((1.0, 0.0, 0.0, x), (0.0, 1.0, 0.0, y), (0.0, 0.0, 1.0, z), IDENTITY[3])


def rotation(axis: int, angle_rad: float) -> Matrix:
    """A turn about axis 0 (x), 1 (y) or 2 (z)."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = math.cos(angle_rad), math.sin(angle_rad)
    rows = [list(row) for row in IDENTITY]
    rows[i][i], rows[i][j], rows[j][i], rows[j][j] = cosine, -sine, sine, cosine
    return tuple(tuple(row) for row in rows)


def placement_pose(placement: Placement) -> Matrix:
    """The pose that a placement states: Txyz·Rz(yaw)·Ry(pitch)·Rx(roll)."""
    roll, pitch, yaw = placement.rpy_rad
    turns = rotation(2, yaw), rotation(1, pitch), rotation(0, roll)
    return multiply(translation(*placement.xyz_m), *turns)


def axes_by_placement(
    placements: Iterable[Placement], joint_position_rad: Sequence[float]
) -> list[Line]:
    """The joint axes as lines, seen from the frame that the last joint turns."""
    axes, frame = [], IDENTITY
    for placement, position in zip(placements, joint_position_rad, strict=True):
        axes.append(multiply(frame, placement_pose(placement)))
        frame = multiply(axes[-1], rotation(2, position))
    return [_z_axis_seen_from(frame, axis) for axis in axes]


def axes_by_dh(rows: Iterable[DhRow], joint_position_rad: Sequence[float]) -> list[Line]:
    """The joint axes as lines, seen from the frame that the last joint turns.

    That frame is the last one before the constant part (d, a, α) of the last row, which leads on to
    the tool. Joint i turns about z of frame i−1; row i is Rz(θ)·Tz(d)·Tx(a)·Rx(α).
    """
    axes, turned, frame = [], IDENTITY, IDENTITY
    for row, position in zip(rows, joint_position_rad, strict=True):
        axes.append(frame)
        turned = multiply(frame, rotation(2, position + row.theta_offset_rad))
        frame = multiply(turned, translation(row.a_m, 0.0, row.d_m), rotation(0, row.alpha_rad))
    return [_z_axis_seen_from(turned, axis) for axis in axes]


def pseudo_inertia(link: Link) -> Matrix:
    """The 4×4 matrix of ∫(1, x)(1, x)ᵀdm: mass, first and second moments about the joint frame."""
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


def _z_axis_seen_from(frame: Matrix, axis: Matrix) -> Line:
    (*_, zx, x), (*_, zy, y), (*_, zz, z), _ = multiply(_inverse(frame), axis)
    return (zx, zy, zz, y * zz - z * zy, z * zx - x * zz, x * zy - y * zx)


def _inverse(pose: Matrix) -> Matrix:
    rotation_rows, origin = tuple(row[:3] for row in pose[:3]), tuple(row[3] for row in pose[:3])
    transposed = tuple(zip(*rotation_rows, strict=True))
    return (*((*row, -_dot(row, origin)) for row in transposed), IDENTITY[3])


def _dot(left: Iterable[float], right: Iterable[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
