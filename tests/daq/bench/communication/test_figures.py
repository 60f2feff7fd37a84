"""Counts and times of exchanges, against lists that keep everything."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.bench.communication.figures import BoardTally, Expectation, HostTally
from daq.boards.outcomes import Counters
from daq.recording.states import Outcome
from daq.stream.messages import Quantiles

PERIOD_NS = 1_000_000
AGE_NS = 37_000
EXPECTED = Expectation(lag_usual=1, lag_max=3, reply_age_ns=AGE_NS, period_ns=PERIOD_NS)
BUCKET_US = 1.024
LAST_BUCKET_US = 4096 * BUCKET_US


class Exchange(NamedTuple):
    transfer_ns: int
    lag: int | None
    """None where nothing usable came back."""


EXCHANGES = st.lists(
    st.builds(
        Exchange,
        transfer_ns=st.one_of(st.integers(0, 900_000), st.integers(0, 30_000_000)),
        lag=st.one_of(st.none(), st.integers(1, 6)),
    ),
    min_size=1,
    max_size=300,
)


def check_quantiles(quantiles: Quantiles, times_ns: list[int]) -> None:
    """Within the width of a bucket above numpy's; beyond the last bucket only the longest."""
    assert quantiles.max == max(times_ns) * 1e-3
    for share, value in ((50, quantiles.p50), (99, quantiles.p99), (99.9, quantiles.p999)):
        exact_us = float(np.percentile(times_ns, share, method="inverted_cdf")) * 1e-3
        if exact_us >= LAST_BUCKET_US:
            assert value == quantiles.max
        else:
            assert exact_us - 1e-6 <= value <= exact_us + BUCKET_US + 1e-6


@given(EXCHANGES)
def test_times_are_those_of_an_oracle_that_keeps_everything(exchanges: list[Exchange]) -> None:
    tally = BoardTally(EXPECTED, Counters())
    began_ns, ages_ns, latched_ns = [], [], []
    now_ns = 0
    for index, exchange in enumerate(exchanges):
        now_ns += PERIOD_NS
        began_ns.append(now_ns)
        ended_ns = now_ns + exchange.transfer_ns
        is_usable = exchange.lag is not None and index >= exchange.lag
        outcome = Outcome.OK if exchange.lag == 1 else Outcome.LATE
        tally.note(
            0xFF00 + index & 0xFFFF,
            0xFF00 + index - exchange.lag & 0xFFFF if is_usable else None,
            outcome if is_usable else Outcome.CORRUPT,
            now_ns,
            ended_ns,
        )
        if is_usable:
            latched_ns.append(began_ns[index + 1 - exchange.lag] - AGE_NS)
        if latched_ns:
            ages_ns.append(ended_ns - max(latched_ns))
        now_ns = ended_ns
    figures = tally.figures(Counters())
    transfers_ns = [exchange.transfer_ns for exchange in exchanges]
    assert figures.exchanges == len(exchanges)
    assert figures.overlong == sum(time_ns > PERIOD_NS for time_ns in transfers_ns)
    check_quantiles(figures.transfer_us, transfers_ns)
    if ages_ns:
        assert figures.age_us is not None
        check_quantiles(figures.age_us, ages_ns)
    else:
        assert figures.age_us is None


def test_the_age_of_data_by_hand() -> None:
    """Fresh; then two exchanges that bring nothing; then a reply that is one later than usual."""
    tally = BoardTally(EXPECTED, Counters())
    for index, echo in ((10, 9), (11, None), (12, None), (13, 11)):
        began_ns = index * PERIOD_NS
        outcome = {None: Outcome.CORRUPT, 11: Outcome.LATE}.get(echo, Outcome.OK)
        tally.note(index, echo, outcome, began_ns, began_ns + 50_000)
    age_us = tally.figures(Counters()).age_us
    assert age_us is not None
    # 37 + 50 µs when fresh, a period more one exchange later, two after two; the last one may have
    # been made a period before.
    assert age_us.max == 2087.0
    assert age_us.p50 == pytest.approx(1087.0, abs=BUCKET_US)


def counted(**counts: int) -> tuple[BoardTally, Counters]:
    """A tally that began when its board had counted something already."""
    before = Counters(exchanges=70, valid=50, late=4, corrupt=3, lost_commands=2, restarted=1)
    after = Counters(exchanges=70, valid=50, late=4, corrupt=3, lost_commands=2, restarted=1)
    for name, count in counts.items():
        setattr(after, name, getattr(after, name) + count)
    return BoardTally(EXPECTED, before), after


def test_what_was_counted_before_does_not_count() -> None:
    tally, after = counted(corrupt=2, lost_commands=1, late=3, stale=1, consequent=4)
    for index in range(100):
        tally.note(index, index - 1, Outcome.OK, index, index)
    figures = tally.figures(after)
    assert (figures.exchanges, figures.success, figures.late, figures.lost) == (100, 93, 3, 4)
    kinds = figures.lost_by_kind
    assert (kinds.corrupt, kinds.commands, kinds.stale, kinds.failed) == (2, 1, 1, 0)
    assert figures.restarted == 0
    assert figures.success_share == 0.93


def test_an_echo_that_lags_as_the_profile_allows_is_not_late() -> None:
    tally, after = counted(late=3)
    for index, lag in ((5, 2), (6, 3), (7, 4)):
        tally.note(index, index - lag, Outcome.LATE, index, index)
    figures = tally.figures(after)
    assert (figures.late, figures.success) == (1, 2)


def test_a_command_that_went_down_with_its_device_is_counted_once() -> None:
    tally, after = counted(late=1)
    tally.note(5, 4, Outcome.OK, 5, 5)
    for index in range(6, 12):
        tally.note(index, None, Outcome.NO_EXCHANGE, index, index)
    tally.note(12, 5, Outcome.LATE, 12, 12)
    figures = tally.figures(after)
    assert (figures.late, figures.lost, figures.lost_by_kind.failed) == (0, 6, 6)
    assert figures.success == 2


def test_exchanges_in_a_row_without_use() -> None:
    tally = BoardTally(EXPECTED, Counters())
    outcomes = "...xxxx.xx.lllll.xxx"
    for index, mark in enumerate(outcomes):
        kinds = {".": Outcome.OK, "x": Outcome.SILENT, "l": Outcome.COMMAND_LOST}
        tally.note(index, None if mark == "x" else 0, kinds[mark], index, index)
    figures = tally.figures(Counters())
    assert (figures.unanswered_longest, figures.unanswered_at_end) == (5, 3)


@given(st.lists(st.integers(0, 9_000_000), max_size=300))
def test_periods_are_exchanged_or_skipped(delays_ns: list[int]) -> None:
    tally, deadline_ns, per_second = HostTally(), 0, {0: 0}
    for delay_ns in delays_ns:
        deadline_ns += PERIOD_NS
        skipped = delay_ns // PERIOD_NS
        tally.note(deadline_ns, deadline_ns + delay_ns, skipped)
        second = deadline_ns // 1_000_000_000
        per_second[second] = per_second.get(second, 0) + skipped
        deadline_ns += skipped * PERIOD_NS
    figures = tally.figures()
    assert figures.periods == deadline_ns // PERIOD_NS
    assert figures.skipped == figures.periods - len(delays_ns)
    assert figures.skipped_most_per_s == max(per_second.values())
    if delays_ns:
        check_quantiles(figures.wake_us, delays_ns)


def test_a_longer_time_takes_no_more_memory() -> None:
    tally = BoardTally(EXPECTED, Counters())

    def note(indices: range) -> int:
        for index in indices:
            began_ns = index * PERIOD_NS
            tally.note(index & 0xFFFF, index - 1 & 0xFFFF, Outcome.OK, began_ns, began_ns + index)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before, after = note(range(1_000)), note(range(1_000, 20_000))
    finally:
        tracemalloc.stop()
    assert after - before < 2_000
