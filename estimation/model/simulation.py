"""Judging a model by simulation: under recorded torques, and inside the boards' control loop.

Under recorded torques nothing holds an arm that is heavier than it should be: errors grow without
bound, so that short windows are simulated, each from the measured state. In the loop the boards'
own law is repeated with the gains that were sent; the motion then stays near, and the torques show
what the model gets wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from daq.robot import Robot
from estimation.errors import DatasetError, EstimationError
from estimation.model.forward_dynamics import ForwardDynamics
from estimation.model.position_law import Boards, PositionLaw, law_of
from estimation.recordings.segment import Segment
from estimation.types import FloatArray

STEP_S = 0.5e-3
"""Of the simulation, at most; two per cycle at 1 kHz."""
WINDOW_S = 0.5
_LOST_RAD = 1e3


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated motion, at the sampling times; arrays of shape (n, joints).

    Attributes:
        q_rad: Joint angles.
        dq_rad_s: Velocities.
        ddq_rad_s2: Accelerations, in the step that begins there.
        tau_nm: Torques of the drives, likewise.
    """

    q_rad: FloatArray
    dq_rad_s: FloatArray
    ddq_rad_s2: FloatArray
    tau_nm: FloatArray


@dataclass(frozen=True, slots=True)
class MotionErrors:
    """How far a simulation is off.

    Attributes:
        rms_rad: Of the angles, per joint: at the ends of windows, or throughout the loop.
        torque_percent: 100·‖τ − τ_sim‖/‖τ‖ in the loop, all joints together; None for windows.
    """

    rms_rad: tuple[float, ...]
    torque_percent: float | None


def simulate_open_loop(
    arm: ForwardDynamics,
    tau_nm: ArrayLike,
    q0_rad: ArrayLike,
    dq0_rad_s: ArrayLike,
    period_s: float,
) -> Simulation:
    """Let an arm move under torques of its drives, and return the motion at the sampling times.

    Torques, shape (n, joints), are straight lines between these. The motion ends in NaN where an
    arm flies off.
    """
    torques = np.asarray(tau_nm, dtype=np.float64)
    steps, step_s = _steps(period_s)
    trace = _Trace(len(torques), arm.joint_count)
    q, dq = (np.array(part, dtype=np.float64) for part in (q0_rad, dq0_rad_s))
    ddq = arm.acceleration(q, dq, torques[0])
    for row, tau in enumerate(torques):
        trace.put(row, q, dq, ddq, tau)
        rise = (torques[row + 1] - tau) / steps if row + 1 < len(torques) else 0.0 * tau
        for number in range(steps):
            q, dq, ddq = arm.step(q, dq, ddq, tau + (number + 0.5) * rise, step_s)
        if not abs(q).max() < _LOST_RAD:
            break
    return trace.simulation()


def simulate_closed_loop(
    arm: ForwardDynamics,
    law: PositionLaw,
    q0_rad: ArrayLike,
    dq0_rad_s: ArrayLike,
    period_s: float,
    *,
    tau0_nm: ArrayLike | None = None,
) -> Simulation:
    """Let an arm follow references under the boards' law, cycle by cycle.

    Args:
        arm: The arm.
        law: What the boards are sent in each cycle.
        q0_rad: Joint angles at the beginning, shape (joints,).
        dq0_rad_s: Their velocities.
        period_s: Length of a cycle.
        tau0_nm: Torques at the beginning, which set what integrators hold; None for empty ones.

    Raises:
        EstimationError: The arm flies off: gains and model do not go together.
    """
    steps, step_s = _steps(period_s)
    trace = _Trace(law.sample_count, arm.joint_count)
    q, dq = (np.array(part, dtype=np.float64) for part in (q0_rad, dq0_rad_s))
    board = Boards(law, step_s, dq)
    if tau0_nm is not None:
        board.preload(q, np.asarray(tau0_nm, dtype=np.float64))
    tau = board.torque(0, 0.0, q, dq)
    ddq = arm.acceleration(q, dq, tau)
    for row in range(law.sample_count):
        for number in range(steps):
            tau = board.torque(row, number * step_s, q, dq)
            new = arm.step(q, dq, ddq, tau, step_s)
            if not number:
                trace.put(row, q, dq, new[2], tau)
            q, dq, ddq = new
        if not abs(q).max() < _LOST_RAD:
            raise EstimationError(
                f"the simulated arm flies off after {row * period_s:.2f} s: with these parameters "
                "the recorded gains do not hold it",
                code="flies-off",
            )
    return trace.simulation()


def open_loop_errors(
    arm: ForwardDynamics, segment: Segment, *, window_s: float = WINDOW_S
) -> MotionErrors:
    """Return how far an arm is off after short times under the recorded torques.

    Each window begins at the measured state.

    Raises:
        DatasetError: The segment is shorter than a window or has no velocities.
    """
    rows = round(window_s / segment.period_s)
    if segment.dq_rad_s is None or len(segment) <= rows:
        raise DatasetError(
            f"{segment.source}: a window of {window_s:g} s needs more than {rows} samples with "
            f"measured velocity; there are {len(segment)}",
            code="no-velocity-window",
        )
    ends = []
    for first in range(0, len(segment) - rows, rows):
        piece = slice(first, first + rows + 1)
        speed = segment.dq_rad_s[first]
        motion = simulate_open_loop(
            arm, segment.tau_nm[piece], segment.q_rad[first], speed, segment.period_s
        )
        ends.append(motion.q_rad[-1] - segment.q_rad[first + rows])
    errors = np.array(ends)
    # An arm that flew off within a window is as wrong as can be, not missing.
    rms = np.sqrt(np.mean(np.where(np.isfinite(errors), errors, np.inf) ** 2, axis=0))
    return MotionErrors(tuple(rms.tolist()), None)


def closed_loop_errors(arm: ForwardDynamics, robot: Robot, segment: Segment) -> MotionErrors:
    """Return how far an arm is off in the recorded loop.

    Raises:
        DatasetError: The segment has no references or gains.
        EstimationError: The arm flies off.
    """
    motion = simulate_segment(arm, robot, segment)
    rms = np.sqrt(np.mean((motion.q_rad - segment.q_rad) ** 2, axis=0))
    size = float(np.linalg.norm(segment.tau_nm))
    percent = 100.0 * float(np.linalg.norm(motion.tau_nm - segment.tau_nm)) / (size or 1.0)
    return MotionErrors(tuple(rms.tolist()), percent)


def simulate_segment(arm: ForwardDynamics, robot: Robot, segment: Segment) -> Simulation:
    """Return a segment of a recording once more, by the model.

    Raises:
        DatasetError: It has no references or gains.
        EstimationError: The arm flies off.
    """
    speed = segment.reference_velocity_rad_s if segment.dq_rad_s is None else segment.dq_rad_s
    law = law_of(robot, segment)
    start = law.reference_rad_s[0] if speed is None else speed[0]
    return simulate_closed_loop(
        arm, law, segment.q_rad[0], start, segment.period_s, tau0_nm=segment.tau_nm[0]
    )


class _Trace:
    """Takes samples of a simulation."""

    def __init__(self, rows: int, joints: int) -> None:
        self._arrays = tuple(np.full((rows, joints), np.nan) for _ in range(4))

    def put(self, row: int, *values: FloatArray) -> None:
        for array, value in zip(self._arrays, values, strict=True):
            array[row] = value

    def simulation(self) -> Simulation:
        return Simulation(*self._arrays)


def _steps(period_s: float) -> tuple[int, float]:
    steps = max(1, int(np.ceil(period_s / STEP_S - 1e-9)))
    return steps, period_s / steps
