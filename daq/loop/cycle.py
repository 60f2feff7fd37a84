"""One cycle of the loop: exchange, check, control, note down.

The command of cycle k was prepared in cycle k−1 and goes out first thing; what comes back is
checked and decides the next command. Whatever can wait (commands, batches, reports) is spread over
the 20 cycles of a batch, so that no cycle has two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daq.loop.control import Control
from daq.loop.events import Events
from daq.loop.machine import Machine
from daq.loop.monitor import DeadlineBudget, UnitGuard
from daq.loop.output import Output
from daq.loop.timing import Histogram
from daq.loop.unit import Unit
from daq.samples import SKIPPED_MAX, TIMING_MAX_NS, SampleLayout
from daq.states import State

Chore = Callable[[], object]


class Cycle:
    """What happens every millisecond.

    Args:
        units: The boards.
        guards: One per board.
        machine: The state machine.
        control: What is commanded.
        output: Where samples go.
        events: What happened.
        budget: How many periods may be skipped.
        now_ns: Monotonic clock.
        chores: What can wait: which of a batch's 20 cycles, and what to do there.

    Attributes:
        seq: Number of the next sample.
        skipped: Periods skipped so far.
        wake: How late cycles began.
        work: How long they took without the transfers.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        guards: Sequence[UnitGuard],
        *,
        machine: Machine,
        control: Control,
        output: Output,
        events: Events,
        budget: DeadlineBudget,
        now_ns: Callable[[], int],
    ) -> None:
        self.units = units
        self.machine = machine
        self.control = control
        self.output = output
        self.events = events
        self.chores: dict[int, Chore] = {}
        self.wake, self.work = Histogram(), Histogram()
        self.seq = 0
        self.skipped = 0
        self._guarded = list(zip(units, guards, strict=True))
        self._axes = [axis for unit in units for axis in unit.axes]
        self._tracks = control.tracks
        self._budget = budget
        self._now_ns = now_ns
        self.layout = SampleLayout(len(control.tracks), [unit.frame_size for unit in units])
        self._joints_part = b""
        self._work_ns = 0
        self._phase = 0
        self._transfer_ns = 0
        self._is_full = False

    def run(self, deadline_ns: int, woke_ns: int, skipped: int) -> None:
        """Do the work of one period.

        Args:
            deadline_ns: When it should have begun.
            woke_ns: When it did.
            skipped: Periods that were left out before it.
        """
        machine, control = self.machine, self.control
        events = self.events
        events.seq = seq = self.seq
        events.t_ns = woke_ns
        transfer_ns = 0
        for unit, guard in self._guarded:
            guard.check(unit.exchange())
            transfer_ns += unit.board.transfer_ns
        state = machine.state
        if state is State.ACTIVE or state is State.READY:
            control.step()
        else:
            if control.is_active:
                control.switch_off()
            machine.step()
        wake_ns = woke_ns - deadline_ns
        self._note(seq, woke_ns, wake_ns, transfer_ns, skipped)
        self._do_chores()
        work_ns = self._now_ns() - woke_ns - transfer_ns
        self._work_ns = work_ns if work_ns < TIMING_MAX_NS else TIMING_MAX_NS
        self.wake.add(wake_ns)
        self.work.add(work_ns)
        self.seq = seq + 1

    # --- the sample -------------------------------------------------------------------------------

    def _note(self, seq: int, woke_ns: int, wake_ns: int, transfer_ns: int, skipped: int) -> None:
        if skipped:
            self.skipped += skipped
            self._budget.note(
                skipped, wake_ns=wake_ns, transfer_ns=self._transfer_ns, work_ns=self._work_ns
            )
        self._transfer_ns = transfer_ns
        for axis in self._axes:
            if axis.is_changed:
                axis.is_changed = False
                self._joints_part = b""
        if self.control.is_changed or not self._joints_part:
            self._pack_joints()
        parts = [
            self.layout.pack_timing(
                seq,
                woke_ns,
                wake_ns if wake_ns < TIMING_MAX_NS else TIMING_MAX_NS,
                transfer_ns if transfer_ns < TIMING_MAX_NS else TIMING_MAX_NS,
                self._work_ns,
                skipped if skipped < SKIPPED_MAX else SKIPPED_MAX,
                self.machine.state,
            ),
            self._joints_part,
        ]
        for unit in self.units:
            command, reply = unit.last_frames
            parts += (unit.outcome_byte, command, reply)
        self._is_full = self.output.add(b"".join(parts))

    def _pack_joints(self) -> None:
        self.control.is_changed = False
        axes = [track.axis for track in self._tracks]
        self._joints_part = self.layout.pack_joints(
            [axis.motor_offset_rad for axis in axes],
            [track.mode for track in self._tracks],
            [axis.is_homed for axis in axes],
        )

    # --- what can wait ----------------------------------------------------------------------------

    def _do_chores(self) -> None:
        if self._is_full:
            self._budget.check()
            self.output.close_batch(self._now_ns())
            self._phase = 0
            return
        self._phase += 1
        chore = self.chores.get(self._phase)
        if chore is not None:
            chore()
