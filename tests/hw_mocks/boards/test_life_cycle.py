"""Enable, calibrate, stop, disable: what a board's status and position say meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import EM1, EM2, ES, ON, STATUS, Rig

from daq.robot.description import Robot
from hw_mocks.mock_robot import MockRobot

SE, M1E, M1R, M2E, M2R = (STATUS[name] for name in ("SE", "M1E", "M1R", "M2E", "M2R"))
STATES = SE | M1E | M1R | M2E | M2R | 0xF
MakeRig = Callable[..., Rig]


def states(reply: object) -> int:
    return reply.status & STATES  # type: ignore[attr-defined, no-any-return]


def test_a_board_wakes_up_idle(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    first = fresh.send()
    assert first.status == {"arm": 1 << 4}.get(profile, 0)
    assert (first.index, first.timestamp_ms, first.motor_position_rad) == (0, 0, (0.0, 0.0))
    if profile == "arm":
        assert first.bus_voltage_v == pytest.approx(24.0, abs=0.01)


def test_the_status_carries_the_protocol_version(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    for reply in fresh.run(80, mode=ON):
        assert reply.status >> 4 & 0b111 == (1 if profile == "arm" else 0)


def test_calibration_takes_three_seconds_and_a_twelfth_of_a_turn(
    profile: str, rig: MakeRig
) -> None:
    fresh = rig(profile, calibration_s=3.0)
    start_rad = fresh.robot.plant.motor_position_rad[0]
    positions = []
    for ms in range(4000):
        reply = fresh.ask(mode=ON)
        if reply.status & M1R:
            break
        if ms:
            assert states(reply) == SE | M1E
        positions.append(reply.motor_position_rad[0])
        fresh.wait()
    assert ms == pytest.approx(3000, abs=10)
    assert set(positions) == {0.0}
    travelled = fresh.robot.plant.motor_position_rad[0] - start_rad
    assert travelled == pytest.approx(math.tau / 12, rel=0.05)
    assert states(reply) == SE | M1E | M1R
    # Zero is where calibration has ended.
    assert abs(fresh.ask(mode=ON).motor_position_rad[0]) < 2.0 * math.tau / 4096


def test_three_seconds_are_the_default(bench: Robot) -> None:
    robot = MockRobot(bench)
    frame = Rig(bench, "arm").frame(mode=ON, timeout_ms=0)
    robot.boards[0].transfer(frame)
    for time_ms, is_ready in ((2900, False), (3100, True)):
        robot.advance_to(time_ms * 1_000_000)
        assert robot.boards[0].outputs[0].is_ready == is_ready


@pytest.mark.parametrize("mode", [0, EM1, EM1 | EM2])
def test_without_es_nothing_is_enabled(profile: str, rig: MakeRig, mode: int) -> None:
    fresh = rig(profile)
    reply = fresh.run(100, mode=mode, iq_ff_a=2.0)[-1]
    assert states(reply) == 0
    assert fresh.robot.plant.motor_velocity_rad_s[0] == 0.0


def test_es_alone_enables_no_motor(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    assert states(fresh.run(100, mode=ES, iq_ff_a=2.0)[-1]) == SE
    assert fresh.robot.plant.motor_velocity_rad_s[0] == 0.0


def test_reserved_mode_bits_mean_nothing(profile: str, rig: MakeRig) -> None:
    plain, odd = rig(profile), rig(profile)
    for _ in range(150):
        expected = plain.board.transfer(plain.frame(mode=ON, iq_ff_a=0.3))
        assert odd.board.transfer(odd.frame(mode=ON | 0b11, iq_ff_a=0.3)) == expected
        plain.wait()
        odd.wait()


def test_a_second_frame_does_not_start_calibration_again(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    replies = fresh.run(60, mode=ON)
    assert states(replies[-1]) == SE | M1E | M1R


def test_dropping_emx_stops_the_motor(profile: str, rig: MakeRig) -> None:
    turning = rig(profile)
    turning.calibrate()
    turning.run(300, mode=ON, iq_ff_a=0.5)
    moving = turning.ask_again(mode=ON, iq_ff_a=0.5)
    turning.run(5, mode=ES, iq_ff_a=0.5)
    stopped = turning.ask_again(mode=ES, iq_ff_a=0.5)
    assert abs(stopped.iq_a[0]) < 0.1
    # `uomodri` still says that it is ready.
    assert states(stopped) == SE | (M1R if profile == "uomodri" else 0)
    # The encoder goes on counting.
    assert stopped.motor_position_rad[0] > moving.motor_position_rad[0]


def test_a_stopped_motor_goes_on_only_where_the_board_allows(profile: str, rig: MakeRig) -> None:
    turning = rig(profile)
    turning.calibrate()
    turning.run(5, mode=ES)
    reply = turning.run(300, mode=ON, iq_ff_a=0.5)[-1]
    speed = turning.robot.plant.motor_velocity_rad_s[0]
    if profile == "uomodri":
        # STOP is left only by dropping ES; ready all the same.
        assert states(reply) == SE | M1R
        assert speed == 0.0
        turning.run(1)
        assert states(turning.ask_again()) == 0
        turning.run(60, mode=ON)
        reply = turning.run(20, mode=ON, iq_ff_a=0.5)[-1]
    assert states(reply) == SE | M1E | M1R
    assert turning.robot.plant.motor_velocity_rad_s[0] > 1.0


def test_the_other_motor_goes_on(profile: str, rig: MakeRig, arm4: Robot) -> None:
    both = rig(profile, arm4, calibration_s=0.3)
    both.calibrate(ES | EM1 | EM2)
    hold = {"kp_a_per_rad": (1.0, 1.0), "kd_a_s_per_rad": (0.02, 0.02)}
    both.run(50, mode=ES | EM1 | EM2, **hold)
    reply = both.run(300, mode=ES | EM2, motor_position_rad=(0.0, 3.0), **hold)[-1]
    assert states(reply) == SE | M2E | M2R | (M1R if profile == "uomodri" else 0)
    assert abs(reply.iq_a[0]) < 0.1
    assert reply.motor_position_rad[1] > 1.0


def test_stopping_during_calibration_starts_it_over(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    fresh.run(30, mode=ON)
    fresh.run(2, mode=ES)
    assert states(fresh.ask_again(mode=ES)) == SE
    assert states(fresh.run(40, mode=ON)[-1]) == SE | M1E
    assert states(fresh.run(20, mode=ON)[-1]) == SE | M1E | M1R


def test_dropping_es_returns_to_idle_and_calibrates_again(profile: str, rig: MakeRig) -> None:
    turning = rig(profile)
    turning.calibrate()
    turning.run(200, mode=ON, iq_ff_a=0.5)
    assert turning.ask_again(mode=ON).motor_position_rad[0] > 1.0
    turning.run(1)
    idle = turning.ask_again()
    assert states(idle) == 0
    assert idle.motor_position_rad == (0.0, 0.0)
    assert not idle.status & (STATUS["IDX1D"] | STATUS["IDX1T"])
    turning.run(1500)  # until it stands still
    again = turning.run(40, mode=ON)[-1]
    assert states(again) == SE | M1E
    assert again.motor_position_rad[0] == 0.0
    assert states(turning.run(20, mode=ON)[-1]) == SE | M1E | M1R


def test_a_motor_that_is_not_there_fails_alignment(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    replies = fresh.run(80, mode=ES | EM2)
    assert states(replies[30]) == SE | M2E
    assert replies[-1].status & 0xF == 6
    assert not replies[-1].status & (M2E | M2R)


def test_a_blocked_rotor_fails_alignment(profile: str, rig: MakeRig, blocked_bench: Robot) -> None:
    replies = rig(profile, blocked_bench).run(80, mode=ON)
    assert replies[-1].status & 0xF == 1
    assert not replies[-1].status & (M1E | M1R)
    assert replies[-1].motor_position_rad[0] == 0.0
