"""Whether a serial port's other end is a mock board is asked beside the line, never on it."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daq.robot import load_robot
from hw_mocks import serial_presence
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_port import SerialPort
from hw_mocks.serial_presence import is_emulated, is_pseudo_terminal, show_presence


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal's two ends: ours and the programs'."""
    near, far = pty.openpty()
    yield near, far
    os.close(near)
    os.close(far)


def test_a_mock_board() -> None:
    port = SerialPort(MockRobot(load_robot("bench1")), 0, FaultScript([]))
    descriptor = os.open(port.device, os.O_RDWR | os.O_NOCTTY)
    assert is_pseudo_terminal(port.device)
    assert is_emulated(descriptor)
    assert is_emulated(descriptor), "as often as one likes"
    port.run(lambda: True)
    assert not is_emulated(descriptor), "it is gone"
    os.close(descriptor)


def test_a_terminal_with_nobody_behind_it(terminal: tuple[int, int]) -> None:
    near, far = terminal
    os.set_blocking(near, False)
    assert not is_emulated(far)
    with pytest.raises(BlockingIOError):
        os.read(near, 1)


def test_what_is_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "port"
    file.touch()
    for path in (str(file), os.devnull):
        descriptor = os.open(path, os.O_RDWR)
        assert not is_pseudo_terminal(path)
        assert not is_emulated(descriptor)
        os.close(descriptor)
    assert not is_pseudo_terminal(str(tmp_path / "missing"))


def test_another_users_word_counts_for_nothing(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    with show_presence(terminal[1]):
        assert is_emulated(terminal[1])
        monkeypatch.setattr(serial_presence.os, "geteuid", lambda: user + 1)
        assert not is_emulated(terminal[1])


@pytest.mark.system
def test_who_listens_must_hold_the_other_end(terminal: tuple[int, int]) -> None:
    """Another process of ours that only says so."""
    address = serial_presence._address(os.fstat(terminal[1]))
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]);"
        " s.listen(); print('ready', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, address[1:]], **pipes) as liar:
        assert liar.stdout is not None
        liar.stdout.readline()
        with socket.socket(socket.AF_UNIX) as probe:
            assert probe.connect_ex(address) == 0
        assert not is_emulated(terminal[1])
        liar.communicate()
