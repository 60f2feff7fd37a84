"""Saves a fault: its samples and events go from the spool into a journal, then the usual way.

The recorder does it, or a process that is started for it (`daq.recorder.faults.program`); a mark
beside the spool keeps one from doing what the other has done. Whatever goes wrong is said, and
disturbs neither.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from daq.errors import DaqError
from daq.recorder.contents import End, Part
from daq.recorder.converters import Converter
from daq.recorder.disk import explain
from daq.recorder.faults.folder import FaultFolder
from daq.recorder.journal import Journal, target_of
from daq.recorder.spools import Spools
from daq.samples.batches import (
    FAULT_LEAD_S,
    FAULTS_APART_S,
    BatchError,
    Event,
    FaultNote,
    Header,
    decode_header,
    encode_header,
)
from daq.samples.spool import SpoolError, SpoolReader
from daq.system.locks import FileLock, LockHeldError

SAVED = "saved"
"""The kind of the event that says in a recording why it was made; its source is the trip's code."""
_logger = logging.getLogger(__name__)


class FaultSaver:
    """Saves the faults that headers tell of.

    Args:
        folder: Where they go.
        spools: Where the marks of what was saved are.
        converter: Turns their journals into recordings.

    Attributes:
        latest: The recording of the last one, or where it will be; None before.
    """

    def __init__(self, folder: FaultFolder, spools: Spools, converter: Converter) -> None:
        self._folder = folder
        self._spools = spools
        self._converter = converter
        self._noted: FaultNote | None = None
        self._tried = 0
        self.latest: Path | None = None

    def enter(self) -> None:
        """Begin with a session."""
        self._noted, self._tried = None, 0

    def take(self, note: FaultNote | None) -> None:
        """Take what a header says; later ones know more."""
        if note is not None and note.number > self._tried:
            self._noted = note

    def save_due(self, spool: SpoolReader) -> None:
        """Save the noted fault if all of it is there."""
        noted = self._noted
        if noted is not None and (noted.end_seq is not None or not spool.is_live()):
            self.save(spool)

    def save(self, spool: SpoolReader) -> None:
        """Save the noted fault as far as it is there, unless that was done; never raises."""
        note, self._noted = self._noted, None
        if note is None:
            return
        # Once: it stands in all headers that follow, and so would the reason why it failed.
        self._tried = note.number
        try:
            with FileLock(spool.path.with_name("faults.lock")):
                self._save(spool, note)
        except LockHeldError:
            return  # somebody else saves it just now
        except (DaqError, OSError) as error:
            reason = explain(self._folder.path, error) if isinstance(error, OSError) else error
            _logger.error("the fault %s is not saved: %s", note.code, reason)

    def _save(self, spool: SpoolReader, note: FaultNote) -> None:
        session = spool.session.session
        if note.number <= self._spools.faults_saved(session):
            return
        if self._folder.has_one_near(note):
            _logger.warning(
                "the fault %s is not saved: %s has another within %.0f s",
                note.code,
                self._folder.path,
                FAULTS_APART_S,
            )
        else:
            journal = _copy(spool, note, self._folder.new_journal(note))
            self.latest = target_of(journal)
            _logger.info("%s: the fault %s is being saved", self.latest, note.code)
            self._converter.start(journal)
        self._spools.mark_fault_saved(session, note.number)


def latest_note(spool: SpoolReader) -> FaultNote | None:
    """Return the fault that a session's last header tells of."""
    for record in spool.read_from(sys.maxsize):
        try:
            return decode_header(record.header).fault
        except BatchError:
            continue
    return None


def _copy(spool: SpoolReader, note: FaultNote, path: Path) -> Path:
    """Copy the samples of a fault into a new journal, and return it.

    Raises:
        SpoolError: The spool has none of them any more.
        OSError: It cannot be written; nothing is left.
    """
    batches = list(_batches(spool, note))
    if not batches:
        raise SpoolError(spool.path, "its samples are overwritten by later ones", code="too-late")
    first, _ = batches[0]
    part = Part(
        number=note.number,
        name=target_of(path).stem,
        part=1,
        stem=target_of(path).name,
        first_seq=note.first_seq,
        first_t_ns=first.t_ns,
        is_of_fault=True,
    )
    journal = Journal.create(path, spool.session_data, part)
    try:
        for header, payload in batches:
            told = _explained(header, note) if header is first else header
            journal.append(header, encode_header(told), payload)
        journal.finish(End(next_seq=max(journal.next_seq, note.end_seq or 0)))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        journal.close()
    return path


def _batches(spool: SpoolReader, note: FaultNote) -> Iterator[tuple[Header, bytes]]:
    """Yield the batches of a fault that the spool has."""
    for record in spool.read_from(note.first_seq):
        try:
            header = decode_header(record.header)
        except BatchError:
            continue
        if note.end_seq is not None and header.seq >= note.end_seq:
            return
        if header.seq + header.count > note.first_seq:
            yield header, record.payload


def _explained(header: Header, note: FaultNote) -> Header:
    """Return the first header of a copy, with an event that says what the copy is."""
    event = Event(
        seq=header.seq,
        t_ns=header.t_ns,
        kind=SAVED,
        text=f"saved after the fault {note.code}, from {FAULT_LEAD_S:g} s before it to its end",
        source=note.code,
    )
    return replace(header, events=(event, *header.events))
