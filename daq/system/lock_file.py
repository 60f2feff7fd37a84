"""Files whose lock says that somebody is at work, and in which stands who.

The kernel drops a lock when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from daq.errors import DaqError

_HOLDER_MAX_BYTES = 20


class LockHeldError(DaqError):
    """Somebody else is at work.

    Attributes:
        holder: Number of the process, or `unknown`.
    """

    def __init__(self, path: Path, holder: str) -> None:
        self.holder = holder
        super().__init__(f"{path}: held by process {holder}")


def take_lock(path: Path) -> int:
    """Lock a file, which is made if it is not there.

    Returns:
        The open file; the lock lasts until it is closed everywhere.

    Raises:
        LockHeldError: Somebody else has it.
        OSError: It cannot be opened.
    """
    # Where others may write, a link would have us overwrite what it points to.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(file, _HOLDER_MAX_BYTES, 0).decode(errors="replace") or "unknown"
        os.close(file)
        raise LockHeldError(path, holder) from None
    sign_lock(file)
    return file


def sign_lock(file: int) -> None:
    """Write into a lock that this process holds it."""
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)
