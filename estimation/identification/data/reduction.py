"""Reduces samples to triangular factors, piece by piece (`estimation.identification.data.factors`).

Factors are kept per block of time and joint; when blocks become too many, neighbours are united, so
that memory does not depend on the number of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimation.errors import DatasetError
from estimation.identification.data.factors import Factors, triangular
from estimation.identification.request import BLOCK_S
from estimation.model.base import BaseParameters
from estimation.model.regressor import Regressor
from estimation.signals.preparation import Prepared
from estimation.types import Flags, FloatArray

BLOCKS_MAX = 400
PIECE_SAMPLES = 2000
"""Rows of Φ that are in memory at once."""


def design(
    regressor: Regressor, base: BaseParameters, prepared: Prepared, piece: slice
) -> FloatArray:
    """Return [Φ₁ τ τ_raw] of some rows, shape (n_rows, n_joints, r + 2)."""
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
        joints, columns = regressor.parameters.joint_count, base.rank + 2
        nothing = np.zeros((joints, columns, columns)), np.zeros(joints, np.int64)
        self._left_out = _Block(*nothing, (0, 0))

    def add(self, prepared: Prepared, group: int = 0) -> None:
        """Take in samples of one segment of a recording; `group` is the number of the recording."""
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
        """Return the factors of the rows that count.

        Raises:
            DatasetError: There are none.
        """
        if not any(block.rows.any() for block in self._blocks):
            raise DatasetError(
                "no rows are left once borders are trimmed and slow rows excluded: record for "
                "longer, move faster, or exclude less",
                code="no-rows",
            )
        return _stacked(self._blocks)

    def left_out(self) -> Factors:
        """Return the factors of the rows that do not count, as one block."""
        return _stacked([self._left_out])

    def _reduce(self, prepared: Prepared, piece: slice, place: tuple[int, int]) -> _Block:
        columns = design(self._regressor, self._base, prepared, piece)
        use = prepared.use[piece]
        self._left_out = self._left_out.united(_Block(*_reduced(columns, ~use), (0, 0)))
        return _Block(*_reduced(columns, use), place)

    def _halve(self) -> bool:
        """Unite neighbours of one recording: memory stays, blocks become longer.

        Returns whether any were; not when there are as many recordings as blocks.
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
    """Factors and rows of one segment of time, by joint.

    Its place is the number of its recording, and its phase there.
    """

    factors: FloatArray
    rows: NDArray[np.int64]
    place: tuple[int, int]

    def united(self, other: _Block) -> _Block:
        pairs = np.concatenate([self.factors, other.factors], axis=1)
        factors = np.stack([triangular(pair) for pair in pairs])
        return _Block(factors, self.rows + other.rows, self.place)


def _reduced(columns: FloatArray, rows: Flags) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the factors of some rows by joint, and how many these are."""
    joints = range(columns.shape[1])
    factors = [triangular(columns[rows[:, joint], joint]) for joint in joints]
    return np.stack(factors), rows.sum(axis=0)


def _stacked(blocks: Sequence[_Block]) -> Factors:
    return Factors(
        np.stack([block.factors for block in blocks]),
        np.stack([block.rows for block in blocks]),
        np.unique([_number(block.place) for block in blocks], return_inverse=True)[1],
    )


def _number(place: tuple[int, int]) -> int:
    recording, phase = place
    return (recording << 32) + phase


def _cut(t_s: FloatArray, block_s: float, repeats_s: float | None) -> tuple[list[int], list[int]]:
    """Return the rows at which blocks begin, and the phase of each.

    The phase is the block's number where the motion does not repeat itself.

    Blocks divide a period evenly. A remainder shorter than half a block joins the one before.
    """
    if not len(t_s):
        return [], []
    per_period = 0 if repeats_s is None else max(1, round(repeats_s / block_s))
    length_s = block_s if repeats_s is None else repeats_s / per_period
    # By the recording's own time, so that the parts of a long segment stay in step.
    numbers = np.floor(t_s / length_s + 1e-6).astype(np.int64)
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    if len(starts) > 2 and len(t_s) - starts[-1] < 0.5 * (starts[1] - starts[0]):
        starts.pop()
    phases = numbers[starts]
    return starts, (phases % per_period if per_period else phases).tolist()
