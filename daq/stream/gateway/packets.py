"""The packets between the loop and its gateway, on two socket pairs.

The *stream* pair carries samples to the gateway and its reports back; the *command* pair carries
requests to the loop and answers back. The pairs keep packets whole and in order, and the kernel
bounds them: what finds one full is dropped. So neither side can hold up the other.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum
from typing import NamedTuple

import msgspec

from daq.stream.messages import REQUEST_MAX

PAYLOAD_MAX = 64 << 10
"""Bytes of a request's binary part."""
EXPIRES_S = 0.5
"""A request that waited for longer is refused: soon nobody counts on it any more."""
_STREAM_HEAD = struct.Struct("<BI")
_REQUEST_HEAD = struct.Struct("<QqI?")
_NUMBER = struct.Struct("<Q")
REQUEST_PACKET_MAX = _REQUEST_HEAD.size + REQUEST_MAX + PAYLOAD_MAX
_BUFFER_BYTES = 1 << 20
"""Asked for; the kernel gives what it allows, by default a second of samples."""
PACKET_MAX = 2 * _BUFFER_BYTES
"""No packet is larger than a buffer, and the kernel doubles what is asked for."""


class Kind(IntEnum):
    """What a packet to the stream holds."""

    BATCH = 1
    """Header and samples."""
    SESSION = 2
    """What a new subscriber must know, and nothing."""
    PLOT = 3
    """Time as text, and values as MessagePack, for PlotJuggler."""


class RawRequest(NamedTuple):
    """A request as it came; the second part is None when there was none."""

    data: bytes
    payload: bytes | None


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that a gateway is started with.

    Attributes:
        lock: A file that is locked by the process that has the local sockets open.
        stream: Endpoints of the stream.
        commands: Endpoints of the command socket.
        keys: Directory of the robot's keys, needed for TCP.
        plotjuggler_port: Where to publish for PlotJuggler on this computer; None for nowhere.
        errand: What the keeper starts when the loop asks for it; empty for nothing.
    """

    lock: str
    stream: tuple[str, ...]
    commands: tuple[str, ...]
    keys: str | None = None
    plotjuggler_port: int | None = None
    errand: tuple[str, ...] = ()


class GatewayReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Report of the gateway to the loop, twice a second.

    Attributes:
        life: How many gateways there have been.
        dropped: How often this one found a subscriber's queue full.
        problem: Why it cannot do its work, empty when it can.
    """

    life: int
    dropped: int = 0
    problem: str = ""


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a pair; neither ever blocks."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in pair:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return pair


def stream_packet(kind: Kind, first: bytes, second: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """Return a packet to the stream, in the pieces that `sendmsg` takes."""
    return _STREAM_HEAD.pack(kind, len(first)), first, second


def read_stream_packet(packet: bytes) -> tuple[Kind, bytes, bytes]:
    """Return what `stream_packet` made."""
    kind, size = _STREAM_HEAD.unpack_from(packet)
    middle = _STREAM_HEAD.size + size
    return Kind(kind), packet[_STREAM_HEAD.size : middle], packet[middle:]


class NumberedRequest(NamedTuple):
    """A request on its way to the loop: number of its answer, when it was sent, itself."""

    number: int
    asked_ns: int
    request: RawRequest


def request_packet(numbered: NumberedRequest) -> tuple[bytes, bytes, bytes]:
    """Return a request, in pieces."""
    number, asked_ns, (data, payload) = numbered
    head = _REQUEST_HEAD.pack(number, asked_ns, len(data), payload is not None)
    return head, data, payload or b""


def read_request_packet(packet: bytes) -> NumberedRequest:
    """Return what `request_packet` made."""
    number, asked_ns, size, has_payload = _REQUEST_HEAD.unpack_from(packet)
    middle = _REQUEST_HEAD.size + size
    data, payload = packet[_REQUEST_HEAD.size : middle], packet[middle:]
    return NumberedRequest(number, asked_ns, RawRequest(data, payload if has_payload else None))


def answer_packet(number: int, answer: bytes) -> tuple[bytes, bytes]:
    """Return the answer to a request, in pieces."""
    return _NUMBER.pack(number), answer


def read_answer_packet(packet: bytes) -> tuple[int, bytes]:
    """Return what `answer_packet` made."""
    (number,) = _NUMBER.unpack_from(packet)
    return number, packet[_NUMBER.size :]
