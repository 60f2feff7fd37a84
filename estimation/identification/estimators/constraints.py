"""Constraints on θ as a convex programme: linear bounds and matrix inequalities, each with a name.

The unknowns are scaled: masses by the arm's, lengths by its reach, so that a solver sees numbers
near 1. Every bound can be given slack, to find out which of them contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import cvxpy as cp
import numpy as np

from estimation.identification.estimators.bounds import Bounds, Ellipsoid, LinkBound
from estimation.identification.estimators.problem import Problem
from estimation.identification.estimators.pseudo_inertia import BASIS
from estimation.model.parameters import Parameters
from estimation.types import FloatArray, Rows

CONSISTENCY_MARGIN = 1e-6
"""Least eigenvalue of a scaled pseudo-inertia: positive definite by more than a solver's error."""


class Realism(StrEnum):
    """How much physics a constrained estimate keeps to ([RAM 2021])."""

    BOUNDS = "bounds"
    """CLS-1: bounds on masses and centres of mass: a box, or else the link's ellipsoid."""
    CONSISTENT = "consistent"
    """CLS-2: also every pseudo-inertia positive definite."""
    DENSITY = "density"
    """CLS-3: also all mass, and with it the centre of mass, inside ellipsoids."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Units in which the unknowns are near 1.

    Attributes:
        mass_kg: Of a link.
        length_m: Of a link.
        theta: θ = theta·x, shape (p,).
    """

    mass_kg: float
    length_m: float
    theta: FloatArray


@dataclass(frozen=True, slots=True)
class Bound:
    """A constraint that may have to be relaxed.

    Attributes:
        name: Such as `mass of joint2 ≤ 1.2 kg`.
        excess: ≤ 0 when it is kept; an expression of the unknowns, in units of `unit`.
        unit: Of the excess, for messages: its size in SI is `excess·unit_si`.
        unit_si: Size of one unit.
    """

    name: str
    excess: cp.Expression
    unit: str
    unit_si: float


def choose_scales(problem: Problem) -> Scales:
    """Choose scales from CAD where there is one, else from the data."""
    parameters = problem.regressor.parameters
    joints = parameters.joint_count
    mass_kg, length_m = 1.0, 0.2
    if problem.cad is not None:
        links = problem.cad[: 10 * joints].reshape(joints, 10)
        mass_kg = float(np.exp(np.mean(np.log(links[:, 0]))))
        radii = np.sqrt((links[:, 4] + links[:, 6] + links[:, 9]) / (2.0 * links[:, 0]))
        length_m = float(np.exp(np.mean(np.log(radii))))
    rank = problem.base.rank
    factor = problem.factors.total()
    columns = np.linalg.norm(factor[:rank, :rank] @ problem.base.mapping, axis=0)
    size = float(np.linalg.norm(factor[:, rank]))
    theta = size / np.where(columns > 0.0, columns, size or 1.0)
    link = mass_kg * np.array([1.0, *(length_m,) * 3, *(length_m**2,) * 6])
    theta[: 10 * joints] = np.tile(link, joints)
    return Scales(mass_kg, length_m, theta)


def scaled_pseudo_inertia(x: cp.Variable, joint: int) -> cp.Expression:
    """Return the 4×4 pseudo-inertia of a link, from the scaled unknowns."""
    matrix = BASIS.reshape(10, 16).T
    return cp.reshape(matrix @ x[10 * joint : 10 * (joint + 1)], (4, 4), order="C")


def matrix_inequalities(x: cp.Variable, joints: int) -> list[cp.Constraint]:
    """Return constraints that keep every pseudo-inertia positive definite."""
    margin = CONSISTENCY_MARGIN * np.eye(4)
    return [scaled_pseudo_inertia(x, joint) >> margin for joint in range(joints)]


def opposing(parameters: Parameters) -> Rows:
    """Return the elements of θ that are never negative: friction and inertia of drives."""
    kinds = ("viscous", "coulomb", "drive_inertia")
    items = enumerate(parameters.items)
    return np.array([index for index, item in items if item.term in kinds], dtype=np.intp)


def signs(x: cp.Variable, parameters: Parameters) -> list[cp.Constraint]:
    """Return constraints: friction opposes motion, and the inertia of a drive is not negative."""
    indices = opposing(parameters)
    return [x[indices] >= 0.0] if len(indices) else []


def link_bounds(x: cp.Variable, bounds: Bounds, scales: Scales, *, realism: Realism) -> list[Bound]:
    """Return bounds on masses, centres of mass and, for CLS-3, where mass may be."""
    result: list[Bound] = []
    masses = [x[10 * joint] for joint in range(len(bounds.links))]
    named = list(enumerate(zip(bounds.joint_names, bounds.links, strict=True)))
    for joint, (name, link) in named:
        result += _mass_bounds(masses[joint], f"mass of {name}", link.mass_kg, scales)
        result += _centre_bounds(x, joint, name, link, scales)
    result += _mass_bounds(sum(masses), "total mass", bounds.total_mass_kg, scales)
    if realism is Realism.DENSITY:
        for joint, (name, link) in named:
            if link.ellipsoid is not None:
                result.append(_density_bound(x, joint, name, link.ellipsoid, scales))
    if realism is Realism.BOUNDS:
        for joint, (name, link) in named:
            if link.centre_m is None and link.ellipsoid is not None:
                result.append(_centre_ellipsoid(x, joint, name, link.ellipsoid, scales))
        # Nothing else keeps masses positive there.
        result += [
            Bound(f"mass of {name} > 0", 1e-6 - masses[joint], "kg", scales.mass_kg)
            for joint, name in enumerate(bounds.joint_names)
        ]
    return result


def with_slacks(bounds: Bounds, slacks: dict[str, float]) -> Bounds:
    """Return bounds on masses and centres of mass moved outwards, by name of the bound."""

    def pair(
        what: str, unit: str, values: tuple[float, float] | None
    ) -> tuple[float, float] | None:
        if values is None:
            return None
        low, high = values
        low -= slacks.get(_low_name(what, low, unit), 0.0)
        high += slacks.get(_high_name(what, high, unit), 0.0)
        return max(low, 0.0), high

    links = []
    for name, link in zip(bounds.joint_names, bounds.links, strict=True):
        centre = link.centre_m
        if centre is not None:
            low, high = list(centre[0]), list(centre[1])
            for axis, letter in enumerate("xyz"):
                what = f"centre of mass {letter} of {name}"
                low[axis] -= slacks.get(_low_name(what, low[axis], "m"), 0.0)
                high[axis] += slacks.get(_high_name(what, high[axis], "m"), 0.0)
            centre = ((low[0], low[1], low[2]), (high[0], high[1], high[2]))
        links.append(
            replace(link, mass_kg=pair(f"mass of {name}", "kg", link.mass_kg), centre_m=centre)
        )
    total = pair("total mass", "kg", bounds.total_mass_kg)
    return replace(bounds, links=tuple(links), total_mass_kg=total)


def _low_name(what: str, value: float, unit: str) -> str:
    return f"{what} ≥ {value:.6g} {unit}"


def _high_name(what: str, value: float, unit: str) -> str:
    return f"{what} ≤ {value:.6g} {unit}"


def _mass_bounds(
    mass: cp.Expression, what: str, limits: tuple[float, float] | None, scales: Scales
) -> list[Bound]:
    if limits is None:
        return []
    low, high = limits
    unit = scales.mass_kg
    result = [Bound(_low_name(what, low, "kg"), low / unit - mass, "kg", unit)]
    if np.isfinite(high):
        result.append(Bound(_high_name(what, high, "kg"), mass - high / unit, "kg", unit))
    return result


def _centre_bounds(
    x: cp.Variable, joint: int, name: str, link: LinkBound, scales: Scales
) -> list[Bound]:
    """Return the bounds m·low ≤ mc ≤ m·high."""
    if link.centre_m is None:
        return []
    result = []
    mass = x[10 * joint]
    for axis, letter in enumerate("xyz"):
        moment = x[10 * joint + 1 + axis]
        low, high = (corner[axis] for corner in link.centre_m)
        what = f"centre of mass {letter} of {name}"
        unit = scales.length_m
        result.append(Bound(_low_name(what, low, "m"), mass * (low / unit) - moment, "m", unit))
        result.append(Bound(_high_name(what, high, "m"), moment - mass * (high / unit), "m", unit))
    return result


def _density_bound(
    x: cp.Variable, joint: int, name: str, ellipsoid: Ellipsoid, scales: Scales
) -> Bound:
    """Return the bound ∫(1 − (x − c)ᵀQ⁻¹(x − c)) dm ≥ 0: no mass is outside the ellipsoid.

    Where J ≻ 0, there is a body inside the ellipsoid with these ten parameters if and only if this
    holds (Wensing et al., see `pseudo_inertia`). It also keeps the centre of mass x̄ inside, which
    therefore needs no constraint of its own: with the covariance C = ∫(x − x̄)(x − x̄)ᵀ dm, a Schur
    complement of J and so positive,

        m·(x̄ − c)ᵀQ⁻¹(x̄ − c) = ∫(x − c)ᵀQ⁻¹(x − c) dm − tr(Q⁻¹C) < ∫(x − c)ᵀQ⁻¹(x − c) dm ≤ m.
    """
    centre = np.array(ellipsoid.centre_m) / scales.length_m
    inverse = np.diag((np.array(ellipsoid.semi_axes_m) / scales.length_m) ** -2.0)
    weight = np.zeros((4, 4))
    weight[:3, :3] = -inverse
    weight[:3, 3] = weight[3, :3] = inverse @ centre
    weight[3, 3] = 1.0 - float(centre @ inverse @ centre)
    coefficients = np.tensordot(BASIS, weight, axes=2)
    excess = -(coefficients @ x[10 * joint : 10 * (joint + 1)])
    middle = ", ".join(f"{value:.4g}" for value in ellipsoid.centre_m)
    axes = ", ".join(f"{value:.4g}" for value in ellipsoid.semi_axes_m)
    what = f"mass of {name} inside its ellipsoid (centre {middle} m, semi-axes {axes} m)"
    return Bound(what, excess, "kg", scales.mass_kg)


def _centre_ellipsoid(
    x: cp.Variable, joint: int, name: str, ellipsoid: Ellipsoid, scales: Scales
) -> Bound:
    """Return the bound ‖Q^(-1/2)(mc − m·centre)‖ ≤ m on the centre of mass alone."""
    centre = np.array(ellipsoid.centre_m) / scales.length_m
    axes = np.array(ellipsoid.semi_axes_m) / scales.length_m
    mass = x[10 * joint]
    moment = x[10 * joint + 1 : 10 * joint + 4]
    excess = cp.norm(cp.multiply(1.0 / axes, moment - mass * centre)) - mass
    return Bound(f"centre of mass of {name} inside its ellipsoid", excess, "kg", scales.mass_kg)
