from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from daq.boards.probe import diagnose_board, find_obstacle
from daq.robot import load_robot
from daq.system.findings import Finding, Level
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import MODE_BITS, PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot

ARM = PROFILES["arm"]
ES, MOTORS = MODE_BITS["ES"], MODE_BITS["EM1"] | MODE_BITS["EM2"]


class ScriptedLink:
    """Answers every frame with what a function makes of it, and remembers what was sent."""

    name = "scripted"
    framing = Framing.SPI
    resynchronised = 0
    clock_hz = 8e6

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self.sent: list[bytes] = []

    def exchange(self, frame: bytes) -> bytes:
        self.sent.append(frame)
        return self._answer(frame)

    def realign(self, missing: int) -> None:
        self.sent.append(bytes(missing))

    def close(self) -> None:
        pass

    @property
    def commands(self) -> list[Any]:
        """What a board would have acted upon."""
        codec = command_codec(ARM)
        return [codec.decode(frame) for frame in self.sent if codec.is_sound(frame)]


def diagnose(link: ScriptedLink) -> list[Finding]:
    clock = VirtualClock()
    return list(
        diagnose_board("elbow", ARM, link, now_ns=clock.now_ns, sleep_until_ns=clock.sleep_until_ns)
    )


def reply_with(status: int) -> bytes:
    codec = reply_codec(ARM)
    return codec.encode(codec.make(status=status))


@pytest.mark.parametrize(
    ("version", "fix"), [(0, "uomodri, udriver2"), (2, "armature"), (7, "armature")]
)
def test_another_protocol_version_is_named(version: int, fix: str) -> None:
    link = ScriptedLink(lambda _: reply_with(version << 4))

    (finding,) = diagnose(link)

    assert (finding.level, finding.code) == (Level.PROBLEM, "other-version")
    assert f"version {version}" in finding.text
    assert "version 1" in finding.text
    assert fix in finding.fix
    assert link.commands == []


def test_a_fault_is_found_without_a_single_valid_command() -> None:
    link = ScriptedLink(lambda _: reply_with(1 << 4 | 5))

    present, finding = diagnose(link)

    assert present.level is Level.OK
    assert finding.code == "error-5"
    assert link.commands == []


def test_the_first_replies_are_old_news() -> None:
    replies = iter([reply_with(1 << 4)])
    link = ScriptedLink(lambda _: next(replies, reply_with(1 << 4 | 2)))

    assert diagnose(link)[-1].code == "error-2"
    assert link.commands == []


@pytest.mark.parametrize("enabled", [0x4000, 0x1000])
def test_enabled_motors_are_not_dropped(enabled: int) -> None:
    link = ScriptedLink(lambda _: reply_with(0x8000 | enabled | 1 << 4))

    finding = diagnose(link)[-1]

    assert (finding.level, finding.code) == (Level.PROBLEM, "enabled")
    assert link.commands == []


def test_a_fault_that_comes_up_while_asking() -> None:
    count = 0

    def answer(frame: bytes) -> bytes:
        nonlocal count
        count += 1
        codec = reply_codec(ARM)
        error = 3 if count > 20 else 0
        echo = (int.from_bytes(frame[32:34], "big") - 1) & 0xFFFF
        return codec.encode(codec.make(status=1 << 4 | error, timestamp_ms=count, index=echo))

    finding = diagnose(ScriptedLink(answer))[-1]

    assert (finding.level, finding.code) == (Level.PROBLEM, "error-3")


@pytest.mark.parametrize(
    ("frame", "code", "named"),
    [
        (b"", "silent", ""),
        (bytes(38), "silent", "0x00"),
        (b"\xff" * 38, "silent", "0xff"),
        (b"\xa5" * 38, "noise", "a5" * 38),
        (b"\xa5" * 3, "noise", "a5" * 3),
    ],
)
def test_nobody_or_noise(frame: bytes, code: str, named: str) -> None:
    link = ScriptedLink(lambda _: frame)

    (finding,) = diagnose(link)

    assert (finding.level, finding.code) == (Level.PROBLEM, code)
    assert named in finding.text
    assert finding.fix
    # A line of zeros may be a board that had no command yet: it gets some that change nothing.
    assert not any(command.mode & MOTORS for command in link.commands)
    assert all(bool(c.mode & ES) is (c.timeout_ms > 0) for c in link.commands)
    assert bool(link.commands) is (bool(frame) and not any(frame))
    assert not link.commands or link.commands[-1].mode == 0


def test_a_line_of_zeros_may_be_a_board_that_had_no_command_yet() -> None:
    echo, milliseconds = 0, 0
    command, reply = command_codec(ARM), reply_codec(ARM)

    def answer(frame: bytes) -> bytes:
        nonlocal echo, milliseconds
        milliseconds += 1
        answered = bytes(ARM.frame_size)
        if echo:
            answered = reply.encode(
                reply.make(status=1 << 4, timestamp_ms=milliseconds, index=echo)
            )
        if command.is_sound(frame):
            echo = command.decode(frame).index
        return answered

    findings = diagnose(ScriptedLink(answer))

    assert {finding.level for finding in findings} == {Level.OK}


def test_a_system_bit_before_any_command_is_no_other_program() -> None:
    """One firmware says so from power-up on."""
    findings, _ = diagnose_mock("udriver2", "udriver2")

    assert "enabled" not in [finding.code for finding in findings]
    assert findings[-1].level is Level.OK


def test_a_board_that_does_not_hear_us() -> None:
    link = ScriptedLink(lambda _: reply_with(1 << 4))

    finding = diagnose(link)[-1]

    assert (finding.level, finding.code) == (Level.PROBLEM, "not-heard")
    assert all(command.mode == command.timeout_ms == 0 for command in link.commands)


def diagnose_mock(expected: str, spoken: str, *faults: str) -> tuple[list[Finding], MockRobot]:
    clock = VirtualClock()
    robot = MockRobot(load_robot("bench1"), profile=spoken)
    (link,) = mock_links(robot, clock, FaultScript([parse_fault(text) for text in faults]))
    robot.boards[0].transfer(bytes(10))  # as a program that ended in the middle of a frame
    findings = diagnose_board(
        "bench", PROFILES[expected], link, now_ns=clock.now_ns, sleep_until_ns=clock.sleep_until_ns
    )
    return list(findings), robot


def test_a_board_that_reboots_while_asked_lacks_supply() -> None:
    findings, _ = diagnose_mock("arm", "arm", "brown-out:at=0.03,for=0.005")

    assert findings[-1].code == "restarted"
    assert "1 restarted" in findings[-1].text


@pytest.mark.parametrize(
    ("profile", "codes"),
    [
        ("arm", ["", "realigned", ""]),
        ("uomodri", ["", "alike", "realigned", ""]),
        ("udriver2", ["", "alike", "clock-overflow", ""]),
    ],
)
def test_a_board_left_in_the_middle_of_a_frame_is_brought_back(
    profile: str, codes: list[str]
) -> None:
    findings, _ = diagnose_mock(profile, profile)

    assert [finding.code for finding in findings] == codes
    assert {finding.level for finding in findings} <= {Level.OK, Level.NOTE}


@pytest.mark.parametrize(
    ("expected", "spoken"),
    [("arm", "uomodri"), ("arm", "udriver2"), ("uomodri", "arm"), ("udriver2", "arm")],
)
def test_another_firmware_is_named(expected: str, spoken: str) -> None:
    (finding,), _ = diagnose_mock(expected, spoken)

    assert (finding.level, finding.code) == (Level.PROBLEM, "other-profile")
    found, _, in_file = finding.text.partition(f"{PROFILES[spoken].frame_size}-byte")
    names = ["arm"] if spoken == "arm" else ["uomodri", "udriver2"]  # alike on the wire
    assert all(name in found for name in names)
    assert f"{expected} ({PROFILES[expected].frame_size} " in in_file
    assert f'profile = "{names[0]}"' in finding.fix


def test_a_device_that_fails_while_asking() -> None:
    def fail(_frame: bytes) -> bytes:
        raise OSError(19, "No such device")

    (finding,) = diagnose(ScriptedLink(fail))

    assert (finding.level, finding.code) == (Level.PROBLEM, "failed")


# --- whether a board may be sent commands ---------------------------------------------------------


def obstacle(link: ScriptedLink) -> Finding | None:
    clock = VirtualClock()
    return find_obstacle(
        "elbow", ARM, link, now_ns=clock.now_ns, sleep_until_ns=clock.sleep_until_ns
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [(1 << 4 | 5, "error-5"), (0xC000 | 1 << 4, "enabled"), (3 << 4, "other-version")],
)
def test_an_obstacle_is_found_without_a_single_valid_command(status: int, code: str) -> None:
    link = ScriptedLink(lambda _: reply_with(status))

    found = obstacle(link)

    assert found is not None
    assert (found.level, found.code) == (Level.PROBLEM, code)
    assert found.fix
    assert link.commands == []


@pytest.mark.parametrize("profile", PROFILES)
def test_no_obstacle_on_a_new_board_and_nothing_enabled(profile: str) -> None:
    """Also where doctor asks with ES = 1 and no motor, so that a latched error stays."""
    mock, clock = MockRobot(load_robot("bench1"), profile=profile), VirtualClock()
    (real,) = mock_links(mock, clock)
    link, codec = ScriptedLink(real.exchange), command_codec(PROFILES[profile])

    found = find_obstacle(
        "bench",
        PROFILES[profile],
        link,
        now_ns=clock.now_ns,
        sleep_until_ns=clock.sleep_until_ns,
    )

    assert found is None
    commands = [codec.decode(frame) for frame in link.sent if codec.is_sound(frame)]
    assert commands
    assert {(command.mode, command.timeout_ms) for command in commands} == {(0, 0)}


def test_a_device_that_fails_is_an_obstacle() -> None:
    def fail(_frame: bytes) -> bytes:
        raise OSError(errno.EIO, "by a test")

    found = obstacle(ScriptedLink(fail))

    assert found is not None
    assert found.code == "failed"
