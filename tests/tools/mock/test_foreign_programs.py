"""What `mock exec` and `mock serial` offer programs that are not ours: patience, and a hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from daq.boards.board import Board, Reading
from firmware_protocol.profiles import PROFILES, STATUS_BITS
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links
from tools.running.mock_options import make_mock
from tools.running.options import MockOptions

BOTH, ENABLED_1 = 0xE0, 0xC0
INDEX_1, INDEX_2 = STATUS_BITS["IDX1D"], STATUS_BITS["IDX2D"]
PERIOD_NS = 1_000_000


class Host:
    """A program that only enables, with no gains, and looks at what comes back."""

    def __init__(self, options: MockOptions) -> None:
        self.mock, script = make_mock(options)
        self.clock = VirtualClock()
        links = mock_links(self.mock, self.clock, script)
        self.boards = [
            Board(board.name, board.profile, link, now_ns=self.clock.now_ns)
            for board, link in zip(self.mock.boards, links, strict=True)
        ]

    def exchange(self, mode: int, timeout_ms: int, *, after_ms: int = 1) -> list[Reading]:
        self.clock.advance_ns(after_ms * PERIOD_NS)
        return [
            board.exchange(board.command(mode=mode, timeout_ms=timeout_ms)) for board in self.boards
        ]

    def wait(self, duration_s: float, mode: int, timeout_ms: int = 20) -> list[int]:
        """Return the status of each board at the end."""
        for _ in range(round(duration_s * 1e3)):
            readings = self.exchange(mode, timeout_ms)
        return [reading.values.status for reading in readings if reading.values]


# --- the hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_program_that_only_enables_and_waits_sees_the_index(profile: str) -> None:
    host = Host(MockOptions(robot="bench1", profile=profile, hand_at_s=(5.0,)))

    (before,) = host.wait(5.0, ENABLED_1)
    (after,) = host.wait(4.0, ENABLED_1)

    assert (before & INDEX_1, after & INDEX_1) == (0, INDEX_1)
    assert PROFILES[profile].fault_of(after) is None


@pytest.mark.chain
def test_every_motor_of_an_arm_is_turned() -> None:
    host = Host(MockOptions(robot="laas4", profile="uomodri", hand_at_s=(5.0,)))

    host.wait(5.0, BOTH)
    after = host.wait(4.0, BOTH)

    assert [status & (INDEX_1 | INDEX_2) for status in after] == [INDEX_1 | INDEX_2] * 2


@pytest.mark.parametrize("profile", PROFILES)
def test_idle_motors_are_turned_too(profile: str) -> None:
    """Though boards may brake them: a shorted winding is stiff, but gives way."""
    host = Host(MockOptions(robot="bench1", profile=profile, hand_at_s=(0.5,)))
    start_rad = host.mock.plant.motor_position_rad[0]

    host.wait(2.5, 0, timeout_ms=0)

    turned = (host.mock.plant.motor_position_rad[0] - start_rad) / 6.283
    assert 1.0 < turned < 1.3


# --- the time-out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["arm", "uomodri"])
@pytest.mark.parametrize(
    ("timeout_min_ms", "pause_ms", "code"), [(0, 50, 2), (200, 150, 0), (200, 250, 2)]
)
def test_boards_wait_at_least_this_long(
    profile: str, timeout_min_ms: int, pause_ms: int, code: int
) -> None:
    host = Host(MockOptions(robot="bench1", profile=profile, timeout_min_ms=timeout_min_ms))
    host.wait(0.1, ENABLED_1)

    host.exchange(ENABLED_1, 20, after_ms=pause_ms)
    (status,) = host.wait(0.005, ENABLED_1)

    assert status & 0xF == code


@pytest.mark.parametrize("profile", PROFILES)
def test_no_time_out_stays_none_and_a_longer_one_counts(profile: str) -> None:
    host = Host(MockOptions(robot="bench1", profile=profile, timeout_min_ms=50))
    host.wait(0.1, 0, timeout_ms=0)
    host.exchange(0, 0, after_ms=500)
    host.wait(0.01, ENABLED_1, timeout_ms=250)
    host.exchange(ENABLED_1, 250, after_ms=200)

    (status,) = host.wait(0.005, ENABLED_1)

    assert status & 0xF == 0


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize("action", [("exec",), ("serial",)])
def test_every_mistake_is_named(armature: Callable[..., Any], action: tuple[str, ...]) -> None:
    words = ("--command-timeout-min", "-1", "--hand", "-2", "--hand", "3", "--hand", "4")
    command = ("--", "true") if action == ("exec",) else ()

    result = armature("mock", *action, "--robot", "bench1", *words, *command)

    assert result.exit_code == 2
    for part in ("--command-timeout-min -1", "-2 s", "4 s"):
        assert part in result.err


@pytest.mark.compiler
@pytest.mark.parametrize(("words", "code"), [((), 2), (("--command-timeout-min", "5000"), 0)])
def test_a_program_that_pauses(run: Callable[..., Any], words: tuple[str, ...], code: int) -> None:
    program = """
import spidev, time
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profiles import PROFILES
command, reply = command_codec(PROFILES["uomodri"]), reply_codec(PROFILES["uomodri"])
spi = spidev.SpiDev()
spi.open(0, 0)
spi.max_speed_hz = 8_000_000
frame = command.encode(command.make(mode=0xC0, timeout_ms=5, index=1))
for pause_s in (0, 0.1, 0):
    time.sleep(pause_s)
    last = reply.decode(bytes(spi.xfer2(frame)))
print(last.status & 0xF)
"""
    options = ("--robot", "bench1", "--profile", "uomodri", *words)

    result = run("armature", "mock", "exec", *options, "--", "python3", "-c", program)

    assert (result.exit_code, result.lines) == (0, [str(code)])
