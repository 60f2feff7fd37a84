"""Bounds that contradict each other give way by as little as possible."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp

from estimation.identification.constrained import least_relaxation
from estimation.identification.constraints import (
    Realism,
    choose_scales,
    link_bounds,
    matrix_inequalities,
    signs,
    widened,
)
from estimation.identification.problem import Problem

_MORE = 1.0 + 1e-4
"""A little more than the least, so that there is room inside."""


def relax_bounds(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """Widen bounds until an arm can keep them.

    Args:
        problem: With bounds that may contradict each other.

    Returns:
        The same with the least relaxation, and what was relaxed.
    """
    scales = choose_scales(problem)
    parameters = problem.regressor.parameters
    x = cp.Variable(len(parameters))
    fixed = [*signs(x, parameters), *matrix_inequalities(x, parameters.joint_count)]
    bounds = link_bounds(x, problem.bounds, scales, realism=Realism.CONSISTENT)
    slacks = least_relaxation(x, fixed, bounds)
    if not slacks:
        return problem, ()
    wider = widened(problem.bounds, {name: _MORE * size + 1e-6 for name, size, _ in slacks})
    notes = tuple(f"relaxed: {name}, by {size:.4g} {unit}" for name, size, unit in slacks)
    return replace(problem, bounds=wider), notes
