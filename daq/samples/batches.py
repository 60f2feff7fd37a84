"""A batch: consecutive samples and what happened meanwhile; the unit of stream, spool and journal.

The same header and payload are published, kept in the spool and appended to the journal, so that
whatever one of them missed can be taken from another. On ZeroMQ the parts are `topic | header |
payload`; in memory and on disk they are framed by a checksum (`frame_record`, `read_record`).
Headers are JSON: no pickle, and readable in any language.
"""

from __future__ import annotations

import struct
import zlib
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from daq.errors import DaqError
from firmware_protocol.fields import Framing

SCHEMA = 1
"""Version of headers and samples. A reader refuses any other."""
BATCH_TOPIC = b"batch"
SESSION_TOPIC = b"session"
SAMPLES_PER_BATCH = 20
FAULT_LEAD_S = 10.0
"""How long before a fault what is saved of it begins."""
FAULTS_APART_S = 60.0
"""Of faults that come closer together only the first is saved."""
HEADER_MAX = 1 << 20
PAYLOAD_MAX = 1 << 24

# Bounds on what others say: it becomes file names, attributes and 64-bit columns of recordings.
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Time = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
_NO_NUL = r"^[^\0]*\Z"
Word = Annotated[str, Meta(max_length=200, pattern=_NO_NUL)]
Text = Annotated[str, Meta(max_length=2000, pattern=_NO_NUL)]
SessionName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")]


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happened: for the log, the events table and clients.

    Attributes:
        seq: Sample during whose cycle it happened.
        t_ns: Monotonic clock.
        kind: What it is, for programs: `state`, `limit`, `fault`, `overrun`, `mark`, `recorder`, …
        text: What it is, for people.
        severity: `debug` (for programs: not logged), `info`, `warning` or `error`.
        source: The joint, board or client concerned; empty when it is the whole robot.
    """

    seq: Count
    t_ns: Time
    kind: Word
    text: Annotated[str, Meta(max_length=2000)]
    severity: Word = "info"
    source: Word = ""


class RecordingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the recorder should be recording; it stands in every header.

    Attributes:
        number: Counts the recordings of a session, from 1.
        name: File name without directory and suffix; empty to let the recorder choose.
        first_seq: The first sample that belongs to it.
    """

    number: Count
    name: Annotated[str, Meta(max_length=255, pattern=_NO_NUL)]
    first_seq: Count


class FaultNote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The latest fault whose samples are to be saved; it stands in every header from its trip on.

    Attributes:
        number: Counts the faults of a session that are saved, from 1.
        code: What was wrong, in a word.
        utc_ns: When, Unix time.
        first_seq: The first sample to save.
        end_seq: The sample behind the last; None while the robot is still stopping. If the session
            ends before, all of it is saved.
    """

    number: Count
    code: Word
    utc_ns: Time
    first_seq: Count
    end_seq: Count | None = None


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Header of a batch.

    Attributes:
        schema: `SCHEMA`.
        session: Name of the loop's run; sequence numbers are unique within it.
        fingerprint: Of the boards' profiles, as in `Session`.
        seq: Number of the first sample.
        count: How many samples follow.
        t_ns: Monotonic clock when the batch was closed.
        utc_ns: The same moment, Unix time.
        recording: What to record, None for nothing. It holds for samples from its `first_seq` on.
        events: What happened since the last batch.
        fault: What to save by itself because of a fault, None for nothing.
    """

    schema: Count
    session: SessionName
    fingerprint: Text
    seq: Count
    count: Annotated[int, Meta(ge=1, le=1000)]
    t_ns: Time
    utc_ns: Time
    recording: RecordingRequest | None = None
    events: tuple[Event, ...] = ()
    fault: FaultNote | None = None


class BoardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader must know of a board.

    Attributes:
        name: As in the robot file.
        profile: Its wire format.
        framing: How frames are wrapped on its link: `spi` or `rs485`.
        device: For messages.
        wire_s: How long the board waits for the rest of a command after it has made the reply of
            the same exchange; None in sessions of version 0.1, which did not say.
    """

    name: Word
    profile: Word
    framing: Word
    device: Text
    wire_s: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader must know once per run of the loop, to make sense of its samples.

    Attributes:
        schema: `SCHEMA`.
        session: Name of the run.
        fingerprint: Of all boards' profiles, joined by `+`.
        robot_text: The robot file, exactly.
        robot_source: Where it came from, for messages.
        boards: In the robot file's order.
        period_ns: Time between two cycles.
        start_utc_ns: Unix time at the start.
        start_t_ns: Monotonic clock at the start.
        host: Name of the computer.
        armature_version: Version of this software.
        commit: Commit of this software, empty when unknown.
        is_virtual: Whether clocks and timings are virtual.
        link: The link's address, as on the command line.
    """

    schema: Count
    session: SessionName
    fingerprint: Text
    robot_text: Annotated[str, Meta(pattern=_NO_NUL)]
    robot_source: Text
    boards: Annotated[tuple[BoardInfo, ...], Meta(min_length=1, max_length=64)]
    period_ns: Annotated[int, Meta(ge=1, le=1 << 62)]
    start_utc_ns: Time
    start_t_ns: Time
    host: Text
    armature_version: Word
    commit: Word
    is_virtual: bool
    link: Text


class BatchError(DaqError, ValueError):
    """Bytes that are not a batch, or are one of another version."""


def framing_of(board: BoardInfo) -> Framing:
    """Return how frames are wrapped on a board's link.

    Raises:
        BatchError: The session names a framing that is not known here.
    """
    try:
        return Framing(board.framing)
    except ValueError:
        known = ", ".join(framing.value for framing in Framing)
        problem = f"board {board.name}: unknown framing {board.framing!a}; known: {known}"
        raise BatchError(problem, code="unknown-framing") from None


MessageT = TypeVar("MessageT", Header, Session)

_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(Header)
_session_decoder = msgspec.json.Decoder(Session)

encode_header = _encoder.encode
encode_session = _encoder.encode


def decode_header(data: bytes) -> Header:
    """Return a header from its bytes.

    Raises:
        BatchError: It is none, or of another schema.
    """
    return _decode(_header_decoder, "batch header", data)


def decode_session(data: bytes) -> Session:
    """Return a session from its bytes.

    Raises:
        BatchError: It is none, or of another schema.
    """
    return _decode(_session_decoder, "session", data)


def _decode(decoder: msgspec.json.Decoder[MessageT], what: str, data: bytes) -> MessageT:
    if len(data) > HEADER_MAX:
        problem = f"{what} of {len(data)} bytes, at most {HEADER_MAX} are allowed"
        raise BatchError(problem, code="too-large")
    try:
        message = decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BatchError(f"not a {what}: {error}", code="malformed") from error
    if message.schema != SCHEMA:
        raise BatchError(
            f"stream schema {message.schema}, this version of armature understands {SCHEMA}: "
            "use the same version on both sides",
            code="other-schema",
        )
    return message


# --- records: a batch or a session in memory or on disk -------------------------------------------

_PREFIX = struct.Struct("<4sBxxxII")
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"ARMJ"
RECORD_OVERHEAD = _PREFIX.size + _CHECKSUM.size
KIND_SESSION, KIND_BATCH = 0, 1


class Record(NamedTuple):
    """A record found by `read_record`.

    Attributes:
        kind: `KIND_SESSION` or `KIND_BATCH`.
        header: Bytes of the header or session.
        payload: Bytes of the samples; empty for a session.
        end: Where the next record begins.
    """

    kind: int
    header: bytes
    payload: bytes
    end: int


def frame_record(kind: int, header: bytes, payload: bytes = b"") -> bytes:
    """Frame a record: magic, kind, both lengths, CRC-32 of all else, header, payload."""
    prefix = _PREFIX.pack(_MAGIC, kind, len(header), len(payload))
    checksum = zlib.crc32(payload, zlib.crc32(header, zlib.crc32(prefix)))
    return b"".join((prefix, _CHECKSUM.pack(checksum), header, payload))


def read_record(data: bytes | memoryview, start: int = 0) -> Record | None:
    """Return the record at a place; None unless it is whole and sound."""
    begin = start + RECORD_OVERHEAD
    if begin > len(data):
        return None
    magic, kind, header_size, payload_size = _PREFIX.unpack_from(data, start)
    if magic != _MAGIC or header_size > HEADER_MAX or payload_size > PAYLOAD_MAX:
        return None
    middle = begin + header_size
    end = middle + payload_size
    if end > len(data):
        return None
    header, payload = bytes(data[begin:middle]), bytes(data[middle:end])
    (checksum,) = _CHECKSUM.unpack_from(data, begin - _CHECKSUM.size)
    prefix_checksum = zlib.crc32(data[start : start + _PREFIX.size])
    if zlib.crc32(payload, zlib.crc32(header, prefix_checksum)) != checksum:
        return None
    return Record(kind, header, payload, end)
