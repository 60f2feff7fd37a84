"""Evaluates an estimate: errors on identification and validation data, physical consistency.

Errors are stated twice: over the rows in which a joint moves, which are those that are fitted, and
over all rows. At a reversal a joint may stick, and then friction is not a function of its speed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from estimation.errors import EstimationError
from estimation.identification.data.factors import ReducedSamples, folds
from estimation.identification.estimators.constrained import find_consistent
from estimation.identification.estimators.constraints import opposing
from estimation.identification.estimators.methods import METHODS
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.pseudo_inertia import least_eigenvalues
from estimation.identification.result import ErrorsPercent, MethodResult
from estimation.types import FloatArray

POSTURES = 200
"""Drawn within the joint limits, for B(q)."""


def find_errors(data: ReducedSamples, beta: FloatArray) -> ErrorsPercent:
    """Return ε_τ of base parameters, shape (r,), on some data."""
    moving, per_joint = data.moving.error_percent(beta)
    all_rows, all_rows_per_joint = data.everything.error_percent(beta)
    raw, raw_per_joint = data.everything.error_percent(beta, is_raw=True)
    return ErrorsPercent(
        moving=moving,
        per_joint=per_joint,
        all_rows=all_rows,
        all_rows_per_joint=all_rows_per_joint,
        raw=raw,
        raw_per_joint=raw_per_joint,
        rms_nm=tuple(data.moving.rms_nm(beta).tolist()),
    )


def judge(
    problem: Problem,
    estimate: Estimate,
    seconds: float,
    training: ReducedSamples,
    validation: ReducedSamples | None,
) -> MethodResult:
    """Evaluate an estimate, made from the training data: a row of the comparison table."""
    parameters = problem.regressor.parameters
    theta = estimate.theta
    if theta is None:
        # A method that determines base parameters only: is there any arm that has them?
        theta = find_consistent(problem, estimate.beta)
        is_consistent = theta is not None
        if theta is None:
            theta = problem.base.least_theta(estimate.beta, problem.cad)
    else:
        is_consistent = _is_consistent(problem, theta)
    least = least_eigenvalues(theta, parameters.joint_count)
    smallest, conditions = _inertia_matrices(problem, theta)
    known = find_errors(training, estimate.beta)
    unknown = find_errors(validation, estimate.beta) if validation is not None else None
    return MethodResult(
        name=estimate.method,
        summary=METHODS[estimate.method].summary,
        identification=known,
        validation=unknown,
        cross_validation_percent=_cross_validate(problem, estimate.method),
        consistent=is_consistent,
        min_pseudo_inertia_eigenvalue=float(least.min()),
        pseudo_inertia_eigenvalues=tuple(least.tolist()),
        inertia_matrix_positive=smallest > 0.0,
        inertia_matrix_condition=conditions,
        seconds=seconds,
        base=tuple(estimate.beta.tolist()),
        theta=None if estimate.theta is None else tuple(estimate.theta.tolist()),
        notes=estimate.notes,
        active_bounds=estimate.active_bounds,
    )


def _is_consistent(problem: Problem, theta: FloatArray) -> bool:
    """Return whether every pseudo-inertia is positive definite and no friction drives."""
    parameters = problem.regressor.parameters
    links = least_eigenvalues(theta, parameters.joint_count)
    return bool(links.min() > 0.0) and bool((theta[opposing(parameters)] > -1e-9).all())


def _inertia_matrices(problem: Problem, theta: FloatArray) -> tuple[float, tuple[float, float]]:
    """Return the least eigenvalue of B(q) and the range of its condition, over postures."""
    generator = np.random.default_rng(problem.seed)
    limits = [joint.limits for joint in problem.regressor.robot.joints]
    low = np.array([max(limit.position_min_rad, -math.pi) for limit in limits])
    high = np.array([min(limit.position_max_rad, math.pi) for limit in limits])
    postures = generator.uniform(low, np.maximum(low + 1e-6, high), (POSTURES, len(limits)))
    matrices = problem.regressor.inertia_matrices(theta, postures)
    values = np.linalg.eigvalsh(0.5 * (matrices + matrices.transpose(0, 2, 1)))
    if values.min() <= 0.0:
        return float(values.min()), (math.inf, math.inf)
    conditions = values[:, -1] / values[:, 0]
    return float(values.min()), (float(conditions.min()), float(conditions.max()))


def _cross_validate(problem: Problem, name: str) -> float | None:
    """Return the error on held-out parts of the time, in percent of all their torque."""
    if not METHODS[name].is_quick:
        return None
    left2, size2 = 0.0, 0.0
    for training, held_out in folds(problem.factors):
        try:
            beta = METHODS[name].estimate(replace(problem, factors=training)).beta
        except EstimationError:
            return None
        norms, sizes = held_out.joint_errors(beta)
        left2 += float(norms @ norms)
        size2 += float(sizes @ sizes)
    return 100.0 * math.sqrt(left2 / size2) if size2 > 0.0 else None
