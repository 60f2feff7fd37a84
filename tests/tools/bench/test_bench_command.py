"""The verb itself: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench_command import QUICK, friction, without_matplotlib
from commands import armature

from daq.recording import open_recording
from daq.robot import load_robot
from estimation.bench.result_file import read_result

pytestmark = pytest.mark.chain

SHORT = (*QUICK, "--speeds", "3")
QUANTITIES = ("b_eq_nms", "f_nm", "b_joint_nms", "f_motor_nm", "breakaway_nm", "inertia_kg_m2")


@pytest.fixture(scope="module")
def measured(made_once: Callable[..., Path]) -> Path:
    def fill(directory: Path) -> None:
        outcome = friction(directory, *SHORT, draws=True)
        assert outcome.exit_code == 0, outcome.err

    return made_once("bench", fill)


@pytest.fixture
def no_figures() -> Iterator[None]:
    """A computer without Matplotlib."""
    with without_matplotlib():
        yield


def test_everything_is_written_where_it_was_asked_for(measured: Path) -> None:
    suffixes = {path.suffix for path in measured.glob("joint3.*")}
    assert suffixes == {".h5", ".json", ".png", ".pdf", ".html", ".toml"}
    assert len(list(measured.iterdir())) == len(suffixes)
    assert (measured / "joint3.pdf").read_bytes().startswith(b"%PDF")
    assert (measured / "joint3.png").read_bytes().startswith(b"\x89PNG")
    assert load_robot(str(measured / "joint3.toml")).joints[0].is_on_bench


def test_the_file_alone_gives_the_same_result(measured: Path, tmp_path: Path) -> None:
    elsewhere = shutil.copy(measured / "joint3.h5", tmp_path / "joint3.h5")
    again = armature("bench", "analyse", elsewhere, "--json")
    assert again.exit_code == 0, again.err
    assert again.json == json.loads((measured / "joint3.json").read_bytes())
    assert list(tmp_path.iterdir()) == [tmp_path / "joint3.h5"]


def test_the_result_has_the_promised_shape(measured: Path) -> None:
    result = json.loads((measured / "joint3.json").read_bytes())
    assert result["joint"] == "joint3"
    assert result["model"] in {model["name"] for model in result["models"]}
    for name in QUANTITIES:
        quantity = result[name]
        assert quantity.keys() == {"value", "low", "high", "truth"}
        assert quantity["low"] < quantity["value"] < quantity["high"]
        assert quantity["truth"] is not None
    assert result["f_nm"]["truth"] == 0.122
    assert result["plateaus_used"] + result["plateaus_rejected"] == len(result["plateaus"]) == 6
    assert read_result(measured / "joint3.json").joint == "joint3"


def test_energy_voltage_and_temperature_stand_beside_each_plateau(measured: Path) -> None:
    result = json.loads((measured / "joint3.json").read_bytes())
    for plateau in result["plateaus"]:
        duration_s = plateau["window_s"][1] - plateau["window_s"][0]
        assert plateau["energy_j"] == pytest.approx(plateau["input_power_w"] * duration_s)
        assert plateau["bus_voltage_v"] == pytest.approx(24.0, abs=0.1)
        assert plateau["winding_temperature_degc"] == pytest.approx(25.0, abs=1.0)
    with open_recording(measured / "joint3.h5") as recording:
        fastest = max(result["plateaus"], key=lambda plateau: plateau["input_power_w"])
        inside = (recording.t_s >= fastest["window_s"][0]) & (
            recording.t_s <= fastest["window_s"][1]
        )
        power_w = recording["input_power_w"][:, 0][inside]
        assert fastest["input_power_w"] == pytest.approx(power_w.mean())


def test_the_table_of_all_joints(measured: Path, tmp_path: Path) -> None:
    rows = armature("bench", "table", measured, "--json").json["joints"]
    assert [row["joint"] for row in rows] == ["joint3"]
    target = tmp_path / "mine.toml"
    words = ("--robot", "laas4", "--apply", "--to", target)
    applied = armature("bench", "table", measured, *words)
    assert applied.exit_code == 0, applied.err
    robot = load_robot(str(target))
    found = json.loads((measured / "joint3.json").read_bytes())
    friction_now = robot.joints[2].drive.friction
    assert friction_now.coulomb_joint_nm == found["f_nm"]["value"]
    assert friction_now.viscous_motor_nm_s_per_rad == found["b_eq_nms"]["value"]
    assert "mock" in applied.err


def test_the_same_seed_gives_the_same_result(measured: Path, tmp_path: Path) -> None:
    outcome = friction(tmp_path, *SHORT)
    assert outcome.json == json.loads((measured / "joint3.json").read_bytes())
    assert {path.suffix for path in tmp_path.iterdir()} == {".h5", ".json", ".toml"}
    assert "Matplotlib" in outcome.err


def test_nothing_is_overwritten(measured: Path) -> None:
    before = (measured / "joint3.h5").read_bytes()
    outcome = friction(measured, *SHORT)
    assert outcome.exit_code == 2
    assert f"{measured / 'joint3.h5'} " in outcome.err
    assert (measured / "joint3.h5").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--joint", "joint9"), "joint9: "),
        (("--speed-max", "7"), "4.5 rad/s"),
        (("--speed-min", "3", "--speed-max", "2"), "--speed-max 2"),
        (("--speeds", "1"), "--speeds 1:"),
        (("--dwell", "0"), "--dwell 0:"),
        (("--dwell", "nan"), "--dwell nan:"),
        (("--repetitions", "99"), "--repetitions 99:"),
        (("--load-arm", "-1", "0.2"), "--load-arm:"),
        (("--load-arm", "15", "0.4"), "7.2 A"),
        (("--speeds", "2", "--repetitions", "1"), "4 plateaus"),
        (("--speed-min", "1e-300"), "120 s"),
        (("--command-timeout-ms", "0"), "--command-timeout-ms 0:"),
        (("--seed", "-1"), "--seed -1:"),
        (("--effects", "magic"), "'magic'"),
        (("--fault", "magic"), "magic"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    outcome = friction(tmp_path / "out", *words)
    assert outcome.exit_code == 2
    assert text in outcome.err
    assert not list(tmp_path.glob("out/*.h5"))


def test_a_real_motor_needs_leave(tmp_path: Path) -> None:
    where = ("--robot", "laas4", "--joint", "joint1", "--link", "spi", "--out", tmp_path)
    outcome = armature("bench", "friction", *where)
    assert outcome.exit_code == 2
    assert "--arm:" in outcome.err
    outcome = armature("bench", "friction", *where, "--fast")
    assert "--fast:" in outcome.err


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = friction(tmp_path / "file" / "out", *SHORT)
    assert outcome.exit_code == 2
    assert f"--out {tmp_path / 'file' / 'out'}" in outcome.err


def test_what_is_no_bench_recording_is_refused(tmp_path: Path) -> None:
    recording = tmp_path / "run.h5"
    words = ("--robot", "bench1", "--link", "mock", "--fast", "--duration", "1")
    assert armature("run", *words, "--record", recording).exit_code == 0
    outcome = armature("bench", "analyse", recording)
    assert outcome.exit_code == 1
    assert "[not-a-bench-test]" in outcome.err
    for path, text in ((tmp_path / "none.h5", "[unreadable]"), (Path(__file__), "[not-hdf5]")):
        outcome = armature("bench", "analyse", path)
        assert outcome.exit_code == 1
        assert text in outcome.err


@pytest.mark.parametrize("suffix", [".toml", ".json", ".html", ".pdf"])
def test_no_file_of_another_is_replaced(tmp_path: Path, suffix: str) -> None:
    mine = tmp_path / f"joint3{suffix}"
    mine.write_text("mine")
    outcome = friction(tmp_path, *SHORT)
    assert outcome.exit_code == 2
    assert f"{mine} " in outcome.err
    assert mine.read_text() == "mine"


@pytest.mark.usefixtures("no_figures")
def test_analysing_again_replaces_only_its_own_results(measured: Path, tmp_path: Path) -> None:
    words = ("bench", "analyse", measured / "joint3.h5", "--out", tmp_path)
    assert armature(*words).exit_code == 0
    assert armature(*words).exit_code == 0
    (tmp_path / "joint3.json").write_text("mine")
    outcome = armature(*words)
    assert outcome.exit_code == 1
    assert (tmp_path / "joint3.json").read_text() == "mine"
