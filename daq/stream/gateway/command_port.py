"""The loop's end of the command pair: one request at a time, and never a wait."""

from __future__ import annotations

import contextlib
import socket
import struct

from daq.stream.gateway.packets import (
    EXPIRES_S,
    REQUEST_PACKET_MAX,
    answer_packet,
    read_request_packet,
)
from daq.stream.requests import Handler, carry_out

_EXPIRES_NS = round(EXPIRES_S * 1e9)


class CommandPort:
    """The end at which the loop carries out what clients ask for."""

    def __init__(self, pair: socket.socket, handler: Handler) -> None:
        self._pair = pair
        self._handler = handler
        # Made once: where all memory is locked, a fresh buffer of this size costs 20 page faults.
        self._buffer = bytearray(REQUEST_PACKET_MAX)
        self._view = memoryview(self._buffer)
        self._is_open = True

    def poll(self) -> bool:
        """Handle at most one request and return whether there was one; never blocks.

        Raises:
            Exception: What the handler raised, unless it is a `RefusedError`; the client gets no
                answer then.
        """
        if not self._is_open:
            return False
        try:
            size = self._pair.recv_into(self._buffer)
        except BlockingIOError:
            return False
        except OSError:
            size = 0
        if not size:
            self._is_open = False  # nobody is left who could ask
            return False
        try:
            number, asked_ns, request = read_request_packet(self._view[:size].tobytes())
        except struct.error:
            return False  # a gateway that sends nonsense is not a reason to stop
        answer = carry_out(request, self._handler, expires_ns=asked_ns + _EXPIRES_NS)
        with contextlib.suppress(OSError):  # a gateway that does not read: its client asks again
            self._pair.sendmsg(answer_packet(number, answer))
        return True
