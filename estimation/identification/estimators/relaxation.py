"""Relaxes bounds that contradict each other, by as little as possible."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from estimation.identification.estimators.bounds import Bounds, ellipsoid_factors
from estimation.identification.estimators.constraints import (
    Bound,
    Realism,
    Scales,
    choose_scales,
    link_bounds,
    matrix_inequalities,
    signs,
    with_slacks,
)
from estimation.identification.estimators.convex import solve_programme
from estimation.identification.estimators.problem import Problem

_MORE = 1.0 + 1e-4
"""A little more than the least, so that there is room inside."""


class RelaxedBound(NamedTuple):
    """A bound that has to be relaxed, and by how much.

    Attributes:
        name: Of the bound.
        size: In SI; of an ellipsoid, what its semi-axes are multiplied by.
        unit: Of the size; empty for an ellipsoid.
    """

    name: str
    size: float
    unit: str

    def words(self, digits: int) -> str:
        """Return it as text; semi-axes with enough digits that the advice works."""
        if self.unit:
            return f"{self.name}, by {self.size:.{digits}g} {self.unit}"
        return f"{self.name}, its semi-axes {self.size:.4g} times longer"


def relax_bounds(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """Widen bounds as little as an arm needs to keep them; also return what was relaxed."""
    scales = choose_scales(problem)
    parameters = problem.regressor.parameters
    x = cp.Variable(len(parameters))
    fixed = [*signs(x, parameters), *matrix_inequalities(x, parameters.joint_count)]
    wider, helps = find_relaxation(problem.bounds, x, fixed, scales, Realism.DENSITY)
    if not helps:
        return problem, ()
    return replace(problem, bounds=wider), tuple(f"relaxed: {bound.words(4)}" for bound in helps)


def find_relaxation(
    bounds: Bounds, x: cp.Variable, fixed: list[cp.Constraint], scales: Scales, realism: Realism
) -> tuple[Bounds, tuple[RelaxedBound, ...]]:
    """Return the least relaxation of bounds: wider ones, and those that had to be relaxed.

    First of masses and boxes among themselves; ellipsoids are then relaxed to fit boxes, which say
    more. The fixed constraints, physics, are never relaxed.
    """
    has_ellipsoids = realism is Realism.DENSITY
    firm = link_bounds(x, bounds, scales, realism=Realism.CONSISTENT if has_ellipsoids else realism)
    slacks = _least_relaxation(x, fixed, firm)
    wider = with_slacks(bounds, {name: _MORE * size + 1e-6 for name, size, _ in slacks})
    factors = ellipsoid_factors(wider) if has_ellipsoids else {}
    links = [
        link
        if name not in factors or link.ellipsoid is None
        else replace(link, ellipsoid=link.ellipsoid.grown(factors[name]))
        for name, link in zip(wider.joint_names, wider.links, strict=True)
    ]
    grown = [RelaxedBound(f"ellipsoid of {name}", size, "") for name, size in factors.items()]
    return replace(wider, links=tuple(links)), (*slacks, *grown)


def _least_relaxation(
    x: cp.Variable, fixed: list[cp.Constraint], bounds: list[Bound]
) -> list[RelaxedBound]:
    """Return the bounds that must be relaxed for a solution to exist: least in sum, then few."""
    if not bounds:
        return []
    slack = cp.Variable(len(bounds), nonneg=True)
    constraints = [bound.excess <= slack[index] for index, bound in enumerate(bounds)]
    solve_programme(cp.Problem(cp.Minimize(cp.sum(slack)), [*fixed, *constraints]))
    if slack.value is None:
        return []
    least = float(np.sum(slack.value))
    if least > 1e-6:
        # Many ways share the least sum; a solver ends in the middle of them, where every bound
        # is relaxed a little. Weights 1/slack lead to one where few are.
        constraints.append(cp.sum(slack) <= 1.001 * least)
        for _ in range(3):
            weights = 1.0 / (np.abs(slack.value) + 1e-3 * least)
            programme = cp.Problem(cp.Minimize((weights * least) @ slack), [*fixed, *constraints])
            solve_programme(programme)
            if slack.value is None:
                return []
    return [
        RelaxedBound(bound.name, float(size) * bound.unit_si, bound.unit)
        for bound, size in zip(bounds, slack.value, strict=True)
        if size > 1e-6
    ]
