"""What goes wrong at a bench, in plain words: the motors stop, the recording stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_command import QUICK, changed_robot, friction
from commands import armature

from daq.recording import open_recording
from daq.recording.states import State

pytestmark = pytest.mark.chain


def check_stopped(directory: Path) -> None:
    """The recording is whole, and its last samples have no motor enabled."""
    with open_recording(directory / "joint3.h5") as recording:
        assert (recording["command_mode"][-3:] == 0).all()
        assert recording["state"][-1] in (State.IDLE, State.FAULT)
        assert not recording.gaps


def test_a_joint_that_hits_something(tmp_path: Path) -> None:
    outcome = friction(tmp_path, *QUICK, "--effects", "default,end_stop_rad=1.0")
    assert outcome.exit_code == 1
    assert "has hit something" in outcome.err
    assert "Is it clamped" in outcome.err
    check_stopped(tmp_path)
    assert not (tmp_path / "joint3.json").exists()
    again = armature("bench", "analyse", tmp_path / "joint3.h5")
    assert again.exit_code == 1
    assert "The test ended early: joint joint3 stands still" in again.err


def test_a_gear_that_slips(tmp_path: Path) -> None:
    words = ("--speeds", "6", "--repetitions", "1", "--effects", "default,gear_slip=0.1")
    outcome = friction(tmp_path, *words)
    reasons = [plateau["reason"] for plateau in outcome.json["plateaus"]]
    assert any(reason.startswith("the gear slips: the current") for reason in reasons)
    assert any("the gear slips" in warning for warning in outcome.json["warnings"])


def test_a_gear_that_slips_most_of_the_time(tmp_path: Path) -> None:
    words = ("--speeds", "8", "--repetitions", "1", "--effects", "default,gear_slip=0.3")
    outcome = friction(tmp_path, *words)
    assert outcome.exit_code == 1
    assert "not to be trusted" in outcome.err
    assert "the gear slips" in outcome.err
    assert outcome.json["plateaus_rejected"] > outcome.json["plateaus_used"]


def test_a_motor_that_is_too_hot(tmp_path: Path) -> None:
    limit = {"torque_max_nm = 50.0": "torque_max_nm = 50.0\nwinding_temperature_max_degc = 20"}
    robot = changed_robot(tmp_path / "hot.toml", limit)
    outcome = friction(tmp_path / "out", *QUICK, robot=robot)
    assert outcome.exit_code == 1
    assert "winding temperature 25 °C, limit 20 °C; let it cool" in outcome.err
    check_stopped(tmp_path / "out")


def test_a_current_that_saturates_at_high_speed(tmp_path: Path) -> None:
    changes = {
        "viscous_motor_nm_s_per_rad = 2.42e-6": "viscous_motor_nm_s_per_rad = 2.5e-5",
        "current_max_a = 9.0": "current_max_a = 0.25",
    }
    robot = changed_robot(tmp_path / "weak.toml", changes)
    outcome = friction(tmp_path / "out", *QUICK, "--speeds", "8", robot=robot)
    assert "the current is saturated at its limit of 0.25 A while the motor turns at" in outcome.err
    assert "drive it slower (--speed-max)" in outcome.err
    rejected = [plateau for plateau in outcome.json["plateaus"] if not plateau["is_used"]]
    assert rejected
    assert all("saturated" in plateau["reason"] for plateau in rejected)
    assert min(abs(plateau["joint_velocity_rad_s"]) for plateau in rejected) > 1.0


def test_a_current_limit_below_friction(tmp_path: Path) -> None:
    robot = changed_robot(tmp_path / "weak.toml", {"current_max_a = 9.0": "current_max_a = 0.125"})
    outcome = friction(tmp_path / "out", *QUICK, robot=robot)
    assert outcome.exit_code == 1
    assert "it never moved" in outcome.err
    assert "all that its limit of 0.125 A allows" in outcome.err


def test_gains_that_are_wrong_get_a_suggestion(tmp_path: Path) -> None:
    outcome = friction(tmp_path, *QUICK, "--kp", "0.44", "--kd", "0.002")
    assert outcome.exit_code == 1
    assert "try --kp 0.44 --kd 0.044" in outcome.err


def test_gains_that_cannot_work_are_refused_before_anything_moves(tmp_path: Path) -> None:
    outcome = friction(tmp_path / "out", "--kp", "0.005")
    assert outcome.exit_code == 2
    assert "would lag 0.921 rad behind" in outcome.err
    outcome = friction(tmp_path / "out", "--kd", "2")
    assert outcome.exit_code == 2
    assert "kd_a_s_per_rad: 2, the wire carries at most 0.611" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lasts_s", [0.01, 0.05])
def test_an_encoder_gap_at_high_speed(tmp_path: Path, lasts_s: float) -> None:
    words = ("--speeds", "2", "--repetitions", "2", "--speed-min", "4.5")
    outcome = friction(tmp_path, *words, "--fault", f"encoder-gap:at=4.5,for={lasts_s}")
    assert outcome.exit_code == 1
    assert "the encoder has a gap: the motor's position jumps by" in outcome.err
    check_stopped(tmp_path)


def test_an_encoder_gap_at_low_speed_costs_a_plateau(tmp_path: Path) -> None:
    words = ("--speeds", "4", "--speed-min", "0.3", "--speed-max", "0.8", "--repetitions", "1")
    outcome = friction(tmp_path, *words, "--fault", "encoder-gap:at=5,for=0.015")
    assert outcome.exit_code == 0, outcome.err
    (rejected,) = (p for p in outcome.json["plateaus"] if not p["is_used"])
    assert "the encoder has a gap" in rejected["reason"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("vanish:at=10", "cannot be reached"),
        ("stuck-low:at=10,for=100", "20 replies in a row could not be read"),
        ("brown-out:at=10", "could not be read"),
        ("board-error:at=10,code=7", "gate"),
    ],
)
def test_a_cable_that_comes_off_in_the_middle(tmp_path: Path, fault: str, words: str) -> None:
    outcome = friction(tmp_path, *QUICK, "--fault", fault)
    assert outcome.exit_code == 3
    assert words in outcome.err
    assert "what was measured is in" in outcome.err
    check_recorded = tmp_path / "joint3.h5"
    with open_recording(check_recorded) as recording:
        assert recording.duration_s == pytest.approx(10.0, abs=0.5)
