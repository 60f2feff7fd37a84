"""Keeps the deadlines, ends in an orderly way, and stops the motors whatever happens.

Deadlines are absolute: a late cycle does not shift the next ones, and periods that were slept
through are skipped whole and counted. cycles + skipped = elapsed periods, always.

Only while boards calibrate do the deadlines sweep, to and fro over one period, around the same
grid: some firmwares begin only when a command comes at the right moment of their own millisecond,
which a host in step with them would miss for ever.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from daq.loop.cycle import Cycle
from daq.loop.io.loop_board import LoopBoard
from daq.recording.states import State
from daq.samples.batches import SAMPLES_PER_BATCH

FAREWELL_MAX = 20
"""Commands with ES off that go out at most, before the loop ends, until one is confirmed."""
_SWEEP_STEPS = 50
"""Cycles in which the deadlines sweep a period: 20 µs at a time, less than a board's tick."""


class Ending(Enum):
    """Why a run ended."""

    TIME_IS_OVER = "the time is over"
    DONE = "everything is done"
    FAULT = "a fault"
    INTERRUPTED = "Ctrl-C"
    TERMINATED = "another signal"
    FAILED = "internal error"


class Clock(Protocol):
    """Where the loop gets its time."""

    def now_ns(self) -> int:
        """Return the monotonic time."""
        ...

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return at the deadline, or at once when it has passed."""
        ...


class Farewell:
    """The last commands: everything off, no time-out, until every board has confirmed one.

    A board that still watched its time-out would stop for good once the commands stay away; and a
    command that was damaged on the way is ignored silently.
    """

    def __init__(self, units: Sequence[LoopBoard]) -> None:
        self._awaited = [(unit, unit.board.index + 1) for unit in units]
        self._left = FAREWELL_MAX

    def needs_more(self) -> bool:
        """Return whether another command must go out."""
        self._left -= 1
        return self._left >= 0 and bool(self.unconfirmed)

    @property
    def unconfirmed(self) -> list[LoopBoard]:
        """The boards that have confirmed none of these commands yet."""
        return [unit for unit, index in self._awaited if not unit.board.has_taken(index)]


class Runner:
    """Runs cycles until it is asked to end, or must.

    Args:
        duration_ns: End after this long by itself; None for never.
        ends_on_fault: Whether a fault ends the loop; it goes on otherwise, and can be reset.
        is_over: Asked every cycle whether there is nothing left to do.
    """

    def __init__(
        self,
        cycle: Cycle,
        clock: Clock,
        *,
        period_ns: int,
        duration_ns: int | None = None,
        ends_on_fault: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._cycle = cycle
        self._clock = clock
        self._period_ns = period_ns
        self._duration_ns = duration_ns
        self._ends_on_fault = ends_on_fault
        self._is_over = is_over
        self._ending: tuple[Ending, str] | None = None
        self._farewell: Farewell | None = None
        self._shift_ns = 0
        self._is_shift_growing = True
        self._cycles_in_fault = 0
        self.started_ns = clock.now_ns()
        self._deadline_ns = self.started_ns

    @property
    def elapsed_ns(self) -> int:
        """Whole periods since the start."""
        return self._deadline_ns - self.started_ns

    def end(self, number: int) -> None:
        """Stop safely, then end, because of a signal; its handler may call this."""
        ending = Ending.INTERRUPTED if number == signal.SIGINT else Ending.TERMINATED
        self._ending = self._ending or (ending, signal.Signals(number).name)

    def run(self) -> Ending:
        """Run to the end and return why it ended.

        Raises:
            Exception: Whatever a cycle raised, after the motors were stopped.
        """
        self.started_ns = self._deadline_ns = self._clock.now_ns()
        try:
            while (ending := self._ended()) is None:
                self._period(self._cycle.run)
            return ending
        except BaseException as error:
            self._ending = Ending.FAILED, f"internal error: {type(error).__name__}"
            self._stop_motors(error)
            raise
        finally:
            with contextlib.suppress(Exception):
                self._report_farewell()
                # A recording without this was cut off.
                reason = self._ending[1] if self._ending else ""
                self._cycle.events.add("end", f"the loop ends: {reason}")
                self._cycle.output.close_batch(self._clock.now_ns())
                self._cycle.output.hand_on()

    def _period(self, work: Callable[[int, int, int], None]) -> None:
        clock, period_ns = self._clock, self._period_ns
        self._deadline_ns = deadline_ns = self._deadline_ns + period_ns
        if self._shift_ns or self._cycle.machine.state is State.CALIBRATING:
            self._sweep()
            deadline_ns += self._shift_ns
        clock.sleep_until_ns(deadline_ns)
        woke_ns = clock.now_ns()
        late_ns = woke_ns - deadline_ns
        skipped = late_ns // period_ns if late_ns >= period_ns else 0
        if skipped:
            self._deadline_ns += skipped * period_ns
        work(deadline_ns, woke_ns, skipped)

    def _sweep(self) -> None:
        """Shift the next deadline by a little, and back to the grid once nothing calibrates."""
        period_ns = self._period_ns
        step_ns = period_ns // _SWEEP_STEPS
        is_calibrating = self._cycle.machine.state is State.CALIBRATING
        if not is_calibrating or self._shift_ns + step_ns > period_ns:
            self._is_shift_growing = False
        elif self._shift_ns < step_ns:
            self._is_shift_growing = True
        self._shift_ns += step_ns if self._is_shift_growing else -min(step_ns, self._shift_ns)

    def _ended(self) -> Ending | None:
        """Return why the run has ended; None while it goes on."""
        machine = self._cycle.machine
        if self._ending is None:
            cause = self._cause_to_end()
            if cause is None:  # not assigned: a signal may have come meanwhile
                return None
            self._ending = cause
        ending, reason = self._ending
        if machine.is_powered:
            machine.stop(reason)
            return None
        if machine.state is State.IDLE:
            machine.reason = reason
        if self._farewell is None:
            self._farewell = Farewell(self._cycle.units)
        return None if self._farewell.needs_more() else ending

    def _cause_to_end(self) -> tuple[Ending, str] | None:
        machine, duration_ns = self._cycle.machine, self._duration_ns
        if duration_ns is not None and self.elapsed_ns >= duration_ns:
            return Ending.TIME_IS_OVER, Ending.TIME_IS_OVER.value
        if self._is_over():
            return Ending.DONE, Ending.DONE.value
        self._cycles_in_fault = self._cycles_in_fault + 1 if machine.state is State.FAULT else 0
        if self._ends_on_fault and self._cycles_in_fault > SAMPLES_PER_BATCH:
            return Ending.FAULT, machine.reason  # every chore has seen it
        return None

    def _stop_motors(self, error: BaseException) -> None:
        """Make the safe stop with nothing but boards and state machine: the rest may be broken."""
        machine, units = self._cycle.machine, self._cycle.units

        def exchange(_deadline_ns: int, _woke_ns: int, _skipped: int) -> None:
            for unit in units:
                with contextlib.suppress(Exception):  # the others must be stopped all the same
                    unit.exchange(self._clock.now_ns)

        try:
            machine.trip(f"internal error: {type(error).__name__}: {error}", code="internal-error")
            while machine.is_powered:
                self._period(exchange)
                machine.step()
        finally:
            # If even that is broken, the boards are switched off at once.
            for unit in units:
                unit.disable()
            self._farewell = Farewell(units)
            while self._farewell.needs_more():
                self._period(exchange)

    def _report_farewell(self) -> None:
        for unit in self._farewell.unconfirmed if self._farewell else ():
            text = (
                f"{unit.title} has not confirmed that it is switched off, by none of "
                f"{FAREWELL_MAX} commands: its own time-out stops its motors. See `armature "
                "doctor`; if it reports error 2, power it off and on"
            )
            self._cycle.events.add("farewell", text, severity="error", source=unit.port.name)
