"""Time for a mock robot: virtual, so that a test runs as fast as the machine allows."""

from __future__ import annotations


class VirtualClock:
    """A clock that moves only when it is told to.

    `now_ns` and `sleep_until_ns` are what a loop needs of a clock; sleeping costs nothing.
    """

    def __init__(self) -> None:
        self._now_ns = 0

    def now_ns(self) -> int:
        """Return nanoseconds since the start."""
        return self._now_ns

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Go to a deadline at once; one that has passed changes nothing."""
        self._now_ns = max(self._now_ns, deadline_ns)

    def advance_ns(self, elapsed_ns: int) -> None:
        """Let some time pass."""
        self._now_ns += elapsed_ns
