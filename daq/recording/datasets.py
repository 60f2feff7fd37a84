"""Datasets that grow: how they are made, compressed and filled."""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np

from daq.recording.info import RecordingInfo
from daq.recording.layout import ColumnAxis, Dataset
from daq.recording.text import plain

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_ROWS = 16384
"""Samples in a chunk of the file. Joints have chunks of their own: that compresses best."""
_TABLE_CHUNK_ROWS = 1024
_GZIP_LEVEL = 3


class ColumnWriter:
    """A dataset of the samples and the rows that wait for a full chunk.

    Attributes:
        count: Rows in the file.
        checksum: CRC-32 of them.
    """

    def __init__(self, group: h5py.Group, layout: Dataset, info: RecordingInfo) -> None:
        columns = () if layout.axis is ColumnAxis.NONE else (info.width(layout.axis),)
        self._dataset = _create(group, layout, columns, (CHUNK_ROWS, *(1 for _ in columns)))
        self._rows = np.zeros((CHUNK_ROWS, *columns), layout.dtype)
        self._waiting = 0
        self._grid = None
        if layout.name in info.grids:
            self._grid = np.array(info.grids[layout.name])
            self._dataset.attrs["grid"] = self._grid
        self.count = 0
        self.checksum = 0

    def append(self, values: Array) -> None:
        """Add rows, rounded to the column's grid; writes them when a chunk is full."""
        start = 0
        while start < len(values):
            part = values[start : start + CHUNK_ROWS - self._waiting]
            end = self._waiting + len(part)
            if self._grid is not None:
                # The sum makes -0 plain 0.
                part = np.rint(part / self._grid) * self._grid + 0.0
            self._rows[self._waiting : end] = part
            self._waiting = end
            start += len(part)
            if end == CHUNK_ROWS:
                self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        rows: Any = self._rows[: self._waiting]
        self.checksum = zlib.crc32(rows, self.checksum)
        end = self.count + len(rows)
        self._dataset.resize(end, axis=0)
        self._dataset[self.count : end] = rows
        self.count, self._waiting = end, 0


class TableWriter:
    """A group of datasets with a row per entry."""

    def __init__(
        self, group: h5py.Group, layouts: tuple[Dataset, ...], info: RecordingInfo
    ) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._count = 0
        self._datasets = []
        for layout in layouts:
            columns = () if layout.axis is ColumnAxis.NONE else (info.width(layout.axis),)
            self._datasets.append(_create(group, layout, columns, (_TABLE_CHUNK_ROWS, *columns)))
        self._are_texts = [layout.dtype == "str" for layout in layouts]

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        """Add rows; writes them when they are many."""
        self._rows += rows
        if len(self._rows) >= _TABLE_CHUNK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        if not self._rows:
            return
        end = self._count + len(self._rows)
        columns = zip(*self._rows, strict=True)
        for dataset, is_text, values in zip(self._datasets, self._are_texts, columns, strict=True):
            dataset.resize(end, axis=0)
            dataset[self._count :] = list(map(plain, values)) if is_text else np.array(values)
        self._count, self._rows = end, []


def _create(
    group: h5py.Group, layout: Dataset, columns: tuple[int, ...], chunks: tuple[int, ...]
) -> h5py.Dataset:
    is_text = layout.dtype == "str"
    dataset = group.create_dataset(
        layout.name,
        shape=(0, *columns),
        # A robot without boards has columns of no width, which HDF5 only takes if they may grow.
        maxshape=(None, *(width or None for width in columns)),
        dtype=h5py.string_dtype() if is_text else layout.dtype,
        chunks=chunks,
        shuffle=None if is_text else True,
        compression=None if is_text else "gzip",
        compression_opts=None if is_text else _GZIP_LEVEL,
    )
    dataset.attrs["unit"] = layout.unit
    dataset.attrs["description"] = layout.description
    for key, names in (("code", layout.codes), ("bit", layout.bits)):
        if names:
            dataset.attrs[f"{key}s"] = np.array(list(names), np.int64)
            dataset.attrs.create(f"{key}_names", list(names.values()), dtype=h5py.string_dtype())
    return dataset
