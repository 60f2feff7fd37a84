"""Watchdog, errors and enabling as the shared protocol page has them."""

from __future__ import annotations

import math
from functools import partial

import pytest
from frame_host import BOTH, MOTOR_1, MOTOR_2, FrameHost, bits

from daq.robot import load_robot
from firmware_protocol.profiles import MODE_BITS, PROFILES

every_profile = pytest.mark.parametrize("profile", PROFILES)
braking_profiles = pytest.mark.parametrize("profile", ["arm", "uomodri"])
READY_1, ENABLED_1 = bits("M1R"), bits("M1E")
READY, ENABLED = bits("M1R", "M2R"), bits("M1E", "M2E")
PUSH = {"iq_ff_a": (0.1, 0.1)}
"""Below breakaway: motors stay where they are."""


def arm_host(profile: str, **options: object) -> FrameHost:
    """Two motors on a board."""
    return FrameHost(profile, robot=load_robot("laas4").driven(), **options)  # type: ignore[arg-type]


# --- watchdog -------------------------------------------------------------------------------------


@braking_profiles
@pytest.mark.parametrize("mode", [0, MOTOR_1])
def test_the_watchdog_counts_in_every_state(profile: str, mode: int) -> None:
    struck_ms = []
    for seed in range(8):
        host = FrameHost(profile, seed=seed)
        host.keep_sending(mode, 5, timeout_ms=20)
        waited_ms = 0.0
        while not host.board.error:
            host.pause(0.25)
            waited_ms += 0.25
        struck_ms.append(waited_ms)
        host.send(mode)
        assert host.code == 2
    assert min(struck_ms) >= 20.0
    assert max(struck_ms) <= 21.25
    assert len(set(struck_ms)) > 1


@every_profile
def test_time_out_0_is_none(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    host.keep_sending(MOTOR_1, 20, **PUSH)
    host.send(MOTOR_1, after_ms=1000)
    assert host.code == 0


@pytest.mark.parametrize(
    ("mode", "iq_ff_a", "code"), [(0, 0.1, 0), (MOTOR_1, 0.0, 0), (MOTOR_1, 0.1, 2)]
)
def test_udriver2_times_out_only_under_current(mode: int, iq_ff_a: float, code: int) -> None:
    host = FrameHost("udriver2")
    host.enable(timeout_ms=20)
    send = partial(host.send, mode, timeout_ms=20, iq_ff_a=(iq_ff_a, iq_ff_a))
    for _ in range(20):
        send()
    send(after_ms=1000)
    send()
    assert host.code == code


# --- errors ---------------------------------------------------------------------------------------


@every_profile
def test_how_long_an_error_lasts(profile: str) -> None:
    host = FrameHost(profile, faults=["board-error:at=0.05,code=5"])
    host.keep_sending(MOTOR_1, 80)
    assert host.code == 5
    host.keep_sending(0, 3)
    host.keep_sending(MOTOR_1, 20)
    assert host.code == (0 if profile == "arm" else 5)
    host.board.power_off()
    host.board.power_on()
    host.keep_sending(0, 3)
    assert host.code == 0


def test_status_after_error_2() -> None:
    for profile, expected in (
        ("uomodri", bits("SE") | ENABLED | 2),
        ("arm", bits("SE") | ENABLED | 2),
        ("udriver2", ENABLED | READY | 2),
    ):
        host = arm_host(profile)
        host.enable(BOTH, timeout_ms=50)
        host.keep_sending(BOTH, 20, timeout_ms=50, **PUSH)
        for _ in range(3):
            host.send(BOTH, after_ms=200, timeout_ms=50, **PUSH)
        mask = bits("SE") | ENABLED | READY | 0xF
        assert (profile, host.status & mask) == (profile, expected)


@every_profile
@pytest.mark.parametrize("state", ["idle", "stop", "error"])
def test_unpowered_motors_brake_or_coast(profile: str, state: str) -> None:
    faults = ["board-error:at=0.6,code=7"] if state == "error" else []
    host = FrameHost(profile, faults=faults)
    host.enable()
    turning = {"motor_velocity_rad_s": (100.0, 100.0), "kd_a_s_per_rad": (0.05, 0.05)}
    while host.clock.now_ns() < 590_000_000:
        host.send(MOTOR_1, **turning)
    before_rad_s = host.plant.motor_velocity_rad_s[0]
    assert before_rad_s > 80.0
    mode = {"idle": 0, "stop": MODE_BITS["ES"], "error": MOTOR_1}[state]
    host.keep_sending(mode, 10 if state == "error" else 1, **turning)
    before_rad_s = host.plant.motor_velocity_rad_s[0]
    host.keep_sending(mode, 20, **turning)
    left = host.plant.motor_velocity_rad_s[0] / before_rad_s
    assert left > 0.9 if profile == "udriver2" else left < 0.25


@every_profile
@pytest.mark.parametrize("motor", [1, 2])
def test_a_fault_of_one_motor(profile: str, motor: int) -> None:
    host = arm_host(profile, faults=[f"board-error:at=1.6,code=7,motor={motor}"])
    host.enable(BOTH)
    while host.clock.now_ns() < 1_700_000_000:
        host.send(BOTH, **PUSH)
    assert host.code == 7
    failed, other = (host.board.outputs[n] for n in (motor - 1, 2 - motor))
    assert failed.iq_a == pytest.approx(0.0, abs=0.01)
    goes_on = profile != "udriver2"
    assert (abs(other.iq_a) > 0.09) is goes_on
    if goes_on:
        assert host.status & READY == bits(f"M{3 - motor}R")


@every_profile
def test_a_gate_driver_that_fails_to_initialise_has_no_code(profile: str) -> None:
    host = FrameHost(profile, faults=["board-error:at=0,code=0"])
    host.keep_sending(MOTOR_1, 3000)
    assert (host.code, host.status & READY_1) == (0, 0)
    host.keep_sending(MOTOR_1, 5, **PUSH)
    assert host.board.outputs[0].iq_a == 0.0


# --- status bits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "mode", "is_system_enabled"),
    [
        ("uomodri", MOTOR_1, False),
        ("uomodri", MOTOR_2, True),
        ("uomodri", BOTH, True),
        ("arm", MOTOR_1, False),
        ("arm", MOTOR_2, True),
        ("udriver2", MOTOR_1, True),
        ("udriver2", MOTOR_2, True),
    ],
)
def test_where_se_comes_from(profile: str, mode: int, is_system_enabled: bool) -> None:
    host = arm_host(profile)
    host.enable(mode)
    host.keep_sending(mode, 10)
    assert bool(host.status & bits("SE")) is is_system_enabled
    assert host.code == 0


@braking_profiles
def test_es_alone_shows_nothing(profile: str) -> None:
    host = FrameHost(profile)
    host.keep_sending(MODE_BITS["ES"], 50)
    assert host.status & (bits("SE") | ENABLED | READY) == 0


@every_profile
def test_a_motor_dropped_and_raised_again(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    host.keep_sending(MODE_BITS["ES"], 5)
    assert host.status & ENABLED_1 == 0
    host.keep_sending(MOTOR_1, 50, **PUSH)
    assert host.status & (ENABLED_1 | READY_1) == ENABLED_1 | READY_1
    is_dead = abs(host.board.outputs[0].iq_a) < 0.01
    assert is_dead is (profile != "udriver2")
    host.keep_sending(0, 2)
    host.enable()
    host.keep_sending(MOTOR_1, 5, **PUSH)
    assert host.board.outputs[0].iq_a == pytest.approx(0.1, abs=0.01)


# --- calibration ----------------------------------------------------------------------------------


def rising_ms(host: FrameHost, mode: int, wanted: list[int], within_ms: int) -> list[int]:
    """After how many milliseconds of frames each bit was first seen."""
    seen: dict[int, int] = {}
    for elapsed_ms in range(within_ms):
        host.send(mode)
        for bit in wanted:
            if host.status & bit:
                seen.setdefault(bit, elapsed_ms)
        if len(seen) == len(wanted):
            break
    return [seen[bit] for bit in wanted]


@braking_profiles
def test_calibration_begins_late_and_not_at_the_same_time(profile: str) -> None:
    begun = []
    for seed in range(4):
        host = arm_host(profile, calibration_s=None, seed=seed)
        begun.append(rising_ms(host, BOTH, [bits("M1E"), bits("M2E")], within_ms=1200))
    assert max(map(max, begun)) <= 1050
    assert max(map(min, begun)) > 50
    assert all(abs(first - second) <= 42 for first, second in begun)
    assert any(first != second for first, second in begun)


@braking_profiles
def test_calibration_goes_back_an_electrical_turn_and_forth_again(profile: str) -> None:
    host = FrameHost(profile, calibration_s=None)
    motor = host.mock.robot.motor_of(host.mock.robot.joints[0])
    electrical_rad = math.tau / motor.pole_pairs
    start_rad = host.plant.motor_position_rad[0]
    positions_rad, begun_ms, ready_ms = [], 0, 0
    for elapsed_ms in range(5000):
        host.send(MOTOR_1)
        assert host.reply is not None
        positions_rad.append(host.plant.motor_position_rad[0])
        if host.status & ENABLED_1 and not begun_ms:
            begun_ms = elapsed_ms
        if host.status & READY_1:
            ready_ms = elapsed_ms
            break
        assert host.reply.motor_position_rad == (0.0, 0.0)
    assert ready_ms - begun_ms == pytest.approx(3000, abs=150)
    assert min(positions_rad) - start_rad == pytest.approx(
        -electrical_rad, abs=0.6 * electrical_rad
    )
    assert max(positions_rad) - min(positions_rad) > 0.9 * electrical_rad
    assert abs(positions_rad[-1] - start_rad) < 0.6 * electrical_rad


@every_profile
def test_what_is_left_of_a_calibration_when_es_drops(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    host.keep_sending(MOTOR_1, 200, motor_position_rad=(2.0, 2.0), kp_a_per_rad=(1.0, 1.0))
    assert host.reply is not None
    there_rad = host.reply.motor_position_rad[0]
    assert there_rad > 1.0
    host.keep_sending(0, 300)
    is_kept = profile == "udriver2"
    assert bool(host.status & READY_1) is is_kept
    reported_rad = host.reply.motor_position_rad[0]
    assert reported_rad == pytest.approx(there_rad, abs=0.5) if is_kept else reported_rad == 0.0
    assert (host.enable() < 5) is is_kept


def test_udriver2_aligns_in_a_second_with_live_positions() -> None:
    host = FrameHost("udriver2", calibration_s=None)
    host.keep_sending(0, 5)
    host.plant.step([0.05])  # somebody pushes the motor
    for _ in range(40):
        host.plant.step([0.0])
    host.keep_sending(0, 5)
    assert host.reply is not None and host.reply.motor_position_rad[0] > 0.0
    assert host.enable() == pytest.approx(1000, abs=20)


@every_profile
def test_with_eixoc_the_position_jumps_at_the_index_and_wraps_where_it_did(profile: str) -> None:
    host = FrameHost(profile, posture_rad=(0.1,))  # half a motor turn before the index
    host.enable()
    zero_rad = host.plant.motor_position_rad[0]
    mode, wrap_turns = MOTOR_1 | MODE_BITS["EI1OC"], PROFILES[profile].behaviour.position_wrap_turns

    def turns() -> tuple[float, float]:
        """As reported and as they are, both from the calibration's zero."""
        true_rad = host.plant.motor_position_rad[0] - zero_rad
        return host.keep_sending(mode, 5).motor_position_rad[0] / math.tau, true_rad / math.tau

    host.lead_to(0.2 * math.tau)
    reported, true = turns()
    assert reported == pytest.approx(true, abs=0.01)
    while not host.status & bits("IDX1D"):
        host.send(mode, motor_velocity_rad_s=(10.0, 10.0), kd_a_s_per_rad=(0.05, 0.05))
    host.keep_sending(mode, 50)
    reported, true = turns()
    jump = true - reported
    assert jump > 0.3

    host.lead_to((wrap_turns - 0.3 - jump) * math.tau, mode=mode)
    while host.plant.motor_position_rad[0] - zero_rad < (wrap_turns + 0.1) * math.tau:
        host.send(mode, motor_velocity_rad_s=(10.0, 10.0), kd_a_s_per_rad=(0.05, 0.05))
    reported, true = turns()
    # It would be positive yet, if it wrapped about the index; the wire carries no less than -128.
    assert true < wrap_turns + jump
    assert reported == pytest.approx(max(-128.0, true - jump - 2 * wrap_turns), abs=0.02)


@pytest.mark.parametrize(("profile", "is_measured"), [("uomodri", False), ("udriver2", True)])
def test_the_coil_is_measured_by_udriver2_alone(profile: str, is_measured: bool) -> None:
    host = FrameHost(profile)
    host.enable()
    reply = host.keep_sending(MOTOR_1, 5)._asdict()
    assert (reply["coil_resistance_ohm"][0] > 0.1) is is_measured
