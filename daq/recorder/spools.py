"""The spools of a robot's sessions, how far each has been recorded, and which faults were saved.

Both are kept beside the spool, because recordings that are finished leave no journal: a recorder
that is started again must not record them a second time.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from daq.recorder.disk import is_file_name
from daq.recorder.journal import SUFFIX, session_of
from daq.samples.batches import BatchError, Record, decode_header
from daq.samples.spool import SpoolError, SpoolReader
from daq.system.runtime_directory import RuntimeDirectory

_logger = logging.getLogger(__name__)
_PREFIX, _RING_SUFFIX = "spool-", ".ring"
_RECORDED, _FAULTS = ".recorded", ".faults"
"""The marks of a session: its first sample that is not recorded, its last fault that was saved."""


class Spools:
    """The spools in a runtime directory; none where that is None."""

    def __init__(self, runtime: RuntimeDirectory | None) -> None:
        self._runtime = runtime
        self._complaints: set[Path] = set()

    def open(self, session: str) -> SpoolReader | None:
        """Return the spool of a session, None when there is none that can be read."""
        if self._runtime is None or not is_file_name(session):
            return None
        path = self._runtime.spool(session)
        try:
            return SpoolReader(path)
        except (SpoolError, BatchError) as error:
            if path not in self._complaints and path.exists():
                self._complaints.add(path)
                _logger.warning("%s", error)
            return None

    def is_live(self, session: str) -> bool:
        """Whether the loop of a session is at work."""
        spool = self.open(session)
        if spool is None:
            return False
        with spool:
            return spool.is_live()

    def dead(self) -> list[str]:
        """Return the sessions that are over and left a spool, oldest first."""
        if self._runtime is None:
            return []
        names = [
            path.name.removeprefix(_PREFIX)[: -len(_RING_SUFFIX)] for path in self._runtime.spools
        ]
        return [name for name in names if not self.is_live(name)]

    def recorded_until(self, session: str) -> int:
        """Return the first sample of a session that is in no finished recording."""
        return self._read(self._beside(session, _RECORDED))

    def mark_recorded(self, session: str, seq: int) -> None:
        """Note that all samples in front of one are in finished recordings, or in none."""
        self._write(self._beside(session, _RECORDED), seq)

    def faults_saved(self, session: str) -> int:
        """Return the number of the last fault of a session that was saved; 0 for none."""
        return self._read(self._beside(session, _FAULTS))

    def mark_fault_saved(self, session: str, number: int) -> None:
        """Note that a fault was saved, or need not be."""
        self._write(self._beside(session, _FAULTS), number)

    def remove(self, session: str) -> None:
        """Remove what a session left, once all of it is recorded."""
        for suffix in (_RING_SUFFIX, _RECORDED, _FAULTS):
            path = self._beside(session, suffix)
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()

    def remove_if_recorded(self, session: str) -> None:
        """Remove what a dead session left, if it holds nothing that is not recorded or saved."""
        spool = self.open(session) if session else None
        if spool is None:
            return
        with spool:
            until, faults = self.recorded_until(session), self.faults_saved(session)
            is_wanted = any(_is_wanted(record, until, faults) for record in spool.read_from(until))
            if is_wanted or spool.is_live():
                return
        self.remove(session)

    def _beside(self, session: str, suffix: str) -> Path | None:
        if self._runtime is None or not is_file_name(session):
            return None
        return self._runtime.path / f"{_PREFIX}{session}{suffix}"

    def _read(self, mark: Path | None) -> int:
        try:
            return int(mark.read_text()) if mark else 0
        except (OSError, ValueError):
            return 0

    def _write(self, mark: Path | None, number: int) -> None:
        if mark is None:
            return
        new = mark.with_name(f".{mark.name}.new")
        try:
            new.write_text(str(number))
            new.rename(mark)
        except OSError as error:
            _logger.warning("%s: cannot be written: %s", mark, error.strerror)


def _is_wanted(record: Record, recorded_until: int, faults_saved: int) -> bool:
    try:
        header = decode_header(record.header)
    except BatchError:
        return False
    is_recorded = header.recording is None or header.seq + header.count <= recorded_until
    is_saved = header.fault is None or header.fault.number <= faults_saved
    return not (is_recorded and is_saved)


def unattended(directory: Path, spools: Spools) -> list[Path]:
    """Return the journals in a directory that do not belong to a session that lives."""
    found = []
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        try:
            if not spools.is_live(session_of(path)):
                found.append(path)
        except OSError:
            continue
    return found
