"""Homing through real frames, against the physics: the true joint angles come out."""

from __future__ import annotations

import math

import msgspec
import pytest
from virtual_arm import VirtualArm

from daq.motion.homing import IndexSearch, locate_zero
from daq.robot.description import Robot

pytestmark = pytest.mark.chain

GAINS = (3.0, 0.1, 0.0)
POSTURE_RAD = (0.3, -1.2, 0.5, 0.8)


def changed(robot: Robot, directions: tuple[int, ...], offsets: tuple[float, ...]) -> Robot:
    joints = tuple(
        msgspec.structs.replace(
            joint,
            drive=msgspec.structs.replace(
                joint.drive, direction=direction, joint_offset_rad=offset_rad
            ),
        )
        for joint, direction, offset_rad in zip(robot.joints, directions, offsets, strict=True)
    )
    return msgspec.structs.replace(robot, joints=joints)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("directions", "offsets"),
    [((1, 1, 1, 1), (0.0, 0.0, 0.0, 0.0)), ((1, -1, -1, 1), (0.1, 0.02, -0.3, 1.1))],
)
def test_homing_recovers_the_true_joint_angles(
    arm4: Robot, seed: int, directions: tuple[int, ...], offsets: tuple[float, ...]
) -> None:
    robot = changed(arm4, directions, offsets)
    arm = VirtualArm(robot, seed=seed, posture_rad=POSTURE_RAD)
    seen = arm.calibrate()
    begun_rad = arm.mock.plant.joint_position_rad
    searches = [
        IndexSearch(joint, start_motor_rad=s.position_rad, hint_rad=posture_rad)
        for joint, s, posture_rad in zip(robot.joints, seen, POSTURE_RAD, strict=True)
    ]
    current_step_a = 0.0
    for _ in range(12_000):
        references = [
            search.step(s.position_rad, s.is_index_found, s.index_toggle, True)
            for search, s in zip(searches, seen, strict=True)
        ]
        before, seen = seen, arm.cycle(references, [GAINS] * 4)
        steps = (abs(s.iq_a - b.iq_a) for s, b in zip(seen, before, strict=True))
        current_step_a = max(current_step_a, *steps)
        if all(search.is_done for search in searches):
            break
    assert [search.failure for search in searches] == [None] * 4
    # Noise of 20 mA, and encoder counts through kd: nothing that moves the arm.
    assert current_step_a < 0.6
    true_rad = arm.mock.plant.joint_position_rad
    for number, (joint, search, s) in enumerate(zip(robot.joints, searches, seen, strict=True)):
        assert search.index_motor_rad is not None
        offset_rad = locate_zero(
            joint,
            index_motor_rad=search.index_motor_rad,
            start_motor_rad=search.start_motor_rad,
            hint_rad=POSTURE_RAD[number],
        )
        gear = joint.drive.gear_reduction
        count_rad = math.tau / joint.drive.encoder_counts_per_turn / gear
        found_rad = joint.drive.direction * (s.position_rad + offset_rad) / gear
        assert abs(found_rad - true_rad[number]) <= 1.5 * count_rad
        # Back where it began, but for what gravity makes of a soft position law.
        assert abs(true_rad[number] - begun_rad[number]) < 0.05
