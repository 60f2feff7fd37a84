"""The directory in which the processes of one robot meet: sockets, the spool, and one loop's lock.

Access to the directory is access to the robot: it is made with mode 0750, and refused when others
could enter it. Its lock allows one loop: ZeroMQ takes an `ipc://` socket away from the process that
has bound it, silently.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from daq.errors import ConfigError, DaqError
from daq.system.locks import FileLock, LockHeldError, holder_of

MODE = 0o750
SERVICE_DIRECTORY = Path("/run/armature")
_SOCKET_PATH_MAX = 107


class RuntimeDirectory(NamedTuple):
    """Where things are."""

    path: Path

    @property
    def stream(self) -> str:
        """Endpoint of the published samples."""
        return f"ipc://{self.path}/stream"

    @property
    def commands(self) -> str:
        """Endpoint of the commands."""
        return f"ipc://{self.path}/commands"

    @property
    def spools(self) -> list[Path]:
        """Spool files, oldest session first."""
        return sorted(self.path.glob("spool-*.ring"))

    def spool(self, session: str) -> Path:
        """Return the spool file of a session."""
        return self.path / f"spool-{session}.ring"


def default_runtime_path() -> Path:
    """Return the service's directory where this user may use it, else one of the user's own.

    In memory where possible: on a disk, writing back the spool may hold up the loop.
    """
    if os.access(SERVICE_DIRECTORY, os.R_OK | os.X_OK):
        return SERVICE_DIRECTORY
    if base := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(base) / "armature"
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"
    return Path(base) / f"armature-{os.geteuid()}"


def runtime_directory(path: Path | None = None, *, is_made: bool = False) -> RuntimeDirectory:
    """Return the directory, checked.

    Args:
        path: Where it is; by default `default_runtime_path`.
        is_made: Whether to make it if it is not there.

    Raises:
        ConfigError: It is not there, others may enter it, it is to be made and is another user's,
            or its name is too long for a socket.
    """
    path = (path or default_runtime_path()).absolute()
    longest = len(os.fsencode(path / "commands"))
    if longest > _SOCKET_PATH_MAX:
        problem = f"its sockets' names would have {longest} bytes, at most {_SOCKET_PATH_MAX}"
        raise ConfigError(f"--runtime {path}", [problem])
    try:
        if is_made:
            path.mkdir(mode=MODE, parents=True, exist_ok=True)
        status = path.stat()
    except FileNotFoundError:
        problem = "no such directory: is the loop running? It is made by `armature loop`"
        raise ConfigError(f"--runtime {path}", [problem]) from None
    except OSError as error:
        raise ConfigError(f"--runtime {path}", [f"cannot be used: {error.strerror}"]) from error
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"--runtime {path}", ["not a directory"])
    if is_made and status.st_uid not in (os.geteuid(), 0):
        problem = (
            f"belongs to user {status.st_uid}, not to user {os.geteuid()}: remove it, or choose "
            "another with --runtime"
        )
        raise ConfigError(f"--runtime {path}", [problem])
    if mode & 0o027:
        problem = f"mode {mode:o} lets others command the robot: chmod {MODE:o} {path}"
        raise ConfigError(f"--runtime {path}", [problem])
    return RuntimeDirectory(path)


class RuntimeBusyError(DaqError):
    """Another loop uses the runtime directory.

    Attributes:
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
