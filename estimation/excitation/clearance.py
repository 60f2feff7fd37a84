"""How near the links of an arm come to each other and to the ground.

Every link is a capsule about a line from its joint to the far end that the robot file states. What
the robot stands on, what it carries and what stands around it is not described, so not checked.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from daq.robot import Joint, Robot
from daq.robot.geometry import joint_poses
from estimation.types import Flags, FloatArray

RADIUS_M = 0.04
"""Of a link that the robot file does not describe."""
_POSTURES = 32
_STILL_M = 1e-9


class Pair(NamedTuple):
    """Two links, by their joints (from 0)."""

    first: int
    second: int


class Capsules:
    """The links of an arm as capsules.

    Args:
        robot: Its kinematics, radii, and where the ground is.
        clearance_m: What must stay between two links; only decides which pairs are looked at.

    Attributes:
        pairs: Links that could touch. Neighbours are joined; so are links between which there is
            so little that they overlap in every posture, as around a wrist.
        joined: Those of the latter kind: nothing is known of what is between them.
        ground_z_m: Height of the ground, None if there is none.
        radii_m: Shape (n_joints,).
    """

    def __init__(self, robot: Robot, *, clearance_m: float = 0.0) -> None:
        self._poses = np.array(joint_poses(robot), dtype=np.float64)
        self.ground_z_m = robot.workspace.ground_z_m
        self.radii_m = np.array([_radius(joint) for joint in robot.joints])
        self._tips = self._find_tips(robot)
        self.pairs, self.joined = self._find_pairs(clearance_m)
        self._first = np.array([pair.first for pair in self.pairs], dtype=np.intp)
        self._second = np.array([pair.second for pair in self.pairs], dtype=np.intp)
        self._is_lifted = self._find_lifted()

    def frames(self, q_rad: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return where the links' frames are in the base frame, q of shape (n_samples, n_joints).

        Rotations, shape (n_samples, n_joints, 3, 3), and origins, (n_samples, n_joints, 3).
        """
        q = np.asarray(q_rad, dtype=np.float64)
        cosine, sine = np.cos(q)[:, :, np.newaxis], np.sin(q)[:, :, np.newaxis]
        rotations = np.empty((*q.shape, 3, 3))
        origins = np.empty((*q.shape, 3))
        rotation: FloatArray = np.eye(3)
        origin: FloatArray = np.zeros(3)
        for joint, pose in enumerate(self._poses):
            origin = origin + rotation @ pose[:3, 3]
            turned = rotation @ pose[:3, :3]
            x, y = turned[..., 0], turned[..., 1]
            rotations[:, joint, :, 0] = cosine[:, joint] * x + sine[:, joint] * y
            rotations[:, joint, :, 1] = cosine[:, joint] * y - sine[:, joint] * x
            rotations[:, joint, :, 2] = turned[..., 2]
            origins[:, joint] = origin
            rotation = rotations[:, joint]
        return rotations, origins

    def segments(self, q_rad: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the capsules' axes, each of shape (n_samples, n_joints, 3)."""
        rotations, origins = self.frames(q_rad)
        return origins, origins + (rotations @ self._tips[:, :, np.newaxis])[..., 0]

    def clearances(self, q_rad: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return what is between links, and between links and ground; negative where they overlap.

        Args:
            q_rad: Shape (n_samples, n_joints).

        Returns:
            Of every pair, shape (n_samples, n_pairs); of every link above the ground, shape
            (n_samples, n_joints), infinite for what never changes its height (the arm stands on
            it) and where there is no ground.
        """
        starts, ends = self.segments(q_rad)
        one, other = self._first, self._second
        between = segment_distances(
            starts[:, one], ends[:, one], starts[:, other], ends[:, other]
        ) - (self.radii_m[one] + self.radii_m[other])
        heights = np.full(starts.shape[:2], np.inf)
        if self.ground_z_m is not None:
            points = np.stack([starts[..., 2], ends[..., 2]])
            points[~np.broadcast_to(self._is_lifted[:, np.newaxis], points.shape)] = np.inf
            heights = points.min(axis=0) - self.radii_m - self.ground_z_m
        return between, heights

    def _find_tips(self, robot: Robot) -> FloatArray:
        tips = np.zeros((len(robot.joints), 3))
        tips[:-1] = self._poses[1:, :3, 3]
        last = robot.joints[-1].link
        if last is not None:
            tips[-1] = 2.0 * np.array(last.first_moment_kg_m) / last.mass_kg
        for tip, joint in zip(tips, robot.joints, strict=True):
            if joint.link is not None and joint.link.tip_m is not None:
                tip[:] = joint.link.tip_m
        return tips

    def _find_pairs(self, clearance_m: float) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """Return the pairs of links to look at, and those that always overlap."""
        # A chain of links between two is at most this long, and so is the distance between them.
        steps = np.linalg.norm(self._poses[1:, :3, 3], axis=1)
        nothing = np.zeros((1, 3))
        pairs: list[Pair] = []
        joined: list[Pair] = []
        for first, second in combinations(range(len(self._poses)), 2):
            if second == first + 1:
                continue
            next_joint = self._poses[first + 1, np.newaxis, :3, 3]
            leaving = segment_distances(nothing, self._tips[[first]], next_joint, next_joint)[0]
            longest = leaving + steps[first + 1 : second].sum()
            can_part = longest > self.radii_m[first] + self.radii_m[second] + clearance_m
            (pairs if can_part else joined).append(Pair(first, second))
        return tuple(pairs), tuple(joined)

    def _find_lifted(self) -> Flags:
        """Which ends ever change their height, shape (2, n_joints)."""
        shape = (_POSTURES, len(self._poses))
        postures = np.random.default_rng(0).uniform(-np.pi, np.pi, shape)
        heights = np.stack([points[..., 2] for points in self.segments(postures)])
        is_lifted: Flags = np.ptp(heights, axis=1) > _STILL_M
        return is_lifted


def segment_distances(
    start: FloatArray, end: FloatArray, other_start: FloatArray, other_end: FloatArray
) -> FloatArray:
    """Return shortest distances between line segments, which may be parallel, or mere points.

    It is taken between two inner points only where the segments pass each other, otherwise at an
    end of one of them. All ends have the shape (…, 3), the result (…).
    """
    way, other_way = end - start, other_end - other_start
    squares = [
        _to_segment(start, other_start, other_way),
        _to_segment(end, other_start, other_way),
        _to_segment(other_start, start, way),
        _to_segment(other_end, start, way),
    ]
    between = start - other_start
    a, b, e = _dot(way, way), _dot(way, other_way), _dot(other_way, other_way)
    c, f = _dot(way, between), _dot(other_way, between)
    determinant = a * e - b * b
    # Of nearly parallel segments the ends are enough: their distance hardly changes along them.
    is_crossing = determinant > 1e-12 * a * e
    divisor = np.where(is_crossing, determinant, 1.0)
    s, t = (b * f - c * e) / divisor, (a * f - b * c) / divisor
    is_inside = is_crossing & (s > 0.0) & (s < 1.0) & (t > 0.0) & (t < 1.0)
    gap = between + s[..., np.newaxis] * way - t[..., np.newaxis] * other_way
    squares.append(np.where(is_inside, _dot(gap, gap), np.inf))
    distances: FloatArray = np.sqrt(np.minimum.reduce(squares))
    return distances


def _to_segment(point: FloatArray, start: FloatArray, way: FloatArray) -> FloatArray:
    """Squared distance."""
    length = _dot(way, way)
    along = _dot(point - start, way) / np.where(length > 0.0, length, 1.0)
    gap = point - start - np.clip(along, 0.0, 1.0)[..., np.newaxis] * way
    return _dot(gap, gap)


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    product: FloatArray = np.einsum("...i,...i->...", left, right)
    return product


def _radius(joint: Joint) -> float:
    return RADIUS_M if joint.link is None else joint.link.capsule_radius_m
