"""What the loop notes of a fault, and who is asked to save it."""

from __future__ import annotations

from typing import Any

import pytest
from loop_rig import Rig

from daq.loop.process.fault_watch import STOP_MAX_S, FaultWatch
from daq.recording.states import State
from daq.samples.batches import FaultNote
from daq.stream import messages as m

PERIOD_S = 1e-3
BATCH = 20


class WatchedRig(Rig):
    """A loop whose faults are noted; its clocks can be put forward."""

    def __init__(self, *, can_start: bool | None = True, **options: Any) -> None:
        super().__init__(**options)
        self.later_ns = 0
        self.asked = 0
        self.can_start = can_start
        self.watch = FaultWatch(
            self.machine,
            self.cycle.events,
            self.loop.recorder,
            ask=None if can_start is None else self._ask,
            now_ns=lambda: self.clock.now_ns() + self.later_ns,
            utc_ns=lambda: self.clock.now_ns() + self.later_ns,
            period_s=PERIOD_S,
        )
        self.cycle.output.note_fault = self.watch.note

    def _ask(self) -> bool:
        self.asked += 1
        return bool(self.can_start)

    def live(self, batches: int) -> None:
        for _ in range(batches):
            self.step(BATCH)
            self.watch.check()

    def note(self) -> FaultNote | None:
        """What the last batch says."""
        return self.batches[-1][0].fault

    def trip(self, code: str = "a-test") -> int:
        """The number of the sample at which something was wrong."""
        self.machine.trip("a test's", code=code)
        return self.now

    def reset(self) -> None:
        self.live(2)
        self.send(m.Reset())
        self.live(2)

    def saved(self) -> list[tuple[str, str]]:
        self.live(2)
        return [(event.severity, event.text) for event in self.events_of("save")]


def test_without_a_fault_nothing_is_noted() -> None:
    rig = WatchedRig()
    rig.live(5)
    assert {header.fault for header, _ in rig.batches} == {None}
    rig.watch.finish()
    assert (rig.asked, rig.saved()) == (0, [])


def test_it_is_noted_from_ten_seconds_before_until_after_the_stop() -> None:
    rig = WatchedRig()
    rig.enable().hold(cycles=10_500)
    tripped = rig.trip("over-speed")
    rig.live(1)
    note = rig.note()
    assert (note.number, note.code, note.end_seq) == (1, "over-speed", None)
    assert tripped - 10_000 - BATCH <= note.first_seq <= tripped - 10_000
    assert note.first_seq % BATCH == 0
    rig.until(lambda: rig.state is State.FAULT)
    stopped = rig.now
    assert rig.asked == 0  # not before it is all there
    rig.live(40)
    note = rig.note()
    assert stopped + 500 <= note.end_seq <= stopped + 500 + 2 * BATCH
    assert rig.asked == 1
    ((severity, text),) = rig.saved()
    assert severity == "info" and "no recorder" in text
    rig.live(500)
    assert rig.asked == 1 and rig.note() == note  # in every header


def test_the_beginning_of_a_session_is_not_before_its_first_sample() -> None:
    rig = WatchedRig()
    rig.trip()
    rig.live(1)
    assert rig.note().first_seq == 0


def test_a_stop_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = WatchedRig()
    rig.enable()
    monkeypatch.setattr(rig.machine._stop, "step", lambda: None)
    tripped = rig.trip()
    rig.live(round(STOP_MAX_S / PERIOD_S) // BATCH + 2)
    assert rig.state is State.STOPPING
    limit = tripped + STOP_MAX_S / PERIOD_S
    assert limit - BATCH <= rig.note().end_seq <= limit + BATCH
    assert rig.asked == 1


def test_a_fault_that_ends_the_loop_at_once_is_in_its_last_header() -> None:
    rig = WatchedRig()
    rig.step(33)
    rig.trip()
    rig.runner(ends_on_fault=True).run()
    rig.watch.finish()
    assert (rig.note().number, rig.note().end_seq, rig.asked) == (1, None, 1)


def test_within_a_minute_only_the_first_is_saved() -> None:
    rig = WatchedRig()
    rig.trip("first")
    rig.live(40)
    rig.reset()
    rig.later_ns = 50 * 10**9
    rig.trip("second")
    rig.live(40)
    assert (rig.note().number, rig.note().code, rig.asked) == (1, "first", 1)
    _, (severity, text) = rig.saved()
    assert severity == "info" and "not saved" in text
    rig.reset()
    rig.later_ns = 61 * 10**9
    rig.trip("third")
    rig.live(40)
    assert (rig.note().number, rig.note().code, rig.asked) == (2, "third", 2)


def test_what_follows_a_reset_does_not_wait_for_its_tail() -> None:
    rig = WatchedRig()
    rig.trip()
    rig.reset()
    assert rig.note().end_seq is None and rig.state is State.IDLE
    rig.live(40)
    assert rig.note().end_seq is not None


def test_a_recorder_that_reports_does_it() -> None:
    rig = WatchedRig()
    for _ in range(300):
        rig.send(m.Report(report=m.RecorderReport(state="idle")))
        rig.live(1)
        if rig.now == 200:
            rig.trip()
    rig.watch.finish()
    assert rig.note().end_seq is not None and rig.asked == 0
    ((_, text),) = rig.saved()
    assert "by the recorder" in text


def test_a_recorder_that_had_just_died_does_not() -> None:
    rig = WatchedRig()
    rig.send(m.Report(report=m.RecorderReport(state="idle")))
    rig.trip()
    rig.live(40)
    assert rig.asked == 0
    rig.live(150)
    assert rig.asked == 1


def test_that_nobody_can_be_asked_is_said() -> None:
    rig = WatchedRig(can_start=False)
    rig.trip()
    rig.live(40)
    _, (severity, _) = rig.saved()
    assert (severity, rig.asked) == ("error", 1)


def test_without_anybody_to_ask_nothing_is_promised() -> None:
    rig = WatchedRig(can_start=None)
    rig.trip()
    rig.live(40)
    assert rig.saved() == []


def test_where_the_recorder_has_saved_it_is_an_event() -> None:
    rig = WatchedRig()
    for file in ("", "faults/a.h5", "faults/a.h5"):
        rig.send(m.Report(report=m.RecorderReport(state="idle", fault_file=file)))
    rig.live(2)
    assert [text for text in rig.event_texts("recorder") if "faults/a.h5" in text] == [
        "the fault is saved in faults/a.h5"
    ]
