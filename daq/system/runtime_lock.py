"""The lock that allows one loop per runtime directory.

ZeroMQ takes an `ipc://` socket away from the process that has bound it, silently. So a file in the
directory is locked first.
"""

from __future__ import annotations

from pathlib import Path

from daq.errors import DaqError
from daq.system.locks import FileLock, LockHeldError, holder_of


class RuntimeBusyError(DaqError):
    """Another loop uses the runtime directory.

    Attributes:
        directory: The runtime directory.
        process: Number of the process that holds it, or `unknown`.
    """

    def __init__(self, directory: Path, process: str) -> None:
        self.directory = directory
        self.process = process
        super().__init__(
            f"{directory}: in use by another loop (process {process}); "
            "stop it first, or give this one a directory of its own with --runtime",
            code="runtime-busy",
        )


class RuntimeLock(FileLock):
    """Holds a runtime directory, which must exist, until it is released or the process ends.

    Raises:
        RuntimeBusyError: Another loop holds it; says which.
    """

    def __init__(self, directory: Path) -> None:
        try:
            super().__init__(directory / "lock")
        except LockHeldError as error:
            raise RuntimeBusyError(directory, error.holder.process) from None


def is_loop_running(directory: Path) -> bool:
    """Whether a loop holds a runtime directory, as far as this user may see it."""
    try:
        return holder_of(directory / "lock") is not None
    except OSError:
        return False
