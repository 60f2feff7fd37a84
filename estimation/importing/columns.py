"""Columns of foreign files: those that a source names, and times in two columns.

What sources look like, `estimation.importing.mapping` says.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.errors import OptionError
from estimation.importing.files import ArrayFile
from estimation.importing.hints import list_columns
from estimation.importing.names import clock_of
from estimation.types import FloatArray

_RANGE = re.compile(r"^(\d{1,6})(?:-(\d{1,6}))?$")


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column, or an array of several, of a file, and the unit where its name has one."""

    file: ArrayFile
    name: str
    values: FloatArray
    unit: str | None = None

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.file.name}:{self.name}"


def select_columns(files: Sequence[ArrayFile], key: str, text: str) -> list[SourceColumn]:
    """Return the columns that one source names."""
    head, *rest = text.split(":")
    named = [file for file in files if head in (file.path.name, file.path.stem, file.name)]
    if named:
        words = rest
        if len(named) > 1:
            raise OptionError(
                f"--map {key}={text}: several files are called so", code="ambiguous-file"
            )
    else:
        words = [head, *rest]
        if len(files) > 1 and _RANGE.match(head):
            raise OptionError(
                f"--map {key}={text}: columns of which file? as {files[0].name}:{head}",
                code="ambiguous-file",
            )
    chosen = [
        SourceColumn(file, name, values)
        for file in named or files
        for name, values in file.fields.items()
    ]
    for word in words:
        chosen = _narrowed(chosen, word)
    if not chosen:
        raise OptionError(
            f"--map {key}={text}: there is no such column; {list_columns(files)}",
            code="no-such-column",
        )
    return chosen


def _narrowed(columns: list[SourceColumn], word: str) -> list[SourceColumn]:
    """Those of a name or pattern, or with certain numbers."""
    by_name = [column for column in columns if column.name == word]
    if by_name:
        return by_name
    if "*" in word or "?" in word:
        return [column for column in columns if fnmatch.fnmatchcase(column.name, word)]
    numbers = _RANGE.match(word)
    if not numbers:
        return []
    single = [
        SourceColumn(column.file, f"{column.name}:{place + 1}", column.values[:, place : place + 1])
        if column.values.shape[1] > 1
        else column
        for column in columns
        for place in range(column.values.shape[1])
    ]
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    return single[first - 1 : last] if 1 <= first <= last <= len(single) else []


def find_clocks(file: ArrayFile) -> list[tuple[SourceColumn, SourceColumn]]:
    """Return times in two columns of a file: whole seconds and nanoseconds."""
    seconds: dict[str, SourceColumn] = {}
    nanoseconds: dict[str, SourceColumn] = {}
    for name, values in file.fields.items():
        if (clock := clock_of(name)) is not None:
            (nanoseconds if clock[1] else seconds)[clock[0]] = SourceColumn(file, name, values)
    pairs = [(seconds[stem], nanoseconds[stem]) for stem in seconds if stem in nanoseconds]
    return [pair for pair in pairs if is_clock(pair)]


def is_clock(columns: Sequence[SourceColumn]) -> bool:
    """Whether these are a time, in whole seconds and nanoseconds."""
    shapes = {column.values.shape for column in columns}
    if len(columns) != 2 or len(shapes) != 1 or next(iter(shapes))[1] != 1:
        return False
    (seconds, nanoseconds) = (clock_of(column.name) for column in columns)
    if seconds is None or nanoseconds is None or seconds[0] != nanoseconds[0]:
        return False
    parts = columns[1].values[np.isfinite(columns[1].values)]
    is_within = bool(((parts >= 0.0) & (parts < 1e9)).all())
    return (seconds[1], nanoseconds[1]) == (False, True) and is_within


def join_clock(columns: Sequence[SourceColumn]) -> SourceColumn:
    """Seconds and nanoseconds as one time, from its first second on: that leaves more digits."""
    whole, parts = (column.values for column in columns)
    known = whole[np.isfinite(whole)]
    since_s = (whole - (known[0] if known.size else 0.0)) + 1e-9 * parts
    return SourceColumn(columns[0].file, f"{columns[0].name} + {columns[1].name}", since_s, "s")


def labels_of(columns: list[SourceColumn]) -> str:
    """Where columns are from: file by file, the first and the last of each."""
    texts = []
    for _, group in itertools.groupby(columns, key=lambda column: column.file.path):
        of_file = list(group)
        more = f" … {of_file[-1].name}" if len(of_file) > 1 else ""
        texts.append(of_file[0].label + more)
    return ", ".join(texts)
