"""Triangular factors of samples: what every estimator sees, however long the recording.

With QR of [Φ₁ τ τ_raw] = QR per joint and block of time, ‖τ − Φ₁β‖ = ‖R·[−β, 1, 0]‖ for every β:
weights of joints, held-out blocks, drawn blocks and errors per joint all follow from the factors.
`estimation.identification.data.reduction` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimation.types import FloatArray, Rows


@dataclass(frozen=True)
class Factors:
    """Triangular factors of [Φ₁ τ τ_raw].

    Attributes:
        blocks: Shape (n_blocks, n_joints, r + 2, r + 2).
        rows: Samples in each, shape (n_blocks, n_joints).
        clusters: Blocks with one number are drawn together, shape (n_blocks,): in a motion that
            repeats itself, those of the same phase. What the model lacks (cogging, say) repeats
            itself as well, so that a second period holds no new information on it.
    """

    blocks: FloatArray
    rows: NDArray[np.int64]
    clusters: Rows

    @property
    def rank(self) -> int:
        """The number of columns of Φ₁."""
        return int(self.blocks.shape[-1]) - 2

    @property
    def joint_count(self) -> int:
        """The number of joints."""
        return int(self.blocks.shape[1])

    @property
    def block_count(self) -> int:
        """The number of blocks of time."""
        return int(self.blocks.shape[0])

    @property
    def sample_count(self) -> int:
        """The number of rows of all joints together."""
        return int(self.rows.sum())

    @cached_property
    def of_joints(self) -> FloatArray:
        """The factor of all blocks of each joint, shape (n_joints, r + 2, r + 2)."""
        columns = self.rank + 2
        joints = self.blocks.transpose(1, 0, 2, 3).reshape(self.joint_count, -1, columns)
        return np.stack([triangular(joint) for joint in joints])

    def total(self, joint_weights: ArrayLike | None = None) -> FloatArray:
        """Return the factor of everything, upper triangular, shape (r + 2, r + 2).

        Rows of each joint are multiplied by its weight, shape (n_joints,), if there are weights.
        """
        if joint_weights is None:
            return self._total
        weights = np.asarray(joint_weights, dtype=np.float64)[:, np.newaxis, np.newaxis]
        return triangular((weights * self.of_joints).reshape(-1, self.rank + 2))

    @cached_property
    def _total(self) -> FloatArray:
        return triangular(self.of_joints.reshape(-1, self.rank + 2))

    def united(self, other: Factors) -> Factors:
        """Return these blocks and others."""
        return Factors(
            np.concatenate([self.blocks, other.blocks]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.clusters, other.clusters]),
        )

    def summed(self) -> Factors:
        """Return the same as one block, for errors: it takes next to no memory."""
        return Factors(
            self.of_joints[np.newaxis], self.rows.sum(axis=0, keepdims=True), np.zeros(1, np.intp)
        )

    def select(self, blocks: ArrayLike) -> Factors:
        """Return some of the blocks, by number."""
        chosen = np.asarray(blocks, dtype=np.intp)
        return Factors(self.blocks[chosen], self.rows[chosen], self.clusters[chosen])

    def joint_errors(
        self, beta: ArrayLike, *, is_raw: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return ‖τ − Φ₁β‖ and ‖τ‖ of each joint, shape (n_joints,) each.

        Raw: against the torque before it was filtered.
        """
        target = self.rank + 1 if is_raw else self.rank
        direction = np.zeros(self.rank + 2)
        direction[: self.rank] = -np.asarray(beta, dtype=np.float64)
        direction[target] = 1.0
        norms = np.linalg.norm(self.of_joints @ direction, axis=1)
        sizes = np.linalg.norm(self.of_joints[..., target], axis=1)
        return norms, sizes

    def error_percent(
        self, beta: ArrayLike, *, is_raw: bool = False
    ) -> tuple[float, tuple[float, ...]]:
        """Return ε_τ = 100·‖τ − Φθ‖/‖τ‖, of all joints together and of each.

        0 for a joint whose torque is zero throughout; raw as in `joint_errors`.
        """
        norms, sizes = self.joint_errors(beta, is_raw=is_raw)
        total = 100.0 * float(np.linalg.norm(norms) / np.linalg.norm(sizes))
        each = 100.0 * norms / np.where(sizes > 0.0, sizes, 1.0)
        return total, tuple(each.tolist())

    def rms_nm(self, beta: ArrayLike) -> FloatArray:
        """Return the root mean square of the residuals of each joint, shape (n_joints,)."""
        norms, _ = self.joint_errors(beta)
        rms: FloatArray = norms / np.sqrt(np.maximum(self.rows.sum(axis=0), 1))
        return rms


class ReducedSamples(NamedTuple):
    """What is left of the samples of some recordings: their factors.

    Attributes:
        moving: Of the rows that count.
        everything: Of all rows, as one block.
    """

    moving: Factors
    everything: Factors


def triangular(matrix: FloatArray) -> FloatArray:
    """Return R of a QR decomposition, square whatever the number of rows."""
    columns = matrix.shape[1]
    if matrix.shape[0] < columns:
        matrix = np.vstack([matrix, np.zeros((columns - matrix.shape[0], columns))])
    return np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)


def folds(factors: Factors, *, count: int = 5, guard: int = 1) -> Iterator[tuple[Factors, Factors]]:
    """Yield training and held-out factors for cross-validation: contiguous parts of the time.

    Blocks of one cluster go together: of a motion that repeats itself, a part is held out of every
    period. Otherwise the same motion would be trained on. `guard` clusters on either side of a part
    are left out of its training data; so are parts that leave too little to train on.
    """
    # Ranks of the clusters: of recordings, then of time or phase within each.
    distinct, ranks = np.unique(factors.clusters, return_inverse=True)
    for part in np.array_split(np.arange(len(distinct)), count):
        if not len(part):
            continue
        is_held = (ranks >= part[0]) & (ranks <= part[-1])
        is_near = (ranks >= part[0] - guard) & (ranks <= part[-1] + guard)
        if int(factors.rows[~is_near].sum()) > 2 * factors.rank:
            yield factors.select(np.flatnonzero(~is_near)), factors.select(np.flatnonzero(is_held))
