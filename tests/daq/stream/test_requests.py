"""Bytes to commands, without a socket."""

from __future__ import annotations

import time

import msgspec
import pytest

from daq.stream.gateway.packets import RawRequest
from daq.stream.messages import REQUEST_MAX, Enable, PlayRows, SetMode
from daq.stream.requests import (
    PAYLOAD_MAX,
    BadRequestError,
    carry_out,
    read_request,
)

DEEP = b"[" * 5000
BAD = {
    "nothing": (b"", "malformed", 0),
    "no JSON": (b"enable", "malformed", 0),
    "no object": (b"[]", "malformed", 0),
    "no command": (b'{"id": 7}', "malformed", 7),
    "cut short": (b'{"command": "enable", "id": 7', "malformed", 0),
    "two requests": (b'{"command": "enable"}{"command": "enable"}', "malformed", 0),
    "name of wrong type": (b'{"command": 1, "id": 7}', "malformed", 0),
    "unknown": (b'{"command": "enabel", "id": 7}', "unknown", 7),
    "unknown with more": (b'{"command": "enabel", "id": 7, "x": [1, {}]}', "unknown", 7),
    "unknown field": (b'{"command": "enable", "id": 7, "now": true}', "malformed", 7),
    "missing field": (b'{"command": "set-mode", "id": 7}', "malformed", 7),
    "wrong type": (b'{"command": "set-mode", "mode": 3, "id": 7}', "malformed", 7),
    "negative id": (b'{"command": "enable", "id": -1}', "malformed", 0),
    "huge id": (b'{"command": "enable", "id": 99999999999999999999}', "malformed", 0),
    "NaN": (b'{"command": "set-mode", "mode": "hold", "duration_s": NaN}', "malformed", 0),
    "null": (b'{"command": "set-mode", "mode": "hold", "target": [null]}', "malformed", 0),
    "Infinity": (b'{"command": "set-mode", "mode": "hold", "target": [Infinity]}', "malformed", 0),
    "infinite": (b'{"command": "set-mode", "mode": "hold", "target": [1e999]}', "malformed", 0),
    "out of range": (b'{"command": "set-mode", "mode": "", "duration_s": -1}', "malformed", 0),
    "deep field": (b'{"command": "enable", "x": ' + DEEP, "malformed", 0),
    "deep id": (b'{"id": ' + DEEP, "malformed", 0),
    "deep command": (b'{"command": ' + DEEP, "malformed", 0),
    "not UTF-8": (b'{"command": "set-mode", "mode": "\xff"}', "malformed", 0),
    "half a character": (b'{"command": "record-mark", "text": "\\ud800"}', "malformed", 0),
    "name not UTF-8": (b'{"command": "\xff\xfe"}', "malformed", 0),
    "too many values": (b'{"command": "set-mode", "target": [' + b"0," * 300, "malformed", 0),
    "slow numbers": (b'{"command": "set-mode", "target": [' + b"5e-324," * 30, "malformed", 0),
    "oversized": (b" " * (REQUEST_MAX + 1), "oversized", 0),
    "binary part": (b'{"command": "play-rows", "first": 0, "id": 7}', "malformed", 7),
    "odd token": (b'{"command": "enable", "id": 7, "lease": "a b"}', "malformed", 7),
    "token with a line's end": (b'{"command": "enable", "id": 7, "lease": "a\\n"}', "malformed", 7),
    "long token": (b'{"command": "stop", "id": 7, "lease": "' + b"a" * 65 + b'"}', "malformed", 7),
    "no holder": (b'{"command": "take-lease", "id": 7, "name": ""}', "malformed", 7),
    "long holder": (b'{"command": "take-lease", "name": "' + b"x" * 121 + b'"}', "malformed", 0),
    "holder with escapes": (
        b'{"command": "take-lease", "id": 7, "name": "\\u001b[31m"}',
        "malformed",
        7,
    ),
    "holder backwards": (
        b'{"command": "take-lease", "id": 7, "name": "\\u202e"}',
        "malformed",
        7,
    ),
}


@pytest.mark.parametrize(("data", "code", "number"), BAD.values(), ids=BAD)
def test_bad_request(data: bytes, code: str, number: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_request(data, None)

    assert (caught.value.code, caught.value.id) == (code, number)
    assert caught.value.message


def test_oversized_payload_is_named() -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(b'{"command": "play-rows", "first": 0}', bytes(PAYLOAD_MAX + 1))
    assert refused.value.code == "oversized"
    assert str(PAYLOAD_MAX + 1) in refused.value.message


def test_unexpected_payload() -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(b'{"command": "enable", "id": 7}', b"x")
    assert (refused.value.code, refused.value.id) == ("malformed", 7)
    assert "enable" in refused.value.message


def test_a_name_is_refused_in_words() -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(b'{"command": "record-start", "name": "../../evil"}', None)
    assert refused.value.code == "malformed"
    assert "100" in refused.value.message
    assert "[A-Z" not in refused.value.message  # words, not the pattern


@pytest.mark.parametrize(
    ("text", "expires_s", "is_done"),
    [
        (b'{"command": "enable", "id": 7}', 0.0, True),
        (b'{"command": "enable", "id": 7}', -0.1, False),
        (b'{"command": "enable", "id": 7}', 60.0, True),
        (b'{"command": "enable", "id": 7, "expires_ns": 1}', 60.0, False),
        (b'{"command": "enable", "id": 7, "expires_ns": 1}', 0.0, False),
        (b'{"command": "enable", "id": 7, "expires_ns": 4000000000000000000}', -0.1, False),
        (b'{"command": "stop", "id": 7, "expires_ns": 1}', -0.1, True),
    ],
)
def test_too_late(text: bytes, expires_s: float, is_done: bool) -> None:
    done: list[object] = []
    expires_ns = time.monotonic_ns() + round(expires_s * 1e9) if expires_s else 0

    answer = carry_out(
        RawRequest(text, None), lambda command, _: done.append(command), expires_ns=expires_ns
    )

    decoded = msgspec.json.decode(answer)
    assert (decoded["id"], decoded["ok"], bool(done)) == (7, is_done, is_done)


def test_good_requests() -> None:
    assert read_request(b'{"command": "enable", "id": 7}', None) == (Enable(id=7), b"")
    rows = read_request(b'{"command": "play-rows", "first": 2}', b"rows")
    assert rows == (PlayRows(first=2), b"rows")


def test_a_loop_of_an_older_version_understands_what_has_no_lease() -> None:
    """It refuses fields that it does not know."""
    assert msgspec.json.encode(SetMode(mode="hold", id=7)) == (
        b'{"command":"set-mode","id":7,"mode":"hold"}'
    )


def test_largest_honest_request_is_accepted() -> None:
    command = SetMode(
        mode="position",
        joints=tuple(f"{number:040}" for number in range(32)),
        target=tuple(-0.00012345678901234567 * (number + 1) for number in range(32)),
    )

    assert read_request(msgspec.json.encode(command), None).command == command


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("enabel", "enable"), ("mode", "set-mode"), ("Stop", "stop"), ("play", "play-")],
)
def test_the_nearest_name_is_offered(typed: str, meant: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_request(msgspec.json.encode({"command": typed}), None)
    assert caught.value.code == "unknown"
    assert f"'{meant}" in caught.value.message
