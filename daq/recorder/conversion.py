"""From a journal to a recording: decoded in blocks, checked, and only then is the journal dropped.

Interrupted at any moment it leaves the journal, and is simply done again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from daq.errors import DaqError
from daq.recorder.contents import Contents, JournalError, Scan, read_contents
from daq.recorder.converters import Conversion, log_result
from daq.recorder.disk import Disk
from daq.recorder.journal import is_journal, lock, target_of
from daq.recording import RecordingError, RecordingWriter, open_recording
from daq.samples.batches import (
    KIND_BATCH,
    BatchError,
    Header,
    Session,
    decode_header,
    decode_session,
)
from daq.samples.columns import ColumnDecoder
from firmware_protocol.errors import ProtocolError

BLOCK_SAMPLES = 10_000
_CLOCK_PAIR_EVERY_NS = 1_000_000_000
_TORN_HEAD_MAX = 1 << 14
"""A recorder that was interrupted at once leaves less than that."""
_logger = logging.getLogger(__name__)


def convert_journal(
    journal: Path,
    target: Path | None = None,
    *,
    session_data: bytes = b"",
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Turns a journal into a recording, then removes the journal.

    Args:
        journal: The file; nobody else may be at work on it.
        target: The recording; by default as the journal without its suffix. If there is another
            file of that name, a number is added.
        session_data: To use if the journal's own is damaged.
        progress: Called with samples done and samples in all.

    Returns:
        What became of it.

    Raises:
        JournalError: It is no journal, or somebody else is at work on it.
        RecordingError: The recording cannot be written.
        DaqError: Its session cannot be understood.
        OSError: It cannot be read.
    """
    target = target or target_of(journal)
    file = os.open(journal, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock(file, journal)
        contents = read_contents(file, journal)
        result = _convert(
            file, journal, contents, target=target, session_data=session_data, progress=progress
        )
        journal.unlink()
    finally:
        os.close(file)
    return result


class InlineConverter:
    """Converts at once, in this process: for runs in virtual time."""

    pending = 0

    def __init__(self) -> None:
        self.results: list[Conversion] = []

    def start(self, journal: Path) -> None:
        """Convert a journal."""
        try:
            result = convert_journal(journal)
        except (DaqError, ProtocolError, OSError) as error:
            _logger.error("%s; the journal stays", error)
            result = Conversion(journal=str(journal), problem=str(error))
        else:
            log_result(_logger, result)
        self.results.append(result)

    def poll(self) -> None:
        """Nothing is ever left to do."""


def _convert(
    file: int,
    journal: Path,
    contents: Contents,
    *,
    target: Path,
    session_data: bytes,
    progress: Callable[[int, int], None] | None,
) -> Conversion:
    result = Conversion(
        journal=str(journal), damaged_bytes=contents.skipped, torn_bytes=contents.torn
    )
    if not contents.samples and not contents.missing:
        # What a crash at its very beginning leaves may go; more than that stays, readable or not.
        is_understood = contents.end_of_records or contents.torn <= _TORN_HEAD_MAX
        if not is_journal(file) or not is_understood:
            raise JournalError(journal, "is no journal of ours: nothing in it was understood")
        return replace(result, note="held no samples")
    session = _session(contents.session_data or session_data, journal)
    decoder = _decoder(session, journal)
    if not _is_done(target, session, contents):
        target = Disk(target.parent).unused(target.name, but=journal)
        name = (contents.part.name if contents.part else "") or target.stem
        writer = RecordingWriter(target, decoder.recording_info(name))
        try:
            passed_on = _Passage(file, decoder).write_to(writer, contents, progress)
        except BaseException:
            writer.abandon()
            raise
        if passed_on < contents.samples:
            note = f"{contents.samples - passed_on} samples were there twice or not understood"
            result = replace(result, note=note)
    with open_recording(target) as recording:
        return replace(
            result,
            file=str(target),
            samples=recording.sample_count,
            missing=sum(gap.count for gap in recording.gaps),
            gaps=tuple((gap.first_seq, gap.count) for gap in recording.gaps),
            size_bytes=target.stat().st_size,
        )


class _Passage:
    """Passes what is in a journal on to a recording, in little memory."""

    def __init__(self, file: int, decoder: ColumnDecoder) -> None:
        self._file = file
        self._decoder = decoder
        self._clock_pairs: list[tuple[int, int]] = []
        self._last_pair = (0, 0)

    def write_to(
        self,
        writer: RecordingWriter,
        contents: Contents,
        progress: Callable[[int, int], None] | None,
    ) -> int:
        """Fill and close a recording; returns the number of its samples."""
        decoder, size = self._decoder, self._decoder.layout.size
        first_seq = next_seq = None
        written = 0
        for payload in self._blocks(writer):
            samples = decoder.layout.view(payload)
            writer.append(decoder.decode(samples))
            writer.add_invalid_frames(*decoder.invalid_frames(samples))
            if first_seq is None:
                first_seq = int(samples["seq"][0])
            next_seq = int(samples["seq"][-1]) + 1
            written += len(payload) // size
            if progress is not None:
                progress(written, contents.samples)
        if self._clock_pairs and self._last_pair != self._clock_pairs[-1]:
            self._clock_pairs.append(self._last_pair)
        writer.add_clock_pairs(self._clock_pairs)
        # What is missing in between shows by the numbers.
        begin, end = contents.first_seq, contents.end_seq
        if first_seq is None or next_seq is None:
            writer.close([(begin, end - begin)])
        else:
            gaps = (begin, first_seq - begin), (next_seq, end - next_seq)
            writer.close([(seq, count) for seq, count in gaps if count > 0])
        with open_recording(writer.path) as recording:
            if recording.sample_count != written:
                raise RecordingError(
                    writer.path, f"holds {recording.sample_count} samples, expected {written}"
                )
        return written

    def _blocks(self, writer: RecordingWriter) -> Iterator[bytes]:
        size = self._decoder.layout.size
        parts: list[bytes] = []
        count = 0
        for header, payload in self._batches():
            if header.events:
                writer.add_events(header.events)
            self._last_pair = header.t_ns, header.utc_ns
            pairs = self._clock_pairs
            if not pairs or header.t_ns - pairs[-1][0] >= _CLOCK_PAIR_EVERY_NS:
                pairs.append(self._last_pair)
            parts.append(payload)
            count += len(payload) // size
            if count >= BLOCK_SAMPLES:
                yield b"".join(parts)
                parts, count = [], 0
        if parts:
            yield b"".join(parts)

    def _batches(self) -> Iterator[tuple[Header, bytes]]:
        """Each sample once, in the order of their numbers."""
        session, size = self._decoder.session.session, self._decoder.layout.size
        os.lseek(self._file, 0, os.SEEK_SET)
        next_seq = 0
        for record in Scan(lambda count: os.read(self._file, count)):
            if record.kind != KIND_BATCH:
                continue
            try:
                header = decode_header(record.header)
            except BatchError:
                continue
            if header.session != session or len(record.payload) != header.count * size:
                continue
            repeated = max(next_seq - header.seq, 0)
            if repeated < header.count:
                next_seq = header.seq + header.count
                yield header, record.payload[repeated * size :]


def _is_done(target: Path, session: Session, contents: Contents) -> bool:
    """Whether an earlier conversion was interrupted only after it had finished the recording."""
    if not target.exists():
        return False
    try:
        with open_recording(target) as recording:
            count = recording.sample_count
            last_seq = int(recording["seq"][-1]) if count else contents.next_seq - 1
            return (
                recording.attributes["session"] == session.session
                and count == contents.samples
                and last_seq == contents.next_seq - 1
            )
    except RecordingError:
        return False


def _session(data: bytes, journal: Path) -> Session:
    if not data:
        raise JournalError(journal, "its session is damaged, and the spool does not have it either")
    try:
        return decode_session(data)
    except BatchError as error:
        raise JournalError(journal, str(error)) from error


def _decoder(session: Session, journal: Path) -> ColumnDecoder:
    try:
        return ColumnDecoder(session)
    except (DaqError, ProtocolError, ValueError, LookupError) as error:
        raise JournalError(journal, f"its session is not understood: {error}") from error
