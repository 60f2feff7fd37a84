"""One exclusive lock per device, so that two programs cannot drive the same board.

The SPI driver lets everyone open its nodes, so the lock is a file of its own. It is named after the
node and its inode, so that two emulated devices of one name do not exclude each other. The kernel
drops the lock when its holder dies, however it dies. Programs without our lock are found as `fuser`
finds them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from daq.errors import DeviceBusyError, DevicePermissionError
from daq.system.locks import FileLock, Holder, LockHeldError, holder_of

_LOCK_DIRECTORY = Path("/run/lock")
_PROC = Path("/proc")


class DeviceLock:
    """Holds a device, whose node must exist, until it is released or the process ends.

    Raises:
        DeviceBusyError: Another program holds it; says which.
    """

    def __init__(self, device: str) -> None:
        path = lock_path(device)
        try:
            self._lock = FileLock(path, program=Path(sys.argv[0]).name, is_public=True)
        except PermissionError as error:
            raise DevicePermissionError(
                device, f"cannot open its lock file {path}: {error.strerror}"
            ) from error
        except LockHeldError as error:
            raise DeviceBusyError(
                device,
                f"in use by {_text(error.holder)}; stop that program first (lock file {path})",
            ) from None

    def release(self) -> None:
        """Let others have the device."""
        self._lock.release()


def lock_path(device: str) -> Path:
    """Return where the lock of a device is."""
    inode = os.stat(device).st_ino
    is_usable = os.access(_LOCK_DIRECTORY, os.W_OK)
    directory = _LOCK_DIRECTORY if is_usable else Path(tempfile.gettempdir())
    return directory / f"armature.{Path(device).name}.{inode}.lock"


def lock_holder(device: str) -> str | None:
    """Return who holds a device; None when nobody does."""
    holder = holder_of(lock_path(device))
    return None if holder is None else _text(holder)


def programs_using(device: str) -> list[str]:
    """Return the other programs that have a device open, as far as this user may see them."""
    target = os.path.realpath(device)
    found = []
    for process in _PROC.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            is_user = any(os.readlink(link) == target for link in (process / "fd").iterdir())
            name = (process / "comm").read_text(errors="replace").strip() if is_user else ""
        except OSError:  # ended meanwhile, or not ours to look at
            continue
        if is_user:
            found.append(f"{name} (process {process.name})")
    return found


def _text(holder: Holder) -> str:
    if holder.process == "unknown":
        return "another program"
    return f"{holder.program} (process {holder.process})"
