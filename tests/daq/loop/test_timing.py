"""Deadlines on a clock that is late: nothing drifts, nothing bunches up, all is counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_rig import Rig

from daq.loop.process.timing import Histogram
from daq.loop.schedule import Chore
from daq.loop.setup import PERIOD_NS
from daq.recording.states import State
from daq.samples.columns import ColumnDecoder
from hw_mocks.clock import VirtualClock

US = 1000
COMMAND_TIMEOUT = 2
"""A board's error code, the same in every profile."""


class LateClock(VirtualClock):
    """Wakes up too late, by the next of some delays; in time once they are used up."""

    def __init__(self) -> None:
        super().__init__()
        self.delays_ns: list[int] = []
        self.woke_ns: list[int] = []

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        if self.delays_ns:
            self.advance_ns(self.delays_ns.pop(0))
        self.woke_ns.append(self.now_ns())


def run(delays_ns: list[int], *, periods: int = 400) -> tuple[Rig, LateClock, int]:
    """An idle bench under a late clock; the rig, its clock, and the periods that passed."""
    clock = LateClock()
    rig = Rig(clock=clock)
    clock.delays_ns = list(delays_ns)
    runner = rig.runner(duration_ns=periods * PERIOD_NS)
    runner.run()
    return rig, clock, runner.elapsed_ns // PERIOD_NS


def columns(rig: Rig) -> dict[str, np.ndarray]:
    decoder = ColumnDecoder(rig.session)
    payload = b"".join(payload for _, payload in rig.batches)
    return decoder.decode(decoder.layout.view(payload))


DELAYS = st.lists(
    st.one_of(
        st.integers(0, 900 * US),
        st.sampled_from([0, PERIOD_NS - 1, PERIOD_NS, PERIOD_NS + 1, 2 * PERIOD_NS, 17_400 * US]),
        st.integers(0, 30_000 * US),
    ),
    max_size=60,
)


@settings(max_examples=examples(40))
@given(DELAYS)
def test_cycles_and_skipped_periods_are_the_elapsed_ones(delays_ns: list[int]) -> None:
    rig, clock, elapsed = run(delays_ns)
    status = rig.loop.status()
    assert status.cycles + status.skipped == elapsed
    assert status.cycles == len(clock.woke_ns)
    recorded = columns(rig)
    assert recorded["skipped"].sum() == status.skipped
    assert recorded["t_ns"].tolist() == clock.woke_ns
    # At most one cycle in each period, and none before its time.
    periods = [woke_ns // PERIOD_NS for woke_ns in clock.woke_ns]
    assert all(after > before for before, after in itertools.pairwise(periods))
    assert elapsed == periods[-1]
    # A cycle that is late by less than a period shifts nothing.
    deadlines = np.cumsum(recorded["skipped"] + 1) - recorded["skipped"]
    assert (recorded["wake_ns"] == np.array(clock.woke_ns) - deadlines * PERIOD_NS).all()


@pytest.mark.parametrize(
    ("delay_ns", "skipped"),
    [(999_999, 0), (1_000_000, 1), (1_999_999, 1), (2_000_000, 2), (7_300_000, 7)],
)
def test_an_overrun_is_recorded_and_said(delay_ns: int, skipped: int) -> None:
    rig, _, _ = run([0] * 30 + [delay_ns], periods=60)
    recorded = columns(rig)
    assert recorded["skipped"].nonzero()[0].tolist() == ([30] if skipped else [])
    assert recorded["skipped"][30] == skipped
    assert recorded["wake_ns"][30] == delay_ns
    overruns = rig.events_of("overrun")
    assert [event.severity for event in overruns] == (["warning"] if skipped else [])
    assert all(event.text.startswith(f"{skipped} ") for event in overruns)
    assert rig.loop.status().skipped == skipped


def test_a_long_stall_is_clipped_in_the_sample_only() -> None:
    rig = Rig()
    rig.cycle.run(-70_000 * PERIOD_NS, 0, 70_000)
    rig.step(19)
    assert rig.loop.status().skipped == 70_000
    assert columns(rig)["skipped"][0] == 65_535


def powered(clock: LateClock) -> Rig:
    rig = Rig(clock=clock).enable().hold()
    return rig


def test_the_deadline_budget() -> None:
    """200 skipped periods within a second are allowed, and one more is a limit."""
    clock = LateClock()
    rig = powered(clock)
    # 4 periods in every 5th cycle: fewer than the boards' time-out.
    clock.delays_ns = [0, 0, 0, 0, 4_200 * US] * 60
    seen: list[tuple[State, int]] = []
    runner = rig.runner(duration_ns=2_000_000_000)
    runner._is_over = lambda: seen.append((rig.state, rig.cycle.skipped)) or False
    runner.run()
    begun = next(number for number, (state, _) in enumerate(seen) if state is State.STOPPING)
    assert [skipped for _, skipped in seen[begun - 1 : begun + 1]] == [200, 204]
    (event,) = rig.events_of("limit")
    assert (event.severity, event.source) == ("error", "loop")
    assert "204" in event.text and "limit 200" in event.text
    assert rig.state is State.FAULT
    assert (rig.machine.trip_code, rig.machine.reason) == ("skipped-periods", event.text)


def test_a_budget_that_is_kept() -> None:
    clock = LateClock()
    rig = powered(clock)
    clock.delays_ns = ([0, 0, 0, 0, 4_200 * US] * 40 + [0] * 1000) * 2
    rig.runner(duration_ns=2_700_000_000).run()
    assert rig.cycle.skipped == 2 * 160
    assert rig.event_texts("limit") == []
    assert rig.machine.trip_code == ""


def test_overruns_while_idle_are_no_fault() -> None:
    rig, _, _ = run([4_200 * US] * 200, periods=1200)
    assert rig.state is State.IDLE
    assert rig.event_texts("limit") == []


def test_a_stall_beyond_the_boards_timeout_is_their_fault() -> None:
    clock = LateClock()
    rig = powered(clock)
    clock.delays_ns = [0] * 10 + [40_000 * US]
    rig.runner(ends_on_fault=True).run()
    assert rig.state is State.FAULT
    assert rig.machine.trip_code == f"error-{COMMAND_TIMEOUT}"


@given(st.lists(st.integers(0, 10_000 * US), min_size=1, max_size=500))
def test_quantiles(durations_ns: list[int]) -> None:
    histogram = Histogram()
    for duration_ns in durations_ns:
        histogram.add(duration_ns)
    quantiles = histogram.quantiles()
    assert quantiles.max == max(durations_ns) * 1e-3
    ordered = np.sort(durations_ns) * 1e-3
    for share, value in ((0.5, quantiles.p50), (0.99, quantiles.p99), (0.999, quantiles.p999)):
        exact = ordered[int(np.ceil(share * len(ordered))) - 1]
        if exact >= 4096 * 1.024:
            assert value == quantiles.max, "beyond the last bucket only the longest is known"
        else:
            assert exact - 1e-9 <= value <= exact + 1.024 + 1e-9


def test_quantiles_of_nothing() -> None:
    quantiles = Histogram().quantiles()
    assert (quantiles.p50, quantiles.p99, quantiles.p999, quantiles.max) == (0.0, 0.0, 0.0, 0.0)


def test_wake_quantiles_in_the_status() -> None:
    rig, _, _ = run([100 * US] * 98 + [500 * US, 800 * US], periods=98)
    wake = rig.loop.status().wake_us
    assert wake.p50 == pytest.approx(100, abs=1.1)
    assert wake.max == 800.0
    assert wake.p99 == pytest.approx(500, abs=1.1)


def test_the_stop_after_an_exception_keeps_the_deadlines_too() -> None:
    clock = LateClock()
    rig = powered(clock)

    def fail() -> None:
        clock.delays_ns = [300 * US] * 20
        raise ArithmeticError("by a test")

    rig.cycle.schedule[Chore.AGENDA] = fail
    before = rig.now
    with pytest.raises(ArithmeticError):
        rig.runner().run()
    woke_ns = clock.woke_ns[before:]
    assert len({each // PERIOD_NS for each in woke_ns}) == len(woke_ns)
    kp = rig.wire(0, "kp_a_per_rad")
    assert len(kp) - 1 - np.flatnonzero(kp)[-1] == 300 + 2
