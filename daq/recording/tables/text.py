"""Numbers from text files: any delimiter, with or without names, with values missing.

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
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from daq.recording.tables.arrays import BYTES_MAX, COLUMNS_MAX, ROWS_MAX, check_file
from daq.recording.tables.errors import TableError, UnevenRowsError, damaged

LINE_MAX = 1_000_000
"""Characters of a line; to split it takes a hundred times that."""
_COMMENTS = ("#", "%")
_HOLES = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})
_UNITS = {"s", "ms", "us", "ns", "rad", "deg", "°", "rad/s", "deg/s", "rpm"}
_UNITS |= {"nm", "n·m", "mnm", "a", "ma"}
_DELIMITERS = (";", "\t", ",")
_SHOWN = 40
_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 4096


class TextTable(NamedTuple):
    """The numbers of a text file.

    Attributes:
        values: Shape (rows, columns); a column of text is NaN.
        names: Of the columns; none if the file has none.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]


def read_text(path: Path, delimiter: str | None = None) -> TextTable:
    """Read a table of numbers; it may have no rows.

    Args:
        path: The file, UTF-8 or UTF-16 with a byte order mark, compressed if it is called `.gz`.
        delimiter: Between cells; None to find out, a blank for any white space.

    Raises:
        TableError: A cell is not a number, rows differ in length, or there is too much.
    """
    check_file(path)
    with _opened(path) as file:
        return _Text(path, file).read(delimiter)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path.suffix.lower() != ".gz":
        with path.open("rb") as plain:
            yield _as_text(path, plain)
        return
    with tempfile.TemporaryFile() as unpacked:
        with damaged(path, OSError, EOFError, zlib.error), gzip.open(path) as packed:
            # What a file says of its own length may be wrong.
            while unpacked.tell() <= BYTES_MAX and (block := packed.read(_BLOCK_BYTES)):
                unpacked.write(block)
        if unpacked.tell() > BYTES_MAX:
            raise TableError(path, f"unpacks to more than {BYTES_MAX} bytes", code="too-large")
        unpacked.seek(0)
        yield _as_text(path, unpacked)


def _as_text(path: Path, file: IO[bytes]) -> TextIO:
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in head:
        raise TableError(
            path,
            "has zero bytes: looks like UTF-16 without a byte order mark, or is not text; save it "
            "as UTF-8",
            code="zero-bytes",
        )
    return io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")


class _Text:
    """The lines of a text file, counted while they are read."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._line = 0
        self._delimiter = ","
        self._titles: list[str] = []

    def read(self, delimiter: str | None) -> TextTable:
        """Read the whole table."""
        remark, first = self._next()
        if not first:
            return TextTable(np.empty((0, 0)), ())
        begin = self._line - 1
        self._delimiter = _delimiter(first) if delimiter is None else delimiter
        cells = self._cells(first)
        if len(cells) > COLUMNS_MAX:
            problem = f"{len(cells)} columns, limit {COLUMNS_MAX}"
            raise TableError(self._path, problem, code="too-many-columns")
        names: tuple[str, ...] = ()
        if any(self._number(cell) is None for cell in cells):
            names = tuple(cells)
            _, units = self._next()
            begin = self._line - 1 if units else self._line
            if len(words := self._cells(units)) == len(cells) and _are_units(words):
                names = tuple(f"{n} [{u}]" if u else n for n, u in zip(names, words, strict=True))
                begin += 1
        elif len(words := self._cells(remark)) == len(cells) and self._are_names(words):
            names = tuple(words)
        self._titles = list(names) or [str(number + 1) for number in range(len(cells))]
        self._go_to(begin)
        values = self._fast()
        if values is None:
            self._go_to(begin)
            # Line by line, to find holes or to say where something is wrong.
            values = np.fromiter(itertools.chain.from_iterable(self._rows()), np.float64)
            values = values.reshape(-1, len(cells))
        return TextTable(values, names)

    def _go_to(self, line: int) -> None:
        """Go behind so many lines; asking the file for its place at each line would take long."""
        self._file.seek(0)
        for _ in range(line):
            self._file.readline()
        self._line = line

    def _read_line(self) -> str:
        line = self._file.readline(LINE_MAX + 1)
        self._line += bool(line)
        if len(line) > LINE_MAX:
            problem = f"a line of more than {LINE_MAX} characters"
            raise TableError(self._path, problem, code="long-line")
        return line

    def _next(self) -> tuple[str, str]:
        """Return the last comment before the next line of data, and that line."""
        remark = ""
        while line := self._read_line():
            if line.startswith(_COMMENTS):
                remark = line.lstrip("#% ")
            elif line.strip():
                break
        return remark, line

    def _cells(self, line: str) -> list[str]:
        if self._is_blank:
            return line.split()
        with damaged(self._path, csv.Error, part=f"line {self._line}"):
            cells = next(csv.reader([line], delimiter=self._delimiter), [])
        return [cell.strip() for cell in cells]

    @property
    def _is_blank(self) -> bool:
        return self._delimiter.isspace() and self._delimiter != "\t"

    def _number(self, cell: str) -> float | None:
        if cell.lower() in _HOLES:
            return math.nan
        if self._delimiter != ",":
            cell = cell.replace(",", ".")
        try:
            return float(cell)
        except ValueError:
            return None

    def _are_names(self, words: list[str]) -> bool:
        return all(self._number(word) is None for word in words)

    def _fast(self) -> NDArray[np.float64] | None:
        """Read all at once; None where the text is not that simple."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # that there are no values
                values = np.loadtxt(
                    iter(self._read_line, ""),
                    delimiter=None if self._delimiter == " " else self._delimiter,
                    comments=list(_COMMENTS),
                    ndmin=2,
                    max_rows=ROWS_MAX + 1,
                )
        except TableError:
            raise
        except (ValueError, UserWarning):
            return None
        is_sound = values.shape[1] == len(self._titles) and len(values) <= ROWS_MAX
        return values if is_sound else None

    def _rows(self) -> Iterator[list[float]]:
        count = 0
        texts: list[bool] = []
        for line in iter(self._read_line, ""):
            if not line.strip() or line.startswith(_COMMENTS):
                continue
            count += 1
            if count > ROWS_MAX:
                raise TableError(self._path, f"more than {ROWS_MAX} rows", code="too-many-rows")
            cells = self._cells(line)
            if len(cells) != len(self._titles):
                raise UnevenRowsError(
                    self._path,
                    f"line {self._line} has {len(cells)} values, expected {len(self._titles)}: is "
                    f"{self._delimiter!r} the delimiter?",
                    code="uneven-rows",
                )
            numbers = [self._number(cell) for cell in cells]
            texts = texts or [number is None for number in numbers]
            row = [
                math.nan if is_text else number
                for is_text, number in zip(texts, numbers, strict=True)
            ]
            if None in row:
                place = row.index(None)
                raise TableError(
                    self._path,
                    f"column {self._titles[place]} line {self._line}: {cells[place][:_SHOWN]!r}, "
                    "expected a number",
                    code="not-a-number",
                )
            yield [number for number in row if number is not None]


def _delimiter(line: str) -> str:
    return next((mark for mark in _DELIMITERS if mark in line), " ")


def _are_units(words: list[str]) -> bool:
    """Whether a line under the names says units."""
    return any(word.strip("[]() ").lower() in _UNITS for word in words)
