from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import serial

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES

SERIAL = ("armature", "mock", "serial", "--robot", "bench1")

Start = Callable[..., Any]


def served_port(process: Any) -> str:
    port: str = process.stdout.readline().strip()
    assert port.startswith("/dev/")
    return port


def exchange(line: serial.Serial, profile: str, *, index: int) -> bytes:
    command = command_codec(PROFILES[profile], Framing.RS485)
    line.write(command.encode(command.make(mode=0x80, index=index)))
    return line.read(command.size)


def echo(reply: bytes, profile: str) -> int:
    return reply_codec(PROFILES[profile], Framing.RS485).decode(reply).index


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_programs_talk_with_a_board_one_after_the_other_until_it_is_interrupted(
    start: Start, number: int
) -> None:
    process = start(*SERIAL, "--profile", "uomodri")
    port = served_port(process)
    assert "Ctrl-C" in process.stderr.readline()

    lag = PROFILES["uomodri"].behaviour.rs485_lag
    for first in (1, 20):
        with serial.Serial(port, 2_000_000, timeout=10) as line:
            replies = [exchange(line, "uomodri", index=first + index) for index in range(10)]
        # The very first one is unreadable, as on the real board.
        assert [echo(reply, "uomodri") - first + lag for reply in replies[1:]] == list(range(1, 10))

    process.send_signal(number)

    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == ""


def test_two_at_once(start: Start) -> None:
    ports = [served_port(start(*SERIAL)) for _ in range(2)]

    assert ports[0] != ports[1]
    lines = [serial.Serial(port, timeout=10) for port in ports]
    replies = [[exchange(line, "arm", index=i) for _ in range(2)] for i, line in enumerate(lines)]
    assert [echo(later, "arm") for _, later in replies] == [0, 1]
    for line in lines:
        line.close()


def test_unplugged(start: Start) -> None:
    process = start(*SERIAL, "--fault", "unplug:at=0.2")
    line = serial.Serial(served_port(process), timeout=0.1)
    deadline = time.monotonic() + 30

    with pytest.raises(OSError):
        while time.monotonic() < deadline:
            line.write(b"x")
            line.read(100)
    line.close()

    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--board", "1"), "--board"),
        (("--board", "-1"), "--board"),
        (("--fault", "io-error:at=0"), "'io-error:at=0'"),
    ],
)
def test_bad_options(armature: Callable[..., Any], options: tuple[str, ...], named: str) -> None:
    result = armature("mock", "serial", "--robot", "bench1", *options)

    assert (result.exit_code, result.out) == (2, "")
    assert named in result.err
