"""Watches what boards do beside their work: clocks that will overflow, commands that got lost.

Both are rare, and looked at now and then. A board's uptime cannot be read, as its time stamp wraps:
it is bounded from below by how long the board has been seen on. How long it was on before, nobody
knows, and that is said once, before current flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daq.loop.events import Events
from daq.loop.io.loop_board import LoopBoard

WARNING_S = 120.0
"""So long before a board's clock overflows, the robot's users are told."""


@dataclass(slots=True)
class _Seen:
    """What is known of one board.

    Attributes:
        since_ns: It has been on at least since then; None before its first reply.
        restarts: How often it had rebooted until then.
        cures: How often it had been out of step.
        is_announced: Whether users have been told of its clock.
        is_age_known: Whether it was seen to boot.
        is_doubt_said: Whether users have been told that its age is not known.
    """

    since_ns: int | None = None
    restarts: int = 0
    cures: int = 0
    is_announced: bool = False
    is_age_known: bool = False
    is_doubt_said: bool = False


class BoardWatch:
    """Watches the boards of a loop; `check` is called now and then."""

    def __init__(
        self, units: Sequence[LoopBoard], events: Events, *, now_ns: Callable[[], int]
    ) -> None:
        self._seen = [(unit, _Seen()) for unit in units]
        self._events = events
        self._now_ns = now_ns

    def check(self) -> None:
        """Look at every board."""
        for unit, seen in self._seen:
            if unit.board.cured != seen.cures:
                seen.cures = unit.board.cured
                text = (
                    f"{unit.title} was out of step: it answered, but no command arrived; likely a "
                    "transfer was cut short. It is in step again"
                )
                self._events.add("out-of-step", text, severity="warning", source=unit.port.name)
            if unit.board.profile.behaviour.clock_overflow_s is not None:
                self._check_uptime(unit, seen)

    def announce(self, what: str, duration_s: float = WARNING_S) -> None:
        """Warn if a board's clock overflows, or has, before what begins now is over."""
        for unit, seen in self._seen:
            self._note_uptime(unit, seen)
            left_s = self._left_s(unit, seen)
            if left_s is None:
                continue
            if left_s < duration_s:
                self._warn(unit, left_s, f"{what}: ")
            elif not (seen.is_age_known or seen.is_doubt_said):
                seen.is_doubt_said = True
                self._doubt(unit, f"{what}: ")

    def _note_uptime(self, unit: LoopBoard, seen: _Seen) -> None:
        """Note since when a board is on, at its first reply and whenever it has booted."""
        restarts = unit.board.counters.restarted
        if unit.replies is not None and (seen.since_ns is None or restarts != seen.restarts):
            seen.is_age_known = seen.since_ns is not None
            seen.since_ns = self._now_ns() - unit.uptime_min_ns
            seen.restarts = restarts
            seen.is_announced = False

    def _check_uptime(self, unit: LoopBoard, seen: _Seen) -> None:
        self._note_uptime(unit, seen)
        left_s = self._left_s(unit, seen)
        if left_s is not None and left_s < WARNING_S and not seen.is_announced:
            seen.is_announced = True
            self._warn(unit, left_s)

    def _left_s(self, unit: LoopBoard, seen: _Seen) -> float | None:
        """Return how long a board's clock goes on at most; None where it does not end."""
        overflow_s = unit.board.profile.behaviour.clock_overflow_s
        if overflow_s is None or seen.since_ns is None:
            return None
        return overflow_s - (self._now_ns() - seen.since_ns) * 1e-9

    def _doubt(self, unit: LoopBoard, what: str) -> None:
        overflow_min = (unit.board.profile.behaviour.clock_overflow_s or 0.0) / 60.0
        text = (
            f"{what}how long {unit.title} has been on, its replies do not tell; {overflow_min:.1f} "
            "min after power-up its clock overflows, which is error 2 while current flows. If it "
            "has been on for minutes, power it off and on first"
        )
        self._events.add("uptime", text, severity="warning", source=unit.port.name)

    def _warn(self, unit: LoopBoard, left_s: float, what: str = "") -> None:
        overflow_min = (unit.board.profile.behaviour.clock_overflow_s or 0.0) / 60.0
        when = f"in {left_s:.0f} s or earlier" if left_s > 0.0 else "any time, or has"
        text = (
            f"{what}the clock of {unit.title} overflows {when}, {overflow_min:.1f} min after "
            "power-up; while current flows that is error 2. Bring the robot to rest, disable it, "
            "and power the board off and on"
        )
        self._events.add("uptime", text, severity="warning", source=unit.port.name)
