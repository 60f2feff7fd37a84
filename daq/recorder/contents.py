"""The contents of a journal, and how they are read whatever happened to the file.

Records of `daq.samples.batches` follow one another: the session, the `Part` that it is, batches,
and an `End` if it came to one. Each has a checksum, so a torn end is recognised, and so is damage
in the middle, behind which reading goes on at the next sound record. The session is there twice:
without it nothing else makes sense. Nothing here writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from daq.errors import DaqError
from daq.samples.batches import (
    HEADER_MAX,
    KIND_BATCH,
    KIND_SESSION,
    PAYLOAD_MAX,
    RECORD_OVERHEAD,
    BatchError,
    Header,
    Record,
    decode_header,
    frame_record,
    read_record,
)

KIND_PART, KIND_END = 2, 3
MAGIC = frame_record(KIND_SESSION, b"")[:4]
_RECORD_MAX = RECORD_OVERHEAD + HEADER_MAX + PAYLOAD_MAX
_CHUNK = 1 << 20


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of which recording a journal holds.

    Attributes:
        number: Of the recording in its session.
        name: Of the recording; empty when it got none.
        part: Counts the files of a recording that is rotated, from 1.
        stem: Name of its first file, after which the others are named.
        first_seq: The first sample that belongs to it.
        first_t_ns: Monotonic clock at its first batch.
        is_of_fault: Whether it holds a copy of what surrounds a fault; what the session asked to
            record is recorded apart from that.
    """

    number: int
    name: str
    part: int
    stem: str
    first_seq: int
    first_t_ns: int
    is_of_fault: bool = False


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The record that says that a journal is whole.

    Attributes:
        next_seq: The sample before this one was the last.
        is_rotated: Whether the recording goes on in another file.
    """

    next_seq: int
    is_rotated: bool = False


class JournalError(DaqError, OSError):
    """A journal cannot be used."""

    def __init__(self, path: Path, message: str, *, code: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {message}", code=code)


class JournalBusyError(JournalError):
    """Somebody is writing or converting it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, "is in use: a recorder or a recovery is at work on it", code="in-use"
        )


class Scan:
    """The sound records of a journal, one after the other.

    Args:
        read: Gives the next bytes, at most as many as asked for; none at the end.

    Attributes:
        end: Where the last sound record ended.
        skipped: Bytes in front of it that belong to no sound record.
        torn: Bytes behind it.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.end = 0
        self.skipped = 0
        self.torn = 0

    def __iter__(self) -> Iterator[Record]:
        data, place, is_over = b"", 0, False
        while True:
            record = read_record(data, place)
            if record is not None:
                self.skipped += self.torn
                self.end += self.torn + record.end - place
                self.torn, place = 0, record.end
                yield record
            elif not is_over and len(data) - place < _RECORD_MAX:
                # It may be whole once more of it is there.
                more = self._read(max(_CHUNK, len(data) - place))
                data, place, is_over = data[place:] + more, 0, not more
            elif place < len(data):
                found = data.find(MAGIC, place + 1)
                if found < 0:
                    # The last bytes may be the beginning of a magic.
                    found = len(data) if is_over else len(data) - len(MAGIC) + 1
                self.torn, place = self.torn + found - place, found
            else:
                return


class Contents(NamedTuple):
    """What a journal holds.

    Attributes:
        session_data: The session as its bytes; empty if it is damaged.
        part: What it is of; None if that is damaged.
        end: How it ended; None if it did not.
        samples: How many.
        next_seq: The one behind the last.
        end_of_records: Where the last sound record ends.
        skipped: Bytes in the middle that are damaged, or not understood.
        torn: Bytes at the end that are not a whole record.
    """

    session_data: bytes
    part: Part | None
    end: End | None
    samples: int
    next_seq: int
    end_of_records: int
    skipped: int
    torn: int

    @property
    def first_seq(self) -> int:
        """The sample that it should begin with."""
        return self.part.first_seq if self.part else self.next_seq - self.samples

    @property
    def end_seq(self) -> int:
        """The sample behind the one that it should end with."""
        return max(self.next_seq, self.end.next_seq if self.end else 0)

    @property
    def missing(self) -> int:
        """Samples that it should hold and does not, as far as it can tell."""
        return max(self.end_seq - self.first_seq - self.samples, 0)


class Tally:
    """What a journal holds, counted while its batches are read, from its beginning.

    Attributes:
        session_data: The session as its bytes, once it was seen.
    """

    def __init__(self, file: int, path: Path) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        self._scan = Scan(lambda size: os.read(file, size))
        self._path = path
        self.session_data = b""
        self._part: Part | None = None
        self._end: End | None = None
        self._samples = self._next_seq = self._strange = 0
        self._problem: Exception | None = None

    @property
    def read_bytes(self) -> int:
        """How far the journal is read."""
        return self._scan.end

    def batches(self) -> Iterator[tuple[Header, bytes]]:
        """Yield the batches that are understood; may be left before the end.

        Raises:
            OSError: It cannot be read.
        """
        for record in self._scan:
            try:
                if record.kind == KIND_BATCH:
                    header = decode_header(record.header)
                    self._samples += header.count
                    self._next_seq = header.seq + header.count
                    yield header, record.payload
                elif record.kind == KIND_SESSION:
                    self.session_data = record.header
                elif record.kind == KIND_PART:
                    self._part = msgspec.json.decode(record.header, type=Part)
                elif record.kind == KIND_END:
                    self._end = msgspec.json.decode(record.header, type=End)
            except (BatchError, msgspec.MsgspecError) as error:
                self._problem = self._problem or error
                self._strange += RECORD_OVERHEAD + len(record.header) + len(record.payload)

    def contents(self) -> Contents:
        """Return what was found so far.

        Raises:
            JournalError: There are records, but no samples that are understood.
        """
        if self._problem is not None and not self._samples:
            # Not damaged here and there, but of another version.
            problem = f"nothing in it is understood: {self._problem}"
            raise JournalError(self._path, problem, code="not-understood") from self._problem
        return Contents(
            self.session_data,
            self._part,
            self._end,
            self._samples,
            max(self._next_seq, self._part.first_seq if self._part else 0),
            self._scan.end,
            self._scan.skipped + self._strange,
            self._scan.torn,
        )


def read_contents(file: int, path: Path, *, is_head_enough: bool = False) -> Contents:
    """Read all of a journal, without keeping it; or as far as its session and a first batch.

    Raises:
        JournalError: It holds records, but no samples that are understood.
        OSError: It cannot be read.
    """
    tally = Tally(file, path)
    for _ in tally.batches():
        if is_head_enough and tally.session_data:
            break
    return tally.contents()
