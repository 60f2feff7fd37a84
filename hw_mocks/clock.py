"""Time for a mock robot: virtual, so that a test runs as fast as the machine allows."""

from __future__ import annotations

from collections.abc import Callable


class VirtualClock:
    """A clock that moves only when it is told to.

    `now_ns` and `sleep_until_ns` are what a loop needs of a clock; sleeping costs nothing.

    Args:
        oversleep_ns: Asked for each deadline how much later than it a sleeper wakes up; None for
            never late.
    """

    def __init__(self, oversleep_ns: Callable[[int], int] | None = None) -> None:
        self._now_ns = 0
        self._oversleep_ns = oversleep_ns

    def now_ns(self) -> int:
        """Return nanoseconds since the start."""
        return self._now_ns

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Go to a deadline at once; one that has passed changes nothing."""
        if self._oversleep_ns is None:
            self._now_ns = max(self._now_ns, deadline_ns)
        else:
            # Who oversleeps meets deadlines that have passed, but never the same moment twice.
            self._now_ns = max(self._now_ns + 1, deadline_ns)
            self._now_ns += self._oversleep_ns(self._now_ns)

    def advance_ns(self, elapsed_ns: int) -> None:
        """Let some time pass."""
        self._now_ns += elapsed_ns
