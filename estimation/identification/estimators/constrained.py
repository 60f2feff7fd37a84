"""CLS-1, CLS-2 and CLS-3: least squares among physically consistent arms [RAM 2021].

The cost is ‖R·(β(θ)) − z‖² on the triangular factor, so that it does not matter how many samples
there are. Among all θ with equally good torques a faint pull towards CAD picks one (without CAD,
towards zero): data do not determine single links. With a prior, the pull is as strong as CAD
deserves: the Bregman divergence of −log det from CAD's pseudo-inertias, which is the same in any
unit and frame.

References: [Sousa 2014], [Lee 2020].
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import cvxpy as cp
import numpy as np

from estimation.errors import EstimationError, InfeasibleParametersError
from estimation.identification.estimators.constraints import (
    Bound,
    Realism,
    Scales,
    choose_scales,
    link_bounds,
    matrix_inequalities,
    opposing,
    scaled_pseudo_inertia,
    signs,
)
from estimation.identification.estimators.convex import SOLVED, solve_programme
from estimation.identification.estimators.linear import describe_weights, settle_weights
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.pseudo_inertia import pseudo_inertias
from estimation.identification.estimators.relaxation import find_relaxation
from estimation.identification.estimators.uncertainty import information_inflation
from estimation.types import FloatArray

CAD_SPREAD = 0.5
"""How far, relatively, CAD is trusted by the prior: the standard deviation of a mass, say."""
_PULL = 1e-8
"""Weight of the faint pull towards CAD, relative to ‖τ‖² = 1."""
_WEIGHTS_APART = 1e3
"""How many times another joint's weight one may have: its square in the cost is still far from the
solver's accuracy. A joint that is predicted exactly would hide all others."""


def estimate_cls1(problem: Problem) -> Estimate:
    """Estimate with bounds on masses and centres of mass; links may still be inconsistent."""
    return _estimate("cls1", problem, Realism.BOUNDS)


def estimate_cls2(problem: Problem) -> Estimate:
    """Estimate with every link physically consistent."""
    return _estimate("cls2", problem, Realism.CONSISTENT)


def estimate_cls2_wls(problem: Problem) -> Estimate:
    """Estimate with every link physically consistent, joints weighed by their noise as in WLS.

    Raises:
        DatasetError: The data do not excite all base parameters.
    """
    _, weights = settle_weights(problem)
    weights = np.minimum(weights, _WEIGHTS_APART * weights.min())
    return _estimate("cls2-wls", problem, Realism.CONSISTENT, weights=weights)


def estimate_cls3(problem: Problem) -> Estimate:
    """Estimate with every link physically consistent inside its ellipsoid, where one is known."""
    found = _estimate("cls3", problem, Realism.DENSITY)
    bounds = problem.bounds
    links = zip(bounds.joint_names, bounds.links, strict=True)
    unknown = [name for name, link in links if link.ellipsoid is None]
    if not unknown:
        return found
    note = f"no ellipsoid is known for {', '.join(unknown)}: as cls2 there"
    return replace(found, notes=(*found.notes, note))


def estimate_cls2_prior(problem: Problem) -> Estimate:
    """Estimate with every link physically consistent, as near to CAD as the data allow.

    Raises:
        EstimationError: The robot file knows no links.
    """
    if problem.cad is None:
        raise EstimationError(
            "a prior from CAD needs links in the robot file: add them, or use another method",
            code="no-links",
        )
    return _estimate("cls2-prior", problem, Realism.CONSISTENT, prior=problem.cad)


def find_consistent(problem: Problem, beta: FloatArray) -> FloatArray | None:
    """Return a physically consistent θ with exactly these base parameters, or None.

    Of all such θ, shape (p,), the one farthest from being inconsistent; bounds on masses are not
    asked for.
    """
    scales = choose_scales(problem)
    parameters = problem.regressor.parameters
    x = cp.Variable(len(parameters))
    margin = cp.Variable()
    mapping = problem.base.mapping * scales.theta
    norms = np.linalg.norm(mapping, axis=1)
    constraints = [
        (mapping / norms[:, np.newaxis]) @ x == beta / norms,
        margin <= 1.0,
        *(
            scaled_pseudo_inertia(x, joint) >> margin * np.eye(4)
            for joint in range(parameters.joint_count)
        ),
        *signs(x, parameters),
    ]
    programme = cp.Problem(cp.Maximize(margin), constraints)
    status = solve_programme(programme)
    if status not in SOLVED or x.value is None or not float(margin.value) > 1e-9:
        return None
    theta: FloatArray = scales.theta * x.value
    return theta


def _estimate(
    method: str,
    problem: Problem,
    realism: Realism,
    *,
    weights: FloatArray | None = None,
    prior: FloatArray | None = None,
) -> Estimate:
    scales = choose_scales(problem)
    parameters = problem.regressor.parameters
    x = cp.Variable(len(parameters))
    fixed = signs(x, parameters)
    if realism is not Realism.BOUNDS:
        fixed += matrix_inequalities(x, parameters.joint_count)
    bounds = link_bounds(x, problem.bounds, scales, realism=realism)
    cost = _cost(problem, x, scales, weights)
    cost += _pull(problem, x, scales) if prior is None else _prior(problem, prior, x, scales)
    programme = cp.Problem(cp.Minimize(cost), [*fixed, *(bound.excess <= 0.0 for bound in bounds)])
    status = solve_programme(programme)
    if status not in SOLVED or x.value is None:
        _explain(status, problem, x, fixed, realism)
    theta = scales.theta * x.value
    # At zero a solver ends a little to either side of it.
    never_negative = opposing(parameters)
    theta[never_negative] = np.maximum(theta[never_negative], 0.0)
    notes = list(problem.bounds.notes)
    if weights is not None:
        notes.append(describe_weights(weights))
    active = tuple(bound.name for bound in bounds if float(bound.excess.value) > -1e-5)
    if active:
        notes.append(f"at its bound: {', '.join(active[:6])}{' …' if len(active) > 6 else ''}")
    if status != "optimal":
        notes.append("the solver stopped short of its own accuracy")
    return Estimate(
        method=method,
        beta=problem.base.of(theta),
        theta=theta,
        notes=tuple(notes),
        active_bounds=active,
    )


def _cost(
    problem: Problem, x: cp.Variable, scales: Scales, weights: FloatArray | None
) -> cp.Expression:
    """Return ‖R·β − z‖², relative to ‖τ‖², of the rows of each joint times its weight."""
    rank = problem.base.rank
    factor = problem.factors.total(weights)
    size = float(np.linalg.norm(factor[:, rank]))
    matrix = factor[:rank, :rank] @ (problem.base.mapping * scales.theta) / size
    return cp.sum_squares(matrix @ x - factor[:rank, rank] / size)


def _pull(problem: Problem, x: cp.Variable, scales: Scales) -> cp.Expression:
    count = 10 * problem.regressor.parameters.joint_count
    centre = np.zeros(count) if problem.cad is None else (problem.cad / scales.theta)[:count]
    return _PULL * cp.sum_squares(x[:count] - centre)


def _prior(problem: Problem, cad: FloatArray, x: cp.Variable, scales: Scales) -> cp.Expression:
    """Return Σ D(J‖J_CAD)/spread², in units of the data's cost: both are minus a log-likelihood.

    D = −log det(J·J_CAD⁻¹) + tr(J·J_CAD⁻¹) − 4 is ½‖δ‖² for small relative changes δ.
    """
    rank = problem.base.rank
    factor = problem.factors.total()
    size2 = float(factor[:, rank] @ factor[:, rank])
    residual2 = float(factor[rank, rank] ** 2)
    variance = residual2 / max(problem.factors.sample_count - rank, 1)
    weight = 2.0 * variance * information_inflation(problem.factors) / size2 / CAD_SPREAD**2
    divergences = []
    for joint in range(problem.regressor.parameters.joint_count):
        link = (cad / scales.theta)[10 * joint : 10 * (joint + 1)]
        inverse_root = np.linalg.inv(np.linalg.cholesky(pseudo_inertias(link)))
        relative = inverse_root @ scaled_pseudo_inertia(x, joint) @ inverse_root.T
        divergences.append(cp.trace(relative) - cp.log_det(relative))
    return weight * cp.sum(divergences)


def _explain(
    status: str, problem: Problem, x: cp.Variable, fixed: list[cp.Constraint], realism: Realism
) -> NoReturn:
    """Raise an error that says which bounds contradict each other, or that the solver failed."""
    scales = choose_scales(problem)
    _, helps = find_relaxation(problem.bounds, x, fixed, scales, realism)
    if not helps:
        raise EstimationError(
            f"the solver ended with {status!r} though the constraints can be met: check the "
            "scales of the data (units?) and the robot file's masses",
            code="unsolved",
        )
    relaxed = "; ".join(bound.words(3) for bound in helps)
    conflict = _conflict(fixed, link_bounds(x, problem.bounds, scales, realism=realism))
    raise InfeasibleParametersError(
        f"no arm meets all constraints; these contradict each other: {'; '.join(conflict)}. The "
        f"least that would help is to relax {relaxed}; mend the robot file, or use --relax",
        code="contradicting-bounds",
    )


def _conflict(fixed: list[cp.Constraint], bounds: list[Bound]) -> list[str]:
    """Return names of bounds that contradict each other, none of which can be left out."""
    kept = list(bounds)
    for bound in bounds:
        rest = [other for other in kept if other is not bound]
        programme = cp.Problem(cp.Minimize(0.0), [*fixed, *(b.excess <= 0.0 for b in rest)])
        if solve_programme(programme) not in SOLVED:
            kept = rest
    return [bound.name for bound in kept]
