"""Access over TCP: only clients whose public keys are listed may connect.

ZeroMQ asks through a socket of its own (ZAP, RFC 27). Local sockets do not ask; their directory
guards them.
"""

from __future__ import annotations

from typing import Any

import zmq
from zmq.utils import z85

from daq.stream.endpoints import ZAP_DOMAIN
from daq.stream.keys import Keys

_ENDPOINT = "inproc://zeromq.zap.01"
_NOBLOCK = int(zmq.NOBLOCK)
_REQUEST_PARTS = 9
"""Return address, delimiter, version, request id, domain, address, identity, mechanism, key."""


class Access:
    """Doorkeeper of the connections in a context, made before the sockets that need it.

    It lets in the clients of the robot's `keys.allowed`.

    Attributes:
        socket: To wait for questions; not to be used otherwise.
    """

    def __init__(self, context: zmq.Context[Any], keys: Keys) -> None:
        self._names = {z85.decode(key): name.encode() for name, key in keys.allowed.items()}
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(_ENDPOINT)

    def poll(self) -> bool:
        """Decide about at most one waiting connection, if there is one; never blocks."""
        try:
            parts = self.socket.recv_multipart(_NOBLOCK)
        except zmq.Again:
            return False
        name = None
        if len(parts) == _REQUEST_PARTS:
            _, _, version, _, domain, _, _, mechanism, key = parts
            if (version, domain, mechanism) == (b"1.0", ZAP_DOMAIN, b"CURVE"):
                name = self._names.get(key)
        if name is None:
            verdict = [b"400", b"this key is not allowed", b"", b""]
        else:
            verdict = [b"200", b"", name, b""]
        self.socket.send_multipart([*parts[:2], b"1.0", *parts[3:4], *verdict], _NOBLOCK)
        return True
