"""One exclusive lock per device, so that two programs cannot drive the same board.

The SPI driver lets everyone open its nodes, so the lock is a file of its own. It is named after the
node and its inode, so that two emulated devices of one name do not exclude each other. The kernel
drops the lock when its holder dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import tempfile
from pathlib import Path

from daq.errors import DeviceBusyError, DevicePermissionError

_LOCK_DIRECTORY = Path("/run/lock")
_HOLDER_MAX_BYTES = 200


class DeviceLock:
    """Holds a device until it is released or the process ends.

    Args:
        device: Path of the device node; it must exist.

    Raises:
        DeviceBusyError: Another program holds it; says which.
    """

    def __init__(self, device: str) -> None:
        self._path = lock_path(device)
        try:
            self._file = _open_lock_file(self._path)
        except PermissionError as error:
            raise DevicePermissionError(
                device, f"cannot open its lock file {self._path}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(self._file)
            os.close(self._file)
            raise DeviceBusyError(
                device,
                f"in use by {holder}; stop that program first (lock file {self._path})",
            ) from None
        text = f"{os.getpid()} {Path(sys.argv[0]).name}".encode()[:_HOLDER_MAX_BYTES]
        # A lock file of another user can be locked but not written: the lock is what counts.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text, 0)

    def release(self) -> None:
        """Let others have the device."""
        if self._file >= 0:
            # Said aloud: a forked child may still have the file open.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1


def lock_path(device: str) -> Path:
    """Where the lock of a device is."""
    inode = os.stat(device).st_ino
    directory = _LOCK_DIRECTORY if os.access(_LOCK_DIRECTORY, os.W_OK) else _fallback_directory()
    return directory / f"armature.{Path(device).name}.{inode}.lock"


def lock_holder(device: str) -> str | None:
    """Who holds a device, None when nobody does."""
    try:
        file = os.open(lock_path(device), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(file)
    finally:
        os.close(file)
    return None


def _open_lock_file(path: Path) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    # Kernels refuse O_CREAT on somebody else's file in a sticky directory, so first try without.
    for attempt in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return os.open(path, attempt | flags)
    file = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
    # Whatever the umask: other users must be able to see that the device is taken.
    os.fchmod(file, 0o644)
    return file


def _read_holder(file: int) -> str:
    pid, _, program = os.pread(file, _HOLDER_MAX_BYTES, 0).decode(errors="replace").partition(" ")
    return f"{program} (process {pid})" if pid.isdigit() else "another program"


def _fallback_directory() -> Path:
    return Path(tempfile.gettempdir())
