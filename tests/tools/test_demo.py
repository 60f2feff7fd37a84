"""`armature demo`: everything once, and what it must have found."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from commands import armature

import tools.demo.verb
from tools.demo.checks import checks_of
from tools.demo.verb import Step

GOOD: dict[str, Any] = {
    "boards": {},
    "friction": {
        "f_nm": {"value": 0.121, "truth": 0.122},
        "b_eq_nms": {"value": 2.3e-6, "truth": 2.42e-6},
    },
    "excitation": {"condition": 20.0, "limits": [{"is_kept": True}, {"is_kept": True}]},
    "validation_excitation": {},
    "run": {"samples": 30_000, "missing": 0},
    "validation_run": {"samples": 31_000, "missing": 0},
    "identification": {
        "chosen": "cls2",
        "floor_percent": 0.5,
        "methods": [
            {"name": "cad", "validation_percent": 3.0},
            {
                "name": "cls2",
                "validation_percent": 0.6,
                "identification_percent": 0.505,
                "consistent": True,
                "base_parameters_in_interval": 0.94,
            },
        ],
    },
}


def doctored(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    facts = deepcopy(GOOD)
    place: Any = facts
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return facts


def test_good_facts_pass() -> None:
    checks = checks_of(GOOD)
    assert all(check.is_ok for check in checks)
    assert all(check.what and check.found and check.expected for check in checks)
    assert "61000, 0 missing" in [check.found for check in checks]
    assert checks[0].as_dict().keys() == {"what", "found", "expected", "is_ok"}


CHOSEN = ("identification", "methods", 1)


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        (("friction", "f_nm", "value"), 0.1250, "Coulomb friction on the bench"),
        (("friction", "f_nm", "value"), -0.122, "Coulomb friction on the bench"),
        (("friction", "f_nm"), None, "Coulomb friction on the bench"),
        (("friction", "b_eq_nms", "value"), 2.0e-6, "viscous friction on the bench"),
        (("friction", "b_eq_nms"), None, "viscous friction on the bench"),
        (("excitation", "condition"), 25.1, "condition of the excitation"),
        (("excitation", "limits", 1, "is_kept"), False, "its limits"),
        (("run", "missing"), 1, "samples recorded"),
        (("validation_run", "missing"), 1, "samples recorded"),
        ((*CHOSEN, "validation_percent"), 1.6, "torque error on validation (cls2)"),
        (("identification", "methods", 0, "validation_percent"), 1.7, "compared with CAD"),
        (("identification", "floor_percent"), 0.49, "compared with the floor"),
        ((*CHOSEN, "consistent"), False, "physically consistent"),
        (
            (*CHOSEN, "base_parameters_in_interval"),
            0.79,
            "true base parameters inside their intervals",
        ),
        (
            (*CHOSEN, "base_parameters_in_interval"),
            None,
            "true base parameters inside their intervals",
        ),
    ],
)
def test_each_check_can_fail(path: tuple[str | int, ...], value: object, what: str) -> None:
    failed = {check.what for check in checks_of(doctored(path, value)) if not check.is_ok}
    assert what in failed
    assert failed <= {what, "compared with CAD"}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for out in (tmp_path, tmp_path / "mine"):
        outcome = armature("demo", "--fast", "--out", out)
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert f"{out}: " in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_negative_seed_is_refused(tmp_path: Path) -> None:
    outcome = armature("demo", "--seed=-1", "--out", tmp_path / "demo")
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "--seed -1" in outcome.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.system
@pytest.mark.parametrize("is_json", [True, False])
def test_a_step_that_fails_ends_it_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_json: bool
) -> None:
    steps = [
        Step("show", "A robot", ("robot", "show", "bench1")),
        Step("broken", "No robot", ("robot", "show", "nosuch")),
        Step("never", "Never", ("robot", "show", "laas4")),
    ]
    monkeypatch.setattr(tools.demo.verb, "_steps", lambda *_words, **_options: steps)

    outcome = armature("demo", "--out", tmp_path / "demo", *(["--json"] if is_json else []))

    assert outcome.exit_code == 1
    assert "2/3 No robot\n    armature robot show nosuch" in outcome.err
    assert '"nosuch"' in outcome.err
    assert "Never" not in outcome.err
    if is_json:
        facts = outcome.json
        assert not facts["ok"]
        assert facts["checks"] == []
        assert [(s["name"], s["exit_code"]) for s in facts["steps"]] == [("show", 0), ("broken", 2)]
    else:
        assert outcome.out == ""


@pytest.mark.parametrize("is_json", [True, False])
def test_a_result_that_is_off_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_json: bool
) -> None:
    wrong = doctored(("excitation", "condition"), 25.1)
    monkeypatch.setattr(tools.demo.verb, "_run", lambda step: (0.1, 0, wrong[step.name]))
    outcome = armature("demo", "--out", tmp_path / "demo", *(["--json"] if is_json else []))
    assert outcome.exit_code == 1
    if is_json:
        assert not outcome.json["ok"]
        (off,) = [check for check in outcome.json["checks"] if not check["is_ok"]]
        assert off["found"] == "25.1"
    else:
        assert outcome.out.count("✗") == 1


def test_a_step_that_a_pause_has_ended_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def run(step: Step) -> tuple[float, int, dict[str, Any]]:
        tried.append(step.name)
        is_paused = step.name == "run" and tried.count("run") == 1
        return (0.1, 3, {"pause_ms": 120}) if is_paused else (0.1, 0, GOOD[step.name])

    monkeypatch.setattr(tools.demo.verb, "_run", run)
    outcome = armature("demo", "--out", tmp_path / "demo", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert tried.count("run") == 2
    assert "120 ms" in outcome.err


def test_a_fault_without_a_pause_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.demo.verb, "_run", lambda _step: (0.1, 3, {"pause_ms": 0}))
    outcome = armature("demo", "--out", tmp_path / "demo", "--json")
    assert outcome.exit_code == 1
    assert len(outcome.json["steps"]) == 1


@pytest.mark.parametrize("exit_code", [0, 1], ids=["off", "none at all"])
def test_a_result_of_a_busy_computer_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int
) -> None:
    bad = doctored(("identification", "methods", 1, "validation_percent"), 9.0)
    bad["run"]["skipped"] = 2000
    tried: list[str] = []

    def run(step: Step) -> tuple[float, int, dict[str, Any]]:
        tried.append(step.name)
        if tried.count("run") > 1:
            return 0.1, 0, GOOD[step.name]
        if exit_code and step.name == "identification":
            return 0.1, exit_code, {}
        return 0.1, 0, bad[step.name]

    monkeypatch.setattr(tools.demo.verb, "_run", run)
    outcome = armature("demo", "--out", tmp_path / "demo", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert (tried.count("run"), tried.count("excitation")) == (2, 1)


@pytest.mark.parametrize("is_measured", [True, False])
def test_a_computer_that_stays_busy_is_named_after_two_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_measured: bool
) -> None:
    """A robot that stops by itself is another matter."""
    busy = doctored(("run", "skipped"), 2000)
    fails = "identification" if is_measured else "validation_run"
    tried: list[str] = []

    def run(step: Step) -> tuple[float, int, dict[str, Any]]:
        tried.append(step.name)
        return 0.1, int(step.name == fails), {} if step.name == fails else busy[step.name]

    monkeypatch.setattr(tools.demo.verb, "_run", run)
    outcome = armature("demo", "--out", tmp_path / "demo", "--json")
    assert outcome.exit_code == 1
    assert tried.count("run") == 1 + is_measured
    assert ("try --fast" in outcome.err) is is_measured


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGTSTP])
def test_interrupted_it_takes_its_step_along(
    start: Callable[..., Any], tmp_path: Path, number: signal.Signals
) -> None:
    process = start("armature", "demo", "--fast", "--out", "demo", cwd=tmp_path)
    while "2/7" not in process.stderr.readline():
        pass
    process.stderr.readline()
    time.sleep(2.0)  # the bench test takes longer than that
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = armature("demo", "--out", tmp_path / "file" / "demo")
    assert outcome.exit_code == 2
    assert f"{tmp_path / 'file' / 'demo'}: " in outcome.err
    assert os.strerror(errno.ENOTDIR) in outcome.err


@pytest.mark.timeout(300)
def test_the_whole_demo(start: Callable[..., Any], tmp_path: Path) -> None:
    process = start("armature", "demo", "--fast", "--json", "--out", "demo", cwd=tmp_path)
    out, err = process.communicate(timeout=280)

    assert process.returncode == 0, err
    facts = json.loads(out)
    assert facts["ok"], facts["checks"]
    assert facts["is_fast"]
    assert len(facts["steps"]) == 7
    assert len(facts["checks"]) == 10
    assert all(check["is_ok"] for check in facts["checks"])
    assert "7/7 Dynamic parameters" in err
    directory = tmp_path / "demo"
    assert (tmp_path / facts["report"]).stat().st_size > 10_000
    assert {path.name for path in directory.iterdir()} == {
        *("bench", "excitation.h5", "validation_excitation.h5"),
        *("identification.h5", "validation.h5", "identified"),
    }
    result = json.loads((directory / "identified" / "result.json").read_text())
    assert len(result["simulation"]["closed_loop_position_rms_rad"]) == 4
