"""What a bench test drives: within every limit, in both directions, clear of aliases."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daq.bench.plan import (
    BREAKAWAYS,
    MOUNTED_TURNS,
    SPEED_SHARE,
    STEPS,
    SWINGS,
    TURN_MAX_S,
    BenchPlan,
    SweepOverrides,
    clear_of_aliases,
    make_plan,
    read_plan,
    run_up_rad,
)
from daq.bench.settling import WINDOW_S
from daq.errors import ConfigError
from daq.motion import planning
from daq.motion.planning import plan_speed, stop_move
from daq.recording.bench_events import LoadArm, MockTruth
from daq.robot import Gains, Joint, Robot, load_robot, shipped_robots

ROBOTS = [load_robot(name) for name in shipped_robots()]
JOINTS = [(robot, joint) for robot in ROBOTS for joint in robot.joints]
ARM = load_robot("laas4")
JOINT3 = ARM.joints[2]
PERIOD_S = 1e-3
LOOK_S = 0.02
HIGHEST_SHARE = 0.9
"""Of the speed limit: what may be asked for."""
HARMONICS = (1, 2, 6, 12)
"""Per pole pair: what a motor's torque ripples with."""
TRUTH = MockTruth(**dict.fromkeys(MockTruth.__struct_fields__, -1.2345678901234567e-105))
ARM_AND_TRUTH: dict[str, Any] = {
    "load_arm": LoadArm(mass_kg=1 / 3, length_m=1 / 7),
    "truth": TRUTH,
}

joints = st.sampled_from(JOINTS)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def wishes(draw: st.DrawFn, highest_rad_s: float) -> SweepOverrides:
    """What a command line may ask of a joint that can be driven so fast."""
    high = draw(st.none() | st.floats(0.2, highest_rad_s))
    low = draw(st.none() | st.floats(1e-3, 0.9 * (high or highest_rad_s)))
    return SweepOverrides(
        speed_min_rad_s=low,
        speed_max_rad_s=high,
        speeds=draw(st.none() | st.integers(2, 50)),
        repetitions=draw(st.none() | st.integers(1, 20)),
        dwell_s=draw(st.none() | st.floats(0.1, 60.0)),
        settle_max_s=draw(st.none() | st.floats(0.5, 60.0)),
    )


def changed(joint: Joint, **parts: dict[str, Any]) -> Joint:
    """A joint that differs: `limits={"velocity_max_rad_s": 3.0}`."""
    for part, values in parts.items():
        new = msgspec.structs.replace(getattr(joint, part), **values)
        joint = msgspec.structs.replace(joint, **{part: new})
    return joint


def passes_of(plan: BenchPlan) -> list[list[float]]:
    """The speeds of each repetition, as they are driven."""
    speeds = [plateau.joint_velocity_rad_s for plateau in plan.plateaus]
    length = len(speeds) // plan.header.repetitions
    return [speeds[first : first + length] for first in range(0, len(speeds), length)]


def problems_of(
    code: str,
    joint: Joint = JOINT3,
    robot: Robot = ARM,
    *,
    is_mounted: bool = False,
    **wish: Any,
) -> tuple[str, ...]:
    """Why a plan is refused."""
    with pytest.raises(ConfigError) as caught:
        make_plan(robot, joint, SweepOverrides(**wish), seed=0, is_mounted=is_mounted)
    assert (caught.value.source, caught.value.code) == (f"bench of joint {joint.name}", code)
    return caught.value.problems


# --- the sweep ------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(data=st.data(), place=joints, seed=seeds, is_held=st.booleans())
def test_every_sweep_keeps_the_limits_and_is_balanced(
    data: st.DataObject, place: tuple[Robot, Joint], seed: int, is_held: bool
) -> None:
    robot, joint = place
    usual_rad_s = SPEED_SHARE * joint.limits.velocity_max_rad_s
    highest_rad_s = HIGHEST_SHARE * joint.limits.velocity_max_rad_s
    asked = data.draw(wishes(highest_rad_s))
    assume(asked.speed_max_rad_s or (asked.speed_min_rad_s or 0.0) < 0.95 * usual_rad_s)

    plan = make_plan(robot, joint, asked, seed=seed, is_reference_held=is_held)

    count = asked.speeds or joint.bench.speeds
    repetitions = asked.repetitions or joint.bench.repetitions
    assert plan.header.plateaus == len(plan.plateaus) == 2 * count * repetitions
    assert (plan.header.repetitions, plan.header.seed) == (repetitions, seed)
    assert plan.settle_max_s == (asked.settle_max_s or joint.bench.settle_max_s)
    first, *others = passes_of(plan)
    assert max(first) <= (asked.speed_max_rad_s or usual_rad_s) <= highest_rad_s
    slowest_rad_s = asked.speed_min_rad_s or math.tau / TURN_MAX_S / joint.drive.gear_reduction
    assert min(map(abs, first)) == pytest.approx(slowest_rad_s, rel=0.02)
    # Every repetition has all speeds, each once in both directions.
    assert len(set(first)) == 2 * count
    assert sorted(first) == sorted(-speed for speed in first)
    assert all(sorted(other) == sorted(first) for other in others)
    for plateau in plan.plateaus:
        motor_rad_s = abs(plateau.joint_velocity_rad_s) * joint.drive.gear_reduction
        assert motor_rad_s * plateau.dwell_s > math.tau, "not a whole turn"
        assert plateau.dwell_s >= (asked.dwell_s or joint.bench.dwell_s)


@settings(max_examples=examples(30))
@given(place=joints, seed=seeds, speeds=st.integers(6, 50), repetitions=st.integers(2, 20))
def test_the_order_is_another_each_time_and_follows_from_the_seed(
    place: tuple[Robot, Joint], seed: int, speeds: int, repetitions: int
) -> None:
    asked = SweepOverrides(speeds=speeds, repetitions=repetitions)
    plan = make_plan(*place, asked, seed=seed)
    assert len(set(map(tuple, passes_of(plan)))) == repetitions
    assert make_plan(*place, asked, seed=seed) == plan
    assert passes_of(make_plan(*place, asked, seed=seed + 1)) != passes_of(plan)


@pytest.mark.parametrize(("robot", "joint"), JOINTS)
def test_speeds_lie_closer_together_where_they_are_slow(robot: Robot, joint: Joint) -> None:
    (speeds,) = passes_of(make_plan(robot, joint, SweepOverrides(repetitions=1), seed=0))
    steps = np.diff(sorted(speed for speed in speeds if speed > 0))
    assert (np.diff(steps) > 0).all()
    assert steps[-1] > 10.0 * steps[0]


def test_the_robot_file_says_what_the_command_line_does_not() -> None:
    bench = {
        "speed_min_rad_s": 0.5,
        "speed_max_rad_s": 2.0,
        "speeds": 3,
        "repetitions": 4,
        "dwell_s": 7.0,
        "settle_max_s": 9.0,
        "gains": Gains(kp_a_per_rad=0.6, kd_a_s_per_rad=0.06),
    }
    joint = changed(JOINT3, bench=bench)
    plan = make_plan(ARM, joint, SweepOverrides(), seed=0)
    assert sorted({abs(speed) for speed in passes_of(plan)[0]}) == pytest.approx(
        [0.5, 0.875, 2.0], rel=0.02
    )
    assert plan.header.repetitions == 4
    assert min(plateau.dwell_s for plateau in plan.plateaus) == 7.0
    assert (plan.settle_max_s, plan.gains) == (9.0, bench["gains"])
    said = make_plan(ARM, joint, SweepOverrides(speeds=2, dwell_s=1.0, kd_a_s_per_rad=0.1), seed=0)
    assert len(said.plateaus) == 16
    assert said.gains == Gains(kp_a_per_rad=0.6, kd_a_s_per_rad=0.1)


@given(place=joints, is_held=st.booleans())
def test_currents_stay_within_the_joints_limit(place: tuple[Robot, Joint], is_held: bool) -> None:
    plan = make_plan(*place, SweepOverrides(), seed=0, is_reference_held=is_held)
    limit_a = place[1].limits.current_max_a
    assert 0.0 < plan.expected_iq_a <= 0.5 * limit_a
    assert plan.expected_iq_a < plan.step_iq_a <= 0.8 * limit_a


# --- aliases --------------------------------------------------------------------------------------


def sampled_means(motor_rad_s: float, pole_pairs: int, *, at_least_s: float = 1.5) -> list[float]:
    """What is left of each ripple when it is sampled over whole turns, at its worst phase."""
    turn_s = math.tau / motor_rad_s
    samples = round(math.ceil(at_least_s / turn_s) * turn_s / PERIOD_S)
    turned_rad = motor_rad_s * PERIOD_S * np.arange(samples)
    return [
        float(abs(np.exp(1j * harmonic * pole_pairs * turned_rad).mean())) for harmonic in HARMONICS
    ]


@given(motor_rad_s=st.floats(0.5, 300.0), pole_pairs=st.integers(1, 100))
def test_a_clear_speed_is_near_and_clear(motor_rad_s: float, pole_pairs: int) -> None:
    clear_rad_s = clear_of_aliases(motor_rad_s, pole_pairs)
    assert clear_rad_s == pytest.approx(motor_rad_s, rel=0.02)
    assert max(sampled_means(clear_rad_s, pole_pairs)) < 0.02
    assert clear_of_aliases(clear_rad_s, pole_pairs) == clear_rad_s


@given(
    harmonic=st.sampled_from(HARMONICS), pole_pairs=st.integers(7, 30), multiple=st.integers(1, 6)
)
def test_a_speed_that_aliases_is_not_kept(harmonic: int, pole_pairs: int, multiple: int) -> None:
    motor_rad_s = math.tau * multiple / PERIOD_S / (harmonic * pole_pairs)
    assert max(sampled_means(motor_rad_s, pole_pairs)) == pytest.approx(1.0)
    assert clear_of_aliases(motor_rad_s, pole_pairs) != motor_rad_s


@settings(max_examples=examples(40))
@given(place=joints, velocity_max_rad_s=st.floats(0.5, 8.0), speeds=st.integers(2, 12))
@example(place=(ARM, JOINT3), velocity_max_rad_s=5.931 * 0.95 / 0.85, speeds=2)
def test_no_planned_speed_aliases_whatever_the_limit(
    place: tuple[Robot, Joint], velocity_max_rad_s: float, speeds: int
) -> None:
    """The fastest one used to be pushed back onto an alias: 85 % of 6.629 rad/s, say."""
    robot, joint = place
    joint = changed(joint, limits={"velocity_max_rad_s": velocity_max_rad_s})
    plan = make_plan(robot, joint, SweepOverrides(speeds=speeds, repetitions=1), seed=0)
    pole_pairs = robot.motor_of(joint).pole_pairs
    for plateau in plan.plateaus:
        speed_rad_s = abs(plateau.joint_velocity_rad_s)
        motor_rad_s = speed_rad_s * joint.drive.gear_reduction
        assert max(sampled_means(motor_rad_s, pole_pairs)) < 0.02
        assert speed_rad_s <= SPEED_SHARE * velocity_max_rad_s


def test_an_alias_is_not_avoided_by_going_faster_than_was_asked_for() -> None:
    joint = ARM.joints[0]
    alias_rad_s = math.tau * 3000.0 / (12 * 14) / 31.0
    asked = SweepOverrides(speeds=2, repetitions=1, speed_max_rad_s=1.002 * alias_rad_s)
    (speeds,) = passes_of(make_plan(ARM, joint, asked, seed=0))
    assert 0.98 * alias_rad_s < max(speeds) < alias_rad_s


# --- a mounted joint ------------------------------------------------------------------------------


def driven_rad(joint: Joint, plan: BenchPlan, speed_rad_s: float) -> np.ndarray:
    """The reference of one plateau: run-up, window, one look too late, stop."""
    assert plan.header.window_rad is not None
    near, far = plan.header.window_rad if speed_rad_s > 0 else plan.header.window_rad[::-1]
    start_rad = near - math.copysign(run_up_rad(speed_rad_s), speed_rad_s)
    motion = plan_speed([joint], [start_rad], [0.0], [speed_rad_s], period_s=PERIOD_S)
    cycles = round((abs(far - start_rad) / abs(speed_rad_s) + 2.0) / PERIOD_S)
    rows = np.array([motion.row(k)[:2] for k in range(cycles)])
    sign = math.copysign(1.0, speed_rad_s)
    past_near = int(np.flatnonzero(sign * (rows[:, 0] - near) > 0)[0])
    at_speed = int(np.flatnonzero(rows[:, 1] == speed_rad_s)[0])
    assert (past_near - at_speed) * PERIOD_S > 2.0 * WINDOW_S, "no time to settle"
    seen = int(np.flatnonzero(sign * (rows[:, 0] - far) > 0)[0]) + round(LOOK_S / PERIOD_S)
    q, dq = rows[seen]
    stop = stop_move([joint], [q], [dq], period_s=PERIOD_S)
    braking = [stop.row(k)[0] for k in range(1, (stop.cycles or 0) + 1)]
    return np.concatenate([rows[: seen + 1, 0], braking])


@pytest.mark.parametrize("joint", ARM.joints, ids=lambda joint: joint.name)
def test_a_mounted_joint_stays_within_its_range(joint: Joint) -> None:
    plan = make_plan(ARM, joint, SweepOverrides(repetitions=1), seed=0, is_mounted=True)
    low, high = plan.header.window_rad or (0.0, 0.0)
    turns = (high - low) * joint.drive.gear_reduction / math.tau
    assert turns == pytest.approx(MOUNTED_TURNS) == plan.turns
    limits = joint.limits
    for plateau in plan.plateaus:
        way_rad = driven_rad(joint, plan, plateau.joint_velocity_rad_s)
        assert limits.position_min_rad < way_rad.min() <= low
        assert high <= way_rad.max() < limits.position_max_rad
    assert (plan.breakaways, plan.steps) == (0, 0)
    assert plan.gains == joint.control.velocity, "tuned for what it carries"


@settings(max_examples=examples(60))
@given(
    limits=st.tuples(st.floats(3.0, 1000.0), st.floats(0.02, 20.0), st.floats(0.3, 20.0)),
    middle_rad=st.floats(-3.0, 3.0),
    speed_min_rad_s=st.none() | st.floats(1e-4, 0.01),
    acceleration=st.sampled_from([None, 40.0, 3.0, 0.5]),
)
@example(limits=(400.0, 0.12, 8.0), middle_rad=0.0, speed_min_rad_s=0.002, acceleration=None)
@example(limits=(94.6, 0.532, 1.9), middle_rad=0.0, speed_min_rad_s=None, acceleration=None)
@example(limits=(31.0, 12.0, 5.0), middle_rad=0.0, speed_min_rad_s=None, acceleration=1.0)
def test_any_mounted_joint_fits_or_is_told_that_its_range_is_too_small(
    limits: tuple[float, float, float],
    middle_rad: float,
    speed_min_rad_s: float | None,
    acceleration: float | None,
) -> None:
    """The run-up used to begin outside a small range, or --speed-min, never given, was blamed."""
    gear_reduction, range_rad, velocity_max_rad_s = limits
    joint = changed(
        JOINT3,
        drive={"gear_reduction": gear_reduction, "friction": JOINT3.drive.friction},
        limits={
            "position_min_rad": middle_rad - 0.5 * range_rad,
            "position_max_rad": middle_rad + 0.5 * range_rad,
            "velocity_max_rad_s": velocity_max_rad_s,
            "acceleration_max_rad_s2": acceleration,
        },
        control={"velocity": Gains(kp_a_per_rad=5.0, kd_a_s_per_rad=0.2)},
    )
    asked = SweepOverrides(speeds=2, repetitions=1, speed_min_rad_s=speed_min_rad_s)
    try:
        plan = make_plan(ARM, joint, asked, seed=0, is_mounted=True)
    except ConfigError as error:
        assert error.code == "small-range"
        room_rad = 0.5 * range_rad - MOUNTED_TURNS * math.pi / gear_reduction
        assert room_rad < max(0.2 * range_rad, 0.08)
        return
    speeds = {plateau.joint_velocity_rad_s for plateau in plan.plateaus}
    for speed_rad_s in (min(speeds), max(speeds)):
        way_rad = driven_rad(joint, plan, speed_rad_s) - middle_rad
        assert np.abs(way_rad).max() <= 0.5 * range_rad
        # Where it starts can be commanded, and it brakes no harder than in any move.
        assert abs(way_rad[0]) <= 0.5 * range_rad - min(0.02, 0.01 * range_rad)
        change_rad_s = np.diff(way_rad, n=2) / PERIOD_S
        highest_rad_s = 1.01 * PERIOD_S * planning.acceleration_max_rad_s2(joint) + 1e-9
        assert np.abs(change_rad_s).max() <= highest_rad_s


def test_a_range_that_is_too_small_is_named() -> None:
    joint = changed(JOINT3, limits={"position_min_rad": -0.5, "position_max_rad": 0.7})
    (problem,) = problems_of("small-range", joint, is_mounted=True)
    assert "1.2 rad" in problem and "0.811 rad" in problem


# --- refusals -------------------------------------------------------------------------------------


def test_a_speed_beyond_the_limit_is_refused() -> None:
    (problem,) = problems_of("speed-limit", speed_max_rad_s=4.51)
    assert problem.startswith("--speed-max 4.51 rad/s: ")
    assert all(value in problem for value in ("4.5 rad/s", "90%", "5 rad/s"))
    for is_held in (False, True):
        wish = SweepOverrides(speed_max_rad_s=4.5)
        plan = make_plan(ARM, JOINT3, wish, seed=0, is_reference_held=is_held)
        assert max(passes_of(plan)[0]) == pytest.approx(4.5, rel=0.02)
    fast = changed(JOINT3, bench={"speed_max_rad_s": 4.51})
    (problem,) = problems_of("speed-limit", fast)
    assert "4.5 rad/s" in problem
    (problem,) = problems_of("speed-limit", is_mounted=True, speed_max_rad_s=4.0)
    assert "3.743 rad/s" in problem


def test_less_than_the_highest_speed_unless_it_is_asked_for() -> None:
    for is_held in (False, True):
        plan = make_plan(ARM, JOINT3, SweepOverrides(), seed=0, is_reference_held=is_held)
        assert max(passes_of(plan)[0]) == pytest.approx(0.85 * 5.0, rel=0.02)
        assert max(passes_of(plan)[0]) <= 0.85 * 5.0


@given(speed_rad_s=st.floats(0.01, 4.5), part=st.floats(0.0, 1.0))
def test_the_slowest_speed_must_be_slower_than_the_fastest(speed_rad_s: float, part: float) -> None:
    low = speed_rad_s + part
    (problem,) = problems_of("speed-limit", speed_min_rad_s=low, speed_max_rad_s=speed_rad_s)
    assert problem.startswith(f"--speed-min {low:.4g} rad/s: ")
    assert problem.endswith(f"--speed-max {speed_rad_s:.4g}")


def test_every_wrong_wish_is_said_at_once() -> None:
    problems = problems_of("speed-limit", speed_min_rad_s=7.0, speed_max_rad_s=6.0)
    assert [problem.split()[0] for problem in problems] == ["--speed-max", "--speed-min"]


def robot_with(following_error_max_rad: float) -> Robot:
    safety = msgspec.structs.replace(ARM.safety, following_error_max_rad=following_error_max_rad)
    return msgspec.structs.replace(ARM, safety=safety)


@pytest.mark.parametrize("is_mounted", [False, True])
@settings(max_examples=examples(30))
@given(
    joint=st.sampled_from(ARM.joints),
    kp=st.none() | st.floats(1e-6, 0.03),
    limit_rad=st.floats(0.02, 0.5),
)
@example(joint=JOINT3, kp=None, limit_rad=0.03)
def test_gains_that_lag_too_far_get_a_suggestion_that_works(
    is_mounted: bool, joint: Joint, kp: float | None, limit_rad: float
) -> None:
    """The suggestion used to be what had just been refused, where the limit was strict."""
    robot = robot_with(limit_rad)
    try:
        plan = make_plan(
            robot, joint, SweepOverrides(kp_a_per_rad=kp), seed=0, is_mounted=is_mounted
        )
    except ConfigError as error:
        assert error.code == "lag-limit"
        (problem,) = error.problems
    else:
        assert kp is None or kp == plan.gains.kp_a_per_rad
        return
    found = re.fullmatch(
        r"--kp (\S+) A/rad: .* (\S+) rad .* following_error_max_rad = (\S+); "
        r".*--kp (\S+) --kd (\S+)",
        problem,
    )
    assert found is not None
    refused, lag_rad, limit, better_kp, better_kd = map(float, found.groups())
    assert kp is None or refused == pytest.approx(kp, rel=1e-5)
    assert limit == pytest.approx(limit_rad, rel=1e-5)
    assert lag_rad >= 0.2 * limit_rad * 0.99
    better = SweepOverrides(kp_a_per_rad=better_kp, kd_a_s_per_rad=better_kd)
    plan = make_plan(robot, joint, better, seed=0, is_mounted=is_mounted)
    assert plan.gains == Gains(kp_a_per_rad=better_kp, kd_a_s_per_rad=better_kd)


def test_a_load_arm_needs_no_sweep() -> None:
    """Soft gains and odd speeds are of no concern: it is led by the joint's own gains."""
    asked = SweepOverrides(kp_a_per_rad=1e-6, speed_max_rad_s=99.0)
    plan = make_plan(ARM, JOINT3, asked, seed=3, **ARM_AND_TRUTH)
    assert (plan.header.kind, plan.plateaus, plan.header.plateaus) == ("load_arm", (), 0)
    assert (plan.breakaways, plan.steps, plan.parts) == (0, 0, 2 * SWINGS)
    assert plan.expected_s > 60.0


# --- from one process to another ------------------------------------------------------------------


@settings(max_examples=examples(20))
@given(data=st.data(), place=joints, seed=seeds, kind=st.sampled_from(["free", "arm", "truth"]))
def test_a_plan_survives_json(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    place: tuple[Robot, Joint],
    seed: int,
    kind: str,
) -> None:
    robot, joint = place
    asked = data.draw(wishes(SPEED_SHARE * joint.limits.velocity_max_rad_s))
    extras = {"free": {}, "arm": ARM_AND_TRUTH, "truth": {"truth": TRUTH}}[kind]
    plan = make_plan(robot, joint, asked, seed=seed, **extras)
    path = tmp_path_factory.getbasetemp() / "plan.json"
    path.write_bytes(msgspec.json.encode(plan))
    assert read_plan(path) == plan


PLAN_TEXT = msgspec.json.encode(make_plan(ARM, JOINT3, SweepOverrides(), seed=0))
BROKEN = {
    "empty": b"",
    "cut off": PLAN_TEXT[:-20],
    "no plan": b"{}",
    "another key": PLAN_TEXT[:-1] + b',"speed":1}',
    "another type": PLAN_TEXT.replace(b'"turns":1', b'"turns":"1"'),
    "another kind": PLAN_TEXT.replace(b'"kind":"free"', b'"kind":"loose"'),
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_plan_is_refused_by_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_plan(path)
    assert (caught.value.source, caught.value.code) == (str(path), "no-plan")


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "plan.json", tmp_path):
        with pytest.raises(ConfigError) as caught:
            read_plan(path)
        assert (caught.value.source, caught.value.code) == (str(path), "no-plan")


def test_the_header_of_the_largest_plan_fits_into_an_event() -> None:
    """An event's text is cut off after 2000 characters: a recording without it tells nothing."""
    joint = msgspec.structs.replace(JOINT3, name="j" * 40)
    asked = SweepOverrides(speeds=50, repetitions=20)
    for is_mounted, extras in ((False, ARM_AND_TRUTH), (False, {"truth": TRUTH}), (True, {})):
        plan = make_plan(ARM, joint, asked, seed=10**38, is_mounted=is_mounted, **extras)
        assert plan.header.plateaus in (0, 2000)
        assert len(msgspec.json.encode(plan.header)) < 1000


# --- how far it is --------------------------------------------------------------------------------


def test_everything_that_is_to_be_done_is_counted() -> None:
    plan = make_plan(ARM, JOINT3, SweepOverrides(speeds=2, repetitions=3), seed=0)
    assert (plan.breakaways, plan.steps) == (BREAKAWAYS, STEPS)
    assert plan.parts == 12 + BREAKAWAYS + STEPS
    assert plan.expected_s > sum(plateau.dwell_s for plateau in plan.plateaus)
