"""A window of another length: replies stay sound, commands no longer arrive; the host cures it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from acceptance import IS_LONG

from daq.boards.board import Board, Outcome, Reading
from daq.boards.probe import diagnose_board
from daq.links.link import FILLER
from daq.robot import load_robot
from daq.system.findings import Finding, Level
from firmware_protocol.codec import command_codec
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS, PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import MockLink, mock_links
from hw_mocks.mock_robot import MockRobot

SHIFTED = [name for name, p in PROFILES.items() if p.behaviour.is_receiver_shifted]
MS = 1_000_000
WORD = 2
"""Bytes: half a word is not counted."""


class Line:
    """A mock board, the link to it, and a host that begins anew whenever a test wants it."""

    def __init__(self, profile: str, *faults: str) -> None:
        self.profile: Profile = PROFILES[profile]
        self.clock = VirtualClock()
        self.robot = MockRobot(load_robot("bench1"), profile=profile)
        script = FaultScript([parse_fault(text) for text in faults])
        (self.link,) = mock_links(self.robot, self.clock, script)
        self.begin()

    def begin(self) -> None:
        self.board = Board("bench", self.profile, self.link, now_ns=self.clock.now_ns)

    def cycle(self) -> Reading:
        self.clock.advance_ns(MS)
        return self.board.exchange(self.board.command())

    def cycles(self, count: int) -> list[Outcome]:
        return [self.cycle().outcome for _ in range(count)]

    def cut(self, size: int) -> None:
        """A window cut short by somebody else, of which this host knows nothing."""
        self.clock.advance_ns(MS)
        self.link.exchange(bytes(size))

    def doctor(self, profile: str | None = None) -> list[Finding]:
        return list(
            diagnose_board(
                "bench",
                PROFILES[profile or self.profile.name],
                self.link,
                now_ns=self.clock.now_ns,
                sleep_until_ns=self.clock.sleep_until_ns,
            )
        )

    def is_heard(self) -> bool:
        """Whether a command of a fresh host arrives, without any cure."""
        self.begin()
        return self.cycles(3)[-1] is Outcome.OK and not self.board.cured


def lengths(profile: str) -> range:
    return range(1, PROFILES[profile].frame_size, 1 if IS_LONG else 3)


@pytest.mark.acceptance
@pytest.mark.parametrize("profile", SHIFTED)
def test_a_running_host_brings_its_board_back(profile: str) -> None:
    line = Line(profile)
    line.cycles(5)
    for size in lengths(profile):
        cured = line.board.cured
        line.cut(size)
        outcomes = line.cycles(8)
        assert outcomes[-1] is Outcome.OK, (size, outcomes)
        # Its 10 ms are not over yet, whatever it had to do.
        assert Outcome.OK in outcomes[3:6], (size, outcomes)
        assert line.board.cured - cured == (size >= WORD), size
    assert line.board.counters.resynchronised == line.board.cured


@pytest.mark.acceptance
@pytest.mark.parametrize("profile", SHIFTED)
def test_a_host_that_begins_brings_the_board_back(profile: str) -> None:
    line = Line(profile)
    line.cycles(5)
    for size in lengths(profile):
        line.cut(size)
        line.begin()
        assert line.cycles(8)[-1] is Outcome.OK, size


@pytest.mark.acceptance
@pytest.mark.parametrize("is_new", [False, True], ids=["used", "no command yet"])
@pytest.mark.parametrize("profile", SHIFTED)
def test_doctor_finds_it_and_the_next_doctor_is_green(profile: str, is_new: bool) -> None:
    for size in lengths(profile)[1::2]:
        line = Line(profile)
        if not is_new:
            line.cycles(5)
        line.cut(size)

        first, second = line.doctor(), line.doctor()

        assert {finding.level for finding in first + second} <= {Level.OK, Level.NOTE}
        is_shifted = size >= WORD and not is_new
        assert ("realigned" in [finding.code for finding in first]) >= is_shifted, size
        assert "realigned" not in [finding.code for finding in second], size
        assert "50 of 50" in second[-1].text
        assert line.is_heard()


@pytest.mark.parametrize("firmware", ["udriver2", "uomodri"])
def test_doctor_cures_boards_that_should_not_get_out_of_step(firmware: str) -> None:
    """One whose receiver was not measured; and the other firmware of the same frames."""
    behaviour = PROFILES[firmware].behaviour
    assert not PROFILES["udriver2"].behaviour.is_receiver_shifted
    for size in lengths("udriver2")[1::2]:
        line = Line("udriver2")
        (board,) = line.robot.boards
        shifted = replace(behaviour, is_receiver_shifted=True, reply_lag_max=3)
        board.profile = replace(board.profile, behaviour=shifted)
        line.cycles(100)  # more than doctor asks before it knows
        line.cut(size)
        assert Outcome.OK not in line.cycles(50)[10:], "the loop would stop the robot"

        first, second = line.doctor(), line.doctor()

        assert {finding.level for finding in first + second} <= {Level.OK, Level.NOTE}
        assert "realigned" in [finding.code for finding in first]
        assert "50 of 50" in second[-1].text


@pytest.mark.parametrize("profile", PROFILES)
def test_an_echo_that_stands_still_for_another_reason_leaves_the_board_in_step(
    profile: str,
) -> None:
    line = Line(profile, "stale-index:at=0.01,for=0.05")
    outcomes = line.cycles(100)
    assert outcomes.count(Outcome.COMMAND_LOST) > 30
    assert set(outcomes[-30:]) <= {Outcome.OK, Outcome.LATE}
    assert line.board.cured == 0


@pytest.mark.parametrize(
    ("expected", "spoken"),
    [("arm", "uomodri"), ("arm", "udriver2"), ("uomodri", "arm"), ("udriver2", "arm")],
)
@pytest.mark.parametrize("is_new", [False, True], ids=["used", "no command yet"])
def test_doctor_with_a_wrong_profile_leaves_the_board_as_it_was(
    expected: str, spoken: str, is_new: bool
) -> None:
    line = Line(spoken)
    if not is_new:
        line.cycles(5)
    for _ in range(2):
        (finding,) = line.doctor(expected)
        assert finding.code == "other-profile"
    assert line.is_heard()


def test_a_lost_command_is_no_reason_to_clock_words() -> None:
    line = Line("uomodri", "flip:rate=0.2,direction=command")
    outcomes = line.cycles(1000)
    assert line.board.cured == 0
    assert outcomes.count(Outcome.OK) > 500


# --- frames that nobody sent ----------------------------------------------------------------------


@pytest.mark.parametrize("other", PROFILES)
@pytest.mark.parametrize("profile", SHIFTED)
def test_what_doctor_clocks_completes_no_command(profile: str, other: str) -> None:
    """The checksum begins at ff ff ff ff: four of them and zeros are a sound, enabling frame."""
    size = PROFILES[profile].frame_size
    commands = command_codec(PROFILES[profile])
    assert not commands.is_sound(FILLER * size)
    lengths = range(0, size + 6) if IS_LONG else (4, 5, 14, 24, 32, size + 4)
    for length in lengths:
        line = Line(profile)
        sent = TappedBytes(line.link)
        sent.exchange(b"\xff" * length)
        line.link = sent
        line.doctor(other)
        line.doctor()
        stream = bytes(sent.stream)
        found = [
            commands.decode(stream[at : at + size])
            for at in range(len(stream) - size + 1)
            if commands.is_sound(stream[at : at + size])
        ]
        assert not any(command.mode & MODE_BITS["EM1"] for command in found)


class TappedBytes:
    """A link that remembers everything that was clocked."""

    def __init__(self, link: MockLink) -> None:
        self._link = link
        self.name, self.framing, self.close = link.name, link.framing, link.close
        self.clock_hz, self.resynchronised = link.clock_hz, 0
        self.stream = bytearray()
        link._wire.board.transfer = self._note(link._wire.board.transfer)

    def _note(self, transfer: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        def noted(sent: bytes) -> bytes:
            self.stream += sent
            return transfer(sent)

        return noted

    def exchange(self, frame: bytes) -> bytes:
        self.stream += frame
        return self._link.exchange(frame)

    def realign(self, missing: int) -> None:
        self._link.realign(missing)
