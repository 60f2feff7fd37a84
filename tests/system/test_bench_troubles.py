"""What goes wrong at a bench, in plain words: the motors stop, the recording stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from acceptance import only
from bench_command import QUICK, changed_robot, friction
from commands import armature

from daq.boards.board import Outcome
from daq.recording import open_recording
from daq.recording.bench_events import PROBLEM
from daq.recording.states import State
from estimation.bench.result import Cause

pytestmark = pytest.mark.chain


def check_stopped(directory: Path) -> None:
    """The recording is whole, and its last samples have no motor enabled."""
    with open_recording(directory / "joint3.h5") as recording:
        assert (recording["command_mode"][-2:] == 0).all()
        assert recording["state"][-1] in (State.IDLE, State.FAULT)
        assert not recording.gaps


def problem_of(directory: Path) -> str:
    """Why a test ended early, from its recording."""
    with open_recording(directory / "joint3.h5") as recording:
        (event,) = (event for event in recording.events if event.kind == PROBLEM)
    assert event.source == "joint3"
    return event.text


def test_a_joint_that_hits_something(tmp_path: Path) -> None:
    outcome = friction(tmp_path, *QUICK, "--effects", "default,end_stop_rad=1.0")
    assert outcome.exit_code == 1
    check_stopped(tmp_path)
    problem = problem_of(tmp_path)
    assert re.search(r"joint3: .* [0-9.]+ rad/s.* hit something", problem), problem
    assert problem in outcome.err
    assert not (tmp_path / "joint3.json").exists()
    again = armature("bench", "analyse", tmp_path / "joint3.h5")
    assert again.exit_code == 1
    assert problem in again.err


def test_a_gear_that_slips(tmp_path: Path) -> None:
    outcome = friction(tmp_path, *QUICK, "--effects", "default,gear_slip=0.1")
    slips = [p for p in outcome.json["plateaus"] if p["cause"] == Cause.SLIP.value]
    assert slips
    assert any(slips[0]["reason"] in warning for warning in outcome.json["warnings"])


@only
def test_a_gear_that_slips_most_of_the_time(tmp_path: Path) -> None:
    words = ("--speeds", "8", "--repetitions", "1", "--effects", "default,gear_slip=0.3")
    outcome = friction(tmp_path, *words)
    assert outcome.exit_code == 1
    assert outcome.json["warnings"][0] in outcome.err
    causes = [plateau["cause"] for plateau in outcome.json["plateaus"]]
    assert Cause.SLIP.value in causes
    assert outcome.json["plateaus_rejected"] > outcome.json["plateaus_used"]


def test_a_motor_that_is_too_hot(tmp_path: Path) -> None:
    limit = {"torque_max_nm = 50.0": "torque_max_nm = 50.0\nwinding_temperature_max_degc = 20"}
    robot = changed_robot(tmp_path / "hot.toml", limit)
    outcome = friction(tmp_path / "out", *QUICK, robot=robot)
    assert outcome.exit_code == 1
    assert re.search(r"joint3.* 25 °C.* 20 °C", outcome.err)
    check_stopped(tmp_path / "out")


def test_a_current_that_saturates_at_high_speed(tmp_path: Path) -> None:
    changes = {
        "viscous_motor_nm_s_per_rad = 2.42e-6": "viscous_motor_nm_s_per_rad = 2.5e-5",
        "current_max_a = 9.0": "current_max_a = 0.25",
    }
    robot = changed_robot(tmp_path / "weak.toml", changes)
    outcome = friction(tmp_path / "out", *QUICK, "--speeds", "8", robot=robot)
    assert "0.25 A" in outcome.err
    assert "--speed-max" in outcome.err
    rejected = [plateau for plateau in outcome.json["plateaus"] if not plateau["is_used"]]
    assert rejected
    assert {plateau["cause"] for plateau in rejected} <= {"saturation", "not settled"}
    assert min(abs(plateau["joint_velocity_rad_s"]) for plateau in rejected) > 1.0


def test_a_current_limit_below_friction(tmp_path: Path) -> None:
    robot = changed_robot(tmp_path / "weak.toml", {"current_max_a = 9.0": "current_max_a = 0.125"})
    outcome = friction(tmp_path / "out", *QUICK, robot=robot)
    assert outcome.exit_code == 1
    assert re.search(r"joint3 .* 0\.125 A.* current_max_a", problem_of(tmp_path / "out"))


def test_gains_that_cannot_work_are_refused_before_anything_moves(tmp_path: Path) -> None:
    outcome = friction(tmp_path / "out", "--kp", "0.005")
    assert outcome.exit_code == 2
    assert "--kp 0.005" in outcome.err
    assert "0.921 rad" in outcome.err
    overflowing = ("--profile", "udriver2", "--kp", "4", "--kd", "0.5")
    outcome = friction(tmp_path / "out", *overflowing)
    assert outcome.exit_code == 2
    assert "kp_a_per_rad: 4, less than" in outcome.err and "128 A" in outcome.err
    outcome = friction(tmp_path / "out", "--dwell", "30")
    assert outcome.exit_code == 2
    assert "--dwell" in outcome.err and "wrap" in outcome.err
    outcome = friction(tmp_path / "out", "--kd", "2")
    assert outcome.exit_code == 2
    assert "kd_a_s_per_rad: 2," in outcome.err
    assert "0.611" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lasts_s", [0.01, 0.05])
def test_an_encoder_gap_at_high_speed(tmp_path: Path, lasts_s: float) -> None:
    words = ("--speeds", "2", "--repetitions", "2", "--speed-min", "4")
    # During the first plateau; the signal is back just after the bench has looked.
    fault = f"encoder-gap:at={10.006 - lasts_s:.3f},for={lasts_s}"
    outcome = friction(tmp_path, *words, "--fault", fault)
    assert outcome.exit_code == 1
    check_stopped(tmp_path)
    assert re.search(r"[0-9.]+ rad/s, [0-9.]+ ms", outcome.err)


def test_an_encoder_gap_at_low_speed_stops_the_motor(tmp_path: Path) -> None:
    words = ("--speeds", "4", "--speed-min", "0.3", "--speed-max", "0.8", "--repetitions", "1")
    outcome = friction(tmp_path, *words, "--fault", "encoder-gap:at=5,for=0.015")
    assert outcome.exit_code == 1, outcome.err
    assert "encoder" in problem_of(tmp_path)
    check_stopped(tmp_path)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("vanish:at=10", Outcome.NO_EXCHANGE),
        ("stuck-low:at=10,for=100", Outcome.SILENT),
        ("brown-out:at=10", Outcome.SILENT),
        ("board-error:at=10,code=7", Outcome.OK),
    ],
)
def test_a_cable_that_comes_off_in_the_middle(tmp_path: Path, fault: str, outcome: Outcome) -> None:
    result = friction(tmp_path, *QUICK, "--fault", fault)
    assert result.exit_code == 3
    assert str(tmp_path / "joint3.h5") in result.err
    with open_recording(tmp_path / "joint3.h5") as recording:
        assert recording.duration_s == pytest.approx(10.0, abs=0.5)
        (event,) = (event for event in recording.events if event.kind == "fault")
        assert (recording["board_outcome"][-60:] == outcome).any()
    assert event.text in result.err
    assert ("error 7" in event.text) == ("code=7" in fault)
