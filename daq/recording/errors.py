"""What can be wrong with a recording.

```
RecordingError (DaqError)               names the file, what is wrong with it and what to do
├── RecordingFormatError (ValueError)   not a recording, or a damaged one
├── RecordingVersionError               of a version that cannot be read here
├── RecordingIncompleteError            it was not finished, or parts of it are missing
├── RecordingExistsError                there is a file already, and nothing is overwritten
└── RecordingWriteError (OSError)       it cannot be written: disk full, read-only, gone
```
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daq.errors import DaqError


class RecordingError(DaqError):
    """A recording cannot be read or written."""

    def __init__(self, path: str | os.PathLike[str], message: str, *, code: str = "") -> None:
        self.path = Path(path)
        super().__init__(f"{self.path}: {message}", code=code)


class RecordingFormatError(RecordingError, ValueError):
    """The file is not a recording, or a damaged one."""


class RecordingVersionError(RecordingError):
    """The file has a version of the format that cannot be read here."""


class RecordingIncompleteError(RecordingError):
    """The recording was not finished, or parts of it are missing."""


class RecordingExistsError(RecordingError):
    """There is such a file already."""


class RecordingWriteError(RecordingError, OSError):
    """The file cannot be written. `errno` says why, as far as that is known."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        message: str,
        number: int | None,
        *,
        code: str = "not-writable",
    ) -> None:
        super().__init__(path, message, code=code)
        self.errno = number


_H5PY_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError)
"""What h5py raises for damaged contents, found by changing and cutting bytes: mostly the first
three; `ValueError` and `TypeError` for types that NumPy does not have."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what h5py raises into a `RecordingFormatError`.

    Only around calls of h5py: a mistake of ours must not be called a damaged file.
    """
    try:
        yield
    except _H5PY_ERRORS as error:
        raise RecordingFormatError(
            path,
            f"damaged, or not a recording ({error}): copy it again, or recover its journal",
            code="damaged",
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what h5py and the operating system raise into a `RecordingWriteError`."""
    try:
        yield
    except RecordingError:
        raise
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error)
        raise RecordingWriteError(
            path, f"cannot be written: {reason}; make room or check the directory", number
        ) from error
