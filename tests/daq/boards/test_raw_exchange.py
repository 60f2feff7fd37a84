"""The loop's way through a board says the same as the ordinary one, whatever goes wrong."""

from __future__ import annotations

import pytest

from daq.boards.board import Board
from daq.errors import UnsafeCommandError
from daq.robot import load_robot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot

CYCLES = 3000
FAULTS = ["flip:rate=0.02", "drop:rate=0.01", "repeat:rate=0.01", "stale-index:at=1.5,for=0.05"]
FAULTS += ["truncate:rate=0.01", "brown-out:at=2.0,for=0.02", "stuck-high:at=1.0,for=0.03"]


def make(profile: str, faults: list[str]) -> tuple[Board, VirtualClock]:
    robot, clock = (
        MockRobot(load_robot("bench1"), profile=profile, calibration_s=0.1),
        VirtualClock(),
    )
    script = FaultScript([parse_fault(text) for text in faults], seed=3)
    (link,) = mock_links(robot, clock, script)
    return Board("bench", PROFILES[profile], link, now_ns=clock.now_ns), clock


def exchange_raws(board: Board, raws: list[int]) -> tuple[int, ...] | None:
    board.prepare(raws)
    board.transfer()
    return board.take(board.now_ns())


@pytest.mark.parametrize(
    ("profile", "faults"), [("arm", []), *((profile, FAULTS) for profile in PROFILES)]
)
def test_integers_tell_the_same_as_values(profile: str, faults: list[str]) -> None:
    (by_values, clock), (by_raws, raw_clock) = make(profile, faults), make(profile, faults)
    codec, reply = command_codec(PROFILES[profile]), reply_codec(PROFILES[profile])
    command = by_values.command(mode=0xC0, iq_ff_a=(0.2, 0.0), isat_a=(4.0, 4.0))
    raws = list(codec.decode_raw(codec.encode(command)))
    for _ in range(CYCLES):
        clock.advance_ns(1_000_000)
        raw_clock.advance_ns(1_000_000)

        reading = by_values.exchange(command)
        answer = exchange_raws(by_raws, raws)

        assert by_raws.outcome is reading.outcome
        assert by_raws.received == reading.frame
        # Compared as text: a temperature without a sensor is NaN, which equals nothing.
        assert repr(None if answer is None else reply.values_of(answer)) == repr(reading.values)
    assert by_raws.counters == by_values.counters
    assert by_raws.counters.exchanges == CYCLES
    assert (by_raws.counters.corrupt > 0) is bool(faults)


@pytest.mark.parametrize(("mode", "timeout_ms"), [(0x80, 0), (0xE0, 0), (0, 10), (0x60, 255)])
def test_a_system_without_a_time_out_or_the_reverse_is_refused(mode: int, timeout_ms: int) -> None:
    board, _ = make("arm", [])
    codec = command_codec(PROFILES["arm"])
    raws = list(codec.decode_raw(codec.encode(board.command(mode=mode))))
    raws[1] = timeout_ms
    with pytest.raises(UnsafeCommandError) as caught:
        board.prepare(raws)
    assert caught.value.board == "bench"
    assert board.counters.exchanges == 0


def test_places_of_fields_on_the_wire() -> None:
    arm, udriver2 = command_codec(PROFILES["arm"]), command_codec(PROFILES["udriver2"])
    assert (arm.place_of("mode"), arm.place_of("isat_a", 1), arm.place_of("isat_a", 2)) == (
        0,
        14,
        15,
    )
    # This firmware wants motor 2 first.
    assert udriver2.place_of("isat_a", 1) == udriver2.place_of("isat_a", 2) + 1
    assert udriver2.place_of("ki_a_per_rad_s") is None
