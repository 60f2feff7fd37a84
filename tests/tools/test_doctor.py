from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq.robot.load import robot_text
from firmware_protocol.profiles import PROFILES
from hw_mocks.boards.motor_output import MotorOutput
from hw_mocks.mock_robot import MockRobot

SPI_DOCTOR = ("armature", "doctor", "--link", "spi", "--json", "--robot")

Armature = Callable[..., Any]
Run = Callable[..., Any]


def problems(report: Any) -> list[dict[str, str]]:
    found = [finding for finding in report["findings"] if finding["level"] == "problem"]
    assert all(finding["fix"] for finding in found)
    assert report["can_run"] == (not found)
    return found


def findings_of(report: Any, subject: str) -> list[dict[str, str]]:
    return [finding for finding in report["findings"] if finding["subject"] == subject]


def texts(report: Any, subject: str) -> str:
    return "\n".join(finding["text"] for finding in findings_of(report, subject))


@pytest.fixture
def no_enabling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_output: MotorOutput) -> None:
        pytest.fail("a motor was enabled")

    monkeypatch.setattr(MotorOutput, "enable", refuse)


@pytest.fixture
def robots(monkeypatch: pytest.MonkeyPatch) -> list[MockRobot]:
    """Every mock robot that a command makes."""
    made: list[MockRobot] = []
    make = MockRobot.__init__

    def remember(robot: MockRobot, *arguments: Any, **options: Any) -> None:
        make(robot, *arguments, **options)
        made.append(robot)

    monkeypatch.setattr(MockRobot, "__init__", remember)
    return made


# --- on mocks in the process ----------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.usefixtures("no_enabling")
def test_a_mock_can_run(armature: Armature, profile: str) -> None:
    result = armature(
        *("doctor", "--robot", "bench1", "--link", "mock", "--profile", profile, "--json")
    )

    assert (result.exit_code, result.err) == (0, "")
    report = result.json
    assert report.keys() == {"robot", "link", "can_run", "findings"}
    assert report["can_run"] is True
    for finding in report["findings"]:
        assert finding.keys() == {"level", "subject", "text", "fix", "code"}
        assert finding["level"] in ("ok", "note", "warning")
    assert "50 of 50" in texts(report, "board bench")
    codes = {"arm": [], "uomodri": ["alike"], "udriver2": ["alike", "clock-overflow"]}[profile]
    notes = [f for f in findings_of(report, "board bench") if f["level"] == "note"]
    assert [note["code"] for note in notes] == codes
    others = {"arm": (), "uomodri": ("udriver2",), "udriver2": ("uomodri",)}[profile]
    assert all(name in notes[0]["text"] for name in others)


def test_a_table_for_people(armature: Armature, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    result = armature("doctor", "--robot", "laas4", "--link", "mock")

    assert result.exit_code == 0
    for cell in ("laas4", "board shoulder", "board elbow"):
        assert cell in result.out
    assert "problem" not in result.out


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.usefixtures("no_enabling")
def test_a_latched_error_is_reported_and_left_alone(
    armature: Armature, monkeypatch: pytest.MonkeyPatch, robots: list[MockRobot], profile: str
) -> None:
    make = MockRobot.__init__

    def make_faulty(robot: MockRobot, *arguments: Any, **options: Any) -> None:
        make(robot, *arguments, **options)
        # After the boards have prepared their first reply, which does not know of it.
        robot.boards[0].latch(7)

    monkeypatch.setattr(MockRobot, "__init__", make_faulty)

    result = armature(
        *("doctor", "--robot", "bench1", "--link", "mock", "--profile", profile, "--json")
    )

    assert result.exit_code == 1
    (problem,) = problems(result.json)
    assert problem["subject"] == "board bench"
    assert problem["code"] == "error-7"
    assert robots[0].boards[0].error == 7


def test_traffic_is_traced_on_stderr(armature: Armature) -> None:
    result = armature("doctor", "--robot", "bench1", "--link", "spy+mock", "--json")

    assert result.json["can_run"]
    sent = [line for line in result.err.splitlines() if line.startswith("mock:bench > mode=0x00")]
    received = [line for line in result.err.splitlines() if line.startswith("mock:bench < status=")]
    assert len(sent) >= 50
    assert len(received) >= 50


def test_what_the_wire_cannot_carry(armature: Armature, tmp_path: Path) -> None:
    file = tmp_path / "fast.toml"
    text = robot_text("bench1").replace("velocity_max_rad_s = 6.0", "velocity_max_rad_s = 60.0")
    file.write_text(text.replace('profile = "arm"', 'profile = "armm"'))

    wrong_name = armature("doctor", "--robot", str(file), "--link", "mock", "--json")
    file.write_text(text)
    too_fast = armature("doctor", "--robot", str(file), "--link", "mock", "--json")

    assert (wrong_name.exit_code, too_fast.exit_code) == (2, 1)
    assert 'boards[0].profile: "armm"' in wrong_name.err
    assert "velocity_max_rad_s" in problems(too_fast.json)[0]["text"]


def test_all_mistakes_in_a_robot_file(armature: Armature, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    text = robot_text("bench1").replace("gear_reduction = 31.0", "gear_reduction = -1")
    file.write_text(text.replace("nominal_v", "nominal_volts"))

    result = armature("doctor", "--robot", str(file), "--link", "mock", "--json")

    assert (result.exit_code, result.out) == (2, "")
    for named in ("gear_reduction", "nominal_volts", str(file)):
        assert named in result.err


# --- devices --------------------------------------------------------------------------------------


def elsewhere(tmp_path: Path, name: str = "laas4") -> str:
    """A robot whose devices no computer has, however well equipped."""
    file = tmp_path / "robot.toml"
    file.write_text(robot_text(name).replace("/dev/spidev0.", "/dev/spidev97."))
    return str(file)


def test_devices_that_are_missing(armature: Armature, tmp_path: Path) -> None:
    result = armature("doctor", "--robot", elsewhere(tmp_path), "--link", "spi", "--json")

    assert result.exit_code == 1
    found = problems(result.json)
    assert [problem["subject"] for problem in found] == ["/dev/spidev97.0", "/dev/spidev97.1"]
    assert all("dtparam=spi=on" in problem["fix"] for problem in found)


@pytest.mark.parametrize(("link", "group"), [("spi", "spi"), ("serial:///dev/ttyX", "dialout")])
def test_devices_that_are_forbidden(
    armature: Armature, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, link: str, group: str
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda _path: True)
    monkeypatch.setattr(os, "access", lambda *_: False)

    result = armature(
        *("doctor", "--robot", elsewhere(tmp_path, "bench1"), "--link", link, "--json")
    )

    (problem,) = problems(result.json)
    assert problem["subject"].startswith("/dev/")
    assert f"usermod -aG {group}" in problem["fix"]


@pytest.mark.parametrize(
    ("device", "subject"), [("/dev/no-such-port", "/dev/no-such-port"), ("/dev/null", "boards")]
)
def test_serial_ports_that_are_none(armature: Armature, device: str, subject: str) -> None:
    result = armature("doctor", "--robot", "bench1", "--link", f"serial://{device}", "--json")

    assert result.exit_code == 1
    (problem,) = problems(result.json)
    assert problem["subject"] == subject
    assert device in problem["subject"] + problem["text"]


def test_names_are_not_taken_for_markup(armature: Armature) -> None:
    result = armature("doctor", "--robot", "bench1", "--link", "serial:///dev/[bold]x[/]")

    assert result.exit_code == 1
    assert "/dev/[bold]x[/]" in result.out


def test_a_serial_port_carries_one_board(armature: Armature) -> None:
    result = armature(
        "doctor", "--robot", "laas4", "--link", "serial:///dev/no-such-port", "--json"
    )

    found = problems(result.json)
    assert [problem["subject"] for problem in found] == ["link", "/dev/no-such-port"]


# --- boards behind emulated SPI devices -----------------------------------------------------------


@pytest.mark.compiler
def test_who_holds_a_device(run: Run) -> None:
    code = f"""
import os, subprocess
from daq.links.spi import SpiLink
from daq.robot.load import load_robot
link = SpiLink(load_robot("bench1").boards[0].spi)
print(os.getpid(), flush=True)
subprocess.run({[*SPI_DOCTOR, "bench1"]})
"""
    result = run("armature", "mock", "exec", "--robot", "bench1", "--", "python3", "-c", code)

    pid, report = result.lines
    (problem,) = problems(json.loads(report))
    assert problem["subject"] == "/dev/spidev0.0"
    assert f"process {pid}" in problem["text"]


# --- a board on a serial port ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoken", "expected", "named"),
    [
        ("arm", "arm", "50 of 50"),
        ("uomodri", "arm", "uomodri or udriver2 (36-byte"),
        ("arm", "uomodri", "arm (40-byte"),
    ],
)
def test_serial_boards(
    armature: Armature, start: Callable[..., Any], spoken: str, expected: str, named: str
) -> None:
    process = start("armature", "mock", "serial", "--robot", "bench1", "--profile", spoken)
    link = f"serial://{process.stdout.readline().strip()}"

    result = armature(
        *("doctor", "--robot", "bench1", "--profile", expected, "--link", link, "--json")
    )

    assert result.exit_code == (spoken != expected)
    assert len(problems(result.json)) == (spoken != expected)
    assert named in texts(result.json, "board bench")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


def test_a_latched_error_on_a_serial_port_is_still_there_the_second_time(
    armature: Armature, start: Callable[..., Any]
) -> None:
    process = start(
        *("armature", "mock", "serial", "--robot", "bench1"), "--fault", "board-error:at=0,code=7"
    )
    link = f"serial://{process.stdout.readline().strip()}"

    for _ in range(2):
        result = armature("doctor", "--robot", "bench1", "--link", link, "--json")

        (problem,) = problems(result.json)
        assert problem["code"] == "error-7"
