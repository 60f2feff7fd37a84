"""Decoding of requests: from bytes to a command, or to the reason of a refusal; no sockets here.

Decoding happens inside the loop's cycle, so its time is bounded, too: the number of values before
anything is converted, and numbers like 5e-324, of which each takes 6 µs to convert.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable
from typing import Annotated, NamedTuple, get_args

import msgspec
from msgspec import Meta

from daq.stream.errors import LeaseError, RefusedError
from daq.stream.gateway.packets import PAYLOAD_MAX, RawRequest
from daq.stream.messages import (
    REQUEST_MAX,
    Answer,
    AnyCommand,
    PlayRows,
    RecordStart,
    Refusal,
    Stop,
    TakeLease,
)

Handler = Callable[[AnyCommand, bytes], object]
"""Carries out a command with its binary part and returns what msgspec can encode, or refuses with
`RefusedError`."""
VALUES_MAX = 256
"""Values in a request, counted by their commas. The largest honest one has half of it."""
_MESSAGE_MAX = 400
_FEW_VALUES = 16
_EXTREME_NUMBER = re.compile(rb"[0-9.][eE][-+]?[0-9]{3}")
_WITH_PAYLOAD = (PlayRows,)
_RECORDING_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?")
_NAME_RULE = (
    "a recording's name has at most 100 letters, digits, '_', '-' and '.', "
    "and begins with neither of the last two"
)


class _Envelope(msgspec.Struct):
    """What can be read of a request that is wrong."""

    id: msgspec.Raw = msgspec.Raw(b"0")
    command: msgspec.Raw = msgspec.Raw(b"")


_Id = Annotated[int, Meta(ge=0, lt=1 << 53)]
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder(AnyCommand).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_id = msgspec.json.Decoder(_Id).decode
_decode_name = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


COMMAND_NAMES = tuple(str(kind.__struct_config__.tag) for kind in get_args(AnyCommand))


class ClientRequest(NamedTuple):
    """A request that can be carried out."""

    command: AnyCommand
    payload: bytes


class BadRequestError(RefusedError):
    """A request that cannot be read or is not allowed.

    Attributes:
        id: Of the request, as far as it could be read; else 0.
    """

    def __init__(self, code: str, message: str, id: int = 0) -> None:  # noqa: A002
        super().__init__(code, message)
        self.id = id


def read_request(data: bytes, payload: bytes | None) -> ClientRequest:
    """Return the command in a request: its JSON part, and its binary part if there is one.

    Raises:
        BadRequestError: It is malformed, oversized or unknown.
    """
    check_sizes(len(data), 0 if payload is None else len(payload))
    values = data.count(b",")
    if values > VALUES_MAX:
        message = f"more than {VALUES_MAX} values in a request"
        raise BadRequestError("malformed", message)
    if values > _FEW_VALUES and _EXTREME_NUMBER.search(data):
        raise BadRequestError("malformed", "a number with an exponent of three digits")
    try:
        command = _decode(data)
    except _DECODE_ERRORS as error:
        raise _explain(data, error) from None
    name = type(command).__struct_config__.tag
    if isinstance(command, _WITH_PAYLOAD) != (payload is not None):
        need = "needs" if payload is None else "takes no"
        raise BadRequestError("malformed", f"{name} {need} binary part", command.id)
    if isinstance(command, RecordStart) and not _RECORDING_NAME.fullmatch(command.name):
        raise BadRequestError("malformed", _NAME_RULE, command.id)
    if isinstance(command, TakeLease) and not command.name.isprintable():
        # It is shown on other people's terminals.
        raise BadRequestError("malformed", "a holder's name is of printable characters", command.id)
    return ClientRequest(command, payload or b"")


def check_sizes(data: int, payload: int) -> None:
    """Refuse parts that are too large, before they are copied.

    Raises:
        BadRequestError: One is too large.
    """
    for what, size, limit in (
        ("a request", data, REQUEST_MAX),
        ("a binary part", payload, PAYLOAD_MAX),
    ):
        if size > limit:
            raise BadRequestError("oversized", f"{what} of {size} bytes, at most {limit}")


def carry_out(request: RawRequest, handler: Handler, *, expires_ns: int = 0) -> bytes:
    """Carry out a request, unless it is too late for that.

    Args:
        request: What is asked for.
        handler: Does it.
        expires_ns: When it is too late, on the monotonic clock; 0 for never. The request may have a
            moment of its own. It is never too late for a stop.

    Raises:
        Exception: What the handler raised, unless it is a `RefusedError`.
    """
    number = 0
    try:
        command, payload = read_request(*request)
        number = command.id
        expires_ns = min(filter(None, (expires_ns, command.expires_ns)), default=0)
        if expires_ns and time.monotonic_ns() > expires_ns and not isinstance(command, Stop):
            raise RefusedError("too-late", "this came too late: nothing was done")
        result = handler(command, payload)
    except BadRequestError as error:
        return refuse(error.id, error)
    except RefusedError as error:
        return refuse(number, error)
    return _encode(Answer(id=number, ok=True, result=msgspec.Raw(_encode(result))))


def refuse(id: int, error: RefusedError) -> bytes:  # noqa: A002 - the answer's own word
    """Return the answer to a command that was refused."""
    held_by = error.held_by if isinstance(error, LeaseError) else None
    refusal = Refusal(code=error.code, message=error.message[:_MESSAGE_MAX], held_by=held_by)
    return _encode(Answer(id=id, ok=False, error=refusal))


def _explain(data: bytes, error: Exception) -> BadRequestError:
    """Return what is wrong with a request that could not be decoded."""
    if isinstance(error, RecursionError):
        return BadRequestError("malformed", "nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return BadRequestError("malformed", "text that is not UTF-8")
    number, name = 0, ""
    try:
        envelope = _decode_envelope(data)
        name = _decode_name(envelope.command) if bytes(envelope.command) else ""
        number = _decode_id(envelope.id)
    except _DECODE_ERRORS:
        pass  # the first error says it
    if name and name not in COMMAND_NAMES:
        (meant,) = difflib.get_close_matches(name[:40], COMMAND_NAMES, n=1, cutoff=0.0)
        message = f"no command {name[:40]!r}; did you mean {meant!r}?"
        return BadRequestError("unknown", message, number)
    return BadRequestError("malformed", str(error), number)
