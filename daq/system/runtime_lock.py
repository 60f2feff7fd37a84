"""One loop per runtime directory.

ZeroMQ takes an `ipc://` socket away from whoever has bound it, without a word. So a file in the
directory is locked first.
"""

from __future__ import annotations

from pathlib import Path

from daq.stream.errors import RuntimeBusyError
from daq.system.locks import FileLock, LockHeldError, holder_of


class RuntimeLock(FileLock):
    """Holds a runtime directory until it is released or the process ends.

    Args:
        directory: The runtime directory; it must exist.

    Raises:
        RuntimeBusyError: Another loop holds it; says which.
    """

    def __init__(self, directory: Path) -> None:
        try:
            super().__init__(directory / "lock")
        except LockHeldError as error:
            raise RuntimeBusyError(
                f"{directory}: in use by another loop (process {error.holder.process}); "
                "stop it first, or give this one a directory of its own with --runtime"
            ) from None


def is_loop_running(directory: Path) -> bool:
    """Whether a loop holds a runtime directory, as far as this user may see it."""
    try:
        return holder_of(directory / "lock") is not None
    except OSError:
        return False
