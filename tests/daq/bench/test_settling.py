"""Has a speed settled? Looks at made-up motors, whose settling is known."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.bench.settling import TOLERANCE, TOLERANCE_A, WINDOW_S, Diagnosis, Look, SettlingDetector

KP = 0.44
LIMIT_A = 9.0
TARGET_RAD_S = 100.0
LEVEL_RAD = 0.35
"""Lag of a motor that friction holds back by 0.15 A."""
ADVICE = "try --kp 0.44 --kd 0.044"
LOOK_S = 0.02
Lag = Callable[[float], float]


def make_detector(**changes: float) -> SettlingDetector:
    options: dict[str, float] = {
        "kp_a_per_rad": KP,
        "target_rad_s": TARGET_RAD_S,
        "limit_a": LIMIT_A,
    }
    return SettlingDetector(**(options | changes), advice=ADVICE)


def regular(duration_s: float, *, step_s: float = LOOK_S) -> Iterator[float]:
    return (step_s * number for number in range(round(duration_s / step_s)))


def looks(times_s: Iterable[float], lag_rad: Lag, *, kp: float = KP) -> Iterator[Look]:
    """A motor with this lag; its speed and its current follow from it."""
    for t_s in times_s:
        lag, rate = lag_rad(t_s), (lag_rad(t_s + 1e-6) - lag_rad(t_s - 1e-6)) / 2e-6
        current_a = max(-LIMIT_A, min(LIMIT_A, kp * lag))
        yield Look(t_s, TARGET_RAD_S * t_s - lag, lag, TARGET_RAD_S - rate, current_a)


def settled_at(
    detector: SettlingDetector, seen: Iterable[Look], *, ramp_until_s: float = -1.0
) -> float | None:
    """When the detector says so first."""
    for look in seen:
        if detector.add(look, is_ramping=look.t_s < ramp_until_s):
            return look.t_s
    return None


@st.composite
def irregular_times(draw: st.DrawFn, duration_s: float = 6.0) -> list[float]:
    """Looks as a serial port gives them: now and then some are left out."""
    gaps = draw(st.lists(st.floats(0.01, 0.06), min_size=20, max_size=60))
    return list(
        itertools.takewhile(lambda t: t < duration_s, itertools.accumulate(itertools.cycle(gaps)))
    )


times = st.just(list(regular(6.0))) | irregular_times()


# --- that it settles ------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(
    start_rad=st.floats(-3.0, 3.0),
    decay_s=st.floats(0.03, 0.6),
    level_rad=st.floats(0.02, 3.0),
    sign=st.sampled_from([-1.0, 1.0]),
    seen_s=times,
)
def test_an_exponential_approach_settles_when_little_is_left(
    start_rad: float, decay_s: float, level_rad: float, sign: float, seen_s: list[float]
) -> None:
    def lag_rad(t_s: float) -> float:
        return sign * (level_rad + start_rad * math.exp(-t_s / decay_s))

    at_s = settled_at(make_detector(), looks(seen_s, lag_rad))

    assert at_s is not None
    # What is still to come is no more than has changed since the window before.
    tolerance_a = max(TOLERANCE * KP * level_rad, TOLERANCE_A)
    to_come_a = KP * abs(lag_rad(at_s) - sign * level_rad)
    change_per_window = math.expm1(WINDOW_S / decay_s)
    assert to_come_a < 1.5 * tolerance_a * max(1.0, 1.0 / change_per_window)
    # Once nothing changes any more, it does not take much longer than two windows.
    still_s = decay_s * math.log(max(KP * abs(start_rad) / (0.1 * tolerance_a), 1.0))
    assert at_s <= still_s + 4.0 * WINDOW_S


@settings(max_examples=examples(30))
@given(seen_s=irregular_times(2.0), level_rad=st.floats(-2.0, 2.0))
def test_what_is_steady_from_the_start_takes_two_windows(
    seen_s: list[float], level_rad: float
) -> None:
    at_s = settled_at(make_detector(), looks(seen_s, lambda _: level_rad))
    assert at_s is not None
    assert 1.9 * WINDOW_S <= at_s - seen_s[0] < 4.0 * WINDOW_S


@pytest.mark.parametrize("step_s", [0.04, 0.0625, 0.08, 0.1, 0.2])
def test_it_settles_at_whatever_rate_a_serial_port_allows(step_s: float) -> None:
    """It never used to with fewer than four looks in a window, and said that 0 mA were left."""

    def lag_rad(t_s: float) -> float:
        return LEVEL_RAD * (1.0 + 2.0 * math.exp(-t_s / 0.1))

    seen = looks(regular(4.0, step_s=step_s), lag_rad)
    at_s = settled_at(make_detector(), seen, ramp_until_s=0.3)
    assert at_s is not None
    assert 0.3 + 1.9 * WINDOW_S - step_s < at_s < 0.3 + max(4.0 * WINDOW_S, 11.0 * step_s)
    assert at_s > 0.3 + 7.0 * step_s, "too few looks to judge by"
    # Nor is it too easily content.
    seen = looks(regular(4.0, step_s=step_s), lambda t_s: LEVEL_RAD * (1.0 + 0.3 * t_s))
    assert settled_at(make_detector(), seen) is None


def test_ripple_of_the_motor_does_not_keep_it_from_settling() -> None:
    """Fast next to the window, and half as large as the lag itself."""

    def lag_rad(t_s: float) -> float:
        return LEVEL_RAD * (1.0 + 0.5 * math.sin(math.tau * 36.0 * t_s))

    at_s = settled_at(make_detector(), looks(regular(3.0), lag_rad))
    assert at_s is not None
    assert at_s < 2.0


def test_where_a_load_varies_only_the_speed_counts() -> None:
    """Gravity on the way of a mounted joint: the lag changes, the speed hardly."""

    def lag_rad(t_s: float) -> float:
        return 2.0 * math.sin(2.0 * t_s)

    assert settled_at(make_detector(), looks(regular(0.7), lag_rad)) is None
    at_s = settled_at(make_detector(speed_tolerance=0.1), looks(regular(3.0), lag_rad))
    assert at_s == pytest.approx(2.0 * WINDOW_S, abs=2.0 * LOOK_S)
    # 20 rad/s too slow is not settled.
    behind = looks(regular(3.0), lambda t_s: 20.0 * t_s)
    assert settled_at(make_detector(speed_tolerance=0.1), behind) is None


# --- that it does not -----------------------------------------------------------------------------


@given(
    ramp_s=st.floats(0.02, 3.0),
    level_rad=st.floats(-3.0, 3.0),
    tolerance=st.sampled_from([None, 0.1]),
)
def test_never_while_ramping(ramp_s: float, level_rad: float, tolerance: float | None) -> None:
    """However steady it looks; and afterwards not before two windows are over."""
    detector = SettlingDetector(
        kp_a_per_rad=KP,
        target_rad_s=TARGET_RAD_S,
        limit_a=LIMIT_A,
        advice=ADVICE,
        speed_tolerance=tolerance,
    )
    seen = looks(regular(ramp_s + 1.0), lambda _: level_rad)
    at_s = settled_at(detector, seen, ramp_until_s=ramp_s)
    assert at_s is not None
    assert at_s >= ramp_s - LOOK_S + 1.9 * WINDOW_S


@given(
    share=st.floats(0.94, 1.0),
    sign=st.sampled_from([-1.0, 1.0]),
    limit_a=st.floats(0.2, 20.0),
    seen_s=irregular_times(3.0),
)
def test_never_while_saturated(
    share: float, sign: float, limit_a: float, seen_s: list[float]
) -> None:
    detector = make_detector(limit_a=limit_a)
    for t_s in seen_s:
        look = Look(t_s, 50.0 * t_s, sign * LEVEL_RAD, 50.0, sign * share * limit_a)
        assert not detector.add(look, is_ramping=False)
    problem = detector.problem()
    assert problem.code == "saturated"
    for named in (f"{limit_a:.3g} A", "50 of 100 rad/s", "--speed-max", "current_max_a"):
        assert named in problem.text


@given(
    rate_a_per_s=st.floats(0.05, 3.0),
    sign=st.sampled_from([-1.0, 1.0]),
    seen_s=irregular_times(1.5),
)
def test_never_while_the_current_rises(
    rate_a_per_s: float, sign: float, seen_s: list[float]
) -> None:
    """More than 1 % of itself, and more than 1 mA, from one window to the next."""
    detector = make_detector()
    seen = looks(seen_s, lambda t_s: sign * rate_a_per_s / KP * t_s)
    assert settled_at(detector, seen) is None


@settings(max_examples=examples(60))
@given(
    lags=st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=60),
    period=st.sampled_from([1, 3, 5, 12]),
)
def test_it_says_so_exactly_when_two_windows_agree(lags: list[float], period: int) -> None:
    """Whatever the lag does: judged by other means."""
    values = [lags[number % period] if period > 1 else lag for number, lag in enumerate(lags)]
    # No look is exactly a window ago.
    seen = [Look(1.01 * LOOK_S * k, 0.0, lag, 0.0, 0.0) for k, lag in enumerate(values)]
    detector = make_detector()
    for k, look in enumerate(seen):
        t = np.array([each.t_s for each in seen[: k + 1]])
        lag = np.array(values[: k + 1])
        recent = t > look.t_s - WINDOW_S
        former = (t > look.t_s - 2.0 * WINDOW_S) & ~recent
        is_settled = detector.add(look, is_ramping=False)
        if look.t_s < 1.9 * WINDOW_S:
            assert not is_settled
            continue
        after, before = lag[recent].mean(), lag[former].mean()
        change_a, allowed_a = KP * abs(after - before), max(0.01 * KP * abs(after), 1e-3)
        if abs(change_a - allowed_a) > 1e-9:
            assert is_settled == (change_a < allowed_a)


# --- why not --------------------------------------------------------------------------------------


def problem_after(seen: Iterable[Look], *, is_ramping: bool = False, **changes: float) -> Diagnosis:
    """What a detector says that has never been content."""
    detector = make_detector(**changes)
    for look in seen:
        assert not detector.add(look, is_ramping=is_ramping)
    return detector.problem()


def test_an_oscillation_is_told_with_its_size() -> None:
    def lag_rad(t_s: float) -> float:
        # The means of its windows never agree where it is looked at.
        return LEVEL_RAD * (1.0 + math.sin(math.tau * t_s + 0.1))

    problem = problem_after(looks(regular(4.0), lag_rad))
    assert problem.code == "oscillates" and ADVICE in problem.text
    swing_rad, level_rad = map(float, re.findall(r"(\S+) rad\b", problem.text))
    assert swing_rad == pytest.approx(LEVEL_RAD, rel=0.1)
    assert level_rad == pytest.approx(0.4 * LEVEL_RAD, rel=0.3)


@given(
    rate_a_per_s=st.floats(0.02, 3.0),
    sign=st.sampled_from([-1.0, 1.0]),
    step_s=st.sampled_from([0.02, 0.04, 0.1]),
)
def test_a_current_that_still_changes_is_told_with_its_rate(
    rate_a_per_s: float, sign: float, step_s: float
) -> None:
    """However fast: that it only ever rises used to be called an oscillation."""

    def lag_rad(t_s: float) -> float:
        return sign * (LEVEL_RAD + rate_a_per_s / KP * t_s)

    problem = problem_after(looks(regular(1.5, step_s=step_s), lag_rad))
    assert problem.code == "still-changes"
    assert "--settle-max" in problem.text and ADVICE in problem.text
    found = re.search(r"(\S+) mA .*?(\S+) s .*?(\S+) of 100 rad/s", problem.text)
    assert found is not None
    change_ma, window_s, speed_rad_s = map(float, found.groups())
    assert change_ma == pytest.approx(sign * 1e3 * rate_a_per_s * window_s, rel=0.25)
    assert speed_rad_s == pytest.approx(TARGET_RAD_S - sign * rate_a_per_s / KP, rel=1e-3)


@given(share=st.floats(0.0, 0.8), looked=st.integers(1, 30))
def test_a_motor_that_cannot_keep_up_falls_behind(share: float, looked: int) -> None:
    speed_rad_s = share * TARGET_RAD_S
    seen = [
        Look(LOOK_S * k, speed_rad_s * LOOK_S * k, (TARGET_RAD_S - speed_rad_s) * LOOK_S * k,
             speed_rad_s, 1.0)
        for k in range(looked)
    ]  # fmt: skip
    problem = problem_after(seen, is_ramping=True)
    assert problem.code == "falls-behind"
    assert f"{speed_rad_s:.4g} of 100 rad/s" in problem.text and ADVICE in problem.text


def test_few_looks() -> None:
    assert make_detector().problem().code == "no-looks"
    one = looks([0.0], lambda _: LEVEL_RAD)
    problem = problem_after(one)
    assert problem.code == "still-changes" and " 0 mA" in problem.text
    saturated = [Look(0.0, 0.0, 20.0, 0.0, -LIMIT_A)]
    assert problem_after(saturated, is_ramping=True).code == "saturated"


def test_a_short_peak_of_current_is_no_saturation() -> None:
    """Speeding up takes what it takes; only the last tenth of a second counts."""
    detector = make_detector()
    peak = [Look(LOOK_S * k, 0.0, LEVEL_RAD, 0.0, LIMIT_A) for k in range(20)]
    steady = [Look(LOOK_S * k, 0.0, LEVEL_RAD, 0.0, 0.15) for k in range(20, 60)]
    at_s = settled_at(detector, [*peak, *steady])
    assert at_s == pytest.approx(2.0 * WINDOW_S, abs=2.0 * LOOK_S)
