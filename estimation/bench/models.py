"""Friction models fitted to plateaus, and which of them the plateaus speak for.

Motor torque τ = K_i·iq over motor speed ω (equations 4.12 and 4.13), with κ = k_g/η:

    coulomb_viscous   τ = b·ω + κ·f·sgn ω
    asymmetric        b and f for each direction
    stribeck          τ = b·ω + κ·(f + (f_s − f)·exp(−(k_g·ω/v_s)²))·sgn ω

A mounted joint has two terms more: gravity, which is the same constant for every plateau because
all are averaged over the same angles, and J·a, because its speed gives way to gravity.

Each model is fitted by least squares; intervals come from drawing whole plateaus again and again
(block bootstrap), those of f_s and v_s from `profile_interval`. A richer model must predict
plateaus that its fit has not seen with a third less squared error than coulomb_viscous: with two
parameters more and 36 plateaus, chance alone does that once in a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy.special

from daq.robot.friction import FrictionShape
from estimation.bench.profile_interval import StribeckProfile, profile_stribeck
from estimation.bench.record import DriveConstants
from estimation.errors import DatasetError
from estimation.regression.least_squares import bootstrap_blocks, fit_linear
from estimation.types import FloatArray, Rows

GAIN_MIN = 0.35
REPLICATES = 1000
_STRIBECK_GRID = 60
_STRIBECK_SPEEDS_MIN = 5
_SAME_SPEED = 0.02


@dataclass(frozen=True, slots=True)
class Points:
    """What is fitted.

    Attributes:
        velocity_rad_s: At the motor, (n,).
        torque_nm: At the motor, (n,).
        drive: The constants of the drive.
        speeds_rad_s: At the motor, of equal parts of each plateau's way, (n, parts): friction that
            is not linear in speed is averaged over them. None where the speed is the same in all.
        acceleration_rad_s2: Of a mounted joint, on average over the turned angle, (n,); None for
            one that turns freely.
    """

    velocity_rad_s: FloatArray
    torque_nm: FloatArray
    drive: DriveConstants
    speeds_rad_s: FloatArray | None = None
    acceleration_rad_s2: FloatArray | None = None

    @property
    def is_mounted(self) -> bool:
        """Whether gravity and inertia count."""
        return self.acceleration_rad_s2 is not None


@dataclass(frozen=True, slots=True)
class ModelFit:
    """A model fitted to the plateaus.

    Attributes:
        name: Of the model.
        parameters: By name with unit.
        replicates: The same for every draw of the bootstrap, (draws,) each.
        residuals_nm: At the motor, (n,).
        held_out_nm: Errors of predicting each plateau from all others, (n,).
        degrees: Plateaus less parameters.
        profile: Of Stribeck friction: its intervals, which the bootstrap cannot give.
    """

    name: str
    parameters: Mapping[str, float]
    replicates: Mapping[str, FloatArray]
    residuals_nm: FloatArray
    held_out_nm: FloatArray
    degrees: int
    profile: StribeckProfile | None = None

    def interval(self, name: str) -> tuple[float, float]:
        """95 % interval of a parameter."""
        value = self.parameters[name]
        if self.profile is not None and name in self.profile.intervals:
            low, high = self.profile.intervals[name]
            return min(low, value), max(high, value)
        return interval_of(value, self.replicates[name], self.degrees)


def interval_of(value: float, replicates: FloatArray, degrees: int) -> tuple[float, float]:
    """95 % interval from a bootstrap's draws, with what few plateaus cost added."""
    parameters = 2
    wider = math.sqrt((degrees + parameters) / max(degrees, 1))
    # Not the standard deviation: of few plateaus some draws hold hardly more than one speed.
    low, high = np.quantile(replicates, [0.1587, 0.8413])
    half = float(scipy.special.stdtrit(max(degrees, 1), 0.975)) * 0.5 * float(high - low) * wider
    return value - half, value + half


def fit_models(points: Points, generator: np.random.Generator) -> list[ModelFit]:
    """Fit every model that the plateaus can tell apart, the simplest first.

    Raises:
        DatasetError: There are too few plateaus, or all turn the same way.
    """
    speeds = _count_speeds(points.velocity_rad_s)
    directions = np.unique(np.sign(points.velocity_rad_s))
    needed = 5
    if len(points.velocity_rad_s) < needed or speeds < 2 or len(directions) < 2:
        raise DatasetError(
            f"{len(points.velocity_rad_s)} usable plateaus at {speeds} speeds in "
            f"{len(directions)} directions, at least {needed} at 2 speeds in both directions are "
            "needed",
            code="few-plateaus",
        )
    fits = [_fit_linear_model("coulomb_viscous", points, generator)]
    ways = [points.velocity_rad_s[points.velocity_rad_s * sign > 0.0] for sign in (1.0, -1.0)]
    tells_ways_apart = all(len(way) >= 4 and _count_speeds(way) >= 2 for way in ways)
    if tells_ways_apart and not points.is_mounted:
        fits.append(_fit_asymmetric(points, generator))
    if speeds >= _STRIBECK_SPEEDS_MIN and len(points.velocity_rad_s) >= 10:
        fits.append(_fit_stribeck(points, generator))
    return fits


def _count_speeds(velocity_rad_s: FloatArray) -> int:
    """Speeds that differ by more than plateaus of the same speed do."""
    return int(np.max(_speeds(velocity_rad_s), initial=-1)) + 1


def _speeds(velocity_rad_s: FloatArray) -> Rows:
    """Return which speed each plateau has, in either direction: numbers from 0, the slowest."""
    speeds = np.abs(velocity_rad_s)
    order = np.argsort(speeds)
    is_next = np.diff(speeds[order], prepend=speeds[order][:1]) > _SAME_SPEED * speeds[order]
    numbers: Rows = np.empty(len(speeds), np.intp)
    numbers[order] = np.cumsum(is_next)
    return numbers


def select(fits: list[ModelFit]) -> ModelFit:
    """Return the model that held-out plateaus speak for."""
    simple, *richer = fits
    allowed = (1.0 - GAIN_MIN) * np.sum(simple.held_out_nm**2)
    better = [fit for fit in richer if np.sum(fit.held_out_nm**2) < allowed]
    return min(better, key=lambda fit: float(np.sum(fit.held_out_nm**2)), default=simple)


def predict(
    fit_name: str, parameters: Mapping[str, float], drive: DriveConstants, speed: FloatArray
) -> FloatArray:
    """Motor torque of a model at motor speeds, without the constant of a mounted joint."""
    values = [parameters[name] for name in _PARAMETERS[fit_name]]
    if fit_name == "stribeck":
        values[2] -= values[1]
    v_s = parameters.get("stribeck_velocity_rad_s", 1.0)
    torque: FloatArray = _columns(fit_name, speed, drive, v_s) @ values
    return torque


# --- the models -----------------------------------------------------------------------------------


_PARAMETERS = {
    "coulomb_viscous": ("b_eq_nms", "f_nm"),
    "asymmetric": ("b_eq_forward_nms", "b_eq_backward_nms", "f_forward_nm", "f_backward_nm"),
    "stribeck": ("b_eq_nms", "f_nm", "f_static_nm"),
}
_MOUNTED = ("offset_motor_nm", "inertia_kg_m2")


def _columns(name: str, speed: FloatArray, drive: DriveConstants, v_s: float = 1.0) -> FloatArray:
    """Return what each parameter takes at the motor per unit; of f_static, what exceeds f."""
    shape = FrictionShape(v_s)
    viscous, coulomb = (shape.column(term, speed) for term in ("viscous", "coulomb"))
    parts = [viscous, drive.load_to_motor * coulomb]
    if name == "asymmetric":
        parts = [np.where(speed * way > 0.0, part, 0.0) for part in parts for way in (1.0, -1.0)]
    elif name == "stribeck":
        parts.append(drive.load_to_motor * shape.column("stribeck", speed / drive.reduction))
    return np.column_stack(parts)


def _with_load(columns: FloatArray, points: Points) -> FloatArray:
    if points.acceleration_rad_s2 is None:
        return columns
    return np.column_stack([columns, np.ones(len(columns)), points.acceleration_rad_s2])


def _leverage(columns: FloatArray) -> FloatArray:
    """Diagonal of the hat matrix; a plateau that alone decides a parameter has 1."""
    q, _ = np.linalg.qr(columns)
    leverage: FloatArray = np.minimum(np.sum(q * q, axis=1), 1.0 - 1e-9)
    return leverage


def _fit_linear_model(name: str, points: Points, generator: np.random.Generator) -> ModelFit:
    columns = _with_load(_columns(name, points.velocity_rad_s, points.drive), points)
    fit = fit_linear(columns, points.torque_nm)
    plateaus = np.arange(len(columns))
    draws = bootstrap_blocks(
        columns, points.torque_nm, plateaus, replicates=REPLICATES, generator=generator
    )
    names = _PARAMETERS[name] + _MOUNTED * points.is_mounted
    return ModelFit(
        name,
        dict(zip(names, fit.parameters.tolist(), strict=True)),
        dict(zip(names, draws.T, strict=True)),
        fit.residuals,
        fit.residuals / (1.0 - _leverage(columns)),
        len(columns) - len(names),
    )


def _fit_asymmetric(points: Points, generator: np.random.Generator) -> ModelFit:
    fit = _fit_linear_model("asymmetric", points, generator)
    parameters, replicates = dict(fit.parameters), dict(fit.replicates)
    # Beside them the mean of both directions, which is what Table 4.3 has room for.
    for mean, unit in (("b_eq", "nms"), ("f", "nm")):
        pair = [f"{mean}_forward_{unit}", f"{mean}_backward_{unit}"]
        parameters[f"{mean}_{unit}"] = 0.5 * sum(parameters[name] for name in pair)
        replicates[f"{mean}_{unit}"] = 0.5 * (replicates[pair[0]] + replicates[pair[1]])
    return replace(fit, parameters=parameters, replicates=replicates)


def _fit_stribeck(points: Points, generator: np.random.Generator) -> ModelFit:
    """Linear but for v_s, which is looked for on a grid."""
    drive, n = points.drive, len(points.velocity_rad_s)
    joint_rad_s = np.abs(points.velocity_rad_s) / drive.reduction
    slow, fast = np.min(joint_rad_s), np.max(joint_rad_s)
    ends_rad_s = 0.5 * slow, 0.5 * fast
    grid = np.geomspace(*ends_rad_s, _STRIBECK_GRID)

    def design_at(v_s: float) -> FloatArray:
        columns = _columns("stribeck", points.velocity_rad_s, drive, v_s)
        if points.speeds_rad_s is not None:
            ways = [_columns("stribeck", part, drive, v_s)[:, 2] for part in points.speeds_rad_s.T]
            columns[:, 2] = np.mean(ways, axis=0)
        return _with_load(columns, points)

    designs = [design_at(v_s) for v_s in grid]
    p = designs[0].shape[1]
    residuals, held_out, left_out = np.empty((3, _STRIBECK_GRID, n))
    for row, design in enumerate(designs):
        scaled = design / np.maximum(np.linalg.norm(design, axis=0), 1e-300)
        solution, *_ = np.linalg.lstsq(scaled, points.torque_nm, rcond=None)
        residuals[row] = points.torque_nm - scaled @ solution
        held_out[row] = residuals[row] / (1.0 - _leverage(scaled))
        # What is left of the squared error without each plateau: decides v_s without it.
        left_out[row] = np.sum(residuals[row] ** 2) - residuals[row] * held_out[row]
    best = int(np.argmin(np.sum(residuals**2, axis=1)))
    counts = generator.multinomial(n, np.full(n, 1.0 / n), size=REPLICATES).astype(np.float64)
    scale = np.maximum(np.linalg.norm(designs[best], axis=0), 1e-300)
    values = np.linalg.lstsq(designs[best] / scale, points.torque_nm, rcond=None)[0] / scale
    draws = np.empty((REPLICATES, p))
    chosen = np.zeros(REPLICATES, np.intp)
    errors = np.full(REPLICATES, np.inf)
    for row, design in enumerate(designs):
        solutions, squared = _draw(design, points.torque_nm, counts)
        better = squared < errors
        draws[better], errors[better], chosen[better] = solutions[better], squared[better], row
    names = _PARAMETERS["stribeck"] + _MOUNTED * points.is_mounted
    values[2] += values[1]
    draws[:, 2] += draws[:, 1]
    parameters = dict(zip(names, values.tolist(), strict=True))
    replicates = dict(zip(names, draws.T, strict=True))
    parameters["stribeck_velocity_rad_s"] = float(grid[best])
    replicates["stribeck_velocity_rad_s"] = grid[chosen]
    return ModelFit(
        "stribeck",
        parameters,
        replicates,
        residuals[best],
        held_out[np.argmin(left_out, axis=0), np.arange(n)],
        max(n - p - 1, 1),
        profile_stribeck(
            design_at,
            points.torque_nm,
            points.velocity_rad_s,
            _speeds(points.velocity_rad_s),
            between_rad_s=ends_rad_s,
        ),
    )


def _draw(
    design: FloatArray, target: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least squares with whole rows repeated, for many draws: solutions and squared errors."""
    scale = np.maximum(np.linalg.norm(design, axis=0), 1e-300)
    scaled = design / scale
    grams = np.einsum("ri,ij,ik->rjk", counts, scaled, scaled, optimize=True)
    # A draw without a slow plateau does not determine its term; a trace of it keeps that small.
    grams += 1e-10 * np.eye(scaled.shape[1])
    right = np.einsum("ri,ij,i->rj", counts, scaled, target, optimize=True)
    solutions = np.linalg.solve(grams, right[..., None])[..., 0]
    squared = np.einsum("ri,ri->r", counts, (target - solutions @ scaled.T) ** 2)
    return solutions / scale, squared
