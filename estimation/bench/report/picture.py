"""The samples and curves that figure and page of the friction bench draw, beside the numbers.

Plain numbers: nothing here draws, fits, or needs matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from daq.robot.friction import FrictionShape
from estimation.bench.result import BenchResult, Plateau
from estimation.types import FloatArray


def _none() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BenchPicture:
    """Traces and curves of one run; NaN wherever nothing is known.

    Attributes:
        t_s: Times of the traces, since the beginning of the recording, (n,); a few thousand.
        joint_velocity_rad_s: Measured, (n,).
        reference_velocity_rad_s: Commanded, at the joint, (n,).
        iq_a: Measured current, (n,).
        band_motor_velocity_rad_s: Speeds of all curves, ascending from −max to +max with NaN curves
            at 0, (m,); dense enough to read the fit at any plateau's speed by a straight line.
        fit_nm: The selected model's motor torque, (m,).
        band_low_nm: Lower end of its 95 % band, (m,).
        band_high_nm: Upper end, (m,).
        angle_rad: The motor's angle within a turn, 0 to 2π, (k,).
        forward_residual_nm: What the fit leaves of the motor torque at that angle, on average over
            the slow forward plateaus, (k,).
        backward_residual_nm: The same backward, (k,).
        model_curves: The other models' motor torque by name, (m,) each.
        load_current_a: Currents of a load arm's points, (p,); None without a load arm.
        load_torque_motor_nm: The torque that the arm felt, seen at the motor, (p,).
        load_fit_nm: The measured curve at `load_current_a`, (p,).
        nominal_torque_constant_nm_per_a: K_i by equation 4.3 from K_v, for a load arm.
    """

    t_s: FloatArray = field(default_factory=_none)
    joint_velocity_rad_s: FloatArray = field(default_factory=_none)
    reference_velocity_rad_s: FloatArray = field(default_factory=_none)
    iq_a: FloatArray = field(default_factory=_none)
    band_motor_velocity_rad_s: FloatArray = field(default_factory=_none)
    fit_nm: FloatArray = field(default_factory=_none)
    band_low_nm: FloatArray = field(default_factory=_none)
    band_high_nm: FloatArray = field(default_factory=_none)
    angle_rad: FloatArray = field(default_factory=_none)
    forward_residual_nm: FloatArray = field(default_factory=_none)
    backward_residual_nm: FloatArray = field(default_factory=_none)
    model_curves: Mapping[str, FloatArray] = field(default_factory=dict)
    load_current_a: FloatArray | None = None
    load_torque_motor_nm: FloatArray | None = None
    load_fit_nm: FloatArray | None = None
    nominal_torque_constant_nm_per_a: float | None = None


class PlateauColumns(NamedTuple):
    """All plateaus of a result as columns, in its order, (n,) each; NaN where nothing is known.

    Attributes:
        number: Their numbers.
        motor_velocity_rad_s: Measured, else what was commanded.
        torque_nm: At the motor.
        sigma_nm: Its standard deviation.
        residual_nm: What the fit leaves of it.
        t_s: Middle of the window, else when the speed was commanded.
        temperature_degc: Of the winding.
        is_used: Whether the fit uses it.
    """

    number: np.ndarray[Any, np.dtype[np.int64]]
    motor_velocity_rad_s: FloatArray
    torque_nm: FloatArray
    sigma_nm: FloatArray
    residual_nm: FloatArray
    t_s: FloatArray
    temperature_degc: FloatArray
    is_used: np.ndarray[Any, np.dtype[np.bool_]]


def plateau_columns(result: BenchResult, picture: BenchPicture) -> PlateauColumns:
    """Return the plateaus of a result with their residuals."""
    plateaus = result.plateaus
    speeds = _column(
        p.joint_velocity_rad_s * result.gear_reduction
        if p.motor_velocity_rad_s is None
        else p.motor_velocity_rad_s
        for p in plateaus
    )
    torque = _column(p.motor_torque_nm for p in plateaus)
    return PlateauColumns(
        number=np.array([p.number for p in plateaus], dtype=np.int64),
        motor_velocity_rad_s=speeds,
        torque_nm=torque,
        sigma_nm=_column(p.iq_sigma_a for p in plateaus) * result.torque_constant_nm_per_a.value,
        residual_nm=torque - fit_at(picture, speeds),
        t_s=_column(_middle_s(p) for p in plateaus),
        temperature_degc=_column(p.winding_temperature_degc for p in plateaus),
        is_used=np.array([p.is_used for p in plateaus], dtype=np.bool_),
    )


def _middle_s(plateau: Plateau) -> float:
    if plateau.window_s is None:
        return plateau.start_s
    return (plateau.window_s[0] + plateau.window_s[1]) / 2.0


def _column(values: Any) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def fit_at(picture: BenchPicture, motor_velocity_rad_s: FloatArray) -> FloatArray:
    """Return the selected model's motor torque at any speed; NaN in a direction without a fit.

    Never interpolated across the jump at 0.
    """
    torque = np.full(np.shape(motor_velocity_rad_s), math.nan)
    grid = picture.band_motor_velocity_rad_s
    for sign in (-1.0, 1.0):
        known = np.isfinite(picture.fit_nm) & (grid * sign > 0.0)
        wanted = motor_velocity_rad_s * sign > 0.0
        if known.any():
            torque[wanted] = np.interp(
                motor_velocity_rad_s[wanted], grid[known], picture.fit_nm[known]
            )
    return torque


def true_curve(result: BenchResult, motor_velocity_rad_s: FloatArray) -> FloatArray | None:
    """Equation 4.12 with the mock's true parameters: b_eq·ω + κ·f·sgn(ω), NaN at rest.

    None where the truth is unknown.
    """
    if result.b_eq_nms is None or result.f_motor_nm is None:
        return None
    viscous, coulomb = result.b_eq_nms.truth, result.f_motor_nm.truth
    if viscous is None or coulomb is None:
        return None
    true = FrictionShape(1.0).torque_nm(
        {"viscous": viscous, "coulomb": coulomb}, motor_velocity_rad_s
    )
    return np.where(motor_velocity_rad_s == 0.0, math.nan, true)
