"""What the READMEs show runs, and what they link to is there."""

from __future__ import annotations

import gzip
import json
import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import armature

PROJECT = Path(__file__).parents[2]
ARMATURE = Path(sys.executable).with_name("armature")
READMES = [
    PROJECT / "README.md",
    *sorted(PROJECT.glob("docs/*.md")),
    *sorted(PROJECT.glob("*/README.md")),
    *sorted(PROJECT.glob("tests/*/README.md")),
]


def python_blocks(readme: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)


def python_block(word: str) -> str:
    """The one example of the project's README that has a word in it."""
    (code,) = (code for code in python_blocks(PROJECT / "README.md") if word in code)
    return code


def run_example(code: str, directory: Path) -> None:
    """In this process, where most of what it imports is loaded already."""
    path = directory / "example.py"
    path.write_text(code)
    runpy.run_path(str(path))


@pytest.mark.parametrize("package", ["firmware_protocol", "hw_mocks"])
def test_the_examples_of_a_package_run(package: str, tmp_path: Path) -> None:
    (code,) = python_blocks(PROJECT / package / "README.md")
    run_example(code, tmp_path)


@pytest.mark.chain
def test_the_examples_of_estimation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = PROJECT / "tests" / "files_of_0_1" / "arm.h5.gz"
    (tmp_path / "rec.h5").write_bytes(gzip.decompress(packed.read_bytes()))
    monkeypatch.chdir(tmp_path)
    for code in python_blocks(PROJECT / "estimation" / "README.md"):
        run_example(code, tmp_path)
    said = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["uls", "cls2", "viscous", "coulomb"]


@pytest.mark.compiler
@pytest.mark.system
def test_the_example_for_real_boards_runs_on_mock_boards() -> None:
    *_, code = python_blocks(PROJECT / "README.md")
    command = [ARMATURE, "mock", "exec", "--robot", "laas4", "--", sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    assert "exchanges=1000" in done.stdout


@pytest.mark.chain
def test_the_example_for_recordings_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectory, code = python_block("write_trajectory"), python_block("open_recording")
    monkeypatch.chdir(tmp_path)
    run_example(trajectory, tmp_path)
    assert (tmp_path / "swing.h5").exists()
    words = ["run", "--robot", "laas4", "--link", "mock", "--fast", "--duration", "1"]
    assert armature(*words, "--record", "run.h5").exit_code == 0
    run_example(code, tmp_path)
    assert "('joint1', 'joint2', 'joint3', 'joint4') rad (10" in capsys.readouterr().out


@pytest.mark.compiler
@pytest.mark.system
def test_the_live_script_runs(tmp_path: Path) -> None:
    *_, code, _ = python_blocks(PROJECT / "README.md")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    words = ["loop", "--robot", "bench1", "--link", "mock", "--duration", "30"]
    with subprocess.Popen([ARMATURE, *words], env=environment) as loop:
        try:
            deadline_s = time.monotonic() + 60
            while not (tmp_path / "armature" / "stream").exists() and time.monotonic() < deadline_s:
                time.sleep(0.1)
            command = [sys.executable, "-W", "error", "-c", code]
            done = subprocess.run(
                command, check=True, env=environment, text=True, capture_output=True, timeout=60
            )
        finally:
            loop.terminate()
    assert done.stdout.count("joint1") == 11


@pytest.mark.compiler
@pytest.mark.system
def test_the_script_that_commands_runs(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    words = ["loop", "--robot", "laas4", "--link", "mock", "--enable", "--duration", "60"]
    ask = [ARMATURE, "status", "--json"]
    with subprocess.Popen([ARMATURE, *words], env=environment) as loop:
        try:
            status = {"state": "not there", "held_by": None}
            deadline_s = time.monotonic() + 50
            while status["state"] != "active" or status["held_by"]:
                assert time.monotonic() < deadline_s, status
                time.sleep(0.2)
                done = subprocess.run(ask, check=False, env=environment, capture_output=True)
                status = json.loads(done.stdout) if done.returncode == 0 else status
            command = [sys.executable, "-W", "error", "-c", python_block("CommandLease")]
            subprocess.run(command, check=True, env=environment, timeout=60)
            done = subprocess.run(ask, check=True, env=environment, capture_output=True)
        finally:
            loop.terminate()
    status = json.loads(done.stdout)
    assert (status["held_by"], status["joints"][3]["mode"]) == (None, "hold")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_somewhere(readme: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", readme.read_text()):
        if not target.startswith("https://"):
            assert (readme.parent / target).exists(), target
