"""Notes what is to be saved of each fault, and has it saved when no recorder runs.

The note stands in the headers of the batches: from 10 s before the trip until the robot has
stopped. A recorder that runs reads it there. Where none does, another process is asked to start one
(`ask`): the loop starts no process itself. Faults that follow within a minute are not saved, which
an event says.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from daq.loop.events import Events
from daq.loop.process.watches import SILENT_AFTER_S, RecorderWatch
from daq.loop.safety.machine import Machine
from daq.recording.states import State
from daq.samples.batches import FAULT_LEAD_S, FAULTS_APART_S, FaultNote

AFTER_S = 0.5
"""How much is saved of what follows the stop."""
STOP_MAX_S = 20.0
"""A stop that lasts longer is not saved to its end: the spool would lose its beginning."""
_LEFT_TO_RECORDER_S = SILENT_AFTER_S + 1.0
"""By then we know whether a recorder that was heard at the fault had just died."""


class FaultWatch:
    """Watches the state machine, once per batch.

    Args:
        machine: The robot's.
        events: Where it says what becomes of a fault.
        recorder: Tells whether there is one.
        ask: Asks another process to save the fault; must neither block nor raise. False if that
            did not work, None where nobody can be asked.
        now_ns: Monotonic clock.
        utc_ns: Unix time.
        period_s: Time between two samples.
    """

    def __init__(
        self,
        machine: Machine,
        events: Events,
        recorder: RecorderWatch,
        *,
        ask: Callable[[], bool] | None,
        now_ns: Callable[[], int],
        utc_ns: Callable[[], int],
        period_s: float,
    ) -> None:
        self._machine = machine
        self._events = events
        self._recorder = recorder
        self._ask = ask
        self._now_ns = now_ns
        self._utc_ns = utc_ns
        self._period_s = period_s
        self._note: FaultNote | None = None
        self._was_tripped = False
        self._tripped_ns = 0
        self._until_seq = 0
        self._has_stopped = False
        self._complete_ns: int | None = None
        self._is_left_to_others = True

    def note(self, first_seq: int, end_seq: int) -> FaultNote | None:
        """Return what a batch's header says, whose samples begin and end so."""
        is_tripped = self._machine.is_tripped
        if is_tripped and not self._was_tripped:
            self._begin(first_seq)
        self._was_tripped = is_tripped
        note = self._note
        if note is not None and note.end_seq is None:
            if not self._has_stopped and self._machine.state is not State.STOPPING:
                self._has_stopped = True
                self._until_seq = min(self._until_seq, end_seq + self._samples(AFTER_S))
            if end_seq >= self._until_seq:
                self._note = replace(note, end_seq=end_seq)
                self._complete_ns = self._now_ns()
        return self._note

    def check(self) -> None:
        """Have a complete fault saved if no recorder is there to do it; called now and then."""
        if self._is_left_to_others or self._complete_ns is None:
            return
        if not self._recorder.is_heard:
            self._have_saved()
        elif self._now_ns() - self._complete_ns > _LEFT_TO_RECORDER_S * 1e9:
            self._is_left_to_others = True

    def finish(self) -> None:
        """Have saved what there is of a fault, at the end of the loop."""
        if not self._is_left_to_others and not self._recorder.is_heard:
            self._have_saved()

    def _begin(self, first_seq: int) -> None:
        """Begin with a fault that happened in the batch whose first sample is given."""
        now_ns, before = self._now_ns(), self._note
        age_s = (now_ns - self._tripped_ns) * 1e-9
        if before is not None and age_s < FAULTS_APART_S:
            self._say(
                f"this fault is not saved: the last one, {age_s:.0f} s ago, was; at most one every "
                f"{FAULTS_APART_S:.0f} s is"
            )
            return
        self._tripped_ns = now_ns
        self._until_seq = first_seq + self._samples(STOP_MAX_S)
        self._has_stopped, self._complete_ns, self._is_left_to_others = False, None, False
        self._note = FaultNote(
            number=1 if before is None else before.number + 1,
            code=self._machine.trip_code,
            utc_ns=self._utc_ns(),
            first_seq=max(0, first_seq - self._samples(FAULT_LEAD_S)),
        )
        if self._recorder.is_heard:
            who = "by the recorder, in `faults` beside its recordings"
        elif self._ask is not None:
            who = "by a process of its own, since no recorder runs"
        else:
            return
        self._say(f"the last {FAULT_LEAD_S:g} s before the fault are saved {who}")

    def _have_saved(self) -> None:
        self._is_left_to_others = True
        if self._ask is not None and not self._ask():
            self._say("the fault is not saved: no process can be started for it", "error")

    def _samples(self, duration_s: float) -> int:
        return round(duration_s / self._period_s)

    def _say(self, text: str, severity: str = "info") -> None:
        self._events.add("save", text, severity=severity)
