"""Which plateau of a free joint is next: one with room, and none waits for long."""

from __future__ import annotations

import math

import msgspec
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.bench.plan import BenchPlan, SweepOverrides, make_plan
from daq.bench.plateau_queue import PlateauQueue
from daq.bench.room import has_room
from daq.boards.wire_range import wire_range
from daq.robot import load_robot
from firmware_protocol.profiles import PROFILES

ROBOT = load_robot("bench1")
JOINT = ROBOT.joints[0]
REACH_RAD = (
    wire_range(ROBOT, JOINT, PROFILES["udriver2"].behaviour).reach_rad / JOINT.drive.gear_reduction
)
REACH = (-REACH_RAD, REACH_RAD)


def planned(seed: int = 0) -> BenchPlan:
    return make_plan(ROBOT, JOINT, SweepOverrides(), seed=seed)


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_every_plateau_is_taken_once_and_about_when_it_is_planned(
    seed: int, data: st.DataObject
) -> None:
    plan = planned(seed)
    queue, waiting = PlateauQueue(plan, JOINT), list(plan.plateaus)
    passed_over = 0
    while waiting:
        taken = queue.take(data.draw(st.floats(*REACH)), REACH)
        place = waiting.index(taken)
        assert place < 4
        passed_over = passed_over + 1 if place else 0
        assert passed_over <= 3
        waiting.pop(place)
        queue.note_settled(data.draw(st.floats(0.3, 3.0)))


def test_one_with_room_goes_first() -> None:
    slow, fast = sorted(planned().plateaus, key=lambda plateau: plateau.joint_velocity_rad_s)[-2:]
    plan = msgspec.structs.replace(planned(), plateaus=(fast, slow))
    for here_rad, first in ((REACH[0], fast), (REACH[1], fast)):
        assert PlateauQueue(plan, JOINT).take(here_rad, REACH) is first, "both fit, or none"
    back = msgspec.structs.replace(slow, joint_velocity_rad_s=-slow.joint_velocity_rad_s)
    plan = msgspec.structs.replace(plan, plateaus=(fast, back))
    assert PlateauQueue(plan, JOINT).take(REACH[1], REACH) is back
    assert PlateauQueue(plan, JOINT).take(REACH[0], REACH) is fast


def test_a_mounted_joint_keeps_to_the_order() -> None:
    plan = planned()
    header = msgspec.structs.replace(plan.header, window_rad=(-0.1, 0.1))
    queue = PlateauQueue(msgspec.structs.replace(plan, header=header), JOINT)
    assert [queue.take(REACH[1], REACH) for _ in plan.plateaus] == list(plan.plateaus)


def test_room_is_asked_for_as_long_as_settling_has_taken() -> None:
    plan = planned()
    fast = max(plan.plateaus, key=lambda plateau: plateau.joint_velocity_rad_s)
    queue = PlateauQueue(plan, JOINT)
    most_s = queue.duration_s(fast, REACH)
    assert has_room(JOINT, fast.joint_velocity_rad_s, most_s, REACH[0], REACH)
    for settled_s in (0.8, 1.0):
        queue.note_settled(settled_s)
        assert queue.duration_s(fast, REACH) == most_s, "too few to tell"
    queue.note_settled(0.5)
    assert queue.duration_s(fast, REACH) == pytest.approx(fast.dwell_s + 1.3)
    queue.note_settled(math.inf)
    assert queue.duration_s(fast, REACH) == most_s
