"""A live stream for PlotJuggler's "ZeroMQ subscriber", protocol MessagePack.

Only for programs on this computer: it has no keys, so it listens on 127.0.0.1 alone, and it only
publishes: nothing can be commanded through it. In PlotJuggler choose *Streaming: ZMQ Subscriber*,
address `tcp://localhost:9872`, MessagePack. Its topics are a filter by prefix: leave them empty, or
write `armature`.
"""

from __future__ import annotations

from typing import Any

import zmq

from daq.stream.errors import BindError

PORT = 9872
"""What PlotJuggler offers by itself."""
TOPIC = b"armature"
_QUEUE = 200
_LAST = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class PlotJugglerStream:
    """Publisher of `[topic, MessagePack map, time in decimal ASCII seconds]`.

    Raises:
        BindError: The port is taken.
    """

    def __init__(self, context: zmq.Context[Any], port: int = PORT) -> None:
        self._socket = context.socket(zmq.PUB)
        self._socket.sndhwm = _QUEUE
        self._socket.linger = 0
        self._socket.rcvhwm = 16
        self._socket.maxmsgsize = 256
        endpoint = f"tcp://127.0.0.1:{port}"
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._socket.close()
            raise BindError(
                f"{endpoint}: cannot be opened for PlotJuggler: {error.strerror}; "
                "is another loop running with it?",
                code="not-opened",
            ) from error

    def send(self, time_s: bytes, values: bytes) -> None:
        """Publish values of one moment; never blocks, so that slow subscribers miss some.

        The time is decimal ASCII, the values are a MessagePack map of numbers and booleans by name.
        """
        send = self._socket.send
        send(TOPIC, _MORE)
        send(values, _MORE)
        send(time_s, _LAST)
