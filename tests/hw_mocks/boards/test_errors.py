"""Latched errors: what the status says, which motors stop and how, and what ends them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import EM1, EM2, ES, IDLE, ON, STATUS, Rig

from daq.robot.description import Robot
from firmware_protocol.behaviour import ErrorsClear, Unpowered
from firmware_protocol.profiles import PROFILES

MakeRig = Callable[..., Rig]
SE, M1E, M1R, M2E, M2R = (STATUS[name] for name in ("SE", "M1E", "M1R", "M2E", "M2R"))
STATES = SE | M1E | M1R | M2E | M2R
BOTH = ES | EM1 | EM2
LATCHING = [
    name
    for name, profile in PROFILES.items()
    if profile.behaviour.errors_clear is ErrorsClear.POWER_CYCLE
]


def turning(make: Rig) -> Rig:
    make.calibrate()
    make.run(150, mode=ON, iq_ff_a=0.5)
    return make


def time_out(rig: Rig, mode: int = ON) -> None:
    rig.send(mode=mode, iq_ff_a=(0.3, 0.3), timeout_ms=5)
    rig.wait(8)


# --- status and end -------------------------------------------------------------------------------


def test_after_error_2_the_status_echoes_the_command(
    profile: str, rig: MakeRig, arm4: Robot
) -> None:
    """`uomodri`: SE and MxE as commanded, MxR 0; `udriver2`: SE 0, MxE as commanded, MxR 1."""
    failed = rig(profile, arm4, calibration_s=0.3)
    failed.calibrate(BOTH)
    time_out(failed, BOTH)
    is_ready = profile == "udriver2"
    for mode, enabled in ((BOTH, M1E | M2E), (ES | EM1, M1E), (ES | EM2, M2E), (ES, 0)):
        reply = failed.ask_again(mode=mode)
        failed.wait()
        expected = enabled | (M1R | M2R if is_ready else SE)
        assert (reply.status & STATES, reply.status & 0xF) == (expected, 2)


@pytest.mark.parametrize("name", LATCHING)
def test_errors_of_34_byte_boards_last_until_power_is_cycled(rig: MakeRig, name: str) -> None:
    assert set(LATCHING) == {"uomodri", "udriver2"}
    failed = turning(rig(name))
    time_out(failed)
    speed_rad_s = failed.robot.plant.motor_velocity_rad_s[0]
    for mode in (ON, 0, ES, 0, ON):
        reply = failed.run(60, mode=mode, iq_ff_a=1.0)[-1]
        assert reply.status & 0xF == 2
        assert failed.robot.plant.motor_velocity_rad_s[0] < speed_rad_s
    failed.wait(1500)
    failed.board.power_off()
    failed.wait(10)
    failed.board.power_on()
    assert failed.look().status & 0xF == 0
    failed.calibrate()


def test_errors_of_arm_last_until_es_was_dropped_for_one_frame(rig: MakeRig) -> None:
    failed = turning(rig("arm"))
    time_out(failed)
    for mode in (ON, ES, ON):
        assert failed.run(20, mode=mode)[-1].status & 0xF == 2
    failed.send()
    failed.wait()
    reply = failed.send(mode=ON)
    assert not reply.status & (0xF | M1R)
    # Calibration starts over.
    assert not failed.run(40, mode=ON)[-1].status & M1R
    assert failed.run(30, mode=ON)[-1].status & M1R


def test_a_failed_alignment_of_arm_can_be_tried_again(rig: MakeRig, blocked_bench: Robot) -> None:
    failed = rig("arm", blocked_bench)
    for _ in range(2):
        assert failed.run(20, mode=ON)[-1].status & 0xF == 0
        assert failed.run(30, mode=ON)[-1].status & 0xF == 1
        failed.run(2)


def test_the_first_error_stays(profile: str, rig: MakeRig) -> None:
    failed = turning(rig(profile))
    failed.board.latch(7)
    time_out(failed)
    failed.board.latch(1)
    assert failed.look().status & 0xF == 7


def test_any_forced_error_code_is_reported_and_stops_the_motors(profile: str, rig: MakeRig) -> None:
    running = rig(profile)
    running.calibrate()
    for code in range(1, 16):
        running.board.latch(code)
        reply = running.run(5, mode=ON, iq_ff_a=5.0)[-1]
        assert reply.status & 0xF == code
        assert abs(reply.iq_a[0]) < 0.2
        fault = PROFILES[profile].fault_of(reply.status)
        assert fault is not None and fault.code == code
        running.board.power_off()
        running.board.power_on()
        running.run(55, mode=ON)


def test_an_error_with_code_0_is_never_ready(profile: str, rig: MakeRig) -> None:
    """A gate driver that did not initialise: nothing but the supply makes it try again."""
    failed = rig(profile)
    failed.board.latch(0)
    for _ in range(2):
        assert not failed.run(100, mode=ON, iq_ff_a=1.0)[-1].status & (M1R | 0xF)
        failed.run(5)
    assert failed.robot.plant.motor_velocity_rad_s[0] == 0.0
    failed.board.power_off()
    failed.board.power_on()
    failed.calibrate()


def test_the_encoder_goes_on_counting_after_an_error(profile: str, rig: MakeRig) -> None:
    """The position must not jump to zero just when the host needs to know where it is."""
    failed = turning(rig(profile))
    before = failed.ask_again(mode=ON).motor_position_rad[0]
    failed.board.latch(7)
    failed.wait(2)
    after = failed.ask_again(mode=ON).motor_position_rad[0]
    assert 0.0 < after - before < 1.0


# --- which motor stops ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "motor"), [("arm", 1), ("uomodri", 0), ("uomodri", 1), ("udriver2", 0)]
)
def test_a_fault_of_one_motor_stops_only_that_motor(
    profile: str, rig: MakeRig, arm4: Robot, motor: int
) -> None:
    """The other goes on under power, by its true motion. On `udriver2` that was not measured."""
    both = rig(profile, arm4, calibration_s=0.3)
    both.calibrate(BOTH)
    both.board.latch(7, motor)
    hold = {"kp_a_per_rad": (1.0, 1.0), "kd_a_s_per_rad": (0.02, 0.02)}
    before = list(both.robot.plant.motor_position_rad[:2])
    reply = both.run(200, mode=BOTH, motor_position_rad=(3.0, 3.0), **hold)[-1]
    moved = [
        abs(now - then) > 1.0
        for now, then in zip(both.robot.plant.motor_position_rad, before, strict=False)
    ]
    assert moved[1 - motor] and both.profile.behaviour.are_faults_per_motor
    assert abs(reply.iq_a[motor]) < 0.5
    assert reply.status & 0xF == 7
    ready = SE | (M2R if motor == 0 else M1R)
    if profile == "udriver2":
        ready = M1R | M2R
    assert reply.status & STATES == M1E | M2E | ready


@pytest.mark.parametrize("name", ["arm", "uomodri"])
def test_a_failed_alignment_stops_only_its_own_motor(rig: MakeRig, name: str) -> None:
    """Nothing hangs on output 2."""
    alone = rig(name)
    reply = alone.run(60, mode=BOTH)[-1]
    assert reply.status & 0xF == 6
    assert reply.status & STATES == SE | M1E | M2E | M1R
    alone.run(200, mode=BOTH, iq_ff_a=0.5)
    assert alone.robot.plant.motor_velocity_rad_s[0] > 10.0


# --- how it stops ---------------------------------------------------------------------------------

STATES_WITHOUT_LAW = ["IDLE", "STOP", "ERROR", "no supply"]


@pytest.mark.parametrize("state", STATES_WITHOUT_LAW)
def test_idle_stop_and_error_brake_on_uomodri_and_arm_and_coast_on_udriver2(
    profile: str, rig: MakeRig, free_bench: Robot, state: str
) -> None:
    """Shorted phases: J·dω/dt = −K_i²·ω/(3/2·R); with the bench's motor 100 → 9 rad/s in 20 ms.

    With the motor of the firmware's own model it was 1.2 rad/s. Without supply all coast.
    """
    spinning = rig(profile, free_bench, effects=IDLE)
    spinning.calibrate()
    for _ in range(500):
        spinning.send(mode=ON, iq_ff_a=0.5)
        spinning.wait()
        if spinning.robot.plant.motor_velocity_rad_s[0] >= 100.0:
            break
    modes = {"IDLE": 0, "STOP": ES}
    if state == "ERROR":
        spinning.board.latch(7)
    elif state == "no supply":
        spinning.board.power_off()
    else:
        spinning.send(mode=modes[state])
    # The current that flowed before fades.
    spinning.wait(1)
    before = spinning.robot.plant.motor_velocity_rad_s[0]
    spinning.wait(20)
    left = spinning.robot.plant.motor_velocity_rad_s[0] / before
    is_braked = spinning.profile.behaviour.unpowered is Unpowered.BRAKE and state != "no supply"
    if is_braked:
        (joint,) = spinning.robot.robot.joints
        (truth,) = spinning.robot.truth.joints
        motor = spinning.robot.robot.motor_of(joint)
        inertia = truth.rotor_inertia_kg_m2 + truth.load_inertia_kg_m2 / 31.0**2
        viscous = joint.drive.friction.viscous_motor_nm_s_per_rad
        per_s = motor.torque_constant_nm_per_a**2 / 1.5 / motor.coil_resistance_ohm + viscous
        assert left == pytest.approx(math.exp(-20e-3 * per_s / inertia), rel=0.05)
        assert left < 0.2
    else:
        assert left == pytest.approx(1.0, abs=0.01)


def test_braking_current_is_what_the_speed_drives_through_the_coils(rig: MakeRig) -> None:
    braked = turning(rig("arm", effects=IDLE))
    motor = braked.robot.robot.motors["mn4004"]
    braked.board.latch(7)
    braked.wait(2)
    reply = braked.ask_again(mode=ON)
    speed = braked.robot.plant.motor_velocity_rad_s[0]
    expected = -motor.torque_constant_nm_per_a * speed / 1.5 / motor.coil_resistance_ohm
    assert reply.iq_a[0] == pytest.approx(expected, rel=0.05)
    assert reply.input_power_w[0] == 0.0  # it goes into the coils, not into the supply
