"""The directory in which the processes of one robot meet: sockets and the spool.

Access to the directory is access to the robot: it is made with mode 0750, and refused when others
could enter it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from daq.errors import ConfigError

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
