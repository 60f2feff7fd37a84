"""Whether what a file declares can be in it: looked at before anything is read.

A few bytes can declare any number of rows, and gzip can hide gigabytes in a chunk. Whoever reads
such a file would be busy for hours, or run out of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import h5py

from daq.recording.errors import RecordingFormatError

ROWS_MAX = 1 << 32
"""Samples: 50 days at 1 kHz, some 200 GB."""
ENTRIES_MAX = 1_000_000
"""Entries of a table beyond one per sample and board: of damaged replies there are no more."""
CHUNK_BYTES_MAX = 8 << 20
"""Ours have 128 kB, those that h5py and h5repack choose at most 1 MB."""
_INFLATED_MAX = 1100
"""Deflate makes at most 1032 bytes out of one."""
_STORED_SMALL = 1 << 20
"""What is stored in so little cannot become more than a gigabyte."""

_REFERENCE_BYTES = 16
"""What a text takes in its dataset; itself it is elsewhere in the file."""


def check_rows(path: Path, group: str, rows: int, limit: int) -> None:
    """Checks how many rows a group declares.

    Args:
        path: The file.
        group: Its name.
        rows: How many.
        limit: How many it may.

    Raises:
        RecordingFormatError: They are too many.
    """
    if rows > limit:
        raise RecordingFormatError(
            path, f"{group} has {rows} rows, limit {limit}: the file is damaged"
        )


def check_stored(path: Path, datasets: Iterable[h5py.Dataset]) -> None:
    """Checks that the values of datasets are in the file, and no more than declared.

    Args:
        path: The file.
        datasets: All that may be read.

    Raises:
        RecordingFormatError: They cannot be.
    """
    total = 0
    for dataset in datasets:
        stored = dataset.id.get_storage_size()
        total += stored
        problem = _problem(dataset, stored)
        if problem:
            raise RecordingFormatError(
                path, f"{dataset.name} {problem}: the file is damaged, copy it again"
            )
    size = path.stat().st_size
    if total > size:
        raise RecordingFormatError(
            path, f"its datasets claim {total} of {size} bytes: the file is damaged, copy it again"
        )


def _problem(dataset: h5py.Dataset, stored: int) -> str:
    """What is wrong with how a dataset is stored; empty if nothing is."""
    shape, chunks = dataset.shape or (0,), dataset.chunks
    item_bytes = _REFERENCE_BYTES if dataset.dtype.kind == "O" else dataset.dtype.itemsize
    if chunks is None:
        declared = math.prod(shape) * item_bytes
        return f"declares {declared} bytes and has {stored}" if declared > stored else ""
    chunk_bytes = math.prod(chunks) * item_bytes
    if chunk_bytes > CHUNK_BYTES_MAX:
        return f"has chunks of {chunk_bytes} bytes, limit {CHUNK_BYTES_MAX}"
    wanted = math.prod(-(-rows // size) for rows, size in zip(shape, chunks, strict=True))
    found = dataset.id.get_num_chunks()
    if found < wanted:
        return f"declares {shape[0]} rows in {wanted} chunks, of which {found} are there"
    return _compression_problem(dataset, stored, wanted * chunk_bytes, chunk_bytes)


def _compression_problem(
    dataset: h5py.Dataset, stored: int, declared: int, chunk_bytes: int
) -> str:
    filters = dataset.id.get_create_plist()
    kinds = [filters.get_filter(number)[0] for number in range(filters.get_nfilters())]
    if len(kinds) > len(set(kinds)):
        return "is compressed more than once"
    if declared > _INFLATED_MAX * stored:
        return f"declares {declared} bytes, compressed into {stored}"
    largest = _largest_chunk(dataset) if stored > max(_STORED_SMALL, chunk_bytes) else 0
    # What does not become smaller is stored as it is; a checksum may follow.
    if largest > chunk_bytes + chunk_bytes // 100 + 1024:
        return f"has a chunk of {largest} bytes, of which its values need {chunk_bytes}"
    return ""


def _largest_chunk(dataset: h5py.Dataset) -> int:
    sizes = [0]
    if hasattr(dataset.id, "chunk_iter"):  # not with HDF5 before 1.12.3
        dataset.id.chunk_iter(lambda chunk: sizes.append(chunk.size))
    return max(sizes)
