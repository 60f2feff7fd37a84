"""All estimators by name: what each does, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from estimation.errors import EstimationError
from estimation.identification.estimators.annealing import estimate_annealing
from estimation.identification.estimators.constrained import (
    estimate_cls1,
    estimate_cls2,
    estimate_cls2_prior,
    estimate_cls2_wls,
    estimate_cls3,
)
from estimation.identification.estimators.instruments import estimate_iv
from estimation.identification.estimators.linear import (
    estimate_irls,
    estimate_tls,
    estimate_uls,
    estimate_wls,
)
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.search import estimate_slsqp


@dataclass(frozen=True, slots=True)
class Method:
    """An estimator.

    Attributes:
        name: On the command line.
        summary: What it does.
        estimate: Does it.
        is_quick: Whether it may be repeated for cross-validation.
    """

    name: str
    summary: str
    estimate: Callable[[Problem], Estimate]
    is_quick: bool = True


def estimate_cad(problem: Problem) -> Estimate:
    """Return the robot file's own parameters, without estimating anything.

    Raises:
        EstimationError: A joint has no link.
    """
    if problem.cad is None:
        joints = problem.regressor.robot.joints
        bare = [joint.name for joint in joints if joint.link is None]
        lacks = "no links" if len(bare) == len(joints) else f"no link for {', '.join(bare)}"
        raise EstimationError(
            f"the robot file has {lacks}, so there is no CAD to compare with", code="no-links"
        )
    return Estimate(method="cad", beta=problem.base.of(problem.cad), theta=problem.cad)


METHODS: Final = {
    method.name: method
    for method in (
        Method("cad", "the robot file's own parameters", estimate_cad, is_quick=False),
        Method("uls", "unconstrained least squares: the floor", estimate_uls),
        Method("wls", "joints weighed by their noise", estimate_wls),
        Method("irls", "robust: outliers count less", estimate_irls, is_quick=False),
        Method("tls", "total least squares", estimate_tls),
        Method("iv", "instrumental variables (IDIM-IV)", estimate_iv, is_quick=False),
        Method("cls1", "bounds on masses and centres of mass", estimate_cls1),
        Method("cls2", "every link is physically consistent", estimate_cls2),
        Method("cls3", "every link is physically consistent inside its ellipsoid", estimate_cls3),
        Method("cls2-prior", "every link is physically consistent, near CAD", estimate_cls2_prior),
        Method(
            "cls2-wls",
            "every link is physically consistent, joints weighed by their noise",
            estimate_cls2_wls,
        ),
        Method("slsqp", "local search from many starts", estimate_slsqp, is_quick=False),
        Method("sa", "simulated annealing with penalties", estimate_annealing, is_quick=False),
    )
}
"""In the order of the comparison table."""
