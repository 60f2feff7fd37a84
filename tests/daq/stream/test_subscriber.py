"""The importable subscriber, as a user's script meets it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zmq

from daq.errors import ConfigError
from daq.samples.batches import encode_session
from daq.stream import subscriber as subscriber_module
from daq.stream.errors import StreamMismatchError, StreamTimeoutError
from daq.stream.gateway.publisher import Publisher
from daq.stream.subscriber import LiveBatch, Subscriber
from daq.system.runtime_directory import RuntimeDirectory

PROJECT = Path(__file__).parents[3]
PATIENCE_S = 30.0
COUNT = 20


def example() -> str:
    """The script in the module's docstring."""
    assert subscriber_module.__doc__ is not None
    lines = subscriber_module.__doc__.splitlines()
    code = [line.removeprefix("    ") for line in lines if line.startswith("    ") or not line]
    return "\n".join(code)


def test_script_of_the_documentation(
    server: Any, runtime: RuntimeDirectory, start: Callable[..., Any]
) -> None:
    script = example()
    assert len([line for line in script.splitlines() if line]) <= 10
    process = start(
        script.replace("Subscriber()", f"Subscriber({str(runtime.path)!r})"),
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"},
    )

    time_s, unit, angles = process.stdout.readline().split(None, 2)

    assert (float(time_s) >= 0.0, unit) == (True, "s")
    assert re.findall(r"'(\w+)'", angles) == [f"joint{number}" for number in range(1, 5)]


class Rig:
    """A publisher that the test drives, and a subscriber."""

    def __init__(self, context: Any, runtime: RuntimeDirectory, batches: Any) -> None:
        self.batches = batches
        self.publisher = Publisher(context, [runtime.stream])
        self.subscriber = Subscriber(runtime.path, timeout_s=PATIENCE_S)

    def join(self) -> LiveBatch:
        """Publish until the subscriber has joined; its first batch."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.publisher.publish_session(self.batches.session_data)
            self.publisher.publish(*self.batches.make(0))
            try:
                return self.subscriber.receive(0.02)
            except StreamTimeoutError:
                assert time.monotonic() < deadline


@pytest.fixture
def rig(context: Any, runtime: RuntimeDirectory, batches: Any) -> Iterator[Rig]:
    rig = Rig(context, runtime, batches)
    yield rig
    rig.subscriber.close()


def test_columns_in_si(rig: Rig) -> None:
    batch = rig.join()

    assert len(batch) == COUNT
    np.testing.assert_array_equal(batch["seq"], np.arange(COUNT))
    np.testing.assert_allclose(batch.t_s, np.arange(COUNT) * 1e-3)
    assert batch["joint_position_rad"].shape == (COUNT, len(rig.subscriber.joint_names))
    assert batch.session == rig.subscriber.session == rig.batches.session


def test_gaps_are_counted_and_repetitions_skipped(rig: Rig) -> None:
    rig.join()
    for seq in (20, 40, 40, 20, 100, 120):
        rig.publisher.publish(*rig.batches.make(seq))

    received = [rig.subscriber.receive().header.seq for _ in range(4)]

    assert received == [20, 40, 100, 120]
    assert rig.subscriber.missed == 40


def test_new_session_is_followed(rig: Rig, make_batches: Callable[..., Any]) -> None:
    rig.join()
    new = make_batches("bench1", "run-2")
    rig.publisher.publish(*new.make(0))  # before its session is known
    rig.publisher.publish_session(new.session_data)
    rig.publisher.publish(*new.make(40))

    batch = rig.subscriber.receive()

    assert (batch.session.session, batch.header.seq) == ("run-2", 40)
    assert batch["joint_position_rad"].shape == (COUNT, 1)
    assert rig.subscriber.missed == 0


def test_other_schema(rig: Rig) -> None:
    rig.join()
    rig.publisher.publish(*rig.batches.make(20, schema=2))

    with pytest.raises(StreamMismatchError) as refused:
        rig.subscriber.receive()
    assert refused.value.code == "other-schema"


def test_other_fingerprint_in_a_batch(rig: Rig) -> None:
    rig.join()
    rig.publisher.publish(*rig.batches.make(20, fingerprint="abc"))

    with pytest.raises(StreamMismatchError) as refused:
        rig.subscriber.receive()
    assert refused.value.code == "other-fingerprint"
    assert "abc" in str(refused.value)


def test_payload_of_another_size(rig: Rig) -> None:
    rig.join()
    header, payload = rig.batches.make(20)
    rig.publisher.publish(header, payload[:-1])

    with pytest.raises(StreamMismatchError) as refused:
        rig.subscriber.receive()
    assert refused.value.code == "wrong-size"
    assert str(len(payload) - 1) in str(refused.value)


@pytest.mark.parametrize("what", ["fingerprint", "profile"])
def test_session_of_another_wire_format(rig: Rig, what: str) -> None:
    rig.join()
    session = rig.batches.session
    board = msgspec.structs.replace(session.boards[0], profile="future")
    other = {"fingerprint": "0" * 16, "boards": (board, *session.boards[1:])}
    key = "boards" if what == "profile" else what
    changed = msgspec.structs.replace(session, **{key: other[key]})
    rig.publisher.publish_session(encode_session(changed))

    with pytest.raises(StreamMismatchError) as refused:
        rig.subscriber.receive()
    assert refused.value.code == "other-wire-format"


def test_no_loop(runtime: RuntimeDirectory) -> None:
    with (
        Subscriber(runtime) as robot,
        pytest.raises(StreamTimeoutError) as refused,
    ):
        robot.receive(0.1)
    assert refused.value.code == "nothing-received"
    assert "0.1 s" in str(refused.value) and "`armature loop --help`" in str(refused.value)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        Subscriber(tmp_path / "none")
    assert str(tmp_path / "none") in str(refused.value)


def test_foreign_messages_are_ignored(context: zmq.Context[Any], runtime: RuntimeDirectory) -> None:
    socket = context.socket(zmq.PUB)
    socket.bind(runtime.stream)
    with Subscriber(runtime.stream) as robot:
        time.sleep(0.2)
        for parts in ([b"batch"], [b"batches", b"", b""], [b"session", b"", b""]):
            socket.send_multipart(parts)
        with pytest.raises(StreamTimeoutError):
            robot.receive(0.3)
        socket.send_multipart([b"session", b"\xff"])
        with pytest.raises(StreamMismatchError) as refused:
            robot.receive()
        assert refused.value.code == "malformed"
