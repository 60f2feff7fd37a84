"""Enable, stop, disable: what status bits say meanwhile, and what the motors really do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from board_rig import EM1, EM2, ES, ON, STATUS, Rig, on_output

from daq.robot.description import Robot

SE, M1E, M1R, M2E, M2R = (STATUS[name] for name in ("SE", "M1E", "M1R", "M2E", "M2R"))
STATES = SE | M1E | M1R | M2E | M2R | 0xF
MakeRig = Callable[..., Rig]
LIKE_UOMODRI = ["arm", "uomodri"]


def states(reply: object) -> int:
    return reply.status & STATES  # type: ignore[attr-defined, no-any-return]


def se(profile: str) -> int:
    """SE, where it echoes the command: `uomodri` takes it from motor 2."""
    return 0 if profile in LIKE_UOMODRI else SE


def test_before_the_first_valid_frame_uomodri_and_arm_reply_zeros_and_udriver2_says_se(
    profile: str, rig: MakeRig
) -> None:
    fresh = rig(profile)
    fresh.wait(500)
    for _ in range(3):
        received = fresh.board.transfer(bytes(fresh.profile.frame_size))
        reply = fresh.decode(received)
        if profile in LIKE_UOMODRI:
            # The time stamp, too; but a sound checksum and, our reading, `arm`'s version.
            version = {"arm": b"\x00\x10"}.get(profile, b"\x00\x00")
            assert received[:-4] == version + bytes(len(received) - 6)
        else:
            assert states(reply) == SE
            assert reply.timestamp_ms == fresh.robot.now_ns // 1_000_000
        fresh.wait()
    fresh.run(2)
    reply = fresh.send()
    assert states(reply) == 0
    assert reply.timestamp_ms >= 500


def test_the_status_carries_the_protocol_version(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    for reply in fresh.run(80, mode=ON):
        assert reply.status >> 4 & 0b111 == (1 if profile == "arm" else 0)


@pytest.mark.parametrize("mode", [0, EM1, EM1 | EM2])
def test_without_es_nothing_is_enabled(profile: str, rig: MakeRig, mode: int) -> None:
    fresh = rig(profile)
    reply = fresh.run(100, mode=mode, iq_ff_a=2.0)[-1]
    # An idle motor of `uomodri` clears its command; `udriver2` echoes it.
    echoed = {EM1: M1E, EM1 | EM2: M1E | M2E}.get(mode, 0)
    assert states(reply) == (0 if profile in LIKE_UOMODRI else echoed)
    assert fresh.robot.plant.motor_velocity_rad_s[0] == 0.0


def test_es_alone_enables_no_motor(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    assert states(fresh.run(100, mode=ES, iq_ff_a=2.0)[-1]) == se(profile)
    assert fresh.robot.plant.motor_velocity_rad_s[0] == 0.0


def test_reserved_mode_bits_mean_nothing(profile: str, rig: MakeRig) -> None:
    plain, odd = rig(profile), rig(profile)
    for _ in range(150):
        expected = plain.board.transfer(plain.frame(mode=ON, iq_ff_a=0.3))
        assert odd.board.transfer(odd.frame(mode=ON | 0b11, iq_ff_a=0.3)) == expected
        plain.wait()
        odd.wait()


def test_se_comes_from_motor_2_on_uomodri_and_arm(profile: str, bench: Robot) -> None:
    """With output 1 alone it stays 0 for ever, ready or not."""
    first, second = (Rig(on_output(bench, output), profile) for output in (1, 2))
    assert {states(reply) & SE for reply in first.run(200, mode=ES | EM1)[2:]} == {se(profile)}
    assert states(first.look()) == se(profile) | M1E | M1R
    second.run(200, mode=ES | EM2)
    assert states(second.look()) == SE | M2E | M2R


def test_a_second_frame_does_not_start_calibration_again(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    replies = fresh.run(60, mode=ON)
    assert states(replies[-1]) == se(profile) | M1E | M1R


def test_dropping_emx_stops_the_motor(profile: str, rig: MakeRig) -> None:
    turning = rig(profile)
    turning.calibrate()
    turning.run(300, mode=ON, iq_ff_a=0.5)
    moving = turning.ask_again(mode=ON, iq_ff_a=0.5)
    turning.run(50, mode=ES, iq_ff_a=0.5)
    stopped = turning.ask_again(mode=ES, iq_ff_a=0.5)
    assert abs(stopped.iq_a[0]) < 0.5
    assert turning.robot.plant.motor_velocity_rad_s[0] < moving.motor_velocity_rad_s[0]
    # Still ready, and the encoder goes on counting.
    assert states(stopped) == se(profile) | M1R
    assert stopped.motor_position_rad[0] > moving.motor_position_rad[0]


def test_em_dropped_and_raised_is_ready_and_dead_until_es_is_dropped(
    profile: str, rig: MakeRig
) -> None:
    """On `udriver2` that was not measured."""
    stopped = rig(profile)
    stopped.calibrate()
    stopped.run(5, mode=ES)
    reply = stopped.run(300, mode=ON, iq_ff_a=0.5)[-1]
    # The bits say nothing of it: MxE echoes the command.
    assert states(reply) == se(profile) | M1E | M1R
    assert stopped.robot.plant.motor_velocity_rad_s[0] == 0.0
    assert abs(reply.iq_a[0]) < 0.1
    stopped.run(1)
    assert states(stopped.ask_again()) == (M1R if profile == "udriver2" else 0)
    stopped.run(60, mode=ON)
    reply = stopped.run(20, mode=ON, iq_ff_a=0.5)[-1]
    assert states(reply) == se(profile) | M1E | M1R
    assert stopped.robot.plant.motor_velocity_rad_s[0] > 1.0


def test_the_other_motor_goes_on(profile: str, rig: MakeRig, arm4: Robot) -> None:
    both = rig(profile, arm4, calibration_s=0.3)
    both.calibrate(ES | EM1 | EM2)
    hold = {"kp_a_per_rad": (1.0, 1.0), "kd_a_s_per_rad": (0.02, 0.02)}
    both.run(50, mode=ES | EM1 | EM2, **hold)
    reply = both.run(300, mode=ES | EM2, motor_position_rad=(0.0, 3.0), **hold)[-1]
    assert states(reply) == SE | M2E | M2R | M1R
    assert abs(reply.iq_a[0]) < 0.5
    assert reply.motor_position_rad[1] > 1.0
