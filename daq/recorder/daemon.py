"""The recorder as a process: receives from the stream until it is told to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zmq

from daq.errors import ConfigError
from daq.recorder.converters import ProcessConverter
from daq.recorder.recorder import Recorder
from daq.samples.batches import BATCH_TOPIC, HEADER_MAX, PAYLOAD_MAX, SESSION_TOPIC
from daq.service.notify import Notifier
from daq.system.locks import FileLock, LockHeldError
from daq.system.runtime_directory import RuntimeDirectory

QUEUE_BATCHES = 6000
"""Two minutes of batches while the disk stalls; what does not fit is taken from the spool."""
_POLL_MS = 50
_AT_ONCE = 256


@contextmanager
def only_recorder(runtime: RuntimeDirectory) -> Iterator[None]:
    """Make sure that no other recorder is at work on a robot.

    Raises:
        ConfigError: There is one, or its lock cannot be had.
    """
    path = runtime.path / "recorder.lock"
    try:
        lock = FileLock(path)
    except LockHeldError as error:
        process = error.holder.process
        problem = f"a recorder is at work here already (process {process}): stop it first"
        raise ConfigError(f"--runtime {runtime.path}", [problem]) from None
    except OSError as error:
        problem = f"{path.name} cannot be opened: {error.strerror}"
        raise ConfigError(f"--runtime {runtime.path}", [problem]) from error
    with lock:
        yield


def record(
    endpoint: str,
    recorder: Recorder,
    converter: ProcessConverter,
    *,
    is_over: Callable[[], bool],
    notifier: Notifier,
    is_once: bool = False,
    queue_batches: int = QUEUE_BATCHES,
) -> None:
    """Record what a loop publishes, however often it is restarted; it need not be there yet.

    With `is_once` the first recording ends it.
    """
    context: zmq.Context[Any] = zmq.Context()
    socket = context.socket(zmq.SUB)
    try:
        socket.rcvhwm = queue_batches
        socket.linger = 0
        socket.maxmsgsize = HEADER_MAX + PAYLOAD_MAX
        for topic in (BATCH_TOPIC, SESSION_TOPIC):
            socket.subscribe(topic)
        socket.connect(endpoint)
        ping = _pinger(notifier)
        notifier.ready()
        while not is_over() and not (is_once and recorder.files.finished):
            if socket.poll(_POLL_MS):
                _receive(socket, recorder)
            recorder.tick()
            ping()
        notifier.stopping()
        while _receive(socket, recorder):
            ping()
        recorder.finish()
        converter.finish(ping)
    finally:
        socket.close()
        context.term()


def _receive(socket: zmq.Socket[bytes], recorder: Recorder) -> bool:
    """Take what has come, as long as it is not too much; returns whether there may be more."""
    for _ in range(_AT_ONCE):
        try:
            parts = socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return False
        if len(parts) == 3 and parts[0] == BATCH_TOPIC:
            recorder.handle(parts[1], parts[2])
        elif len(parts) == 2 and parts[0] == SESSION_TOPIC:
            recorder.handle_session(parts[1])
    return True


def _pinger(notifier: Notifier) -> Callable[[], None]:
    """Return what pings the watchdog, not more often than it asks for."""
    interval_s = notifier.watchdog_interval_s
    due_s = time.monotonic()

    def ping() -> None:
        nonlocal due_s
        if interval_s is not None and time.monotonic() >= due_s:
            due_s = time.monotonic() + interval_s / 2
            notifier.watchdog()

    return ping
