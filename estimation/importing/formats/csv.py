"""Numbers from text files as people have them: any delimiter, with or without names, holes and all.

Lines that are empty or begin with # or % are comments; the last of them names the columns if it has
as many words as there are columns. A line of units may follow the names, which then carry them, as
`q1 [deg]`. A cell that is empty, or says nan or null, is a hole (NaN). Columns of text become NaN.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import math
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

import numpy as np
from numpy.typing import NDArray

from estimation.errors import DatasetError

FloatArray = NDArray[np.float64]

BYTES_MAX = 512 << 20
"""Of a file, and of what it unpacks to."""
ROWS_MAX = 10_000_000
COLUMNS_MAX = 1000
_COMMENTS = ("#", "%")
_HOLES = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})
_UNITS = frozenset(
    {
        "s",
        "ms",
        "us",
        "ns",
        "rad",
        "deg",
        "°",
        "rad/s",
        "deg/s",
        "rpm",
        "nm",
        "n·m",
        "mnm",
        "a",
        "ma",
    }
)
_DELIMITERS = (";", "\t", ",")
_SHOWN = 40
_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 4096
LINE_MAX = 1_000_000
"""Characters of a line."""


def read_csv(path: Path, delimiter: str | None = None) -> tuple[FloatArray, tuple[str, ...]]:
    """Read a table of numbers.

    Args:
        path: The file, UTF-8 or UTF-16 with a byte order mark, compressed if it is called `.gz`.
        delimiter: Between cells; None to find out, a blank for any white space.

    Returns:
        The values, shape (rows, columns), and the names of the columns, none without a header. A
        column of text is NaN.

    Raises:
        DatasetError: A cell is no number, lines differ in length, or there is too much.
        OSError: It cannot be read.
    """
    with _opened(path) as file:
        remark, begin, first = _first_line(path, file)
        if not first:
            raise DatasetError(f"{path}: has no values")
        delimiter = _delimiter(first) if delimiter is None else delimiter
        _check_columns(path, first, delimiter)
        cells = _cells(first, delimiter)
        is_header = any(_number(cell, delimiter) is None for cell in cells)
        names: tuple[str, ...] = ()
        if is_header:
            names = tuple(cells)
            _, passed, units = _first_line(path, file)
            begin += 1 + passed
            if len(words := _cells(units, delimiter)) == len(cells) and _are_units(words):
                names = tuple(f"{n} [{u}]" if u else n for n, u in zip(names, words, strict=True))
                begin += 1
        elif len(words := _cells(remark, delimiter)) == len(cells) and _are_names(words, delimiter):
            names = tuple(words)
        _go_to(file, begin)
        values = _fast(path, file, delimiter, len(cells))
        if values is None:
            _go_to(file, begin)
            values = _careful(path, file, delimiter, len(cells))
    if not len(values):
        raise DatasetError(f"{path}: has names of columns, but no values")
    return values, names


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path.suffix.lower() != ".gz":
        with path.open("rb") as plain:
            yield _as_text(path, plain)
        return
    with gzip.open(path) as packed, tempfile.TemporaryFile() as unpacked:
        # What a file says of its own length may be wrong.
        while block := packed.read(_BLOCK_BYTES):
            unpacked.write(block)
            if unpacked.tell() > BYTES_MAX:
                raise DatasetError(f"{path}: unpacks to more than {BYTES_MAX} bytes")
        unpacked.seek(0)
        yield _as_text(path, unpacked)


def _as_text(path: Path, file: IO[bytes]) -> TextIO:
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in head:
        raise DatasetError(
            f"{path}: has zero bytes: looks like UTF-16 without a byte order mark, or is no text; "
            "save it as UTF-8"
        )
    return io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")


def _check_columns(path: Path, line: str, delimiter: str) -> None:
    """Before a line is split, as that takes a hundred times its memory."""
    if delimiter.isspace() and delimiter != "\t":
        columns = sum(1 for _ in re.finditer(r"\S+", line))
    else:
        columns = line.count(delimiter) + 1
        if columns > COLUMNS_MAX and '"' in line:  # some may be part of a name
            columns = len(_cells(line, delimiter))
    if columns > COLUMNS_MAX:
        raise DatasetError(f"{path}: {columns} columns, limit {COLUMNS_MAX}")


def _read_line(path: Path, file: TextIO) -> str:
    line = file.readline(LINE_MAX + 1)
    if len(line) > LINE_MAX:
        raise DatasetError(f"{path}: a line of more than {LINE_MAX} characters")
    return line


def _go_to(file: TextIO, lines: int) -> None:
    """Behind so many lines; to ask the file where it is would take long for each."""
    file.seek(0)
    for _ in range(lines):
        file.readline()


def _first_line(path: Path, file: TextIO) -> tuple[str, int, str]:
    """The last comment before the next line that is none, how many lines precede it, and it."""
    remark, passed = "", 0
    while True:
        line = _read_line(path, file)
        if not line:
            return remark, passed, ""
        if line.startswith(_COMMENTS):
            remark = line.lstrip("#% ")
        elif line.strip():
            return remark, passed, line
        passed += 1


def _delimiter(line: str) -> str:
    return next((mark for mark in _DELIMITERS if mark in line), " ")


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter.isspace() and delimiter != "\t":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]


def _number(cell: str, delimiter: str) -> float | None:
    if cell.lower() in _HOLES:
        return math.nan
    if delimiter != ",":
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return None


def _are_names(words: list[str], delimiter: str) -> bool:
    return all(_number(word, delimiter) is None for word in words)


def _are_units(words: list[str]) -> bool:
    """Whether a line under the names says units."""
    return any(word.strip("[]() ").lower() in _UNITS for word in words)


def _fast(path: Path, file: TextIO, delimiter: str, columns: int) -> FloatArray | None:
    """All at once; None where something is not as plain as that."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that there are no values
            values = np.loadtxt(
                iter(lambda: _read_line(path, file), ""),
                delimiter=None if delimiter == " " else delimiter,
                comments=list(_COMMENTS),
                ndmin=2,
                max_rows=ROWS_MAX + 1,
            )
    except (ValueError, UserWarning):
        return None
    return values if values.shape[1] == columns and len(values) <= ROWS_MAX else None


def _careful(path: Path, file: TextIO, delimiter: str, columns: int) -> FloatArray:
    """Line by line, to find holes or to say where something is wrong."""
    rows = np.fromiter(
        itertools.chain.from_iterable(_lines(path, file, delimiter, columns)), np.float64
    )
    return rows.reshape(-1, columns)


def _lines(path: Path, file: TextIO, delimiter: str, columns: int) -> Iterator[list[float]]:
    count = 0
    texts: list[bool] | None = None
    for line in iter(lambda: _read_line(path, file), ""):
        if not line.strip() or line.startswith(_COMMENTS):
            continue
        count += 1
        if count > ROWS_MAX:
            raise DatasetError(f"{path}: more than {ROWS_MAX} rows")
        cells = _cells(line, delimiter)
        if len(cells) != columns:
            raise DatasetError(
                f"{path}: row {count} has {len(cells)} values, others {columns}; is {delimiter!r} "
                "the delimiter? --delimiter names another"
            )
        numbers = [_number(cell, delimiter) for cell in cells]
        if texts is None:
            texts = [number is None for number in numbers]
        if any(texts):
            numbers = [
                math.nan if is_text else number
                for is_text, number in zip(texts, numbers, strict=True)
            ]
        if None in numbers:
            column = numbers.index(None)
            raise DatasetError(
                f"{path}: row {count} column {column + 1}: {cells[column][:_SHOWN]!r} is no number"
            )
        yield [number for number in numbers if number is not None]
