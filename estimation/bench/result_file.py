"""Files of bench results: one JSON object each, written whole or not at all.

A file that cannot be used is refused with a reason; nothing here looks at what the numbers mean.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from daq.recording.whole_files import replace_file
from estimation.bench.result import RESULT_FORMAT, RESULT_VERSION, BenchResult
from estimation.errors import DatasetError

FILE_SIZE_MAX = 10_000_000
"""In bytes; a result has some ten thousand."""
_NOT_FINITE = re.compile(rb"[:\[,\s][+-]?(NaN|Infinity)\b")


class _Label(msgspec.Struct):
    """Label that distinguishes a bench result, of any version, from other files."""

    format: str = ""
    version: float = 0.0


def read_result(path: str | Path) -> BenchResult:
    """Read a bench result; every number in it is finite.

    Raises:
        DatasetError: It cannot be read, is not a bench result, is damaged or of a newer version.
    """
    data = _read(Path(path))
    try:
        label = msgspec.json.decode(data, type=_Label)
    except msgspec.ValidationError:
        label = _Label()
    except (ValueError, RecursionError) as error:
        if found := _NOT_FINITE.search(data):
            raise DatasetError(
                f"{path}: {found[1].decode()}, expected finite numbers", code="not-finite"
            ) from error
        raise DatasetError(f"{path}: not JSON: {error}", code="not-json") from error
    if label.format != RESULT_FORMAT or label.version < 1:
        raise DatasetError(
            f"{path}: not a bench result: no format {RESULT_FORMAT!r}", code="not-a-bench-result"
        )
    if label.version > RESULT_VERSION:
        raise DatasetError(
            f"{path}: bench result of version {label.version:g}, expected at most "
            f"{RESULT_VERSION}: update armature",
            code="newer-version",
        )
    try:
        result = msgspec.json.decode(data, type=BenchResult)
    except (ValueError, RecursionError) as error:
        # Numbers beyond what a float holds are among them, and integers of thousands of digits.
        raise DatasetError(
            f"{path}: not a bench result: {error}", code="not-a-bench-result"
        ) from error
    _check(path, result)
    return result


def write_result(path: str | Path, result: BenchResult) -> None:
    """Write a bench result; a file of that name is replaced.

    Raises:
        DatasetError: A number is not finite, which JSON cannot say, or the file cannot be written.
    """
    _check(path, result)
    data = msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"
    try:
        replace_file(Path(path), data)
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"{path}: cannot be written: {_reason(error)}", code="cannot-be-written"
        ) from error


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would have us wait for its writer
            raise DatasetError(f"{path}: not a file", code="not-a-file")
        with path.open("rb") as file:
            data = file.read(FILE_SIZE_MAX + 1)
    except DatasetError:
        raise
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"{path}: cannot be read: {_reason(error)}", code="unreadable"
        ) from error
    if len(data) > FILE_SIZE_MAX:
        raise DatasetError(
            f"{path}: more than {FILE_SIZE_MAX} bytes, expected a bench result", code="too-large"
        )
    return data


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _check(path: str | Path, result: BenchResult) -> None:
    for place, number in _numbers("", msgspec.to_builtins(result)):
        if not math.isfinite(number):
            raise DatasetError(
                f"{path}: {place} is {number}, expected a finite number", code="not-finite"
            )


def _numbers(place: str, value: object) -> Iterator[tuple[str, float]]:
    match value:
        case dict():
            for key, item in value.items():
                yield from _numbers(f"{place}.{key}" if place else str(key), item)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _numbers(f"{place}[{index}]", item)
        case float():
            yield place, value
