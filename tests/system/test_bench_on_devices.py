"""The friction bench in real time: emulated SPI and a serial port, and what interrupts it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from acceptance import only

from daq.recording import open_recording

pytestmark = pytest.mark.compiler

# Not as fast as possible: this computer is away now and then, and a joint then overshoots. More
# plateaus than the five that are due: some may be lost to that.
QUICK = ("--speeds", "4", "--repetitions", "1", "--dwell", "0.8", "--speed-min", "0.5")
QUICK = (*QUICK, "--speed-max", "3.5")
JOINT = ("--joint", "joint3")
SLOW = (*QUICK, "--speed-max", "1.5")
"""For tests that measure nothing: what a busy machine does to it stays far below the limits."""
PATIENCE_S = 110.0


def wait_for(program, text: str, timeout_s: float = 60.0) -> None:
    """Until a program has said something."""
    deadline_s = time.monotonic() + timeout_s
    while text not in program.err:
        assert program.is_running, program.err
        assert time.monotonic() < deadline_s, program.err
        time.sleep(0.05)


def bench_words(lab, link: str, out: Path, *words: str) -> tuple[str | Path, ...]:
    where = ("--robot", lab.robot, *JOINT, "--link", link, "--out", out)
    timeout = ("--command-timeout-ms", "250")
    return lab.here("armature", "bench", "friction", *where, *timeout, "--json", *words)


def serial_port(lab, *words: str) -> str:
    """A mock board behind a pseudo-terminal; its device."""
    port = lab.start("armature", "mock", "serial", "--robot", "laas4", *JOINT, *words)
    deadline_s = time.monotonic() + 30.0
    while not port.out.endswith("\n"):
        assert time.monotonic() < deadline_s, port.err
        time.sleep(0.05)
    return port.out.strip()


def check_off(path: Path) -> None:
    """The last commands have no motor enabled."""
    with open_recording(path) as recording:
        assert (recording["command_mode"][-2:] == 0).all()


@only
def test_on_emulated_spi(lab) -> None:
    out = lab.path / "out"
    result = lab.start(*bench_words(lab, "mock", out, *QUICK)).wait(PATIENCE_S)
    assert result.exit_code == 0, result.err
    assert result.json["plateaus_used"] >= 4, result.err
    f_nm = result.json["f_nm"]
    assert f_nm["value"] == pytest.approx(f_nm["truth"], rel=0.03)
    assert result.json["link"].startswith("mock+spi?seed=")
    assert "plateau 8 of 8" in result.err
    check_off(out / "joint3.h5")


@only
def test_over_a_serial_port(lab) -> None:
    """The same from a laptop: real pyserial, at whatever rate the port allows."""
    out = lab.path / "out"
    device = serial_port(lab)
    link = f"serial://{device}?baud=2000000"
    result = lab.start(*bench_words(lab, link, out, "--arm", *QUICK)).wait(PATIENCE_S)
    assert result.exit_code == 0, result.err
    f_nm = result.json["f_nm"]
    assert f_nm["truth"] is None
    assert f_nm["value"] == pytest.approx(0.122, rel=0.03)
    with open_recording(out / "joint3.h5") as recording:
        assert recording.attributes["board_devices"] == [device]
        # Timing is recorded as it was: every period is a sample or a skipped one.
        t_ns, skipped = recording["t_ns"][:], recording["skipped"][:]
        periods = skipped.sum() + len(t_ns) - 1
        assert periods * 1e-3 == pytest.approx((t_ns[-1] - t_ns[0]) * 1e-9, abs=0.01)
        assert result.json["rate_hz"] == pytest.approx(len(t_ns) / recording.duration_s, rel=0.01)


def test_a_serial_port_that_is_pulled(lab) -> None:
    out = lab.path / "out"
    link = f"serial://{serial_port(lab, '--fault', 'unplug:at=8')}?baud=2000000"
    result = lab.start(*bench_words(lab, link, out, "--arm", *SLOW)).wait(PATIENCE_S)
    assert result.exit_code == 3, result.err
    assert str(out / "joint3.h5") in result.err
    with open_recording(out / "joint3.h5") as recording:
        assert recording.duration_s > 4.0


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGQUIT, 1)])
def test_a_signal_in_the_middle(lab, number: signal.Signals, exit_code: int) -> None:
    out = lab.path / "out"
    program = lab.start(*bench_words(lab, "mock", out, *SLOW))
    wait_for(program, "plateau 1 of 8")
    result = program.end(number)
    assert result.exit_code == exit_code, result.err
    assert str(out / "joint3.h5") in result.err
    assert result.out == ""
    check_off(out / "joint3.h5")
