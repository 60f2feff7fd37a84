"""Samples reduced to triangular factors: what every estimator sees, however long the recording.

With QR of [Φ₁ τ τ_raw] = QR per joint and block of time, ‖τ − Φ₁β‖ = ‖R·[−β, 1, 0]‖ for every β:
weights of joints, held-out blocks, drawn blocks and errors per joint all follow from the factors.
Factors are kept per block and joint; when blocks become too many, neighbours are united, so that
memory does not depend on the number of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimation.errors import DatasetError
from estimation.model.base import BaseParameters
from estimation.model.regressor import Regressor
from estimation.preparation import Prepared

FloatArray = NDArray[np.float64]

BLOCK_S = 0.5
"""Length of a block: ten times what residuals remember after filters of 15 Hz and more."""
BLOCKS_MAX = 400
PIECE_SAMPLES = 2000
"""Rows of Φ that are in memory at once."""


@dataclass(frozen=True)
class Factors:
    """Triangular factors of [Φ₁ τ τ_raw].

    Attributes:
        blocks: Shape (n_blocks, n_joints, r + 2, r + 2).
        rows: Samples in each, shape (n_blocks, n_joints).
        clusters: Blocks with one number are drawn together, shape (n_blocks,): in a motion that
            repeats itself, those of the same phase. What the model lacks (cogging, say) repeats
            itself as well, so that a second period tells nothing new of it.
    """

    blocks: FloatArray
    rows: NDArray[np.int64]
    clusters: NDArray[np.intp]

    @property
    def rank(self) -> int:
        """Columns of Φ₁."""
        return int(self.blocks.shape[-1]) - 2

    @property
    def joint_count(self) -> int:
        """How many joints."""
        return int(self.blocks.shape[1])

    @property
    def block_count(self) -> int:
        """How many blocks of time."""
        return int(self.blocks.shape[0])

    @property
    def sample_count(self) -> int:
        """Rows of all joints together."""
        return int(self.rows.sum())

    @cached_property
    def of_joints(self) -> FloatArray:
        """The factor of all blocks of each joint, shape (n_joints, r + 2, r + 2)."""
        columns = self.rank + 2
        joints = self.blocks.transpose(1, 0, 2, 3).reshape(self.joint_count, -1, columns)
        return np.stack([triangular(joint) for joint in joints])

    def total(self, joint_weights: ArrayLike | None = None) -> FloatArray:
        """The factor of everything.

        Args:
            joint_weights: What rows of each joint are multiplied by, shape (n_joints,); 1 if none.

        Returns:
            Shape (r + 2, r + 2), upper triangular.
        """
        if joint_weights is None:
            return self._total
        weights = np.asarray(joint_weights, dtype=np.float64)[:, np.newaxis, np.newaxis]
        return triangular((weights * self.of_joints).reshape(-1, self.rank + 2))

    @cached_property
    def _total(self) -> FloatArray:
        return triangular(self.of_joints.reshape(-1, self.rank + 2))

    def united(self, other: Factors) -> Factors:
        """These blocks and others."""
        return Factors(
            np.concatenate([self.blocks, other.blocks]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.clusters, other.clusters]),
        )

    def select(self, blocks: ArrayLike) -> Factors:
        """Some of the blocks, by number."""
        chosen = np.asarray(blocks, dtype=np.intp)
        return Factors(self.blocks[chosen], self.rows[chosen], self.clusters[chosen])

    def joint_errors(
        self, beta: ArrayLike, *, is_raw: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """How far the prediction of each joint's torque is off.

        Args:
            beta: Base parameters, shape (r,).
            is_raw: Whether to compare with the torque before it was filtered.

        Returns:
            ‖τ − Φ₁β‖ and ‖τ‖ of each joint, shape (n_joints,) each.
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
        """ε_τ = 100·‖τ − Φθ‖/‖τ‖, of all joints together and of each.

        Args:
            beta: Base parameters, shape (r,).
            is_raw: Whether to compare with the torque before it was filtered.

        Returns:
            In total, and per joint (0 for a joint whose torque is zero throughout).
        """
        norms, sizes = self.joint_errors(beta, is_raw=is_raw)
        total = 100.0 * float(np.linalg.norm(norms) / np.linalg.norm(sizes))
        each = 100.0 * norms / np.where(sizes > 0.0, sizes, 1.0)
        return total, tuple(each.tolist())

    def rms_nm(self, beta: ArrayLike) -> FloatArray:
        """Root mean square of what the prediction leaves, per joint, shape (n_joints,)."""
        norms, _ = self.joint_errors(beta)
        rms: FloatArray = norms / np.sqrt(np.maximum(self.rows.sum(axis=0), 1))
        return rms


def triangular(matrix: FloatArray) -> FloatArray:
    """R of a QR decomposition, square whatever the number of rows."""
    columns = matrix.shape[1]
    if matrix.shape[0] < columns:
        matrix = np.vstack([matrix, np.zeros((columns - matrix.shape[0], columns))])
    return np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)


def design(
    regressor: Regressor, base: BaseParameters, prepared: Prepared, piece: slice
) -> FloatArray:
    """[Φ₁ τ τ_raw] of some rows.

    Args:
        regressor: Of the arm.
        base: Its base parameters.
        prepared: The samples.
        piece: Which of their rows.

    Returns:
        Shape (n_rows, n_joints, r + 2).
    """
    phi = regressor(
        prepared.q_rad[piece],
        prepared.dq_rad_s[piece],
        prepared.ddq_rad_s2[piece],
        None if prepared.switching is None else prepared.switching[piece],
    )
    targets = np.stack([prepared.tau_nm[piece], prepared.tau_raw_nm[piece]], axis=2)
    return np.concatenate([base.columns(phi), targets], axis=2)


class Reducer:
    """Takes prepared samples in, piece by piece, and keeps their factors.

    Args:
        regressor: Of the arm.
        base: Its base parameters.
        block_s: Length of a block.
        repeats_s: Period of each recording's motion, by its number; None where it has none.
    """

    def __init__(
        self,
        regressor: Regressor,
        base: BaseParameters,
        *,
        block_s: float = BLOCK_S,
        repeats_s: Sequence[float | None] = (),
    ) -> None:
        self._regressor = regressor
        self._base = base
        self._block_s = block_s
        self._repeats_s = repeats_s
        self._blocks: list[_Block] = []

    def add(self, prepared: Prepared, group: int = 0) -> None:
        """Take samples in.

        Args:
            prepared: Samples of one stretch of a recording.
            group: Which recording it is.
        """
        repeats_s = self._repeats_s[group] if group < len(self._repeats_s) else None
        starts, phases = _cut(prepared.t_s, self._block_s, repeats_s)
        ends = [*starts[1:], len(prepared)]
        for begin, end, phase in zip(starts, ends, phases, strict=True):
            block: _Block | None = None
            for first in range(begin, end, PIECE_SAMPLES):
                piece = slice(first, min(first + PIECE_SAMPLES, end))
                part = self._reduce(prepared, piece, (group, phase))
                block = part if block is None else block.united(part)
            if block is not None:
                self._blocks.append(block)
        while len(self._blocks) > BLOCKS_MAX and self._halve():
            pass

    def factors(self) -> Factors:
        """Of the rows that count.

        Raises:
            DatasetError: There is none.
        """
        return self._stacked(counts=True)

    def left_out(self) -> Factors:
        """Of the rows that do not count.

        Raises:
            DatasetError: Nothing was taken in at all.
        """
        return self._stacked(counts=False)

    def _stacked(self, *, counts: bool) -> Factors:
        if not self._blocks or (counts and not any(block.rows[0].any() for block in self._blocks)):
            raise DatasetError(
                "no rows are left once borders are trimmed and slow rows excluded: record for "
                "longer, move faster, or exclude less"
            )
        place = 0 if counts else 1
        return Factors(
            np.stack([block.factors[place] for block in self._blocks]),
            np.stack([block.rows[place] for block in self._blocks]),
            np.unique([_number(block.place) for block in self._blocks], return_inverse=True)[1],
        )

    def _reduce(self, prepared: Prepared, piece: slice, place: tuple[int, int]) -> _Block:
        columns = design(self._regressor, self._base, prepared, piece)
        use = prepared.use[piece]
        joints = range(columns.shape[1])
        factors = np.stack(
            [
                np.stack([triangular(columns[rows[:, joint], joint]) for joint in joints])
                for rows in (use, ~use)
            ]
        )
        return _Block(factors, np.stack([use.sum(axis=0), (~use).sum(axis=0)]), place)

    def _halve(self) -> bool:
        """Unite neighbours of one recording: memory stays, blocks become longer.

        Returns:
            Whether any were; not when there are as many recordings as blocks.
        """
        united: list[_Block] = []
        is_open = False  # whether the last one may still take its neighbour in
        for block in self._blocks:
            is_open = is_open and united[-1].place[0] == block.place[0]
            if is_open:
                united[-1] = united[-1].united(block)
            else:
                united.append(block)
            is_open = not is_open
        is_shorter = len(united) < len(self._blocks)
        # Phases are counted in blocks, which are twice as long now.
        self._blocks = [b._replace(place=(b.place[0], b.place[1] // 2)) for b in united]
        self._block_s *= 2.0
        return is_shorter


class _Block(NamedTuple):
    """Factors and rows of one stretch of time: those that count, then the others.

    Its place is the number of its recording, and its phase there.
    """

    factors: FloatArray
    rows: NDArray[np.int64]
    place: tuple[int, int]

    def united(self, other: _Block) -> _Block:
        pairs = np.concatenate([self.factors, other.factors], axis=2)
        factors = np.stack([np.stack([triangular(pair) for pair in part]) for part in pairs])
        return _Block(factors, self.rows + other.rows, self.place)


def folds(factors: Factors, *, count: int = 5, guard: int = 1) -> Iterator[tuple[Factors, Factors]]:
    """Contiguous parts of the time for cross-validation, with a gap to either side of each.

    Args:
        factors: Of a recording.
        count: How many parts.
        guard: Blocks left out of the training data beside the part that is held out.

    Yields:
        Training and held-out factors; parts that leave too little to train on are left out.
    """
    numbers = np.arange(factors.block_count)
    for part in np.array_split(numbers, count):
        if not len(part):
            continue
        is_near = (numbers >= part[0] - guard) & (numbers <= part[-1] + guard)
        training = numbers[~is_near]
        if int(factors.rows[training].sum()) > 2 * factors.rank:
            yield factors.select(training), factors.select(part)


def _number(place: tuple[int, int]) -> int:
    recording, phase = place
    return (recording << 32) + phase


def _cut(t_s: FloatArray, block_s: float, repeats_s: float | None) -> tuple[list[int], list[int]]:
    """Rows at which blocks begin, and the phase of each: its number where nothing repeats itself.

    Blocks divide a period evenly. A rest shorter than half a block goes to the one before.
    """
    if not len(t_s):
        return [], []
    per_period = 0 if repeats_s is None else max(1, round(repeats_s / block_s))
    length_s = block_s if repeats_s is None else repeats_s / per_period
    # By the recording's own time, so that the pieces of a long run go on in step.
    numbers = np.floor(t_s / length_s + 1e-6).astype(np.int64)
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    if len(starts) > 2 and len(t_s) - starts[-1] < 0.5 * (starts[1] - starts[0]):
        starts.pop()
    phases = numbers[starts]
    return starts, (phases % per_period if per_period else phases).tolist()
