"""Recordings as `estimation` sees them; files are closed when nobody uses them any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daq.recording import open_recording
from estimation.identification.data.segments import Segments
from estimation.recordings.dataset import OpenDataset
from estimation.recordings.usable_rows import DatasetSummary


def open_dataset(path: Path, **options: Any) -> OpenDataset:
    return OpenDataset(open_recording(path), **options)


def open_segments(paths: Sequence[Path]) -> Segments:
    return Segments([open_dataset(path) for path in paths])


def summarise(path: Path, **options: Any) -> DatasetSummary:
    return open_dataset(path, **options).summary
