"""Calibration as the firmwares do it: when it begins, how far it turns, what is known before."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import EM1, EM2, ES, IDLE, MS_NS, ON, STATUS, Rig

from daq.robot.description import Robot
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links

M1E, M1R, M2E, M2R = (STATUS[name] for name in ("M1E", "M1R", "M2E", "M2R"))
MakeRig = Callable[..., Rig]
ELECTRICAL_RAD = math.tau / 12
LATE = ["arm", "uomodri"]


def begins_ms(
    rig: Rig, limit_ms: int, *, period_ns: int = MS_NS, mode: int = ON
) -> dict[int, float]:
    """When each motor's bit MxE came, in ms after the first command, by frames of that period."""
    clock = VirtualClock()
    (link,) = mock_links(rig.robot, clock)
    wanted = [bit for bit, enable in ((M1E, EM1), (M2E, EM2)) if mode & enable]
    begun: dict[int, float] = {}
    while clock.now_ns() < limit_ms * MS_NS and len(begun) < len(wanted):
        status = rig.decode(link.exchange(rig.frame(mode=mode))).status
        for bit in wanted:
            if status & bit and bit not in begun:
                begun[bit] = clock.now_ns() / MS_NS
        clock.advance_ns(period_ns)
    return begun


# --- its beginning --------------------------------------------------------------------------------


def test_calibration_begins_0_to_1_s_late_on_uomodri_and_arm(bench: Robot) -> None:
    """The board's timer of 1.001 ms drifts past frames of 1.000 ms."""
    late_ms = []
    for seed in range(12):
        rig = Rig(bench, LATE[seed % 2], seed=seed, calibration_s=None)
        (begun_ms,) = begins_ms(rig, 1100).values()
        late_ms.append(begun_ms)
    assert max(late_ms) <= 1045.0
    assert max(late_ms) - min(late_ms) > 400.0


@pytest.mark.parametrize("name", LATE)
def test_it_never_begins_with_an_equal_period_and_an_unlucky_phase(rig: MakeRig, name: str) -> None:
    unlucky = rig(name, calibration_s=None)
    unlucky.board.timer_ns = MS_NS
    # Nothing drifts, so a third of a second stands for all.
    assert begins_ms(unlucky, 300) == {}
    assert unlucky.robot.plant.motor_position_rad[0] == 0.0


@pytest.mark.parametrize("slots", range(-3, 4))
def test_it_begins_when_frame_and_timer_fall_into_neighbouring_slots(
    rig: MakeRig, slots: int
) -> None:
    """Slots are the law's ticks of 25 µs."""
    asked = rig("uomodri", calibration_s=None)
    board = asked.board
    board.timer_ns = MS_NS
    asked.send()
    # The frame acts in the middle of a slot.
    board.line_ns = 10 * MS_NS + 12_500 - 34_000
    board._timer_phase_ns = (12_500 + slots * 25_000) % MS_NS
    asked.send(mode=ON, timeout_ms=0)
    asked.wait(60)
    assert bool(asked.look().status & M1E) == (abs(slots) == 1)


@pytest.mark.parametrize("timer_ns", [MS_NS, 1_001_000])
def test_it_begins_at_once_with_frames_that_sweep_a_millisecond(
    bench: Robot, timer_ns: int
) -> None:
    for seed in range(6):
        rig = Rig(bench, "uomodri", seed=seed, calibration_s=None)
        rig.board.timer_ns = timer_ns
        (begun_ms,) = begins_ms(rig, 200, period_ns=MS_NS + 20_000).values()
        assert begun_ms <= 55.0 + 40.0


def test_the_motors_of_a_board_begin_up_to_40_ms_apart(bench: Robot) -> None:
    apart_ms = []
    for seed in range(8):
        rig = Rig(bench, "uomodri", seed=seed, calibration_s=None)
        begun = begins_ms(rig, 300, period_ns=MS_NS + 20_000, mode=ES | EM1 | EM2)
        apart_ms.append(abs(begun[M1E] - begun[M2E]))
    assert max(apart_ms) <= 42.0
    assert max(apart_ms) > 5.0


def test_udriver2_begins_with_the_first_frame(rig: MakeRig) -> None:
    prompt = rig("udriver2", calibration_s=None)
    prompt.send(mode=ON, timeout_ms=0)
    prompt.wait(1001)
    assert prompt.look().status & M1R


# --- its travel -----------------------------------------------------------------------------------


def travel(rig: Rig) -> tuple[float, float, float, list[float]]:
    """Calibrate with the firmware's own times: how long, how far back, how far at the end, θ."""
    began_ns = None
    start_rad = rig.robot.plant.motor_position_rad[0]
    true_rad, said_rad = [], []
    for _ in range(6000):
        reply = rig.send(mode=ON)
        rig.wait()
        true_rad.append(rig.robot.plant.motor_position_rad[0])
        if began_ns is None and reply.status & M1E:
            began_ns = rig.robot.now_ns
        if reply.status & M1R:
            break
        said_rad.append(reply.motor_position_rad[0])
    lasted_s = (rig.robot.now_ns - (began_ns or 0)) * 1e-9
    return lasted_s, min(true_rad) - start_rad, true_rad[-1] - start_rad, said_rad


def test_it_turns_back_one_electrical_turn_and_forth_in_3_s_and_reads_0_before(
    rig: MakeRig,
) -> None:
    assert PROFILES["arm"].behaviour.calibration == PROFILES["uomodri"].behaviour.calibration
    fresh = rig("uomodri", calibration_s=None)
    lasted_s, back_rad, net_rad, said_rad = travel(fresh)
    assert lasted_s == pytest.approx(3.0, abs=0.01)
    assert back_rad == pytest.approx(-ELECTRICAL_RAD, rel=0.05)
    assert net_rad == pytest.approx(0.0, abs=0.01)
    assert set(said_rad) == {0.0}
    # Zero is where it has ended.
    assert abs(fresh.ask_again(mode=ON).motor_position_rad[0]) < 2.0 * math.tau / 4096
    # Dropping ES means calibrating again, from where the rotor has been turned to meanwhile.
    fresh.run(80, mode=ON, iq_ff_a=0.4)
    assert fresh.ask_again(mode=ON).motor_position_rad[0] > 0.1
    fresh.run(1)
    fresh.wait(50)
    reply = fresh.ask_again()
    assert not reply.status & M1R
    assert reply.motor_position_rad == (0.0, 0.0)
    lasted_s, back_rad, net_rad, said_rad = travel(fresh)
    assert lasted_s == pytest.approx(3.0, abs=0.01)
    assert -1.5 * ELECTRICAL_RAD < back_rad < -0.45 * ELECTRICAL_RAD
    assert 0.01 < abs(net_rad) <= 0.5 * ELECTRICAL_RAD + 0.01
    assert set(said_rad) == {0.0}


def test_udriver2_aligns_once_in_1_s_and_keeps_zero_and_ready(rig: MakeRig) -> None:
    kept = rig("udriver2", calibration_s=None, effects=IDLE)
    lasted_s, back_rad, net_rad, _ = travel(kept)
    assert lasted_s == pytest.approx(1.0, abs=0.01)
    assert (back_rad, net_rad) == pytest.approx((0.0, 0.0), abs=0.01)
    kept.run(300, mode=ON, iq_ff_a=0.3)
    before_rad = kept.ask_again(mode=ON).motor_position_rad[0]
    assert before_rad > 1.0
    for mode in (0, ES, 0):
        assert kept.run(20, mode=mode)[-1].status & M1R
    # It counted on, and runs at once when it is enabled again.
    assert kept.ask_again().motor_position_rad[0] > before_rad
    true_rad_s = kept.robot.plant.motor_velocity_rad_s[0]
    kept.run(20, mode=ON, iq_ff_a=0.5)
    assert kept.robot.plant.motor_velocity_rad_s[0] > true_rad_s
    # Once per power-up.
    kept.board.power_off()
    kept.board.power_on()
    assert not kept.run(5)[-1].status & M1R


def test_positions_of_udriver2_are_live_before_it_is_aligned(rig: MakeRig, bench: Robot) -> None:
    """A rotor that coasts after a reboot is seen to turn."""
    turning = rig("udriver2")
    turning.calibrate()
    turning.run(200, mode=ON, iq_ff_a=0.5)
    turning.board.power_off()
    turning.board.power_on()
    start_rad = turning.robot.plant.motor_position_rad[0]
    replies = turning.run(50)
    turned_rad = turning.robot.plant.motor_position_rad[0] - start_rad
    assert turned_rad > 1.0
    assert turning.look().motor_position_rad[0] == pytest.approx(turned_rad, abs=0.02)
    assert not any(reply.status & M1R for reply in replies)


# --- how it is interrupted and fails --------------------------------------------------------------


def test_stopping_during_calibration_starts_it_over(profile: str, rig: MakeRig) -> None:
    fresh = rig(profile)
    fresh.run(30, mode=ON)
    fresh.run(2, mode=ES)
    assert not fresh.ask_again(mode=ES).status & (M1E | M1R)
    assert fresh.run(40, mode=ON)[-1].status & (M1E | M1R) == M1E
    assert fresh.run(20, mode=ON)[-1].status & (M1E | M1R) == M1E | M1R


@pytest.mark.parametrize("name", LATE)
def test_a_motor_that_is_not_there_fails_alignment(rig: MakeRig, name: str) -> None:
    replies = rig(name).run(80, mode=ES | EM2)
    assert not replies[20].status & (M2R | 0xF)
    assert replies[-1].status & (M2E | M2R | 0xF) == M2E | 6


@pytest.mark.parametrize("name", LATE)
def test_a_blocked_rotor_fails_alignment(rig: MakeRig, name: str, blocked_bench: Robot) -> None:
    replies = rig(name, blocked_bench).run(80, mode=ON)
    assert replies[-1].status & (M1E | M1R | 0xF) == M1E | 1
    assert replies[-1].motor_position_rad[0] == 0.0
