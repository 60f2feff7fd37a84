"""Identifies a payload: the difference of two identifications, with and without, as one body.

A payload is a change δπ of the last link's ten parameters [De Facci 2024], so that base parameters
change by Δβ = B·δπ with the last link's columns B of the base mapping. Of all physically consistent
bodies, it is the one nearest to the measured difference, weighted by its covariance:

δπ = argmin (Δβ − B·δπ)ᵀΣ⁻¹(Δβ − B·δπ)     subject to J(δπ) ⪰ 0

Σ is the sum of both identifications' ordinary covariances, each as much larger as the block
bootstrap says; the bootstrap's own would be of too low a rank to be inverted when blocks are few.
Intervals come from the bootstrap: each draw is fitted anew. Friction and drives are left out of Δβ:
gears may rub more under load, and that is not the payload's mass.
"""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.special import stdtrit

from estimation.errors import DatasetError, EstimationError
from estimation.identification.estimators.convex import SOLVED, solve_programme
from estimation.identification.estimators.linear import base_symbols, solve
from estimation.identification.estimators.problem import Problem
from estimation.identification.estimators.pseudo_inertia import BASIS
from estimation.identification.estimators.uncertainty import (
    bootstrap,
    covariance,
    information_inflation,
)
from estimation.identification.result import Interval, PayloadResult
from estimation.model.parameters import INERTIAL
from estimation.types import FloatArray, Rows

DRAWS = 200
_MASS_KG, _LENGTH_M = 0.3, 0.1
_SCALES = _MASS_KG * np.array([1.0, *(_LENGTH_M,) * 3, *(_LENGTH_M**2,) * 6])
"""Size of a usual payload: unknowns are scaled by it."""
_RANK_TOLERANCE = 1e-6


def identify_payload(
    without: Problem, with_load: Problem, *, files: tuple[str, ...] = ()
) -> PayloadResult:
    """Identify what an arm carries, from data of the bare arm and of the loaded one.

    Raises:
        DatasetError: The models differ, or the data do not determine their base parameters.
        EstimationError: The programme could not be solved.
    """
    if without.base.symbols != with_load.base.symbols or not np.allclose(
        without.base.mapping, with_load.base.mapping, atol=1e-6
    ):
        raise DatasetError(
            "the recordings with and without payload are not of the same arm and model: use one "
            "robot file",
            code="different-models",
        )
    rows = _link_rows(with_load)
    last = with_load.regressor.parameters.link(with_load.regressor.parameters.joint_count - 1)
    matrix = with_load.base.mapping[rows, last]
    bare, loaded = (_base(problem, rows, seed) for seed, problem in enumerate((without, with_load)))
    change, draws = loaded.beta - bare.beta, loaded.draws - bare.draws
    whitening = np.linalg.inv(np.linalg.cholesky(bare.covariance + loaded.covariance))
    fit = _Fit(whitening @ matrix)
    parameters = fit.solve(whitening @ change)
    rest = whitening @ (change - matrix @ parameters)
    misfit = float(np.sqrt(np.mean(rest**2)))
    solved = [_described(fit.solve(whitening @ draw)) for draw in draws]
    mass, x, y, z, *inertia = _intervals(
        _described(parameters), np.array(solved), min(bare.blocks, loaded.blocks)
    )
    return PayloadResult(
        mass_kg=mass,
        centre_m=(x, y, z),
        inertia_kg_m2=tuple(inertia),
        misfit=misfit,
        notes=_notes(mass, _unidentifiable(matrix), misfit),
        files=files,
    )


def _link_rows(problem: Problem) -> Rows:
    items = problem.regressor.parameters.items
    kinds = [items[index].kind for index in problem.base.independent]
    return np.array([row for row, kind in enumerate(kinds) if kind in INERTIAL], dtype=np.intp)


class _Base(NamedTuple):
    """Base parameters that describe links, and their uncertainty."""

    beta: FloatArray
    draws: FloatArray
    covariance: FloatArray
    blocks: int


def _base(problem: Problem, rows: Rows, seed: int) -> _Base:
    """Return the least-squares estimate and draws of it; physics is added to the difference."""
    factors = problem.factors
    beta = solve(factors.total(), problem.base.rank, base_symbols(problem))
    drawn = bootstrap(factors, beta, replicates=DRAWS, seed=1_000_003 * seed + problem.seed)
    blocks = len(np.unique(factors.clusters))
    # A draw of n blocks scatters by (n − 1)/n of the truth's variance.
    wide = beta + np.sqrt(blocks / (blocks - 1.0)) * (drawn - beta)
    inflated = information_inflation(factors) * covariance(factors, beta)
    return _Base(beta[rows], wide[:, rows], inflated[np.ix_(rows, rows)], blocks)


def _intervals(values: FloatArray, draws: FloatArray, blocks: int) -> list[Interval]:
    """Return quantiles of the draws, widened as Student's are for so few blocks."""
    wider = float(stdtrit(blocks - 1, 0.975)) / 1.959964
    lows, highs = np.quantile(draws, [0.025, 0.975], axis=0)
    return [
        Interval(
            value=value,
            low=value - wider * max(value - low, 0.0),
            high=value + wider * max(high - value, 0.0),
        )
        for value, low, high in zip(values.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]


class _Fit:
    """min ‖target − matrix·δπ‖² over physically consistent bodies, for one target after another."""

    def __init__(self, matrix: FloatArray) -> None:
        self._x = cp.Variable(len(INERTIAL))
        self._target = cp.Parameter(len(matrix))
        # Divided by its size, or a sharp fit leaves the solver with numbers of 1e10.
        self._size = float(np.linalg.norm(matrix * _SCALES))
        pseudo = cp.reshape(BASIS.reshape(10, 16).T @ self._x, (4, 4), order="C")
        cost = cp.sum_squares((matrix * _SCALES / self._size) @ self._x - self._target)
        # What the data do not determine is small rather than arbitrary.
        self._programme = cp.Problem(
            cp.Minimize(cost + 1e-10 * cp.sum_squares(self._x)), [pseudo >> 0]
        )

    def solve(self, target: FloatArray) -> FloatArray:
        """Return δπ for a target, shape (10,), in SI."""
        self._target.value = target / self._size
        if solve_programme(self._programme) not in SOLVED or self._x.value is None:
            raise EstimationError(
                f"the payload's programme ended with {self._programme.status!r}: check that both "
                "recordings are of the same arm",
                code="unsolved",
            )
        found: FloatArray = _SCALES * self._x.value
        return found


def _described(link: FloatArray) -> FloatArray:
    """Return mass, centre and inertia about the centre; shape (10,)."""
    mass = max(float(link[0]), 1e-9)
    centre = link[1:4] / mass
    x, y, z = centre
    steiner = mass * np.array([y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])
    return np.concatenate([[link[0]], centre, link[4:] - steiner])


def _unidentifiable(matrix: FloatArray) -> list[str]:
    """Return which of the ten parameters the arm's torques do not depend on by themselves."""
    _, values, directions = np.linalg.svd(matrix * _SCALES)
    full = np.zeros(len(INERTIAL))
    full[: len(values)] = values
    leak = np.linalg.norm(directions[full <= _RANK_TOLERANCE * values[0]], axis=0)
    return [INERTIAL[index] for index in np.flatnonzero(leak >= 1e-4)]


def _notes(mass: Interval, unidentifiable: list[str], misfit: float) -> tuple[str, ...]:
    notes = []
    if unidentifiable:
        notes.append(
            f"{', '.join(unidentifiable)} of the payload are not identifiable: they are the "
            "smallest that a body with the others can have"
        )
    if mass.low <= 1e-3:
        notes.append("the data do not show that there is a payload at all")
    if misfit > 3.0:
        notes.append(
            f"the change is {misfit:.1f} standard deviations from that of any payload: something "
            "else has changed between the recordings"
        )
    return tuple(notes)
