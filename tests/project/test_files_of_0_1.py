"""Files that version 0.1 wrote are read by today's code, with the values they had."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daq.motion.trajectory_file import read_trajectory
from daq.recording import open_recording
from daq.robot import load_robot
from daq.stream.keys import load_keys
from tools.main import main

FILES = Path(__file__).parents[1] / "files_of_0_1"
JOINTS = ("joint1", "joint2", "joint3", "joint4")

Unpack = Callable[[str], Path]
Armature = Callable[..., Any]


@pytest.fixture
def unpack(tmp_path: Path) -> Unpack:
    """Puts one of the files into an own folder; only its owner may read it."""

    def file(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(mode=0o750, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(gzip.decompress((FILES / f"{name}.gz").read_bytes()))
        return path

    return file


@pytest.fixture
def armature(capsys: pytest.CaptureFixture[str]) -> Armature:
    """Runs a command in this process and returns the JSON object that it prints."""

    def run(*words: str | Path) -> Any:
        assert main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("profile", "samples", "outcomes"),
    [
        ("arm", 15257, {"ok", "unconfirmed"}),
        ("uomodri", 1052, {"ok", "unconfirmed", "command_lost", "corrupt"}),
        ("udriver2", 954, {"ok", "unconfirmed", "late"}),
    ],
)
def test_recordings_of_every_profile(
    unpack: Unpack, armature: Armature, profile: str, samples: int, outcomes: set[str]
) -> None:
    path = unpack(f"{profile}.h5")
    facts = armature("record", "info", path)
    assert (facts["armature_version"], facts["version"]) == ("0.1.0", "1.0")
    assert (facts["robot"], facts["samples"], facts["missing"]) == ("laas4", samples, 0)
    for board in facts["boards"]:
        assert (board["profile"], set(board["outcomes"])) == (profile, outcomes)
    with open_recording(path) as recording:
        assert recording.joint_names == JOINTS
        assert recording.robot.name == "laas4"
        assert recording.robot.joints[1].limits.velocity_max_rad_s == 5.0
        assert recording["seq"][:].tolist() == list(range(samples))
        assert recording["joint_position_rad"].unit == "rad"
        assert np.nanmax(recording["iq_a"][:]) > 0.1


def test_events_of_a_recording(unpack: Unpack) -> None:
    with open_recording(unpack("udriver2.h5")) as recording:
        kinds = [(event.seq, event.kind, event.source) for event in recording.events]
    assert kinds == [
        (24, "state", ""),
        (901, "fault", "shoulder"),
        (901, "state", ""),
        (950, "state", ""),
        (953, "end", ""),
    ]


def test_an_imported_recording(unpack: Unpack) -> None:
    with open_recording(unpack("imported.h5")) as recording:
        expected = np.sin(np.arange(500) / 100)
        position = recording["joint_position_rad"][:, 0]
        np.testing.assert_allclose(position, expected, atol=1e-5)
        np.testing.assert_allclose(recording["joint_torque_nm"][:, 0], 0.1 * expected, atol=1e-6)


def test_a_trajectory(unpack: Unpack) -> None:
    trajectory = read_trajectory(unpack("trajectory.h5"), JOINTS)
    assert trajectory.duration_s == pytest.approx(2.5)
    assert not trajectory.is_resampled
    assert not trajectory.has_torque


def test_an_identification_gives_what_it_gave(unpack: Unpack, armature: Armature) -> None:
    then = json.loads(unpack("result/result.json").read_bytes())
    path = unpack("arm.h5")
    now = armature("identify", path, "--method", "cad", "uls", "cls2", "--no-report")
    assert then.keys() <= now.keys()
    for key in ("robot", "rank", "parameter_count", "chosen", "cutoff_hz", "is_mock"):
        assert now[key] == then[key]
    assert now["condition"] == pytest.approx(then["condition"], rel=1e-6)
    assert now["floor_percent"] == pytest.approx(then["floor_percent"], rel=1e-3)
    for ours, theirs in zip(now["methods"], then["methods"], strict=True):
        assert theirs.keys() <= ours.keys()
        assert (ours["name"], ours["consistent"]) == (theirs["name"], theirs["consistent"])
        assert ours["base"] == pytest.approx(theirs["base"], rel=1e-3, abs=1e-5)
    for ours, theirs in zip(now["base_parameters"], then["base_parameters"], strict=True):
        assert ours["symbol"] == theirs["symbol"]
        assert ours["sigma"] == pytest.approx(theirs["sigma"], rel=0.1)


def test_an_identified_robot(unpack: Unpack, armature: Armature) -> None:
    then = json.loads(unpack("result/result.json").read_bytes())
    now = armature("robot", "show", unpack("result/laas4.toml"))
    assert (now["is_driven"], now["rank"]) == (True, then["rank"])
    masses = {row["joint"]: row["value"] for row in then["parameters"] if row["unit"] == "kg"}
    assert {joint["name"]: joint["mass_kg"] for joint in now["joints"]} == pytest.approx(masses)


def test_a_bench_test_gives_what_it_gave(unpack: Unpack, armature: Armature) -> None:
    then = json.loads(unpack("bench/joint1.json").read_bytes())
    now = armature("bench", "analyse", unpack("bench/joint1.h5"))
    assert then.keys() <= now.keys()
    assert now["model"] == then["model"] == "coulomb_viscous"
    for key in ("b_eq_nms", "f_nm", "breakaway_nm", "inertia_kg_m2"):
        assert now[key] == pytest.approx(then[key], rel=1e-3)


def test_a_result_of_the_bench(unpack: Unpack, armature: Armature) -> None:
    (row,) = armature("bench", "table", unpack("bench/joint1.json"))["joints"]
    assert row["joint"] == "joint1"


def test_a_robot_file_with_measured_friction(unpack: Unpack) -> None:
    friction = load_robot(str(unpack("applied.toml"))).joints[0].drive.friction
    assert friction.viscous_motor_nm_s_per_rad == 2.442216044362131e-06
    assert friction.coulomb_joint_nm == 0.12178221871634241


def test_a_robot_file_from_a_urdf(unpack: Unpack, armature: Armature) -> None:
    now = armature("robot", "show", unpack("from_urdf.toml"))
    assert (now["is_driven"], now["rank"]) == (False, 36)
    assert now["joints"][3]["mass_kg"] == 0.129


def test_what_a_crash_left_behind(unpack: Unpack, armature: Armature) -> None:
    journal = unpack("crash/crashed.h5.journal")
    unpack("crash/spool-20261117T072429-6138d9fb.ring")
    (done,) = armature("recover", journal.parent, "--runtime", journal.parent)["journals"]
    assert (done["samples"], done["fetched"], done["missing"]) == (1240, 300, 0)
    with open_recording(journal.with_suffix("")) as recording:
        assert recording["seq"][:].tolist() == list(range(1240))


def test_keys(unpack: Unpack) -> None:
    keys = load_keys(unpack("keys/robot.key").parent)
    assert (keys.name, len(keys.public_key)) == ("robot", 40)
