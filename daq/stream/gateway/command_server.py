"""The command socket, which takes requests from clients and sends them the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq

from daq.stream.endpoints import bind
from daq.stream.errors import RefusedError
from daq.stream.gateway.packets import RawRequest
from daq.stream.gateway.request_queue import Asked
from daq.stream.keys import Keys
from daq.stream.requests import BadRequestError, check_sizes, read_request, refuse

MESSAGE_MAX = 1 << 20
"""Bytes of a part; a client that sends more is disconnected by ZeroMQ before we see it."""
_QUEUE = 64
_PARTS_MAX = 4
"""Return address, a REQ socket's delimiter, JSON, binary part."""
_DISCARDED_AT_ONCE = 32
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class CommandServer:
    """A ROUTER socket that answers requests; see `daq.stream.messages`.

    ZeroMQ takes clients in turn, and the queue of each is bounded. A client that does not read its
    answers loses them. Hold a `RuntimeLock` before binding local endpoints; `tcp://` needs the
    robot's keys and an `Access`.

    Raises:
        ConfigError: An endpoint that is open to everyone.
        BindError: An endpoint that the system refuses.

    Attributes:
        socket: To wait for requests; not to be used otherwise.
    """

    def __init__(
        self, context: zmq.Context[Any], endpoints: Sequence[str], *, curve: Keys | None = None
    ) -> None:
        self._is_discarding = False
        self.socket = context.socket(zmq.ROUTER)
        self.socket.maxmsgsize = MESSAGE_MAX
        self.socket.rcvhwm = _QUEUE
        self.socket.sndhwm = _QUEUE
        self.socket.linger = 0
        try:
            bind(self.socket, endpoints, curve)
        except BaseException:
            self.socket.close()
            raise

    @property
    def has_message(self) -> bool:
        """Whether something has come."""
        return bool(self.socket.getsockopt(zmq.EVENTS) & _POLLIN)

    def receive(self) -> Asked | None:
        """Return a valid request, None when there is none; never blocks.

        Messages that are not requests are refused here, one per call.
        """
        try:
            if self._is_discarding:
                self._discard()
                return None
            parts = self._receive_parts()
        except zmq.Again:
            return None
        address, body = parts[0].bytes, parts[1:]
        # A REQ socket puts an empty part in front and wants it back.
        is_delimited = bool(body) and not len(body[0])
        return_path = (address, b"") if is_delimited else (address,)
        try:
            request = self._read(body[1:] if is_delimited else body)
            return Asked(return_path, read_request(*request).command, request)
        except BadRequestError as error:
            self._send(return_path, refuse(error.id, error))
            return None

    def answer(self, asked: Asked, answer: bytes) -> None:
        """Answer a request."""
        self._send(asked.return_path, answer)

    def refuse(self, asked: Asked, error: RefusedError) -> None:
        """Tell the client that nothing was done, and why."""
        self._send(asked.return_path, refuse(asked.command.id, error))

    # --- one request ------------------------------------------------------------------------------

    def _receive_parts(self) -> list[zmq.Frame]:
        """Return the parts of a message, not copied yet; of one with too many, the first ones."""
        parts: list[zmq.Frame] = []
        while True:
            # All parts of a message arrive together.
            part = self.socket.recv(_NOBLOCK, copy=False)
            parts.append(part)
            if not part.more:
                return parts
            if len(parts) == _PARTS_MAX:
                self._is_discarding = True
                return parts

    def _discard(self) -> None:
        """Throw away the rest of a message with too many parts, some at a time."""
        for _ in range(_DISCARDED_AT_ONCE):
            if not self.socket.recv(_NOBLOCK, copy=False).more:
                self._is_discarding = False
                return

    def _read(self, body: Sequence[zmq.Frame]) -> RawRequest:
        if self._is_discarding or not 1 <= len(body) <= 2:
            raise BadRequestError("malformed", "a request has one part of JSON, or two")
        data, payload = body[0], body[1] if len(body) == 2 else None
        check_sizes(len(data), 0 if payload is None else len(payload))
        return RawRequest(data.bytes, None if payload is None else payload.bytes)

    def _send(self, return_path: tuple[bytes, ...], answer: bytes) -> None:
        for part in return_path:
            self.socket.send(part, _MORE)
        self.socket.send(answer, _NOBLOCK)
