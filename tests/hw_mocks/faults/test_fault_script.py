"""Which exchange is struck, and what can be said of it beforehand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultKind, FaultScript, ScriptedFault, parse_fault

MS_NS = 1_000_000
SCRIPTS = st.lists(
    st.sampled_from(
        [
            "flip:rate=0.2",
            "drop:rate=0.1,board=1",
            "repeat:at=0.02",
            "truncate:at=0.015,board=0",
            "stuck-low:at=0.03,for=0.005",
            "io-error:at=0.01,for=0.01,board=1",
        ]
    ),
    max_size=4,
)


def strikes(
    script: FaultScript, board: int, now_ns: int
) -> tuple[list[ScriptedFault], ScriptedFault | None]:
    return script.lasting(board, now_ns), script.strike(board, now_ns)


@given(
    texts=SCRIPTS,
    seed=st.integers(0, 1000),
    asked=st.lists(st.integers(0, 3), min_size=60, max_size=60),
    is_from_first=st.booleans(),
)
def test_who_asks_beforehand_changes_nothing_and_is_told_the_truth(
    texts: list[str], seed: int, asked: list[int], is_from_first: bool
) -> None:
    def make() -> FaultScript:
        faults = [parse_fault(text) for text in texts]
        return FaultScript(faults, seed=seed, is_from_first_exchange=is_from_first)

    quiet, curious = make(), make()
    for cycle, questions in enumerate(asked):
        now_ns = cycle * MS_NS
        for board in (0, 1):
            spared = [
                curious.spares_next(board, now_ns - MS_NS // 2, now_ns) for _ in range(questions)
            ]
            expected = strikes(quiet, board, now_ns)
            assert strikes(curious, board, now_ns) == expected
            if any(spared):
                assert expected == ([], None)
    assert curious.events == quiet.events


def test_boards_do_not_disturb_each_others_luck() -> None:
    def struck(boards: list[int]) -> list[int]:
        script = FaultScript([parse_fault("drop:rate=0.3")], seed=5)
        return [
            number
            for number in range(50)
            for board in boards
            if script.strike(board, number * MS_NS) and board == 1
        ]

    assert struck([1]) == struck([0, 1]) == struck([1, 0, 0])


@pytest.mark.parametrize(
    ("text", "spared_until_ms"), [("drop:at=0.05", 49), ("io-error:at=0.05,for=0.01", 49)]
)
def test_a_timed_fault_is_foreseen(text: str, spared_until_ms: int) -> None:
    script = FaultScript([parse_fault(text)])
    assert script.spares_next(0, 0, spared_until_ms * MS_NS)
    assert not script.spares_next(0, 0, 50 * MS_NS)
    assert any(strikes(script, 0, 50 * MS_NS))
    assert script.spares_next(0, 61 * MS_NS, 1000 * MS_NS)


def test_before_the_first_exchange_nothing_is_promised() -> None:
    script = FaultScript([parse_fault("drop:at=9")], is_from_first_exchange=True)
    assert not script.spares_next(0, 0, MS_NS)
    assert script.strike(0, 5 * MS_NS) is None
    assert script.spares_next(0, 6 * MS_NS, 7 * MS_NS)


# --- a computer that is busy elsewhere ------------------------------------------------------------


def woken_ns(*texts: str, seed: int = 0, periods: int = 4000) -> list[int]:
    """When a loop of 1 kHz wakes up."""
    script = FaultScript([parse_fault(text) for text in texts], seed=seed)
    clock = VirtualClock(lambda now_ns: script.oversleep_ns(now_ns, MS_NS))
    woken, deadline_ns = [], 0
    while deadline_ns < periods * MS_NS:
        deadline_ns += MS_NS
        clock.sleep_until_ns(deadline_ns)
        deadline_ns += (clock.now_ns() - deadline_ns) // MS_NS * MS_NS
        woken.append(clock.now_ns())
    struck = [event for event in script.events if event.kind is FaultKind.SKIP]
    assert all(event.board == -1 for event in struck)
    late = [now_ns for now_ns in woken if now_ns % MS_NS > 1]
    assert len(late) <= len(struck)
    return woken


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_a_share_of_the_periods_is_skipped(rate: float) -> None:
    woken = woken_ns(f"skip:rate={rate}")
    assert all(after > before for before, after in itertools.pairwise(woken))
    assert 1.0 - len(woken) / 4000 == pytest.approx(rate, rel=0.3)
    assert woken == woken_ns(f"skip:rate={rate}")
    assert woken != woken_ns(f"skip:rate={rate}", seed=1)


def test_a_single_period_is_skipped() -> None:
    woken = woken_ns("skip:at=1", periods=2000)
    assert len(woken) == 1999
    assert woken[998] == 999 * MS_NS
    assert 1001 * MS_NS <= woken[999] < 1002 * MS_NS


def test_always_skipping_has_an_end() -> None:
    woken = woken_ns("skip:rate=1", periods=4000)
    assert len(woken) == 4


def test_boards_do_not_notice_skips() -> None:
    def struck(*texts: str) -> list[bool]:
        script = FaultScript([parse_fault(text) for text in texts], seed=5)
        found = []
        for number in range(200):
            if script.has_skips:
                script.oversleep_ns(number * MS_NS, MS_NS)
            found.append(script.strike(0, number * MS_NS) is not None)
        return found

    assert struck("drop:rate=0.3") == struck("drop:rate=0.3", "skip:rate=0.2")
    assert FaultScript([parse_fault("skip:rate=0.2")]).is_empty
