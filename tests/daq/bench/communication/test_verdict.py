"""Where good ends and bad begins, by the figures alone."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.bench.communication.figures import BoardFigures, HostFigures, LossesByKind
from daq.bench.communication.verdict import Grade, GradedVerdict, Judge
from daq.robot import Safety
from daq.stream.messages import Quantiles
from firmware_protocol.profiles import PROFILES

NOTHING_LOST = LossesByKind(
    commands=0, corrupt=0, truncated=0, silent=0, mismatched=0, stale=0, stalled=0, failed=0
)
QUICK = Quantiles(p50=50.0, p99=60.0, p999=100.0, max=5000.0)
FINE = BoardFigures(
    exchanges=10_000,
    success=10_000,
    late=0,
    lost=0,
    lost_by_kind=NOTHING_LOST,
    overlong=0,
    restarted=0,
    resynchronised=0,
    unanswered_longest=0,
    unanswered_at_end=0,
    age_us=QUICK,
    transfer_us=QUICK,
)


def judge(*, is_time_binding: bool = True, boards: int = 2) -> Judge:
    return Judge(Safety(), period_us=1000.0, boards=boards, is_time_binding=is_time_binding)


def lost(count: int, kind: str = "corrupt") -> BoardFigures:
    kinds = msgspec.structs.replace(NOTHING_LOST, **{kind: count})
    return msgspec.structs.replace(FINE, success=10_000 - count, lost=count, lost_by_kind=kinds)


def slow(p999_us: float) -> BoardFigures:
    return msgspec.structs.replace(
        FINE, transfer_us=msgspec.structs.replace(QUICK, p999=p999_us, max=9000.0)
    )


def grade_and_codes(verdict: GradedVerdict) -> tuple[Grade, list[str]]:
    assert all(reason.text and reason.fix for reason in verdict.reasons)
    return verdict.grade, [reason.code for reason in verdict.reasons]


def test_nothing_to_complain_about() -> None:
    assert judge().judge_board(FINE) == GradedVerdict(Grade.GOOD, ())


@pytest.mark.parametrize(
    ("count", "grade"), [(1, Grade.MARGINAL), (10, Grade.MARGINAL), (11, Grade.BAD)]
)
@pytest.mark.parametrize("kind", NOTHING_LOST.__struct_fields__)
def test_losses(kind: str, count: int, grade: Grade) -> None:
    verdict = judge().judge_board(lost(count, kind))
    assert grade_and_codes(verdict) == (grade, ["lost"])
    assert f"{count} of 10000" in verdict.reasons[0].text


@pytest.mark.parametrize(("count", "grade"), [(10, Grade.MARGINAL), (11, Grade.BAD)])
def test_late_confirmations(count: int, grade: Grade) -> None:
    figures = msgspec.structs.replace(FINE, success=10_000 - count, late=count)
    assert grade_and_codes(judge().judge_board(figures)) == (grade, ["late"])


@pytest.mark.parametrize(
    ("p999_us", "boards", "grade"),
    [
        (250.0, 2, Grade.GOOD),
        (251.0, 2, Grade.MARGINAL),
        (500.0, 2, Grade.MARGINAL),
        (501.0, 2, Grade.BAD),
        (500.0, 1, Grade.GOOD),
        (1001.0, 1, Grade.BAD),
    ],
)
def test_boards_share_half_a_period(p999_us: float, boards: int, grade: Grade) -> None:
    verdict = judge(boards=boards).judge_board(slow(p999_us))
    assert verdict.grade is grade
    where_time_is_not_binding = judge(boards=boards, is_time_binding=False)
    verdict = where_time_is_not_binding.judge_board(slow(p999_us))
    assert verdict.grade is min(grade, Grade.MARGINAL)


def test_a_silence_that_the_loop_would_not_survive() -> None:
    figures = msgspec.structs.replace(lost(20, "silent"), unanswered_longest=20)
    grade, codes = grade_and_codes(judge().judge_board(figures))
    assert (grade, set(codes)) == (Grade.BAD, {"lost", "interrupted"})
    figures = msgspec.structs.replace(figures, unanswered_longest=19)
    assert "interrupted" not in grade_and_codes(judge().judge_board(figures))[1]


def test_a_board_that_is_gone() -> None:
    figures = msgspec.structs.replace(
        lost(20, "failed"), unanswered_longest=20, unanswered_at_end=20
    )
    verdict = judge().judge_board(figures, failure="/dev/spidev0.1: gone")
    assert grade_and_codes(verdict) == (Grade.FAULT, ["silent", "lost"])
    assert "/dev/spidev0.1: gone" in verdict.reasons[0].text


def test_a_fault_comes_first() -> None:
    fault = PROFILES["arm"].fault_of(7)
    verdict = judge().judge_board(lost(11), fault)
    assert grade_and_codes(verdict) == (Grade.FAULT, ["error-7", "lost"])


def test_a_reboot_is_bad() -> None:
    figures = msgspec.structs.replace(FINE, restarted=1)
    assert grade_and_codes(judge().judge_board(figures)) == (Grade.BAD, ["restarted"])


@pytest.mark.parametrize(
    ("skipped", "most", "grade"),
    [(0, 0, Grade.GOOD), (1, 1, Grade.MARGINAL), (400, 200, Grade.MARGINAL), (201, 201, Grade.BAD)],
)
def test_skipped_periods(skipped: int, most: int, grade: Grade) -> None:
    figures = HostFigures(periods=10_000, skipped=skipped, skipped_most_per_s=most, wake_us=QUICK)
    assert judge().judge_host(figures).grade is grade
    lenient = judge(is_time_binding=False).judge_host(figures)
    assert lenient.grade is min(grade, Grade.MARGINAL)


@given(
    st.integers(0, 100), st.integers(0, 100), st.floats(0, 2000), st.integers(0, 2), st.integers(0)
)
def test_worse_figures_never_get_a_better_grade(
    losses: int, late: int, p999_us: float, restarted: int, more: int
) -> None:
    def grade(factor: int) -> Grade:
        figures = msgspec.structs.replace(
            lost(losses * factor),
            late=late * factor,
            restarted=restarted * factor,
            transfer_us=msgspec.structs.replace(QUICK, p999=p999_us * factor),
        )
        return judge().judge_board(figures).grade

    assert grade(1) <= grade(1 + more % 50)
