"""`armature identify`: what it prints and writes, and how it refuses what it cannot use."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import msgspec
import numpy as np
import pinocchio as pin
import pytest
from acceptance import only
from commands import armature
from identification_examples import fourier_motion
from identification_report_example import make_example
from identify_recordings import ARM_TEXT, MARK, made_recording, text_without_links, two_joints_text
from recording_maker import make_recording

import tools.identify.verb
from daq.recording import open_recording
from daq.robot import Inertia, load_robot, parse_robot, robot_text
from daq.robot.editing.edit import with_links
from estimation.identification.estimators import annealing
from estimation.identification.estimators.methods import METHODS
from estimation.identification.pipeline import IdentificationOutcome
from estimation.identification.request import DEFAULT_METHODS
from estimation.identification.result import Identification
from estimation.model.parameters import choose_parameters
from estimation.model.regressor import Regressor
from tools.identify import files
from tools.identify.table import show
from tools.running.mock_options import true_robot

pytestmark = pytest.mark.chain

METHOD_KEYS = {
    *("name", "identification_percent", "validation_percent"),
    *("identification_percent_per_joint", "validation_percent_per_joint"),
    *("consistent", "min_pseudo_inertia_eigenvalue", "inertia_matrix_positive", "seconds"),
    *("base_parameters_in_interval", "pseudo_inertia_eigenvalues"),
}
QUICK = ("--method", "cad", "uls", "cls2")
QUICKEST = ("--method", "uls")


class Arm(NamedTuple):
    """Recordings of one arm."""

    known: Path
    unknown: Path


class Full(NamedTuple):
    """Everything that one identification leaves."""

    facts: dict[str, Any]
    directory: Path


MakeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def arm(made_once: MakeOnce) -> Arm:
    def fill(directory: Path) -> None:
        for seed, name in enumerate(("known", "unknown")):
            made_recording(directory / f"{name}.h5", seed=seed)

    directory = made_once("arm", fill)
    return Arm(directory / "known.h5", directory / "unknown.h5")


@pytest.fixture(scope="session")
def driven(made_once: MakeOnce) -> Path:
    """A recording of the mock playing a trajectory: with references and gains."""

    def fill(directory: Path) -> None:
        trajectory = directory / "e.h5"
        excite = ("excite", "--robot", "laas4", "--duration", "7", "--f0", "0.15")
        assert armature(*excite, "--evaluations", "300", "--out", trajectory).exit_code == 0
        mock = ("--link", "mock", "--fast", "--seed", "3", "--play", trajectory)
        result = armature("run", "--robot", "laas4", *mock, "--record", directory / "driven.h5")
        assert result.exit_code == 0, result.err

    return made_once("driven", fill) / "driven.h5"


@pytest.fixture(scope="session")
def full(arm: Arm, made_once: MakeOnce) -> Full:
    def fill(directory: Path) -> None:
        out = directory / "deep" / "result"
        result = armature("identify", arm.known, "--validate", arm.unknown, "--out", out, "--json")
        assert result.exit_code == 0, result.err
        (directory / "said.json").write_text(result.out)

    directory = made_once("identified", fill)
    return Full(json.loads((directory / "said.json").read_text()), directory / "deep" / "result")


def identified(*words: str | Path) -> dict[str, Any]:
    outcome = armature("identify", *words, "--json")
    assert (outcome.exit_code, outcome.err) == (0, "")
    facts: dict[str, Any] = outcome.json
    return facts


# --- what it says ---------------------------------------------------------------------------------


def test_json(full: Full) -> None:
    facts = full.facts
    assert (facts["robot"], facts["rank"], facts["parameter_count"]) == ("laas4", 32, 52)
    assert 1.0 < facts["condition_scaled"] < facts["condition"]
    assert 0.0 < facts["floor_percent"] < 1.0
    assert [method["name"] for method in facts["methods"]] == list(DEFAULT_METHODS)
    for method in facts["methods"]:
        assert method.keys() >= METHOD_KEYS
        assert method["identification_percent"] >= facts["floor_percent"] * (1.0 - 1e-9)
        assert len(method["identification_percent_per_joint"]) == 4
        assert len(method["validation_percent_per_joint"]) == 4
        assert len(method["validation"]["raw_per_joint"]) == 4
        least = method["pseudo_inertia_eigenvalues"]
        assert (len(least), min(least)) == (4, method["min_pseudo_inertia_eigenvalue"])
        assert 0.0 <= method["base_parameters_in_interval"] <= 1.0
        assert method["seconds"] >= 0.0
    by_name = {method["name"]: method for method in facts["methods"]}
    cls2 = by_name["cls2"]
    assert facts["chosen"] == "cls2"
    assert cls2["identification_percent"] < 1.02 * facts["floor_percent"]
    assert cls2["validation_percent"] < by_name["cad"]["validation_percent"] / 3.0
    assert cls2["consistent"]
    assert cls2["inertia_matrix_positive"]
    assert cls2["min_pseudo_inertia_eigenvalue"] > 0.0
    assert cls2["base_parameters_in_interval"] >= 0.8
    assert facts["verdict"]["is_usable"]
    assert facts["is_mock"]
    assert len(facts["base_parameters"]) == 32
    assert len(facts["parameters"]) == 52
    assert len(facts["simulation"]["closed_loop_position_rms_rad"]) == 4
    assert [part["file"] for part in facts["recordings"]] == ["known.h5"]
    assert [part["file"] for part in facts["validation_recordings"]] == ["unknown.h5"]


def test_one_seed_one_result(arm: Arm, full: Full) -> None:
    again = identified(arm.known, "--validate", arm.unknown, "--method", "uls", "cls2")
    known = {method["name"]: method for method in full.facts["methods"]}
    for method in again["methods"]:
        assert method["base"] == pytest.approx(known[method["name"]]["base"], rel=1e-9)
    assert again["base_parameters"] == full.facts["base_parameters"]
    assert again["files"] == []


def test_without_validation_and_without_a_mock(tmp_path: Path) -> None:
    real = made_recording(tmp_path / "real.h5", link="spi")
    facts = identified(real, *QUICKEST)
    assert not facts["is_mock"]
    for method in facts["methods"]:
        assert method["validation_percent"] is None
        assert method["validation_percent_per_joint"] is None
        assert method["base_parameters_in_interval"] is None
    assert "--validate" in facts["verdict"]["scope"]
    assert {row["true"] for row in facts["base_parameters"]} == {None}


def test_recordings_of_two_mocks_or_of_a_broken_mark_have_no_truth(
    arm: Arm, tmp_path: Path
) -> None:
    other = made_recording(tmp_path / "other.h5", link="mock?seed=4&spread=0.25")
    assert not identified(arm.known, "--validate", other, *QUICKEST)["is_mock"]
    broken = made_recording(tmp_path / "r.h5", link=MARK.replace("0.25", "0.2.5"))
    assert not identified(broken, *QUICKEST)["is_mock"]


def test_all_methods(driven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealing, "STEPS", 1500)
    facts = identified(driven, "--method", "all", "--starts", "2")
    assert [method["name"] for method in facts["methods"]] == list(METHODS)
    assert facts["failed"] == []
    for method in facts["methods"]:
        if method["name"] not in {"cad", "sa"}:  # so soon, annealing is not near yet
            assert method["identification_percent"] < 1.5 * facts["floor_percent"]


@pytest.mark.parametrize(
    ("terms", "found", "count"),
    [
        (
            "offset,viscous,coulomb,drive_inertia",
            ["viscous", "coulomb", "drive_inertia", "offset"],
            56,
        ),
        ("viscous coulomb", ["viscous", "coulomb"], 48),
        ("asymmetric", ["offset", "asymmetric"], 48),
        ("", [], 40),
    ],
)
def test_terms(arm: Arm, terms: str, found: list[str], count: int) -> None:
    facts = identified(arm.known, "--terms", terms, *QUICKEST)
    assert (facts["terms"], facts["parameter_count"]) == (found, count)


def test_a_part_is_validated_by_the_rest(arm: Arm) -> None:
    facts = identified(arm.known, "--rows", "0:0.7", "--split", *QUICKEST)
    whole = identified(arm.known, *QUICKEST)
    (used,), (held_out,) = facts["recordings"], facts["validation_recordings"]
    assert used["file"] == held_out["file"] == "known.h5"
    total = whole["recordings"][0]["rows_used"]
    assert used["rows_used"] == pytest.approx(0.7 * total, abs=1)
    assert used["rows_used"] + held_out["rows_used"] == total
    (uls,) = facts["methods"]
    assert uls["identification_percent"] != whole["methods"][0]["identification_percent"]
    assert 0.0 < uls["validation_percent"] < 5.0


def test_preparation(arm: Arm) -> None:
    words = ("--cutoff", "8", "--velocity", "measured", "--filter", "fft", "--slow", "0")
    facts = identified(arm.known, *words, *QUICKEST)
    assert (facts["cutoff_hz"], facts["moving_rows_percent"]) == (8.0, 100.0)


def test_for_people(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    outcome = armature("identify", arm.known, "--validate", arm.unknown, *QUICK)
    assert (outcome.exit_code, outcome.err) == (0, "")
    for words in (
        "32 of 52 parameters are identifiable",
        "lost, no torque depends on them: m1, mcx1, mcy1",
        "combinations: `armature robot show` lists them",
        "Identification of laas4",
        "cls2 ←",
        "consistent: uls determines combinations of parameters only",
        "(validation)",
        "truth",
        "note: low-pass at",
        "Usable: cls2 leaves ",
        "It holds for speeds",
    ):
        assert words in outcome.out


def test_several_recordings_tell_more_than_one(arm: Arm) -> None:
    pairs = ((arm.known,), (arm.known, arm.unknown))
    one, both = (identified(*paths, *QUICKEST) for paths in pairs)
    sigma = [np.array([row["sigma"] for row in facts["base_parameters"]]) for facts in (one, both)]
    assert np.median(sigma[1] / sigma[0]) < 0.9


# --- what it writes -------------------------------------------------------------------------------


def test_files(full: Full) -> None:
    names = {
        *("report.html", "figures.pdf", "result.json", "parameters.csv", "base_parameters.csv"),
        *("laas4.toml", "laas4.urdf"),
    }
    assert {path.name for path in full.directory.iterdir()} == names
    assert {Path(path) for path in full.facts["files"]} == {full.directory / n for n in names}
    assert Path(full.facts["files"][0]).name == "report.html"
    assert (full.directory / "figures.pdf").read_bytes().startswith(b"%PDF")
    assert "laas4" in (full.directory / "report.html").read_text()


def test_the_result_file_is_what_was_printed(full: Full) -> None:
    said = dict(full.facts)
    said.pop("files")
    assert json.loads((full.directory / "result.json").read_text()) == said


def test_tables(full: Full) -> None:
    for name in ("base_parameters", "parameters"):
        with (full.directory / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        facts = full.facts[name]
        assert [row["symbol"] for row in rows] == [row["symbol"] for row in facts]
        for row, fact in zip(rows, facts, strict=True):
            assert float(row["value"]) == fact["value"]
            assert row["sigma"] == ("" if fact["sigma"] is None else repr(fact["sigma"]))


def test_numbers_that_json_lacks_are_null() -> None:
    result, _ = make_example(1, methods=("uls",))
    assert math.isinf(result.methods[0].inertia_matrix_condition[1])
    assert files.facts_of(result)["methods"][0]["inertia_matrix_condition"] == [None, None]


def chosen_theta(full: Full) -> np.ndarray:
    rows = {method["name"]: method for method in full.facts["methods"]}
    return np.array(rows[full.facts["chosen"]]["theta"])


def test_the_robot_file_is_read_again(full: Full) -> None:
    outcome = armature("robot", "show", full.directory / "laas4.toml", "--json")
    assert outcome.exit_code == 0, outcome.err
    text = (full.directory / "laas4.toml").read_text()
    assert re.findall("#.*", text) == re.findall("#.*", ARM_TEXT)
    robot = parse_robot(text, "identified")
    theta = chosen_theta(full)
    for joint, mass_kg in zip(robot.joints, theta[:40:10], strict=True):
        assert joint.link is not None
        assert joint.bounds is not None
        assert joint.link.mass_kg == pytest.approx(mass_kg, rel=1e-9)
        assert joint.bounds.mass_min_kg <= joint.link.mass_kg <= joint.bounds.mass_max_kg


def test_pinocchio_reads_the_urdf_and_finds_the_same_torques(full: Full) -> None:
    model = pin.buildModelFromXML((full.directory / "laas4.urdf").read_text())
    robot = load_robot("laas4")
    model.gravity.linear = np.array(robot.gravity_m_s2)
    data = model.createData()
    regressor = Regressor(robot, choose_parameters(robot, ()))
    generator = np.random.default_rng(0)
    q, dq, ddq = generator.uniform(-2.0, 2.0, (3, 50, 4))
    expected = regressor(q, dq, ddq) @ chosen_theta(full)[:40]
    found = np.array([pin.rnea(model, data, *row) for row in zip(q, dq, ddq, strict=True)])
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_without_report_methods_in_their_order_and_bounds_that_agree(
    arm: Arm, tmp_path: Path
) -> None:
    """Into a directory that is there but empty."""
    methods = ("--method", "cls2,uls", "uls", "--method", "cad,cls2", "uls")
    facts = identified(arm.known, "--out", tmp_path, "--no-report", "--relax", *methods)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"result.json", "laas4.urdf"} <= names
    assert not {"report.html", "figures.pdf"} & names
    assert facts["simulation"] is None
    assert [method["name"] for method in facts["methods"]] == ["cad", "uls", "cls2"]
    assert "relaxed-bounds" not in facts["verdict"]["codes"]


def test_base_parameters_alone_make_no_robot(arm: Arm, tmp_path: Path) -> None:
    out = tmp_path / "result"
    words = ("--method", "uls", "--no-report", "--out", out)
    outcome = armature("identify", arm.known, *words)
    assert outcome.exit_code == 0
    (line,) = (line for line in outcome.err.splitlines() if line.startswith("armature: "))
    assert "uls " in line and "--method cls2" in line
    assert "consistent:" not in outcome.out  # no other kind of method is beside it
    assert {path.name for path in out.iterdir()} == {"result.json", "base_parameters.csv"}


def test_links_that_cannot_exist_make_no_robot(arm: Arm, tmp_path: Path) -> None:
    words = ("--method", "cls1", "--no-report", "--out", tmp_path / "result")
    outcome = armature("identify", arm.known, *words)
    assert outcome.exit_code == 0
    (line,) = (line for line in outcome.err.splitlines() if line.startswith("armature: "))
    assert "cls1 " in line and "--method cls2" in line
    assert not (tmp_path / "result" / "laas4.urdf").exists()


def test_the_urdf_says_what_it_lacks(full: Full) -> None:
    text = (full.directory / "laas4.urdf").read_text()
    head = text[: text.index("<robot")]
    rows = {row["symbol"]: row["value"] for row in full.facts["parameters"]}
    for joint in range(1, 5):
        assert f"joint{joint}: drive inertia {rows[f'Ia{joint}']:.6g} kg m2" in head
    assert "laas4.toml, has all of them" in head


def without_pictures(_outcome: IdentificationOutcome) -> dict[str, bytes]:
    """In place of figures and page, which take seconds."""
    return {"figures.pdf": b"%PDF" + bytes(200_000), "report.html": b"<!DOCTYPE html>"}


def test_without_matplotlib_there_is_a_page_of_numbers(
    arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda _name: None)
    outcome = armature("identify", arm.known, *QUICKEST, "--out", tmp_path, "--json")
    assert outcome.exit_code == 0
    assert "'.[report]'" in outcome.err
    assert "<svg" not in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "figures.pdf").exists()


def test_an_arm_without_drives_has_no_loop_to_repeat(
    arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_pictures", without_pictures)
    robot, out = tmp_path / "bare.toml", tmp_path / "result"
    robot.write_text(text_without_links())
    words = ("--method", "uls", "iv", "cls2", "--out", out)
    facts = identified(arm.known, "--robot", robot, *words)
    (failed,) = facts["failed"]
    assert (failed["name"], failed["code"]) == ("iv", "no-drives")
    assert "joint1, joint2" in failed["reason"]
    simulation = facts["simulation"]
    assert simulation["closed_loop_position_rms_rad"] is None
    assert len(simulation["open_loop_position_rms_rad"]) == 4
    assert "joint1" in simulation["notes"][0]


# --- bounds that contradict each other ------------------------------------------------------------


def test_bounds_that_contradict_each_other_are_named_and_give_way(arm: Arm, tmp_path: Path) -> None:
    robot = tmp_path / "tight.toml"
    robot.write_text(text_without_links(total_mass_max_kg=0.3))
    words = (arm.known, "--robot", robot, "--method", "uls", "cls2", "--no-report")

    outcome = armature("identify", *words, "--out", tmp_path / "a")

    assert (outcome.exit_code, outcome.out) == (1, "")
    for part in ("total mass ≤ 0.3 kg, by 0.295 kg", "--relax", "[contradicting-bounds]"):
        assert part in outcome.err
    assert not (tmp_path / "a").exists()

    outcome = armature("identify", *words, "--relax", "--json", "--out", tmp_path / "b")

    assert outcome.exit_code == 0
    facts = outcome.json
    assert "relaxed-bounds" in facts["verdict"]["codes"]
    (note,) = (note for note in facts["preparation"] if "total mass" in note)
    assert re.search(r"total mass ≤ 0\.3 kg, .*0\.294\d kg", note)
    cls2 = next(method for method in facts["methods"] if method["name"] == "cls2")
    assert cls2["consistent"]
    # The robot file does not say what its own bounds forbid.
    assert "total_mass_max_kg" in outcome.err
    assert not (tmp_path / "b" / "laas4.toml").exists()


# --- payload --------------------------------------------------------------------------------------

PAYLOAD_KG, PAYLOAD_M, RADIUS_M = 0.3, (0.01, 0.08, -0.01), 0.03


def loaded_text() -> str:
    """The arm with a ball at its last link; it hangs as before, so that homing finds its zero."""
    text = ARM_TEXT.replace("mass_max_kg = 0.3225", "mass_max_kg = 0.9")
    link = parse_robot(text, "arm").joints[3].link
    assert link is not None
    m, (x, y, z) = PAYLOAD_KG, PAYLOAD_M
    ball, old = 0.4 * m * RADIUS_M**2, link.inertia_kg_m2
    inertia = Inertia(
        xx=old.xx + ball + m * (y * y + z * z),
        yy=old.yy + ball + m * (x * x + z * z),
        zz=old.zz + ball + m * (x * x + y * y),
        xy=old.xy - m * x * y,
        xz=old.xz - m * x * z,
        yz=old.yz - m * y * z,
    )
    moment = tuple(a + m * b for a, b in zip(link.first_moment_kg_m, PAYLOAD_M, strict=True))
    heavy = type(link)(
        mass_kg=link.mass_kg + m,
        first_moment_kg_m=moment,
        inertia_kg_m2=inertia,
        capsule_radius_m=link.capsule_radius_m,
        tip_m=link.tip_m,
    )
    return with_links(text, {"joint4": heavy}, {})


@only
def test_a_payload_on_the_mock_is_weighed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectory = tmp_path / "e.h5"
    excite = ("excite", "--robot", "laas4", "--duration", "7", "--f0", "0.15")
    assert armature(*excite, "--evaluations", "300", "--out", trajectory).exit_code == 0
    (tmp_path / "loaded.toml").write_text(loaded_text())
    mock = ("--link", "mock", "--fast", "--seed", "3", "--spread", "0", "--play", trajectory)
    for name, robot in (("bare", "laas4"), ("loaded", tmp_path / "loaded.toml")):
        outcome = armature("run", "--robot", robot, *mock, "--record", tmp_path / f"{name}.h5")
        assert outcome.exit_code == 0, outcome.err
    with open_recording(tmp_path / "bare.h5") as recording:
        assert recording.attributes["link"] == "mock?seed=3&spread=0.0"
        assert true_robot("mock?seed=3&spread=0.0", recording.robot) == load_robot("laas4")

    words = (tmp_path / "bare.h5", "--payload", tmp_path / "loaded.h5", *QUICK)
    facts = identified(*words)
    payload = facts["payload"]

    assert payload["mass_kg"]["low"] <= PAYLOAD_KG <= payload["mass_kg"]["high"]
    assert payload["mass_kg"]["value"] == pytest.approx(PAYLOAD_KG, rel=0.01)
    for part, true in zip(payload["centre_m"], PAYLOAD_M, strict=True):
        assert part["value"] == pytest.approx(true, abs=2e-3)
    assert payload["misfit"] < 3.0
    assert payload["notes"] == []
    result = msgspec.convert(facts, Identification, strict=False)
    assert result.payload is not None
    show(result)
    assert re.search(r"payload: 0\.(30|29)\d+ kg \(0", capsys.readouterr().out)


# --- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "exit_code", "named"),
    [
        (("--method", "magic"), 2, "  --method magic: "),
        (("--method", ","), 2, "  --method: "),
        (("--terms", "magic"), 1, "'magic'"),
        (("--rows", "x"), 2, "  --rows x: "),
        (("--rows", "0.6"), 2, "  --rows 0.6: "),
        (("--rows", "0.6:0.2"), 2, "  --rows 0.6:0.2: "),
        (("--rows=-0.1:0.5",), 2, "  --rows -0.1:0.5: "),
        (("--rows", "0:1.5"), 2, "  --rows 0:1.5: "),
        (("--rows", "nan:1"), 2, "  --rows nan:1: "),
        (("--rows", "0:0.01"), 1, "[no-rows]"),
        (("--split",), 2, "  --split: "),
        (("--cutoff=-3",), 2, "  --cutoff -3: "),
        (("--cutoff", "nan"), 2, "  --cutoff nan: "),
        (("--cutoff", "0"), 1, " 0 Hz"),
        (("--cutoff", "600"), 1, " 600 Hz"),
        (("--cutoff", "x"), 2, "argument --cutoff: "),
        (("--slow=-1",), 2, "  --slow -1: "),
        (("--slow", "100"), 1, "[no-rows]"),
        (("--seed=-1",), 2, "  --seed -1: "),
        (("--starts", "0"), 2, "  --starts 0: "),
        (("--velocity", "x"), 2, "argument --velocity: "),
        (("--filter", "x"), 2, "argument --filter: "),
        (("--robot", "nosuch"), 2, "nosuch"),
        (("--robot", "bench1"), 1, "[other-joints]"),
        (("--validate", "nosuch.h5"), 1, "nosuch.h5: "),
        (("--payload", "nosuch.h5"), 1, "nosuch.h5: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_make_no_sense(
    arm: Arm, tmp_path: Path, words: tuple[str, ...], exit_code: int, named: str
) -> None:
    outcome = armature("identify", arm.known, *words, "--out", tmp_path / "out")
    assert (outcome.exit_code, outcome.out) == (exit_code, "")
    assert named in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "out").exists()


def test_all_that_is_wrong_is_said_at_once(arm: Arm) -> None:
    words = ("--method", "a", "b", "--rows", "x", "--cutoff=-1", "--slow=-1", "--starts", "0")
    outcome = armature("identify", arm.known, *words)
    assert outcome.exit_code == 2
    problems = [line for line in outcome.err.splitlines() if line.startswith("  --")]
    assert len(problems) == 6


def test_names_that_are_not_utf8(arm: Arm, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.h5"))
    shutil.copy(arm.known, odd)
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/out\xff"))
    outcome = armature("identify", odd, *QUICKEST, "--no-report", "--json", "--out", out)
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["recordings"][0]["file"] == "r\\udcff.h5"
    assert (out / "result.json").is_file()


def test_of_two_that_write_to_one_place_the_second_is_refused(
    arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    words = ("identify", arm.known, "--no-report", "--out", out)
    assert armature(*words, *QUICKEST).exit_code == 0
    kept = (out / "result.json").read_bytes()
    # As if the first had finished after the second had looked.
    monkeypatch.setattr(tools.identify.verb, "_check_out", lambda _path: None)
    outcome = armature(*words, "--method", "uls", "wls")
    assert outcome.exit_code == 1
    assert str(out / "result.json") in outcome.err
    assert os.strerror(errno.EEXIST) in outcome.err
    assert (out / "result.json").read_bytes() == kept


def test_a_full_disk_leaves_whole_files_only(
    arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_pictures", without_pictures)
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        outcome = armature("identify", arm.known, *QUICKEST, "--out", out, "--json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert outcome.exit_code == 1
    assert os.strerror(errno.EFBIG) in outcome.err
    found = {path.name for path in out.iterdir()}
    assert "result.json" in found and "report.html" not in found
    assert {Path(name).name for name in outcome.json["files"]} == found
    json.loads((out / "result.json").read_text())


def test_who_reads_the_table_and_leaves_does_not_lose_the_files(
    arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug: `armature identify … | head` wrote nothing, and was content."""
    monkeypatch.setattr(files, "_pictures", without_pictures)
    monkeypatch.setattr("tools.identify.table.show", Mock(side_effect=SystemExit(1)))
    armature("identify", arm.known, *QUICKEST, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["methods"]


def test_a_copy_under_another_name_is_noticed(arm: Arm, tmp_path: Path) -> None:
    copy = tmp_path / "copy.h5"
    shutil.copy(arm.known, copy)
    for words in ((arm.known, copy), (arm.known, "--validate", copy)):
        outcome = armature("identify", *words)
        assert (outcome.exit_code, outcome.out) == (1, "")
        assert all(word in outcome.err for word in (f"{copy}: ", str(arm.known), "[same-samples]"))


def test_one_recording_for_two_purposes(arm: Arm, tmp_path: Path) -> None:
    link = tmp_path / "link.h5"
    link.symlink_to(arm.known)
    for words, named in (
        ((arm.known, "--validate", link), f"  --validate {link}: "),
        ((arm.known, "--payload", arm.known), f"  --payload {arm.known}: "),
        ((arm.known, arm.unknown, link), f"  {link}: "),
        ((arm.known, "--rows", "0:0.5", "--split", "--validate", arm.unknown), "  --split: "),
    ):
        outcome = armature("identify", *words)
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert named in outcome.err


def test_nothing_is_overwritten(arm: Arm, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "mine.txt"):
        outcome = armature("identify", arm.known, "--out", out)
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert "armature: --out: " in outcome.err
        assert f"  {out}: " in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def write_trajectory(path: Path) -> None:
    words = ("excite", "--robot", "laas4", "--evaluations", "1", "--out", path)
    assert armature(*words).exit_code == 0


def write_bench(path: Path) -> None:
    angles = np.zeros((3000, 1))
    make_recording(path, {"joint_position_rad": angles}, text=robot_text("bench1"))


def write_still(path: Path) -> None:
    made_recording(path, motion=fourier_motion(0, 3.0, rate_hz=1000.0, moving=()))


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "missing": lambda _path: None,
    "text": lambda path: path.write_text("no recording"),
    "directory": Path.mkdir,
    "trajectory": write_trajectory,
    "bench": write_bench,
    "still": write_still,
    "short": lambda path: made_recording(path, duration_s=0.25),
    "shorter": lambda path: made_recording(path, duration_s=0.1),
    "other": lambda path: made_recording(path, text=two_joints_text()),
}


def unusable(directory: Path, kind: str) -> Path:
    """A file of some kind that nothing can be identified from."""
    path = directory / f"{kind}.h5"
    UNUSABLE[kind](path)
    return path


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("missing", ("missing.h5: ", os.strerror(errno.ENOENT))),
        ("text", ("text.h5: ",)),
        ("directory", ("directory.h5: ",)),
        ("trajectory", ("trajectory.h5: ",)),
        ("bench", ("bench1", "`armature bench analyse`")),
        ("still", ("[not-excited]",)),
        ("short", ("short.h5: ", "[too-short]")),
        ("shorter", ("shorter.h5: ", "[no-usable-rows]")),
    ],
)
def test_recordings_that_cannot_be_used(tmp_path: Path, kind: str, named: tuple[str, ...]) -> None:
    outcome = armature("identify", unusable(tmp_path, kind), "--out", tmp_path / "out")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert all(word in outcome.err for word in named)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "kind", "code"),
    [
        ((), "other", "[different-robots]"),
        (("--validate",), "short", "[no-rows]"),
        (("--payload",), "short", "[no-rows]"),
    ],
)
def test_recordings_that_do_not_go_together(
    arm: Arm, tmp_path: Path, place: tuple[str, ...], kind: str, code: str
) -> None:
    other = unusable(tmp_path, kind)
    outcome = armature("identify", arm.known, *place, other, *QUICKEST, "--out", tmp_path / "out")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert code in outcome.err
    assert not (tmp_path / "out").exists()
