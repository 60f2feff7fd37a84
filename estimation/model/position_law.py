"""The boards' position law, repeated from what was sent to them.

```
iq = clamp(Kp·(θref − θ) + Kd·(ωref − ω) + Ki·∫(θref − θ)dt + FF)         at the motor (PROTOCOL.md)
τ = K_i·η·iq/k_g                                                          at the joint
```

ω is low-passed by the board. Not modelled: encoders' counts, the bus voltage, what a current
sensor adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daq.robot import Robot
from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.types import Flags, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLaw:
    """Commands of the boards; arrays of shape (n, joints) or (joints,), gains at the motor.

    Attributes:
        reference_rad: Joint angles.
        reference_rad_s: Their velocities.
        kp_a_per_rad: Gain of the position error.
        kd_a_s_per_rad: Gain of the velocity error.
        ki_a_per_rad_s: Gain of its integral.
        feedforward_a: FF, at the motor, in the joint's direction.
        reduction: Motor turns per joint turn, shape (joints,).
        joint_nm_per_a: Torque at the joint per current, shape (joints,).
        limit_a: Of the current.
        is_held: Whether the board holds the position reference between frames, shape (joints,);
            others move it on at the reference velocity.
        velocity_lag_s: Of the velocities that the boards see, shape (joints,) or one for all.
    """

    reference_rad: FloatArray
    reference_rad_s: FloatArray
    kp_a_per_rad: FloatArray
    kd_a_s_per_rad: FloatArray
    ki_a_per_rad_s: FloatArray
    feedforward_a: FloatArray
    reduction: FloatArray
    joint_nm_per_a: FloatArray
    limit_a: FloatArray
    is_held: Flags
    velocity_lag_s: FloatArray | float

    @property
    def sample_count(self) -> int:
        """Cycles."""
        return len(self.reference_rad)


def law_of(robot: Robot, segment: Segment) -> PositionLaw:
    """Return the commands that the boards were sent during a segment of a recording.

    A row's values are of the moment before its command was sent, which acts a little later; where a
    recording does not state that, of the moment from which the command of the row before was obeyed
    (`estimation.recordings.board_effects`). The feed-forward is not among a segment's columns: it
    is taken as zero.

    Raises:
        DatasetError: The recording has no references or gains: nothing was sent.
    """
    names = (
        *("reference_position_rad", "reference_velocity_rad_s"),
        *("kp_a_per_rad", "kd_a_s_per_rad", "is_reference_held"),
    )
    parts = {name: getattr(segment, name) for name in names}
    missing = [name for name, values in parts.items() if values is None]
    if missing:
        raise DatasetError(
            f"{segment.source}: has no {', '.join(missing)}: the controller cannot be repeated; "
            "imported data have none",
            code="no-commands",
        )
    broken = [name for name, values in parts.items() if not np.isfinite(values).all()]
    if broken:
        raise DatasetError(
            f"{segment.source}: {', '.join(broken)} is missing in some rows of a segment: joints "
            "that were not commanded cannot be simulated",
            code="commands-incomplete",
        )
    shape = segment.q_rad.shape
    integral = segment.ki_a_per_rad_s
    driven = robot.driven()

    def obeyed(values: FloatArray) -> FloatArray:
        return values if segment.is_reply_fresh else _row_before(values)

    speed = obeyed(parts["reference_velocity_rad_s"])
    if segment.is_reply_fresh:
        # What acts later stays behind, whether it is held or moved on.
        reference = parts["reference_position_rad"] - segment.command_delay_s * speed
    else:
        reference = _row_before(parts["reference_position_rad"])
        reference[0] -= segment.period_s * speed[0]
    return PositionLaw(
        reference_rad=reference,
        reference_rad_s=speed,
        kp_a_per_rad=obeyed(parts["kp_a_per_rad"]),
        kd_a_s_per_rad=obeyed(parts["kd_a_s_per_rad"]),
        ki_a_per_rad_s=np.zeros(shape) if integral is None else obeyed(np.nan_to_num(integral)),
        feedforward_a=np.zeros(shape),
        reduction=np.array([joint.gear_reduction for joint in robot.joints]),
        joint_nm_per_a=np.array([abs(driven.nm_per_a(joint)) for joint in driven.joints]),
        limit_a=np.array([joint.limits.current_max_a for joint in robot.joints]),
        is_held=parts["is_reference_held"],
        velocity_lag_s=segment.velocity_lag_s,
    )


def _row_before(values: FloatArray) -> FloatArray:
    """Each row's is the one before's; the first stays."""
    return np.concatenate([values[:1], values[:-1]])


class Boards:
    """The law of all boards, computed at the joints.

    Args:
        law: What they are sent.
        step_s: How often the law is computed here; on the boards every 25 µs.
        dq_rad_s: Joint velocities at the beginning, shape (joints,).
    """

    def __init__(self, law: PositionLaw, step_s: float, dq_rad_s: FloatArray) -> None:
        shape = law.reference_rad.shape
        turns = law.reduction
        # Everything is linear in the motor's angle: gains by the reduction, once.
        self._kp, self._kd, self._ki = (
            np.broadcast_to(gain, shape) * turns
            for gain in (law.kp_a_per_rad, law.kd_a_s_per_rad, law.ki_a_per_rad_s)
        )
        self._feedforward = np.broadcast_to(law.feedforward_a, shape)
        self._law = law
        self._moving = np.where(law.is_held, 0.0, 1.0)
        self._step_s = step_s
        self._speed = dq_rad_s.copy()
        # A filter without lag follows at once.
        lag_s = np.maximum(law.velocity_lag_s, np.finfo(np.float64).tiny)
        self._share = -np.expm1(-step_s / lag_s)
        self._integral = np.zeros(shape[1])

    def preload(self, q_rad: FloatArray, tau_nm: FloatArray) -> None:
        """Fill the integrators so that the first torques are these."""
        law = self._law
        error = law.reference_rad[0] - q_rad
        rest = tau_nm / law.joint_nm_per_a - self._feedforward[0]
        rest -= self._kp[0] * error + self._kd[0] * (law.reference_rad_s[0] - self._speed)
        gain = self._ki[0]
        self._integral = np.where(gain > 0.0, rest / np.where(gain > 0.0, gain, 1.0), 0.0)

    def torque(
        self, row: int, since_s: float, q_rad: FloatArray, dq_rad_s: FloatArray
    ) -> FloatArray:
        """At the joints, for the coming step of the cycle, `since_s` after its beginning."""
        law, step_s = self._law, self._step_s
        speed = law.reference_rad_s[row]
        drift = self._moving * speed - dq_rad_s
        # On average over the step, in which the rotor and the reference turn on.
        error = law.reference_rad[row] + since_s * self._moving * speed - q_rad
        error = error + 0.5 * step_s * drift
        self._speed = self._speed + self._share * (dq_rad_s - self._speed)
        current = self._kp[row] * error + self._kd[row] * (speed - self._speed)
        current = current + self._ki[row] * self._integral + self._feedforward[row]
        limited = np.minimum(np.maximum(current, -law.limit_a), law.limit_a)
        # The integrator holds while the output is clamped.
        self._integral = self._integral + np.where(limited == current, step_s * error, 0.0)
        torque: FloatArray = law.joint_nm_per_a * limited
        return torque
