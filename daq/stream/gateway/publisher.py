"""The publisher of batches of samples, which never blocks, whatever the subscribers do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq

from daq.samples.batches import BATCH_TOPIC, SESSION_TOPIC
from daq.stream.endpoints import bind
from daq.stream.keys import Keys

QUEUE_BATCHES = 1000
"""What is kept for a subscriber that does not read: 20 s."""
_LINGER_MS = 200
_SUBSCRIPTION_MAX_BYTES = 1024
"""The CURVE handshake needs some 400."""
_SUBSCRIPTIONS_WAITING = 16
_LAST = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class Publisher:
    """The PUB socket. The sockets of a killed loop are replaced.

    Hold a `RuntimeLock`, or those of a living one are too. `tcp://` needs the robot's keys and an
    `Access`.

    Raises:
        ConfigError: An endpoint that is open to everyone.
        BindError: An endpoint that the system refuses.

    Attributes:
        dropped: How often a subscriber's queue was found full. That subscriber loses this batch
            and all others until it has read half of its queue; ZeroMQ does not say how many. Each
            subscriber sees its own losses by the sequence numbers; the others lose nothing.
    """

    def __init__(
        self, context: zmq.Context[Any], endpoints: Sequence[str], *, curve: Keys | None = None
    ) -> None:
        self._socket = context.socket(zmq.PUB)
        self._socket.sndhwm = QUEUE_BATCHES
        self._socket.linger = _LINGER_MS
        # What subscribers send is read by the thread that publishes: keep it short.
        self._socket.rcvhwm = _SUBSCRIPTIONS_WAITING
        self._socket.maxmsgsize = _SUBSCRIPTION_MAX_BYTES
        # Without this option a full queue goes unnoticed (see `_send`).
        self._socket.setsockopt(zmq.XPUB_NODROP, 1)
        self.dropped = 0
        try:
            bind(self._socket, endpoints, curve)
        except BaseException:
            self._socket.close()
            raise

    def publish(self, header: bytes, payload: bytes) -> None:
        """Publish a batch."""
        send = self._socket.send
        try:
            send(BATCH_TOPIC, _MORE)
        except zmq.Again:
            self._send_to_the_others(BATCH_TOPIC, header, payload)
            return
        # Once the first part is taken, the others are.
        send(header, _MORE)
        send(payload, _LAST)

    def publish_session(self, data: bytes) -> None:
        """Publish what a new subscriber must know; once a second."""
        try:
            self._socket.send(SESSION_TOPIC, _MORE)
        except zmq.Again:
            self._send_to_the_others(SESSION_TOPIC, data)
            return
        self._socket.send(data, _LAST)

    def _send_to_the_others(self, *parts: bytes) -> None:
        """Publish with losses: those whose queue is full go without."""
        self.dropped += 1
        self._socket.setsockopt(zmq.XPUB_NODROP, 0)
        try:
            self._socket.send_multipart(parts, _LAST)
        finally:
            self._socket.setsockopt(zmq.XPUB_NODROP, 1)
