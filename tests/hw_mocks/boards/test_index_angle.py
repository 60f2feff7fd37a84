"""The encoder index lies where the robot file says: at the motor angle of `joint_offset_rad`."""

from __future__ import annotations

import math

import pytest
from board_rig import EM1, EM2, ES, IDLE, STATUS, Rig

from daq.robot.description import Robot


def test_the_index_lies_at_whole_motor_turns_from_the_joint_offset(arm4: Robot) -> None:
    rig = Rig(
        arm4, "arm", effects=IDLE, calibration_s=0.3, seed=7, posture_rad=(0.15, -1.5, 0.0, 0.0)
    )
    rig.calibrate(mode=ES | EM1 | EM2)
    home = rig.board.outputs[0].encoder.origin_rad
    toggle, crossed = None, []
    for k in range(3500):
        target = 2e-3 * k
        reply = rig.send(
            mode=ES | EM1 | EM2,
            motor_position_rad=(target, 0.0),
            kp_a_per_rad=(5.0, 0.5),
            kd_a_s_per_rad=(0.1, 0.1),
        )
        rig.wait()
        is_toggled = bool(reply.status & STATUS["IDX1T"])
        if toggle is not None and is_toggled != toggle:
            crossed.append(home + reply.motor_position_rad[0])
        toggle = is_toggled
    assert len(crossed) in (1, 2)
    for angle in crossed:
        assert math.remainder(angle, math.tau) == pytest.approx(0.0, abs=0.01)
