"""Simulated annealing with penalties: PBRP of [Pennese Vulcano], also in [De Facci 2024].

Its Algorithm 1: minimise φ(x) + ξ_k·γ(x) within a box for ξ_k = 10k, each time from where
the time before ended. γ is the sum of how far constraints are broken: masses, total mass, centres
of mass, signs of friction, and of every link the triangle inequalities tr(I)/2 − λ_max(I) > 0 of
its inertia about the centre of mass, I_C = Ī − S(mc)ᵀS(mc)/m, which with a positive mass say that
its pseudo-inertia is positive definite.

Two things differ from the sources. Starts are physically consistent: of points drawn in a box
of 52 dimensions none is, and annealing did not get there (errors of 30 to 300 %). And there is no
first pass without penalties (ξ₁ = 0), which would only leave consistent links again. Steps follow
the axes of the cost, and are as long along each as the temperature lets the cost vary. Runs from
several starts are computed side by side. The method serves as a comparison: CLS-2 finds the minimum
itself, and sooner.
"""

from __future__ import annotations

import time

import numpy as np

from estimation.identification.estimators.constraints import CONSISTENCY_MARGIN
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.search_space import SearchSpace, draw_start, make_space
from estimation.types import FloatArray

STAGES = 3
"""How many weights ξ_k there are."""
STEPS = 5000
"""Of one run in one stage."""
TIME_MAX_S = 10.0
"""Remaining steps are skipped after this long: on a busy machine results may then differ."""
_HOT, _REHEATED, _COLD = 1e-2, 1e-5, 1e-8
"""Least temperature to begin with, that of later stages and at the end, in units of ‖τ‖²."""
_STRIDE = 0.1
"""Longest typical step along what the data do not determine, in scaled units."""
_AXES_AT_ONCE = 12
_SHORTEST = 4.0
"""Steps are e^−s of their full length, s drawn evenly from 0 to this: near constraints only short
ones are accepted, elsewhere long ones go further."""


def estimate_annealing(problem: Problem) -> Estimate:
    """Return the best arm that simulated annealing meets, from `problem.starts` starts.

    The result is checked; when no run has met a physically consistent arm, a note says what it
    breaks.
    """
    space = make_space(problem)
    generator = np.random.default_rng(problem.seed)
    count = max(1, problem.starts)
    starts = [draw_start(problem, space, generator) for _ in range(count)]
    runs = _Runs(space, np.array(starts), generator)
    deadline_s = time.monotonic() + TIME_MAX_S
    is_finished = True
    for stage in range(1, STAGES + 1):
        problem.progress(f"simulated annealing: stage {stage} of {STAGES}")
        hot = runs.hot() if stage == 1 else _REHEATED
        is_finished = is_finished and runs.anneal(10.0 * stage, hot, deadline_s)
    notes = list(problem.bounds.notes)
    has_met = np.isfinite(runs.best_costs)
    notes.append(f"{int(has_met.sum())} of {count} starts met a physically consistent arm")
    if has_met.any():
        x = runs.best[int(np.argmin(runs.best_costs))]
    else:
        x = runs.least_broken()
        broken = ", ".join(space.violations(x)[:4])
        notes.append(f"not feasible: no arm has these parameters (broken: {broken})")
    if not is_finished:
        notes.append(f"stopped after {TIME_MAX_S:g} s, before it was cold")
    theta = space.scales.theta * x
    return Estimate(method="sa", beta=problem.base.of(theta), theta=theta, notes=tuple(notes))


class _Runs:
    """Runs side by side; the best feasible point of each is kept."""

    def __init__(
        self, space: SearchSpace, starts: FloatArray, generator: np.random.Generator
    ) -> None:
        self._space = space
        self._generator = generator
        self._x = np.clip(starts, space.low, space.high)
        _, values, self._axes = np.linalg.svd(space.cost_matrix)
        self._held = np.zeros(len(self._axes))
        self._held[: len(values)] = values
        self.best = self._x.copy()
        self.best_costs = np.full(len(starts), np.inf)

    def anneal(self, weight: float, hot: float, deadline_s: float) -> bool:
        """Run one stage, from hot to cold, and return whether it was finished in time."""
        cost, broken = self._evaluate(self._x)
        total = cost + weight * broken
        for step, temperature in enumerate(np.geomspace(hot, _COLD, STEPS).tolist()):
            if step % 100 == 0 and time.monotonic() > deadline_s:
                return False
            tried = self._step(temperature)
            cost, broken = self._evaluate(tried)
            new = cost + weight * broken
            chance = np.exp(np.minimum(0.0, (total - new) / temperature))
            is_taken = self._generator.random(len(tried)) < chance
            self._x[is_taken] = tried[is_taken]
            total = np.where(is_taken, new, total)
            is_better = (broken <= 0.0) & (cost < self.best_costs)
            self.best[is_better] = tried[is_better]
            self.best_costs[is_better] = cost[is_better]
        return True

    def hot(self) -> float:
        """Return a temperature at which the runs can leave where they are."""
        return max(_HOT, 0.1 * float(np.median(self._space.cost(self._x))))

    def least_broken(self) -> FloatArray:
        """Return the point that breaks the least, of those where the runs ended."""
        _, broken = self._evaluate(self._x)
        x: FloatArray = self._x[int(np.argmin(broken))]
        return x

    def _step(self, temperature: float) -> FloatArray:
        """Return points one step away along some of the cost's axes, within the box."""
        shape = self._x.shape
        spread = 1.0 / np.sqrt(self._held**2 / temperature + _STRIDE**-2)
        move = self._generator.standard_normal(shape) * spread
        move *= self._generator.random(shape) < _AXES_AT_ONCE / shape[1]
        move *= np.exp(-_SHORTEST * self._generator.random((shape[0], 1)))
        x: FloatArray = np.clip(self._x + move @ self._axes, self._space.low, self._space.high)
        return x

    def _evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ and γ, shape (n_runs,) each."""
        space = self._space
        excess = np.maximum(0.0, x @ space.matrix.T - space.limits).sum(axis=1)
        excess += np.maximum(0.0, -_triangle_slacks(space, x)).sum(axis=1)
        return space.cost(x), excess


def _triangle_slacks(space: SearchSpace, x: FloatArray) -> FloatArray:
    """Return tr(I)/2 − λ_max(I) about each link's centre of mass, less a margin; (runs, joints).

    That is the least eigenvalue of the second moments Σ − (mc)(mc)ᵀ/m about it.
    """
    pseudo = space.pseudo_inertias(x)
    mass = np.maximum(pseudo[..., 3, 3], CONSISTENCY_MARGIN)
    moment = pseudo[..., :3, 3]
    about = pseudo[..., :3, :3] - (
        moment[..., :, np.newaxis] * moment[..., np.newaxis, :] / mass[..., np.newaxis, np.newaxis]
    )
    least = np.asarray(np.linalg.eigvalsh(about)[..., 0], dtype=np.float64)
    # A little more than asked for: the least eigenvalue of the pseudo-inertia itself is smaller.
    return least - 10.0 * CONSISTENCY_MARGIN
