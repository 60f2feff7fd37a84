"""The journals of a session's recordings: how they begin, go on, rotate and end.

Errors of the operating system are raised as they come; the caller decides what becomes of the
samples meanwhile, and may call again.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from msgspec.structs import replace

from daq.errors import ConfigError
from daq.recorder.contents import End, Part
from daq.recorder.converters import Converter
from daq.recorder.disk import SUFFIX, Disk, is_file_name
from daq.recorder.journal import Journal, find_journals, journal_of, target_of
from daq.recorder.spools import Spools
from daq.robot import parse_robot
from daq.samples.batches import Header, RecordingRequest, Session

_logger = logging.getLogger(__name__)


class RecordingFiles:
    """The files of what is being recorded; options as those of `Recorder`.

    Attributes:
        journal: The one that is open.
        targets: The recordings that were begun, oldest first.
        finished: How many recordings came to their end.
        is_adopting: Whether they are of earlier sessions, which are not those that were asked for.
    """

    def __init__(
        self,
        disk: Disk,
        spools: Spools,
        converter: Converter,
        *,
        file_name: str = "",
        rotate_s: float | None = None,
        is_once: bool = False,
    ) -> None:
        self._disk = disk
        self._spools = spools
        self._converter = converter
        self._file_name = file_name
        self._rotate_ns = None if rotate_s is None else round(rotate_s * 1e9)
        self.journal: Journal | None = None
        self.targets: list[Path] = []
        self._is_once = is_once
        self.finished = 0
        self.is_adopting = False
        self._leftovers: dict[int, Journal] = {}
        self._session = ""
        self._session_data = b""
        self._default_name = ""
        self._recorded_until = 0
        self._written_before = self._missing_before = 0

    @property
    def written(self) -> int:
        """Samples of this recording that are safe on the disk."""
        return self._written_before + (self.journal.synced.samples if self.journal else 0)

    @property
    def missing(self) -> int:
        """Samples of this recording that could not be had."""
        return self._missing_before + (self.journal.missing if self.journal else 0)

    def enter(self, session: Session, data: bytes) -> int:
        """Begin with a session; return its first sample that is not recorded yet.

        Journals that an earlier recorder left of it are found.
        """
        self._session_data = data
        self._default_name = f"{_robot_name(session)}_{session.session}"
        self._session = session.session
        self._recorded_until = self._spools.recorded_until(session.session)
        for journal in find_journals(self._disk.directory, session.session):
            self._recorded_until = max(self._recorded_until, journal.next_seq)
            older = self._leftovers.pop(journal.part.number, None)
            if older is not None:
                self._hand_over(older)
            self._leftovers[journal.part.number] = journal
        return self._recorded_until

    def follow(self, header: Header, next_seq: int, seen_end: int) -> Journal | None:
        """Return the journal that a batch goes into; begins and ends recordings as its header says.

        Args:
            header: Of the batch.
            next_seq: The sample behind the last that was taken.
            seen_end: The sample behind the last that is known to belong to the open recording.

        Raises:
            OSError: Something cannot be written; the same call can be made again.
        """
        wanted = header.recording
        if wanted is not None and header.seq < wanted.first_seq:
            wanted = None
        if self._is_once and self.finished and not self.is_adopting:
            wanted = None
        if self.journal and (wanted is None or wanted.number != self.journal.part.number):
            # Without the batch at which it ended, its end is where it was last seen.
            self.end(next_seq if header.seq == next_seq else max(next_seq, seen_end))
        for number in [n for n in self._leftovers if wanted is None or n != wanted.number]:
            self._hand_over(self._leftovers.pop(number))
        if wanted is None:
            return None
        if self.journal is None:
            self._begin(wanted, header)
        elif self._is_rotation_due(self.journal, header):
            self._rotate(self.journal, header)
        return self.journal

    def end(self, next_seq: int) -> None:
        """End the recording that is open, in front of the sample `next_seq`.

        Raises:
            OSError: That cannot be written; the recording stays open.
        """
        self.bring_back()
        journal = self.journal
        if journal is None:
            return
        journal.finish(End(next_seq=next_seq))
        _logger.info(
            "%s: %d samples, %d missing", self.targets[-1], journal.written.samples, self.missing
        )
        # Noted first: once it is converted, there is no journal that says so.
        self._recorded_until = next_seq
        self._spools.mark_recorded(self._session, next_seq)
        self.journal = None
        self.finished += not self.is_adopting
        self._written_before = self._missing_before = 0
        self._hand_over(journal)

    def leave(self) -> None:
        """Leave the session; nothing is open any more."""
        while self._leftovers:
            self._hand_over(self._leftovers.popitem()[1])

    def bring_back(self) -> None:
        """Put the open journal back if it is not where it belongs.

        Raises:
            OSError: It was removed, and cannot be put back yet.
        """
        journal = self.journal
        if journal is None or journal.is_in_place():
            return
        try:
            journal.put_back()
        except FileExistsError:
            # The disk was away and is back, with the file on it.
            there = Journal.open(journal.path)
            if there.part != journal.part or there.session_data != journal.session_data:
                there.close()
                raise
            # What came since then is also in the spool, should the old file be out of reach.
            with contextlib.suppress(OSError):
                there.extend_from(journal)
            journal.close()
            self.journal = there
        _logger.warning("%s: was removed, and has been put back", journal.path)

    def give_up(self) -> None:
        """Leave what cannot be finished in its journal, for a recovery."""
        journal, self.journal = self.journal, None
        if journal is not None:
            if not journal.is_in_place():
                self._rescue(journal)
            _logger.error("%s: not finished; `armature recover` will", journal.path)
            journal.close()
        for leftover in self._leftovers.values():
            leftover.close()
        self._leftovers = {}

    def _rescue(self, journal: Journal) -> None:
        """Put a journal whose directory is gone elsewhere: this process has its only copy."""
        for directory in journal.path.parents[1:]:
            journal.path = directory / journal.path.name
            with contextlib.suppress(OSError):
                journal.put_back()
                return

    def _begin(self, wanted: RecordingRequest, header: Header) -> None:
        before = self._leftovers.get(wanted.number)
        if before is not None and before.end is None:
            self.journal = self._leftovers.pop(wanted.number)
            self.targets.append(target_of(before.path))
            _logger.info("%s: continued at sample %d", self.targets[-1], before.written.next_seq)
            return
        part = Part(
            number=wanted.number,
            name=wanted.name,
            part=1,
            stem=self._name(wanted),
            first_seq=max(wanted.first_seq, self._recorded_until),
            first_t_ns=header.t_ns,
        )
        if before is not None and before.end is not None and before.end.is_rotated:
            part = _next_part(before.part, before.end.next_seq, header)
        self._create(part)
        if not self.is_adopting:
            self._file_name = ""
        if before is not None:
            self._hand_over(self._leftovers.pop(wanted.number))

    def _create(self, part: Part) -> None:
        self._disk.check_reserve()
        target = self._disk.unused(part.stem, part=part.part)
        if part.part == 1:
            part = replace(part, stem=target.name)
        self.journal = Journal.create(journal_of(target), self._session_data, part)
        self.targets.append(target)
        _logger.info("%s: recording from sample %d", target, part.first_seq)

    def _name(self, wanted: RecordingRequest) -> str:
        if self._file_name and not self.is_adopting:
            return self._file_name
        name = wanted.name if is_file_name(wanted.name) else self._default_name
        return f"{name.removesuffix(SUFFIX)}{SUFFIX}"

    def _is_rotation_due(self, journal: Journal, header: Header) -> bool:
        return (
            self._rotate_ns is not None
            and header.t_ns - journal.part.first_t_ns >= self._rotate_ns
            and journal.written.samples > 0
        )

    def _rotate(self, journal: Journal, header: Header) -> None:
        self.bring_back()
        # First this one is whole, then the next begins: whenever we are interrupted, what is there
        # shows where to go on.
        if journal.end is None:
            journal.finish(End(next_seq=journal.written.next_seq, is_rotated=True))
        self._create(_next_part(journal.part, journal.next_seq, header))
        self._written_before += journal.synced.samples
        self._missing_before += journal.missing
        self._hand_over(journal)

    def _hand_over(self, journal: Journal) -> None:
        journal.close()
        self._converter.start(journal.path)


def _next_part(part: Part, first_seq: int, header: Header) -> Part:
    return replace(part, part=part.part + 1, first_seq=first_seq, first_t_ns=header.t_ns)


def _robot_name(session: Session) -> str:
    try:
        return parse_robot(session.robot_text, session.robot_source).name
    except ConfigError:
        return "robot"
