"""Linear least squares, and replicates of it from blocks of samples that are drawn again.

The model is τ = Φθ + e with n rows (samples) and p columns (parameters). Ordinary standard
deviations take the errors e of all rows for independent; `estimation.regression.bootstrap` does
not. Nothing here knows robots, recordings or friction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimation.errors import DatasetError
from estimation.regression.bootstrap import draw_changes
from estimation.types import FloatArray

# A column that a dependency uses with less than this weight (of columns of length 1) is not named.
_INVOLVED = 1e-4


@dataclass(frozen=True, slots=True)
class LinearFit:
    """What least squares found.

    Attributes:
        parameters: Estimates θ, shape (p,).
        residuals: What the model leaves, τ - Φθ, shape (n,).
        sigma: Ordinary standard deviations of the parameters, from n - p degrees of freedom and
            as if all rows were independent, shape (p,); nan when n = p, which leaves none.
        condition: Largest over smallest singular value of Φ, its columns as they are.
    """

    parameters: FloatArray
    residuals: FloatArray
    sigma: FloatArray
    condition: float


def fit_linear(regressor: ArrayLike, target: ArrayLike) -> LinearFit:
    """Find the parameters θ that minimise ‖τ - Φθ‖, by QR of Φ with columns scaled to length 1.

    Args:
        regressor: Φ, shape (n, p), n ≥ p. With n = p it is solved exactly and sigma is nan.
        target: τ, shape (n,).

    Raises:
        DatasetError: Shapes do not match, a value is not finite, there are fewer rows than columns,
            or columns are linearly dependent.
    """
    phi, tau = _checked(regressor, target)
    return _Factors(phi).fit(phi, tau)


def bootstrap_blocks(
    regressor: ArrayLike,
    target: ArrayLike,
    blocks: ArrayLike,
    *,
    replicates: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Fit again and again to as many blocks, drawn with replacement.

    Args:
        regressor: Φ, shape (n, p).
        target: τ, shape (n,).
        blocks: To which block each row belongs, shape (n,): any numbers.
        replicates: How many draws.
        generator: Where chance comes from.

    Returns:
        Parameters of every draw, shape (replicates, p).

    Raises:
        DatasetError: As `fit_linear`; or there are fewer than two blocks or one replicate; or draws
            that determine all parameters hardly ever come.
    """
    phi, tau = _checked(regressor, target)
    labels = np.asarray(blocks)
    if labels.shape != tau.shape:
        raise DatasetError(
            f"block numbers have the shape {labels.shape}: expected one per row of {tau.size}",
            code="different-shapes",
        )
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    count = starts.size + 1
    if count < 2:
        raise DatasetError(
            "all rows are in one block, expected at least 2: use shorter blocks or a longer record",
            code="one-block",
        )
    if replicates < 1:
        raise DatasetError(f"{replicates} replicates, expected at least 1", code="few-replicates")
    factors = _Factors(phi)
    fit = factors.fit(phi, tau)
    with_errors = np.column_stack([factors.q, fit.residuals])[order]
    sums = np.stack([part.T @ part for part in np.split(with_errors, starts)])
    p = phi.shape[1]
    changes = draw_changes(
        sums[:, :p, :p], sums[:, :p, p], replicates=replicates, generator=generator
    )
    return fit.parameters + changes @ factors.inverse.T


class _Factors:
    """Φ = QR, of full rank, by way of columns scaled to length 1."""

    __slots__ = ("_scaled_r", "_scales", "inverse", "q")

    def __init__(self, phi: FloatArray) -> None:
        norms = np.linalg.norm(phi, axis=0)
        self._scales = np.where(norms > 0.0, norms, 1.0)
        self.q, self._scaled_r = np.linalg.qr(phi / self._scales)
        _, values, directions = np.linalg.svd(self._scaled_r)
        missing = values <= values[0] * max(phi.shape) * np.finfo(np.float64).eps
        if missing.any():
            weights = np.abs(directions[missing]).max(axis=0)
            columns = ", ".join(str(column) for column in np.flatnonzero(weights > _INVOLVED))
            raise DatasetError(
                f"the regressor has rank {np.sum(~missing)} of {phi.shape[1]}: columns {columns} "
                "are zero or depend linearly on each other, so the data do not determine their "
                "parameters; use data that move differently, or leave a column out",
                code="rank-deficient",
            )
        self.inverse = np.linalg.inv(self._scaled_r) / self._scales[:, None]  # of R

    def fit(self, phi: FloatArray, tau: FloatArray) -> LinearFit:
        rows, columns = phi.shape
        parameters = np.linalg.solve(self._scaled_r, self.q.T @ tau) / self._scales
        residuals = tau - phi @ parameters
        sigma = np.full(columns, np.nan)
        if rows > columns:
            variance = float(residuals @ residuals) / (rows - columns)
            sigma = np.sqrt(variance * np.sum(self.inverse**2, axis=1))
        condition = float(np.linalg.cond(self._scaled_r * self._scales))
        return LinearFit(parameters, residuals, sigma, condition)


def _checked(regressor: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
    phi, tau = _finite(regressor, "the regressor"), _finite(target, "the target")
    if phi.ndim != 2 or not phi.shape[1] or tau.shape != phi.shape[:1]:
        raise DatasetError(
            f"the regressor has the shape {phi.shape} and the target {tau.shape}: "
            "expected (n, p) and (n,)",
            code="different-shapes",
        )
    rows, columns = phi.shape
    if rows < columns:
        raise DatasetError(
            f"{rows} rows for {columns} parameters: expected at least {columns}; use more data or "
            "fewer parameters",
            code="few-rows",
        )
    return phi, tau


def _finite(values: ArrayLike, what: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        place = ", ".join(str(index) for index in wrong[0])
        raise DatasetError(
            f"{what} has {len(wrong)} values that are not finite, the first at [{place}]: "
            "leave these rows out",
            code="not-finite",
        )
    return array
