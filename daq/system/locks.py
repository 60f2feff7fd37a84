"""Locks on files, with the name of the holder in the file.

All are advisory (`flock`), and the kernel drops one when its holder dies, however it dies. Why a
lock is there and what to do about it is for the callers to say.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import NamedTuple, Self

from daq.errors import DaqError

_HOLDER_MAX_BYTES = 200


class Holder(NamedTuple):
    """Who holds a lock, as the file says.

    Attributes:
        process: Number of the process, or `unknown`.
        program: Its name; empty when it did not give one.
    """

    process: str
    program: str


class LockHeldError(DaqError):
    """Somebody else is at work."""

    def __init__(self, path: Path, holder: Holder) -> None:
        self.holder = holder
        super().__init__(f"{path}: held by process {holder.process}")


class FileLock:
    """Holds a file's lock until it is released or the process ends; the file is made if need be.

    Args:
        program: Name to leave in it beside the process's number.
        is_public: Whether other users must see who holds it, and may hold it after us.

    Raises:
        LockHeldError: Somebody else has it.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, *, program: str = "", is_public: bool = False) -> None:
        self._program = program
        self._file = _open_public(path) if is_public else _open(path, os.O_RDWR | os.O_CREAT)
        if not hold(self._file):
            holder = _read_holder(self._file)
            os.close(self._file)
            raise LockHeldError(path, holder)
        self.sign()

    def sign(self) -> None:
        """Write into the file that this process holds it: again, after a fork."""
        text = f"{os.getpid()} {self._program}".strip().encode()[:_HOLDER_MAX_BYTES]
        # A file of another user can be locked but not written: the lock is what counts.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text, 0)

    def release(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            # Explicitly: a forked child may still have the file open.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


def hold(file: int) -> bool:
    """Lock an open file until it is closed everywhere; False if somebody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(file: int) -> bool:
    """Whether somebody else has locked an open file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def holder_of(path: Path) -> Holder | None:
    """Return who holds a file's lock; None if nobody does.

    Raises:
        OSError: It is there, but cannot be opened.
    """
    try:
        file = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _read_holder(file) if is_held(file) else None
    finally:
        os.close(file)


def _open(path: Path, flags: int) -> int:
    # Where others may write, a link would have us overwrite what it points to.
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)


def _open_public(path: Path) -> int:
    # Kernels refuse O_CREAT on somebody else's file in a sticky directory, so first try without.
    for flags in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return _open(path, flags)
    file = _open(path, os.O_RDWR | os.O_CREAT)
    os.fchmod(file, 0o644)  # whatever the umask
    return file


def _read_holder(file: int) -> Holder:
    process, _, program = (
        os.pread(file, _HOLDER_MAX_BYTES, 0).decode(errors="replace").partition(" ")
    )
    return Holder(process if process.isdigit() else "unknown", program)
