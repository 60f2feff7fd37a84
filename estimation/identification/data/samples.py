"""Samples of several recordings, raw and prepared: iterated again and again in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from estimation.errors import DatasetError
from estimation.identification.request import Overrides
from estimation.recordings.dataset import OpenDataset
from estimation.recordings.segment import Segment
from estimation.signals.preparation import PreparationSettings, Prepared, choose_settings, prepare
from estimation.signals.repetition import average_repetitions, find_period_s
from estimation.types import FloatArray

KEPT_RAW_ROWS_MAX = 60_000
"""Rows of segments that are kept in memory: a minute at 1 kHz, some 20 MB."""
_LOOKED_AT = 4
"""Segments of each recording that count as its beginning."""
KEPT_ROWS_MAX = 250_000
"""Prepared rows that are kept in memory; more are read and prepared again each time."""
SLOW_SHARE = 0.03
"""Of a joint's highest speed: below this a joint may stick, and its friction is not known."""


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
        room = KEPT_RAW_ROWS_MAX - self._kept_rows
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


class Samples:
    """The prepared samples of recordings, in order; iterate as often as needed.

    Attributes:
        paths: The recordings.
        settings: How they are prepared.
        lost_share: Share of samples that were lost or late; known after the first iteration.
        periods: That were averaged over, of the recording with the fewest; 0 where none were.
    """

    def __init__(
        self,
        segments: Segments,
        settings: PreparationSettings,
        switching: Callable[[FloatArray], FloatArray],
        overrides: Overrides,
    ) -> None:
        self._segments = segments
        self.paths = segments.paths
        self.settings = settings
        self._switching = switching
        self._overrides = overrides
        self._kept: list[tuple[int, Prepared]] | None = None
        self.lost_share = 0.0
        self.periods = 0

    def __iter__(self) -> Iterator[tuple[int, Prepared]]:
        """Yield the number of a recording, and samples of one segment of it."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[tuple[int, Prepared]] | None = []
        rows, samples, lost = 0, 0, 0
        for number in range(len(self.paths)):
            for segment in self._segments.of(number):
                samples += len(segment)
                lost += 0 if segment.is_in_gap is None else int(segment.is_in_gap.sum())
                prepared = self._cut(prepare(segment, self.settings, self._switching), segment)
                if not len(prepared):
                    continue
                if self._overrides.is_averaged:
                    average = average_repetitions(prepared)
                    prepared = average.prepared
                    self.periods = min(self.periods or average.periods, average.periods)
                yield number, prepared
                rows += len(prepared)
                if kept is not None and rows <= KEPT_ROWS_MAX:
                    kept.append((number, prepared))
                else:
                    kept = None
        self._kept = kept
        self.lost_share = lost / max(samples, 1)

    def repeats_s(self) -> list[float | None]:
        """Return the period of each recording's motion; None where it does not repeat itself."""
        first: dict[int, Prepared] = {}
        for number, prepared in self:
            first.setdefault(number, prepared)
        return [
            find_period_s(first[number]) if number in first else None
            for number in range(len(self.paths))
        ]

    def prepared(self) -> Iterator[Prepared]:
        """Yield the same, without numbers."""
        return (prepared for _, prepared in self)

    def _cut(self, prepared: Prepared, segment: Segment) -> Prepared:
        first, last = self._overrides.rows
        if (first, last) == (0.0, 1.0) and not self._overrides.is_outside:
            return prepared
        total_s = (segment.rows_before + len(segment) + segment.rows_after) * segment.period_s
        start_s = segment.t_s[0] - segment.rows_before * segment.period_s
        share = (prepared.t_s - start_s) / total_s
        inside = (share >= first) & (share < last)
        if self._overrides.is_outside:
            inside = ~inside
        return prepared.select(inside)


def choose_preparation(
    segments: Segments, overrides: Overrides
) -> tuple[PreparationSettings, tuple[str, ...]]:
    """Choose how recordings of one rate are prepared, and say why, from the beginning of each.

    Raises:
        DatasetError: A recording has no usable samples, or they differ in rate.
    """
    settings, notes = choose_settings(
        segments.beginnings(),
        cutoff_hz=overrides.cutoff_hz,
        velocity=overrides.velocity,
        method=overrides.method,
        differences=overrides.differences,
    )
    if overrides.slow_rad_s == 0.0:
        return settings, notes
    if overrides.slow_rad_s is not None:
        return replace(settings, exclude_slow_rad_s=overrides.slow_rad_s), notes
    speeds = [
        np.abs(part.dq_rad_s).max(axis=0)
        for segment in segments.beginnings()
        if len(part := prepare(segment, settings))
    ]
    if not speeds:
        raise DatasetError(
            f"{', '.join(map(str, segments.paths))}: too short: nothing is left once the borders "
            f"of filtered segments are trimmed (low-pass at {settings.cutoff_hz:g} Hz)",
            code="too-short",
        )
    fastest = np.max(speeds, axis=0)
    limits = tuple(float(f"{SLOW_SHARE * speed:.3g}") for speed in fastest)
    shown = ", ".join(f"{limit:g}" for limit in limits)
    note = f"a joint slower than {shown} rad/s does not count in the fit: it may stick there"
    return replace(settings, exclude_slow_rad_s=limits), (*notes, note)


def _why(dataset: OpenDataset) -> str:
    left_out = dataset.summary.left_out
    if not left_out:
        return "; it is empty"
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    return f": left out were {reasons} (`armature record info` shows what is in it)"
