"""The journal: batches appended to a file so that a crash costs only its last moment.

What is in it is described in `daq.recorder.contents`. The process that writes or converts a journal
holds an advisory lock on it. Nothing here decides what is recorded.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from daq.recorder.contents import (
    KIND_END,
    KIND_PART,
    MAGIC,
    End,
    JournalBusyError,
    JournalError,
    Part,
    Scan,
    read_contents,
)
from daq.recording.whole_files import sync_directory
from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    BatchError,
    Header,
    Record,
    decode_header,
    decode_session,
    frame_record,
    read_record,
)
from daq.system.locks import hold

SUFFIX = ".journal"
MODE = 0o640
_CHUNK = 1 << 20
_HEAD_RECORDS = 2
"""The session, and the part."""
_END_MAX = 1024
"""Bytes of the record that ends a journal, at most."""
_logger = logging.getLogger(__name__)


class Progress(NamedTuple):
    """How far a journal has come: bytes, samples, and the sample that is next."""

    size: int
    samples: int
    next_seq: int


def target_of(journal: Path) -> Path:
    """Return the recording that a journal becomes."""
    return journal.with_name(journal.name.removesuffix(SUFFIX))


def journal_of(target: Path) -> Path:
    """Return the journal of a recording."""
    return target.with_name(target.name + SUFFIX)


class Journal:
    """A journal that is open for writing, and locked. Make one with `create` or `open`.

    Attributes:
        path: The file.
        session_data: The session as its bytes; empty if it is damaged.
        part: What it holds.
        end: How it ended; None while it has not.
        written: How far it has come.
        synced: How far it is safe on the disk.
    """

    def __init__(
        self,
        path: Path,
        file: int,
        *,
        session_data: bytes,
        part: Part,
        end: End | None,
        progress: Progress,
    ) -> None:
        self.path = path
        self._file = file
        self.session_data = session_data
        self.part = part
        self.end = end
        self.written = self.synced = progress

    @classmethod
    def create(cls, path: Path, session_data: bytes, part: Part) -> Self:
        """Return a new journal.

        Raises:
            FileExistsError: There is such a file.
            OSError: It cannot be made.
        """
        head = _head(session_data, part)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
        try:
            lock(file, path)
            _write_all(file, head, 0)
            os.fsync(file)
            sync_directory(path.parent)
        except BaseException:
            # Nothing is lost with it, and its name is free again.
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(file)
            raise
        progress = Progress(len(head), 0, part.first_seq)
        return cls(path, file, session_data=session_data, part=part, end=None, progress=progress)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return an existing journal, cut behind its last sound record, to be continued.

        Raises:
            JournalBusyError: Somebody else is at work on it.
            JournalError: It is not a journal, or does not say which recording it is of.
            OSError: It cannot be opened.
        """
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            lock(file, path)
            contents = read_contents(file, path)
            part = contents.part
            if part is None:
                problem = "is not a journal, or damaged at its beginning"
                raise JournalError(path, problem, code="not-a-journal")
            if contents.torn:
                os.ftruncate(file, contents.end_of_records)
                os.fsync(file)
        except BaseException:
            os.close(file)
            raise
        return cls(
            path,
            file,
            session_data=contents.session_data,
            part=part,
            end=contents.end,
            progress=Progress(contents.end_of_records, contents.samples, contents.next_seq),
        )

    @property
    def next_seq(self) -> int:
        """The first sample behind it."""
        return self.end.next_seq if self.end else self.written.next_seq

    @property
    def missing(self) -> int:
        """Samples that it should hold and does not."""
        return self.next_seq - self.part.first_seq - self.written.samples

    def append(self, header: Header, header_data: bytes, payload: bytes) -> None:
        """Add a batch.

        Raises:
            OSError: It cannot be written; nothing of it stays in the file.
        """
        record = frame_record(KIND_BATCH, header_data, payload)
        if not self.written.samples:
            # A second time, and not beside the first: damage to one leaves the other.
            record += frame_record(KIND_SESSION, self.session_data)
        self._append(record)
        _, samples, _ = self.written
        self.written = Progress(
            self.written.size + len(record), samples + header.count, header.seq + header.count
        )

    def finish(self, end: End) -> None:
        """Say that it is whole, and make all of it safe.

        Raises:
            OSError: It cannot be written.
        """
        record = frame_record(KIND_END, msgspec.json.encode(end))
        self._append(record)
        self.written = self.written._replace(size=self.written.size + len(record))
        self.sync()
        self.end = end

    def _append(self, record: bytes) -> None:
        size = self.written.size
        try:
            _write_all(self._file, record, size)
        except OSError:
            # Should this fail too, the next record is written over it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def sync(self) -> None:
        """Make what was written safe on the disk.

        Raises:
            OSError: It is not: what was written since the last time may be lost. The journal has
                gone back to where it was then, so that it can be written again.
        """
        if self.synced == self.written:
            return
        try:
            os.fdatasync(self._file)
        except OSError:
            self.written = self.synced
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.written.size)
            raise
        self.synced = self.written

    def is_in_place(self) -> bool:
        """Whether the file is still where it was made."""
        try:
            there = self.path.stat()
        except OSError:
            return False
        here = os.fstat(self._file)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def put_back(self) -> None:
        """Copy a file that was removed while it was open back to its place.

        Raises:
            FileExistsError: There is another file.
            OSError: It cannot be copied.
        """
        copy = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
        try:
            lock(copy, self.path)
            size = self.written.size
            place = 0
            while place < size:
                chunk = os.pread(self._file, min(_CHUNK, size - place), place)
                if not chunk:
                    problem = "the removed journal was cut meanwhile"
                    raise JournalError(self.path, problem, code="cut")
                _write_all(copy, chunk, place)
                place += len(chunk)
            os.fsync(copy)
            sync_directory(self.path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                self.path.unlink()
            os.close(copy)
            raise
        os.close(self._file)
        self._file, self.synced = copy, self.written

    def extend_from(self, longer: Journal) -> None:
        """Add what a longer copy of this journal holds.

        Raises:
            OSError: It cannot be read or written.
        """
        place, size = self.written.size, longer.written.size
        while place < size:
            chunk = os.pread(longer._file, min(_CHUNK, size - place), place)
            _write_all(self._file, chunk, place)
            place += len(chunk)
        if size > self.written.size:
            self.written, self.end = longer.written, longer.end

    def close(self) -> None:
        """Let go of it, and of its lock."""
        # Its number may soon be another file's.
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def lock(file: int, path: Path) -> None:
    """Take the lock of a journal.

    Raises:
        JournalBusyError: Somebody else has it.
        FileNotFoundError: It was removed meanwhile.
    """
    if not hold(file):
        raise JournalBusyError(path)
    if not os.fstat(file).st_nlink:
        # The process that had the lock has converted it.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def is_journal(file: int) -> bool:
    """Whether an open file begins as a journal does, or would have if it had come so far."""
    start = os.pread(file, len(MAGIC), 0)
    return MAGIC.startswith(start)


def _head(session_data: bytes, part: Part) -> bytes:
    return frame_record(KIND_SESSION, session_data) + frame_record(
        KIND_PART, msgspec.json.encode(part)
    )


def _write_all(file: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, place)
        view, place = view[count:], place + count


def find_journals(directory: Path, session: str) -> list[Journal]:
    """Open the journals of a session that nobody is at work on, in the order they were written."""
    found = []
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        try:
            if session_of(path) == session:
                found.append(Journal.open(path))
        except (JournalBusyError, FileNotFoundError):
            continue  # somebody else takes care of it
        except OSError as error:
            _logger.warning("%s", error)
    return sorted(found, key=lambda journal: (journal.part.number, journal.part.part))


def end_of(path: Path) -> End | None:
    """Return how a journal ended; None if it did not. Only its last record is read.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _END_MAX, 0))
        tail = file.read()
    record = read_record(tail, max(tail.rfind(MAGIC), 0))
    if record is None or record.kind != KIND_END or record.end != len(tail):
        return None
    try:
        return msgspec.json.decode(record.header, type=End)
    except msgspec.MsgspecError:
        return None


def part_of(path: Path) -> Part | None:
    """Return which part of what a journal holds; None if its head does not say.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        for record in islice(Scan(file.read), _HEAD_RECORDS):
            if record.kind == KIND_PART:
                with contextlib.suppress(msgspec.MsgspecError):
                    return msgspec.json.decode(record.header, type=Part)
    return None


def session_of(path: Path) -> str:
    """Return the name of the session that a journal belongs to; empty if it does not say.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        # Usually the first record has it, and no more is read.
        return next(filter(None, map(_session_in, Scan(file.read))), "")


def _session_in(record: Record) -> str:
    try:
        if record.kind == KIND_SESSION:
            return decode_session(record.header).session
        if record.kind == KIND_BATCH:
            return decode_header(record.header).session
    except BatchError:
        pass
    return ""
