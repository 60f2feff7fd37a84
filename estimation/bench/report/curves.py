"""The curves of the figure: fits with their bands, residuals by angle, traces of the whole run."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from estimation.bench.models import ModelFit, interval_of, predict
from estimation.bench.record import JointRecord
from estimation.bench.report.picture import BenchPicture
from estimation.bench.result import Plateau
from estimation.types import FloatArray

_TRACE_POINTS = 3000
_CURVE_POINTS = 200
_ANGLE_BINS = 360
_SLOW_SHARE = 0.15
"""Of the highest speed: plateaus below it show cogging."""


def make_picture(
    record: JointRecord, plateaus: list[Plateau], fits: list[ModelFit], chosen: ModelFit
) -> BenchPicture:
    """Make everything that the figure shows beside the result."""
    fastest = max(abs(p.motor_velocity_rad_s or 0.0) for p in plateaus if p.is_used)
    # Closer together where the models differ.
    half = fastest * np.linspace(0.0, 1.0, _CURVE_POINTS + 1)[1:] ** 2
    speed = np.concatenate([-half[::-1], [0.0], half])
    offset_nm = chosen.parameters.get("offset_motor_nm", 0.0)
    fit_nm = predict(chosen.name, chosen.parameters, record.drive, speed) + offset_nm
    draws = np.array(
        [
            predict(
                chosen.name, dict(zip(chosen.replicates, values, strict=True)), record.drive, speed
            )
            for values in zip(*chosen.replicates.values(), strict=True)
        ][:400]
    )
    bands = np.array(
        [
            interval_of(value, column, chosen.degrees)
            for value, column in zip(fit_nm, draws.T, strict=True)
        ]
    )
    middle = speed == 0.0
    fit_nm[middle] = math.nan
    bands[middle] = math.nan
    forward, backward = (_by_angle(record, plateaus, chosen, sign) for sign in (1.0, -1.0))
    return with_traces(record)(
        band_motor_velocity_rad_s=speed,
        fit_nm=fit_nm,
        band_low_nm=bands[:, 0],
        band_high_nm=bands[:, 1],
        angle_rad=(np.arange(_ANGLE_BINS) + 0.5) * math.tau / _ANGLE_BINS,
        forward_residual_nm=forward,
        backward_residual_nm=backward,
        model_curves={
            fit.name: np.where(
                middle, math.nan, predict(fit.name, fit.parameters, record.drive, speed)
            )
            for fit in fits
            if fit is not chosen
        },
    )


def with_traces(record: JointRecord) -> partial[BenchPicture]:
    """Return a picture of speed and current of the whole run, thinned out, that lacks the rest."""
    step = max(1, -(-len(record.t_s) // _TRACE_POINTS))
    return partial(
        BenchPicture,
        t_s=record.t_s[::step],
        joint_velocity_rad_s=record.velocity_rad_s[::step] / record.drive.reduction,
        reference_velocity_rad_s=record.reference_rad_s[::step] / record.drive.reduction,
        iq_a=record.iq_a[::step],
    )


def _by_angle(
    record: JointRecord, plateaus: list[Plateau], chosen: ModelFit, sign: float
) -> FloatArray:
    """Residual torque against the motor's angle, over the slow plateaus of one direction."""
    slow = _SLOW_SHARE * max(abs(plateau.joint_velocity_rad_s) for plateau in plateaus)
    sums, counts = np.zeros((2, _ANGLE_BINS))
    for plateau in plateaus:
        speed = plateau.joint_velocity_rad_s
        if not plateau.is_used or plateau.window_s is None or not 0.0 < sign * speed <= slow:
            continue
        first, last = np.searchsorted(record.t_s, plateau.window_s)
        rows = slice(int(first), int(last))
        torque = record.drive.k_i_nm_per_a * record.iq_a[rows]
        motor_rad_s = np.array([plateau.motor_velocity_rad_s or 0.0])
        expected = predict(chosen.name, chosen.parameters, record.drive, motor_rad_s)[0]
        angle = record.angle_rad[rows]
        known = np.isfinite(torque) & np.isfinite(angle)
        places = (angle[known] % math.tau * _ANGLE_BINS / math.tau).astype(int) % _ANGLE_BINS
        np.add.at(sums, places, torque[known] - expected)
        np.add.at(counts, places, 1.0)
    with np.errstate(invalid="ignore"):
        residual: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1.0), math.nan)
    return residual
