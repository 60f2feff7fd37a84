"""Whether a ZeroMQ socket has a message, asked a thousand times a second."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any

import zmq

_POLLIN = int(zmq.POLLIN)
_EVENTS = int(zmq.EVENTS)


class Inbox:
    """Looks at a socket's descriptor, and asks ZeroMQ itself only when that is worth while.

    ZeroMQ's own answer costs some 9 µs within a cycle (cold caches), the descriptor's 3 µs. The
    descriptor alone is not enough: it tells of the first message of several only. So while there
    was a message, and after every call on the socket that came of it, ZeroMQ is asked again. The
    socket must not be used otherwise.

    Args:
        socket: A socket that receives.
    """

    def __init__(self, socket: zmq.Socket[Any]) -> None:
        self._ask: Callable[[int], Any] = socket.getsockopt
        self._epoll = select.epoll()
        self._epoll.register(int(socket.getsockopt(zmq.FD)), select.EPOLLIN)
        self._look = self._epoll.poll
        self._is_stirred = True

    def has_message(self) -> bool:
        """Whether a message can be received now; never blocks."""
        if not self._is_stirred and not self._look(0, 1):
            return False
        self._is_stirred = bool(self._ask(_EVENTS) & _POLLIN)
        return self._is_stirred

    def close(self) -> None:
        """Look no more; before the socket is closed."""
        self._epoll.close()
