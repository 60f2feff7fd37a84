"""Plans a bench test: which speeds it drives, in which order, with which gains.

The speeds lie closer together where friction changes with speed: v = v_min + (v_max − v_min)·x² for
evenly spaced x. None of them lets a harmonic of the motor's ripple alias to a constant: sampled
once per millisecond it would look like friction.

A free joint turns without end, but its motor's position wraps on the wire: `room`.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec

from daq.bench.room import check_room
from daq.boards.wire_range import WireRange
from daq.errors import ConfigError
from daq.motion.planning import COMMANDED_SHARE, acceleration_max_rad_s2, speed_max_rad_s
from daq.recording.bench_events import (
    PLATEAU,
    RAMP,
    STEP,
    SWING,
    BenchHeader,
    LoadArm,
    MockTruth,
)
from daq.robot import DrivenJoint, DrivenRobot, Gains
from daq.robot.velocity_gains import advice, choose_gains

TURN_MAX_S = 4.0
"""How long the slowest plateau takes for a motor turn, by default."""
SPEED_SHARE = 0.85
"""Of the joint's speed limit, unless more is asked for: the rest is for overshoot."""
BREAKAWAYS, STEPS = 10, 6
SWING_RAD, SWING_RAD_S, SWINGS = math.pi / 2.0, 0.6, 6
"""Of a load arm: angle to both sides, speed, and how often."""
PART_BEGINS = frozenset((PLATEAU, RAMP, STEP, SWING))
"""Kinds of events that show how far a test is; `BenchPlan.parts` is how many there will be."""
MOUNTED_TURNS = 4
"""Motor turns over which a mounted joint is averaged, the same ones at every speed."""
_RUN_UP_S, _BRAKE_S = 1.2, 0.2
"""How long a mounted joint takes in front of its window, and behind it: at its speed."""
_MOUNTED_MIN_RAD_S = 0.01
"""A mounted joint that has no room for more than this cannot be measured."""
_RATE_HZ, _ALIAS_HZ = 1000.0, 15.0
_HARMONICS = (1, 2, 6, 12)
"""Per pole pair: electrical period, its double, six-step ripple and cogging."""


class PlannedPlateau(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A speed at the joint, and how long it is measured at least once it has settled."""

    joint_velocity_rad_s: float
    dwell_s: float


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the loop must know to drive a bench test.

    Attributes:
        plateaus: In the order in which they are driven, as far as there is room on the wire.
        turns: Whole motor turns that a plateau lasts at least.
        settle_max_s: A plateau that has not settled after this long is given up.
        breakaways: Slow current ramps from rest.
        expected_iq_a: Current that friction is expected to take, until it was measured.
        step_iq_a: Current of a step.
        gains: Of the velocity PI, as in the robot that is driven.
        advice: What to try when those gains turn out to be wrong.
    """

    header: BenchHeader
    plateaus: tuple[PlannedPlateau, ...]
    turns: int
    settle_max_s: float
    breakaways: int
    steps: int
    expected_iq_a: float
    step_iq_a: float
    gains: Gains
    advice: str

    @property
    def parts(self) -> int:
        """How many plateaus, ramps, steps and swings there are."""
        swings = 2 * SWINGS if self.header.load_arm is not None else 0
        return len(self.plateaus) + self.breakaways + self.steps + swings

    @property
    def expected_s(self) -> float:
        """About how long it takes."""
        if self.header.load_arm is not None:
            return 4.0 + 2 * SWINGS * swing_s(2.0 * SWING_RAD)
        overhead_s = {"mounted": 2.5, "free": 1.6}[self.header.kind]
        if self.gains.kp_a_per_rad < 5.0 * self.gains.kd_a_s_per_rad:
            overhead_s += 0.5  # a slow integral part settles late
        dwell_s = sum(plateau.dwell_s + overhead_s for plateau in self.plateaus)
        return 4.0 + dwell_s + 1.8 * self.breakaways + 1.2 * self.steps


class SweepOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says in place of the robot file; None to leave it."""

    speed_min_rad_s: float | None = None
    speed_max_rad_s: float | None = None
    speeds: int | None = None
    repetitions: int | None = None
    dwell_s: float | None = None
    settle_max_s: float | None = None
    kp_a_per_rad: float | None = None
    kd_a_s_per_rad: float | None = None


def swing_s(way_rad: float) -> float:
    """Return how long a load arm takes for a way, smoothly from rest to rest."""
    return max(1.875 * abs(way_rad) / SWING_RAD_S, 0.5)


def read_plan(path: Path) -> BenchPlan:
    """Read a plan that one process has written for another.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=BenchPlan)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            str(path), [f"not a plan of a bench test: {error}"], code="no-plan"
        ) from error


def make_plan(
    robot: DrivenRobot,
    joint: DrivenJoint,
    wishes: SweepOverrides,
    *,
    seed: int,
    is_mounted: bool = False,
    is_reference_held: bool = False,
    load_arm: LoadArm | None = None,
    truth: MockTruth | None = None,
    wire: WireRange | None = None,
) -> BenchPlan:
    """Plan the test of one joint; `seed` is of the order of the speeds.

    A mounted joint is part of the arm and keeps to its range. `is_reference_held` says that its
    board holds the reference between frames. A load arm is swung in place of everything else.
    `wire` is how far the motor may be led; without it, it is not checked that plateaus fit.

    Raises:
        ConfigError: A wish is beyond a limit, or contradicts another one.
    """
    bench, motor, drive = joint.bench, robot.motor_of(joint), joint.drive
    chosen = choose_gains(joint, motor, is_reference_held=is_reference_held)
    if is_mounted:
        chosen = joint.control.velocity  # tuned for what it carries
    gains = bench.gains or chosen
    changes = {
        name: value
        for name in ("kp_a_per_rad", "kd_a_s_per_rad")
        if (value := getattr(wishes, name)) is not None
    }
    gains = msgspec.structs.replace(gains, **changes)
    repetitions = wishes.repetitions or bench.repetitions
    settle_max_s = wishes.settle_max_s or bench.settle_max_s
    window_rad = _window(joint) if is_mounted else None
    plateaus: tuple[PlannedPlateau, ...] = ()
    if load_arm is None:
        plateaus = _sweep(
            robot,
            joint,
            wishes,
            repetitions=repetitions,
            seed=seed,
            window_rad=window_rad,
        )
    k_i = motor.torque_constant_nm_per_a
    coulomb_nm = drive.joint_coulomb_nm / drive.torque_ratio
    lag_rad = coulomb_nm / k_i / max(gains.kp_a_per_rad, 1e-9) / drive.gear_reduction
    lag_max_rad = robot.safety.following_error_max_rad
    if load_arm is None and lag_rad > 0.2 * lag_max_rad:
        enough = coulomb_nm / k_i / drive.gear_reduction / (0.2 * lag_max_rad)
        kp = max(chosen.kp_a_per_rad, float(f"{1.06 * enough:.2g}"))  # still enough when rounded
        better = msgspec.structs.replace(chosen, kp_a_per_rad=kp)
        problem = (
            f"--kp {gains.kp_a_per_rad:g} A/rad: with the robot file's friction the joint would lag"
            f" {lag_rad:.3g} rad behind, allowed is a fifth of following_error_max_rad = "
            f"{lag_max_rad:g}; {advice(better)}"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem], code="lag-limit")
    if wire is not None and not is_mounted:
        for plateau in plateaus:
            speed_rad_s = plateau.joint_velocity_rad_s
            check_room(joint, speed_rad_s, plateau.dwell_s, settle_max_s, wire)
    if load_arm is not None:
        _check_load(robot, joint, load_arm, coulomb_nm)
    expected_iq_a = min(max(coulomb_nm / k_i, 0.01), 0.5 * joint.limits.current_max_a)
    # Half the highest speed within 0.3 s.
    fastest_rad_s = joint.limits.velocity_max_rad_s * drive.gear_reduction
    step_nm = coulomb_nm + drive.rotor_inertia_kg_m2 * 0.5 * fastest_rad_s / 0.3
    is_free = not is_mounted and load_arm is None
    return BenchPlan(
        header=BenchHeader(
            kind="load_arm" if load_arm else "mounted" if is_mounted else "free",
            joint=joint.name,
            plateaus=len(plateaus),
            repetitions=repetitions,
            seed=seed,
            window_rad=window_rad,
            load_arm=load_arm,
            truth=truth,
        ),
        plateaus=plateaus,
        turns=MOUNTED_TURNS if is_mounted else 1,
        settle_max_s=settle_max_s,
        breakaways=BREAKAWAYS if is_free else 0,
        steps=STEPS if is_free else 0,
        expected_iq_a=expected_iq_a,
        step_iq_a=min(max(step_nm / k_i, 2.0 * expected_iq_a), 0.8 * joint.limits.current_max_a),
        gains=gains,
        advice=advice(chosen),
    )


def _check_load(robot: DrivenRobot, joint: DrivenJoint, arm: LoadArm, coulomb_nm: float) -> None:
    """Check that the motor can lift the weight."""
    weight_nm = arm.mass_kg * arm.length_m * math.hypot(*robot.gravity_m_s2)
    needed_a = (weight_nm + coulomb_nm * joint.drive.torque_ratio) / abs(robot.nm_per_a(joint))
    allowed_a = 0.8 * joint.limits.current_max_a
    if needed_a > allowed_a:
        problem = (
            f"--load-arm {arm.mass_kg:g} {arm.length_m:g}: {weight_nm:.3g} N·m at the joint take "
            f"{needed_a:.3g} A, at most {allowed_a:.3g} A may be used (80% of current_max_a)"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem], code="current-limit")


def clear_of_aliases(
    motor_rad_s: float, pole_pairs: int, *, highest_rad_s: float = math.inf
) -> float:
    """Return the nearest speed at which no harmonic of the ripple is sampled as a constant."""
    step_rad_s = 0.002 * motor_rad_s
    for number in range(200):
        offset = (number + 1) // 2 * (-step_rad_s if number % 2 else step_rad_s)
        speed_rad_s = motor_rad_s + offset
        if speed_rad_s <= highest_rad_s and _is_clear(speed_rad_s, pole_pairs):
            return speed_rad_s
    return motor_rad_s


def _is_clear(motor_rad_s: float, pole_pairs: int) -> bool:
    for harmonic in _HARMONICS:
        multiple = harmonic * pole_pairs * motor_rad_s / math.tau / _RATE_HZ
        nearest = round(multiple)
        if nearest and abs(multiple - nearest) * _RATE_HZ < _ALIAS_HZ:
            return False
    return True


def _sweep(
    robot: DrivenRobot,
    joint: DrivenJoint,
    wishes: SweepOverrides,
    *,
    repetitions: int,
    seed: int,
    window_rad: tuple[float, float] | None,
) -> tuple[PlannedPlateau, ...]:
    bench, gear = joint.bench, joint.drive.gear_reduction
    limit_rad_s = joint.limits.velocity_max_rad_s
    highest_rad_s, usual_rad_s = speed_max_rad_s(joint), SPEED_SHARE * limit_rad_s
    slowest_rad_s = min(math.tau / TURN_MAX_S / gear, 0.1 * highest_rad_s)
    if window_rad is not None:
        highest_rad_s = min(highest_rad_s, _speed_within(joint, window_rad))
        slowest_rad_s = max(slowest_rad_s, (window_rad[1] - window_rad[0]) / TURN_MAX_S)
        slowest_rad_s = min(slowest_rad_s, 0.5 * highest_rad_s)
    low = wishes.speed_min_rad_s or bench.speed_min_rad_s or slowest_rad_s
    high = wishes.speed_max_rad_s or bench.speed_max_rad_s or min(usual_rad_s, highest_rad_s)
    count = wishes.speeds or bench.speeds
    dwell_s = wishes.dwell_s or bench.dwell_s
    problems = []
    if high > highest_rad_s * (1.0 + 1e-9):
        why = "its range leaves no room for more" if window_rad else "the rest is for overshoot"
        problems.append(
            f"--speed-max {high:.4g} rad/s: at most {highest_rad_s:.4g} rad/s"
            f" ({COMMANDED_SHARE:.0%} of the limit {limit_rad_s:g} rad/s; {why})"
        )
    if not low < high:
        problems.append(f"--speed-min {low:.4g} rad/s: must be less than --speed-max {high:.4g}")
    if problems:
        raise ConfigError(f"bench of joint {joint.name}", problems, code="speed-limit")
    pole_pairs, high = robot.motor_of(joint).pole_pairs, min(high, highest_rad_s)
    plateaus = []
    for number in range(count):
        part = (number / (count - 1)) ** 2
        wanted_rad_s = min(low + (high - low) * part, high) * gear
        motor_rad_s = clear_of_aliases(wanted_rad_s, pole_pairs, highest_rad_s=high * gear)
        speed_rad_s = min(motor_rad_s / gear, high)
        # The ends of the range decide the slope: the fast end is measured longer.
        longer_s = dwell_s * (1.0 + part)
        turn_s = math.tau / (speed_rad_s * gear)
        plateaus += [
            PlannedPlateau(
                joint_velocity_rad_s=sign * speed_rad_s, dwell_s=max(longer_s, turn_s * 1.02)
            )
            for sign in (1.0, -1.0)
        ]
    order = random.Random(seed)
    driven: list[PlannedPlateau] = []
    for _ in range(repetitions):
        driven += order.sample(plateaus, len(plateaus))
    return tuple(driven)


def _window(joint: DrivenJoint) -> tuple[float, float]:
    """Return where a mounted joint is measured: whole motor turns in the middle of its range."""
    limits = joint.limits
    middle_rad = 0.5 * (limits.position_min_rad + limits.position_max_rad)
    half_rad = 0.5 * MOUNTED_TURNS * math.tau / joint.drive.gear_reduction
    range_rad = limits.position_max_rad - limits.position_min_rad
    window_rad = middle_rad - half_rad, middle_rad + half_rad
    if half_rad >= 0.3 * range_rad or _speed_within(joint, window_rad) < _MOUNTED_MIN_RAD_S:
        problem = (
            f"its range of {range_rad:.3g} rad is too small for {MOUNTED_TURNS} motor turns "
            f"({2.0 * half_rad:.3g} rad) and a run-up"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem], code="small-range")
    return window_rad


def run_up_rad(joint_velocity_rad_s: float) -> float:
    """Return how far in front of its window a mounted joint starts."""
    return abs(joint_velocity_rad_s) * _RUN_UP_S + 0.02


def _speed_within(joint: DrivenJoint, window_rad: tuple[float, float]) -> float:
    """Return the speed at which run-up, window and braking fit into the range and the time."""
    limits = joint.limits
    room_rad = min(window_rad[0] - limits.position_min_rad, limits.position_max_rad - window_rad[1])
    highest_rad_s = (0.9 * room_rad - 0.05) / (_RUN_UP_S + _BRAKE_S)
    # braking_rad ≤ _BRAKE_S times the speed
    return min(highest_rad_s, _BRAKE_S * acceleration_max_rad_s2(joint) / 0.75)
