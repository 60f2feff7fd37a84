"""The folder of what was saved after faults: its names, at most one a minute, the newest 20.

Only files whose names are of our making count, and only regular ones: links are neither followed
nor removed.
"""

from __future__ import annotations

import logging
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path

from daq.recorder.disk import RESERVE_BYTES, SUFFIX, Disk
from daq.recorder.journal import SUFFIX as JOURNAL_SUFFIX
from daq.recorder.journal import journal_of
from daq.samples.batches import FAULTS_APART_S, FaultNote

FOLDER = "faults"
KEPT = 20
_TIME = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"fault-(\d{8}T\d{6}Z)-[a-z0-9-]+(?:_\d+)?\.h5(\.journal)?")
_CODE_MAX = 60
_MODE = 0o750
_logger = logging.getLogger(__name__)


def default_folder() -> Path:
    """Return where faults are saved when no recorder runs and nobody has said where else."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "armature" / FOLDER


class FaultFolder:
    """The folder, which is made when the first fault is saved.

    Args:
        path: Where it is.
        reserve_bytes: Save nothing when the disk has no more room than that.
        has_parents: Whether its parents are made, too. They are not beside recordings: a disk that
            is not mounted must not be replaced by a directory.
    """

    def __init__(
        self, path: Path, *, reserve_bytes: int = RESERVE_BYTES, has_parents: bool = False
    ) -> None:
        self.path = path
        self._disk = Disk(path, reserve_bytes=reserve_bytes)
        self._has_parents = has_parents

    def has_one_near(self, note: FaultNote) -> bool:
        """Whether one was saved within a minute of a fault.

        Raises:
            OSError: The folder cannot be read.
        """
        at_s = note.utc_ns * 1e-9
        return any(abs(_time_s(name) - at_s) < FAULTS_APART_S for name in self._names())

    def new_journal(self, note: FaultNote) -> Path:
        """Return where the journal of a fault goes; the folder is there then.

        Raises:
            OSError: The folder cannot be made, or there is no room.
        """
        self.path.mkdir(mode=_MODE, parents=self._has_parents, exist_ok=True)
        self._disk.check_reserve()
        return journal_of(self._disk.unused(name_of(note)))

    def journals(self) -> list[Path]:
        """Return the journals that were not turned into recordings yet; none if that is unknown."""
        try:
            return [self.path / name for name in self._names() if name.endswith(JOURNAL_SUFFIX)]
        except OSError:
            return []

    def keep_newest(self) -> None:
        """Remove all but the newest recordings; says so if that is not possible."""
        try:
            recordings = [name for name in self._names() if name.endswith(SUFFIX)]
            for name in sorted(recordings)[:-KEPT]:
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("%s: the oldest stay: %s", self.path, error.strerror)

    def _names(self) -> list[str]:
        """Return the names of files of ours."""
        try:
            with os.scandir(self.path) as entries:
                return [
                    entry.name
                    for entry in entries
                    if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                ]
        except FileNotFoundError:
            return []


def name_of(note: FaultNote) -> str:
    """Return the file name of a fault: when it was and what was wrong, so that names sort."""
    moment = time.strftime(_TIME, time.gmtime(note.utc_ns // 10**9))
    code = re.sub(r"[^a-z0-9]+", "-", note.code.lower())[:_CODE_MAX].strip("-")
    return f"fault-{moment}-{code or 'unknown'}{SUFFIX}"


def _time_s(name: str) -> float:
    """Return when a file of ours says that its fault was, Unix time; infinite for no such time."""
    found = _NAME.fullmatch(name)
    try:
        moment = datetime.strptime(found[1] if found else "", _TIME)
    except ValueError:
        return float("inf")
    return moment.replace(tzinfo=UTC).timestamp()
