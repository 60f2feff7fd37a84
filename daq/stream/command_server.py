"""The loop's command socket: one request at a time, and never a wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import zmq

from daq.stream.endpoints import bind
from daq.stream.errors import RefusedError
from daq.stream.inbox import Inbox
from daq.stream.keys import Keys
from daq.stream.messages import AnyCommand
from daq.stream.requests import BadRequestError, accept, check_sizes, read_request, refuse

Handler = Callable[[AnyCommand, bytes], object]
"""Carries out a command with its binary part and returns what msgspec can encode, or refuses with
`RefusedError`. Any other exception leaves `CommandServer.poll`."""

MESSAGE_MAX = 1 << 20
"""Bytes of a part; whoever sends more is disconnected by ZeroMQ before we see it."""
_QUEUE = 64
_PARTS_MAX = 4
"""Return address, a REQ socket's delimiter, JSON, binary part."""
_DISCARDED_PER_POLL = 32
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class CommandServer:
    """A ROUTER socket that answers requests; see `daq.stream.messages`.

    ZeroMQ takes clients in turn, so a client that floods the socket gets every second poll at
    best, and its own queue is bounded. A client that does not read its answers loses them.

    Args:
        context: Of the loop's process.
        endpoints: Where clients come to. Hold a `RuntimeLock` before binding local ones.
        handler: Carries out commands.
        curve: The robot's keys; needed for `tcp://`, and then an `Access` too.

    Raises:
        ConfigError: An endpoint that is open to everyone.
        BindError: An endpoint that the system refuses.

    Attributes:
        answered: Requests carried out.
        refused: Requests refused, for whatever reason.
    """

    def __init__(
        self,
        context: zmq.Context[Any],
        endpoints: Sequence[str],
        handler: Handler,
        *,
        curve: Keys | None = None,
    ) -> None:
        self._handler = handler
        self._is_discarding = False
        self.answered = 0
        self.refused = 0
        self._socket = context.socket(zmq.ROUTER)
        self._socket.maxmsgsize = MESSAGE_MAX
        self._socket.rcvhwm = _QUEUE
        self._socket.sndhwm = _QUEUE
        self._socket.linger = 0
        try:
            bind(self._socket, endpoints, curve)
        except BaseException:
            self._socket.close()
            raise
        self._inbox = Inbox(self._socket)

    def poll(self) -> bool:
        """Handle at most one request; never blocks.

        Returns:
            Whether there was anything to do.

        Raises:
            Exception: What the handler raised, if it is no `RefusedError`; the client gets no
                answer then.
        """
        if not self._inbox.has_message():
            return False
        if self._is_discarding:
            self._discard()
            return True
        parts = self._receive()
        address, body = parts[0].bytes, parts[1:]
        # A REQ socket puts an empty part in front and wants it back.
        is_delimited = bool(body) and not len(body[0])
        if is_delimited:
            body = body[1:]
        answer = self._answer(body)
        send = self._socket.send
        send(address, _MORE)
        if is_delimited:
            send(b"", _MORE)
        send(answer, _NOBLOCK)
        return True

    def close(self) -> None:
        """Listen no more."""
        self._inbox.close()
        self._socket.close()

    # --- one request ------------------------------------------------------------------------------

    def _receive(self) -> list[zmq.Frame]:
        """The parts of a message, not copied yet; of one with too many, the first ones."""
        parts: list[zmq.Frame] = []
        while True:
            # All parts of a message arrive together.
            part = self._socket.recv(_NOBLOCK, copy=False)
            parts.append(part)
            if not part.more:
                return parts
            if len(parts) == _PARTS_MAX:
                self._is_discarding = True
                return parts

    def _discard(self) -> None:
        """Throw away the rest of a message with too many parts, some at a time."""
        for _ in range(_DISCARDED_PER_POLL):
            if not self._socket.recv(_NOBLOCK, copy=False).more:
                self._is_discarding = False
                return

    def _answer(self, body: Sequence[zmq.Frame]) -> bytes:
        number = 0
        try:
            if self._is_discarding or not 1 <= len(body) <= 2:
                raise BadRequestError("malformed", "a request has one part of JSON, or two")
            data, payload = body[0], body[1] if len(body) == 2 else None
            check_sizes(len(data), 0 if payload is None else len(payload))
            request = read_request(data.bytes, None if payload is None else payload.bytes)
            number = request.command.id
            answer = accept(request.command, self._handler(request.command, request.payload))
        except BadRequestError as error:
            self.refused += 1
            return refuse(error.id, error)
        except RefusedError as error:
            self.refused += 1
            return refuse(number, error)
        self.answered += 1
        return answer
