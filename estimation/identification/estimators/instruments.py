"""Instrumental variables (IDIM-IV): least squares that noise in the motion does not bias.

Noise in positions and velocities is in Φ as well as in τ when a controller feeds it back, and
pulls least squares towards zero. Instruments Z are the same regressor along a motion without that
noise, simulated in the recorded control loop with the model itself:

β = (ZᵀWΦ₁)⁻¹·ZᵀWτ,     Z = Φ₁(simulated with β before),     both prepared alike.

Where gains are not known, Z follows the reference: unbiased too, but less like the motion and so
less certain.

References: [Janot 2014].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from estimation.errors import DatasetError, EstimationError
from estimation.identification.data.reduction import PIECE_SAMPLES, design
from estimation.identification.estimators.constrained import estimate_cls2
from estimation.identification.estimators.linear import (
    base_symbols,
    estimate_wls,
    joint_weights,
    solve,
)
from estimation.identification.estimators.problem import Estimate, Instruments, Problem
from estimation.model.forward_dynamics import ForwardDynamics
from estimation.model.regressor import Regressor
from estimation.model.simulation import simulate_segment
from estimation.recordings.segment import Segment
from estimation.signals.preparation import PreparationSettings, Prepared, prepare
from estimation.types import FloatArray

ROUNDS = 4
_SETTLED = 1e-3
"""Relative change of the predicted torques from round to round."""
_UNLIKE = 1e6
"""Condition number of ZᵀΦ₁ (columns of length 1) from which instruments are useless."""


def make_instruments(
    regressor: Regressor,
    settings: PreparationSettings,
    segments: Iterable[Segment],
) -> Instruments | None:
    """Make the best instruments that the recordings allow, from samples that are not prepared yet.

    Simulated motion where references and gains were recorded throughout, else the reference where
    that was, else None. None as well for an arm whose file states no drives: gains mean nothing
    without motors and gears.
    """
    if _without_drives(regressor):
        return None
    has_gains = True
    for segment in segments:
        if not _is_known(segment.reference_position_rad, segment.reference_velocity_rad_s):
            return None
        has_gains = has_gains and _is_known(segment.kp_a_per_rad, segment.kd_a_s_per_rad)

    def simulated(theta: FloatArray) -> Iterator[Prepared]:
        arm = ForwardDynamics(regressor.robot, regressor.parameters, theta)
        for segment in segments:
            motion = simulate_segment(arm, regressor.robot, segment)
            yield _prepared(segment, motion.q_rad, motion.dq_rad_s)

    def referred(_theta: FloatArray) -> Iterator[Prepared]:
        for segment in segments:
            if segment.reference_position_rad is not None:  # as `make_instruments` has seen
                reference = segment.reference_position_rad, segment.reference_velocity_rad_s
                yield _prepared(segment, *reference)

    def _prepared(segment: Segment, q_rad: FloatArray, dq_rad_s: FloatArray | None) -> Prepared:
        motion = replace(segment, q_rad=q_rad, dq_rad_s=dq_rad_s, velocity_lag_s=0.0)
        return prepare(motion, settings, regressor.switching)

    return Instruments(simulated if has_gains else referred, is_simulated=has_gains)


def estimate_iv(problem: Problem) -> Estimate:
    """Estimate by instrumental variables, in a few rounds.

    Raises:
        EstimationError: There are no references or drives, the instruments do not resemble the
            motion, or the model cannot be simulated.
    """
    instruments = problem.instruments
    if instruments is None:
        undriven = _without_drives(problem.regressor)
        if undriven:
            raise EstimationError(
                "instrumental variables need the control loop, and the robot file states no drive "
                f"of {', '.join(undriven)}",
                code="no-drives",
            )
        raise EstimationError(
            "instrumental variables need the reference and the gains of the controller; imported "
            "data have none",
            code="no-reference",
        )
    theta = estimate_cls2(problem).theta
    beta = estimate_wls(problem).beta
    if theta is None:
        raise EstimationError("there are no parameters to simulate with", code="no-parameters")
    weights = joint_weights(problem.factors, beta)
    total = problem.factors.total(weights)[:, : problem.base.rank]
    notes: list[str] = []
    done, change = 0, np.inf
    while done < ROUNDS:
        problem.progress(f"instrumental variables: round {done + 1}")
        try:
            new = _solve(problem, instruments, theta, weights)
        except EstimationError as error:
            if not done:
                raise
            notes.append(f"stopped there: {error}")
            break
        change = float(np.linalg.norm(total @ (new - beta)) / np.linalg.norm(total @ new))
        beta, theta = new, problem.base.least_theta(new, near=theta)
        done += 1
        if change < _SETTLED or not instruments.is_simulated:
            break
    if instruments.is_simulated:
        notes.insert(0, f"{done} rounds; torques changed by {100.0 * change:.2g} % in the last")
    else:
        notes.insert(
            0, "instruments follow the reference, not a simulation: the gains are not recorded"
        )
    return Estimate(method="iv", beta=beta, notes=tuple(notes))


def _solve(
    problem: Problem, instruments: Instruments, theta: FloatArray, weights: FloatArray
) -> FloatArray:
    rank = problem.base.rank
    # [ZᵀWΦ₁, ZᵀWτ], summed up piece by piece, and lengths of the columns.
    moments = np.zeros((rank, rank + 1))
    squares = np.zeros((2, rank))
    for samples, motion in _aligned(problem.samples(), instruments.motion(theta)):
        for first in range(0, len(samples), PIECE_SAMPLES):
            piece = slice(first, first + PIECE_SAMPLES)
            scale = (samples.use[piece] * weights)[..., np.newaxis]
            measured = design(problem.regressor, problem.base, samples, piece) * scale
            noiseless = design(problem.regressor, problem.base, motion, piece) * scale
            phi = measured.reshape(-1, rank + 2)[:, : rank + 1]
            z = noiseless.reshape(-1, rank + 2)[:, :rank]
            moments += z.T @ phi
            squares += [np.sum(z**2, axis=0), np.sum(phi[:, :rank] ** 2, axis=0)]
    lengths = np.sqrt(squares)
    if not lengths.all():
        solve(problem.factors.total(), rank, base_symbols(problem))  # says what is missing
        raise EstimationError(
            "the simulated motion does not excite all base parameters", code="not-excited"
        )
    matrix = moments[:, :rank] / lengths[0][:, np.newaxis] / lengths[1]
    if not np.linalg.cond(matrix) < _UNLIKE:
        raise EstimationError(
            "the instruments do not resemble the motion: the condition number of ZᵀΦ is "
            f"{np.linalg.cond(matrix):.2g}; the model or the recorded gains are far off",
            code="unlike-instruments",
        )
    beta: FloatArray = np.linalg.solve(matrix, moments[:, rank] / lengths[0]) / lengths[1]
    return beta


def _aligned(
    samples: Iterator[Prepared], motions: Iterator[Prepared]
) -> Iterator[tuple[Prepared, Prepared]]:
    """Yield samples with the motion at the same times, without rows and segments that were cut."""
    for part in samples:
        if not len(part):
            continue
        for motion in motions:
            if motion.source != part.source or not len(motion):
                continue
            rows = np.searchsorted(motion.t_s, part.t_s)
            inside = rows < len(motion)
            if inside.all() and np.array_equal(motion.t_s[rows], part.t_s):
                yield part, motion.select(rows)
                break
        else:
            raise DatasetError(
                f"{part.source}: has samples that no instruments belong to", code="no-instruments"
            )


def _without_drives(regressor: Regressor) -> list[str]:
    """Return the names of joints whose motor and gear the robot file does not state."""
    return [joint.name for joint in regressor.robot.joints if joint.drive is None]


def _is_known(*columns: FloatArray | None) -> bool:
    return all(values is not None and bool(np.isfinite(values).all()) for values in columns)
