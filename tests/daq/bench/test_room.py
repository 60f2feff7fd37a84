"""The bench turns a free joint without end, but never its reference over the wrap of the wire."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG, examples, only
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_rig import Rig
from wire_places import check_references, true_rad_s, wire_turns

from daq.bench.plan import BenchPlan, SweepOverrides, make_plan
from daq.bench.room import settle_s, way_rad
from daq.bench.run import BenchRun
from daq.boards.wire_range import wire_range
from daq.errors import ConfigError
from daq.loop.schedule import Chore
from daq.recording.bench_events import PLATEAU_DATA, PlateauData
from daq.recording.states import State
from daq.robot import Joint, Robot, load_robot, parse_robot, robot_text, shipped_robots
from daq.robot.editing.edit import bench_text
from firmware_protocol.profiles import PROFILES
from hw_mocks.boards.encoder import Encoder

JOINTS = [(robot, joint) for robot in map(load_robot, shipped_robots()) for joint in robot.joints]


def planned(robot: Robot, joint: Joint, profile: str, **wishes: Any) -> BenchPlan:
    behaviour = PROFILES[profile].behaviour
    return make_plan(
        robot,
        joint,
        SweepOverrides(**wishes),
        seed=0,
        is_reference_held=not behaviour.is_reference_advanced,
        wire=wire_range(robot, joint, behaviour),
    )


class Driven:
    """A bench test of a shipped robot's first joint, to its end.

    Attributes:
        fastest_rad_s: Of the joint, really.
        turns: Of its motor on the wire, in every cycle.
    """

    def __init__(self, directory: Path, name: str, profile: str, plan: BenchPlan) -> None:
        text = bench_text(robot_text(name), plan.header.joint, gains=plan.gains)
        path = directory / "bench.toml"
        path.write_text(text)
        self.rig = rig = Rig(str(path), profile=profile)
        limit_rad = parse_robot(text, name).safety.following_error_max_rad
        self.run = run = BenchRun(rig.loop, plan, following_error_max_rad=limit_rad)
        rig.cycle.schedule[Chore.AGENDA] = run.step
        self.fastest_rad_s = 0.0
        turns = []

        def is_over() -> bool:
            self.fastest_rad_s = max(self.fastest_rad_s, abs(true_rad_s(rig)))
            turns.append(wire_turns(rig))
            return run.is_over

        rig.runner(ends_on_fault=True, is_over=is_over, duration_ns=400 * 10**9).run()
        self.turns = np.array(turns)

    def check(self, plan: BenchPlan) -> None:
        """All was driven, at the speeds commanded, and inside the wire's range."""
        assert self.run.problem == "" and self.run.done == self.run.total
        assert self.rig.state is State.IDLE
        texts = [event.text for event in self.rig.events if event.kind == PLATEAU_DATA]
        data = [msgspec.json.decode(text, type=PlateauData) for text in texts]
        assert [plateau.cause for plateau in data] == [""] * len(plan.plateaus)
        check_order([p.joint_velocity_rad_s for p in data], plan)
        axis = self.rig.axes[0]
        commanded_rad_s = np.abs(self.rig.wire(0, "motor_velocity_rad_s")).max()
        fastest_rad_s = commanded_rad_s / abs(axis.motor_per_joint)
        assert self.fastest_rad_s <= fastest_rad_s + 0.05 * axis.speed_max_rad_s
        assert np.abs(self.turns).max() * math.tau < axis.wire.fence_rad
        check_references(self.rig)
        assert not self.rig.events_of("wrap"), "it stops by itself, in time"


def check_order(driven_rad_s: list[float], plan: BenchPlan) -> None:
    """All were driven, and none much later than planned: a fast one has no room at most places."""
    waiting = [plateau.joint_velocity_rad_s for plateau in plan.plateaus]
    for speed_rad_s in driven_rad_s:
        place = waiting.index(speed_rad_s)
        assert place < 4
        waiting.pop(place)
    assert not waiting


@only
@pytest.mark.chain
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("name", "number"), [("bench1", 0), ("laas4", 1)])
def test_the_default_test_on_every_board(
    tmp_path: Path, name: str, number: int, profile: str
) -> None:
    robot = load_robot(name)
    plan = planned(robot, robot.joints[number], profile)
    driven = Driven(tmp_path, name, profile, plan)
    driven.check(plan)
    assert np.ptp(driven.turns) > 100.0


def begin_at(turns: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every calibrated motor read so many turns."""
    set_zero = Encoder.set_zero

    def moved(self: Encoder) -> None:
        set_zero(self)
        self._zero_rad -= turns * math.tau
        self._place_origin()

    monkeypatch.setattr(Encoder, "set_zero", moved)


CASES = list(itertools.product(PROFILES, (1.0, -1.0)))


@pytest.mark.chain
@pytest.mark.acceptance
@pytest.mark.parametrize(("profile", "sign"), CASES if IS_LONG else CASES[::3])
def test_it_drives_back_before_plateaus_and_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, sign: float
) -> None:
    robot = load_robot("bench1")
    wish = {"speeds": 2, "repetitions": 1, "dwell_s": 0.2, "settle_max_s": 2.0}
    plan = planned(robot, robot.joints[0], profile, speed_min_rad_s=1.0, **wish)
    plan = msgspec.structs.replace(plan, breakaways=1, steps=2)
    reach_turns = wire_range(robot, robot.joints[0], PROFILES[profile].behaviour).reach_rad
    reach_turns /= math.tau
    begin_at(sign * (reach_turns - 1.0), monkeypatch)
    driven = Driven(tmp_path, "bench1", profile, plan)
    driven.check(plan)
    assert np.abs(driven.turns).max() < reach_turns


@pytest.mark.chain
def test_a_motor_that_begins_beyond_the_fence_is_not_turned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = load_robot("bench1")
    plan = planned(robot, robot.joints[0], "udriver2", speeds=3, repetitions=1, dwell_s=0.2)
    begin_at(99.5, monkeypatch)
    driven = Driven(tmp_path, "bench1", "udriver2", plan)
    assert driven.run.problem_code == "wrap"
    assert "joint1" in driven.run.problem
    assert driven.fastest_rad_s < 0.5
    assert driven.rig.wire(0, "kp_a_per_rad").max() == 0.0


# --- planning -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("robot", "joint"), JOINTS)
def test_default_plateaus_have_room_to_settle(robot: Robot, joint: Joint, profile: str) -> None:
    plan = planned(robot, joint, profile)
    wire = wire_range(robot, joint, PROFILES[profile].behaviour)
    room_rad = 2.0 * wire.reach_rad / joint.drive.gear_reduction
    for plateau in plan.plateaus:
        asked = plateau.joint_velocity_rad_s, plateau.dwell_s
        left_s = settle_s(joint, *asked, settle_max_s=plan.settle_max_s, room_rad=room_rad)
        assert left_s > 3.0
        assert way_rad(joint, asked[0], left_s + asked[1]) < room_rad


@settings(max_examples=examples(60))
@given(
    place=st.sampled_from(JOINTS),
    profile=st.sampled_from(list(PROFILES)),
    dwell_s=st.floats(0.1, 60.0),
    share=st.floats(0.05, 0.9),
)
def test_what_does_not_fit_is_refused_with_what_does(
    place: tuple[Robot, Joint], profile: str, dwell_s: float, share: float
) -> None:
    robot, joint = place
    wish = {
        "dwell_s": dwell_s,
        "speed_max_rad_s": share * joint.limits.velocity_max_rad_s,
        "speed_min_rad_s": 0.02,
        "speeds": 2,
    }
    wire = wire_range(robot, joint, PROFILES[profile].behaviour)
    turns = 2.0 * wire.reach_rad / math.tau
    # The fastest plateau is measured twice as long.
    gear = joint.drive.gear_reduction
    needed_turns = share * joint.limits.velocity_max_rad_s * (2.0 * dwell_s + 1.5) * gear / math.tau
    try:
        planned(robot, joint, profile, **wish)
    except ConfigError as error:
        assert error.code == "wrap"
        assert needed_turns > 0.85 * turns
        (problem,) = error.problems
        better_s = 0.99 * float(problem.partition("at most ")[2].split()[0])
        if better_s > 0.2:
            planned(robot, joint, profile, **wish | {"dwell_s": 0.5 * better_s})
    else:
        assert needed_turns <= turns


def test_where_nothing_fits_the_limits_are_named() -> None:
    robot = load_robot("bench1")
    safety = msgspec.structs.replace(robot.safety, following_error_max_rad=25.0)
    with pytest.raises(ConfigError) as caught:
        planned(msgspec.structs.replace(robot, safety=safety), robot.joints[0], "arm")
    assert caught.value.code == "wrap"
    assert "velocity_max_rad_s" in str(caught.value)
    assert "following_error_max_rad" in str(caught.value)
