"""What every link must do, in one suite: mock, spidev on the emulated device, pyserial on a pty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest
from link_rigs import Rig, open_rig

from daq.boards.board import Outcome, Reading
from daq.boards.outcomes import Counters
from daq.errors import DeviceBusyError, DeviceGoneError
from daq.links.trace import TracingLink
from daq.loop.setup import make_session
from firmware_protocol.profiles import PROFILES

RIGS = [
    "mock",
    pytest.param("spidev", marks=pytest.mark.compiler),
    pytest.param("serial", marks=pytest.mark.system),
]
every_rig = pytest.mark.parametrize("kind", RIGS)
every_profile = pytest.mark.parametrize("profile", list(PROFILES))

ES, EM1, READY_1 = 0x80, 0x40, 0x2000


def exchange(rig: Rig, count: int = 1, **fields: object) -> list[Reading]:
    """Some exchanges, with a rhythm and a time-out that a busy machine keeps."""
    readings = []
    for _ in range(count):
        rig.sleep_ms(1.0 if rig.kind == "mock" else 2.0)
        readings.append(rig.board.exchange(rig.board.command(**fields)))
    return readings


def exchange_until(rig: Rig, is_shown: Callable[[Counters], bool]) -> list[Reading]:
    """Exchanges until the counters show it: at most a hundred, more where machines are busy."""
    readings: list[Reading] = []
    for _ in range(5 if rig.kind == "mock" else 50):
        readings += exchange(rig, 20)
        if is_shown(rig.board.counters):
            return readings
    pytest.fail(f"not shown after {len(readings)} exchanges: {rig.board.counters}")


@every_rig
@every_profile
def test_replies_are_fresh_and_a_motor_is_enabled_calibrated_and_moved(
    kind: str, profile: str
) -> None:
    with open_rig(kind, profile) as rig:
        lag_max = rig.board.profile.behaviour.reply_lag_max
        readings = exchange(rig, 50)
        outcomes = Counter(reading.outcome for reading in readings)
        # A machine that is busy elsewhere keeps boards waiting, or us for their answers.
        away = (Outcome.STALLED, Outcome.SILENT) if kind != "mock" else ()
        hiccups = sum(outcomes.pop(outcome, 0) for outcome in away)
        assert hiccups < 25, outcomes
        assert outcomes[Outcome.UNCONFIRMED] <= lag_max, outcomes
        assert outcomes[Outcome.OK] + outcomes[Outcome.LATE] >= 50 - lag_max - hiccups, outcomes
        echoes = [reading.values.index for reading in readings if reading.values]
        assert echoes == sorted(echoes)
        assert 50 - 2 * lag_max - hiccups <= echoes[-1] - echoes[0] <= 49

        for _ in range(2000):
            (reading,) = exchange(rig, mode=ES | EM1)
            if reading.values and reading.values.status & READY_1:
                break
        assert reading.values is not None
        assert reading.values.status & READY_1
        target = {"motor_position_rad": (2.0, 0.0), "kp_a_per_rad": (1.0, 0.0)}
        readings = exchange(rig, 400, mode=ES | EM1, kd_a_s_per_rad=(0.02, 0.0), **target)
        last = readings[-1].values or readings[-2].values
        assert last is not None
        assert last.motor_position_rad[0] == pytest.approx(2.0, abs=0.5)


@every_rig
def test_damaged_replies_are_never_handed_on(kind: str) -> None:
    with open_rig(kind, "arm", "flip:rate=0.2,direction=reply") as rig:
        readings = exchange(rig, 100)
        # A mock that gets no processor time is a board whose clock stands still.
        readings = [reading for reading in readings[2:] if reading.outcome is not Outcome.STALLED]
        damaged = [reading for reading in readings if reading.values is None]
        assert 5 < len(damaged) < 50
        # On a serial line a flip in the header looks like silence or a rest.
        assert {r.outcome for r in damaged} <= {Outcome.CORRUPT, Outcome.TRUNCATED, Outcome.SILENT}
        assert rig.board.counters.corrupt > 0


@every_rig
def test_damaged_commands_are_noticed(kind: str) -> None:
    with open_rig(kind, "arm", "flip:rate=0.2,direction=command") as rig:
        # An RS-485 board answers valid commands only; on SPI the echo tells.
        lost = "lost_replies" if kind == "serial" else "lost_commands"
        exchange_until(rig, lambda counters: getattr(counters, lost) > 5)
        assert rig.board.counters.corrupt == 0


@every_rig
def test_dropped_exchanges_are_counted_and_survived(kind: str) -> None:
    with open_rig(kind, "arm", "drop:rate=0.2") as rig:
        exchange_until(rig, lambda counters: counters.lost_replies > 5 and counters.valid > 30)


@every_rig
def test_repeated_replies_are_stale(kind: str) -> None:
    with open_rig(kind, "arm", "repeat:rate=0.2") as rig:
        readings = exchange_until(rig, lambda counters: counters.stale > 5 and counters.valid > 30)
        assert all(r.values is None for r in readings if r.outcome is Outcome.STALE)


@every_rig
@every_profile
def test_the_link_finds_back_after_truncated_exchanges(kind: str, profile: str) -> None:
    # spidev hides a short transfer: its rest reads zero, so it shows as a wrong checksum.
    truncated = "corrupt" if kind == "spidev" else "truncated"
    is_shifted = profile == "uomodri" and kind != "serial"

    def is_shown(counters: Counters) -> bool:
        return (
            getattr(counters, truncated) > 3
            and counters.valid + counters.late > 50
            and (counters.resynchronised > 3 or not is_shifted)
        )

    with open_rig(kind, profile, "truncate:rate=0.1") as rig:
        exchange_until(rig, is_shown)


@every_rig
def test_late_answers_do_not_confuse_the_next_exchange(kind: str) -> None:
    missed = "lost_replies" if kind == "serial" else "late"
    with open_rig(kind, "arm", "delay:rate=0.05") as rig:
        readings = exchange_until(
            rig, lambda counters: counters.valid > 50 and getattr(counters, missed) > 0
        )
        assert all(r.values is None or r.values.index for r in readings[2:])
        assert rig.board.counters.corrupt == 0


@every_rig
def test_a_rebooted_board_is_recognised_and_answers_again(kind: str) -> None:
    with open_rig(kind, "arm", "brown-out:at=0.4,for=0.2") as rig:
        outcomes = []
        for _ in range(2000):
            (reading,) = exchange(rig, mode=ES)
            outcomes.append(reading.outcome)
            if Outcome.SILENT in outcomes and outcomes[-3:] == [Outcome.OK] * 3:
                break
        assert Outcome.OK in outcomes[: outcomes.index(Outcome.SILENT)]
        assert outcomes[-1] is Outcome.OK
        assert rig.board.counters.restarted == 1


@every_rig
def test_a_board_fault_is_named(kind: str) -> None:
    with open_rig(kind, "arm", "board-error:at=0,code=7") as rig:
        readings = exchange(rig, 5, mode=ES)
        assert readings[-1].values is not None
        fault = rig.board.profile.fault_of(readings[-1].values.status)
        assert fault is not None
        assert fault.code == 7


@every_rig
def test_a_vanished_device_raises_one_clear_error(kind: str) -> None:
    fault = "unplug:at=0.1" if kind == "serial" else "vanish:at=0.1"
    with open_rig(kind, "arm", fault) as rig, pytest.raises(DeviceGoneError) as caught:
        for _ in range(2000):
            exchange(rig)
    assert caught.value.device in str(caught.value)


@pytest.mark.parametrize("kind", RIGS[1:])
def test_two_programs_cannot_drive_the_same_board(kind: str) -> None:
    with open_rig(kind) as rig:
        assert rig.open_again is not None
        with pytest.raises(DeviceBusyError):
            rig.open_again()
        # The first one goes on undisturbed.
        assert exchange(rig, 3)[-1].values is not None
        rig.board.close()
        again = rig.open_again()
        again.close()


@every_rig
def test_tracing_shows_both_directions_decoded(kind: str) -> None:
    with open_rig(kind) as rig:
        lines: list[str] = []
        rig.board.link = TracingLink(rig.board.link, rig.board.profile, lines.append)
        exchange(rig, 2, iq_ff_a=(0.5, 0.0))
        assert len(lines) == 4
        assert "> mode=0x00" in lines[0]
        assert "iq_ff_a=(0.5, 0)" in lines[0]
        # The very first reply of some boards cannot be read.
        assert "< status=0x" in lines[3]
        assert "bus_voltage_v=" in lines[3]


@every_rig
@every_profile
def test_a_session_says_how_long_a_command_takes_to_arrive(kind: str, profile: str) -> None:
    """On SPI after the board has made its reply; on serial lines it replies after that."""
    with open_rig(kind, profile) as rig:
        link = rig.board.link
        assert (link.clock_hz == math.inf) is (kind == "serial")
        traced = TracingLink(link, rig.board.profile, lambda _: None)
        assert traced.clock_hz == link.clock_hz
        start = {"start_t_ns": 0, "start_utc_ns": 0, "is_virtual": True}
        session = make_session("", "", [rig.board], link="test", version="", **start)
        (info,) = session.boards
        expected_s = 0.0 if kind == "serial" else 8.0 * rig.board.profile.frame_size / 8e6
        assert info.wire_s == pytest.approx(expected_s)
