"""Motors move without leave only where each opened device has proved to be emulated."""

from __future__ import annotations

import os
import pty
import time
import tty
from pathlib import Path
from typing import Any

import pytest

WORDS = ("loop", "--robot", "bench1", "--link", "spi", "--duration", "4")
# `armature` on a computer whose board is real: its device is a file, which gets what is sent to it.
ON_REAL_BOARD = """
import os, sys, types
import daq.links.spi

class SpiDev:
    def open(self, bus, chip_select):
        self._file = os.open(os.environ["BOARD"], os.O_RDWR)

    def fileno(self):
        return self._file

    def xfer3(self, data):
        os.write(self._file, bytes(data))
        return bytes(len(data))

    def close(self):
        os.close(self._file)

sys.modules["spidev"] = types.SimpleNamespace(SpiDev=SpiDev)
daq.links.spi.DeviceLock = lambda device: types.SimpleNamespace(release=lambda: None)
from tools.main import main
sys.exit(main(sys.argv[1:]))
"""


class RealBoard:
    """A board that is not emulated, although the environment says so."""

    def __init__(self, lab: Any) -> None:
        self._lab = lab
        self._file = lab.path / "board"
        self._file.touch()
        devices = lab.path / "devices"
        devices.mkdir(mode=0o700)
        lab.environment |= {
            "BOARD": str(self._file),
            # Removed from the cache, say: the loader complains, and goes on without.
            "LD_PRELOAD": str(lab.path / "armature" / "shim-0123456789abcdef.so"),
            "ARMATURE_SPIDEV_DIR": str(devices),
        }

    @property
    def received(self) -> bytes:
        return Path(self._file).read_bytes()

    def run(self, *words: str) -> Any:
        lab = self._lab
        return lab.start("python3", "-c", ON_REAL_BOARD, *lab.here(*WORDS, *words)).wait()


@pytest.fixture
def real(lab: Any) -> RealBoard:
    return RealBoard(lab)


@pytest.mark.parametrize("words", [("--enable",), ("--arm", "--enable"), ()], ids=" ".join)
def test_a_preload_that_does_not_take_hold(real: RealBoard, words: tuple[str, ...]) -> None:
    result = real.run(*words)
    assert result.exit_code == 1
    assert "/dev/spidev0.0" in result.err
    assert "ARMATURE_SPIDEV_DIR" in result.err
    assert real.received == b""


def test_a_real_device_needs_leave(lab: Any, real: RealBoard) -> None:
    del lab.environment["ARMATURE_SPIDEV_DIR"]
    result = real.run("--enable")
    assert result.exit_code == 2
    assert real.received == b""


def test_a_terminal_with_nobody_of_ours_behind_it(lab: Any, real: RealBoard) -> None:
    near, far = pty.openpty()
    tty.setraw(near)
    os.set_blocking(near, False)
    link = f"serial://{os.ttyname(far)}"
    result = lab.do(*lab.here("loop", "--robot", "bench1", "--link", link, "--enable"))
    assert result.exit_code == 2
    with pytest.raises(BlockingIOError):
        os.read(near, 1)
    os.close(near)
    os.close(far)


def test_with_leave_it_is_driven(lab: Any, real: RealBoard) -> None:
    """What the tests above find silent can be heard."""
    del lab.environment["ARMATURE_SPIDEV_DIR"]
    result = real.run("--enable", "--arm", "--on-fault", "exit")
    assert result.exit_code in (0, 3)
    assert len(real.received) > 0


def test_an_emulated_device_needs_no_leave(lab: Any) -> None:
    words = ("--enable", "--command-timeout-ms", "250", "--json")
    inner = lab.here("armature", *WORDS, *words)
    result = lab.do("mock", "exec", "--robot", "bench1", "--", *inner)
    assert result.exit_code == 0, result.err
    assert result.json["state"] == "idle"
    assert "idle → calibrating" in result.err


def test_an_emulated_serial_port_needs_no_leave(lab: Any) -> None:
    port = lab.start("armature", "mock", "serial", "--robot", "bench1")
    deadline_s = time.monotonic() + 40.0
    while not port.out.endswith("\n") and time.monotonic() < deadline_s:
        time.sleep(0.05)
    link = f"serial://{port.out.strip()}"
    words = ("loop", "--robot", "bench1", "--link", link, "--duration", "3")
    result = lab.do(*lab.here(*words, "--enable", "--command-timeout-ms", "250", "--json"))
    assert result.exit_code == 0, result.err
    assert "idle → calibrating" in result.err
