"""`armature install-service` below a prefix; what would change this computer is only looked at."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from daq.robot.load import robot_text
from daq.service.units import INSTALLED, LOOP_UNIT, RECORD_UNIT
from tools.shared.cli import run_guarded
from tools.verbs import install_service

LOOP, RECORD, USERS, RULE, LIMITS = (path.relative_to("/") for path in INSTALLED)
ROBOT = Path("etc/armature/robot.toml")


class Result(NamedTuple):
    exit_code: int
    out: str
    err: str


@pytest.fixture
def install(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the verb in this process."""
    parser = argparse.ArgumentParser(prog="armature")
    install_service.add_to(parser.add_subparsers(), "write the units")

    def run(*words: str | Path) -> Result:
        def handle() -> int:
            arguments = parser.parse_args(["install-service", *map(str, words)])
            exit_code: int = arguments.handler(arguments)
            return exit_code

        return Result(run_guarded(handle), *capsys.readouterr())

    return run


@pytest.fixture
def no_commands(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Notes commands in place of running them."""
    ran: list[Any] = []
    monkeypatch.setattr(install_service.subprocess, "run", lambda *a, **_k: ran.append(a[0]))
    return ran


def written(prefix: Path) -> set[Path]:
    return {path.relative_to(prefix) for path in prefix.rglob("*") if not path.is_dir()}


def test_a_shipped_robot(
    install: Callable[..., Result], no_commands: list[Any], tmp_path: Path
) -> None:
    result = install("--robot", "laas4", "--prefix", tmp_path)

    assert result.exit_code == 0
    assert written(tmp_path) == {LOOP, RECORD, USERS, RULE, LIMITS}
    assert "--robot laas4 --link spi" in (tmp_path / LOOP).read_text()
    assert (tmp_path / LOOP).stat().st_mode & 0o777 == 0o644
    assert f"systemctl enable --now {RECORD_UNIT} {LOOP_UNIT}" in result.err
    assert "systemctl daemon-reload" in result.out
    assert no_commands == []


def test_a_robot_file_is_copied(install: Callable[..., Result], tmp_path: Path) -> None:
    own = tmp_path / "my robot.toml"
    own.write_text(robot_text("bench1"))
    prefix = tmp_path / "root"

    assert install("--robot", own, "--prefix", prefix).exit_code == 0

    assert (prefix / ROBOT).read_text() == robot_text("bench1")
    assert "--robot /etc/armature/robot.toml" in (prefix / LOOP).read_text()
    # Again, and nothing changes.
    again = install("--robot", own, "--prefix", prefix)
    assert again.exit_code == 0
    assert again.out.count("(unchanged)") == 6


def test_dry_run_shows_everything_and_writes_nothing(
    install: Callable[..., Result], no_commands: list[Any], tmp_path: Path
) -> None:
    result = install(
        "--robot", "laas4", "--prefix", tmp_path, "--dry-run", "--recordings", "/not/there"
    )

    assert result.exit_code == 0
    assert written(tmp_path) == set()
    for path in INSTALLED:
        assert f"==> {path} (new)" in result.out
    for text in (
        "Type=notify",
        "--out /not/there",
        "u armature ",
        'SUBSYSTEM=="spidev", GROUP="spi", MODE="0660"',
        "@armature - rtprio 80",
        "$ systemd-sysusers /etc/sysusers.d/armature.conf",
        "$ install -d -o armature -g armature -m 0750 /not/there",
    ):
        assert text in result.out
    assert no_commands == []


def test_json(install: Callable[..., Result], tmp_path: Path) -> None:
    result = install("--robot", "laas4", "--prefix", tmp_path, "--dry-run", "--json")
    report = json.loads(result.out)
    assert [row["path"] for row in report["files"]] == list(map(str, INSTALLED))
    assert {row["state"] for row in report["files"]} == {"new"}
    assert ["systemctl", "daemon-reload"] in report["commands"]


def test_other_content_is_refused_and_kept(install: Callable[..., Result], tmp_path: Path) -> None:
    install("--robot", "laas4", "--prefix", tmp_path)
    before = (tmp_path / LOOP).read_text()
    (tmp_path / LOOP).write_text("mine")
    (tmp_path / RULE).unlink()

    refused = install("--robot", "laas4", "--prefix", tmp_path)

    assert refused.exit_code == 1
    assert f"/{LOOP}" in refused.err
    assert "--force" in refused.err
    assert (tmp_path / LOOP).read_text() == "mine"
    assert not (tmp_path / RULE).exists(), "all or nothing"

    assert install("--robot", "laas4", "--prefix", tmp_path, "--force").exit_code == 0
    assert (tmp_path / LOOP).read_text() == before
    assert (tmp_path / f"{LOOP}.old").read_text() == "mine"


def test_a_masked_unit_is_not_written_through(
    install: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / LOOP).parent.mkdir(parents=True)
    (tmp_path / LOOP).symlink_to(os.devnull)
    assert install("--robot", "laas4", "--prefix", tmp_path).exit_code == 1
    assert install("--robot", "laas4", "--prefix", tmp_path, "--force").exit_code == 0
    assert not (tmp_path / LOOP).is_symlink()


def test_uninstall(install: Callable[..., Result], no_commands: list[Any], tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(robot_text("bench1"))
    prefix = tmp_path / "root"
    install("--robot", own, "--prefix", prefix)

    shown = install("--uninstall", "--prefix", prefix, "--dry-run")
    assert len(written(prefix)) == 6
    result = install("--uninstall", "--prefix", prefix)

    assert shown.out == result.out
    assert f"systemctl disable --now {LOOP_UNIT} {RECORD_UNIT}" in result.out
    assert written(prefix) == {ROBOT}
    assert no_commands == []


def test_without_root(
    install: Callable[..., Result], no_commands: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_service.os, "geteuid", lambda: 1000)
    for words in (("--robot", "laas4"), ("--uninstall",)):
        result = install(*words)
        assert result.exit_code == 1
        assert "sudo " in result.err
    assert no_commands == []
    assert install("--robot", "laas4", "--dry-run").exit_code == 0


def test_commands_run_only_on_this_computer_under_systemd(
    install: Callable[..., Result],
    no_commands: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(install_service, "_is_live", lambda _prefix: True)
    assert install("--robot", "laas4", "--prefix", tmp_path).exit_code == 0
    assert [command[0] for command in no_commands] == [
        "systemd-sysusers",
        "udevadm",
        "udevadm",
        "systemctl",
    ]


def test_a_command_that_fails_is_named(
    install: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install_service, "_is_live", lambda _prefix: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = install("--robot", "laas4", "--prefix", tmp_path)
    assert result.exit_code == 1
    assert "systemd-sysusers /etc/sysusers.d/armature.conf" in result.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "--robot NAME|FILE"),
        (("--robot", "nobody"), "nobody"),
        (("--robot", "laas4", "--link", "smoke"), "--link smoke"),
        (("--robot", "laas4", "--link", "mock"), "--link mock"),
        (("--robot", "laas4", "--link", "serial:///dev/ttyUSB0"), "--link serial:///dev/ttyUSB0"),
        (("--robot", "laas4", "--recordings", "/a$b"), "/a$b"),
        (("--robot", "laas4", "--recordings", "/a:b"), "/a:b"),
        (("--robot", "laas4", "--bind", "tcp://*:1"), "--bind tcp://*:1"),
        (("--robot", "laas4", "--keys", "a\nb"), r"a\nb"),
    ],
)
def test_misuse(
    install: Callable[..., Result], tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    result = install(*words, "--prefix", tmp_path)
    assert result.exit_code == 2
    assert text in result.err
    assert written(tmp_path) == set()


def test_odd_paths_are_quoted(install: Callable[..., Result], tmp_path: Path) -> None:
    install("--robot", "laas4", "--prefix", tmp_path, "--recordings", "/mnt/the disk/100%")
    unit = (tmp_path / RECORD).read_text()
    assert '--out "/mnt/the disk/100%%" --runtime' in unit
    assert 'ReadWritePaths="-/mnt/the disk/100%%"' in unit


def test_an_existing_directory_keeps_its_owner(
    install: Callable[..., Result], tmp_path: Path
) -> None:
    result = install("--robot", "laas4", "--dry-run", "--recordings", tmp_path)
    assert "install -d" not in result.out
    assert str(tmp_path) in result.err
