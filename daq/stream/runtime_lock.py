"""One loop per runtime directory.

ZeroMQ takes an `ipc://` socket away from whoever has bound it, without a word. So a file in the
directory is locked first. The kernel drops the lock when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from daq.stream.errors import RuntimeBusyError

_HOLDER_MAX_BYTES = 100


class RuntimeLock:
    """Holds a runtime directory until it is released or the process ends.

    Args:
        directory: The runtime directory; it must exist.

    Raises:
        RuntimeBusyError: Another loop holds it; says which.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, _HOLDER_MAX_BYTES, 0).decode(errors="replace")
            os.close(self._file)
            raise RuntimeBusyError(
                f"{directory}: in use by another loop (process {holder or 'unknown'}); "
                "stop it first, or give this one a directory of its own with --runtime"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others have the directory."""
        if self._file >= 0:
            # Said aloud: a forked child may still have the file open.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> RuntimeLock:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


def is_loop_running(directory: Path) -> bool:
    """Whether a loop holds a runtime directory, as far as this user may see it."""
    try:
        file = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
