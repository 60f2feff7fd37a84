"""Estimators of base parameters that are linear algebra: ULS, WLS, IRLS and total least squares.

None of them knows physics: their result may belong to no physically consistent arm. Their
residual is the floor under every estimator that does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_triangular

from estimation.errors import DatasetError
from estimation.identification.data.factors import Factors, triangular
from estimation.identification.data.reduction import PIECE_SAMPLES, design
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.types import Flags, FloatArray

_SINGULAR = 1e-10
"""A direction that the data hold less of, relative to the best one (columns of length 1)."""
_ROUNDS = 50
_SETTLED = 1e-8
_HUBER = 1.345
"""Residuals beyond so many standard deviations count less: 95 % as efficient as least squares when
errors are Gaussian."""
_MAD = 1.4826


def solve(factor: FloatArray, rank: int, symbols: tuple[str, ...] = ()) -> FloatArray:
    """Return the β that minimises ‖τ − Φ₁β‖, shape (r,).

    Args:
        factor: Triangular factor of [Φ₁ τ …], its first r + 1 columns used.
        rank: r.
        symbols: Of the base parameters, for the message.

    Raises:
        DatasetError: The data do not excite all base parameters.
    """
    upper = factor[:rank, :rank]
    norms = np.linalg.norm(upper, axis=0)
    scales = np.where(norms > 0.0, norms, 1.0)
    _, values, directions = np.linalg.svd(upper / scales)
    missing = values <= _SINGULAR * values[0]
    if missing.any():
        weights = np.abs(directions[missing]).max(axis=0)
        names = [symbols[i] if symbols else str(i) for i in np.flatnonzero(weights > 0.1)]
        raise DatasetError(
            f"the data determine {rank - int(missing.sum())} of {rank} base parameters, but not "
            f"{', '.join(names[:12])}{' …' if len(names) > 12 else ''} (or a combination of them);"
            " record a motion that excites them (`armature excite`), or leave terms out",
            code="not-excited",
        )
    beta: FloatArray = solve_triangular(upper / scales, factor[:rank, rank]) / scales
    return beta


def base_symbols(problem: Problem) -> tuple[str, ...]:
    """Return the symbols of the independent elements."""
    return tuple(problem.base.symbols[i] for i in problem.base.independent)


def estimate_uls(problem: Problem) -> Estimate:
    """Estimate by least squares, all rows alike: the floor of the identification error."""
    factor = problem.factors.total()
    beta = solve(factor, problem.base.rank, base_symbols(problem))
    return Estimate(method="uls", beta=beta)


def joint_weights(factors: Factors, beta: FloatArray) -> FloatArray:
    """Return 1/σ of each joint's residual, relative to their geometric mean, shape (n_joints,).

    A joint that is predicted exactly gets the largest weight there is, not an infinite one.
    """
    sigma = factors.rms_nm(beta)
    largest = float(sigma.max())
    if not largest > 0.0:
        return np.ones_like(sigma)
    sigma = np.maximum(sigma, 1e-6 * largest)
    weights: FloatArray = np.exp(np.mean(np.log(sigma))) / sigma
    return weights


def settle_weights(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Repeat weighted least squares until the weights of the joints settle.

    Returns β, shape (r,), and what rows of each joint are multiplied by, shape (n_joints,).

    Raises:
        DatasetError: The data do not excite all base parameters.
    """
    symbols = base_symbols(problem)
    beta = solve(problem.factors.total(), problem.base.rank, symbols)
    weights = np.ones(problem.factors.joint_count)
    for _ in range(_ROUNDS):
        new = joint_weights(problem.factors, beta)
        beta = solve(problem.factors.total(new), problem.base.rank, symbols)
        is_settled = bool(np.abs(np.log(new / weights)).max() < _SETTLED)
        weights = new
        if is_settled:
            break
    return beta, weights


def describe_weights(weights: FloatArray) -> str:
    """Return the weights as a note of an estimate."""
    return f"weights of the joints' rows: {', '.join(f'{weight:.3g}' for weight in weights)}"


def estimate_wls(problem: Problem) -> Estimate:
    """Estimate with each joint's rows divided by its noise, until the weights settle."""
    beta, weights = settle_weights(problem)
    return Estimate(method="wls", beta=beta, notes=(describe_weights(weights),))


def estimate_irls(problem: Problem) -> Estimate:
    """Estimate with Huber's weights per row, by each joint's own scale (median of |residuals|)."""
    start = estimate_wls(problem)
    beta = start.beta
    rank = problem.base.rank
    reduced = 0.0
    for _ in range(_ROUNDS):
        scale = _row_scales(problem, beta)
        factor: FloatArray | None = None
        light, rows = 0, 0
        for columns, residuals, use in _rows(problem, beta):
            size = np.abs(residuals) / scale
            weights = np.minimum(1.0, _HUBER / np.maximum(size, _HUBER)) * use
            light += int(np.sum((weights < 1.0) & use))
            rows += int(use.sum())
            weighted = columns * (np.sqrt(weights) / scale)[..., np.newaxis]
            part = triangular(weighted.reshape(-1, rank + 1))
            factor = part if factor is None else triangular(np.vstack([factor, part]))
        if factor is None:
            raise DatasetError("there are no samples to weigh", code="no-rows")
        new = solve(factor, rank, base_symbols(problem))
        change = float(np.linalg.norm(new - beta) / np.linalg.norm(new))
        beta, reduced = new, 100.0 * light / max(rows, 1)
        if change < 1e-6:
            break
    return Estimate(
        method="irls", beta=beta, notes=(f"{reduced:.1f} % of the rows count less than others",)
    )


def estimate_tls(problem: Problem) -> Estimate:
    """Estimate by total least squares: errors in Φ₁ as well as in τ, relative to column lengths.

    The right singular vector v of the smallest singular value of [Φ₁ τ], columns of length 1 and
    joints weighed by their noise, gives β = −v₁/v₂. Where that is how errors are, it is far nearer
    to the truth than least squares. Noise of a measured motion is not like that: it is in some
    columns only, the same in several, and then WLS is as good.
    """
    _, weights = settle_weights(problem)
    rank = problem.base.rank
    factor = problem.factors.total(weights)[: rank + 1, : rank + 1]
    norms = np.linalg.norm(factor, axis=0)
    if not norms.all():
        solve(factor, rank, base_symbols(problem))  # says what is missing
        raise DatasetError(
            "the torque is zero throughout: there is nothing to identify", code="zero-torque"
        )
    _, _, directions = np.linalg.svd(factor / norms)
    last = directions[-1]
    if abs(last[-1]) < 1e-6:
        raise DatasetError(
            "total least squares has no solution: the columns of the regressor explain each other "
            "better than they explain the torque; excite the arm more",
            code="no-solution",
        )
    beta = -last[:-1] / last[-1] * norms[-1] / norms[:-1]
    return Estimate(method="tls", beta=beta)


def _rows(problem: Problem, beta: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, Flags]]:
    """Yield [Φ₁ τ], residuals and which rows count, piece by piece."""
    for prepared in problem.samples():
        for first in range(0, len(prepared.t_s), PIECE_SAMPLES):
            piece = slice(first, first + PIECE_SAMPLES)
            columns = design(problem.regressor, problem.base, prepared, piece)[..., :-1]
            yield columns, columns[..., -1] - columns[..., :-1] @ beta, prepared.use[piece]


def _row_scales(problem: Problem, beta: FloatArray) -> FloatArray:
    parts: list[list[FloatArray]] = [[] for _ in range(problem.factors.joint_count)]
    for _, residuals, use in _rows(problem, beta):
        for joint, part in enumerate(parts):
            part.append(np.abs(residuals[use[:, joint], joint]))
    medians = np.array([np.median(np.concatenate(part)) for part in parts])
    largest = float(medians.max()) or 1.0
    scales: FloatArray = _MAD * np.maximum(medians, 1e-9 * largest)
    return scales
