"""Moves: smooth between rows, exact at their ends, inside every limit all the way."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import assume, given

from daq.motion import quintic
from daq.motion.errors import MotionError, MotionLimitError
from daq.motion.moves import Motion, MotionSequence, QuinticMove, SpeedChange, Standstill
from daq.motion.planning import (
    acceleration_max_rad_s2,
    hardest_rad_s2,
    plan_move,
    plan_playback,
    plan_speed,
    position_range_rad,
    speed_with_room,
    stop_move,
)
from daq.motion.playback import Playback
from daq.robot import load_robot
from daq.robot.description import Joint

PERIOD_S = 1e-3
ARM = load_robot("laas4")
VELOCITY_MAX = 5.0
COMMANDED_MAX = 0.9 * VELOCITY_MAX


def joint(low: float = -2.0, high: float = 2.0, acceleration: float | None = 40.0) -> Joint:
    """One that speeds up to its highest speed in 0.25 s: 20 rad/s², unless its file says less."""
    first = ARM.joints[0]
    limits = msgspec.structs.replace(
        first.limits,
        position_min_rad=low,
        position_max_rad=high,
        acceleration_max_rad_s2=acceleration,
    )
    return msgspec.structs.replace(first, limits=limits)


def rows_of(motion: Motion, count: int | None = None) -> np.ndarray[Any, np.dtype[np.float64]]:
    count = (motion.cycles or 0) + 2 if count is None else count
    return np.array([motion.row(k) for k in range(count)])


def assert_smooth(
    rows: np.ndarray[Any, Any], joints: int, acceleration: float, *, jerk: float
) -> None:
    """q goes on as dq says, and dq changes no faster than the acceleration allows."""
    q, dq = rows[:, :joints], rows[:, joints : 2 * joints]
    steps = np.diff(q, axis=0) - 0.5 * PERIOD_S * (dq[1:] + dq[:-1])
    # The trapezoidal rule's own error.
    assert np.abs(steps).max() <= jerk * PERIOD_S**3 / 12 * 1.01 + 1e-12
    assert np.abs(np.diff(dq, axis=0)).max() <= acceleration * PERIOD_S * 1.001 + 1e-12


accelerations = st.sampled_from([None, 100.0, 40.0, 12.0, 1.0])
"""Of a robot file."""
postures = st.lists(st.floats(-1.9, 1.9), min_size=2, max_size=2)
speeds = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=2)


@given(
    way=st.floats(-3, 3),
    u0=st.floats(-3, 3),
    u1=st.floats(-3, 3),
)
def test_peaks_in_closed_form_are_those_of_a_dense_look(way: float, u0: float, u1: float) -> None:
    s = np.linspace(0.0, 1.0, 4001)
    travel: Any = quintic.travel(way, u0, u1, s)  # type: ignore[arg-type]
    speed: Any = quintic.speed(way, u0, u1, s)  # type: ignore[arg-type]
    acceleration = np.gradient(speed, s)
    assert quintic.peak_speed(way, u0, u1) == pytest.approx(np.abs(speed).max(), abs=1e-3)
    peak = quintic.peak_acceleration(way, u0, u1)
    assert peak == pytest.approx(np.abs(acceleration).max(), abs=0.3, rel=1e-3)
    low, high = quintic.range_of(way, u0, u1)
    assert low <= travel.min() + 1e-9 and high >= travel.max() - 1e-9
    assert (low, high) == pytest.approx((travel.min(), travel.max()), abs=1e-4)
    assert np.gradient(travel, s)[1:-1] == pytest.approx(speed[1:-1], abs=1e-3)


@given(q=postures, dq=speeds, end=postures, end_dq=speeds, cycles=st.integers(50, 3000))
def test_a_quintic_begins_and_ends_as_told(
    q: list[float], dq: list[float], end: list[float], end_dq: list[float], cycles: int
) -> None:
    move = QuinticMove(q, dq, end, end_dq, cycles=cycles, period_s=PERIOD_S)
    assert move.row(0) == pytest.approx((*q, *dq, 0, 0), abs=1e-12)
    assert move.row(cycles) == move.row(cycles + 5) == (*end, 0, 0, 0, 0)
    # One row before its end it is as near to it as its end speed says.
    before = move.row(cycles - 1)
    seconds = cycles * PERIOD_S
    for number in range(2):
        ends = (end[number] - q[number], dq[number] * seconds, end_dq[number] * seconds)
        acceleration = quintic.peak_acceleration(*ends) / seconds**2
        left = end[number] - before[number] - end_dq[number] * PERIOD_S
        assert abs(left) <= acceleration * PERIOD_S**2 + 1e-12
        assert abs(before[2 + number] - end_dq[number]) <= acceleration * PERIOD_S + 1e-12


@given(q=postures, dq=speeds, end=postures, end_dq=speeds, fraction=st.floats(0.05, 1.0))
def test_a_planned_move_keeps_every_limit(
    q: list[float], dq: list[float], end: list[float], end_dq: list[float], fraction: float
) -> None:
    joints = [joint(), joint(-1.95, 1.95)]
    try:
        move = plan_move(joints, q, dq, end, end_dq, period_s=PERIOD_S, speed_fraction=fraction)
    except MotionLimitError as error:
        # Only because there is no room to turn round in.
        assert error.code == "position-limit"
        assert any(abs(p) > 1.9 - 2.0 * 1.0**2 for p in (*q, *end))
        assume(False)
    rows = rows_of(move, move.cycles)
    for number, each in enumerate(joints):
        limits = each.limits
        assert rows[:, number].min() >= limits.position_min_rad + 0.02 - 1e-9
        assert rows[:, number].max() <= limits.position_max_rad - 0.02 + 1e-9
        top = max(min(fraction, 0.9) * VELOCITY_MAX, abs(dq[number]), abs(end_dq[number]))
        assert np.abs(rows[:, 2 + number]).max() <= top * (1 + 1e-6)
    assert_smooth(rows, 2, 20.0, jerk=1e5)


@given(
    acceleration=accelerations,
    q=st.floats(-1.9, 1.9),
    dq=st.floats(-COMMANDED_MAX, COMMANDED_MAX),
    end=st.floats(-1.9, 1.9),
    end_dq=st.floats(-COMMANDED_MAX, COMMANDED_MAX),
)
def test_whatever_is_planned_keeps_the_acceleration_of_the_file(
    acceleration: float | None, q: float, dq: float, end: float, end_dq: float
) -> None:
    each = [joint(-50.0, 50.0, acceleration)]  # there is room to turn round in
    kept, hardest = min(acceleration or 20.0, 20.0), min(acceleration or 200.0, 200.0)
    assert (acceleration_max_rad_s2(each[0]), hardest_rad_s2(each[0])) == (kept, hardest)
    move = plan_move(each, [q], [dq], [end], [end_dq], period_s=PERIOD_S, speed_fraction=1.0)
    change = plan_speed(each, [q], [dq], [end_dq], period_s=PERIOD_S)
    stop = stop_move(each, [q], [dq], period_s=PERIOD_S)
    for motion in (move, change, stop):
        rows = rows_of(motion, motion.cycles or 8000)
        assert np.abs(np.diff(rows[:, 1])).max() <= kept * PERIOD_S * 1.001 + 1e-12
        assert np.abs(rows[:, 1]).max() <= COMMANDED_MAX * (1 + 1e-6)
    # In front of a limit all that the file allows, and not more.
    for edge in (49.9, -49.9):
        rows = rows_of(stop_move(each, [edge], [dq], period_s=PERIOD_S))
        assert np.abs(np.diff(rows[:, 1])).max() <= hardest * PERIOD_S * 1.001 + 1e-12


@given(q=postures, end=postures, fraction=st.floats(0.05, 1.0))
def test_between_rests_a_planned_move_is_as_short_as_can_be(
    q: list[float], end: list[float], fraction: float
) -> None:
    joints = [joint(), joint()]
    rest = [0.0, 0.0]
    move = plan_move(joints, q, rest, end, period_s=PERIOD_S, speed_fraction=fraction)
    assume(move.cycles > 50)
    with pytest.raises(MotionLimitError) as caught:
        plan_move(
            joints,
            q,
            rest,
            end,
            period_s=PERIOD_S,
            speed_fraction=fraction,
            duration_s=(move.cycles - 2) * PERIOD_S,
        )
    assert caught.value.code == "too-short"
    longer = plan_move(joints, q, rest, end, period_s=PERIOD_S, duration_s=30.0)
    assert longer.cycles == 30_000


def test_a_target_outside_the_limits_is_refused_with_joint_value_and_limit() -> None:
    with pytest.raises(MotionLimitError) as caught:
        plan_move([joint()], [0.0], [0.0], [2.5], period_s=PERIOD_S)
    error = caught.value
    assert (error.joint, error.value, error.limit) == ("joint1", 2.5, 1.98)
    assert error.code == "position-limit"


@pytest.mark.parametrize(("low", "high", "margin"), [(-2.0, 2.0, 0.02), (0.2, 0.6, 0.004)])
def test_targets_keep_away_from_the_limits(low: float, high: float, margin: float) -> None:
    each, middle = joint(low, high), 0.5 * (low + high)
    assert position_range_rad(each) == pytest.approx((low + margin, high - margin), abs=1e-12)
    for edge, inwards in ((low + margin, 1.0), (high - margin, -1.0)):
        plan_move([each], [middle], [0.0], [edge], period_s=PERIOD_S)
        with pytest.raises(MotionLimitError) as caught:
            plan_move([each], [middle], [0.0], [edge - 1e-3 * inwards], period_s=PERIOD_S)
        assert caught.value.code == "position-limit"
        assert caught.value.limit == pytest.approx(edge, abs=1e-12)


@pytest.mark.parametrize("target", [math.nan, math.inf])
def test_a_target_that_is_no_number_is_refused(target: float) -> None:
    with pytest.raises(MotionLimitError):
        plan_move([joint()], [0.0], [0.0], [target], period_s=PERIOD_S)
    with pytest.raises(MotionLimitError):
        plan_speed([joint()], [0.0], [0.0], [target], period_s=PERIOD_S)


def test_a_move_that_would_swing_out_of_the_limits_is_refused() -> None:
    with pytest.raises(MotionLimitError) as caught:
        plan_move([joint()], [1.9], [3.0], [0.0], period_s=PERIOD_S)
    assert (caught.value.code, caught.value.limit) == ("position-limit", 1.98)
    assert 1.98 < caught.value.value < 3.0


def test_who_stands_outside_its_limits_may_come_back_and_no_further_out() -> None:
    move = plan_move([joint()], [2.3], [0.0], [1.0], period_s=PERIOD_S)
    assert rows_of(move)[:, 0].max() == 2.3
    with pytest.raises(MotionLimitError):
        plan_move([joint()], [2.3], [0.0], [2.2], period_s=PERIOD_S)
    # Nor to where nobody may command it.
    with pytest.raises(MotionLimitError):
        plan_move([joint()], [2.3], [0.0], [1.99], period_s=PERIOD_S)


def test_a_move_too_fast_at_an_end_is_refused() -> None:
    with pytest.raises(MotionLimitError) as caught:
        plan_move([joint()], [0.0], [0.0], [1.0], [4.6], period_s=PERIOD_S)
    error = caught.value
    assert (error.code, error.value, error.limit) == ("speed-limit", 4.6, 4.5)
    # One that has become as fast as its limit may be brought back, no faster one.
    plan_move([joint()], [0.0], [5.0], [1.0], period_s=PERIOD_S)
    with pytest.raises(MotionLimitError) as caught:
        plan_move([joint()], [0.0], [5.1], [1.0], period_s=PERIOD_S)
    error = caught.value
    assert (error.code, error.value, error.limit) == ("speed-limit", 5.1, 5.0)


def test_nowhere_to_go_takes_a_moment() -> None:
    move = plan_move([joint()], [0.5], [0.0], [0.5], period_s=PERIOD_S)
    assert move.cycles == 50
    assert rows_of(move).tolist() == [[0.5, 0, 0]] * 52


def test_a_quintic_of_no_cycles_is_refused() -> None:
    with pytest.raises(MotionError) as caught:
        QuinticMove([0.0], [0.0], [1.0], [0.0], cycles=0, period_s=PERIOD_S)
    assert caught.value.code == "no-cycles"


@given(
    q=st.floats(-1.99, 1.99),
    dq=st.floats(-VELOCITY_MAX, VELOCITY_MAX),
    acceleration=accelerations,
)
def test_a_stop_is_smooth_and_inside_the_limits_where_that_is_possible(
    q: float, dq: float, acceleration: float | None
) -> None:
    each = joint(acceleration=acceleration)
    stop = stop_move([each], [q], [dq], period_s=PERIOD_S)
    assert stop.cycles is not None
    rows = rows_of(stop)
    assert rows[0, :2].tolist() == [q, dq]
    assert rows[-1, 1] == rows[-2, 1] == 0.0
    hardest, usual = min(acceleration or 200.0, 200.0), min(acceleration or 20.0, 20.0)
    # The cubic of speed: peaks of acceleration and jerk for the shortest ramp that it may take.
    shortest_s = max(1.5 * abs(dq) / hardest, 0.05 * usual / hardest - 1e-9)
    assert_smooth(rows, 1, 1.5 * abs(dq) / shortest_s, jerk=6 * abs(dq) / shortest_s**2)
    room = (2.0 - q) if dq > 0 else (q + 2.0)
    if 0.5 * abs(dq) * shortest_s <= room:
        assert np.abs(rows[:, 0]).max() <= 2.0 + 1e-9
    if 0.5 * abs(dq) * max(1.5 * abs(dq) / usual, 0.05) <= room:
        assert np.abs(np.diff(rows[:, 1])).max() <= usual * PERIOD_S * 1.001 + 1e-12


@given(
    dq=st.floats(-VELOCITY_MAX, VELOCITY_MAX),
    target=st.floats(-COMMANDED_MAX, COMMANDED_MAX),
    gentleness=st.sampled_from([1.0, 3.0]),
)
def test_a_change_of_speed_is_smooth_and_then_lasts(
    dq: float, target: float, gentleness: float
) -> None:
    motion = plan_speed([joint()], [0.3], [dq], [target], period_s=PERIOD_S, gentleness=gentleness)
    rows = rows_of(motion, 3000)
    change = abs(target - dq)
    ramp_s = gentleness * max(0.05, 1.5 * change / acceleration_max_rad_s2(joint()))
    assert motion.changing_cycles == math.ceil(ramp_s / PERIOD_S - 1e-9)
    assert_smooth(rows, 1, 1.5 * change / ramp_s, jerk=6 * change / ramp_s**2)
    assert rows[0, :2].tolist() == pytest.approx([0.3, dq])
    assert rows[-1, 1] == target
    assert rows[-1, 0] - rows[-2, 0] == pytest.approx(target * PERIOD_S, abs=1e-12)
    assert motion.cycles is None or target == 0.0
    # It lasts: an hour later it is where that speed leads.
    if target:
        hour = motion.row(3_600_000)[0] - motion.row(3000)[0]
        assert hour == pytest.approx(target * 3597.0, rel=1e-12)


def test_a_speed_beyond_the_limit_is_refused() -> None:
    plan_speed([joint()], [0.0], [0.0], [-4.5], period_s=PERIOD_S)
    with pytest.raises(MotionLimitError) as caught:
        plan_speed([joint()], [0.0], [0.0], [-4.51], period_s=PERIOD_S)
    error = caught.value
    assert (error.code, error.value, error.limit) == ("speed-limit", -4.51, 4.5)


@given(
    q=st.floats(-1.98, 1.98),
    dq=st.floats(-COMMANDED_MAX, COMMANDED_MAX),
    target=st.floats(-COMMANDED_MAX, COMMANDED_MAX),
    acceleration=accelerations,
)
def test_a_speed_with_room_can_be_stopped_from_in_its_range(
    q: float, dq: float, target: float, acceleration: float | None
) -> None:
    each, late_s = joint(acceleration=acceleration), 0.08
    low, high = position_range_rad(each)
    chosen = speed_with_room(each, q, dq, target, (low, high), late_s=late_s)
    # Never faster, and never the other way.
    assert min(target, 0.0) <= chosen <= max(target, 0.0)

    def rests(speed: float) -> float:
        motion = plan_speed([each], [q], [dq], [speed], period_s=PERIOD_S)
        reached = motion.row(motion.changing_cycles)[0] + speed * late_s
        stop = stop_move([joint(-50.0, 50.0, acceleration)], [reached], [speed], period_s=PERIOD_S)
        return stop.row(stop.cycles or 0)[0]

    slack_rad = abs(chosen) * PERIOD_S + 1e-9  # of a ramp that ends between two cycles
    if chosen:
        assert low - slack_rad <= rests(chosen) <= high + slack_rad
    faster = chosen + 1e-3 * target
    if abs(faster) < abs(target) and low <= rests(0.0) <= high:
        # Not slower than it must be.
        assert not low + slack_rad <= rests(faster) <= high - slack_rad


def test_standstill() -> None:
    motion = Standstill([0.5, -1.0])
    assert motion.cycles is None
    assert motion.row(0) == motion.row(10**9) == (0.5, -1.0, 0, 0, 0, 0)


def playback_of(
    amplitude: float, phase: float, *, torque: bool
) -> tuple[Playback, np.ndarray[Any, Any]]:
    t = np.arange(1000) * PERIOD_S
    q = amplitude * np.sin(3.0 * t + phase)[:, np.newaxis]
    dq = 3.0 * amplitude * np.cos(3.0 * t + phase)[:, np.newaxis]
    rows = np.hstack([q, dq, 2.0 + q] if torque else [q, dq])
    playback = Playback(1, has_torque=torque)
    for chunk in (rows[:400], rows[400:]):
        playback.append(chunk.tobytes())
    return playback, rows


@given(
    start=st.floats(-1.5, 1.5),
    amplitude=st.floats(0.01, 0.5),
    phase=st.floats(0, 6),
    torque=st.booleans(),
)
def test_a_playback_is_reached_and_left_without_any_jump(
    start: float, amplitude: float, phase: float, torque: bool
) -> None:
    playback, rows = playback_of(amplitude, phase, torque=torque)
    whole = plan_playback([joint()], [start], [0.0], playback, period_s=PERIOD_S)
    assert whole.cycles is None
    first = next(k for k in range(10_000) if whole.row(k) and whole.number == 1)
    played = np.array([whole.row(first + k) for k in range(999)])
    assert np.array_equal(played[:, : rows.shape[1]], rows[:-1])
    everything = rows_of(whole, first + 2500)
    assert everything[0].tolist() == [start, 0.0, 0.0]
    assert whole.number == 3
    assert everything[-1, 1:].tolist() == [0.0, 0.0]
    assert_smooth(everything, 1, acceleration_max_rad_s2(joint()), jerk=2e4)
    assert np.abs(np.diff(everything[:, 2])).max() <= (0.05 if torque else 0.0)


def test_a_sequence_can_be_asked_for_any_cycle_in_any_order() -> None:
    there = QuinticMove([0.0], [0.0], [1.0], [0.0], cycles=10, period_s=PERIOD_S)
    back = QuinticMove([1.0], [0.0], [0.0], [0.0], cycles=20, period_s=PERIOD_S)
    both = MotionSequence(there, back)
    assert both.cycles == 30
    forward = [both.row(k) for k in range(40)]
    assert [both.row(k) for k in reversed(range(40))] == forward[::-1]
    assert forward[:10] == [there.row(k) for k in range(10)]
    assert forward[10:] == [back.row(k) for k in range(30)]


def test_a_sequence_with_a_jump_is_refused() -> None:
    there = QuinticMove([0.0], [0.0], [1.0], [0.0], cycles=10, period_s=PERIOD_S)
    with pytest.raises(MotionError) as caught:
        MotionSequence(there, Standstill([1.1]))
    assert caught.value.code == "position-jump"
    with pytest.raises(MotionError) as caught:
        MotionSequence(Standstill([1.0]), there)
    assert caught.value.code == "endless"


def test_a_change_of_speed_fades_the_torque_out() -> None:
    motion = SpeedChange(
        [0.0], [0.0], [0.0], ramp_s=[0.05], period_s=PERIOD_S, start_torque=[4.0], fade_s=0.5
    )
    torque = rows_of(motion)[:, 2]
    assert torque[0] == 4.0 and torque[-1] == 0.0
    assert (np.diff(torque) <= 0.0).all()
    assert motion.cycles == 500


def test_a_joint_that_rests_beyond_its_limit_can_be_stopped() -> None:
    beyond_rad = joint().limits.position_max_rad + 0.1
    motion = stop_move([joint()], [beyond_rad], [0.0], period_s=PERIOD_S)
    assert motion.row(motion.cycles or 0)[0] == beyond_rad
