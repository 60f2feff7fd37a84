"""One cycle of the loop: exchange, check, control, note down.

The command of cycle k was decided in cycle k−1 and goes out first thing; what comes back is
checked and decides the next one. Guards look only at replies about which there is something to
notice. Whatever can wait (commands, batches, reports) is spread over the cycles of a batch
(`daq.loop.schedule`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from daq.loop.events import Events
from daq.loop.io.loop_board import LoopBoard
from daq.loop.output import Output
from daq.loop.process.timing import Histogram
from daq.loop.safety.machine import Machine
from daq.loop.safety.monitor import BoardGuard, DeadlineBudget
from daq.loop.schedule import Chore, Schedule
from daq.loop.tracks.control import LoopControl
from daq.recording.states import State
from daq.samples.sample import SKIPPED_MAX, TIMING_MAX_NS, SampleLayout


class Cycle:
    """What happens every millisecond.

    Attributes:
        schedule: Who does what can wait.
        seq: Number of the next sample.
        skipped: Periods skipped so far.
        wake: How late cycles began.
        work: How long they took without the transfers.
    """

    def __init__(
        self,
        units: Sequence[LoopBoard],
        guards: Sequence[BoardGuard],
        *,
        machine: Machine,
        control: LoopControl,
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
        self.schedule = Schedule()
        self.schedule[Chore.HAND_ON] = output.hand_on
        self.schedule[Chore.CLOSE_BATCH] = self._close_batch
        self.wake, self.work = Histogram(), Histogram()
        self.seq = 0
        self.skipped = 0
        self._prepares = [(unit.board.prepare, unit.command) for unit in units]
        self._transfers = [unit.transfer for unit in units]
        self._guarded = list(zip(units, guards, strict=True))
        self._tracks = control.tracks
        self._budget = budget
        self._now_ns = now_ns
        self.layout = SampleLayout(len(control.tracks), [unit.frame_size for unit in units])
        self._pack_timing = self.layout.pack_timing
        self._joints_part = b""
        self._work_ns = 0
        self._phase = 0
        self._transfer_ns = 0
        self._state = machine.state

    def run(self, deadline_ns: int, woke_ns: int, skipped: int) -> None:
        """Do the work of a period, which began at `woke_ns` after `skipped` ones were left out."""
        machine, control, now_ns = self.machine, self.control, self._now_ns
        self.events.begin(self.seq, woke_ns)
        if skipped:
            machine.note_pause(skipped, woke_ns)
            if control.is_busy and machine.state is State.ACTIVE:
                control.skip(skipped)
        for prepare, command in self._prepares:
            prepare(command)
        began_ns = now_ns()
        for transfer in self._transfers:
            transfer()
        exchanged_ns = now_ns()
        state, is_plain = machine.state, True
        for unit, guard in self._guarded:
            if not unit.read(began_ns) or guard.is_alert:
                guard.check()
                is_plain = False
        if state is State.ACTIVE or state is State.READY:
            # Unless a guard has just stopped the robot, and with it decided the next command.
            if control.is_busy and machine.state is state:
                control.step()
        elif machine.state is state:
            self._step_machine()
        wake_ns = woke_ns - deadline_ns
        if skipped:
            self._note_skipped(skipped, wake_ns)
        self._transfer_ns, self.events.exchanged_ns = exchanged_ns - began_ns, exchanged_ns
        if (
            not is_plain
            or control.is_changed
            or machine.state is not self._state
            or machine.state is State.STOPPING  # a board that is let go forgets where it is
        ):
            self._pack_joints()
        self._add_sample(woke_ns, wake_ns, skipped)
        self._phase = phase = self._phase + 1
        chore = self.schedule.at[phase]
        if chore is not None:
            chore()
        self._work_ns = work_ns = now_ns() - woke_ns - self._transfer_ns
        self.wake.add(wake_ns)
        self.work.add(work_ns)
        self.seq += 1

    def _close_batch(self) -> None:
        self._phase = 0
        self._budget.check()
        self.output.close_batch(self._now_ns())

    def _step_machine(self) -> None:
        if self.control.is_active:
            self.control.switch_off()
        self.machine.step()

    # --- the sample -------------------------------------------------------------------------------

    def _add_sample(self, woke_ns: int, wake_ns: int, skipped: int) -> None:
        timing = (self.seq, woke_ns, wake_ns, self._transfer_ns, self._work_ns, skipped)
        try:
            packed = self._pack_timing(*timing, self._state)
        except struct.error:
            packed = self._pack_timing(*_clipped(timing), self._state)
        parts = [packed, self._joints_part]
        for unit in self.units:
            parts += (unit.outcome_byte, unit.board.sent, unit.reply_frame)
        self.output.add(b"".join(parts))

    def _note_skipped(self, skipped: int, wake_ns: int) -> None:
        self.skipped += skipped
        self._budget.note(
            skipped, wake_ns=wake_ns, transfer_ns=self._transfer_ns, work_ns=self._work_ns
        )

    def _pack_joints(self) -> None:
        """Pack what rarely changes."""
        self._state = self.machine.state
        self.control.is_changed = False
        axes = [track.axis for track in self._tracks]
        self._joints_part = self.layout.pack_joints(
            [axis.motor_offset_rad for axis in axes],
            [track.mode for track in self._tracks],
            [axis.is_homed for axis in axes],
        )


def _clipped(timing: tuple[int, int, int, int, int, int]) -> tuple[int, ...]:
    """Clip durations that are longer than a sample can carry."""
    seq, t_ns, *times_ns, skipped = timing
    clipped_ns = (min(time_ns, TIMING_MAX_NS) for time_ns in times_ns)
    return seq, t_ns, *clipped_ns, min(skipped, SKIPPED_MAX)
