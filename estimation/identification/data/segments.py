"""Segments of several recordings, to be iterated again and again; short ones are read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from estimation.errors import DatasetError
from estimation.recordings.dataset import OpenDataset
from estimation.recordings.segment import Segment

KEPT_ROWS_MAX = 60_000
"""Rows that are kept in memory, of all recordings together: a minute at 1 kHz, some 20 MB."""
_LOOKED_AT = 4
"""Segments of each recording that count as its beginning."""


class Segments:
    """The segments of recordings, which are open for as long as this is used."""

    def __init__(self, datasets: Sequence[OpenDataset]) -> None:
        self._datasets = tuple(datasets)
        self._kept: dict[int, list[Segment]] = {}
        self._kept_rows = 0

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files."""
        return tuple(dataset.path for dataset in self._datasets)

    def __iter__(self) -> Iterator[Segment]:
        for number in range(len(self._datasets)):
            yield from self.of(number)

    def of(self, number: int) -> Iterator[Segment]:
        """Yield all segments of a recording, by its place among them."""
        if number in self._kept:
            yield from self._kept[number]
            return
        room = KEPT_ROWS_MAX - self._kept_rows
        kept: list[Segment] = []
        rows = 0
        for segment in self._datasets[number].segments():
            rows += len(segment)
            if rows <= room:
                kept.append(segment)
            else:
                kept.clear()
            yield segment
        if rows <= room:
            self._kept[number] = kept
            self._kept_rows += rows

    def beginnings(self) -> Iterator[Segment]:
        """Yield the first segments of each recording.

        Raises:
            DatasetError: A recording has none, or they differ in rate.
        """
        rate_hz: float | None = None
        for number, dataset in enumerate(self._datasets):
            is_empty = True
            for segment in islice(self.of(number), _LOOKED_AT):
                is_empty = False
                rate_hz = segment.rate_hz if rate_hz is None else rate_hz
                if round(segment.rate_hz - rate_hz, 3):
                    raise DatasetError(
                        f"the recordings have different rates ({rate_hz:g}, "
                        f"{segment.rate_hz:g} Hz): identify them one by one",
                        code="different-rates",
                    )
                yield segment
            if is_empty:
                why = _why(dataset)
                raise DatasetError(
                    f"{dataset.path}: holds no samples that could be used{why}",
                    code="no-usable-rows",
                )


def _why(dataset: OpenDataset) -> str:
    left_out = dataset.summary.left_out
    if not left_out:
        return "; it is empty"
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    return f": left out were {reasons} (`armature record info` shows what is in it)"
