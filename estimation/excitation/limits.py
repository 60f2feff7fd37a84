"""What an excitation must keep to, and how near to each limit it comes.

The limits used are tighter than the robot file's, because a controller overshoots and CAD is wrong:

| limit        | what is used of it                                                                |
|--------------|-----------------------------------------------------------------------------------|
| position     | `POSITION_MARGIN_RAD` inside both ends, or 5 % of the range if that is less       |
| velocity     | `VELOCITY_SHARE`                                                                  |
| acceleration | all; where none is stated, the highest speed within `SPEED_UP_S`                  |
| torque       | `LOAD_SHARE`, of what CAD predicts; nothing is predicted without CAD              |
| current      | the same, where a torque constant is known                                        |
| clearance    | `CLEARANCE_M` between capsules and above the ground, also on the way from home    |

The way from the home posture to the first sample is straight in joint space, as the loop goes it.
A home posture that is itself nearer than that makes no trajectory impossible: its way is then left
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daq.robot import Joint, Robot
from estimation.excitation.clearance import Capsules
from estimation.excitation.fourier import SampledMotion
from estimation.model.parameters import cad_vector, coupling_matrix
from estimation.model.regressor import Regressor
from estimation.types import FloatArray

POSITION_MARGIN_RAD = 0.15
"""The arm of [De Facci 2024] lags by up to 0.11 rad on the mock, where gravity is largest."""
VELOCITY_SHARE = 0.8
"""The same arm goes up to 8 % faster than it is led, 13 % with springs and play in its gears."""
LOAD_SHARE = 0.7
"""CAD is off by some 25 %, and friction comes on top."""
CLEARANCE_M = 0.02
SPEED_UP_S = 0.25
"""As in the loop's own moves."""
_HARDEST_SPEED_UP_S = 0.05
"""Whatever a file states: the loop refuses rows whose speed changes twice as fast."""
_ROUNDING = 1e-9
_CHUNK = 4096
_APPROACH_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit, and what a motion reaches of it.

    Attributes:
        name: Such as `velocity`.
        joint: The joint concerned; of a clearance, the links by their joints.
        limit: What is allowed, margins taken off.
        reached: The motion's extreme.
        unit: Of both.
        is_lower: Whether less than the limit is too little, otherwise more is too much.
    """

    name: str
    joint: str
    limit: float
    reached: float
    unit: str
    is_lower: bool = False

    @property
    def excess(self) -> float:
        """How far it is exceeded, in its unit; negative while there is room."""
        return self.limit - self.reached if self.is_lower else self.reached - self.limit

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps it."""
        return self.excess <= _ROUNDING * max(1.0, abs(self.limit))

    def __str__(self) -> str:
        sign = "at least" if self.is_lower else "at most"
        return (
            f"{self.name} of {self.joint}: {self.reached:.4g} {self.unit}, {sign} {self.limit:.4g}"
        )


class ArmLimits:
    """The limits of an arm.

    Args:
        regressor: Of the arm; gives torques, where the robot file has CAD values.

    Attributes:
        capsules: Of the arm.
        position_min_rad: Shape (n_joints,), margins taken off, as in the following.
        position_max_rad: Highest position.
        velocity_max_rad_s: Highest speed.
        acceleration_max_rad_s2: Highest acceleration.
        home_rad: Where the arm comes from, shape (n_joints,).
    """

    def __init__(self, regressor: Regressor) -> None:
        robot = regressor.robot
        self._robot, self._regressor = robot, regressor
        self._names = [joint.name for joint in robot.joints]
        self._theta = cad_vector(robot, regressor.parameters)
        self.capsules = Capsules(robot, clearance_m=CLEARANCE_M)
        limits = [joint.limits for joint in robot.joints]
        low = np.array([limit.position_min_rad for limit in limits])
        high = np.array([limit.position_max_rad for limit in limits])
        margin = np.minimum(POSITION_MARGIN_RAD, 0.05 * (high - low))
        self.position_min_rad, self.position_max_rad = low + margin, high - margin
        speeds = np.array([limit.velocity_max_rad_s for limit in limits])
        self.velocity_max_rad_s = VELOCITY_SHARE * speeds
        self.acceleration_max_rad_s2 = np.array([_acceleration_max(j) for j in robot.joints])
        self.home_rad = np.array([joint.home_posture_rad for joint in robot.joints])
        nearest = np.concatenate(self.nearest(self.home_rad[np.newaxis]))
        self._is_home_clear = bool(nearest.min(initial=np.inf) >= CLEARANCE_M)
        # τ = Cᵀ·(torques of the motors, after their gears), here as rows.
        self._to_motors = np.linalg.inv(coupling_matrix(robot))
        self._torque_max = LOAD_SHARE * np.array([limit.torque_max_nm for limit in limits])
        self._nm_per_a = np.array([_nm_per_a(robot, joint) for joint in robot.joints])
        currents = np.array([limit.current_max_a for limit in limits])
        self._current_max = LOAD_SHARE * np.where(np.isnan(self._nm_per_a), np.inf, currents)

    def loads(self, phi: FloatArray) -> FloatArray:
        """Return torques and currents as a part of what is allowed; zeros without CAD.

        Args:
            phi: Φ, shape (n_samples, n_joints, n_parameters).

        Returns:
            Absolute values over limits, shape (n_samples, 2·n_joints).
        """
        torque, current = self._forces(phi)
        return np.hstack([torque / self._torque_max, current / self._current_max])

    def _forces(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Torques and currents, absolute; zero where they are not known."""
        if self._theta is None:
            nothing = np.zeros(phi.shape[:2])
            return nothing, nothing
        torque = phi @ self._theta
        current = np.nan_to_num(torque @ self._to_motors / self._nm_per_a)
        return np.abs(torque), np.abs(current)

    def check(self, motion: SampledMotion) -> tuple[Limit, ...]:
        """Return what a motion reaches of every limit.

        One entry per joint and limit, and the nearest links of each clearance.
        """
        _, q, dq, ddq = motion
        torque = current = np.zeros(q.shape[1])
        has_torques = self._theta is not None
        for part in _chunks(len(q)) if has_torques else ():
            parts = self._forces(self._regressor(q[part], dq[part], ddq[part]))
            torque = np.maximum(torque, parts[0].max(axis=0))
            current = np.maximum(current, parts[1].max(axis=0))
        found: list[Limit] = []
        low, high = self.position_min_rad, self.position_max_rad
        found += self._each("position_min", low, q.min(axis=0), "rad", is_lower=True)
        found += self._each("position_max", high, q.max(axis=0), "rad")
        speed, acceleration = np.abs(dq).max(axis=0), np.abs(ddq).max(axis=0)
        found += self._each("velocity", self.velocity_max_rad_s, speed, "rad/s")
        found += self._each("acceleration", self.acceleration_max_rad_s2, acceleration, "rad/s²")
        if has_torques:
            found += self._each("torque", self._torque_max, torque, "N·m")
            found += self._each("current", self._current_max, current, "A")
        return (*found, *self._check_clearances(q))

    def _each(
        self,
        name: str,
        limits: FloatArray,
        reached: FloatArray,
        unit: str,
        *,
        is_lower: bool = False,
    ) -> Iterator[Limit]:
        for joint, limit, value in zip(self._names, limits, reached, strict=True):
            if np.isfinite(limit):
                yield Limit(name, joint, float(limit), float(value), unit, is_lower)

    def _check_clearances(self, q: FloatArray) -> Iterator[Limit]:
        way = self.approach(q[0], _APPROACH_SAMPLES)
        parts = [self.nearest(q[part]) for part in _chunks(len(q))]
        parts.append(self.nearest(way))
        between = np.min([part[0] for part in parts], axis=0)
        heights = np.min([part[1] for part in parts], axis=0)
        if len(between):
            pair = self.capsules.pairs[int(between.argmin())]
            joints = f"{self._names[pair.first]}, {self._names[pair.second]}"
            nearest = float(between.min())
            yield Limit("link_clearance", joints, CLEARANCE_M, nearest, "m", is_lower=True)
        if np.isfinite(heights).any():
            joint, nearest = self._names[int(heights.argmin())], float(heights.min())
            yield Limit("ground_clearance", joint, CLEARANCE_M, nearest, "m", is_lower=True)

    def nearest(self, q_rad: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least clearances of some postures: between links, and to the ground."""
        between, heights = self.capsules.clearances(q_rad)
        return between.min(axis=0), heights.min(axis=0)

    def approach(self, start_rad: FloatArray, samples: int) -> FloatArray:
        """Return postures on the way from home to a trajectory's first sample, (…, n_joints).

        Shape (…, n_samples, n_joints), the first sample itself where the home posture is too near
        to something already.
        """
        part = np.linspace(0.0, 1.0, samples)[:, np.newaxis]
        start = start_rad[..., np.newaxis, :]
        home = self.home_rad if self._is_home_clear else start
        return home + part * (start - home)


def _acceleration_max(joint: Joint) -> float:
    limits = joint.limits
    stated = limits.acceleration_max_rad_s2 or limits.velocity_max_rad_s / SPEED_UP_S
    return min(stated, limits.velocity_max_rad_s / _HARDEST_SPEED_UP_S)


def _nm_per_a(robot: Robot, joint: Joint) -> float:
    """Torque at the joint per current of its motor; NaN where it is not known."""
    nm_per_a = robot.nm_per_a(joint)
    return math.nan if nm_per_a is None else abs(nm_per_a)


def _chunks(count: int) -> Iterator[slice]:
    for first in range(0, count, _CHUNK):
        yield slice(first, first + _CHUNK)
