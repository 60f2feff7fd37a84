"""Files that are written whole or not at all, and never over another by accident."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from daq.recording.errors import RecordingExistsError, writing


def create_file(path: Path, data: bytes) -> None:
    """Write a new file under a temporary name beside it, then name it: all of it or nothing.

    Raises:
        FileExistsError: There is one already, and it is as it was.
        OSError: It cannot be written.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = _write_beside(path, data)
    try:
        give_name(temporary, path)
    finally:
        _remove(temporary)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, then rename it: all of it or nothing.

    The permissions of one that is there already are kept.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    temporary = _write_beside(path, data)
    try:
        os.replace(temporary, path)
        sync_directory(path.parent)
    except BaseException:
        _remove(temporary)
        raise


def give_name(part: Path, path: Path) -> None:
    """Rename a finished file within its directory, never over another.

    Raises:
        FileExistsError: There is such a file, and it is as it was.
        OSError: It cannot be renamed.
    """
    try:
        os.link(part, path)  # unlike a rename, it never overwrites
    except FileExistsError:
        raise
    except OSError:
        # No hard links here, as on FAT: take the name first.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o640))
        try:
            os.replace(part, path)
        except OSError:
            _remove(path)
            raise
    else:
        os.unlink(part)
    sync_directory(path.parent)


def refuse_existing(path: Path) -> None:
    """Raise for a name that is taken.

    Raises:
        RecordingExistsError: There is such a file.
    """
    if os.path.lexists(path):
        raise RecordingExistsError(
            path, "exists and is not overwritten: choose another name", code="exists"
        )


def publish(part: Path, path: Path) -> None:
    """Give a finished recording its name in the same directory, never that of another file.

    Raises:
        RecordingExistsError: There is such a file.
        RecordingWriteError: It cannot be named.
    """
    with writing(path):
        try:
            give_name(part, path)
        except FileExistsError:
            refuse_existing(path)
            raise


def sync_directory(path: Path) -> None:
    """Make the names in a directory safe on the disk.

    Raises:
        OSError: It cannot be opened.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_beside(path: Path, data: bytes) -> Path:
    """Write a temporary file with the permissions of the one that it will be; return it."""
    temporary = path.with_name(f".{secrets.token_hex(6)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
