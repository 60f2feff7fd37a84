"""`armature run` in real time: what it prints, and how it ends, whoever ends it."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import armature

from daq.recording import open_recording
from daq.recording.states import State

pytestmark = pytest.mark.compiler

MISSING_MAX = 500
"""Half a second: what may get lost when recorder and loop are killed together."""


def check_summary(summary: dict[str, Any]) -> None:
    """What is true of every run, on however busy a machine."""
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    assert summary["elapsed_s"] * 1000 == pytest.approx(round(summary["elapsed_s"] * 1000))
    for key in ("wake_us", "work_us"):
        p50, p99, p999, longest = (summary[key][part] for part in ("p50", "p99", "p999", "max"))
        assert 0.0 < p50 <= p99 <= p999 <= longest


def check_file(summary: dict[str, Any], file: Path) -> None:
    """A recording of the whole run."""
    assert summary["file"] == str(file)
    assert (summary["samples"], summary["missing"]) == (summary["cycles"], 0)
    with open_recording(file) as recording:
        assert recording.gaps == ()
        assert np.array_equal(recording["seq"][:], np.arange(summary["cycles"]))
        assert int(recording["skipped"][:].sum()) == summary["skipped"]
        # Samples keep to the grid of periods; what was skipped is between them. While boards
        # calibrate, and a moment longer, the grid moves to and fro.
        steps_ns = np.diff(recording["t_ns"][:] - recording["wake_ns"][:])
        periods_ns = (1 + recording["skipped"][:-1].astype(np.int64)) * 1_000_000
        assert (np.abs(steps_ns - periods_ns) <= 20_000).all()
        is_before = np.cumsum(recording["state"][1:] != State.IDLE) == 0
        assert np.array_equal(steps_ns[is_before], periods_ns[is_before])
    assert [path.name for path in file.parent.glob("*.h5*")] == [file.name]


def test_a_run_says_what_it_did(lab: Any) -> None:
    file = lab.path / "r.h5"

    result = lab.start(*lab.run_words("--duration", "1.5", "--record", file)).wait()

    assert result.exit_code == 0
    summary = result.json
    check_summary(summary)
    check_file(summary, file)
    assert summary["elapsed_s"] >= 1.5
    # A transfer that a busy machine interrupts makes a board's clock seem to stand still.
    stalled = sum(board["counters"]["stalled"] for board in summary["boards"])
    assert (summary["lost"], summary["corrupt"], summary["robot"]) == (stalled, 0, "laas4")
    assert (summary["state"], summary["ending"]) == ("idle", "time-is-over")
    assert lab.processes() == {}
    info = armature("record", "info", file, "--json").json
    assert (info["samples"], info["missing"], info["robot"]) == (summary["cycles"], 0, "laas4")
    assert info["link"] == "mock+spi?seed=0&spread=0.25"


def test_a_shipped_robot_by_name_and_for_people(lab: Any) -> None:
    words = ("--robot", "bench1", "--link", "mock", "--duration", "1")

    result = lab.do(*lab.here("run", *words, "--record", lab.path / "r.h5"))

    assert result.exit_code == 0
    for text in ("Run of robot bench1", "periods skipped", " lost, 0 corrupt", "0 missing"):
        assert text in result.out
    assert "p50 / p99 / p99.9 / longest" in result.out


def test_without_a_recording(lab: Any) -> None:
    result = lab.start(*lab.run_words("--duration", "0.5")).wait()

    assert result.exit_code == 0
    check_summary(result.json)
    assert "file" not in result.json
    assert not list(lab.path.glob("*.h5*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP])
def test_asked_to_end_it_stops_safely(lab: Any, number: signal.Signals) -> None:
    """How a run without a duration ends: no error."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--enable", "--record", file))
    lab.wait_for_state("calibrating")

    result = run.end(number)

    assert result.exit_code == 0
    check_summary(result.json)
    check_file(result.json, file)
    assert (result.json["state"], result.json["reason"]) == ("idle", number.name)
    assert f"calibrating → stopping: {number.name}" in result.err
    assert lab.processes() == {}
    with open_recording(file) as recording:
        modes = recording["command_mode"][:]
        assert modes.any()
        assert not modes[-1].any(), "the last command has everything off"


def test_asked_to_end_before_it_has_begun(lab: Any) -> None:
    run = lab.start(*lab.run_words("--record", lab.path / "r.h5"))
    lab.process("loop")

    result = run.end()

    assert result.exit_code in (0, 1, 130)
    assert lab.processes() == {}


def test_a_killed_loop(lab: Any) -> None:
    """The recorder closes the file with everything that the loop has handed on."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--record", file))
    before = lab.wait_for_cycles(1000)
    os.kill(lab.process("loop"), signal.SIGKILL)

    result = run.wait()

    assert result.exit_code == 1
    assert "SIGKILL" in result.err
    with open_recording(file) as recording:
        assert recording.gaps == ()
        # All but the batch that was being collected.
        assert recording.sample_count >= before.cycles - 20
        assert recording.sample_count == result.json["samples"]
        assert not [event for event in recording.events if event.kind == "end"]
    lab.wait_for(lambda: not lab.processes())


def test_a_killed_loop_is_reported_to_people_too(lab: Any) -> None:
    """Even when the process that writes the loop's events hangs."""
    run = lab.start(*(word for word in lab.run_words() if word != "--json"))
    lab.wait_for_cycles(100)
    (log,) = (n for n, line in lab.processes().items() if "daq.loop.process.event_log" in line)
    os.kill(log, signal.SIGSTOP)
    os.kill(lab.process("loop"), signal.SIGKILL)

    result = run.wait()

    assert (result.exit_code, result.out) == (1, "")
    assert "SIGKILL" in result.err


def test_a_recorder_killed_at_the_end_misses_nothing(lab: Any) -> None:
    """After the loop has ended, while it makes the file of its journal."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--record", file))
    lab.wait_for_cycles(1000)
    loop, recorder = lab.process("loop"), lab.process("record")
    run.process.send_signal(signal.SIGTERM)
    lab.wait_for(lambda: loop not in lab.processes())
    with contextlib.suppress(ProcessLookupError):
        os.kill(recorder, signal.SIGKILL)

    result = run.wait()

    assert result.exit_code == 0
    check_file(result.json, file)
    assert lab.processes() == {}


def test_killed_itself(lab: Any) -> None:
    """Loop and recorder end by themselves; what they leave is a recording, or becomes one."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--enable", "--record", file))
    before = lab.wait_for_cycles(1000)
    run.end(signal.SIGKILL)
    lab.wait_for(lambda: not lab.processes())

    assert lab.ask("recover", lab.path).exit_code == 0
    with open_recording(file) as recording:
        assert recording.gaps == ()
        assert recording.sample_count >= before.cycles - 20
    assert not list(lab.path.glob("*.journal"))


def test_loop_and_recorder_killed_together(lab: Any) -> None:
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--record", file))
    before = lab.wait_for_cycles(1500)
    for number in (run.process.pid, lab.process("loop"), lab.process("record")):
        os.kill(number, signal.SIGKILL)
    # Even without the spool, which a reboot takes away.
    for spool in lab.runtime.glob("spool-*"):
        spool.unlink()
    lab.wait_for(lambda: not lab.processes())

    assert lab.ask("recover", lab.path).exit_code == 0
    with open_recording(file) as recording:
        assert recording.sample_count >= before.cycles - MISSING_MAX


def test_what_an_earlier_run_left_is_not_taken_for_this_one(lab: Any) -> None:
    """After a crash: this run has all of its own, and leaves the old journal to `recover`."""
    before, file = lab.path / "before.h5", lab.path / "r.h5"
    crashed = lab.start(*lab.run_words("--record", before))
    seen = lab.wait_for_cycles(1000)
    for number in (crashed.process.pid, lab.process("loop"), lab.process("record")):
        os.kill(number, signal.SIGKILL)
    crashed.process.wait()

    result = lab.start(*lab.run_words("--duration", "1", "--record", file)).wait()

    assert result.exit_code == 0
    check_summary(result.json)
    assert result.json["file"] == str(file)
    assert (result.json["samples"], result.json["missing"]) == (result.json["cycles"], 0)
    assert not before.exists()
    again = lab.start(*lab.run_words("--duration", "1", "--record", before)).wait()
    assert again.exit_code == 2
    assert "before.h5.journal" in again.err
    assert lab.ask("recover", lab.path).exit_code == 0
    with open_recording(before) as recording:
        assert recording.gaps == ()
        assert recording.sample_count >= seen.cycles - 20
    assert sorted(path.name for path in lab.path.glob("*.h5*")) == ["before.h5", "r.h5"]
