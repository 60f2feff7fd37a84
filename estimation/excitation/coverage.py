"""How much of what an arm can reach a motion visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daq.robot import Robot
from estimation.excitation.clearance import Capsules
from estimation.types import FloatArray

VOXELS_ACROSS = 10
"""Cubes along the longest edge of the box that the tip can reach."""
_POSTURES = 50_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a motion visits.

    Attributes:
        joint_percent: Part of [min, max] that each joint covers, by its name.
        tip_min_m: Corner of the box around the tip's way, in the base frame.
        tip_max_m: The opposite corner.
        voxel_m: Edge of the cubes that space is divided into.
        voxel_percent: Part of the cubes that the tip can reach (found by postures at random within
            the position limits, contact not considered) that it goes through.
    """

    joint_percent: dict[str, float]
    tip_min_m: tuple[float, float, float]
    tip_max_m: tuple[float, float, float]
    voxel_m: float
    voxel_percent: float


def find_coverage(robot: Robot, capsules: Capsules, q_rad: FloatArray) -> Coverage:
    """Return what a motion of shape (n_samples, n_joints) visits.

    The tip is the far end of the last capsule.
    """
    limits = [joint.limits for joint in robot.joints]
    low = np.array([limit.position_min_rad for limit in limits])
    high = np.array([limit.position_max_rad for limit in limits])
    percent = 100.0 * np.ptp(q_rad, axis=0) / (high - low)
    postures = np.random.default_rng(0).uniform(low, high, (_POSTURES, len(low)))
    reachable = capsules.segments(postures)[1][:, -1]
    visited = capsules.segments(q_rad[:: max(1, len(q_rad) // _POSTURES)])[1][:, -1]
    corner = reachable.min(axis=0)
    voxel = max(float(np.ptp(reachable, axis=0).max()) / VOXELS_ACROSS, 1e-6)
    possible = _voxels(reachable - corner, voxel)
    share = len(possible & _voxels(visited - corner, voxel)) / len(possible)
    return Coverage(
        joint_percent={j.name: float(p) for j, p in zip(robot.joints, percent, strict=True)},
        tip_min_m=_point(visited.min(axis=0)),
        tip_max_m=_point(visited.max(axis=0)),
        voxel_m=voxel,
        voxel_percent=100.0 * share,
    )


def _voxels(points: FloatArray, edge_m: float) -> set[tuple[int, ...]]:
    # Half an edge aside, so that a plane that the tip stays in is not a border between cubes.
    places = np.floor(points / edge_m + 0.5).astype(np.int64)
    return set(map(tuple, np.unique(places, axis=0).tolist()))


def _point(values: FloatArray) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return (x, y, z)
