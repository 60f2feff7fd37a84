"""Bus voltage, input power, winding temperature, coil resistance."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import IDLE, ON, Rig

from daq.robot.description import Robot

MakeRig = Callable[..., Rig]


def test_input_power_is_copper_loss_and_work(rig: MakeRig) -> None:
    turning = rig("arm", effects=IDLE)
    motor = turning.robot.robot.motors["mn4004"]
    turning.calibrate()
    turning.run(200, mode=ON, iq_ff_a=1.0)
    reply = turning.ask_again(mode=ON, iq_ff_a=1.0)
    speed = turning.robot.plant.motor_velocity_rad_s[0]
    expected = 1.5 * motor.coil_resistance_ohm + motor.torque_constant_nm_per_a * speed
    assert speed > 100.0
    assert reply.input_power_w[0] == pytest.approx(expected, rel=0.01, abs=2.0**-4)
    assert reply.input_power_w[1] == 0.0


def test_braking_by_current_feeds_power_back(rig: MakeRig) -> None:
    turning = rig("arm", effects=IDLE)
    turning.calibrate()
    turning.run(400, mode=ON, iq_ff_a=1.0)
    turning.run(3, mode=ON, iq_ff_a=-1.0)
    assert turning.ask_again(mode=ON, iq_ff_a=-1.0).input_power_w[0] < -1.0


def test_the_bus_sags_a_little_under_load(rig: MakeRig) -> None:
    turning = rig("arm", effects=IDLE)
    turning.calibrate()
    idle_v = turning.ask(mode=ON).bus_voltage_v
    turning.run(60, mode=ON, iq_ff_a=3.0)
    loaded_v = turning.ask_again(mode=ON, iq_ff_a=3.0).bus_voltage_v
    assert idle_v == pytest.approx(24.0, abs=0.05)
    assert 22.0 < loaded_v < idle_v - 0.05


def test_speed_ends_where_the_back_emf_meets_the_bus(profile: str, rig: MakeRig) -> None:
    turning = rig(profile, effects=IDLE)
    motor = turning.robot.robot.motors["mn4004"]
    turning.calibrate()
    turning.run(1000, mode=ON, iq_ff_a=8.0)
    highest = 24.0 / math.sqrt(3.0) / (motor.torque_constant_nm_per_a / 1.5)
    speed = turning.robot.plant.motor_velocity_rad_s[0]
    assert 0.9 * highest < speed < highest
    assert abs(turning.ask_again(mode=ON, iq_ff_a=8.0).iq_a[0]) < 1.0


def shake(rig: Rig, current_a: float, seconds: float) -> list[object]:
    """A large current that turns the rotor to and fro and gets it nowhere."""
    replies = []
    for number in range(round(seconds * 1000)):
        replies.append(rig.send(mode=ON, iq_ff_a=current_a if number % 2 else -current_a))
        rig.wait()
        if replies[-1].status & 0xF:
            break
    return replies


def test_the_winding_of_arm_heats_up_and_cools_down(rig: MakeRig, hot_bench: Robot) -> None:
    hot = rig("arm", hot_bench)
    hot.calibrate()
    assert hot.ask(mode=ON).winding_temperature_degc[0] == pytest.approx(25.0, abs=1.0)
    warm = shake(hot, 19.0, 2.0)[-1].winding_temperature_degc[0]
    assert 40.0 < warm < 90.0
    for _ in range(100):
        hot.run(1, mode=ON)
        hot.wait(90)
    assert hot.ask_again(mode=ON).winding_temperature_degc[0] < warm


def test_a_motor_that_is_not_there_has_no_sensor(rig: MakeRig) -> None:
    alone = rig("arm")
    for reply in alone.run(3):
        assert math.isnan(reply.winding_temperature_degc[1])
    received = alone.board.transfer(alone.frame())
    assert received[30] == 25 + 40 and received[31] == 0


def test_critical_temperature_is_error_3_on_arm(rig: MakeRig, hot_bench: Robot) -> None:
    hot = rig("arm", hot_bench)
    hot.calibrate()
    last = shake(hot, 19.0, 10.0)[-1]
    assert last.status & 0xF == 3
    assert last.winding_temperature_degc[0] == pytest.approx(110.0, abs=2.0)
    # Still hot: the error comes back at once.
    hot.run(1)
    assert hot.run(10, mode=ON)[-1].status & 0xF == 3


@pytest.mark.parametrize("name", ["uomodri", "udriver2"])
def test_no_34_byte_board_minds_the_heat(rig: MakeRig, name: str) -> None:
    hot = rig(name)
    hot.calibrate()
    hot.board.outputs[0].winding_degc = 200.0
    assert hot.run(20, mode=ON)[-1].status & 0xF == 0
