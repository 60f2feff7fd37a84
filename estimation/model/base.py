"""Base parameters: the combinations of θ that the torque depends on, and those it does not.

Columns of Φ depend on each other whatever the motion. With the independent ones Φ₁ and the others
Φ₂ = Φ₁·K, τ = Φθ = Φ₁·(θ₁ + Kθ₂) = Φ₁β. Which columns are independent is a property of the arm, so
it is found from motion drawn at random, not from a recording; what a recording does not excite is
told apart from what no recording ever could.

The rank, and K, are those of the arm with its axes where they are meant to be
(`estimation.model.exact_geometry`); Φ itself stays as the file states it. `BaseParameters.rounded`
says what that leaves out.

References: [Gautier 1991].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from estimation.errors import EstimationError
from estimation.model.exact_geometry import meant_robot
from estimation.model.parameters import INERTIAL
from estimation.model.regressor import Regressor
from estimation.types import FloatArray, Rows

_SAMPLES_PER_PARAMETER = 5
_SPEED_MAX_RAD_S, _ACCELERATION_MAX_RAD_S2 = 3.0, 20.0
_ZERO = 1e-9
"""A column, or what is left of one, that is this much shorter than the longest is zero: rounding
leaves 1e-14, the shortest link that counts is far above."""
_GAP = 1e3
"""The smallest pivot kept must be this much larger than the largest one dropped."""
_DIGITS = 11
"""Of weights, after the point: what follows is rounding."""


@dataclass(frozen=True, slots=True)
class BaseParameters:
    """How the base parameters β follow from θ.

    Attributes:
        symbols: Of θ's elements.
        independent: Elements whose columns are kept, in their order in θ, shape (r,).
        mapping: β = mapping·θ, shape (r, p): 1 at the independent elements, K at the others.
        lost: Elements that no torque depends on.
        gap: Smallest pivot kept over largest pivot dropped: how sure the rank is.
        rounded: How many more there were if numbers like 1.5708 were meant to the last digit: what
            only such a difference would determine, which no data do.
    """

    symbols: tuple[str, ...]
    independent: Rows
    mapping: FloatArray
    lost: Rows
    gap: float
    rounded: int = 0

    @property
    def rank(self) -> int:
        """How many base parameters."""
        return len(self.independent)

    def of(self, theta: ArrayLike) -> FloatArray:
        """β of a θ."""
        return self.mapping @ np.asarray(theta, dtype=np.float64)

    def columns(self, phi: FloatArray) -> FloatArray:
        """Φ₁: the columns of Φ that are kept."""
        return phi[..., self.independent]

    def least_theta(self, beta: ArrayLike, near: ArrayLike | None = None) -> FloatArray:
        """Return the θ with this β that is nearest to another one (or to zero)."""
        start = np.zeros(self.mapping.shape[1]) if near is None else np.asarray(near, np.float64)
        rest = np.asarray(beta, dtype=np.float64) - self.mapping @ start
        correction = np.linalg.lstsq(self.mapping, rest, rcond=None)[0]
        return np.asarray(start + correction, dtype=np.float64)

    def expression(self, row: int) -> str:
        """Return a base parameter in readable form, such as `Izz1 + Ia1 + 0.0279·m2`."""
        first = self.independent[row]
        weights = self.mapping[row].round(_DIGITS).tolist()
        shown = [f"{abs(weight):.4g}" for weight in weights]
        parts = [self.symbols[first]]
        # The largest first; equal ones in the order of θ.
        for index in sorted(range(len(weights)), key=lambda i: -float(shown[i])):
            if weights[index] and index != first:
                size = "" if shown[index] == "1" else f"{shown[index]}·"
                parts.append(f"{'+' if weights[index] > 0 else '-'} {size}{self.symbols[index]}")
        return " ".join(parts)


def find_base(regressor: Regressor, *, seed: int = 0) -> BaseParameters:
    """Find the base parameters of an arm.

    Raises:
        EstimationError: The rank is not certain: there is no clear gap between what is
            kept and what is dropped.
    """
    parameters = regressor.parameters
    robot = regressor.robot
    look = _look_at(Regressor(meant_robot(robot), parameters), seed)
    scaled, norms, rank = look.scaled, look.norms, look.rank
    kept, dropped = look.pivots[rank - 1], look.dropped
    independent = _first_independent(scaled, math.sqrt(kept * dropped), _preference(regressor))
    if kept < _GAP * dropped or len(independent) != rank:
        raise EstimationError(
            f"the rank of robot {robot.name}'s model is not certain: the smallest pivot kept is "
            f"{kept:.2g}, the largest dropped {dropped:.2g} (relative to {look.pivots[0]:.2g}); "
            "look for axes that are nearly but not quite parallel, or nearly at one place",
            code="unclear-rank",
        )
    others = np.setdiff1d(np.arange(len(parameters)), independent)
    dependence = np.linalg.lstsq(scaled[:, independent], scaled[:, others], rcond=None)[0]
    dependence[np.abs(dependence) < 1e-10] = 0.0
    mapping = np.zeros((rank, len(parameters)))
    mapping[np.arange(rank), independent] = 1.0
    mapping[:, others] = dependence * norms[others] / norms[independent][:, np.newaxis]
    mapping[np.abs(mapping) < 1e-12] = 0.0
    return BaseParameters(
        symbols=parameters.symbols,
        independent=independent,
        mapping=mapping,
        lost=np.flatnonzero(np.abs(mapping).sum(axis=0) == 0.0),
        gap=float(kept / dropped),
        rounded=max(0, _look_at(regressor, seed).rank - rank),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """A first look at the rank, whichever columns are then kept.

    Attributes:
        scaled: Φ of motion drawn at random, columns of length 1 (or 0), shape (n, p).
        norms: Of Φ's columns.
        pivots: Of `scaled`, from the largest.
        rank: How many of them are not zero.
    """

    scaled: FloatArray
    norms: FloatArray
    pivots: FloatArray
    rank: int

    @property
    def dropped(self) -> float:
        """The largest pivot that is zero, or what rounding leaves."""
        rest = self.pivots[self.rank :]
        return max(float(rest[0]) if len(rest) else 0.0, float(np.finfo(np.float64).eps))


def _look_at(regressor: Regressor, seed: int) -> _Look:
    phi = _random_regressor(regressor, seed)
    norms = np.linalg.norm(phi, axis=0)
    is_lost = norms <= _ZERO * norms.max()
    scaled = phi / np.where(is_lost, 1.0, norms)
    scaled[:, is_lost] = 0.0
    _, pivoted, _ = qr(scaled, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(pivoted))
    return _Look(scaled, norms, pivots, int(np.sum(pivots > _ZERO * pivots[0])))


def condition_numbers(triangular: ArrayLike) -> tuple[float, float]:
    """Return the condition of Φ₁ as it is, and with its columns scaled to length 1.

    Of Φ₁ or its triangular factor, shape (≥ r, r); infinity where a column is zero.
    """
    matrix = np.asarray(triangular, dtype=np.float64)
    norms = np.linalg.norm(matrix, axis=0)
    if not norms.all():
        return float("inf"), float("inf")
    return float(np.linalg.cond(matrix)), float(np.linalg.cond(matrix / norms))


def _random_regressor(regressor: Regressor, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    joints = regressor.parameters.joint_count
    samples = max(60, _SAMPLES_PER_PARAMETER * len(regressor.parameters) // joints + 1)
    shape = (samples, joints)
    phi = regressor(
        generator.uniform(-np.pi, np.pi, shape),
        generator.uniform(-_SPEED_MAX_RAD_S, _SPEED_MAX_RAD_S, shape),
        generator.uniform(-_ACCELERATION_MAX_RAD_S2, _ACCELERATION_MAX_RAD_S2, shape),
    )
    return phi.reshape(-1, phi.shape[2])


def _preference(regressor: Regressor) -> Rows:
    """Friction first, then what a link is usually known by; masses last.

    What comes late and depends on the rest is what is dropped: m, mcz and Iyy of each link join
    the link before it, as in the literature, and the drive inertia of the first joints Izz.
    """
    items = regressor.parameters.items
    late = ("drive_inertia", "Iyy", "mcz", "m")

    def order(index: int) -> tuple[int, int]:
        item = items[index]
        if item.kind in late:
            return (2 + late.index(item.kind), index)
        return (1 if item.kind in INERTIAL else 0, index)

    return np.array(sorted(range(len(items)), key=order), dtype=np.intp)


def _first_independent(scaled: FloatArray, least: float, order: Rows) -> Rows:
    """Return, going through the columns in this order, those independent of the ones before."""
    basis = np.zeros((scaled.shape[0], 0))
    kept: list[int] = []
    for column in order:
        rest = scaled[:, column]
        for _ in range(2):  # once more, for what rounding left
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > least:
            kept.append(int(column))
            basis = np.column_stack([basis, rest / length])
    return np.sort(np.array(kept, dtype=np.intp))
