"""Uncertainty of base parameters: ordinary covariance, block bootstrap, and which are essential.

Ordinary standard deviations assume independent rows and come out 2 to 6 times too small. The
bootstrap draws whole blocks of time (all joints together) again, from the triangular factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from estimation.errors import DatasetError
from estimation.identification.data.factors import Factors, triangular
from estimation.identification.estimators.linear import solve
from estimation.regression.bootstrap import draw_changes
from estimation.types import FloatArray, Rows

REPLICATES = 500
ESSENTIAL_PERCENT = 30.0
"""Base parameters whose relative standard deviation is above this are not identifiable from the
data (the rule of Gautier and Khalil)."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Of base parameters, shape (r,) each.

    Attributes:
        sigma_ordinary: From σ²(Φ₁ᵀΦ₁)⁻¹, as if rows were independent.
        sigma: From the block bootstrap.
        half_width: Of the two-sided 95 % interval around an estimate.
    """

    sigma_ordinary: FloatArray
    sigma: FloatArray
    half_width: FloatArray

    def relative_percent(self, beta: ArrayLike) -> FloatArray:
        """Return 100·σ/|β|, infinite where β is zero."""
        size = np.abs(np.asarray(beta, dtype=np.float64))
        return 100.0 * np.where(size > 0.0, self.sigma / np.where(size > 0.0, size, 1.0), np.inf)


def covariance(factors: Factors, beta: FloatArray) -> FloatArray:
    """Return σ²(Φ₁ᵀΦ₁)⁻¹, shape (r, r), from n − r degrees of freedom."""
    rank = factors.rank
    inverse = _inverse(factors.total()[:rank, :rank])
    norms, _ = factors.joint_errors(beta)
    degrees = max(factors.sample_count - rank, 1)
    matrix: FloatArray = float(norms @ norms) / degrees * (inverse @ inverse.T)
    return matrix


def bootstrap(
    factors: Factors, beta: FloatArray, *, replicates: int = REPLICATES, seed: int = 0
) -> FloatArray:
    """Draw blocks of time again, and return the base parameters of each draw, (replicates, r).

    Raises:
        DatasetError: There are too few blocks.
    """
    rank = factors.rank
    starts = _cluster_starts(factors)
    count = len(starts)
    if count < 4:
        raise DatasetError(
            f"the data are {count} blocks of time, but intervals need at least 4; record for "
            "longer",
            code="few-blocks",
        )
    inverse = _inverse(factors.total()[:rank, :rank])
    direction = np.zeros(rank + 2)
    direction[:rank], direction[rank] = -beta, 1.0
    order = np.argsort(factors.clusters, kind="stable")
    stacked = factors.blocks.reshape(factors.block_count, -1, rank + 2)[order]
    basis = stacked[..., :rank] @ inverse
    errors = stacked @ direction
    grams = np.add.reduceat(np.einsum("bij,bik->bjk", basis, basis), starts)
    moments = np.add.reduceat(np.einsum("bij,bi->bj", basis, errors), starts)
    generator = np.random.default_rng(seed)
    changes = draw_changes(grams, moments, replicates=replicates, generator=generator)
    return beta + changes @ inverse.T


def find_uncertainty(factors: Factors, *, seed: int = 0) -> Uncertainty:
    """Return the uncertainty of the least-squares estimate.

    The width is the robust spread of the draws (of their middle 68 %): a few draws that hardly
    determine a parameter would make a standard deviation explode. Intervals are Student's.

    Raises:
        DatasetError: As `bootstrap`.
    """
    beta = solve(factors.total(), factors.rank)
    draws = bootstrap(factors, beta, seed=seed)
    low, high = np.quantile(draws, [0.15865, 0.84135], axis=0)
    degrees = len(_cluster_starts(factors)) - 1
    # A draw of n blocks scatters by (n − 1)/n of the truth's variance.
    sigma = 0.5 * (high - low) * np.sqrt((degrees + 1) / degrees)
    ordinary = np.sqrt(np.diag(covariance(factors, beta)))
    sigma = np.maximum(sigma, ordinary)
    return Uncertainty(ordinary, sigma, float(stdtrit(degrees, 0.975)) * sigma)


def information_inflation(factors: Factors) -> float:
    """Return by how much rows overstate their information: typical (σ/σ_ordinary)², at least 1."""
    try:
        uncertainty = find_uncertainty(factors)
    except DatasetError:
        return 1.0
    ratios = uncertainty.sigma / np.where(
        uncertainty.sigma_ordinary > 0.0, uncertainty.sigma_ordinary, np.inf
    )
    return max(1.0, float(np.median(ratios)) ** 2)


def essential(factors: Factors, *, limit_percent: float = ESSENTIAL_PERCENT) -> Rows:
    """Return the base parameters that remain when the least certain one is dropped repeatedly.

    One is dropped while its relative standard deviation (block bootstrap) is above the limit.
    Returns their indices; at least one.
    """
    rank = factors.rank
    kept = np.arange(rank)
    total = factors.total()
    scale = np.sqrt(information_inflation(factors))
    while len(kept) > 1:
        columns = np.append(kept, rank)
        part = triangular(total[:, columns])
        beta = solve(part, len(kept))
        residual = float(np.linalg.norm(part[len(kept) :, -1]))
        variance = residual**2 / max(factors.sample_count - len(kept), 1)
        inverse = _inverse(part[: len(kept), : len(kept)])
        sigma = scale * np.sqrt(variance * np.sum(inverse**2, axis=1))
        relative = 100.0 * sigma / np.maximum(np.abs(beta), 1e-300)
        worst = int(np.argmax(relative))
        if relative[worst] <= limit_percent:
            break
        kept = np.delete(kept, worst)
    return kept


def _cluster_starts(factors: Factors) -> Rows:
    """Return where clusters begin among the blocks sorted by cluster."""
    ordered = np.sort(factors.clusters)
    return np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1])


def _inverse(upper: FloatArray) -> FloatArray:
    inverse: FloatArray = solve_triangular(upper, np.eye(len(upper)))
    return inverse
