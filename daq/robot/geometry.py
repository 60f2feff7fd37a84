"""Computes where the joint axes are, from placements or from Denavit-Hartenberg rows.

Not for the control loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from daq.robot.bodies import DhRow, Link, Placement
from daq.robot.description import Robot

Matrix = NDArray[np.float64]
"""Shape (4, 4) for poses."""
_ROUNDING = 1e-9


def translation(x: float, y: float, z: float) -> Matrix:
    """Return a shift, in metres."""
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def rotation(axis: int, angle_rad: float) -> Matrix:
    """Return a turn about axis 0 (x), 1 (y) or 2 (z)."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = math.cos(angle_rad), math.sin(angle_rad)
    pose = np.eye(4)
    pose[i, i], pose[i, j], pose[j, i], pose[j, j] = cosine, -sine, sine, cosine
    return pose


def placement_pose(placement: Placement) -> Matrix:
    """Return the pose that a placement states: Txyz·Rz(yaw)·Ry(pitch)·Rx(roll)."""
    roll, pitch, yaw = placement.rpy_rad
    turn: Matrix = rotation(2, yaw) @ rotation(1, pitch) @ rotation(0, roll)
    return translation(*placement.xyz_m) @ turn


def rpy_of(pose: Matrix) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of Rz(yaw)·Ry(pitch)·Rx(roll); exact in gimbal lock, too."""
    (a, b, c), (d, e, f), (g, _, _) = pose[:3, :3].tolist()
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
    poses, before = [], np.eye(4)
    for row in rows:
        shift, tilt = translation(row.a_m, 0.0, row.d_m), rotation(0, row.alpha_rad)
        turn = rotation(2, row.theta_offset_rad)
        if convention == "modified":
            poses.append(tilt @ shift @ turn)
        else:
            poses.append(before @ turn)
            before = shift @ tilt
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
    return (np.eye(4),) * len(robot.joints)


def axes_of(poses: Iterable[Matrix], joint_position_rad: Sequence[float]) -> list[Matrix]:
    """Return the joint axes as lines, seen from the frame that the last joint turns.

    Lines are Plücker coordinates, shape (6,): direction, then moment about the origin. Poses are
    each in the turned frame of the joint before it.
    """
    axes, frame = [], np.eye(4)
    for pose, position in zip(poses, joint_position_rad, strict=True):
        axes.append(frame @ pose)
        frame = axes[-1] @ rotation(2, position)
    turn, origin = frame[:3, :3], frame[:3, 3]
    lines = [((axis[:3, 3] - origin) @ turn, axis[:3, 2] @ turn) for axis in axes]
    return [np.array([*line, *np.cross(point, line)]) for point, line in lines]


def pseudo_inertia(link: Link) -> Matrix:
    """Return the 4×4 matrix ∫(1, x)(1, x)ᵀdm: mass, first and second moments at the joint."""
    inertia, first = link.inertia_kg_m2, link.first_moment_kg_m
    half_trace = (inertia.xx + inertia.yy + inertia.zz) / 2
    return np.array(
        [
            (link.mass_kg, *first),
            (first[0], half_trace - inertia.xx, -inertia.xy, -inertia.xz),
            (first[1], -inertia.xy, half_trace - inertia.yy, -inertia.yz),
            (first[2], -inertia.xz, -inertia.yz, half_trace - inertia.zz),
        ]
    )


def is_positive_definite(matrix: Matrix) -> bool:
    """Whether a symmetric matrix is positive definite by more than rounding, whatever its units."""
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diag(matrix))
        scaled = matrix / scale / scale[:, np.newaxis]
    return bool(np.isfinite(scaled).all() and np.linalg.eigvalsh(scaled).min() > _ROUNDING)


def is_invertible(matrix: Sequence[Sequence[float]]) -> bool:
    """Whether a square matrix has an inverse by more than rounding."""
    rows = np.array(matrix, dtype=np.float64)
    scale = np.abs(rows).max(initial=0.0)
    return not len(rows) or bool(scale and np.linalg.cond(rows / scale) < 1 / _ROUNDING)
