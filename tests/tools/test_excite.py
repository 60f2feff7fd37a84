"""`armature excite`, and what it writes through the whole chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from acceptance import only
from commands import Result, armature
from excitation_examples import QUICK

from daq.motion.limits import RowChecker
from daq.motion.trajectory_file import read_trajectory
from daq.robot import load_robot, robot_text

pytestmark = pytest.mark.chain


Excite = Callable[..., Result]


@pytest.fixture
def excite(tmp_path: Path) -> Excite:
    """Runs the command, quickly; its file is traj.h5 unless the words say otherwise."""

    def run(*words: str, robot: str = "laas4", out: str = "traj.h5") -> Result:
        options = ("--robot", robot, "--out", str(tmp_path / out))
        if "--evaluations" not in words:
            words = (*words, "--evaluations", str(QUICK))
        return armature("excite", *options, *words)

    return run


@pytest.fixture(scope="module")
def made(made_once: Callable[..., Path]) -> Path:
    """A trajectory of 13 s, no whole number of periods, and what the command says of it."""

    def find(directory: Path) -> None:
        words = ("--out", str(directory / "traj.h5"), "--seed", "2", "--duration", "13")
        result = armature(
            "excite", "--robot", "laas4", *words, "--evaluations", str(QUICK), "--json"
        )
        assert (result.exit_code, result.err) == (0, "")
        (directory / "facts.json").write_text(result.out)

    return made_once("excitation", find)


def test_json(made: Path) -> None:
    facts = json.loads((made / "facts.json").read_text())
    assert facts["file"] == str(made / "traj.h5")
    assert (facts["rank"], facts["parameters"]) == (32, 52)
    assert 10.0 < facts["condition"] < 60.0
    assert 1.0 < facts["condition_scaled"] < facts["condition"]
    assert (facts["f0_hz"], facts["harmonics"]) == (0.1, 5)
    assert facts["duration_s"] == pytest.approx(13.0)
    assert (facts["seed"], facts["evaluations"]) == (2, QUICK)
    assert facts["seconds"] > 0.0
    assert len(facts["coverage"]["joint_percent"]) == 4
    names = {limit["name"] for limit in facts["limits"]}
    assert names == {
        *("position_min", "position_max", "velocity", "acceleration", "torque", "current"),
        *("link_clearance", "ground_clearance"),
    }
    for limit in facts["limits"]:
        excess = limit["reached"] - limit["limit"]
        assert (-excess if limit["is_lower"] else excess) <= 1e-9
        assert limit["is_kept"]
        assert limit["joint"]
        assert limit["unit"]


def test_it_stays_within_what_the_boards_drive(excite: Excite) -> None:
    """The robot file says 16 A for joint2, `uomodri` boards drive 10: 70 % of that are planned."""
    found = excite("--profile", "uomodri", "--json", "--duration", "10").json
    currents = [limit for limit in found["limits"] if limit["name"] == "current"]
    assert [limit["limit"] for limit in currents] == pytest.approx([7.0, 7.0, 0.7 * 9.0, 7.0])
    assert all(limit["is_kept"] for limit in currents)


def test_the_loop_takes_the_file_as_it_is(made: Path) -> None:
    robot = load_robot("laas4")
    trajectory = read_trajectory(made / "traj.h5", [joint.name for joint in robot.joints])
    assert not trajectory.is_resampled
    assert not trajectory.has_torque
    assert trajectory.duration_s == pytest.approx(13.0)
    RowChecker(robot).check(trajectory.rows)
    for end in (0, -1):
        assert np.abs(trajectory.rows[end, 4:]).max() < 1e-9


def test_the_file_says_how_it_was_made(excite: Excite, tmp_path: Path) -> None:
    words = ("--objective", "dopt", "--validation", "--terms", "viscous, coulomb")
    facts = json.loads(excite("--json", *words).out)
    with h5py.File(tmp_path / "traj.h5") as file:
        said = dict(file.attrs)
    assert (facts["rank"], facts["parameters"]) == (30, 48)
    assert said["robot"] == "laas4"
    assert said["robot_sha256"] == hashlib.sha256(robot_text("laas4").encode()).hexdigest()
    assert said["purpose"] == "validation"
    assert said["objective"] == "dopt"
    assert said["condition"] == facts["condition"]
    assert said["f0_hz"] == facts["f0_hz"] == pytest.approx(0.08)
    assert said["duration_s"] == facts["duration_s"] == 20.0
    assert said["made_by"].startswith("armature excite ")
    assert {"seed", "harmonics", "evaluations"} <= said.keys()


def test_for_people_and_one_seed_one_file(excite: Excite, tmp_path: Path, made: Path) -> None:
    result = excite("--seed", "2", "--duration", "13")
    assert result.exit_code == 0
    for words in ("Identification trajectory for robot laas4", "32 of 52", "above the ground"):
        assert words in result.out
    assert "armature run --robot laas4 --link mock --fast --home --play" in result.err
    with h5py.File(made / "traj.h5") as one, h5py.File(tmp_path / "traj.h5") as other:
        assert np.array_equal(one["q_rad"], other["q_rad"])


def test_nothing_is_overwritten(excite: Excite, tmp_path: Path) -> None:
    (tmp_path / "traj.h5").write_text("precious")
    result = excite()
    assert result.exit_code == 2
    assert f"--out {tmp_path / 'traj.h5'}:" in result.err
    assert (tmp_path / "traj.h5").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--f0", "0"), "--f0 0:"),
        (("--f0", "nan"), "--f0 nan:"),
        (("--harmonics", "0"), "--harmonics 0:"),
        (("--harmonics", "99"), "--harmonics 99:"),
        (("--f0", "4"), "--harmonics 5:"),
        (("--duration", "3"), "--duration 3:"),
        (("--duration", "inf"), "--duration inf:"),
        (("--evaluations", "-5"), "--evaluations -5:"),
        (("--seed", "-1"), "--seed -1:"),
        (("--terms", "magnetic"), "--terms magnetic:"),
        (("--objective", "fastest"), "'fastest'"),
    ],
)
def test_misuse(excite: Excite, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    result = excite(*words)
    assert (result.exit_code, result.out) == (2, "")
    assert message in result.err
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_excited_or_written(excite: Excite) -> None:
    for options, message in (
        ({"robot": "laas5"}, "laas5"),
        ({"robot": "bench1"}, "--robot bench1:"),
        ({"out": "traj.csv"}, "traj.csv:"),
        ({"out": "no/such/traj.h5"}, "no/such/traj.h5:"),
    ):
        result = excite(**options)
        assert (result.exit_code, result.out) == (2, "")
        assert message in result.err


def test_no_room_is_a_failure(excite: Excite, tmp_path: Path) -> None:
    file = tmp_path / "buried.toml"
    file.write_text(robot_text("laas4").replace("ground_z_m = -0.75", "ground_z_m = 1.5"))
    result = excite("--duration", "10", "--evaluations", "60", robot=str(file))
    assert result.exit_code == 1
    assert "[no-trajectory]" in result.err
    assert "ground_clearance of joint" in result.err
    assert not (tmp_path / "traj.h5").exists()


@only  # under `make test` the demo plays its trajectory
def test_the_mock_follows_it(made: Path, tmp_path: Path) -> None:
    """From home to its start, through it and to rest, without a limit tripping."""
    play, record = str(made / "traj.h5"), str(tmp_path / "run.h5")
    words = ("--link", "mock", "--fast", "--home", "--play", play, "--record", record, "--json")
    result = armature("run", "--robot", "laas4", *words)
    assert result.exit_code == 0, result.err
    with h5py.File(record) as file:
        seq, texts = file["events/seq"][:], file["events/text"].asstr()[:]
        begin = int(next(s for s, text in zip(seq, texts, strict=True) if "begins" in text))
        first = begin - int(file["samples/seq"][0])
        q = file["samples/joint_position_rad"][first:-100]
        reference = file["samples/reference_position_rad"][first:-100]
    assert np.abs(q - reference).max() < 0.15
