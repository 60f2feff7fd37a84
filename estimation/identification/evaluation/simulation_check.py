"""Checks whether an identified arm, simulated, moves like the real one did."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from estimation.errors import EstimationError
from estimation.identification.estimators.problem import Problem
from estimation.identification.result import SimulationCheck
from estimation.model.forward_dynamics import ForwardDynamics
from estimation.model.simulation import WINDOW_S, closed_loop_errors, open_loop_errors
from estimation.recordings.dataset import OpenDataset
from estimation.recordings.segment import Segment

_LONGEST_S = 20.0
"""What is simulated of a recording."""


def simulate_recording(
    problem: Problem, theta: tuple[float, ...], dataset: OpenDataset
) -> SimulationCheck:
    """Simulate the beginning of a recording, in its control loop and under its torques.

    What could not be simulated is None, with a note that says why.
    """
    regressor = problem.regressor
    notes: list[str] = []
    closed = opened = None
    for segment in islice(dataset.segments(), 1):
        part = _beginning(segment)
        try:
            arm = ForwardDynamics(regressor.robot, regressor.parameters, np.array(theta))
            opened = open_loop_errors(arm, part)
        except EstimationError as error:
            notes.append(f"open loop: {error}")
        undriven = [joint.name for joint in regressor.robot.joints if joint.drive is None]
        if undriven:
            notes.append(
                f"closed loop: the robot file states no drive of {', '.join(undriven)}, so the "
                "controller cannot be simulated"
            )
            continue
        try:
            arm = ForwardDynamics(regressor.robot, regressor.parameters, np.array(theta))
            closed = closed_loop_errors(arm, regressor.robot, part)
        except EstimationError as error:
            notes.append(f"closed loop: {error}")
    return SimulationCheck(
        closed_loop_position_rms_rad=closed.rms_rad if closed else None,
        closed_loop_torque_percent=closed.torque_percent if closed else None,
        open_loop_position_rms_rad=opened.rms_rad if opened else None,
        open_loop_window_s=WINDOW_S if opened else None,
        notes=tuple(notes),
    )


def _beginning(segment: Segment) -> Segment:
    rows = min(len(segment), round(_LONGEST_S / segment.period_s))
    if rows == len(segment):
        return segment
    names = (
        *("t_s", "is_in_gap", "q_rad", "dq_rad_s", "tau_nm", "iq_a", "reference_position_rad"),
        *("reference_velocity_rad_s", "kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s"),
    )
    values = {name: getattr(segment, name) for name in names}
    cut: dict[str, Any] = {
        name: None if value is None else value[:rows] for name, value in values.items()
    }
    return replace(segment, is_end=False, **cut)
