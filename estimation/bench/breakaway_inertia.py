"""Breakaway torque and inertia, which the sweep of constant speeds does not determine.

Breakaway: under a current that rises slowly from rest, the torque at which the motor first moves.
Cogging helps or hinders depending on where the rotor rests. Play in the gear lets the motor move
before the load does: then this is the motor's own breakaway.

Inertia (equation 4.11): during a current step and the coasting after it the speed changes at
constant rates a. K_i·iq − b·ω = J_eq·a + κ·f·sgn ω is linear in J_eq and in a friction of its own.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from estimation.bench.record import JointRecord, Span
from estimation.bench.result import EstimatedQuantity
from estimation.errors import DatasetError
from estimation.regression.bootstrap import student_interval
from estimation.regression.least_squares import bootstrap_blocks, fit_linear

MOVED_COUNTS = 1.5
_BEFORE_S, _ONSET_S = 0.2, 0.028
_BLUR = 0.15
"""Of cogging's amplitude: by how much breakaway read high on the mock, at most."""
_SLEW_S = 0.12
"""Currents slew to a new value over 0.1 s."""
_PHASE_MIN_ROWS = 40
_RAMPS_MIN, _PHASES_MIN = 5, 6
_SLOW_SHARE = 0.15


def find_breakaway(record: JointRecord, inertia_kg_m2: float) -> EstimatedQuantity | None:
    """Breakaway torque at the load; None when there are too few ramps.

    Just after the motor has left its place, K_i·iq − J_eq·a = κ·f_s·sgn − C₁·cos 6pθ − C₂·sin 6pθ:
    friction, less what cogging gives there. Least squares over all ramps tell the two apart.
    """
    found = [
        onset for span in record.ramps if (onset := _onset(record, span, inertia_kg_m2)) is not None
    ]
    if len(found) < _RAMPS_MIN:
        return None
    torque_nm, angle_rad = np.array(found).T
    phase = 6.0 * record.drive.pole_pairs * angle_rad
    columns = np.column_stack(
        [record.drive.load_to_motor * np.sign(torque_nm), np.cos(phase), np.sin(phase)]
    )
    try:
        fit = fit_linear(columns, torque_nm)
    except DatasetError:
        return None
    value, sigma = float(fit.parameters[0]), float(fit.sigma[0])
    # Where cogging changes along the first few counts, onset and angle belong together only about.
    blur_nm = _BLUR * float(np.hypot(*fit.parameters[1:])) / record.drive.load_to_motor
    half = float(stdtrit(len(found) - 3, 0.975)) * sigma + blur_nm
    truth = record.header.truth
    breakaway_nm = None if truth is None else truth.breakaway_nm
    return EstimatedQuantity(value=value, low=value - half, high=value + half, truth=breakaway_nm)


def _onset(record: JointRecord, span: Span, inertia_kg_m2: float) -> tuple[float, float] | None:
    """Torque that friction and cogging take as the motor sets off, and where."""
    rows = np.arange(span.begin, min(span.end + 20, len(record.t_s)))
    rows = rows[np.isfinite(record.angle_rad[rows])]
    if len(rows) < 10:
        return None
    angle_rad, t_s = record.angle_rad[rows], record.t_s[rows]
    rest_rad = float(np.median(angle_rad[:10]))
    way_rad = np.abs(angle_rad - rest_rad)
    moved = way_rad > MOVED_COUNTS * record.drive.count_rad
    if not moved.any():
        return None
    # Back to where it left its count for good.
    still = way_rad[: int(np.argmax(moved))] < 0.7 * record.drive.count_rad
    if not still.any():
        return None
    at_s = t_s[int(np.flatnonzero(still)[-1])]
    before = (t_s <= at_s) & (t_s >= at_s - _BEFORE_S)
    onset = (t_s >= at_s - 0.002) & (t_s <= at_s + _ONSET_S)
    if np.sum(before) < 20 or np.sum(onset) < 10:
        return None
    middle_s = float(np.mean(t_s[onset]))
    # A line through the noise of the current, a parabola through the counts.
    _, current_a = np.polyfit(t_s[before] - middle_s, record.iq_a[rows][before], 1)
    half_rate, _, place_rad = np.polyfit(t_s[onset] - middle_s, angle_rad[onset] - rest_rad, 2)
    torque_nm = record.drive.k_i_nm_per_a * current_a - inertia_kg_m2 * 2.0 * half_rate
    return float(torque_nm), rest_rad + float(place_rad)


def find_inertia(
    record: JointRecord, viscous_nms: float, generator: np.random.Generator
) -> EstimatedQuantity | None:
    """Find J_eq at the motor, with b_eq from the sweep; None when there are too few steps."""
    phases = [phase for span in record.steps for phase in _phases(record, span)]
    if len(phases) < _PHASES_MIN:
        return None
    rate, iq_a, velocity, number = np.array(phases).T
    columns = np.column_stack([rate, np.sign(velocity)])
    target = record.drive.k_i_nm_per_a * iq_a - viscous_nms * velocity
    try:
        fit = fit_linear(columns, target)
        draws = bootstrap_blocks(columns, target, number, replicates=500, generator=generator)
    except DatasetError:
        return None
    value = float(fit.parameters[0])
    low, high = student_interval(value, draws[:, 0], degrees=len(np.unique(number)) - 1)
    truth = record.header.truth
    inertia_kg_m2 = None if truth is None else truth.inertia_kg_m2
    return EstimatedQuantity(value=value, low=low, high=high, truth=inertia_kg_m2)


def _phases(record: JointRecord, span: Span) -> list[tuple[float, float, float, float]]:
    """Acceleration, mean current, mean speed and step number of driving and of coasting.

    Nothing where either is missing: only both together tell inertia from friction.
    """
    rows = np.arange(span.begin, span.end + 1)
    rows = rows[np.isfinite(record.velocity_rad_s[rows]) & np.isfinite(record.iq_a[rows])]
    if len(rows) < 2 * _PHASE_MIN_ROWS:
        return []
    speed = np.abs(record.velocity_rad_s[rows])
    peak = int(np.argmax(speed))
    fastest = float(speed[peak])
    t_s = record.t_s[rows]
    is_fast = speed > _SLOW_SHARE * fastest
    # The speed still rises while the current slews back to zero: that is neither of the two.
    is_driving = (t_s >= t_s[0] + _SLEW_S) & (t_s <= t_s[peak] - 0.1)
    is_coasting = t_s >= t_s[peak] + _SLEW_S
    phases = []
    for chosen in (is_driving & is_fast, is_coasting & is_fast):
        part = rows[chosen]
        if len(part) >= _PHASE_MIN_ROWS:
            velocity = record.velocity_rad_s[part]
            rate, _ = np.polyfit(record.t_s[part] - record.t_s[part[0]], velocity, 1)
            iq_a = float(np.mean(record.iq_a[part]))
            phases.append((float(rate), iq_a, float(np.mean(velocity)), float(span.begin)))
    return phases if len(phases) == 2 else []
