"""Real time, real spidev, emulated devices: samples, faults on the wire, and a trajectory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import IS_LONG, ONLY, only
from commands import armature

from daq.boards.board import Outcome
from daq.motion.trajectory_file import write_trajectory
from daq.recording import Recording, open_recording
from daq.recording.states import Mode, State

pytestmark = pytest.mark.compiler

SAMPLES = 10_000 if IS_LONG else 4_000
HANGING_RAD = np.array([0.0, -np.pi / 2, 0.0, 0.0])
SOUND = [Outcome.OK, Outcome.LATE, Outcome.COMMAND_LOST]


def make_trajectory(path: Path, duration_s: float) -> Path:
    """Around the hanging posture; begins and ends at rest."""
    t = np.arange(0.0, duration_s, 1e-3)[:, None]
    sizes_rad, speeds_rad_s = np.array([0.3, 0.25, 0.3, 0.4]), 2 * np.pi * np.linspace(0.4, 0.7, 4)
    swell, its_slope = (
        np.sin(np.pi * t / duration_s) ** 2,
        np.pi / duration_s * np.sin(2 * np.pi * t / duration_s),
    )
    wave, its_speed = np.sin(speeds_rad_s * t), speeds_rad_s * np.cos(speeds_rad_s * t)
    q_rad = HANGING_RAD + sizes_rad * swell * wave
    dq_rad_s = sizes_rad * (its_slope * wave + swell * its_speed)
    write_trajectory(path, t_s=t[:, 0], q_rad=q_rad, dq_rad_s=dq_rad_s)
    return path


def check_tracking(recording: Recording, rows: int) -> None:
    """Whether the arm was where it should be, as well as these gains and this friction let it."""
    is_playing = (recording["joint_mode"][:] == Mode.PLAY).all(axis=1)
    assert is_playing.sum() >= rows
    reference_rad = recording["reference_position_rad"][:][is_playing]
    error_rad = recording["joint_position_rad"][:][is_playing] - reference_rad
    rms_rad = np.sqrt(np.nanmean(error_rad**2, axis=0))
    assert (rms_rad < 0.05).all(), rms_rad
    assert (rms_rad < 0.15 * np.ptp(reference_rad, axis=0)).all(), rms_rad
    assert (recording["joint_is_homed"][:][is_playing] == 1).all()


def check_validity(recording: Recording, summary: dict[str, Any]) -> None:
    """Replies that cannot be used are marked, have no values, and are counted once each."""
    outcomes = recording["board_outcome"][:]
    for number, board in enumerate(summary["boards"]):
        counters = board["counters"]
        assert counters["exchanges"] == len(outcomes) == summary["cycles"]
        assert (outcomes[:, number] == Outcome.CORRUPT).sum() == counters["corrupt"]
        assert (outcomes[:, number] == Outcome.COMMAND_LOST).sum() == (counters["lost_commands"])
    assert (outcomes == Outcome.CORRUPT).sum() == summary["corrupt"]
    # Two joints on each board.
    is_sound = np.repeat(np.isin(outcomes, SOUND), 2, axis=1)
    assert np.array_equal(recording["joint_valid"][:], is_sound)
    for name in ("joint_velocity_rad_s", "iq_a"):
        assert np.array_equal(np.isfinite(recording[name][:]), is_sound), name
    # A board knows its positions once it is calibrated.
    bits = np.tile([1 << 13, 1 << 11], 2)
    is_ready = (np.repeat(recording["board_status"][:], 2, axis=1) & bits) > 0
    assert np.array_equal(np.isfinite(recording["joint_position_rad"][:]), is_sound & is_ready)
    frames = recording.invalid_frames
    assert len(frames["seq"][:]) == (~np.isin(outcomes, SOUND)).sum()


def check_stop(recording: Recording, *, is_fault: bool) -> None:
    """Whatever ended it: power goes off through stopping, and the last command has ES off."""
    states = recording["state"][:]
    changes = [State(states[0]), *(State(s) for s in states[1:][np.diff(states) != 0])]
    # Boards that calibrate are switched off at once: there is nothing to brake with.
    assert changes[-2] in (State.STOPPING, State.CALIBRATING), changes
    assert changes[-1] == (State.FAULT if is_fault else State.IDLE), changes
    assert not recording["command_mode"][-1].any()


@pytest.mark.acceptance
@pytest.mark.parametrize("faults", [(), ("flip:rate=0.001",)])
def test_thousands_of_samples(lab: Any, faults: tuple[str, ...]) -> None:
    """None is lost; some are damaged, are marked so, and the arm moves on."""
    file = lab.path / "r.h5"
    words = lab.here("armature", "run", "--robot", lab.robot, "--link", "spi", "--json")
    words += ("--command-timeout-ms", "250", "--enable", "--record", file)
    words += ("--duration", str(1e-3 * SAMPLES + 0.5))
    run = lab.start(*lab.mock_words(*faults), *words)
    lab.wait_for_state("active")
    # Joints that are not homed may be jogged by 0.35 rad: they shall move to the end.
    speed_rad_s = 0.28 / (1e-3 * SAMPLES)
    target = f"{speed_rad_s:.3f},{-speed_rad_s:.3f}"
    lab.accept("mode", "velocity", "--joint", "joint1,joint3", "--target", target)

    result = run.wait()

    assert result.exit_code == 0
    summary = result.json
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    assert summary["elapsed_s"] * 1000 >= SAMPLES
    assert (summary["samples"], summary["missing"]) == (summary["cycles"], 0)
    for board in summary["boards"]:
        raised = {name for name, count in board["counters"].items() if count}
        # Bits flip in commands, too: those get lost. A transfer that the machine interrupts for
        # long makes a board's clock seem to stand still.
        allowed = {"exchanges", "valid", "unconfirmed", "stalled"}
        damage = {"corrupt", "lost_commands", "late", "stale"} if faults else set()
        assert raised <= allowed | damage, board
        assert bool(faults) == bool(raised & {"corrupt", "lost_commands"})
    assert (summary["corrupt"] > 0) == bool(faults)
    with open_recording(file) as recording:
        assert recording.gaps == ()
        check_validity(recording, summary)
        check_stop(recording, is_fault=False)
        last = recording["joint_position_rad"][:][-1200:]
        moved_rad = np.nanmax(last, axis=0) - np.nanmin(last, axis=0)
        assert (moved_rad[[0, 2]] > 0.7 * speed_rad_s).all(), moved_rad


@only
@pytest.mark.timeout(600)
@pytest.mark.parametrize("faults", [(), ("flip:rate=0.001",)])
def test_trajectory_in_real_time(lab: Any, faults: tuple[str, ...]) -> None:
    file, trajectory = lab.path / "r.h5", make_trajectory(lab.path / "t.h5", 8.0)
    words = lab.here("armature", "run", "--robot", lab.robot, "--link", "spi", "--json")
    words += ("--command-timeout-ms", "250", "--play", trajectory, "--record", file)

    result = lab.start(*lab.mock_words(*faults), *words).wait(300.0)

    assert result.exit_code == 0
    assert result.json["ending"] == "done"
    assert result.json["cycles"] + result.json["skipped"] >= SAMPLES
    assert result.json["missing"] == 0
    with open_recording(file) as recording:
        check_tracking(recording, 8000 - result.json["skipped"])
        check_validity(recording, result.json)
        check_stop(recording, is_fault=False)


@pytest.mark.parametrize("faults", [pytest.param((), marks=ONLY), ("flip:rate=0.001",)])
def test_trajectory_in_virtual_time(tmp_path: Path, faults: tuple[str, ...]) -> None:
    file, trajectory = tmp_path / "r.h5", make_trajectory(tmp_path / "t.h5", 4.0)
    words = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--json", "--play", trajectory)
    options = [word for fault in faults for word in ("--fault", fault)]

    result = armature(*words, *options, "--record", file)

    assert result.exit_code == 0
    assert (result.json["skipped"], result.json["missing"]) == (0, 0)
    assert result.json["cycles"] == result.json["samples"] > 10_000
    assert (result.json["corrupt"] > 0) == bool(faults)
    with open_recording(file) as recording:
        check_tracking(recording, 4000)
        check_validity(recording, result.json)
        check_stop(recording, is_fault=False)


# At the very first exchanges, and while the motors calibrate.
FAILURES = [
    ("flip:rate=1,direction=reply", 0, "corrupt", ()),
    ("vanish:at=1", 1, None, ()),
    ("board-error:at=1,code=7", 1, None, ("error 7",)),
]
MORE_FAILURES = [
    ("stuck-high:at=1,for=1", 1, "lost_replies", ("20",)),
    ("stuck-low:at=1,for=1", 0, "lost_replies", ("20",)),
    ("io-error:at=1,for=1", 0, None, ()),
    ("stale-index:at=1,for=1", 0, "lost_commands", ("20",)),
]


@pytest.mark.parametrize(
    ("fault", "number", "counter", "data"),
    [*FAILURES, *(pytest.param(*case, marks=ONLY) for case in MORE_FAILURES)],
)
def test_a_board_that_fails(
    lab: Any, fault: str, number: int, counter: str | None, data: tuple[str, ...]
) -> None:
    """Safe stop, exit 3, and a message that names board and device."""
    file = lab.path / "r.h5"
    words = lab.run_words("--enable", "--fault", f"{fault},board={number}", "--duration", "20")
    words += ("--record", file)

    result = lab.start(*words).wait()

    assert result.exit_code == 3, result.err
    summary = result.json
    assert summary["state"] == "fault"
    board = ("shoulder", "elbow")[number]
    for text in (f"/dev/spidev0.{number}", board, *data):
        assert text in summary["reason"]
    assert counter is None or summary["boards"][number]["counters"][counter] >= 20
    (message,) = (line for line in result.err.splitlines() if "armature: stopped: " in line)
    assert message == f"armature: stopped: {summary['reason']}"
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    assert (summary["samples"], summary["missing"]) == (summary["cycles"], 0)
    with open_recording(file) as recording:
        if recording["command_mode"][:].any():
            check_stop(recording, is_fault=True)
        (event,) = (e for e in recording.events if e.kind == "fault" and e.text in message)
        assert (event.severity, event.source) == ("error", board)


def test_a_fault_of_the_robot_is_a_failure_of_the_run(lab: Any) -> None:
    """Exit 3 is for boards: a limit of the robot that is crossed gives 1."""
    # Nominal in the mock's file, too much in the loop's.
    strict = lab.path / "strict.toml"
    text = lab.robot.read_text().replace("nominal_v = 24.0", "nominal_v = 22.0", 1)
    strict.write_text(text.replace("max_v = 28.0", "max_v = 23.0", 1))
    words = lab.here("armature", "run", "--robot", strict, "--link", "spi", "--json", "--enable")
    words += ("--command-timeout-ms", "250", "--duration", "20", "--record", lab.path / "r.h5")

    result = lab.start(*lab.mock_words(), *words).wait()

    assert result.exit_code == 1, result.err
    assert re.search(r"\b24 V.* 20 to 23 V", result.json["reason"])
    assert result.json["missing"] == 0
