"""A mock board's watchdog: when the time without a valid command is over.

Times are those of the simulation, in ns.
"""

from __future__ import annotations

import math
import random

from firmware_protocol.behaviour import Behaviour

_NS_PER_MS = 1_000_000


class WatchdogTimer:
    """Counts from the last valid command, and from power-up where the board's clock overflows.

    Time-outs of the frames count as at least `timeout_min_ms`, except for 0.
    """

    def __init__(
        self, behaviour: Behaviour, chance: random.Random, *, timeout_min_ms: int = 0
    ) -> None:
        self._chance = chance
        self._slack_ns = behaviour.watchdog_slack_s * 1e9
        self._timeout_min_ms = timeout_min_ms
        self._overflow_ns = (
            math.inf if behaviour.clock_overflow_s is None else behaviour.clock_overflow_s * 1e9
        )
        self._overflows_ns = math.inf
        self._timeout_ns = math.inf
        self.deadline_ns = math.inf

    def power_up(self, started_ns: int) -> None:
        """Forget the last command; the board's clock began then."""
        self._timeout_ns = math.inf
        self._overflows_ns = started_ns + self._overflow_ns
        self.deadline_ns = self._overflows_ns

    def power_off(self) -> None:
        """Watch nothing."""
        self._timeout_ns = self._overflows_ns = self.deadline_ns = math.inf

    def strike(self) -> None:
        """Have struck: once is enough, until the next command."""
        self.deadline_ns = math.inf

    def hear(self, now_ns: int, timeout_ms: int) -> None:
        """Take note of a valid command; a time-out of 0 is none."""
        self._timeout_ns = math.inf
        if timeout_ms:
            timeout_ms = max(timeout_ms, self._timeout_min_ms)
            late_ns = self._slack_ns * self._chance.random()
            self._timeout_ns = now_ns + timeout_ms * _NS_PER_MS + late_ns
        self.deadline_ns = min(self._timeout_ns, self._overflows_ns)
