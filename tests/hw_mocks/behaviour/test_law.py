"""The law of a board as the shared protocol page has it, judged by currents and the plant."""

from __future__ import annotations

import math
from typing import Any

import pytest
from frame_host import MOTOR_1, FrameHost

from firmware_protocol.behaviour import IdleIntegral
from firmware_protocol.codec import command_codec
from firmware_protocol.profiles import PROFILES

every_profile = pytest.mark.parametrize("profile", PROFILES)
TURN_RAD = math.tau
LSB_A = 2.0**-10
SMALL_A = 0.125
"""Below breakaway: the rotor stays where it is."""
SMALL = {"isat_a": (SMALL_A, SMALL_A)}


def pair(value: float) -> tuple[float, float]:
    return value, value


def on_the_wire(profile: str, **values: float) -> dict[str, float]:
    """What the wire makes of values."""
    codec = command_codec(PROFILES[profile])
    sent = codec.decode(codec.encode(codec.make(**{k: pair(v) for k, v in values.items()})))
    return {name: getattr(sent, name)[0] for name in values}


def settled_a(host: FrameHost, **values: float) -> float:
    """The true current after a while of the same command."""
    host.keep_sending(MOTOR_1, 30, **{**SMALL, **{name: pair(v) for name, v in values.items()}})
    return host.board.outputs[0].iq_a


@every_profile
def test_terms_add_up_and_are_clamped(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    gains = {"kp_a_per_rad": 0.5, "kd_a_s_per_rad": 0.01}
    asked = {"motor_position_rad": 0.06, "motor_velocity_rad_s": 2.0, "iq_ff_a": 0.02, **gains}
    if profile == "arm":
        asked["motor_velocity_rad_s"] = 0.0  # it would move the reference on

    sent = on_the_wire(profile, **asked)
    expected_a = (
        sent["kp_a_per_rad"] * sent["motor_position_rad"]
        + sent["kd_a_s_per_rad"] * sent["motor_velocity_rad_s"]
        + sent["iq_ff_a"]
    )
    assert settled_a(host, **asked) == pytest.approx(expected_a, abs=1e-6)
    assert settled_a(host, iq_ff_a=0.05) == on_the_wire(profile, iq_ff_a=0.05)["iq_ff_a"]
    for sign in (1.0, -1.0):
        assert settled_a(host, iq_ff_a=sign) == sign * SMALL_A


# --- the integral ---------------------------------------------------------------------------------


def integrated(
    host: FrameHost, error_rad: float, duration_ms: int, *, ki: float = 5.0, kp: float = 0.0
) -> float:
    gains = {"kp_a_per_rad": pair(kp), "ki_a_per_rad_s": pair(ki), **SMALL}
    host.keep_sending(MOTOR_1, duration_ms, motor_position_rad=pair(error_rad), **gains)
    return host.board.outputs[0].iq_a


def test_the_integral_holds_while_the_output_is_clamped() -> None:
    host = FrameHost("arm")
    host.enable()
    for _ in range(3):
        assert integrated(host, 0.1, 1000, kp=0.3) == SMALL_A
    # It holds what was missing then, 95 mA; the other error takes 30 of them at once.
    assert integrated(host, -0.1, 130, kp=0.3) == pytest.approx(0.0, abs=0.01)


def test_it_is_cleared_while_the_motor_is_not_enabled() -> None:
    host = FrameHost("arm")
    host.enable()
    assert integrated(host, 0.1, 150) > 0.06
    host.keep_sending(0, 2)
    host.enable()
    assert abs(integrated(host, 0.0, 20)) < 0.005


@pytest.mark.parametrize("reading", IdleIntegral)
def test_what_becomes_of_it_while_ki_is_0_is_an_option(reading: IdleIntegral) -> None:
    assert set(PROFILES["arm"].behaviour.idle_integrals) == set(IdleIntegral)
    host = FrameHost("arm", idle_integral=reading)
    host.enable()
    before_a = integrated(host, 0.1, 100)
    integrated(host, 0.1, 50, ki=0.0)
    after_a = integrated(host, 0.0, 5)
    expected_a = {
        IdleIntegral.CLEARED: 0.0,
        IdleIntegral.KEPT: before_a,
        IdleIntegral.RUNS_ON: 1.5 * before_a,
    }
    assert after_a == pytest.approx(expected_a[reading], abs=0.004)


# --- differences and overflows --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "at_turns", "sign"),
    [("arm", 127.9, -1), ("uomodri", 127.9, -1), ("udriver2", 99.9, 1)],
)
def test_position_errors_are_plain_differences(profile: str, at_turns: float, sign: int) -> None:
    """A fifth of a turn ahead across the wrap: 255.8 turns back, or as 32 bits have it."""
    host = FrameHost(profile)
    host.enable()
    host.lead_to(at_turns * TURN_RAD)
    beyond = {"motor_position_rad": -at_turns * TURN_RAD, "kp_a_per_rad": 0.1}
    assert settled_a(host, **beyond) == sign * SMALL_A


@pytest.mark.parametrize(("profile", "turns"), [("arm", 128), ("uomodri", 128), ("udriver2", 100)])
def test_positions_jump_at_the_wrap(profile: str, turns: int) -> None:
    host = FrameHost(profile)
    host.enable()
    host.lead_to((turns - 0.5) * TURN_RAD)
    before_rad = host.plant.motor_position_rad[0]
    assert host.reply is not None
    reported_rad = host.reply.motor_position_rad[0]
    for _ in range(500):
        host.send(MOTOR_1, motor_velocity_rad_s=pair(20.0), kd_a_s_per_rad=pair(0.05))
    turned_rad = host.plant.motor_position_rad[0] - before_rad
    assert turned_rad > 0.6 * TURN_RAD
    jump_rad = host.reply.motor_position_rad[0] - (reported_rad + turned_rad)
    assert jump_rad == pytest.approx(-2 * turns * TURN_RAD, abs=0.1)


@pytest.mark.parametrize(("profile", "sign"), [("arm", 1), ("uomodri", 1), ("udriver2", -1)])
def test_a_sum_of_128_a_changes_its_sign_on_udriver2(profile: str, sign: int) -> None:
    host = FrameHost(profile)
    host.enable()
    below = {"motor_position_rad": 4.05 * TURN_RAD, "kp_a_per_rad": 5.0}
    above = {"motor_position_rad": 4.1 * TURN_RAD, "kp_a_per_rad": 5.0}
    assert settled_a(host, **below) == SMALL_A
    assert settled_a(host, **above) == sign * SMALL_A
    assert settled_a(host, motor_position_rad=-4.1 * TURN_RAD, kp_a_per_rad=5.0) == -sign * SMALL_A


# --- between frames -------------------------------------------------------------------------------


@every_profile
def test_between_frames_only_arm_moves_the_reference_on(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    host.send(MOTOR_1, motor_velocity_rad_s=pair(0.5), kp_a_per_rad=pair(1.0), **SMALL)
    host.pause(100.0)
    expected_a = 0.05 if profile == "arm" else 0.0
    assert host.board.outputs[0].iq_a == pytest.approx(expected_a, abs=0.002)


def bias_ms(speed_hz: int, seed: int = 0) -> float:
    """The c of the bias −Kp·ω·c of iq sampled once per frame, on a turning motor."""
    kp, speed_rad_s = 0.2, 100.0
    host = FrameHost("uomodri", speed_hz=speed_hz, seed=seed)
    host.enable()
    position_rad, reported_a, true_a = 0.0, 0.0, 0.0
    output, count = host.board.outputs[0], 0
    for cycle in range(1600):
        position_rad += 1e-3 * speed_rad_s
        command = host.frame(
            MOTOR_1,
            motor_position_rad=pair(position_rad),
            motor_velocity_rad_s=pair(speed_rad_s),
            kp_a_per_rad=pair(kp),
            kd_a_s_per_rad=pair(0.01),
        )
        for _ in range(4):
            host.pause(0.25)
            true_a += 0.25 * output.iq_a if cycle >= 600 else 0.0
        reply = host.exchange(command, after_ms=0.0)
        if cycle >= 600 and reply is not None:
            reported_a += reply.iq_a[0] + 0.5 * LSB_A  # truncated
            count += 1
    sent_kp = on_the_wire("uomodri", kp_a_per_rad=kp)["kp_a_per_rad"]
    return 1e3 * (true_a - reported_a) / count / (sent_kp * speed_rad_s)


@pytest.mark.parametrize(
    ("speed_hz", "lowest_ms", "highest_ms"),
    # On the firmware 0.31 to 0.32, 0.26 to 0.30, 0.21 to 0.23; by the formula 0.31, 0.28, 0.17.
    [(1_000_000_000, 0.30, 0.325), (8_000_000, 0.26, 0.305), (2_000_000, 0.165, 0.235)],
)
def test_the_bias_of_a_held_reference_depends_on_the_wire(
    speed_hz: int, lowest_ms: float, highest_ms: float
) -> None:
    assert lowest_ms <= bias_ms(speed_hz) <= highest_ms


# --- replies --------------------------------------------------------------------------------------


@every_profile
@pytest.mark.parametrize("sign", [1, -1])
def test_currents_are_cut_toward_zero(profile: str, sign: int) -> None:
    host = FrameHost(profile)
    host.enable()
    for steps in (20.3, 51.5, 70.9):
        values: dict[str, Any] = {
            "motor_position_rad": pair(sign * steps * LSB_A / 0.5),
            "kp_a_per_rad": pair(0.5),
        }
        reply = host.keep_sending(MOTOR_1, 30, **values, **SMALL)
        true_a = host.board.outputs[0].iq_a
        assert abs(abs(true_a) / LSB_A - steps) < 0.1
        assert reply.iq_a[0] / LSB_A == math.trunc(true_a / LSB_A)
