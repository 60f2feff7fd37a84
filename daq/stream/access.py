"""Who may connect over TCP: only clients whose public keys are listed.

ZeroMQ asks through a socket of its own (ZAP, RFC 27). It is polled by the loop: a thread for it
would cost the loop milliseconds. Local sockets do not ask; their directory guards them.
"""

from __future__ import annotations

from typing import Any

import zmq
from zmq.utils import z85

from daq.stream.endpoints import ZAP_DOMAIN
from daq.stream.inbox import Inbox
from daq.stream.keys import Keys

_ENDPOINT = "inproc://zeromq.zap.01"
_NOBLOCK = int(zmq.NOBLOCK)
_REQUEST_PARTS = 9
"""Return address, delimiter, version, request id, domain, address, identity, mechanism, key."""


class Access:
    """Decides about connections in a context. Make it before the sockets that need it.

    Args:
        context: The context of those sockets.
        keys: The robot's keys; `keys.allowed` are the clients.

    Attributes:
        accepted: How many connections were let in.
        refused: How many were not.
    """

    def __init__(self, context: zmq.Context[Any], keys: Keys) -> None:
        self._names = {z85.decode(key): name.encode() for name, key in keys.allowed.items()}
        self._socket = context.socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.bind(_ENDPOINT)
        self._inbox = Inbox(self._socket)
        self.accepted = 0
        self.refused = 0

    def poll(self) -> bool:
        """Decide about at most one connection that is waiting; never blocks.

        Returns:
            Whether there was one.
        """
        if not self._inbox.has_message():
            return False
        parts = self._socket.recv_multipart(_NOBLOCK)
        name = None
        if len(parts) == _REQUEST_PARTS:
            _, _, version, _, domain, _, _, mechanism, key = parts
            if (version, domain, mechanism) == (b"1.0", ZAP_DOMAIN, b"CURVE"):
                name = self._names.get(key)
        if name is None:
            self.refused += 1
            verdict = [b"400", b"this key is not allowed", b"", b""]
        else:
            self.accepted += 1
            verdict = [b"200", b"", name, b""]
        self._socket.send_multipart([*parts[:2], b"1.0", *parts[3:4], *verdict], _NOBLOCK)
        return True

    def close(self) -> None:
        """Nobody is let in any more."""
        self._inbox.close()
        self._socket.close()
