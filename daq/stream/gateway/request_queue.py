"""Requests that wait for the loop: few per client, those that stop it first, and none for long."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from daq.stream.errors import RefusedError
from daq.stream.gateway.packets import EXPIRES_S, RawRequest
from daq.stream.messages import AnyCommand, Disable, Stop

PER_CLIENT_MAX = 8
WAITING_MAX = 256
_URGENT = (Stop, Disable)


class Asked(NamedTuple):
    """A valid request: where its answer goes, what is asked for, and the same as it came."""

    return_path: tuple[bytes, ...]
    command: AnyCommand
    request: RawRequest


class RequestQueue:
    """The queue of requests that wait for the loop."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._urgent: deque[tuple[Asked, float]] = deque()
        self._usual: deque[tuple[Asked, float]] = deque()
        self._waiting: Counter[tuple[bytes, bool]] = Counter()

    def add(self, asked: Asked) -> None:
        """Put a request at the end of its queue.

        Raises:
            RefusedError: Too many are waiting, of this client or of all.
        """
        queue, key = self._queue_of(asked)
        if self._waiting[key] >= PER_CLIENT_MAX or len(queue) >= WAITING_MAX:
            raise RefusedError("too-many", "too many requests are waiting: nothing was done")
        self._waiting[key] += 1
        queue.append((asked, self._now_s()))

    def take(self) -> tuple[Asked, bool] | None:
        """Return the next request and whether it has waited for too long; None for no request."""
        queue = self._urgent or self._usual
        if not queue:
            return None
        asked, since_s = queue.popleft()
        _, key = self._queue_of(asked)
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._waiting[key]
        # Never too late for a stop.
        is_late = self._now_s() - since_s > EXPIRES_S and not isinstance(asked.command, Stop)
        return asked, is_late

    def _queue_of(self, asked: Asked) -> tuple[deque[tuple[Asked, float]], tuple[bytes, bool]]:
        is_urgent = isinstance(asked.command, _URGENT)
        return self._urgent if is_urgent else self._usual, (asked.return_path[0], is_urgent)
