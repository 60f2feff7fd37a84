"""What a bench test drives: within every limit, in both directions, clear of aliases."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daq.bench.plan import (
    BREAKAWAYS,
    HELD_SPEED_SHARE,
    MOUNTED_TURNS,
    SPEED_SHARE,
    STEPS,
    SWINGS,
    TURN_MAX_S,
    BenchPlan,
    Wishes,
    clear_of_aliases,
    is_progress,
    make_plan,
    progress_text,
    read_plan,
    run_up_rad,
)
from daq.bench.settling import WINDOW_S
from daq.errors import ConfigError
from daq.motion.planning import plan_speed, stop_move
from daq.recording.bench_events import BenchHeader, LoadArm, MockTruth
from daq.robot import Joint, Robot, load_robot, shipped_robots

ROBOTS = {name: load_robot(name) for name in shipped_robots()}
JOINTS = [(robot, joint) for robot in ROBOTS.values() for joint in robot.joints]
ARM = ROBOTS["laas4"]
JOINT3 = ARM.joints[2]
PERIOD_S = 1e-3
LOOK_S = 0.02
HARMONICS = (1, 2, 6, 12)
"""Per pole pair: what the motor's torque ripples with."""

joints = st.sampled_from(JOINTS)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def wishes(draw: st.DrawFn, highest_rad_s: float) -> Wishes:
    """What a command line may ask of a joint that can turn so fast."""
    high = draw(st.none() | st.floats(0.2, highest_rad_s))
    low = draw(st.none() | st.floats(1e-3, 0.9 * (high or highest_rad_s)))
    return Wishes(
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


def problem_of(joint: Joint = JOINT3, robot: Robot = ARM, *, is_mounted: bool = False, **wish: Any):
    """The only problem for which a plan is refused."""
    with pytest.raises(ConfigError) as caught:
        make_plan(robot, joint, Wishes(**wish), seed=0, is_mounted=is_mounted)
    assert caught.value.source == f"bench of joint {joint.name}"
    (problem,) = caught.value.problems
    return problem


def sampled_mean(motor_rad_s: float, cycles_per_turn: int, duration_s: float) -> float:
    """Mean of a ripple that is sampled once per millisecond, at its worst phase."""
    t_s = np.arange(round(duration_s / PERIOD_S)) * PERIOD_S
    return float(abs(np.exp(1j * cycles_per_turn * motor_rad_s * t_s).mean()))


# --- the sweep ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data(), place=joints, seed=seeds, is_held=st.booleans())
def test_every_sweep_keeps_limits_and_is_balanced(
    data: st.DataObject, place: tuple[Robot, Joint], seed: int, is_held: bool
) -> None:
    robot, joint = place
    share = HELD_SPEED_SHARE if is_held else SPEED_SHARE
    highest_rad_s = share * joint.limits.velocity_max_rad_s
    asked = data.draw(wishes(highest_rad_s))

    plan = make_plan(robot, joint, asked, seed=seed, is_reference_held=is_held)

    count = asked.speeds or joint.bench.speeds
    repetitions = asked.repetitions or joint.bench.repetitions
    assert plan.header.plateaus == len(plan.plateaus) == 2 * count * repetitions
    assert plan.header.repetitions == repetitions
    speeds = [plateau.joint_velocity_rad_s for plateau in plan.plateaus]
    fastest = asked.speed_max_rad_s or highest_rad_s
    assert max(map(abs, speeds)) <= min(fastest, highest_rad_s) * (1.0 + 1e-12)
    slowest = asked.speed_min_rad_s or math.tau / TURN_MAX_S / joint.drive.gear_reduction
    assert min(map(abs, speeds)) == pytest.approx(slowest, rel=0.04)
    # Every repetition holds every speed once in each direction.
    passes = list(itertools.batched(speeds, 2 * count)) if False else [
        speeds[first : first + 2 * count] for first in range(0, len(speeds), 2 * count)
    ]
    assert all(sorted(each) == sorted(passes[0]) for each in passes)
    directions = Counter(math.copysign(1.0, speed) for speed in passes[0])
    assert directions == {1.0: count, -1.0: count}
    assert sorted(passes[0]) == sorted(-speed for speed in passes[0])
    assert len(set(passes[0])) == 2 * count
    # Each lasts as long as was asked for, and the slow ones a whole motor turn.
    gear = joint.drive.gear_reduction
    for plateau in plan.plateaus:
        turned_rad = abs(plateau.joint_velocity_rad_s) * gear * plateau.dwell_s
        assert turned_rad >= math.tau
        assert plateau.dwell_s >= (asked.dwell_s or joint.bench.dwell_s)
    assert plan.settle_max_s == (asked.settle_max_s or joint.bench.settle_max_s)
    assert plan.turns == 1


def passes_of(plan: BenchPlan) -> list[tuple[float, ...]]:
    length = len(plan.plateaus) // plan.header.repetitions
    speeds = [plateau.joint_velocity_rad_s for plateau in plan.plateaus]
    return [tuple(speeds[first : first + length]) for first in range(0, len(speeds), length)]
