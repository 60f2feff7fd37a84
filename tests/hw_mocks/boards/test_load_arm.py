"""A load arm on the bench, as a host sees it: by the current that carries it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import IDLE, ON, Rig

from daq.robot.description import Robot
from hw_mocks.errors import MockConfigError
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.load_arm import MockLoadArm

ARM = MockLoadArm(mass_kg=0.2, length_m=0.3)
GEAR = 31.0
NM_PER_A = 1.5 / math.sqrt(3.0) * 60.0 / math.tau / 300.0
LEVEL_A = 0.2 * 9.81 * 0.3 / GEAR / NM_PER_A
"""What carries the arm when it stands out level."""


@pytest.mark.parametrize("joint_rad", [0.6, 1.4, -1.0])
def test_the_holding_current(rig: Callable[..., Rig], free_bench: Robot, joint_rad: float) -> None:
    board = rig("arm", free_bench, effects=IDLE, load_arm=ARM)
    board.calibrate()
    command = {
        "motor_position_rad": joint_rad * GEAR,
        "kp_a_per_rad": 0.3,
        "kd_a_s_per_rad": 0.02,
        "isat_a": 2.0,
    }
    board.run(2000, mode=ON, **command)
    reply = board.ask_again(mode=ON, **command)
    (true_rad,) = board.robot.plant.joint_position_rad
    assert true_rad == pytest.approx(joint_rad, abs=0.1)
    assert reply.iq_a[0] == pytest.approx(LEVEL_A * math.sin(true_rad), abs=2.0**-9)


def test_it_falls_back_when_it_is_let_go(rig: Callable[..., Rig], bench: Robot) -> None:
    board = rig("arm", bench, effects=IDLE, load_arm=ARM)
    board.calibrate()
    hold = {"motor_position_rad": 1.0 * GEAR, "kp_a_per_rad": 0.3, "kd_a_s_per_rad": 0.02}
    board.run(1500, mode=ON, **hold)
    (held_rad,) = board.robot.plant.joint_position_rad
    assert held_rad == pytest.approx(1.0, abs=0.1)
    board.run(2000, mode=ON)
    (fallen_rad,) = board.robot.plant.joint_position_rad
    # Friction may carry it up to where sin q = f/(m·g·l).
    assert abs(math.sin(fallen_rad)) <= 0.122 / (0.2 * 9.81 * 0.3)


def test_it_is_no_part_of_the_truth_but_of_the_mock(bench: Robot) -> None:
    plain, loaded = MockRobot(bench, seed=3), MockRobot(bench, seed=3, load_arm=ARM)
    assert loaded.truth == plain.truth
    assert (loaded.load_arm, plain.load_arm) == (ARM, None)


def test_an_arm_is_refused_it(arm4: Robot) -> None:
    with pytest.raises(MockConfigError) as refused:
        MockRobot(arm4, load_arm=ARM)
    (problem,) = refused.value.problems
    assert problem.startswith("load arm: ")


def test_a_stop_too_near_fails_calibration(rig: Callable[..., Rig], bench: Robot) -> None:
    """It ends the travel of a twelfth of a turn half-way."""
    stopped = Effects(end_stop_rad=math.tau / 24.0 / GEAR)
    board = rig("arm", bench, effects=stopped, calibration_s=1.0)
    assert board.run(700, mode=ON)[-1].status & 0xF == 1


def test_a_slipping_gear_takes_hardly_any_current(rig: Callable[..., Rig], bench: Robot) -> None:
    board = rig("arm", bench, effects=Effects(gear_slip=0.25))
    board.calibrate()
    command = {"motor_velocity_rad_s": 155.0, "kd_a_s_per_rad": 0.05}
    board.run(500, mode=ON, **command)
    iq_a = [reply.iq_a[0] for reply in board.run(round(1000 * math.tau / 5.0), mode=ON, **command)]
    coulomb_a = 0.122 / GEAR / NM_PER_A
    assert sum(iq < 0.5 * coulomb_a for iq in iq_a) / len(iq_a) == pytest.approx(0.25, abs=0.02)
    viscous_a = 2.42e-6 * 155.0 / NM_PER_A
    assert min(iq_a) == pytest.approx(viscous_a, abs=2.0**-9)
    assert max(iq_a) == pytest.approx(viscous_a + coulomb_a, rel=0.05)
