"""The torque constant, and how it falls at high current, from a weight on an arm.

The weight m at distance l asks for the torque κ·m·g·l·sin(q − q₀) at the motor. Lifted and lowered
slowly through the same angles, friction adds to the current one way and takes from it the other
way: the mean of both is the load's alone. τ = K_i·iq·(1 − d₁·iq² + d₂·iq⁴) is fitted to it, and
q₀, the angle at which the arm really hangs, for friction may hold it beside.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from estimation.bench.record import Array, JointRecord
from estimation.bench.result import Quantity
from estimation.errors import DatasetError
from estimation.least_squares import student_interval

_BINS = 60
_MOVING_SHARE = 0.3
_SAMPLES_MIN = 10
_BINS_MIN = 20


@dataclass(frozen=True, slots=True)
class LoadArmResult:
    """What the weight tells.

    Attributes:
        torque_constant: At low current.
        drop: Relative loss of it at `highest_a`.
        highest_a: The highest current that the arm asked for.
        current_a: Mean currents of the angles, (p,).
        torque_nm: The load's torque there, at the motor, (p,).
        fit_nm: The fitted curve there, (p,).
    """

    torque_constant: Quantity
    drop: Quantity
    highest_a: float
    current_a: Array
    torque_nm: Array
    fit_nm: Array


def find_torque_constant(record: JointRecord) -> LoadArmResult:
    """Analyse a test with a load arm.

    Raises:
        DatasetError: It was not finished, or the arm hardly loads the motor.
    """
    arm = record.header.load_arm
    if arm is None:
        raise DatasetError("the recording is not of a load arm")
    gravity_m_s2 = math.sqrt(sum(part * part for part in record.robot.gravity_m_s2))
    amplitude_nm = arm.mass_kg * gravity_m_s2 * arm.length_m * record.drive.load_to_motor
    # The first swing begins at rest in the middle; each of the others crosses the whole way.
    curves = [_curve(record, span.begin, span.end) for span in record.swings[1:]]
    pairs = [(one + other) / 2.0 for one, other in itertools.pairwise(curves)][::2]
    if len(pairs) < 2:
        raise DatasetError(
            f"{len(record.swings)} swings of the load arm were recorded, at least 5 are due"
        )
    angles = _bin_angles(record)
    fits = [_fit(pair, angles, amplitude_nm, record.drive.k_i_nm_per_a) for pair in pairs]
    highest_a = float(min(np.nanmax(np.abs(pair)) for pair in pairs))
    constants = np.array([fit[0] for fit in fits])
    drops = np.array([_drop(fit, highest_a) for fit in fits])
    shape = np.mean(np.array(fits), axis=0)
    known = np.isfinite(pairs).all(axis=0)
    current_a = np.mean(pairs, axis=0)[known]
    truth = record.header.truth
    true_constant = true_drop = None
    if truth is not None:
        true_constant = truth.torque_constant_nm_per_a
        true_drop = 1.0 - 1.0 / math.sqrt(1.0 + truth.saturation_per_a2 * highest_a**2)
    return LoadArmResult(
        torque_constant=_quantity(constants, true_constant),
        drop=_quantity(drops, true_drop),
        highest_a=highest_a,
        current_a=current_a,
        torque_nm=amplitude_nm * np.sin(angles[known] - shape[3]),
        fit_nm=_torque(shape, current_a),
    )


def _quantity(values: Array, truth: float | None) -> Quantity:
    value = float(np.mean(values))
    spread = values / math.sqrt(len(values))
    low, high = student_interval(value, spread, degrees=len(values) - 1)
    return Quantity(value=value, low=low, high=high, truth=truth)


def _bin_edges(record: JointRecord) -> Array:
    joint_rad = record.angle_rad / record.drive.reduction
    first, last = record.swings[0].begin, record.swings[-1].end
    low, high = np.nanmin(joint_rad[first:last]), np.nanmax(joint_rad[first:last])
    return np.linspace(low, high, _BINS + 1)


def _bin_angles(record: JointRecord) -> Array:
    edges = _bin_edges(record)
    start_rad = record.angle_rad[record.swings[0].begin] / record.drive.reduction
    middle: Array = 0.5 * (edges[1:] + edges[:-1]) - start_rad
    return middle


def _curve(record: JointRecord, begin: int, end: int) -> Array:
    """Mean current of each angle on one way, NaN where the arm hardly moved."""
    rows = slice(begin, end + 1)
    joint_rad = record.angle_rad[rows] / record.drive.reduction
    speed = np.abs(record.velocity_rad_s[rows])
    iq_a = record.iq_a[rows]
    moving = np.isfinite(iq_a) & (speed > _MOVING_SHARE * np.nanmax(speed))
    places = np.digitize(joint_rad[moving], _bin_edges(record)) - 1
    curve = np.full(_BINS, math.nan)
    for place in range(_BINS):
        chosen = iq_a[moving][places == place]
        if len(chosen) >= _SAMPLES_MIN:
            curve[place] = np.mean(chosen)
    return curve


def _fit(current_a: Array, angles: Array, amplitude_nm: float, k_i: float) -> Array:
    """K_i, d₁, d₂ and q₀."""
    known = np.isfinite(current_a)
    if np.sum(known) < _BINS_MIN:
        raise DatasetError(
            f"the load arm crossed only {int(np.sum(known))} of {_BINS} angles in both directions"
        )
    current, angle = current_a[known], angles[known]
    scale = max(float(np.max(np.abs(current))), 1e-6)

    def errors(shape: Array) -> Array:
        scaled = np.array([shape[0] * k_i, shape[1] / scale**2, shape[2] / scale**4, shape[3]])
        difference: Array = _torque(scaled, current) - amplitude_nm * np.sin(angle - shape[3])
        return difference / amplitude_nm

    found = scipy.optimize.least_squares(errors, [1.0, 0.0, 0.0, 0.0]).x
    return np.array([found[0] * k_i, found[1] / scale**2, found[2] / scale**4, found[3]])


def _torque(shape: Array, current_a: Array) -> Array:
    squared = current_a * current_a
    torque: Array = shape[0] * current_a * (1.0 - shape[1] * squared + shape[2] * squared**2)
    return torque


def _drop(shape: Array, current_a: float) -> float:
    return float(shape[1] * current_a**2 - shape[2] * current_a**4)
