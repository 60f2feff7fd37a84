"""Which exchange is struck, and what can be said of it beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw_mocks.faults.script import FaultScript, ScriptedFault, parse_fault

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
