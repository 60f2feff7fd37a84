"""Solves convex programmes with Clarabel: a status in place of its exceptions and warnings."""

from __future__ import annotations

import warnings

import cvxpy as cp

SOLVED = ("optimal", "optimal_inaccurate")


def solve_programme(programme: cp.Problem) -> str:
    """Solve a programme, whose variables have values afterwards if it could be solved.

    Returns cvxpy's status; `solver_error` also where cvxpy would raise it, as it does for numbers
    that are out of all proportion.
    """
    with warnings.catch_warnings():
        # "Solution may be inaccurate": the status says so, too.
        warnings.simplefilter("ignore", UserWarning)
        try:
            programme.solve(solver=cp.CLARABEL)
        except (cp.error.SolverError, ArithmeticError, ValueError):
            return "solver_error"
    return str(programme.status)
