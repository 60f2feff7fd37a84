"""The watchdog, latched errors, and what ends them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from board_rig import ES, IDLE, ON, STATUS, Rig

from daq.robot.description import Robot
from firmware_protocol.profiles import PROFILES

MakeRig = Callable[..., Rig]
ENABLED = STATUS["M1E"] | STATUS["M2E"]
BRAKING = ["arm", "uomodri"]


def error(rig: Rig) -> int:
    """Looked at with a window that cannot be a command."""
    rig.board.transfer(bytes(rig.profile.frame_size))
    return int(rig.decode(rig.board.transfer(bytes(rig.profile.frame_size))).status & 0xF)


def turning(make: Rig, **fields: float) -> Rig:
    make.calibrate()
    make.run(150, mode=ON, iq_ff_a=0.5, **fields)
    return make


@pytest.mark.parametrize("timeout_ms", [1, 7, 255])
def test_no_valid_command_for_the_timeout_is_error_2(
    profile: str, rig: MakeRig, timeout_ms: int
) -> None:
    for left_ms, expected in ((0.25, 0), (0.0, 2)):
        watched = rig(profile)
        watched.calibrate()
        watched.wait()
        watched.send(mode=ON, timeout_ms=timeout_ms)
        watched.wait(timeout_ms - left_ms)
        assert error(watched) == expected
    reply = watched.ask_again(mode=ON)
    assert not reply.status & ENABLED
    assert reply.status & STATUS["SE"]


def test_timeout_zero_is_never(profile: str, rig: MakeRig) -> None:
    unwatched = rig(profile)
    unwatched.calibrate()
    unwatched.wait()
    unwatched.send(mode=ON, timeout_ms=0)
    unwatched.wait(2000)
    assert error(unwatched) == 0
    assert unwatched.ask_again(mode=ON).status & STATUS["M1R"]


def test_each_valid_command_winds_the_watchdog_up(profile: str, rig: MakeRig) -> None:
    watched = rig(profile)
    watched.calibrate()
    watched.wait()
    for _ in range(50):
        watched.send(mode=ON, timeout_ms=5)
        watched.wait(4)
    assert error(watched) == 0


def test_an_idle_board_is_not_watched(profile: str, rig: MakeRig) -> None:
    idle = rig(profile)
    idle.send(timeout_ms=5)
    idle.wait(100)
    assert error(idle) == 0


def test_commands_with_a_bad_checksum_are_ignored_and_the_watchdog_runs(
    profile: str, rig: MakeRig
) -> None:
    watched = rig(profile)
    watched.calibrate()
    watched.wait()
    watched.send(mode=ON, timeout_ms=10)
    echo = watched.index
    for _ in range(9):
        watched.wait()
        damaged = bytearray(watched.frame(mode=ON, timeout_ms=10, iq_ff_a=5.0))
        damaged[15] ^= 1
        reply = watched.decode(watched.board.transfer(bytes(damaged)))
        # Silently: nothing in the reply but the index tells.
        assert reply.status & 0xF == 0
        assert reply.index in (echo, echo - 1)
    assert abs(reply.iq_a[0]) < 0.2
    watched.wait()
    assert error(watched) == 2


def deceleration(rig: Rig) -> tuple[float, float]:
    """How much of its speed a rotor loses in the 20 ms after a time-out; and the current then."""
    rig.wait()
    rig.send(mode=ON, timeout_ms=1)
    rig.wait(1)
    before = rig.robot.plant.motor_velocity_rad_s[0]
    rig.wait(2)
    iq_a = rig.ask_again(mode=ON).iq_a[0]
    rig.wait(18)
    return 1.0 - rig.robot.plant.motor_velocity_rad_s[0] / before, iq_a


def test_after_a_time_out_the_motors_brake_or_coast(
    profile: str, rig: MakeRig, free_bench: Robot
) -> None:
    lost, iq_a = deceleration(turning(rig(profile, free_bench, effects=IDLE)))
    if profile in BRAKING:
        assert lost > 0.5
        assert iq_a < -0.5
    else:
        assert lost == pytest.approx(0.0, abs=1e-6)
        assert abs(iq_a) < 2e-3


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


def test_the_encoder_goes_on_counting_after_an_error(profile: str, rig: MakeRig) -> None:
    """The position must not jump to zero just when the host needs to know where it is."""
    failed = turning(rig(profile))
    before = failed.ask_again(mode=ON).motor_position_rad[0]
    failed.board.latch(7)
    failed.wait(1)
    after = failed.ask_again(mode=ON).motor_position_rad[0]
    assert 0.0 < after - before < 1.0


@pytest.mark.parametrize("name", ["uomodri", "udriver2"])
def test_errors_of_34_byte_boards_last_until_power_is_cycled(rig: MakeRig, name: str) -> None:
    failed = turning(rig(name))
    failed.wait(200)
    for mode in (ON, 0, ES, 0, ON):
        reply = failed.run(60, mode=mode)[-1]
        assert reply.status & 0xF == 2
        assert not reply.status & ENABLED
        # ES is still echoed.
        assert bool(reply.status & STATUS["SE"]) == bool(mode & ES)
    failed.board.power_off()
    failed.wait(10)
    failed.board.power_on()
    assert error(failed) == 0
    failed.calibrate()


def test_errors_of_arm_last_until_es_was_dropped_for_one_frame(rig: MakeRig) -> None:
    failed = turning(rig("arm"))
    failed.wait(200)
    for mode in (ON, ES, ON):
        assert failed.run(20, mode=mode)[-1].status & 0xF == 2
    failed.send()
    failed.wait()
    reply = failed.send(mode=ON)
    assert reply.status & 0xF == 0
    assert not reply.status & STATUS["M1R"]
    # Calibration starts over.
    assert failed.run(40, mode=ON)[-1].status & STATUS["M1R"] == 0
    assert failed.run(30, mode=ON)[-1].status & STATUS["M1R"]


def test_a_failed_alignment_of_arm_can_be_tried_again(rig: MakeRig, blocked_bench: Robot) -> None:
    failed = rig("arm", blocked_bench)
    assert failed.run(80, mode=ON)[-1].status & 0xF == 1
    failed.run(2)
    replies = failed.run(40, mode=ON)
    assert replies[-1].status & 0xF == 0
    assert failed.run(40, mode=ON)[-1].status & 0xF == 1


def test_the_first_error_stays(profile: str, rig: MakeRig) -> None:
    failed = turning(rig(profile))
    failed.board.latch(7)
    failed.wait(300)
    assert error(failed) == 7


@pytest.mark.parametrize("code", range(1, 16))
def test_any_forced_error_code_is_reported_and_stops_the_motors(
    profile: str, rig: MakeRig, code: int
) -> None:
    failed = turning(rig(profile))
    failed.board.latch(code)
    reply = failed.run(5, mode=ON, iq_ff_a=5.0)[-1]
    assert reply.status & 0xF == code
    assert not reply.status & (ENABLED | STATUS["M1R"])
    fault = PROFILES[profile].fault_of(reply.status)
    assert fault is not None and fault.code == code
