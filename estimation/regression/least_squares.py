"""Linear least squares and how sure of its result one may be: pure computation.

The model is τ = Φθ + e with n rows (samples) and p columns (parameters). Ordinary standard
deviations take the errors e of all rows for independent. Those of a sampled record hardly ever
are: friction that is not modelled lasts for as long as a motion does. The block bootstrap only
takes long stretches of the record for independent, and tells what the parameters would have been
had other stretches come by. Nothing here knows robots, recordings or friction.

References:
    H. R. Künsch, "The jackknife and the bootstrap for general stationary observations",
    The Annals of Statistics 17(3), 1989, doi:10.1214/aos/1176347265.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from estimation.errors import DatasetError
from estimation.types import FloatArray, Rows

# A column that a dependency uses with less than this weight (of columns of length 1) is not named.
_INVOLVED = 1e-4
# A draw lacks a direction when it holds less than this of it, relative to the best one: far above
# what rounding leaves of a missing one (1e-16), far below what a single block holds.
_MISSING = 1e-10
_ATTEMPTS = 100


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

    Returns:
        Parameters, residuals, ordinary standard deviations and condition.

    Raises:
        DatasetError: Shapes do not match, a value is not finite, there are fewer rows than columns,
            or columns are linearly dependent.
    """
    phi, tau = _checked(regressor, target)
    return _Factors(phi).fit(phi, tau)


def block_numbers(rows: int, rows_per_block: int) -> Rows:
    """Cut a record into contiguous blocks, the last of which may be half as short or long again.

    Args:
        rows: Rows of the record.
        rows_per_block: Rows of a block: more than the errors remember.

    Returns:
        Each row's block, from 0, shape (rows,). A rest shorter than half a block goes to the block
        before it.

    Raises:
        DatasetError: There are no rows, or none in a block.
    """
    if rows < 1 or rows_per_block < 1:
        raise DatasetError(
            f"{rows} rows cannot be cut into blocks of {rows_per_block}: both must be at least 1"
        )
    blocks, rest = divmod(rows, rows_per_block)
    last = blocks if 2 * rest >= rows_per_block else blocks - 1
    return np.minimum(np.arange(rows) // rows_per_block, max(last, 0))


def bootstrap_blocks(
    regressor: ArrayLike,
    target: ArrayLike,
    blocks: ArrayLike,
    *,
    replicates: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Fit again and again to as many blocks, drawn with replacement.

    With Φ = QR and e the residuals of the fit to all rows, a draw that holds block b c_b times
    gives exactly

        θ* = θ + R⁻¹ (Σ_b c_b Q_bᵀ Q_b)⁻¹ Σ_b c_b Q_bᵀ e_b

    so every block is summed up once, and all draws are solved together; the matrices to invert are
    near the identity however badly Φ is conditioned. A draw that leaves a parameter undetermined
    (say, a direction that no block of it moves in) is drawn again: results are conditional on data
    that determine all parameters, as the record itself does.

    Args:
        regressor: Φ, shape (n, p).
        target: τ, shape (n,).
        blocks: To which block each row belongs, shape (n,): any numbers, e.g. `block_numbers`.
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
            f"block numbers have the shape {labels.shape}: one for each of {tau.size} rows is due"
        )
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    count = starts.size + 1
    if count < 2:
        raise DatasetError(
            "all rows are in one block, at least 2 are due: use shorter blocks or a longer record"
        )
    if replicates < 1:
        raise DatasetError(f"{replicates} replicates, at least 1 is due")
    factors = _Factors(phi)
    fit = factors.fit(phi, tau)
    with_errors = np.column_stack([factors.q, fit.residuals])[order]
    sums = np.stack([part.T @ part for part in np.split(with_errors, starts)])

    p = phi.shape[1]
    drawn = np.empty((replicates, p + 1, p + 1))
    waiting = np.arange(replicates)
    for _ in range(_ATTEMPTS):
        counts = generator.multinomial(count, np.full(count, 1.0 / count), size=waiting.size)
        drawn[waiting] = np.tensordot(counts.astype(float), sums, axes=1)
        held = np.linalg.eigvalsh(drawn[waiting, :p, :p])
        waiting = waiting[held[:, 0] <= _MISSING * held[:, -1]]
        if not waiting.size:
            break
    else:
        raise DatasetError(
            f"{waiting.size} of {replicates} draws of {count} blocks leave a parameter "
            f"undetermined, {_ATTEMPTS} times over: too few blocks tell something about it; use "
            "shorter blocks, a longer record or fewer parameters"
        )
    changes = np.linalg.solve(drawn[:, :p, :p], drawn[:, :p, p:])[..., 0]
    return fit.parameters + changes @ factors.inverse.T


def student_interval(
    value: float, replicates_column: ArrayLike, *, degrees: float
) -> tuple[float, float]:
    """Two-sided 95 % interval: value ∓ t(0.975, degrees)·(standard deviation of the replicates).

    Args:
        value: The estimate.
        replicates_column: The same parameter's replicates, shape (replicates,).
        degrees: Degrees of freedom: how many independent things (blocks, say) stand behind the
            standard deviation, less one.

    Returns:
        Lower and upper end.

    Raises:
        DatasetError: There are fewer than two replicates, or no degrees of freedom.
    """
    replicates = np.asarray(replicates_column, dtype=np.float64)
    if replicates.size < 2 or not degrees > 0:
        raise DatasetError(
            f"{replicates.size} replicates with {degrees:g} degrees of freedom give no interval: "
            "at least 2, and more than 0, are due"
        )
    half = float(stdtrit(degrees, 0.975)) * float(np.std(replicates, ddof=1))
    return value - half, value + half


def relative_error_percent(target: ArrayLike, prediction: ArrayLike) -> float:
    """Error of a prediction: 100·‖τ - Φθ‖/‖τ‖.

    Args:
        target: τ, shape (n,).
        prediction: Φθ, shape (n,).

    Returns:
        Percent.

    Raises:
        DatasetError: Shapes do not match, a value is not finite, or the target is zero throughout.
    """
    tau = _finite(target, "the target")
    predicted = _finite(prediction, "the prediction")
    if tau.shape != predicted.shape:
        raise DatasetError(
            f"the target has the shape {tau.shape} and its prediction {predicted.shape}: "
            "they must be the same"
        )
    norm = float(np.linalg.norm(tau))
    if norm == 0.0:
        raise DatasetError("the target is zero throughout: no error is relative to that")
    return 100.0 * float(np.linalg.norm(tau - predicted)) / norm


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
                "are zero or depend linearly on each other, so the data do not tell their "
                "parameters; use data that move differently, or leave a column out"
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
            "(n, p) and (n,) are due"
        )
    rows, columns = phi.shape
    if rows < columns:
        raise DatasetError(
            f"{rows} rows for {columns} parameters: at least {columns} are due; use more data or "
            "fewer parameters"
        )
    return phi, tau


def _finite(values: ArrayLike, what: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        place = ", ".join(str(index) for index in wrong[0])
        raise DatasetError(
            f"{what} has {len(wrong)} values that are not finite, the first at [{place}]: "
            "leave these rows out"
        )
    return array
