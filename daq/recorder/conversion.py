"""Conversion of a journal into a recording; only when that is checked is the journal removed.

Samples are decoded in blocks. Interrupted at any moment it leaves the journal, and is simply done
again. The journal is read once, and the recording once to verify it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from daq import recording
from daq.errors import DaqError
from daq.recorder.contents import JournalError, Tally, read_contents
from daq.recorder.disk import Disk
from daq.recorder.journal import is_journal, lock, target_of
from daq.recording.errors import RecordingError
from daq.samples.batches import BatchError, Session, decode_session
from daq.samples.columns import ColumnDecoder
from firmware_protocol.errors import ProtocolError

BLOCK_SAMPLES = 10_000
_CLOCK_PAIR_EVERY_NS = 1_000_000_000
_TORN_HEAD_MAX = 1 << 14
"""A recorder that was interrupted at once leaves less than that."""
Progress = Callable[[int, int], None]


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a journal.

    Attributes:
        journal: The file it was.
        file: The recording; empty if there was nothing in it, or it could not be made.
        samples: How many are in the recording.
        missing: How many should be and are not.
        gaps: Where: first number and count of each.
        size_bytes: Of the recording.
        damaged_bytes: Of the journal, in its middle, that could not be read.
        torn_bytes: At its end: a record that was being written when it was interrupted.
        fetched: Samples that were taken from the spool.
        note: What else to know.
        problem: Why it stays; empty when it was converted.
        code: The note or problem in a word, for programs.
    """

    journal: str
    file: str = ""
    samples: int = 0
    missing: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    size_bytes: int = 0
    damaged_bytes: int = 0
    torn_bytes: int = 0
    fetched: int = 0
    note: str = ""
    problem: str = ""
    code: str = ""


def convert_journal(
    journal: Path,
    target: Path | None = None,
    *,
    session_data: bytes = b"",
    progress: Progress | None = None,
) -> Conversion:
    """Turn a journal into a recording, then remove the journal.

    Args:
        journal: The file; nobody else may be at work on it.
        target: The recording; by default as the journal without its suffix. If there is another
            file of that name, a number is added.
        session_data: To use if the journal's own is damaged.
        progress: Called with bytes read and bytes in all.

    Raises:
        JournalError: It is not a journal, or somebody else is at work on it.
        RecordingError: The recording cannot be written.
        DaqError: Its session cannot be understood.
        OSError: It cannot be read.
    """
    file = os.open(journal, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock(file, journal)
        result = _convert(file, journal, target or target_of(journal), session_data, progress)
        journal.unlink()
    finally:
        os.close(file)
    return result


def _convert(
    file: int, journal: Path, target: Path, session_data: bytes, progress: Progress | None
) -> Conversion:
    head = read_contents(file, journal, is_head_enough=True)
    if not head.samples and not head.missing:
        # What a crash at its very beginning leaves may go; more than that stays, readable or not.
        is_understood = head.end_of_records or head.torn <= _TORN_HEAD_MAX
        if not is_journal(file) or not is_understood:
            problem = "is not a journal of ours: nothing in it was understood"
            raise JournalError(journal, problem, code="not-a-journal")
        return Conversion(
            journal=str(journal),
            damaged_bytes=head.skipped,
            torn_bytes=head.torn,
            note="held no samples",
            code="no-samples",
        )
    session = _session(head.session_data or session_data, journal)
    decoder = _decoder(session, journal)
    if (done := _done(file, journal, target, session)) is not None:
        return done
    target = Disk(target.parent).unused(target.name, but=journal)
    name = (head.part.name if head.part else "") or target.stem
    writer = recording.RecordingWriter(target, decoder.recording_info(name))
    try:
        return _Passage(file, journal, decoder, progress).write_to(writer)
    except BaseException:
        writer.abandon()
        raise


class _Passage:
    """The way of a journal's samples into a recording, in little memory."""

    def __init__(
        self, file: int, journal: Path, decoder: ColumnDecoder, progress: Progress | None
    ) -> None:
        self._journal = journal
        self._size = os.fstat(file).st_size
        self._tally = Tally(file, journal)
        self._decoder = decoder
        self._progress = progress
        self._clock_pairs: list[tuple[int, int]] = []
        self._last_pair = (0, 0)

    def write_to(self, writer: recording.RecordingWriter) -> Conversion:
        """Fill and close a recording."""
        decoder = self._decoder
        first_seq = next_seq = None
        for payload in self._blocks(writer):
            samples = decoder.layout.view(payload)
            writer.append(decoder.decode(samples))
            writer.add_invalid_frames(*decoder.invalid_frames(samples))
            if first_seq is None:
                first_seq = int(samples["seq"][0])
            next_seq = int(samples["seq"][-1]) + 1
            if self._progress is not None:
                self._progress(self._tally.read_bytes, self._size)
        if self._clock_pairs and self._last_pair != self._clock_pairs[-1]:
            self._clock_pairs.append(self._last_pair)
        writer.add_clock_pairs(self._clock_pairs)
        contents = self._tally.contents()
        # What is missing in between shows by the numbers.
        begin, end = contents.first_seq, contents.end_seq
        if first_seq is None or next_seq is None:
            written = writer.close([(begin, end - begin)])
        else:
            gaps = (begin, first_seq - begin), (next_seq, end - next_seq)
            written = writer.close([(seq, count) for seq, count in gaps if count > 0])
        unused = contents.samples - written.samples
        return Conversion(
            journal=str(self._journal),
            file=str(writer.path),
            samples=written.samples,
            missing=sum(gap.count for gap in written.gaps),
            gaps=tuple((gap.first_seq, gap.count) for gap in written.gaps),
            size_bytes=writer.path.stat().st_size,
            damaged_bytes=contents.skipped,
            torn_bytes=contents.torn,
            note=f"{unused} samples were there twice or not understood" if unused else "",
        )

    def _blocks(self, writer: recording.RecordingWriter) -> Iterator[bytes]:
        """Yield the bytes of each sample once, in the order of their numbers."""
        session, size = self._decoder.session.session, self._decoder.layout.size
        parts: list[bytes] = []
        count = next_seq = 0
        for header, payload in self._tally.batches():
            repeated = max(next_seq - header.seq, 0)
            is_sound = header.session == session and len(payload) == header.count * size
            if not is_sound or repeated >= header.count:
                continue
            next_seq = header.seq + header.count
            if header.events:
                writer.add_events(header.events)
            self._last_pair = header.t_ns, header.utc_ns
            pairs = self._clock_pairs
            if not pairs or header.t_ns - pairs[-1][0] >= _CLOCK_PAIR_EVERY_NS:
                pairs.append(self._last_pair)
            parts.append(payload[repeated * size :])
            count += header.count - repeated
            if count >= BLOCK_SAMPLES:
                yield b"".join(parts)
                parts, count = [], 0
        if parts:
            yield b"".join(parts)


def _done(file: int, journal: Path, target: Path, session: Session) -> Conversion | None:
    """Return what an earlier conversion made that was interrupted only after it had finished."""
    if not target.exists():
        return None
    contents = read_contents(file, journal)
    try:
        with recording.open_recording(target) as there:
            count = there.sample_count
            last_seq = int(there["seq"][-1]) if count else contents.next_seq - 1
            is_same = there.attributes["session"] == session.session
            gaps = tuple((gap.first_seq, gap.count) for gap in there.gaps)
    except RecordingError:
        return None
    if not is_same or (count, last_seq) != (contents.samples, contents.next_seq - 1):
        return None
    return Conversion(
        journal=str(journal),
        file=str(target),
        samples=count,
        missing=sum(count for _, count in gaps),
        gaps=gaps,
        size_bytes=target.stat().st_size,
        damaged_bytes=contents.skipped,
        torn_bytes=contents.torn,
    )


def _session(data: bytes, journal: Path) -> Session:
    if not data:
        problem = "its session is damaged, and the spool does not have it either"
        raise JournalError(journal, problem, code="no-session")
    try:
        return decode_session(data)
    except BatchError as error:
        raise JournalError(journal, str(error), code="not-understood") from error


def _decoder(session: Session, journal: Path) -> ColumnDecoder:
    try:
        return ColumnDecoder(session)
    except (DaqError, ProtocolError) as error:
        problem = f"its session is not understood: {error}"
        raise JournalError(journal, problem, code="not-understood") from error
