"""One loop per runtime directory.

ZeroMQ takes an `ipc://` socket away from whoever has bound it, without a word. So a file in the
directory is locked first.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from daq.stream.errors import RuntimeBusyError
from daq.system.lock_file import LockHeldError, take_lock


class RuntimeLock:
    """Holds a runtime directory until it is released or the process ends.

    Args:
        directory: The runtime directory; it must exist.

    Raises:
        RuntimeBusyError: Another loop holds it; says which.
    """

    def __init__(self, directory: Path) -> None:
        try:
            self._file = take_lock(directory / "lock")
        except LockHeldError as error:
            raise RuntimeBusyError(
                f"{directory}: in use by another loop (process {error.holder}); "
                "stop it first, or give this one a directory of its own with --runtime"
            ) from None

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
