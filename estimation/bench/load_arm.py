"""The torque constant, and how it falls at high current, from a weight on an arm.

The weight m at distance l asks for the torque κ·m·g·l·sin(q − q₀) at the motor. Lifted and lowered
slowly through the same angles, friction adds to the current one way and takes from it the other
way: the mean of both is the load's alone. τ = K_i·iq·(1 − d₁·iq² + d₂·iq⁴) is fitted to it, and
q₀, the angle at which the arm really hangs, for friction may hold it beside. To the load's torque
belongs J·a, because the arm speeds up and slows down at the same angles both ways; J is m·l² and
the robot file's rotor.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize

from estimation.bench.record import JointRecord, Span
from estimation.bench.result import EstimatedQuantity
from estimation.errors import DatasetError
from estimation.regression.bootstrap import student_interval
from estimation.types import FloatArray

_BINS = 60
_SWINGS_MIN = 5
_MOVING_SHARE = 0.3
_SAMPLES_MIN = 10
_BINS_MIN = 20
_LOAD_SHARE = 0.2
"""Of friction's current, below which a load shows nothing."""


@dataclass(frozen=True, slots=True)
class LoadArmResult:
    """Result of the test with a weight.

    Attributes:
        torque_constant: At low current.
        drop: Relative loss of it at `highest_a`.
        highest_a: The highest current that the arm asked for.
        current_a: Mean currents of the angles, (p,).
        torque_nm: The load's torque there, at the motor, (p,).
        fit_nm: The fitted curve there, (p,).
    """

    torque_constant: EstimatedQuantity
    drop: EstimatedQuantity
    highest_a: float
    current_a: FloatArray
    torque_nm: FloatArray
    fit_nm: FloatArray


def find_torque_constant(record: JointRecord) -> LoadArmResult:
    """Analyse a test with a load arm.

    Raises:
        DatasetError: It was not finished, or the arm hardly loads the motor.
    """
    arm = record.header.load_arm
    if arm is None:
        raise DatasetError("the recording is not of a load arm", code="not-a-load-arm")
    gravity_m_s2 = math.sqrt(sum(part * part for part in record.robot.gravity_m_s2))
    amplitude_nm = arm.mass_kg * gravity_m_s2 * arm.length_m * record.drive.load_to_motor
    if len(record.swings) < _SWINGS_MIN:
        raise DatasetError(
            f"{len(record.swings)} swings of the load arm were recorded, expected at least "
            f"{_SWINGS_MIN}",
            code="few-swings",
        )
    known_rad = _joint_angles(record)
    edges = np.linspace(np.min(known_rad), np.max(known_rad), _BINS + 1)
    angles = 0.5 * (edges[1:] + edges[:-1]) - known_rad[0]
    # The first swing begins at rest in the middle; each of the others crosses the whole way.
    curves = [_curve(record, span, edges) for span in record.swings[1:]]
    ways = list(itertools.pairwise(curves))[::2]
    pairs = [(one.current_a + other.current_a) / 2.0 for one, other in ways]
    rotor_kg_m2 = record.joint.drive.rotor_inertia_kg_m2 * record.drive.reduction
    inertia_kg_m2 = record.drive.load_to_motor * arm.mass_kg * arm.length_m**2 + rotor_kg_m2
    loads = [_Load(amplitude_nm, inertia_kg_m2 * _mean_acceleration(way, angles)) for way in ways]
    fits = [
        _fit(pair, angles, load, record.drive.k_i_nm_per_a)
        for pair, load in zip(pairs, loads, strict=True)
    ]
    highest_a = float(min(np.nanmax(np.abs(pair)) for pair in pairs))
    friction_a = float(
        np.nanmedian([abs(one.current_a - other.current_a) / 2.0 for one, other in ways])
    )
    if highest_a < _LOAD_SHARE * friction_a:
        raise DatasetError(
            f"the weight takes {highest_a:.3g} A at most where friction takes {friction_a:.3g} A: "
            "use a heavier one, or a longer arm",
            code="weight-too-light",
        )
    constants = np.array([fit[0] for fit in fits])
    drops = np.array([_drop(fit, highest_a) for fit in fits])
    shape = np.mean(np.array(fits), axis=0)
    inertial_nm = np.mean([load.inertial_nm for load in loads], axis=0)
    known = np.isfinite(pairs).all(axis=0) & np.isfinite(inertial_nm)
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
        torque_nm=amplitude_nm * np.sin(angles[known] - shape[3]) + inertial_nm[known],
        fit_nm=_torque(shape, current_a),
    )


class _Way(NamedTuple):
    """The arm on its way from one side to the other, by angle; NaN where it hardly moved."""

    current_a: FloatArray
    squared_speed: FloatArray
    """Of the joint, (rad/s)²."""


class _Load(NamedTuple):
    """What the motor carries: the weight's highest torque, and that of acceleration by angle."""

    amplitude_nm: float
    inertial_nm: FloatArray


def _mean_acceleration(ways: tuple[_Way, _Way], angles: FloatArray) -> FloatArray:
    """Of the joint by angle, on average of both ways: ½ d(ω²)/dq."""
    squared = (ways[0].squared_speed + ways[1].squared_speed) / 2.0
    rate: FloatArray = 0.5 * np.gradient(squared, angles)
    return rate


def _quantity(values: FloatArray, truth: float | None) -> EstimatedQuantity:
    value = float(np.mean(values))
    spread = values / math.sqrt(len(values))
    low, high = student_interval(value, spread, degrees=len(values) - 1)
    return EstimatedQuantity(value=value, low=low, high=high, truth=truth)


def _joint_angles(record: JointRecord) -> FloatArray:
    """All that are known, from the first swing on."""
    angle_rad = record.angle_rad[record.swings[0].begin : record.swings[-1].end]
    known_rad: FloatArray = angle_rad[np.isfinite(angle_rad)]
    if not len(known_rad):
        raise DatasetError(
            "no angle of the load arm is valid; check the board's cable", code="no-valid-angle"
        )
    return known_rad / record.drive.reduction


def _curve(record: JointRecord, span: Span, edges: FloatArray) -> _Way:
    """Means over the samples of each angle on one way."""
    rows = slice(span.begin, span.end + 1)
    joint_rad = record.angle_rad[rows] / record.drive.reduction
    speed = np.abs(record.velocity_rad_s[rows])
    iq_a = record.iq_a[rows]
    fastest = np.max(speed, where=np.isfinite(speed), initial=0.0)
    moving = np.isfinite(iq_a) & (speed > _MOVING_SHARE * fastest)
    places = np.digitize(joint_rad[moving], edges) - 1
    way = _Way(*np.full((2, _BINS), math.nan))
    for place in range(_BINS):
        chosen = np.flatnonzero(moving)[places == place]
        if len(chosen) >= _SAMPLES_MIN:
            way.current_a[place] = np.mean(iq_a[chosen])
            way.squared_speed[place] = np.mean((speed[chosen] / record.drive.reduction) ** 2)
    return way


def _fit(current_a: FloatArray, angles: FloatArray, load: _Load, k_i: float) -> FloatArray:
    """K_i, d₁, d₂ and q₀."""
    known = np.isfinite(current_a) & np.isfinite(load.inertial_nm)
    if np.sum(known) < _BINS_MIN:
        raise DatasetError(
            f"the load arm crossed only {int(np.sum(known))} of {_BINS} angles in both directions"
            f", expected at least {_BINS_MIN}; repeat the test",
            code="few-angles",
        )
    current, angle, inertial_nm = current_a[known], angles[known], load.inertial_nm[known]
    scale = max(float(np.max(np.abs(current))), 1e-6)

    def errors(shape: FloatArray) -> FloatArray:
        scaled = np.array([shape[0] * k_i, shape[1] / scale**2, shape[2] / scale**4, shape[3]])
        weight_nm = load.amplitude_nm * np.sin(angle - shape[3])
        difference: FloatArray = _torque(scaled, current) - weight_nm - inertial_nm
        return difference / load.amplitude_nm

    found = scipy.optimize.least_squares(errors, [1.0, 0.0, 0.0, 0.0]).x
    return np.array([found[0] * k_i, found[1] / scale**2, found[2] / scale**4, found[3]])


def _torque(shape: FloatArray, current_a: FloatArray) -> FloatArray:
    squared = current_a * current_a
    torque: FloatArray = shape[0] * current_a * (1.0 - shape[1] * squared + shape[2] * squared**2)
    return torque


def _drop(shape: FloatArray, current_a: float) -> float:
    return float(shape[1] * current_a**2 - shape[2] * current_a**4)
