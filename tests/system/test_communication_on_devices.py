"""`armature bench communication` in real time: real spidev on emulated devices, a serial port."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from typing import Any

import pytest
from commands import PROJECT

pytestmark = pytest.mark.compiler

WORDS = ("bench", "communication", "--json")


def check_times(board: dict[str, Any]) -> None:
    """Times grow with their share, and data are older than the transfer that brought them."""
    for name in ("transfer_us", "age_us"):
        times = board[name]
        assert 0.0 < times["p50"] <= times["p99"] <= times["p999"] <= times["max"]
    assert board["age_us"]["p50"] > board["transfer_us"]["p50"]


def test_on_emulated_spi(lab: Any) -> None:
    """The script's losses are found, and nothing else is lost."""
    # Since the boards were switched on: a busy computer begins to measure a second or two later.
    words = ("--robot", lab.robot, "--link", "mock", "--duration", "3", "--fault", "drop:at=2.7")
    result = lab.do(*WORDS, *words)

    assert result.exit_code == 0, result
    report = result.json
    assert report["link"].startswith("mock+spi?seed=0")
    assert report["is_virtual"] is False
    assert report["verdict"] == "marginal"
    host = report["host"]
    assert host["periods"] == pytest.approx(3000, abs=host["skipped"] + 1)
    for number, board in enumerate(report["boards"]):
        assert board["device"] == f"/dev/spidev0.{number}"
        assert board["exchanges"] == host["periods"] - host["skipped"]
        assert board["lost"] == board["lost_by_kind"]["silent"] + board["lost_by_kind"]["stalled"]
        assert board["lost_by_kind"]["silent"] == 1
        assert board["success"] + board["late"] + board["lost"] == board["exchanges"]
        check_times(board)


def test_on_devices_of_somebody_else(lab: Any) -> None:
    """As on a robot: `--link spi`, whoever made the devices; the board of one of them vanishes."""
    words = ("armature", *WORDS, "--robot", lab.robot, "--link", "spi", "--duration", "1.5")
    result = lab.start(*lab.mock_words("vanish:at=0.8,board=1"), *words).wait()

    assert result.exit_code == 3, result
    fine, gone = result.json["boards"]
    assert fine["lost_by_kind"]["failed"] == 0
    assert gone["verdict"] == "fault"
    assert "/dev/spidev0.1" in gone["reasons"][0]["text"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTSTP])
def test_interrupted(lab: Any, number: signal.Signals) -> None:
    words = ("armature", *WORDS, "--robot", lab.robot, "--duration", "600")
    program = lab.start(*words, "--link", "spy+mock")
    # The first look takes far fewer frames.
    lab.wait_for(lambda: program.err.count(" > ") > 1000)

    result = program.end(number)

    assert result.exit_code == 130, result.err[-2000:]
    assert result.json["is_interrupted"] is True
    assert result.json["boards"][0]["exchanges"] > 100
    assert lab.processes() == {}


def test_over_a_serial_port(lab: Any) -> None:
    port = lab.start("armature", "mock", "serial", "--robot", "bench1")
    lab.wait_for(lambda: port.out.endswith("\n"))
    link = f"serial://{port.out.strip()}?baud=2000000"

    for _ in range(3):  # a busy computer is found bad, rightly
        result = lab.do(*WORDS, "--robot", "bench1", "--link", link, "--duration", "1")
        if not result.exit_code:
            break

    assert result.exit_code == 0, result
    assert result.json["link"] == f"mock+{link}"
    (board,) = result.json["boards"]
    assert board["success_share"] > 0.99
    check_times(board)


def test_a_bar_on_a_terminal(lab: Any) -> None:
    """Drawn beside it; the table goes to stdout alone, and no process is left."""
    ours, theirs = pty.openpty()
    words = ("--robot", "bench1", "--link", "mock", "--duration", "1.5")
    with subprocess.Popen(
        ["armature", "bench", "communication", *words],
        env={**lab.environment, "TERM": "xterm"},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as program:
        os.close(theirs)
        drawn = b""
        while data := _read(ours):
            drawn += data
        assert program.stdout is not None
        out = program.stdout.read().decode()
    os.close(ours)
    assert program.returncode == 0, out
    assert "exchanging" in drawn.decode()
    assert "exchanging" not in out
    assert "transfer (µs)" in out
    assert lab.processes() == {}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # everybody has closed the other end
        return b""
