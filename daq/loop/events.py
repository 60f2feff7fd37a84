"""Collects the events of the loop until the next batch carries them."""

from __future__ import annotations

from collections import deque

from daq.samples.batches import Event

PENDING_MAX = 200
REMEMBERED = 20
_TEXT_MAX, _SOURCE_MAX = 2000, 200
"""What a batch's header may carry (`daq.samples.batches`)."""


class Events:
    """Collects events of a cycle.

    Attributes:
        seq: The present sample's number.
        t_ns: When its cycle began,
        elapsed_ns: and how long after the exchange before it was over: so old the last replies
            are at least.
        exchanged_ns: When the last exchange was over.
        latest: The last ones, for the status.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.t_ns = self.elapsed_ns = self.exchanged_ns = 0
        self.latest: deque[Event] = deque(maxlen=REMEMBERED)
        self._pending: list[Event] = []

    def begin(self, seq: int, t_ns: int) -> None:
        """Begin a cycle."""
        self.seq = seq
        self.elapsed_ns, self.t_ns = t_ns - self.exchanged_ns, t_ns

    def add(self, kind: str, text: str, *, severity: str = "info", source: str = "") -> None:
        """Add an event that happens now."""
        event = Event(
            seq=self.seq,
            t_ns=self.t_ns,
            kind=kind,
            text=text[:_TEXT_MAX],
            severity=severity,
            source=source[:_SOURCE_MAX],
        )
        # A busy computer skips periods again and again: the last time stands for the others.
        if self.latest and kind == self.latest[-1].kind == "overrun":
            self.latest.pop()
        self.latest.append(event)
        if len(self._pending) < PENDING_MAX:
            self._pending.append(event)

    def take(self) -> tuple[Event, ...]:
        """Return all events since the last time."""
        taken, self._pending = tuple(self._pending), []
        return taken
