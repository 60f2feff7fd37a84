"""Publishing: never blocks, never lets one subscriber harm another, never steals a live socket."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable
from typing import Any

import pytest
import zmq

from daq.errors import ConfigError
from daq.stream.errors import BindError
from daq.stream.gateway.publisher import QUEUE_BATCHES, Publisher
from daq.system.runtime_directory import RuntimeBusyError, RuntimeDirectory, RuntimeLock

PATIENCE_S = 30.0
Context = zmq.Context[Any]
BIG = bytes(60_000)
FROZEN = """
import sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.rcvhwm = 10
socket.subscribe(b"")
socket.connect(sys.argv[1])
socket.recv_multipart()
print("listening", flush=True)
while True:
    parts = socket.recv_multipart()
    print(int(parts[1]) if len(parts) == 3 else "session", flush=True)
"""
BINDER = """
import sys, time, zmq
from pathlib import Path
from daq.stream.gateway.publisher import Publisher
from daq.system.runtime_directory import RuntimeLock
lock = RuntimeLock(Path(sys.argv[1]))
publisher = Publisher(zmq.Context(), ["ipc://" + sys.argv[1] + "/stream"])
print("bound", flush=True)
time.sleep(60)
"""


def subscribe(context: Context, endpoint: str, **options: int) -> Any:
    socket = context.socket(zmq.SUB)
    for name, value in options.items():
        setattr(socket, name, value)
    socket.subscribe(b"")
    socket.connect(endpoint)
    return socket


def publish_until_heard(publisher: Publisher, *sockets: Any) -> None:
    """A subscriber misses what was published before it had joined."""
    deadline = time.monotonic() + PATIENCE_S
    waiting = set(sockets)
    while waiting:
        publisher.publish(b"-1", b"")
        time.sleep(0.01)
        waiting -= {socket for socket in waiting if socket.poll(0)}
        assert time.monotonic() < deadline
    for socket in sockets:
        while socket.poll(100):
            socket.recv_multipart()


def test_batch_and_session_on_several_endpoints(
    context: Context, runtime: RuntimeDirectory
) -> None:
    publisher = Publisher(context, [runtime.stream, "inproc://stream"])
    sockets = [subscribe(context, where) for where in (runtime.stream, "inproc://stream")]
    publish_until_heard(publisher, *sockets)

    publisher.publish(b"header", b"payload")
    publisher.publish_session(b"session")

    for socket in sockets:
        assert socket.poll(1000 * PATIENCE_S)
        assert socket.recv_multipart() == [b"batch", b"header", b"payload"]
        assert socket.recv_multipart() == [b"session", b"session"]
    assert publisher.dropped == 0


def test_socket_is_for_the_directory_s_group(context: Context, runtime: RuntimeDirectory) -> None:
    Publisher(context, [runtime.stream])

    assert stat.S_IMODE((runtime.path / "stream").stat().st_mode) == 0o660


def test_frozen_subscriber_loses_batches_and_nobody_else(
    context: Context, runtime: RuntimeDirectory, start: Callable[..., Any]
) -> None:
    publisher = Publisher(context, [runtime.stream])
    process = start(FROZEN, runtime.stream)
    healthy = subscribe(context, runtime.stream, rcvhwm=0)
    publish_until_heard(publisher, healthy)
    _await_line(publisher, process, healthy)
    os.kill(process.pid, signal.SIGSTOP)

    received = []
    total = 3 * QUEUE_BATCHES
    for number in range(total):
        publisher.publish(b"%d" % number, BIG)
        if number % 100 == 99:
            publisher.publish_session(b"session")
            while len(received) <= number:
                assert healthy.poll(1000 * PATIENCE_S)
                parts = healthy.recv_multipart()
                if len(parts) == 3 and int(parts[1]) >= 0:
                    received.append(int(parts[1]))

    assert received == list(range(total))
    assert publisher.dropped == 1

    os.kill(process.pid, signal.SIGCONT)
    numbers = [int(line) for line in _lines_until(publisher, process, "10000") if line.isdigit()]
    # What it got until its queue was full is whole, and it is served again afterwards.
    kept = [number for number in numbers if number < total]
    assert kept == list(range(len(kept)))
    assert 0.95 * QUEUE_BATCHES < len(kept) < total


def _await_line(publisher: Publisher, process: Any, healthy: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _read_now(process):
        publisher.publish(b"-1", b"")
        time.sleep(0.02)
        assert time.monotonic() < deadline
    while healthy.poll(100):
        healthy.recv_multipart()


def _lines_until(publisher: Publisher, process: Any, last: str) -> list[str]:
    """What the subscriber says; the last word is published until it is heard."""
    text = ""
    deadline = time.monotonic() + PATIENCE_S
    while last not in text.split("\n"):
        publisher.publish(last.encode(), b"")
        time.sleep(0.02)
        text += _read_now(process)
        assert time.monotonic() < deadline
    return text.split("\n")


def _read_now(process: Any) -> str:
    file = process.stdout.fileno()
    os.set_blocking(file, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(file, 1 << 20).decode()
    return ""


def test_subscriber_that_floods_us_with_subscriptions(
    context: Context, runtime: RuntimeDirectory
) -> None:
    publisher = Publisher(context, [runtime.stream])
    healthy = subscribe(context, runtime.stream)
    publish_until_heard(publisher, healthy)
    flood = context.socket(zmq.XSUB)
    flood.connect(runtime.stream)
    for number in range(20_000):
        flood.send(b"\x01%d" % number)
        flood.send(b"\x00%d" % number)

    publisher.publish(b"header", b"payload")

    assert healthy.poll(1000 * PATIENCE_S)
    assert healthy.recv_multipart() == [b"batch", b"header", b"payload"]


def test_oversized_subscription_is_refused(context: Context, runtime: RuntimeDirectory) -> None:
    publisher = Publisher(context, [runtime.stream])
    greedy = context.socket(zmq.SUB)
    greedy.subscribe(b"batch" + bytes(2000))
    greedy.subscribe(b"batch")
    greedy.connect(runtime.stream)
    healthy = subscribe(context, runtime.stream)

    publish_until_heard(publisher, healthy)

    assert not greedy.poll(0)


def test_sockets_of_a_killed_loop_are_taken_over(
    context: Context, runtime: RuntimeDirectory, start: Callable[..., Any]
) -> None:
    process = start(BINDER, runtime.path)
    assert process.stdout.readline() == "bound\n"
    process.kill()
    process.wait()
    assert (runtime.path / "stream").exists()

    with RuntimeLock(runtime.path):
        publisher = Publisher(context, [runtime.stream])
        publish_until_heard(publisher, subscribe(context, runtime.stream))


def test_living_loop_is_refused_by_name(
    runtime: RuntimeDirectory, start: Callable[..., Any]
) -> None:
    process = start(BINDER, runtime.path)
    assert process.stdout.readline() == "bound\n"

    with pytest.raises(RuntimeBusyError) as caught:
        RuntimeLock(runtime.path)
    assert (caught.value.directory, caught.value.process) == (runtime.path, str(process.pid))
    assert "--runtime" in str(caught.value)


def test_lock_can_be_taken_again(runtime: RuntimeDirectory) -> None:
    lock = RuntimeLock(runtime.path)
    with pytest.raises(RuntimeBusyError):
        RuntimeLock(runtime.path)
    lock.release()
    lock.release()

    RuntimeLock(runtime.path).release()


def test_directory_gone(context: Context, runtime: RuntimeDirectory) -> None:
    runtime.path.rmdir()

    with pytest.raises(BindError) as refused:
        Publisher(context, [runtime.stream])
    assert refused.value.code == "not-opened"
    assert runtime.stream in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("tcp://127.0.0.1:5555", "--keys"),
        ("tcp://*:5555", "tcp://eth0:5555"),
        ("tcp://0.0.0.0:5555", "tcp://eth0:5555"),
        ("tcp://[::]:5555", "tcp://eth0:5555"),
        ("tcp://127.0.0.1:*", "tcp://HOST:PORT"),
        ("tcp://127.0.0.1:65535", "tcp://HOST:PORT"),
        ("udp://127.0.0.1:5555", "tcp://HOST:PORT"),
        ("pgm://x", "tcp://HOST:PORT"),
    ],
)
def test_endpoint_open_to_everyone(context: Context, endpoint: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Publisher(context, ["inproc://first", endpoint])
    assert refused.value.source == endpoint
    assert problem in refused.value.problems[0]

    # Nothing was bound.
    Publisher(context, ["inproc://first"])
