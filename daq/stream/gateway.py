"""The process between the loop and the world: all ZeroMQ sockets of a robot are here.

ZeroMQ does much of its work in the thread that sends (it digests subscriptions there), keeps
unfinished messages in memory without bound, and ends its process when memory or files run out. None
of this may happen to a process that moves a robot. So the loop has no socket that anybody else can
reach: it writes into a socket pair (`daq.stream.packets`), and this process, run as a program by
`daq.stream.gateway_link`, does the rest. Whatever clients do to it, the loop goes on; when they
bring it down it is started again, and what was not heard meanwhile is in the spool.

It ends when the loop does, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import resource
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec
import zmq

from daq.errors import DaqError
from daq.stream.access import Access
from daq.stream.command_server import CommandServer
from daq.stream.errors import BindError, RefusedError
from daq.stream.keys import Keys, load_keys
from daq.stream.packets import (
    EXPIRES_S,
    PACKET_MAX,
    GatewayReport,
    GatewaySettings,
    Kind,
    NumberedRequest,
    read_answer_packet,
    read_stream_packet,
    request_packet,
)
from daq.stream.plotjuggler import PlotJugglerStream
from daq.stream.publisher import Publisher

MEMORY_MAX_BYTES = 512 << 20
"""Frozen subscribers share what waits for them, so an honest crowd needs a tenth of it."""
_REPORT_EVERY_S = 0.5
_ANSWER_MAX_S = 2 * EXPIRES_S
"""By then it has expired, and "nothing was done" is true."""
_DEAF_S = 1.0
"""A loop that did not answer is not asked again for so long."""
_AT_ONCE = 64
_RESTART_AFTER_S = 0.2
_LOCK_MAX_S = 5.0
_LINGER_MS = 200
_OOM_SCORE = 500
_NO_ANSWER = RefusedError("not-now", "the loop does not answer: nothing was done")
_POLLIN = int(zmq.POLLIN)


class Gateway:
    """The sockets, and what goes through them.

    One request is with the loop at a time. ZeroMQ takes clients in turn, so one that floods the
    socket gets every second place at best.

    Args:
        settings: What to open.
        keys: The robot's, when the settings name some.
        stream: Our end of the stream pair.
        commands: Our end of the command pair.
        life: How many gateways there have been.

    Raises:
        BindError: An endpoint that the system refuses.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        keys: Keys | None,
        *,
        stream: socket.socket,
        commands: socket.socket,
        life: int,
    ) -> None:
        self._stream, self._commands = stream, commands
        self._life = life
        self._context: zmq.Context[Any] = zmq.Context()
        self._access = None if keys is None else Access(self._context, keys)
        self._publisher = Publisher(self._context, settings.stream, curve=keys)
        self._server = CommandServer(self._context, settings.commands, curve=keys)
        port = settings.plotjuggler_port
        self._plotjuggler = None if port is None else PlotJugglerStream(self._context, port)
        self._poller = zmq.Poller()
        for end in (stream, commands):
            self._poller.register(end, _POLLIN)
        if self._access is not None:
            self._poller.register(self._access.socket, _POLLIN)
        # Answers to the gateway before us must not be taken for ours.
        self._number = time.monotonic_ns()
        self._asked_s: float | None = None
        self._deaf_until_s = -math.inf
        self._reported_s = 0.0
        self._is_loop_there = True

    def run(self) -> None:
        """Work until the loop has closed its ends and everything is published."""
        while self._is_loop_there:
            self._report()
            # Clients wait while the loop is at another one's request.
            self._poller.register(self._server.socket, 0 if self._is_asking else _POLLIN)
            self._poller.poll(round(_REPORT_EVERY_S * 1e3))
            self._publish()
            self._hand_back_answer()
            if self._access is not None:
                self._access.poll()
            if not self._is_asking:
                self._hand_on_request()
        self._context.destroy(linger=_LINGER_MS)

    # --- from the loop ----------------------------------------------------------------------------

    def _publish(self) -> None:
        """Publish what has come, as long as it is not too much."""
        for _ in range(_AT_ONCE):
            try:
                packet = _receive(self._stream)
            except BlockingIOError:
                return
            if not packet:
                self._is_loop_there = False
                return
            kind, first, second = read_stream_packet(packet)
            if kind is Kind.BATCH:
                self._publisher.publish(first, second)
            elif kind is Kind.SESSION:
                self._publisher.publish_session(first)
            elif self._plotjuggler is not None:
                self._plotjuggler.send(first, second)

    def _hand_back_answer(self) -> None:
        try:
            packet = _receive(self._commands)
        except BlockingIOError:
            now_s = time.monotonic()
            if self._asked_s is not None and now_s > self._asked_s + _ANSWER_MAX_S:
                self._asked_s, self._deaf_until_s = None, now_s + _DEAF_S
                self._server.refuse(_NO_ANSWER)
            return
        if not packet:
            # The loop ends; what it published last comes through the other pair.
            self._poller.register(self._commands, 0)
            self._deaf_until_s = math.inf
            return
        self._deaf_until_s = -math.inf
        number, answer = read_answer_packet(packet)
        if number == self._number and self._asked_s is not None:
            self._asked_s = None
            self._server.answer(answer)

    # --- to the loop ------------------------------------------------------------------------------

    @property
    def _is_asking(self) -> bool:
        """Whether a request is with the loop."""
        return self._asked_s is not None

    def _hand_on_request(self) -> None:
        request = self._server.receive()
        if request is None:
            return
        now_s = time.monotonic()
        if now_s < self._deaf_until_s:
            # Those who wait behind this one get their answers soon, and none comes too late.
            self._server.refuse(_NO_ANSWER)
            return
        self._number += 1
        self._asked_s = now_s
        numbered = NumberedRequest(self._number, time.monotonic_ns(), request)
        with contextlib.suppress(OSError):  # the loop is ending
            self._commands.sendmsg(request_packet(numbered))

    def _report(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._reported_s + _REPORT_EVERY_S:
            self._reported_s = now_s
            _send_report(self._stream, GatewayReport(self._life, self._publisher.dropped))


# --- the processes --------------------------------------------------------------------------------


def main() -> int:
    """Keep a gateway going as long as the loop is there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the loop, and not before
    stream, commands = (socket.socket(fileno=int(word)) for word in sys.argv[1:3])
    settings = msgspec.json.decode(sys.argv[3], type=GatewaySettings)
    try:
        # Held by us and by every gateway that we start.
        _lock(Path(settings.lock))
        keys = None if settings.keys is None else load_keys(Path(settings.keys))
    except (DaqError, OSError) as error:
        _send_report(stream, GatewayReport(1, problem=str(error)))
        return 1
    life = 0
    while True:
        life += 1
        child = os.fork()
        if not child:
            _serve(settings, keys, stream, commands, life)
        _, status = os.waitpid(child, 0)
        if not os.waitstatus_to_exitcode(status):
            return 0
        time.sleep(_RESTART_AFTER_S)


def _serve(
    settings: GatewaySettings,
    keys: Keys | None,
    stream: socket.socket,
    commands: socket.socket,
    life: int,
) -> None:
    """Be a gateway, in a process of its own; never returns."""
    exit_code = 1
    try:
        _limit_ourselves()
        Gateway(settings, keys, stream=stream, commands=commands, life=life).run()
        exit_code = 0
    except BindError as error:
        _send_report(stream, GatewayReport(life, problem=str(error)))
        # The first one's problem is told to the user; a later one's may pass.
        exit_code = 0 if life == 1 else 1
    except BaseException:  # the next one has a fresh start
        traceback.print_exc()
    finally:
        os._exit(exit_code)


def _limit_ourselves() -> None:
    """Bound what clients can make of us, and be the first to go when memory is short."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit, value in (
        (resource.RLIMIT_NOFILE, most_files),
        (resource.RLIMIT_DATA, MEMORY_MAX_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # stricter already, or not ours to say
            resource.setrlimit(limit, (value, value))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))


def _lock(path: Path) -> None:
    """Wait for the gateway of a killed loop, which still publishes what that one left.

    Raises:
        BindError: It does not end.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    deadline_s = time.monotonic() + _LOCK_MAX_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                holder = os.pread(file, 20, 0).decode(errors="replace")
                raise BindError(
                    f"{path}: the gateway of an earlier loop does not end (process "
                    f"{holder or 'unknown'}): end it first"
                ) from None
            time.sleep(0.02)
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
            return


def _receive(end: socket.socket) -> bytes:
    """The next packet, empty when the loop is gone and has left none.

    Raises:
        BlockingIOError: There is none yet.
    """
    try:
        return end.recv(PACKET_MAX)
    except ConnectionResetError:
        # The loop is gone and has not read everything. What it wrote is still there.
        return end.recv(PACKET_MAX)


def _send_report(stream: socket.socket, report: GatewayReport) -> None:
    try:
        stream.send(msgspec.json.encode(report))
    except OSError:
        return  # the loop is busy, or gone: then the next packet says so


if __name__ == "__main__":
    sys.exit(main())
