"""The problem as a numerical search sees it: cost, constraints and box, as plain arrays.

The constraints are those of `constraints`, which states them once: here they are only turned into
numbers, because a search evaluates them many thousand times.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from estimation.errors import EstimationError
from estimation.identification.estimators.bounds import LinkBound
from estimation.identification.estimators.constraints import (
    CONSISTENCY_MARGIN,
    Realism,
    Scales,
    choose_scales,
    link_bounds,
    opposing,
)
from estimation.identification.estimators.problem import Problem
from estimation.identification.estimators.pseudo_inertia import link_parameters, pseudo_inertias
from estimation.model.parameters import Parameters
from estimation.types import FloatArray

TOLERANCE = 1e-6
"""By how much a bound may be missed, in scaled units: what a solver's rounding leaves."""
_MASS_MAX = 5.0
"""Greatest mass where none is known, in units of the scale."""
_REACH = 3.0
"""Farthest mass where nothing is known of a link's extent, likewise."""
_TERM_START, _TERM_MAX = 0.05, 2.0
"""Terms to begin with where nothing is known, and their greatest value: in units of what would
alone make torques as large as those measured."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Scaled unknowns x, θ = scales.theta·x, with what they must keep to and what they cost.

    Attributes:
        scales: Of the unknowns.
        parameters: What θ consists of.
        names: Of the linear constraints.
        matrix: matrix·x ≤ limits, shape (n_constraints, p).
        limits: Shape (n_constraints,).
        cost_matrix: Shape (r, p).
        cost_target: Shape (r,); the cost is ½‖cost_matrix·x − cost_target‖², relative to ‖τ‖².
        low: Corner of a box that holds every sensible x, shape (p,).
        high: The opposite one.
    """

    scales: Scales
    parameters: Parameters
    names: tuple[str, ...]
    matrix: FloatArray
    limits: FloatArray
    cost_matrix: FloatArray
    cost_target: FloatArray
    low: FloatArray
    high: FloatArray

    def cost(self, x: FloatArray) -> FloatArray:
        """Return ½‖τ − Φ₁β‖²/‖τ‖² less what no parameters explain; shape (…, p) → (…)."""
        rest = x @ self.cost_matrix.T - self.cost_target
        cost: FloatArray = 0.5 * np.sum(rest**2, axis=-1)
        return cost

    def pseudo_inertias(self, x: FloatArray) -> FloatArray:
        """Return the scaled ones of all links; shape (…, p) → (…, n_joints, 4, 4)."""
        joints = self.parameters.joint_count
        return pseudo_inertias(x[..., : 10 * joints].reshape(*x.shape[:-1], joints, 10))

    def violations(self, x: FloatArray) -> tuple[str, ...]:
        """Return the names of the constraints that x breaks; none where it is feasible."""
        excess = self.matrix @ x - self.limits
        broken = [self.names[index] for index in np.flatnonzero(excess > TOLERANCE)]
        least = np.linalg.eigvalsh(self.pseudo_inertias(x))[:, 0]
        for joint in np.flatnonzero(least < 0.5 * CONSISTENCY_MARGIN):
            broken.append(f"link of {self.parameters.joint_names[joint]} is physically consistent")
        return tuple(broken)


def make_space(problem: Problem) -> SearchSpace:
    """Return the space of a problem.

    Raises:
        EstimationError: The torque is zero throughout.
    """
    parameters = problem.regressor.parameters
    scales = choose_scales(problem)
    rank = problem.base.rank
    factor = problem.factors.total()
    size = float(np.linalg.norm(factor[:, rank]))
    if not size > 0.0:
        raise EstimationError(
            "the torque is zero throughout: there is nothing to identify", code="zero-torque"
        )
    names, matrix, limits = _linear_constraints(problem, scales)
    low, high = _box(problem, scales)
    return SearchSpace(
        scales=scales,
        parameters=parameters,
        names=names,
        matrix=matrix,
        limits=limits,
        cost_matrix=factor[:rank, :rank] @ (problem.base.mapping * scales.theta) / size,
        cost_target=factor[:rank, rank] / size,
        low=low,
        high=high,
    )


def draw_start(
    problem: Problem, space: SearchSpace, generator: np.random.Generator, *, spread: float = 0.4
) -> FloatArray:
    """Draw an x to begin at: consistent links around CAD, or around the middle of the bounds.

    J' = L·exp(S)·Lᵀ with J = LLᵀ and S symmetric, normal: positive definite whatever is drawn.
    `spread` is the standard deviation of S's elements; 0 for the centre itself.
    """
    joints = space.parameters.joint_count
    if problem.cad is not None:
        centre = problem.cad / space.scales.theta
    else:
        centre = np.full(len(space.low), _TERM_START)
        for joint in range(joints):
            centre[space.parameters.link(joint)] = _middle_link(space, joint)
    x = centre * np.exp(spread * generator.standard_normal(len(centre)))
    for joint in range(joints):
        root = np.linalg.cholesky(pseudo_inertias(centre[space.parameters.link(joint)]))
        square = generator.standard_normal((4, 4))
        values, vectors = np.linalg.eigh(0.5 * spread * (square + square.T))
        half = root @ vectors * np.exp(0.5 * values)
        x[space.parameters.link(joint)] = link_parameters(half @ half.T)
    return x


def _linear_constraints(
    problem: Problem, scales: Scales
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    parameters = problem.regressor.parameters
    count = len(parameters)
    x = cp.Variable(count)
    bounds = link_bounds(x, problem.bounds, scales, realism=Realism.CONSISTENT)
    indices = opposing(parameters)
    names = [bound.name for bound in bounds]
    names += [f"{parameters.symbols[index]} ≥ 0" for index in indices]
    signs = np.zeros((len(indices), count))
    signs[np.arange(len(indices)), indices] = -1.0
    if not bounds:
        return tuple(names), signs, np.zeros(len(indices))
    stacked = cp.hstack([bound.excess for bound in bounds])
    x.value = np.zeros(count)
    # Every bound here is affine: its gradient and its value at zero are all of it.
    matrix = np.vstack([stacked.grad[x].toarray().T, signs])
    limits = np.concatenate([-np.asarray(stacked.value), np.zeros(len(indices))])
    return tuple(names), matrix, limits


def _box(problem: Problem, scales: Scales) -> tuple[FloatArray, FloatArray]:
    parameters = problem.regressor.parameters
    high = np.full(len(parameters), _TERM_MAX)
    low = -high
    low[opposing(parameters)] = 0.0
    for joint, link in enumerate(problem.bounds.links):
        mass_low, mass_high = (0.0, np.inf) if link.mass_kg is None else link.mass_kg
        mass_high = min(mass_high / scales.mass_kg, max(_MASS_MAX, 2.0 * mass_low / scales.mass_kg))
        reach = _reach_m(link) / scales.length_m if _reach_m(link) else _REACH
        moments = [mass_high * reach] * 3
        # Ixx, Ixy, Iyy, Ixz, Iyz, Izz: a diagonal element is at most m·(y² + z²).
        inertias = mass_high * reach**2 * np.array([2.0, 1.0, 2.0, 1.0, 1.0, 2.0])
        place = parameters.link(joint)
        high[place] = [mass_high, *moments, *inertias]
        low[place] = -high[place]
        low[place][[0, 4, 6, 9]] = mass_low / scales.mass_kg, 0.0, 0.0, 0.0
    return low, high


def _reach_m(link: LinkBound) -> float:
    """Return how far from the joint the link's mass may be, along an axis; 0 if not known."""
    if link.ellipsoid is not None:
        pairs = zip(link.ellipsoid.centre_m, link.ellipsoid.semi_axes_m, strict=True)
        return max(abs(centre) + axis for centre, axis in pairs)
    if link.centre_m is not None:
        return 2.0 * max(abs(value) for corner in link.centre_m for value in corner)
    return 0.0


def _middle_link(space: SearchSpace, joint: int) -> FloatArray:
    """Return a ball of the middle mass around the joint's origin."""
    place = space.parameters.link(joint)
    mass = 0.5 * float(space.low[place][0] + space.high[place][0])
    pseudo = mass * np.diag([0.2, 0.2, 0.2, 1.0])
    return link_parameters(pseudo)
