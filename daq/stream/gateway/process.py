"""The process between the loop and the world: all ZeroMQ sockets of a robot are here.

ZeroMQ does much of its work in the thread that sends (it digests subscriptions there), keeps
unfinished messages in memory without bound, and ends its process when memory or files run out. None
of this may happen to a process that moves a robot. So the loop has no socket that anybody else can
reach: it writes into a socket pair (`daq.stream.gateway.packets`), and another process does the
rest. Whatever clients do to it, the loop goes on; when they bring it down it is started again
(`daq.stream.gateway.keeper`), and what was not heard meanwhile is in the spool.
"""

from __future__ import annotations

import math
import mmap
import socket
import time
from typing import Any

import msgspec
import zmq

from daq.stream.errors import RefusedError
from daq.stream.gateway.access import Access
from daq.stream.gateway.command_server import CommandServer
from daq.stream.gateway.packets import (
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
from daq.stream.gateway.plotjuggler import PlotJugglerStream
from daq.stream.gateway.publisher import Publisher
from daq.stream.gateway.request_queue import Asked, RequestQueue
from daq.stream.gateway.status_cache import StatusCache
from daq.stream.keys import Keys
from daq.stream.messages import Stop

_REPORT_EVERY_S = 0.5
_ANSWER_MAX_S = 2 * EXPIRES_S
"""By then it has expired, and "nothing was done" is true."""
_DEAF_S = 1.0
"""A loop that did not answer is not asked again for so long."""
_AT_ONCE = 256
_TURN_MS = 100
_LINGER_MS = 200
_NO_ANSWER = RefusedError("no-answer", "the loop does not answer: nothing was done")
_TOO_LATE = RefusedError("too-late", "this waited for too long: nothing was done")
_POLLIN = int(zmq.POLLIN)


class Pulse:
    """A byte that the keeper shares with its gateway; a living gateway sets it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def beat(self) -> None:
        """Show that this process is alive."""
        self._memory[0] = 1

    def was_felt(self) -> bool:
        """Whether there was a beat since this was asked last."""
        felt, self._memory[0] = bool(self._memory[0]), 0
        return felt


class Gateway:
    """The sockets, and what goes through them.

    One request is with the loop at a time; the others wait in a `RequestQueue`. This is gateway
    number `life`; the pulse beats while it is alive.

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
        pulse: Pulse,
    ) -> None:
        self._stream, self._commands = stream, commands
        self._life = life
        self._pulse = pulse
        self._context: zmq.Context[Any] = zmq.Context()
        self._access = None if keys is None else Access(self._context, keys)
        self._publisher = Publisher(self._context, settings.stream, curve=keys)
        self._server = CommandServer(self._context, settings.commands, curve=keys)
        port = settings.plotjuggler_port
        self._plotjuggler = None if port is None else PlotJugglerStream(self._context, port)
        self._poller = zmq.Poller()
        for readable in (stream, commands, self._server.socket):
            self._poller.register(readable, _POLLIN)
        if self._access is not None:
            self._poller.register(self._access.socket, _POLLIN)
        self._buffer = memoryview(bytearray(PACKET_MAX))
        self._queue = RequestQueue()
        self._statuses = StatusCache()
        # Answers to the gateway before us must not be taken for ours.
        self._number = time.monotonic_ns()
        self._asked: Asked | None = None
        self._asked_s = 0.0
        self._deaf_until_s = -math.inf
        self._reported_s = 0.0
        self._is_loop_there = True

    def run(self) -> None:
        """Work until the loop has closed its ends and everything is published."""
        woke_s = time.monotonic()
        while self._is_loop_there:
            self._report()
            self._poller.poll(_TURN_MS)
            self._pulse.beat()
            woke_before_s, woke_s = woke_s, time.monotonic()
            self._publish()
            self._hand_back_answer()
            if self._access is not None:
                self._access.poll()
            # If we were frozen, nobody knows how long they have been waiting.
            self._take_requests(is_late=woke_s - woke_before_s > _TURN_MS * 1e-3 + EXPIRES_S)
            self._hand_on_request()
        self._context.destroy(linger=_LINGER_MS)

    # --- from the loop ----------------------------------------------------------------------------

    def _publish(self) -> None:
        """Publish what has come, as long as it is not too much."""
        for _ in range(_AT_ONCE):
            packet = self._receive(self._stream)
            if packet is None:
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
        packet = self._receive(self._commands)
        asked, now_s = self._asked, time.monotonic()
        if packet is None:
            if asked is not None and now_s > self._asked_s + _ANSWER_MAX_S:
                self._asked, self._deaf_until_s = None, now_s + _DEAF_S
                self._server.refuse(asked, _NO_ANSWER)
        elif not packet:
            # The loop ends; what it published last comes through the other pair.
            self._poller.register(self._commands, 0)
            self._deaf_until_s = math.inf
        else:
            self._deaf_until_s = -math.inf
            number, answer = read_answer_packet(packet)
            if number == self._number and asked is not None:
                self._asked = None
                self._statuses.note(asked.command, answer)
                self._server.answer(asked, answer)

    def _receive(self, end: socket.socket) -> bytes | None:
        """Return the next packet: None for none yet, empty for a loop that is gone."""
        try:
            return bytes(self._buffer[: end.recv_into(self._buffer)])
        except BlockingIOError:
            return None
        except ConnectionResetError:
            # The loop is gone and has not read everything. What it wrote is still there.
            return bytes(self._buffer[: end.recv_into(self._buffer)])

    # --- to the loop ------------------------------------------------------------------------------

    def _take_requests(self, *, is_late: bool) -> None:
        """Take requests into a queue of ours, which knows since when they wait."""
        for _ in range(_AT_ONCE):
            if not self._server.has_message:
                return
            asked = self._server.receive()
            if asked is None:
                continue
            try:
                # Nobody knows since when it waits, unless it says itself until when it holds.
                is_dated = asked.command.expires_ns > 0 or isinstance(asked.command, Stop)
                if is_late and not is_dated:
                    raise _TOO_LATE
                self._queue.add(asked)
            except RefusedError as error:
                self._server.refuse(asked, error)

    def _hand_on_request(self) -> None:
        while self._asked is None and (taken := self._queue.take()) is not None:
            (asked, is_late), now_s = taken, time.monotonic()
            if is_late:
                self._server.refuse(asked, _TOO_LATE)
            elif now_s < self._deaf_until_s:
                self._server.refuse(asked, _NO_ANSWER)
            elif (status := self._statuses.answer(asked.command)) is not None:
                self._server.answer(asked, status)
            else:
                self._number += 1
                numbered = NumberedRequest(self._number, time.monotonic_ns(), asked.request)
                try:
                    self._commands.sendmsg(request_packet(numbered))
                except OSError:  # the loop reads nothing, or is ending
                    self._server.refuse(asked, _NO_ANSWER)
                else:
                    self._statuses.forget(asked.command)
                    self._asked, self._asked_s = asked, now_s

    def _report(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._reported_s + _REPORT_EVERY_S:
            self._reported_s = now_s
            send_report(self._stream, GatewayReport(self._life, self._publisher.dropped))


def send_report(stream: socket.socket, report: GatewayReport) -> None:
    """Tell the loop how a gateway is doing; never waits."""
    try:
        stream.send(msgspec.json.encode(report))
    except OSError:
        return  # the loop is busy, or gone: then the next packet says so
