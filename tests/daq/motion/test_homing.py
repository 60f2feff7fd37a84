"""Homing: which turn it is, and the gentle search for the index."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import assume, given, settings

from daq.motion.errors import HomingError
from daq.motion.homing import (
    BRACKET_MAX_RAD,
    RAMP_S,
    SPEED_RAD_S,
    TRAVEL_TURNS,
    IndexSearch,
    Travel,
    locate_zero,
)
from daq.robot import load_robot
from daq.robot.description import Joint

ARM = load_robot("laas4")
COUNT_RAD = math.tau / 4096
PERIOD_S = 1e-3


def joint(
    *, gear: float = 31.0, direction: int = 1, offset: float = 0.0, low: float = -7, high: float = 7
) -> Joint:
    first = ARM.joints[0]
    drive = msgspec.structs.replace(
        first.drive, gear_reduction=gear, direction=direction, joint_offset_rad=offset
    )
    limits = msgspec.structs.replace(first.limits, position_min_rad=low, position_max_rad=high)
    return msgspec.structs.replace(first, drive=drive, limits=limits)


class Motor:
    """Follows its reference at once; its encoder counts from where it was switched on."""

    def __init__(self, each: Joint, q: float, switched_on_at: float = 0.0) -> None:
        drive = each.drive
        self.joint = each
        # Zero at the index that the robot file means.
        self.angle = drive.direction * drive.gear_reduction * (q - drive.joint_offset_rad)
        self.zero = switched_on_at
        self.turn = math.floor(self.angle / math.tau)
        self.is_found = False
        self.toggle = False
        self.has_index = True

    @property
    def position(self) -> float:
        return round((self.angle - self.zero) / COUNT_RAD) * COUNT_RAD

    def follow(self, position: float) -> None:
        self.angle = self.zero + position
        turn = math.floor(self.angle / math.tau)
        if turn != self.turn:
            self.turn = turn
            if self.has_index:
                self.is_found, self.toggle = True, not self.toggle


def run(
    search: IndexSearch,
    motor: Motor,
    *,
    is_valid: Callable[[int], bool] = lambda _: True,
    does_follow: bool = True,
) -> list[tuple[float, float]]:
    """Let a search run to its end; every reference it gave."""
    references = []
    for k in range(60_000):
        reference = search.step(motor.position, motor.is_found, motor.toggle, is_valid(k))
        references.append(reference)
        if does_follow:
            motor.follow(reference[0])
        if search.is_done:
            return references
    raise AssertionError("never done")


def assert_gentle(references: list[tuple[float, float]], start: float) -> None:
    """No jump, neither at the start nor later, and never too fast."""
    before, speed_before = start, 0.0
    acceleration = 1.5 * SPEED_RAD_S / RAMP_S
    for position, speed in references:
        assert abs(speed) <= SPEED_RAD_S * (1 + 1e-9)
        assert abs(speed - speed_before) <= acceleration * PERIOD_S * 1.01
        moved = 0.5 * PERIOD_S * (speed + speed_before)
        assert abs(position - before - moved) <= acceleration * PERIOD_S**2
        before, speed_before = position, speed
    assert references[-1] == (start, 0.0)


@given(
    gear=st.sampled_from([1.0, 27.0, 31.0]),
    direction=st.sampled_from([1, -1]),
    offset=st.floats(-3, 3),
    q=st.floats(-3, 3),
    switched_on_at=st.floats(-1000, 1000),
    travel=st.floats(-8, 8),
    error=st.floats(-0.3, 0.3),
)
def test_the_zero_is_recovered_exactly_with_a_fair_hint(
    *,
    gear: float,
    direction: int,
    offset: float,
    q: float,
    switched_on_at: float,
    travel: float,
    error: float,
) -> None:
    each = joint(gear=gear, direction=direction, offset=offset)
    start = direction * gear * (q - offset) - switched_on_at
    turns = math.floor((start + switched_on_at + travel) / math.tau)
    index = turns * math.tau - switched_on_at
    hint = q + error * math.tau / gear
    offset_rad = locate_zero(each, index_motor_rad=index, start_motor_rad=start, hint_rad=hint)
    assert direction * (start + offset_rad) / gear == pytest.approx(q, abs=1e-9)


@given(
    gear=st.sampled_from([1.0, 27.0, 31.0]),
    direction=st.sampled_from([1, -1]),
    offset=st.floats(-3, 3),
    q=st.floats(-1, 1),
    error=st.floats(0.4, 0.6),
    sign=st.sampled_from([1, -1]),
)
def test_a_hint_between_two_postures_is_refused(
    *, gear: float, direction: int, offset: float, q: float, error: float, sign: int
) -> None:
    each = joint(gear=gear, direction=direction, offset=offset)
    start = direction * gear * (q - offset)
    index = math.tau * math.floor(start / math.tau)
    hint = q + sign * error * math.tau / gear
    with pytest.raises(HomingError) as caught:
        locate_zero(each, index_motor_rad=index, start_motor_rad=start, hint_rad=hint)
    assert (caught.value.code, caught.value.joint) == ("ambiguous-hint", each.name)
    # It names the posture it really is in, and the other one.
    first, second, named_hint, *_ = map(float, re.findall(r"-?\d+\.\d+", str(caught.value)))
    both = sorted([q, q + sign * math.tau / gear])
    assert sorted([first, second]) == pytest.approx(both, abs=1e-4)
    assert named_hint == pytest.approx(hint, abs=1e-4)


def test_a_joint_outside_its_limits_is_refused() -> None:
    each = joint(low=-1.0, high=1.0)
    with pytest.raises(HomingError) as caught:
        locate_zero(each, index_motor_rad=0.0, start_motor_rad=40.0, hint_rad=40.0 / 31)
    assert caught.value.code == "position-limit"
    assert "-1 to 1 rad" in str(caught.value)


def test_a_hint_that_is_no_number_is_refused() -> None:
    with pytest.raises(HomingError) as caught:
        locate_zero(joint(), index_motor_rad=0.0, start_motor_rad=0.0, hint_rad=math.nan)
    assert isinstance(caught.value, ValueError) and caught.value.code == "not-finite"


@settings(max_examples=30)
@given(
    gear=st.sampled_from([27.0, 31.0]),
    direction=st.sampled_from([1, -1]),
    offset=st.floats(-3, 3),
    q=st.floats(-3, 3),
    switched_on_at=st.floats(-100, 100),
    error=st.floats(-0.3, 0.3),
    was_found=st.booleans(),
    toggle=st.booleans(),
)
def test_a_search_finds_the_zero_and_comes_back(
    *,
    gear: float,
    direction: int,
    offset: float,
    q: float,
    switched_on_at: float,
    error: float,
    was_found: bool,
    toggle: bool,
) -> None:
    each = joint(gear=gear, direction=direction, offset=offset)
    motor = Motor(each, q, switched_on_at)
    motor.is_found, motor.toggle = was_found, toggle
    hint, start = q + error * math.tau / gear, motor.position
    motor.follow(start)
    search = IndexSearch(each, start_motor_rad=start, hint_rad=hint)
    references = run(search, motor)
    assert search.failure is None and search.index_motor_rad is not None
    assert_gentle(references, start)
    assert max(abs(position - start) for position, _ in references) <= 1.05 * math.tau + 0.7
    offset_rad = locate_zero(
        each,
        index_motor_rad=search.index_motor_rad,
        start_motor_rad=search.start_motor_rad,
        hint_rad=hint,
    )
    recovered = direction * (motor.position + offset_rad) / gear
    # Half of what it turns in a cycle, and the encoder's rounding.
    tolerance = 0.5 * SPEED_RAD_S * PERIOD_S + 1.5 * COUNT_RAD
    assert abs(recovered - q) <= tolerance / gear


def test_without_an_index_it_tries_both_ways_and_says_so() -> None:
    each = joint()
    motor = Motor(each, 0.4)
    motor.has_index = False
    start = motor.position
    search = IndexSearch(each, start_motor_rad=start, hint_rad=0.4)
    references = run(search, motor)
    assert_gentle(references, start)
    reached = [(position - start) / math.tau for position, _ in references]
    assert (min(reached), max(reached)) == pytest.approx((-TRAVEL_TURNS, TRAVEL_TURNS))
    assert search.index_motor_rad is None
    assert search.failure is not None and search.failure.code == "no-index"
    assert search.failure.joint == "joint1" and "2.50" in str(search.failure)


def test_a_motor_that_does_not_follow_is_not_blamed_on_the_index() -> None:
    motor = Motor(joint(), 0.4)
    search = IndexSearch(joint(), start_motor_rad=motor.position, hint_rad=0.4)
    run(search, motor, does_follow=False)
    assert search.failure is not None and search.failure.code == "blocked"


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("end", [1, -1])
def test_near_a_limit_it_turns_the_other_way_only(direction: int, end: int) -> None:
    each = joint(direction=direction, low=-1.0, high=1.0)
    motor = Motor(each, end * 0.95)
    motor.has_index = False
    start = motor.position
    search = IndexSearch(each, start_motor_rad=start, hint_rad=end * 0.95)
    moved = [direction * (position - start) for position, _ in run(search, motor)]
    assert max(end * m for m in moved) <= 1e-9
    assert max(-end * m for m in moved) == pytest.approx(TRAVEL_TURNS * math.tau)


def test_without_room_either_way_it_does_not_begin() -> None:
    with pytest.raises(HomingError) as caught:
        IndexSearch(joint(low=-0.3, high=0.3), start_motor_rad=0.0, hint_rad=0.0)
    assert caught.value.code == "no-room"


@settings(max_examples=30)
@given(
    q=st.floats(-1, 1), lost=st.integers(1, 400), begin=st.integers(0, 3500), seed=st.integers(0, 9)
)
def test_lost_replies_make_it_look_again_rather_than_guess(
    q: float, lost: int, begin: int, seed: int
) -> None:
    each = joint()
    motor = Motor(each, q)
    motor.toggle = bool(seed % 2)
    start = motor.position
    motor.follow(start)
    search = IndexSearch(each, start_motor_rad=start, hint_rad=q)
    references = run(search, motor, is_valid=lambda k: not begin <= k < begin + lost)
    assume(search.index_motor_rad is not None)
    assert search.index_motor_rad is not None
    assert_gentle(references, start)
    turns = search.index_motor_rad / math.tau
    assert abs(turns - round(turns)) * math.tau <= 0.5 * BRACKET_MAX_RAD + COUNT_RAD


@given(start=st.floats(-100, 100), way=st.floats(-20, 20))
def test_a_travel_arrives(start: float, way: float) -> None:
    speed = min(2.0, abs(way) / 0.3)
    duration_s = abs(way) / speed + 0.3 if abs(way) > 1e-6 else 0.6
    travel = Travel(start, way, speed=2.0, ramp_s=0.3, period_s=0.5 * duration_s)
    assert travel.row(0) == (start, 0.0) or not way
    assert travel.row(3) == (start + way, 0.0)
    if abs(way) > 1e-6:
        assert travel.row(1)[0] == pytest.approx(start + 0.5 * way, abs=1e-9)
        assert abs(travel.row(1)[1]) == pytest.approx(speed)
