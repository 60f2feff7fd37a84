"""Whatever is thrown at the command socket: nothing invalid reaches the handler, and it goes on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import zmq
from acceptance import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daq.stream.errors import RefusedError
from daq.stream.messages import (
    AnyCommand,
    Enable,
    Home,
    PlayBegin,
    PlayRows,
    RecorderReport,
    RecordMark,
    RecordStart,
    Report,
    SetGains,
    SetMode,
    Status,
)

CODES = {"malformed", "oversized", "unknown", "not-now", "not-homed", "too-late"}
VALID = [
    Status(),
    Enable(id=3),
    SetMode(mode="position", joints=("J1",), target=(0.5,), duration_s=2.0),
    SetGains(kp_a_per_rad=(0.1, 0.2)),
    Home(posture_rad=(0.0, -1.5)),
    PlayBegin(rows=100, has_torque=True),
    PlayRows(first=3),
    RecordStart(name="first_try"),
    RecordMark(text="here"),
    Report(report=RecorderReport(state="idle", written=3)),
]
SEEDS = [msgspec.json.encode(command) for command in VALID]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid request with bytes changed, put in or taken out."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data)))
        piece = draw(st.one_of(st.binary(max_size=3), st.sampled_from([b",", b"[", b"-", b"1e9"])))
        data[place : place + draw(st.integers(0, 3))] = piece
    return bytes(data)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
commands = st.sampled_from(["status", "enable", "set-mode", "set-gains", "play-rows", "enabel", ""])
objects = st.builds(
    lambda command, rest: json.dumps({"command": command, **rest}).encode(),
    commands,
    st.dictionaries(
        st.sampled_from(["id", "mode", "joints", "target", "kp_a_per_rad", "first", "x"]), values
    ),
)
part = st.one_of(st.binary(max_size=200), mutated(), objects)
messages = st.one_of(
    part.map(lambda data: [data]),
    st.lists(part, min_size=1, max_size=3),
    st.lists(st.binary(max_size=8), min_size=4, max_size=80),
)


class Rig:
    """A server, a raw client, and a handler that insists on valid commands."""

    def __init__(self, context: zmq.Context[Any], polled_server: Any) -> None:
        self.handled = 0
        self.server = polled_server("inproc://fuzz", handler=self.handle)
        self.client = context.socket(zmq.DEALER)
        self.client.connect("inproc://fuzz")

    def handle(self, command: AnyCommand, payload: bytes) -> object:
        # Decoding checks everything that the types say; a command that passed it once does again.
        assert msgspec.json.decode(msgspec.json.encode(command), type=AnyCommand) == command
        assert bool(payload) <= isinstance(command, PlayRows)
        self.handled += 1
        if isinstance(command, Enable):
            raise RefusedError("not-homed", "no")
        return None

    def ask(self, parts: list[bytes]) -> Any:
        """Exactly one answer comes."""
        self.client.send_multipart(parts)
        while self.server.poll():
            pass
        answer = json.loads(self.client.recv_multipart(zmq.NOBLOCK)[-1])
        assert not self.client.poll(0)
        return answer


@pytest.fixture
def rig(context: zmq.Context[Any], polled_server: Any) -> Rig:
    return Rig(context, polled_server)


@settings(max_examples=examples(1200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=messages)
def test_anything_gets_one_typed_answer(rig: Rig, parts: list[bytes]) -> None:
    before = rig.handled

    answer = rig.ask(parts)

    assert answer["ok"] or answer["error"]["code"] in CODES
    # What was refused as no command, or came too late, did not reach the handler.
    is_handled = answer["ok"] or answer["error"]["code"] == "not-homed"
    assert rig.handled - before == is_handled
    assert rig.ask([b'{"command": "status", "id": 9}']) == {"id": 9, "ok": True, "result": None}
