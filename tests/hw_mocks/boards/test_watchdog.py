"""The watchdog of each firmware: when it runs, how exact it is, and what counts as a command."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from board_rig import ES, IDLE, MS_NS, ON, STATUS, Rig

from firmware_protocol.behaviour import Watchdog
from firmware_protocol.profiles import PROFILES

MakeRig = Callable[..., Rig]
ALWAYS = [name for name, p in PROFILES.items() if p.behaviour.watchdog is Watchdog.ALWAYS]
PUSH_A = 0.3


def error(rig: Rig) -> int:
    return int(rig.look().status & 0xF)


def struck_ms(rig: Rig, limit_ms: float) -> float | None:
    """How long after now error 2 is there; None for not until then."""
    began_ns = rig.robot.now_ns
    while rig.robot.now_ns - began_ns < limit_ms * MS_NS:
        rig.step()
        if rig.board.error:
            assert error(rig) == 2
            return (rig.robot.now_ns - began_ns) / MS_NS
    assert error(rig) == 0
    return None


def test_which_firmware_watches_when() -> None:
    assert set(ALWAYS) == {"arm", "uomodri"}


@pytest.mark.parametrize("name", ALWAYS)
def test_uomodri_and_arm_watch_in_every_state_also_with_es_0(rig: MakeRig, name: str) -> None:
    late_ms = []
    for seed in range(24):
        mode, timeout_ms = (0, ES, ON)[seed % 3], (1, 7)[seed % 2]
        watched = rig(name, seed=seed)
        watched.run(3, mode=mode)
        watched.send(mode=mode, timeout_ms=timeout_ms)
        late_ms.append((struck_ms(watched, timeout_ms + 5) or 0.0) - timeout_ms)
    # At the time-out or up to a millisecond later.
    assert min(late_ms) in (0.0, 0.25) and max(late_ms) == 1.0


@pytest.mark.parametrize("timeout_ms", [1, 255])
def test_a_running_motor_is_watched_on_every_board(
    profile: str, rig: MakeRig, timeout_ms: int
) -> None:
    watched = rig(profile)
    watched.calibrate()
    watched.run(3, mode=ON, iq_ff_a=PUSH_A)
    watched.send(mode=ON, iq_ff_a=PUSH_A, timeout_ms=timeout_ms)
    late_ms = (struck_ms(watched, timeout_ms + 5) or 0.0) - timeout_ms
    assert 0.0 <= late_ms <= 1.0


@pytest.mark.parametrize("mode", [0, ES, ON])
def test_udriver2_does_not_mind_silence_at_zero_current(rig: MakeRig, mode: int) -> None:
    silent = rig("udriver2")
    silent.calibrate()
    silent.run(3, mode=mode)
    silent.send(mode=mode, timeout_ms=5)
    assert struck_ms(silent, 1000) is None


def test_timeout_zero_is_never(profile: str, rig: MakeRig) -> None:
    unwatched = rig(profile)
    for mode in (0, ES, ON):
        unwatched.run(80, mode=mode)
        unwatched.send(mode=mode, timeout_ms=0, iq_ff_a=PUSH_A)
        unwatched.wait(300)
        assert error(unwatched) == 0
    assert unwatched.robot.plant.motor_velocity_rad_s[0] > 10.0


def test_each_valid_command_winds_the_watchdog_up(profile: str, rig: MakeRig) -> None:
    watched = rig(profile)
    watched.calibrate()
    watched.wait()
    for _ in range(50):
        watched.send(mode=ON, iq_ff_a=PUSH_A, timeout_ms=5)
        watched.wait(4)
    assert error(watched) == 0


def test_commands_with_a_bad_checksum_are_ignored_silently_and_the_watchdog_runs(
    profile: str, rig: MakeRig
) -> None:
    watched = rig(profile)
    watched.calibrate()
    watched.run(3, mode=ON, iq_ff_a=PUSH_A)
    watched.send(mode=ON, iq_ff_a=PUSH_A, timeout_ms=10)
    echo = watched.index
    for _ in range(9):
        watched.wait()
        damaged = bytearray(watched.frame(mode=ON, timeout_ms=10, iq_ff_a=5.0))
        damaged[15] ^= 1
        reply = watched.decode(watched.board.transfer(bytes(damaged)))
        # Nothing in the reply but the index tells.
        assert reply.status & 0xF == 0
        assert 0 <= echo - reply.index < watched.profile.behaviour.reply_lag_max
    assert abs(reply.iq_a[0] - PUSH_A) < 0.1
    watched.wait(2)
    assert error(watched) == 2


@pytest.mark.parametrize(("timeout_ms", "struck"), [(5, 50), (100, 100), (0, None)])
def test_a_shortest_timeout_can_be_given_for_foreign_programs(
    rig: MakeRig, timeout_ms: int, struck: int | None
) -> None:
    lenient = rig("uomodri", timeout_min_ms=50)
    lenient.run(2)
    lenient.send(timeout_ms=timeout_ms)
    after_ms = struck_ms(lenient, 200)
    if struck is None:
        assert after_ms is None
    else:
        assert after_ms is not None and struck <= after_ms <= struck + 1


# --- udriver2's clock -----------------------------------------------------------------------------

OVERFLOW_S = 17.9 * 60.0


def test_the_clock_of_udriver2_overflows_after_17_9_minutes_error_2_under_current(
    profile: str, rig: MakeRig
) -> None:
    aged = rig(profile, effects=IDLE)
    aged.board.power_on(uptime_s=OVERFLOW_S - 0.2)
    aged.calibrate()
    aged.run(100, mode=ON, iq_ff_a=PUSH_A)
    assert error(aged) == 0
    aged.run(100, mode=ON, iq_ff_a=PUSH_A)
    is_affected = aged.profile.behaviour.clock_overflow_s is not None
    assert is_affected == (profile == "udriver2")
    assert error(aged) == (2 if is_affected else 0)


def test_without_current_the_overflow_passes_unseen_until_some_flows(rig: MakeRig) -> None:
    aged = rig("udriver2")
    aged.board.power_on(uptime_s=OVERFLOW_S - 0.06)
    aged.calibrate()
    assert not aged.run(100, mode=ON)[-1].status & 0xF
    assert aged.run(5, mode=ON, iq_ff_a=PUSH_A)[-1].status & 0xF == 2
    assert not aged.look().status & STATUS["SE"]
    # Only the supply ends it, and with it the uptime.
    aged.board.power_off()
    aged.board.power_on()
    aged.calibrate()
    assert not aged.run(50, mode=ON, iq_ff_a=PUSH_A)[-1].status & 0xF
