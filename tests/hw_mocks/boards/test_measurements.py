"""What a board measures: encoder counts, low-passed velocity and current, wrap and index."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from board_rig import EPRE, IDLE, MODE, ON, STATUS, Rig

from hw_mocks.plants.effects import PRESETS

COUNT_RAW = 2**24 // 4096
TURN_RAW = 2**24
LSB_RAD = math.tau / TURN_RAW
LSB_A = 2.0**-10
MakeRig = Callable[..., Rig]


def raw(position_rad: float) -> int:
    return round(position_rad / LSB_RAD)


def test_positions_come_in_whole_encoder_counts(rig: MakeRig) -> None:
    turning = rig("arm")
    turning.calibrate()
    replies = turning.run(300, mode=ON, iq_ff_a=0.3)
    positions = {raw(reply.motor_position_rad[0]) for reply in replies}
    assert len(positions) > 250
    # Cut by one where a count is no whole number of the wire's steps for our rounding.
    assert {-position % COUNT_RAW for position in positions} <= {0, 1}


def test_the_wire_is_finer_than_the_encoder(rig: MakeRig) -> None:
    turning = rig("arm", effects=replace(PRESETS["default"], is_encoder_quantised=False))
    turning.calibrate()
    replies = turning.run(300, mode=ON, iq_ff_a=0.3)
    assert len({raw(reply.motor_position_rad[0]) % COUNT_RAW for reply in replies}) > 100


def test_reported_position_is_that_of_the_rotor_since_calibration(rig: MakeRig) -> None:
    turning = rig("arm")
    turning.calibrate()
    zero = turning.robot.plant.motor_position_rad[0]
    for _ in range(100):
        turning.step()
        position = turning.ask(mode=ON, iq_ff_a=1.0).motor_position_rad[0]
        travelled = turning.robot.plant.motor_position_rad[0] - zero
        assert position == pytest.approx(travelled, abs=2.0 * math.tau / 4096)


def test_velocity_is_low_passed_at_100_hz(profile: str, rig: MakeRig) -> None:
    """Against a filter of our own on the rotor's true speed, through a start and a reversal."""
    turning = rig(profile, effects=IDLE)
    turning.calibrate()
    steps_s, expected = 250e-6, turning.ask(mode=ON).motor_velocity_rad_s[0]
    before = turning.robot.plant.motor_velocity_rad_s[0]
    decay = math.exp(-2.0 * math.pi * 100.0 * steps_s)
    for number in range(400):
        ff = 2.0 if number < 100 else -2.0
        turning.ask(mode=ON, iq_ff_a=ff)
        turning.step()
        now = turning.robot.plant.motor_velocity_rad_s[0]
        expected = decay * expected + (1.0 - decay) * 0.5 * (before + now)
        before = now
        reported = turning.ask(mode=ON, iq_ff_a=ff).motor_velocity_rad_s[0]
        assert reported == pytest.approx(expected, abs=0.5)
    assert abs(expected - now) > 5.0  # the filter really lags


def test_current_is_low_passed_at_1_khz(held: Rig) -> None:
    behaviour = held.profile.behaviour
    held.wait()
    held.send(mode=ON, iq_ff_a=2.0)
    wire_s = held.profile.frame_size * 8.0 / held.board.clock_hz
    # It acts at the next tick after the wire, and a reply was latched a little before its window.
    uncertain_s = behaviour.law_period_s + behaviour.reply_age_max_s
    for number in range(1, 8):
        held.step()
        latest_s = number * 250e-6 - wire_s
        low_a, high_a = (
            2.0 * (1.0 - math.exp(-math.tau * 1000.0 * elapsed_s))
            for elapsed_s in (latest_s - uncertain_s, latest_s)
        )
        assert low_a - LSB_A <= held.look().iq_a[0] <= high_a


def test_the_noise_of_iq_has_the_size_asked_for(rig: MakeRig) -> None:
    still = rig("arm", effects=replace(IDLE, iq_noise_a=0.05))
    still.calibrate()
    replies = still.run(2000, mode=ON)[100:]
    assert np.std([reply.iq_a[0] for reply in replies]) == pytest.approx(0.05, rel=0.1)
    assert {reply.iq_a[1] for reply in replies} == {0.0}


def test_torque_is_what_the_board_makes_of_its_measured_current(rig: MakeRig) -> None:
    """Noise and all: it would otherwise betray the true current."""
    still = rig("arm")
    still.calibrate()
    nm_per_a = still.robot.robot.motors["mn4004"].torque_constant_nm_per_a
    for reply in still.run(200, mode=ON, iq_ff_a=0.4):
        expected = nm_per_a * reply.iq_a[0]
        assert reply.motor_torque_nm[0] == pytest.approx(expected, abs=2.0**-12)


# --- wrap -----------------------------------------------------------------------------------------


SIDES = pytest.mark.parametrize(
    ("profile", "sign"), [("arm", 1.0), ("uomodri", -1.0), ("udriver2", 1.0)]
)


def spin_across_the_wrap(rig: Rig, mode: int, sign: float) -> list[float]:
    positions = []
    for _ in range(4000):
        reply = rig.send(mode=mode, iq_ff_a=sign * 1.0, timeout_ms=100)
        rig.wait()
        positions.append(reply.motor_position_rad[0] / math.tau)
        if len(positions) > 1 and sign * (positions[-1] - positions[-2]) < -100.0:
            break
        if reply.status & 0xF:
            break
    return positions


@SIDES
def test_positions_wrap_without_an_error(profile: str, rig: MakeRig, sign: float) -> None:
    wrap = {"arm": 128.0, "uomodri": 128.0, "udriver2": 100.0}[profile]
    turning = rig(profile)
    turning.calibrate()
    positions = spin_across_the_wrap(turning, ON, sign)
    assert -wrap <= min(positions) and max(positions) < wrap
    assert sign * positions[-2] == pytest.approx(wrap, abs=0.2)
    assert sign * positions[-1] == pytest.approx(-wrap, abs=0.2)
    # It goes on evenly on the other side.
    before, after = positions[-2] - positions[-3], positions[-1] - positions[-2] + sign * 2 * wrap
    assert after == pytest.approx(before, rel=0.1)
    replies = turning.run(20, mode=ON, iq_ff_a=sign * 1.0)
    assert not replies[-1].status & 0xF


@SIDES
def test_with_epre_the_wrap_is_error_5(profile: str, rig: MakeRig, sign: float) -> None:
    turning = rig(profile)
    turning.calibrate()
    spin_across_the_wrap(turning, ON | EPRE, sign)
    reply = turning.ask_again(mode=ON | EPRE)
    assert reply.status & 0xF == 5
    # It brakes or coasts, and does not obey.
    speed = turning.robot.plant.motor_velocity_rad_s[0]
    turning.run(20, mode=ON | EPRE, iq_ff_a=sign)
    assert abs(turning.robot.plant.motor_velocity_rad_s[0]) < abs(speed)


def test_epre_does_not_complain_about_a_wrap_of_the_past(rig: MakeRig) -> None:
    turning = rig("arm")
    turning.calibrate()
    spin_across_the_wrap(turning, ON, 1.0)
    replies = turning.run(20, mode=ON | EPRE)
    assert not replies[-1].status & 0xF


# --- index ----------------------------------------------------------------------------------------


HALF_A_TURN = {"posture_rad": (math.pi / 31.0,)}
"""A rotor that stands opposite to its index."""


def test_the_index_is_found_once_and_toggles_every_turn(rig: MakeRig) -> None:
    turning = rig("arm", **HALF_A_TURN)
    assert not turning.calibrate().status & (STATUS["IDX1D"] | STATUS["IDX1T"])
    found, toggles, position = [], [], []
    for _ in range(1200):
        reply = turning.ask(mode=ON, motor_velocity_rad_s=40.0, kd_a_s_per_rad=0.05)
        turning.step()
        found.append(bool(reply.status & STATUS["IDX1D"]))
        toggles.append(bool(reply.status & STATUS["IDX1T"]))
        position.append(reply.motor_position_rad[0])
    first = found.index(True)
    assert 0.0 < position[first] < math.tau
    assert all(found[first:])
    changes = [k for k in range(1, len(toggles)) if toggles[k] != toggles[k - 1]]
    assert changes[0] == first
    assert len(changes) == 1 + math.floor((position[-1] - position[first]) / math.tau)
    for earlier, later in pairwise(changes):
        assert position[later] - position[earlier] == pytest.approx(math.tau, abs=0.02)
    assert not reply.status & (STATUS["IDX2D"] | STATUS["IDX2T"])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_with_eixoc_the_position_jumps_when_the_index_is_found(rig: MakeRig, sign: float) -> None:
    turning = rig("arm", **HALF_A_TURN)
    turning.calibrate()
    mode = ON | MODE["EI1OC"]
    fields = {"motor_velocity_rad_s": sign * 40.0, "kd_a_s_per_rad": 0.05}
    previous = turning.ask(mode=mode, **fields)
    for _ in range(1000):
        turning.step()
        reply = turning.ask(mode=mode, **fields)
        if reply.status & STATUS["IDX1D"]:
            break
        previous = reply
    # Zero is at the index now, in whole counts.
    assert abs(reply.motor_position_rad[0]) < 0.03
    assert -sign * raw(reply.motor_position_rad[0]) % COUNT_RAW in (0, 1)
    jump = reply.motor_position_rad[0] - previous.motor_position_rad[0]
    assert sign * jump == pytest.approx(-math.pi, abs=0.3)
    turning.step()
    after = turning.ask(mode=mode, **fields)
    assert abs(after.motor_position_rad[0] - reply.motor_position_rad[0]) < 0.03
    # Without the bit the board counts from calibration, as before.
    plain = turning.ask(mode=ON, **fields)
    plain = turning.ask(mode=ON, **fields)
    shift = plain.motor_position_rad[0] - after.motor_position_rad[0]
    assert shift == pytest.approx(-jump, abs=0.05)


def test_without_care_the_jump_moves_the_motor(rig: MakeRig) -> None:
    """A position loop follows the jump: the trap that PROTOCOL.md warns of."""
    ends = []
    for mode in (ON, ON | MODE["EI1OC"]):
        moving = rig("arm", **HALF_A_TURN)
        moving.calibrate()
        gains = {"kp_a_per_rad": 1.0, "kd_a_s_per_rad": 0.02}
        for cycle in range(700):
            reference = min(6.5, 0.02 * cycle)
            moving.send(mode=mode, motor_position_rad=reference, **gains)
            moving.wait()
        ends.append(moving.robot.plant.motor_position_rad[0])
    assert abs(ends[1] - ends[0]) > 0.5


@SIDES
def test_with_eixoc_the_turn_counter_still_wraps_about_the_calibration_zero(
    profile: str, rig: MakeRig, sign: float
) -> None:
    """So the reported range is not symmetric: it ends half a turn early on one side."""
    turning = rig(profile, **HALF_A_TURN)
    turning.calibrate()
    positions = spin_across_the_wrap(turning, ON | MODE["EI1OC"], sign)
    wrap = turning.profile.behaviour.position_wrap_turns
    encoder = turning.board.outputs[0].encoder
    assert encoder.is_index_found
    assert positions[-2] == pytest.approx(sign * (wrap - 0.5), abs=0.2)
    # The wire carries no more than 128 turns; that the board stays there is our choice.
    beyond = min(wrap + 0.5, 128.0)
    assert positions[-1] == pytest.approx(-sign * beyond, abs=0.2)
