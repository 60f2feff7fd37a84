"""The chosen method's parameters as tables: base parameters with intervals, and all of θ."""

from __future__ import annotations

import msgspec
import numpy as np

from estimation.identification.estimators.problem import Problem
from estimation.identification.estimators.uncertainty import Uncertainty, essential
from estimation.identification.result import BaseParameter, MethodResult, ParameterValue
from estimation.types import FloatArray


def base_table(
    problem: Problem, beta: FloatArray, uncertainty: Uncertainty, true_beta: FloatArray | None
) -> tuple[BaseParameter, ...]:
    """Return the base parameters of an estimate, shape (r,); the true ones on the mock only."""
    parameters, base = problem.regressor.parameters, problem.base
    cad = None if problem.cad is None else base.of(problem.cad)
    kept = set(essential(problem.factors).tolist())
    relative = uncertainty.relative_percent(beta)
    alone = _alone(problem).values()
    return tuple(
        BaseParameter(
            expression=base.expression(row),
            symbol=item.symbol,
            unit=item.unit,
            value=float(beta[row]),
            sigma=float(uncertainty.sigma[row]),
            sigma_ordinary=float(uncertainty.sigma_ordinary[row]),
            low=float(beta[row] - uncertainty.half_width[row]),
            high=float(beta[row] + uncertainty.half_width[row]),
            relative_percent=float(relative[row]),
            essential=row in kept,
            cad=None if cad is None else float(cad[row]),
            true=None if true_beta is None else float(true_beta[row]),
            joint=parameters.joint_names[item.joint],
            kind=item.kind,
            is_alone=row in alone,
        )
        for row, item in enumerate(parameters.items[index] for index in base.independent)
    )


def parameter_table(
    problem: Problem, chosen: MethodResult, uncertainty: Uncertainty
) -> tuple[ParameterValue, ...]:
    """Return all of θ; nothing for a method that determines base parameters only.

    Only an element that is a base parameter by itself has a standard deviation: the others are
    determined in combinations only.
    """
    if chosen.theta is None:
        return ()
    parameters = problem.regressor.parameters
    alone = _alone(problem)
    return tuple(
        ParameterValue(
            symbol=item.symbol,
            unit=item.unit,
            joint=parameters.joint_names[item.joint],
            value=chosen.theta[index],
            sigma=float(uncertainty.sigma[alone[index]]) if index in alone else None,
            cad=None if problem.cad is None else float(problem.cad[index]),
            is_identifiable=index in alone,
            kind=item.kind,
        )
        for index, item in enumerate(parameters.items)
    )


def _alone(problem: Problem) -> dict[int, int]:
    """Map the index of each parameter that is a base parameter by itself to the latter's row."""
    return {
        int(index): row
        for row, index in enumerate(problem.base.independent)
        if np.count_nonzero(problem.base.mapping[row]) == 1
    }


def with_coverage(
    row: MethodResult, true_beta: FloatArray, uncertainty: Uncertainty
) -> MethodResult:
    """Add the share of true base parameters inside an estimate's intervals; for the mock."""
    inside = np.abs(np.array(row.base) - true_beta) <= uncertainty.half_width
    return msgspec.structs.replace(row, base_parameters_in_interval=float(inside.mean()))
