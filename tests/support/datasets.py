"""Recordings as `estimation` sees them; files are closed when nobody uses them any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from daq.recording import open_recording
from estimation.identification.data.samples import Segments
from estimation.recordings.dataset import ROWS_MAX, OpenDataset
from estimation.recordings.segment import Segment
from estimation.recordings.usable_rows import DatasetSummary


def open_dataset(path: Path, **options: Any) -> OpenDataset:
    return OpenDataset(open_recording(path), **options)


def read_segments(
    path: Path, *, rows_max: int = ROWS_MAX, overlap_rows: int | None = None, **options: Any
) -> Iterator[Segment]:
    with open_recording(path) as recording:
        dataset = OpenDataset(recording, **options)
        yield from dataset.segments(rows_max=rows_max, overlap_rows=overlap_rows)


def open_segments(paths: Sequence[Path]) -> Segments:
    return Segments([open_dataset(path) for path in paths])


def summarise(path: Path, **options: Any) -> DatasetSummary:
    return open_dataset(path, **options).summary
