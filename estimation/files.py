"""Files that are written whole or not at all, and their names as text."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path


def name_text(path: str | os.PathLike[str]) -> str:
    r"""A file's name or path as any file can hold it: what is not UTF-8 is written as \udcff."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def plain(text: str) -> str:
    r"""A text on one line that can neither move a terminal's cursor nor fail to be stored as UTF-8.

    What cannot be printed is written as Python writes it, as \x1b; other blanks are blanks.
    """
    return "".join(
        each if each.isprintable() else " " if each.isspace() else ascii(each)[1:-1]
        for each in text
    )


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file under a temporary name beside it, then renames it: all of it or nothing.

    Args:
        path: The file; if there is one already, its permissions are kept.
        data: What shall be in it.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    temporary = _write_beside(path, data)
    try:
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def create_file(path: Path, data: bytes) -> None:
    """Writes a new file under a temporary name beside it, then names it: all of it or nothing.

    Args:
        path: The file.
        data: What shall be in it.

    Raises:
        FileExistsError: There is one already, and it is as it was.
        OSError: It cannot be written.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = _write_beside(path, data)
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # no hard links on this file system
            os.replace(temporary, path)
    finally:
        _remove(temporary)


def _write_beside(path: Path, data: bytes) -> Path:
    """Writes a temporary file with the permissions of the one that it will be; returns it."""
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
