"""What it takes to read a dataset of a foreign HDF5 file: looked at before anything is read.

HDF5 unpacks a chunk as a whole, to whatever its compressed bytes become: a few megabytes may hide
gigabytes in a dataset of few rows.
"""

from __future__ import annotations

import math
import zlib

import h5py

CHUNK_BYTES_MAX = 64 << 20
"""As declared. What h5py, PyTables and MATLAB choose has at most some megabytes."""
_DEFLATE = h5py.h5z.FILTER_DEFLATE
_NOT_PACKING = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)
_INFLATED_MAX = 1032
"""Bytes that deflate makes at most out of one."""
_UNSEEN_MAX = 256 << 20
"""What a chunk may unpack to at most, for it not to be looked at."""
_SPARE = 1024


def bytes_to_read(dataset: h5py.Dataset) -> int:
    """What its values take as float64, in whole chunks."""
    chunks = dataset.chunks or (1,) * len(dataset.shape)
    return 8 * math.prod(
        -(-int(count) // int(size)) * int(size)
        for count, size in zip(dataset.shape, chunks, strict=True)
    )


def storage_problem(dataset: h5py.Dataset) -> str:
    """Why a dataset should not be read; empty if it may."""
    if dataset.chunks is None:
        return ""
    chunk_bytes = dataset.dtype.itemsize * math.prod(map(int, dataset.chunks))
    if chunk_bytes > CHUNK_BYTES_MAX:
        return (
            f"has chunks of {chunk_bytes} bytes, limit {CHUNK_BYTES_MAX}: write it with smaller "
            "chunks"
        )
    properties = dataset.id.get_create_plist()
    kinds = [properties.get_filter(number)[0] for number in range(properties.get_nfilters())]
    packing = [kind for kind in kinds if kind not in _NOT_PACKING]
    if len(packing) > 1:
        return "is compressed more than once"
    if packing == [_DEFLATE]:
        unused = 1 << kinds.index(_DEFLATE)
        for offset in _large_chunks(dataset):
            mask, packed = dataset.id.read_direct_chunk(offset)
            if not (mask & unused or _is_within(packed, chunk_bytes)):
                return f"has a chunk that does not unpack to {chunk_bytes} bytes: it is damaged"
    return ""


def _large_chunks(dataset: h5py.Dataset) -> list[tuple[int, ...]]:
    """Where chunks are that may unpack to too much."""
    if dataset.id.get_storage_size() * _INFLATED_MAX <= _UNSEEN_MAX:
        return []
    found: list[tuple[int, ...]] = []

    def look_at(chunk: h5py.h5d.StoreInfo) -> None:
        if chunk.size * _INFLATED_MAX > _UNSEEN_MAX:
            found.append(chunk.chunk_offset)

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(look_at)
    else:  # HDF5 before 1.12.3, which takes long for many
        for number in range(dataset.id.get_num_chunks()):
            look_at(dataset.id.get_chunk_info(number))
    return found


def _is_within(packed: bytes, chunk_bytes: int) -> bool:
    """Whether a chunk unpacks to what is declared, or a checksum more."""
    try:
        unpacked = zlib.decompressobj().decompress(packed, chunk_bytes + _SPARE)
    except zlib.error:
        return False
    return len(unpacked) < chunk_bytes + _SPARE
