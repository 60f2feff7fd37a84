"""Clients and the command socket: real sockets, honest peers and others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
import zmq

from daq.errors import ConfigError
from daq.stream.command_client import CHUNK_BYTES, CommandClient
from daq.stream.errors import CommandRefusedError, CommandTimeoutError, RefusedError
from daq.stream.gateway.command_server import MESSAGE_MAX
from daq.stream.messages import (
    REQUEST_MAX,
    Enable,
    LoopStatus,
    PlayBegin,
    PlayRows,
    RecorderReport,
    Report,
    Status,
    Stop,
)
from daq.stream.requests import PAYLOAD_MAX
from daq.system.runtime_directory import RuntimeDirectory

PATIENCE_S = 30.0
STATUS = b'{"command": "status", "id": 5}'
Context = zmq.Context[Any]


@pytest.fixture
def polled(runtime: RuntimeDirectory, polled_server: Any) -> Iterator[Any]:
    """A server that the test polls itself."""
    server = polled_server(runtime.commands)
    yield server
    server.close()


@pytest.fixture
def peer(context: Context, runtime: RuntimeDirectory, polled: Any) -> Callable[..., Any]:
    """Makes raw sockets that are connected to it."""

    def connect(kind: int = zmq.DEALER, **options: Any) -> Any:
        socket = context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(runtime.commands)
        return socket

    return connect


def poll_until(server: Any, is_done: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        if not server.poll():
            time.sleep(0.0005)
        assert time.monotonic() < deadline


def answer_of(server: Any, socket: Any) -> Any:
    poll_until(server, lambda: socket.poll(0))
    return json.loads(socket.recv_multipart()[-1])


def test_nothing_to_do(polled: Any) -> None:
    assert polled.poll() is False


@pytest.mark.parametrize("kind", [zmq.DEALER, zmq.REQ])
def test_answers_any_kind_of_client(polled: Any, peer: Any, kind: int) -> None:
    socket = peer(kind)
    socket.send(STATUS)

    answer = answer_of(polled, socket)

    assert (answer["id"], answer["ok"], answer["result"]["state"]) == (5, True, "idle")


BAD_PARTS = {
    "empty": [b""],
    "two empty": [b"", b""],
    "too many": [STATUS, b"", b""],
    "far too many": [STATUS] * 500,
    "JSON too large": [b" " * (REQUEST_MAX + 1)],
    "payload too large": [b'{"command": "play-rows", "first": 0}', bytes(PAYLOAD_MAX + 1)],
    "payload first": [bytes(100), STATUS],
    "JSON twice": [STATUS, STATUS],
}


@pytest.mark.parametrize("parts", BAD_PARTS.values(), ids=BAD_PARTS)
def test_wrong_parts_are_refused(polled: Any, peer: Any, loop: Any, parts: list[bytes]) -> None:
    socket = peer()
    socket.send_multipart(parts)

    answer = answer_of(polled, socket)

    assert not answer["ok"]
    assert answer["error"]["code"] in ("malformed", "oversized")
    assert loop.commands == []
    socket.send(STATUS)
    assert answer_of(polled, socket)["ok"]


def test_gigantic_message_costs_its_sender_the_connection(
    polled: Any, peer: Any, loop: Any
) -> None:
    giant, honest = peer(), peer()
    giant.send(bytes(MESSAGE_MAX + 1))
    honest.send(STATUS)

    assert answer_of(polled, honest)["ok"]
    for _ in range(100):
        polled.poll()
        time.sleep(0.001)
    assert not giant.poll(0)
    assert len(loop.commands) == 1


def test_many_parts_are_discarded_some_at_a_time(polled: Any, peer: Any) -> None:
    socket = peer()
    socket.send_multipart([b"x"] * 200)
    while not polled.poll():
        time.sleep(0.0005)

    polls = 0
    while polled.poll():
        polls += 1

    assert polls == (200 + 1 - 4 + 31) // 32


def test_refusal_reaches_the_client(server: Any, runtime: RuntimeDirectory, loop: Any) -> None:
    loop.refusal = RefusedError("not-now", "state is idle")
    with CommandClient(runtime.commands) as client:
        with pytest.raises(CommandRefusedError) as caught:
            client.ask(Enable())

        assert (caught.value.code, caught.value.message) == ("not-now", "state is idle")
        assert isinstance(client.status(), LoopStatus)


def test_handler_failure_leaves_poll(
    context: Context, runtime: RuntimeDirectory, polled_server: Any
) -> None:
    def fail(command: object, payload: bytes) -> object:
        raise ZeroDivisionError

    server = polled_server(runtime.commands, handler=fail)
    socket = context.socket(zmq.DEALER)
    socket.connect(runtime.commands)
    socket.send(STATUS)

    with pytest.raises(ZeroDivisionError):
        poll_until(server, lambda: False)


def test_flood_from_one_client_leaves_every_second_poll_to_others(
    polled: Any, peer: Any, loop: Any
) -> None:
    flood, honest = peer(), peer()
    honest.send(STATUS)
    assert answer_of(polled, honest)["ok"]
    for number in range(500):
        flood.send(b'{"command": "stop", "id": %d}' % number)
    poll_until(polled, lambda: loop.told(Stop))

    honest.send_multipart([STATUS])
    time.sleep(0.1)
    loop.commands.clear()
    for _ in range(4):
        assert polled.poll()

    assert loop.told(Status)
    assert len(loop.commands) == 4


def test_client_that_never_reads_loses_its_answers(polled: Any, peer: Any, loop: Any) -> None:
    deaf, honest = peer(rcvhwm=1), peer()
    for _ in range(20):
        for _ in range(200):
            deaf.send(STATUS)
        before = len(loop.commands)
        poll_until(polled, lambda before=before: len(loop.commands) == before + 200)

    honest.send(STATUS)
    assert answer_of(polled, honest)["ok"]


def test_no_message_is_forgotten(polled: Any, peer: Any, loop: Any) -> None:
    """The socket's descriptor tells of the first of several messages only."""
    random = Random(1)
    sockets = [peer() for _ in range(3)]
    for expected in range(1, 1001):
        random.choice(sockets).send(STATUS)
        if random.random() < 0.3:
            poll_until(polled, lambda expected=expected: len(loop.commands) == expected)
        elif random.random() < 0.5:
            polled.poll()
    poll_until(polled, lambda: len(loop.commands) == 1000)

    assert polled.poll() is False


def test_client_that_left_is_no_trouble(polled: Any, peer: Any, loop: Any) -> None:
    socket = peer()
    socket.send(STATUS)
    time.sleep(0.1)
    socket.close()

    poll_until(polled, lambda: loop.commands)


def test_late_answers_are_ignored(context: Context, runtime: RuntimeDirectory) -> None:
    router = context.socket(zmq.ROUTER)
    router.bind(runtime.commands)
    with CommandClient(runtime.commands) as client:
        with pytest.raises(CommandTimeoutError):
            client.ask(Enable(), timeout_s=0.3)
        address, request = router.recv_multipart()
        late = json.loads(request)
        for number, result in ((late["id"], '"late"'), (late["id"] + 1, '"right"')):
            router.send_multipart(
                [address, b'{"id":%d,"ok":true,"result":%s}' % (number, result.encode())]
            )

        assert client.ask(Stop(), timeout_s=PATIENCE_S) == "right"


def test_command_is_not_kept_for_a_loop_that_comes_later(
    runtime: RuntimeDirectory, loop: Any, polled_server: Any
) -> None:
    with CommandClient(runtime.commands) as client:
        with pytest.raises(CommandTimeoutError) as caught:
            client.ask(Enable(), timeout_s=0.1)
        assert caught.value.code == "not-sent"
        assert client.tell(Enable()) is False

        server = polled_server(runtime.commands)
        poll_until(server, lambda: client._wait(zmq.POLLOUT, 0.0))
        assert client.tell(Stop())
        poll_until(server, lambda: loop.commands)

    assert not loop.told(Enable)


def test_telling_never_waits_and_its_answers_do_not_pile_up(
    server: Any, runtime: RuntimeDirectory, loop: Any
) -> None:
    report = Report(report=RecorderReport(state="idle"))
    with CommandClient(runtime.commands) as client:
        client.status()
        for _ in range(50):
            assert client.tell(report)

        assert isinstance(client.status(), LoopStatus)

    assert len(loop.told(Report)) == 50


def test_trajectory_is_sent_in_chunks(server: Any, runtime: RuntimeDirectory, loop: Any) -> None:
    rows = np.arange(3000 * 12, dtype=">f8").reshape(3000, 12)
    counts: list[int] = []
    with CommandClient(runtime.commands) as client:
        client.send_trajectory(rows, has_torque=True, progress=counts.append)

    begin, *chunks = loop.commands
    assert (begin.rows, begin.has_torque) == (3000, True)
    assert isinstance(begin, PlayBegin)
    assert all(isinstance(chunk, PlayRows) for chunk in chunks)
    assert max(map(len, loop.payloads)) <= CHUNK_BYTES
    assert b"".join(loop.payloads) == rows.astype("<f8").tobytes()
    assert [chunk.first for chunk in chunks] == [0, *counts[:-1]]
    assert counts[-1] == 3000


@pytest.mark.parametrize("shape", [(10,), (10, 3), (10, 0)])
def test_trajectory_of_wrong_shape(
    server: Any, runtime: RuntimeDirectory, shape: tuple[int, ...]
) -> None:
    with CommandClient(runtime.commands) as client, pytest.raises(ConfigError) as refused:
        client.send_trajectory(np.zeros(shape))
    assert refused.value.source == "trajectory"
    assert str(shape) in refused.value.problems[0]
