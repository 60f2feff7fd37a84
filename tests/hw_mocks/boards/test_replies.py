"""Replies: how fresh they are, how they are cut, stamped and torn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from acceptance import IS_LONG
from board_rig import EM2, ES, IDLE, MS_NS, ON, STATUS, Rig, on_output, with_friction

from daq.robot.description import Robot
from firmware_protocol.codec import reply_codec
from firmware_protocol.profiles import PROFILES

MakeRig = Callable[..., Rig]
TURN_RAW = 2**24
LSB_RAD = math.tau / TURN_RAW
LSB_RAD_S = 1000.0 * math.tau / 60.0 * 2.0**-11
LSB_A = 2.0**-10
SMOOTH = replace(IDLE, is_encoder_quantised=False)


# --- freshness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["arm", "uomodri"])
def test_the_first_reply_after_a_pause_already_says_error_2_and_echoes_the_last_command(
    rig: MakeRig, name: str
) -> None:
    paused = rig(name)
    paused.run(3)
    paused.send(timeout_ms=10)
    echo = paused.index
    paused.wait(40)
    reply = paused.send()
    assert (reply.status & 0xF, reply.index) == (2, echo)


def test_values_were_latched_up_to_37_us_before_the_window(
    profile: str, rig: MakeRig, free_bench: Robot
) -> None:
    turning = rig(profile, free_bench, effects=SMOOTH)
    turning.calibrate()
    zero_rad = turning.board.outputs[0].encoder.origin_rad
    turning.run(150, mode=ON, iq_ff_a=1.0)
    ages_s = []
    for _ in range(200):
        # Windows come at moments between the steps of physics, too.
        turning.board.line_ns = turning.robot.now_ns + 100_000
        position_rad = turning.send(mode=ON).motor_position_rad[0]
        speed_rad_s = turning.robot.plant.motor_velocity_rad_s[0]
        true_rad = turning.robot.plant.motor_position_rad[0] - zero_rad + 100e-6 * speed_rad_s
        ages_s.append((true_rad - position_rad) / speed_rad_s)
        turning.wait()
    assert -1e-7 < min(ages_s) < 2e-6
    assert 35e-6 < max(ages_s) < 37.1e-6


def test_what_a_window_will_get_is_known_before_it_comes(profile: str, rig: MakeRig) -> None:
    """So that an emulated device answers at once: nothing but the age of values differs."""
    asked = rig(profile)
    asked.run(3)
    for _ in range(5):
        ready = asked.board.prepared_reply()
        assert ready is not None
        assert asked.board.shift(asked.frame()) == ready
        assert asked.board.prepared_reply() is None  # not before the board looks at its frame
        asked.board.settle()
        asked.wait()


# --- time stamp -----------------------------------------------------------------------------------


def test_the_time_stamp_counts_9990_in_10_s_and_wraps(profile: str, rig: MakeRig) -> None:
    """Its timer's period is 1.001 ms on `uomodri` and `arm`; `udriver2` counts milliseconds."""
    asked = rig(profile)
    is_exact = profile == "udriver2"
    for uptime_s, expected in (
        (10.0, 10_000 if is_exact else 9990),
        (65.7, 164 if is_exact else 98),
    ):
        asked.board.power_on(uptime_s=uptime_s)
        assert asked.ask_again().timestamp_ms == expected
        asked.wait(1000)
        assert asked.look().timestamp_ms - expected in ((1000,) if is_exact else (999, 1000))


# --- truncation -----------------------------------------------------------------------------------


def raws(rig: Rig) -> dict[str, list[int]]:
    """The integers of a reply by their keys, of a window that holds no command."""
    codec = reply_codec(rig.profile)
    received = rig.board.transfer(bytes(rig.profile.frame_size))
    return codec.raw_by_key(codec.decode_raw(received))  # type: ignore[return-value]


@pytest.mark.parametrize("sign", [1, -1])
def test_iq_is_cut_toward_zero(held: Rig, sign: int) -> None:
    position_rad = held.look().motor_position_rad[0]
    shares = []
    for number in range(1, 20):
        fields = {"motor_position_rad": position_rad + sign * 0.0371 * number, "kp_a_per_rad": 3.3}
        held.run(4, mode=ON, **fields)
        steps = held.board.outputs[0].iq_a / LSB_A
        assert raws(held)["iq"][0] == sign * math.floor(abs(steps) + 1e-9)
        shares.append(abs(steps) % 1.0)
    assert min(shares) < 0.3 and max(shares) > 0.7


@pytest.mark.parametrize("sign", [1, -1])
def test_velocity_and_position_are_cut_toward_zero(
    profile: str, rig: MakeRig, bench: Robot, sign: int
) -> None:
    moved = rig(profile, bench, effects=SMOOTH)
    moved.calibrate()
    speeds, positions = [], []
    for _ in range(6):
        moved.run(15, mode=ON, iq_ff_a=sign * 0.5)
        speed = moved.board.outputs[0].encoder.velocity_rad_s / LSB_RAD_S
        assert raws(moved)["vel"][0] == sign * math.floor(abs(speed))
        speeds.append(abs(speed) % 1.0)
        moved.run(100, mode=ON, kd_a_s_per_rad=0.05)
        assert moved.robot.plant.motor_velocity_rad_s[0] == 0.0
        position = moved.board.outputs[0].encoder.position_rad / LSB_RAD
        assert raws(moved)["pos"][0] == sign * math.floor(abs(position) + 1e-4)
        positions.append(abs(position) % 1.0)
    assert max(speeds) > 0.6 and max(positions) > 0.6


# --- torn replies ---------------------------------------------------------------------------------

_COUNT = 10_000 if IS_LONG else 2500


def test_motor_2s_position_is_torn_by_a_256th_of_a_turn_in_2_to_4_percent_of_udriver2s_replies(
    bench: Robot,
) -> None:
    """At half a turn a second. Motor 1's is older at times, but whole."""
    torn: dict[int, list[float]] = {}
    for output, mode in ((1, ON), (2, ES | EM2)):
        free = with_friction(on_output(bench, output), coulomb_joint_nm=0.0)
        rig = Rig(free, "udriver2", effects=SMOOTH, is_torn=True)
        rig.run(60, mode=mode)
        speed_rad_s = 0.5 * math.tau
        velocity, gain = [0.0, 0.0], [0.0, 0.0]
        velocity[output - 1], gain[output - 1] = speed_rad_s, 0.05
        fields = {"motor_velocity_rad_s": tuple(velocity), "kd_a_s_per_rad": tuple(gain)}
        rig.run(300, mode=mode, **fields)
        zero_rad = rig.board.outputs[output - 1].encoder.origin_rad
        torn[output] = []
        for _ in range(_COUNT):
            said_rad = rig.send(mode=mode, **fields).motor_position_rad[output - 1]
            off_rad = said_rad - (rig.robot.plant.motor_position_rad[0] - zero_rad)
            # A reply before, at most.
            if not -1.2e-3 * speed_rad_s < off_rad < 1e-6:
                torn[output].append(off_rad / math.tau)
            rig.wait()
    assert not torn[1]
    assert 0.02 < len(torn[2]) / _COUNT < 0.04
    assert torn[2] == pytest.approx([-1.0 / 256.0] * len(torn[2]), abs=1e-4)


def test_the_first_five_words_of_a_torn_reply_are_those_of_the_one_before(
    free_bench: Robot,
) -> None:
    """Status, time stamp and motor 1's position too, not only a half of motor 2's."""
    torn = Rig(free_bench, "udriver2", effects=SMOOTH, is_torn=True)
    torn.board.replies.torn_share = 1.0
    torn.run(60, mode=ON)
    torn.run(200, mode=ON, iq_ff_a=1.0)
    zero_rad = torn.board.outputs[0].encoder.origin_rad
    for _ in range(20):
        reply = torn.send(mode=ON, iq_ff_a=1.0)
        assert reply.timestamp_ms == torn.robot.now_ns // MS_NS - 1
        plant = torn.robot.plant
        off_rad = reply.motor_position_rad[0] - (plant.motor_position_rad[0] - zero_rad)
        assert -1.05e-3 < off_rad / plant.motor_velocity_rad_s[0] < -0.95e-3
        torn.wait()
    torn.board.latch(7)
    assert [torn.run(1)[0].status & 0xF for _ in range(2)] == [0, 7]


def test_only_udriver2_tears(rig: MakeRig) -> None:
    for name, profile in PROFILES.items():
        assert bool(profile.behaviour.torn_share) == (name == "udriver2")
    # Not before there is a reply to be torn from.
    fresh = Rig(rig("udriver2").robot.robot, "udriver2", is_torn=True)
    assert fresh.look().status & STATUS["SE"]


# --- what is not measured -------------------------------------------------------------------------


def test_the_coil_resistance_is_always_0_on_uomodri_and_known_after_calibration_on_udriver2(
    rig: MakeRig,
) -> None:
    for name, known_ohm in (("uomodri", 0.0), ("udriver2", 0.35)):
        measured = rig(name)
        assert measured.ask(mode=ON).coil_resistance_ohm == (0.0, 0.0)
        measured.calibrate()
        reply = measured.run(100, mode=ON, iq_ff_a=0.5)[-1]
        assert reply.coil_resistance_ohm == (pytest.approx(known_ohm, abs=2.0**-14), 0.0)
