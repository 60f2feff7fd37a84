"""Real time for a mock robot: it keeps step with the monotonic clock while it serves programs."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable

from hw_mocks.mock_robot import STEP_NS, MockRobot

_LAG_MAX_NS = 20_000_000
_NICENESS = -15


def take_precedence() -> None:
    """Let this process go before ordinary ones, where that is allowed: boards wait for nobody.

    Programs that were started before keep their own precedence.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)


class RealTime:
    """A mock robot in real time.

    The simulation is advanced step by step, and programs that wait are served between any two
    steps. When the machine was busy elsewhere for longer than 20 ms, simulated time stands
    still for the rest, rather than rushing through it.

    `serve` answers what is pending, and waits at most the given seconds when nothing is. It may
    advance the simulation itself, up to the present.
    """

    def __init__(
        self,
        robot: MockRobot,
        serve: Callable[[float], object],
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._robot = robot
        self._serve = serve
        self._now_ns = now_ns
        self._started_ns = now_ns() - robot.now_ns

    @property
    def now_ns(self) -> int:
        """Simulated time, also between two steps."""
        return self.simulated_ns(self._now_ns())

    def simulated_ns(self, moment_ns: int) -> int:
        """Return the simulated time of a moment on the monotonic clock."""
        return min(moment_ns - self._started_ns, self._robot.now_ns + _LAG_MAX_NS)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Simulate and serve until told to end; asked at every step."""
        # A full collection takes 25 ms here, and programs would see their boards stand still.
        gc.collect()
        gc.freeze()
        while not is_over():
            # One step's time: what arrives meets a simulation at most a step behind the clock.
            until_ns = self._now_ns() + STEP_NS
            while (wait_ns := until_ns - self._now_ns()) > 0:
                self._serve(wait_ns * 1e-9)
            self._catch_up()

    def _catch_up(self) -> None:
        now_ns = self._now_ns()
        lag_ns = now_ns - self._started_ns - self._robot.now_ns
        self._started_ns += max(0, lag_ns - _LAG_MAX_NS)
        while self._robot.now_ns + STEP_NS <= now_ns - self._started_ns:
            self._robot.step()
            self._serve(0.0)
