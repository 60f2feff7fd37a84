"""A live stream for PlotJuggler's "ZeroMQ subscriber", protocol MessagePack.

Only for programs on this computer: it has no keys, so it listens on 127.0.0.1 alone, and it only
tells; nothing can be commanded through it. In PlotJuggler choose *Streaming: ZMQ Subscriber*,
address `tcp://localhost:9872`, no topic, MessagePack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import zmq

from daq.stream.errors import BindError

PORT = 9872
"""What PlotJuggler offers by itself."""
TOPIC = b"armature"
_QUEUE = 200
_LAST = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class PlotJugglerStream:
    """Publishes `[topic, MessagePack map, time in decimal ASCII seconds]`.

    Args:
        context: Of the loop's process.
        port: On 127.0.0.1.

    Raises:
        BindError: The port is taken.
    """

    def __init__(self, context: zmq.Context[Any], port: int = PORT) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._socket = context.socket(zmq.PUB)
        self._socket.sndhwm = _QUEUE
        self._socket.linger = 0
        # What subscribers send is read by our thread: keep it short.
        self._socket.rcvhwm = 16
        self._socket.maxmsgsize = 256
        endpoint = f"tcp://127.0.0.1:{port}"
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._socket.close()
            raise BindError(
                f"{endpoint}: cannot be opened for PlotJuggler: {error.strerror}; "
                "is another loop running with it?"
            ) from error

    def send(self, t_s: float, values: Mapping[str, float | bool]) -> None:
        """Publish values of one moment; never blocks, whoever is slow misses some.

        Args:
            t_s: When, in the clock that shall be on PlotJuggler's time axis.
            values: By name; `/` in names makes PlotJuggler's tree. Numbers and booleans only.
        """
        send = self._socket.send
        send(TOPIC, _MORE)
        send(self._encode(values), _MORE)
        send(b"%.6f" % t_s, _LAST)

    def close(self) -> None:
        """Stop publishing."""
        self._socket.close()
