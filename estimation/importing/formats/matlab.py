"""Arrays of numbers from MATLAB files of version 5 (`save -v6`, `save -v7`), nothing else of them.

SciPy's reader takes every kind of variable, but a damaged file can crash the interpreter in it
(found by changing single bytes). Here every length is checked against what is there. Read are
arrays of real numbers, and fields of structures that are such arrays, as structure.field. The
format is that of MathWorks, "MAT-File Format", chapter 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimation.errors import DatasetError

FloatArray = NDArray[np.float64]

_HEADER = 128
_TAG, _SMALL_MAX = 8, 4
_MATRIX, _COMPRESSED = 14, 15
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""Types of stored values, by their number in the format."""
_STRUCT, _OPAQUE = 2, 17
_NUMERIC = range(6, 16)
_COMPLEX = 0x0800
_LEFT_OUT = {
    1: "a cell array",
    _STRUCT: "several or nested structures",
    3: "an object",
    4: "text",
    5: "a sparse matrix",
    _OPAQUE: "an object",
}
"""What is no array of numbers, by its class."""
_DEPTH_MAX, _FIELDS_MAX, _ELEMENTS_MAX = 4, 1000, 100_000
_HEAD_BYTES = 4096
"""Compressed bytes that surely tell the first eight."""


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_mat5(path: Path, bytes_max: int) -> Iterator[tuple[str, FloatArray | str]]:
    """The arrays of a file.

    Args:
        path: The file.
        bytes_max: What it may unpack to.

    Yields:
        Names and arrays, of as many dimensions as they have, or what it is that is no such array.

    Raises:
        DatasetError: It is of another version, damaged, or has or unpacks to too much.
        OSError: It cannot be read.
    """
    content = memoryview(path.read_bytes())
    mark = bytes(content[126:_HEADER])
    if (
        len(content) < _HEADER
        or mark not in (b"IM", b"MI")
        or b"MATLAB" not in content[:6].tobytes()
    ):
        raise DatasetError(f"{path}: no MATLAB file of version 5 or 7.3; save it with `save -v7`")
    reader = _Reader(path, "<" if mark == b"IM" else ">", bytes_max)
    for element in reader.elements(content[_HEADER:]):
        if element.kind == _COMPRESSED:
            for inner in reader.elements(reader.unpacked(element.data)):
                yield from reader.matrix(inner, "", 0)
        else:
            yield from reader.matrix(element, "", 0)


class _Reader:
    """Reads elements of one byte order."""

    def __init__(self, path: Path, order: str, bytes_max: int) -> None:
        self._path = path
        self._order = order
        self._left = bytes_max
        self._limit = bytes_max
        self._count = 0

    def unpacked(self, data: memoryview) -> memoryview:
        """The one element that a compressed one contains: no more is unpacked than it says."""
        try:
            tag = zlib.decompressobj().decompress(data[:_HEAD_BYTES], _TAG)
            if len(tag) < _TAG:
                raise self._damaged("a compressed element is cut short")
            kind, size = (int(number) for number in self._integers(memoryview(tag), "u4"))
            if kind != _MATRIX:
                raise self._damaged("a compressed element is no variable")
            size += _TAG
            self._left -= size
            if self._left < 0:
                raise DatasetError(f"{self._path}: unpacks to more than {self._limit} bytes")
            # A little more, so that the end is reached and its checksum looked at.
            result = zlib.decompressobj().decompress(data, size + _TAG)
        except zlib.error as error:
            raise self._damaged(str(error)) from error
        return memoryview(result)[: size + -size % _TAG]

    def elements(self, data: memoryview) -> Iterator[_Element]:
        """The elements that follow each other; each begins at a multiple of 8 bytes."""
        at = 0
        while at + _TAG <= len(data):
            self._count += 1
            if self._count > _ELEMENTS_MAX:
                raise DatasetError(f"{self._path}: more than {_ELEMENTS_MAX} elements")
            kind, size = (int(number) for number in self._integers(data[at : at + _TAG], "u4"))
            if kind >> 16:
                # A small one has its size in the upper half of the word, its data in the second.
                kind, size, begin = kind & 0xFFFF, kind >> 16, at + _SMALL_MAX
                at += _TAG
                if size > _SMALL_MAX:
                    raise self._damaged("a small element is too long")
            else:
                begin = at + _TAG
                at = begin + size
                if kind != _COMPRESSED:
                    at += -size % _TAG
            if begin + size > len(data):
                raise self._damaged("it ends too early")
            yield _Element(kind, data[begin : begin + size])

    def matrix(
        self, element: _Element, prefix: str, depth: int
    ) -> Iterator[tuple[str, FloatArray | str]]:
        """The array of a variable, or those of a structure, or what it is otherwise."""
        if element.kind != _MATRIX or not len(element.data):
            return
        parts = self.elements(element.data)
        flags, shape, name = (next(parts, None) for _ in range(3))
        if flags is None or shape is None or name is None:
            raise self._damaged("a variable has no name")
        word = self._integers(flags.data[:4], "u4")
        if len(word) and int(word[0]) & 0xFF == _OPAQUE:  # has no shape, but a name there
            yield prefix + shape.data.tobytes().decode("ascii", "replace"), _LEFT_OUT[_OPAQUE]
            return
        dimensions = [int(length) for length in self._integers(shape.data, "i4")]
        if not len(word) or min(dimensions, default=-1) < 0:
            raise self._damaged("a variable has no shape")
        flag, title = int(word[0]), prefix + name.data.tobytes().decode("ascii", "replace")
        if flag & 0xFF == _STRUCT and depth < _DEPTH_MAX and _product(dimensions) == 1:
            yield from self._structure(parts, title, depth)
        elif flag & 0xFF not in _NUMERIC:
            yield title, _LEFT_OUT.get(flag & 0xFF, "no array of numbers")
        elif flag & _COMPLEX:
            yield title, "complex numbers"
        else:
            values = next(parts, None)
            if values is None or values.kind not in _TYPES:
                raise self._damaged(f"{title} has no values")
            array = self._integers(values.data, _TYPES[values.kind])
            if _product(dimensions) != len(array):
                raise self._damaged(f"{title} has {len(array)} values, not {dimensions}")
            yield title, array.astype(np.float64).reshape(dimensions, order="F")

    def _structure(
        self, parts: Iterator[_Element], title: str, depth: int
    ) -> Iterator[tuple[str, FloatArray | str]]:
        length, names = next(parts, None), next(parts, None)
        if length is None or names is None or len(length.data) < 4:
            raise self._damaged(f"structure {title} has no fields")
        text, step = names.data.tobytes(), int(self._integers(length.data[:4], "i4")[0])
        if not 0 < step <= _FIELDS_MAX:
            raise self._damaged(f"structure {title} has no names of fields")
        for begin in range(0, min(len(text), step * _FIELDS_MAX), step):
            field = text[begin : begin + step].partition(b"\0")[0].decode("ascii", "replace")
            part = next(parts, None)
            if part is None:
                raise self._damaged(f"structure {title} lacks {field}")
            yield from self.matrix(part, f"{title}.{field}", depth + 1)

    def _integers(self, data: memoryview, kind: str) -> NDArray[np.generic]:
        dtype = np.dtype(self._order + kind)
        if len(data) % dtype.itemsize:
            raise self._damaged("an element is cut short")
        return np.frombuffer(data, dtype)

    def _damaged(self, reason: str) -> DatasetError:
        return DatasetError(f"{self._path}: damaged, or no .mat file: {reason}")


def _product(lengths: list[int]) -> int:
    # Plain integers: those of NumPy would wrap around.
    result = 1
    for length in lengths:
        result *= length
    return result
