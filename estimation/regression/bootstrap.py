"""The block bootstrap: what least squares would have found had other blocks of time come by.

Ordinary standard deviations take the errors of all rows for independent. Those of a sampled record
hardly ever are: friction that is not modelled lasts for as long as a motion does. The block
bootstrap takes only whole blocks of the record for independent.

References:
    H. R. Künsch, "The jackknife and the bootstrap for general stationary observations",
    The Annals of Statistics 17(3), 1989, doi:10.1214/aos/1176347265.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from estimation.errors import DatasetError
from estimation.types import FloatArray

_MISSING = 1e-10
"""A draw lacks a direction when it holds less than this of it, relative to the best one: far above
what rounding leaves of a missing one (1e-16), far below what a single block holds."""
_ATTEMPTS = 100


def draw_changes(
    grams: FloatArray,
    moments: FloatArray,
    *,
    replicates: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Draw as many blocks with replacement, again and again, and solve for the change of R·θ.

    With Φ = QR and e the residuals of the fit θ to all rows, a draw that holds block b c_b times
    gives exactly

        θ* = θ + R⁻¹ (Σ_b c_b Q_bᵀ Q_b)⁻¹ Σ_b c_b Q_bᵀ e_b

    so every block is summed up once, and all draws are solved together; the matrices to invert are
    near the identity however badly Φ is conditioned. A draw that leaves a parameter undetermined
    (say, a direction that no block of it moves in) is drawn again: results are conditional on data
    that determine all parameters, as the record itself does.

    Args:
        grams: Q_bᵀQ_b of each block, shape (n_blocks, p, p).
        moments: Q_bᵀe_b of each block, shape (n_blocks, p).
        replicates: How many draws.
        generator: Where chance comes from.

    Returns:
        R·(θ* − θ) of each draw, shape (replicates, p).

    Raises:
        DatasetError: Draws that determine all parameters hardly ever come.
    """
    count = len(grams)
    changes = np.empty((replicates, grams.shape[-1]))
    waiting = np.arange(replicates)
    for _ in range(_ATTEMPTS):
        counts = generator.multinomial(count, np.full(count, 1.0 / count), size=waiting.size)
        drawn = np.tensordot(counts.astype(float), grams, axes=1)
        held = np.linalg.eigvalsh(drawn)
        is_whole = held[:, 0] > _MISSING * held[:, -1]
        totals = (counts[is_whole] @ moments)[..., np.newaxis]
        changes[waiting[is_whole]] = np.linalg.solve(drawn[is_whole], totals)[..., 0]
        waiting = waiting[~is_whole]
        if not waiting.size:
            return changes
    raise DatasetError(
        f"{waiting.size} of {replicates} draws of {count} blocks leave a parameter undetermined, "
        f"{_ATTEMPTS} times over: too few blocks determine it; record for longer, or use shorter "
        "blocks or fewer parameters",
        code="undetermined-draws",
    )


def student_interval(
    value: float, replicates_column: ArrayLike, *, degrees: float
) -> tuple[float, float]:
    """Return the ends of value ∓ t(0.975, degrees)·(standard deviation of the replicates).

    Args:
        value: The estimate.
        replicates_column: The same parameter's replicates, shape (replicates,).
        degrees: Degrees of freedom: how many independent things (blocks, say) stand behind the
            standard deviation, less one.

    Raises:
        DatasetError: There are fewer than two replicates, or no degrees of freedom.
    """
    replicates = np.asarray(replicates_column, dtype=np.float64)
    if replicates.size < 2 or not degrees > 0:
        raise DatasetError(
            f"{replicates.size} replicates with {degrees:g} degrees of freedom give no interval: "
            "expected at least 2, and more than 0",
            code="few-replicates",
        )
    half = float(stdtrit(degrees, 0.975)) * float(np.std(replicates, ddof=1))
    return value - half, value + half
