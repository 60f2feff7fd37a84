"""Where recordings go: names that overwrite nothing, room, and what is wrong with the disk."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from daq.recorder.journal import journal_of

RESERVE_BYTES = 64 << 20
"""Room that is left alone. Filling a disk to the brim would gain five minutes of samples, and cost
the computer its logs and finished recordings the room in which they become smaller."""
SUFFIX = ".h5"
_PROBE_BYTES = 4096
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_REMEDIES = {
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "the disk quota is used up: make room",
    errno.EROFS: "the disk is read-only: mount it for writing",
    errno.EIO: "the disk reports errors: check the card or cable",
    errno.ENOENT: "the directory is gone: mount its disk, or make it again",
    errno.ENOTDIR: "is not a directory",
    errno.EACCES: "may not be written by this user: change its owner or mode",
}


class Disk:
    """The directory of the recordings, which must be there and is never made here."""

    def __init__(self, directory: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        self.directory = directory
        self._reserve_bytes = reserve_bytes

    def free_bytes(self) -> int:
        """Return the room on the disk, without the file system's reserve; 0 if it is not there."""
        try:
            status = os.statvfs(self.directory)
        except OSError:
            return 0
        return status.f_bavail * status.f_frsize

    def check_reserve(self, *, more_bytes: int = 0) -> None:
        """Check that there is more room than the reserve.

        Raises:
            OSError: There is not.
        """
        free, needed = self.free_bytes(), self._reserve_bytes + more_bytes
        if free < needed and self.directory.is_dir():
            text = f"{free >> 20} MB free, {needed >> 20} MB are left alone"
            raise OSError(errno.ENOSPC, text)

    def check(self) -> None:
        """Check that files can be made and written again, with some room to spare.

        Raises:
            OSError: They cannot.
        """
        self.check_reserve(more_bytes=max(self._reserve_bytes // 4, 2 * _PROBE_BYTES))
        probe = self.directory / ".armature-probe"
        file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, bytes(_PROBE_BYTES))
            os.fsync(file)
        finally:
            os.close(file)
            probe.unlink()

    def unused(self, name: str, *, part: int = 1, but: Path | None = None) -> Path:
        """Return a path under which there is neither a recording nor a journal except `but`.

        The second and further parts of a recording have their number in the name.
        """
        path = self.directory / name
        if part > 1:
            path = path.with_name(f"{path.stem}_{part:03}{path.suffix}")
        stem, count = path.stem, 1
        while path.exists() or (journal_of(path) != but and journal_of(path).exists()):
            count += 1
            path = path.with_name(f"{stem}_{count}{path.suffix}")
        return path


def is_file_name(name: str) -> bool:
    """Whether a name from the stream may become a file's."""
    return _NAME.fullmatch(name) is not None


def explain(directory: Path, error: OSError) -> str:
    """Return what is wrong and what to do, in a sentence."""
    remedy = _REMEDIES.get(error.errno or 0)
    detail = error.strerror or str(error)
    if remedy is None:
        return f"{directory}: cannot be written: {detail}"
    if error.errno and detail != os.strerror(error.errno):
        return f"{directory}: {remedy} ({detail})"
    return f"{directory}: {remedy}"
