"""Sequential quadratic programming from several starts: the estimator of [De Facci 2024].

Its (3.11) to (3.13): masses, total mass, boxes for centres of mass, friction that opposes motion;
and, instead of definite inertias, which are not enough, every pseudo-inertia positive definite by
a margin. The source expects many local minima and therefore starts anew many times; cost and
constraints are convex, so that all starts that succeed end at the same place, which is CLS-2's.

The unknowns are turned and scaled so that the cost's second derivative is the identity matrix:
with H = MᵀM + ρ·1 = V·diag(w²)·Vᵀ and x = V·diag(1/w)·z it is ½‖z − z₀‖². That is what SLSQP
assumes at first, so that it need not estimate it.

References: [Kraft 1988].
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from estimation.errors import EstimationError
from estimation.identification.estimators.constraints import CONSISTENCY_MARGIN
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.pseudo_inertia import BASIS
from estimation.identification.estimators.search_space import SearchSpace, draw_start, make_space
from estimation.types import FloatArray

TIME_MAX_S = 3.0
"""No further start begins after this long."""
_ITERATIONS = 400
_PULL = 1e-8
"""ρ, towards CAD: the data do not determine all of θ."""
_SAME = 1e-3
"""Relative difference of costs of two starts that found the same."""


def estimate_slsqp(problem: Problem) -> Estimate:
    """Return the best physically consistent arm, found by SLSQP from `problem.starts` starts.

    The first start is CAD itself (or the middle of the bounds), the others are drawn around it.

    Raises:
        EstimationError: No start ended with an arm that keeps the constraints.
    """
    space = make_space(problem)
    local = _Local(problem, space)
    generator = np.random.default_rng(problem.seed)
    began_s = time.monotonic()
    found: list[tuple[float, FloatArray]] = []
    broken: tuple[str, ...] = ()
    tried = 0
    for number in range(max(1, problem.starts)):
        if number and time.monotonic() - began_s > TIME_MAX_S:
            break
        problem.progress(f"slsqp: start {number + 1} of {problem.starts}")
        spread = 0.4 if number else 0.0
        x = local.search(draw_start(problem, space, generator, spread=spread))
        tried += 1
        violations = space.violations(x)
        if violations:
            broken = violations
        else:
            found.append((local.cost(x), x))
    if not found:
        raise EstimationError(
            f"none of {tried} starts of SLSQP ended with an arm that keeps the constraints (the "
            f"last one broke: {', '.join(broken[:4])}); method cls2 says whether they contradict "
            "each other",
            code="no-feasible-start",
        )
    best_cost, best = min(found, key=lambda pair: pair[0])
    same = sum(cost <= best_cost * (1.0 + _SAME) + 1e-12 for cost, _ in found)
    notes = [
        *problem.bounds.notes,
        f"{len(found)} of {tried} starts ended with a physically consistent arm, {same} with this "
        "one",
    ]
    theta = space.scales.theta * best
    return Estimate(method="slsqp", beta=problem.base.of(theta), theta=theta, notes=tuple(notes))


class _Coordinates(NamedTuple):
    """x = to_x·z, z = to_z·x."""

    to_x: FloatArray
    to_z: FloatArray
    target: FloatArray


class _Local:
    """One search, from a start to the nearest minimum."""

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self._space = space
        self._z = _whitened(problem, space)
        self._linear = space.matrix @ self._z.to_x

    def search(self, start: FloatArray) -> FloatArray:
        """Return the x at which a search from another x ends."""
        target = self._z.target
        result = minimize(
            lambda z: (0.5 * float((z - target) @ (z - target)), z - target),
            self._z.to_z @ start,
            jac=True,
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": self._slack, "jac": self._slack_gradient}],
            options={"maxiter": _ITERATIONS, "ftol": 1e-13},
        )
        x: FloatArray = self._z.to_x @ result.x
        return x

    def cost(self, x: FloatArray) -> float:
        """Return what is minimised, at an x."""
        rest = self._z.to_z @ x - self._z.target
        return 0.5 * float(rest @ rest)

    def _slack(self, z: FloatArray) -> FloatArray:
        """Return values that are not negative where all constraints are kept.

        All four eigenvalues of a pseudo-inertia, not only the least: where two of them cross, the
        least one has no gradient.
        """
        values = np.linalg.eigvalsh(self._space.pseudo_inertias(self._z.to_x @ z))
        linear = self._space.limits - self._linear @ z
        return np.concatenate([linear, values.ravel() - 2.0 * CONSISTENCY_MARGIN])

    def _slack_gradient(self, z: FloatArray) -> FloatArray:
        """Return dλ/dπ_k = vᵀ·BASIS_k·v for each eigenvalue λ and its vector v."""
        _, vectors = np.linalg.eigh(self._space.pseudo_inertias(self._z.to_x @ z))
        slopes = np.einsum("jak,cab,jbk->jkc", vectors, BASIS, vectors, optimize=True)
        parts = [
            slopes[joint] @ self._z.to_x[self._space.parameters.link(joint)]
            for joint in range(len(slopes))
        ]
        return np.vstack([-self._linear, *parts])


def _whitened(problem: Problem, space: SearchSpace) -> _Coordinates:
    count = space.cost_matrix.shape[1]
    left, values, right = np.linalg.svd(space.cost_matrix)
    centre = np.zeros(count) if problem.cad is None else problem.cad / space.scales.theta
    held = np.zeros(count)
    held[: len(values)] = values
    moments = np.zeros(count)
    moments[: len(values)] = values * (left.T @ space.cost_target)
    widths = np.sqrt(held**2 + _PULL)
    target = (moments + _PULL * (right @ centre)) / widths
    return _Coordinates(right.T / widths, right * widths[:, np.newaxis], target)
