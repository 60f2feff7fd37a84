from __future__ import annotations

import contextlib
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acceptance import ONLY

import daq.robot
import tools.mock.step
from daq.boards.board import Board
from daq.links.address import LinkAddress
from daq.robot.description import Robot
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot
from tools.main import VERBS, make_parser
from tools.running.boards import OpenBoards
from tools.version import __version__

PLAIN = ["mock step", "mock truth", "robot", "robot show", "robot to-urdf", "keys", "recover"]
PLAIN += ["install-service"]
"""Whose examples are commands of ours and nothing else."""
SHELL = ["frames decode", "frames encode", "frames table", "frames document", "import", "doctor"]
SHELL += ["mock exec", "mock serial", "bench communication"]
LONG = ["", "bench", "excite", "identify", "loop", "record", "run", "send", "status"]
"""Whose examples take long: they run under `make acceptance`."""

Armature = Callable[..., Any]


def test_version(armature: Armature) -> None:
    assert armature("--version") == (0, f"armature {__version__}\n", "")


def test_every_verb_is_listed(armature: Armature) -> None:
    result = armature("--help")

    assert result.exit_code == 0
    for verb in VERBS:
        assert re.search(rf"^    {verb}\s", result.out, re.MULTILINE)


def example_of(armature: Armature, command: str) -> str:
    result = armature(*command.split(), "--help")
    assert result.exit_code == 0
    _, found, example = result.out.rpartition("\nexample:\n")
    assert found and "armature " in example
    return str(example)


def commands_in(example: str) -> list[list[str]]:
    lines = [shlex.split(line, comments=True) for line in example.replace("&", "").splitlines()]
    return [words for program, *words in filter(None, lines) if program == "armature"]


def test_examples_of_all_verbs_are_tested(armature: Armature) -> None:
    tested = {command.split()[0] for command in PLAIN + SHELL + LONG if command}
    assert tested == VERBS.keys() - {"demo"}, "whose example test_demo.py runs"
    for alike, other in (("frames", "frames decode"), ("mock", "mock exec")):
        assert example_of(armature, alike) == example_of(armature, other)
    assert example_of(armature, "robot") == example_of(armature, "robot from-urdf")


@pytest.mark.parametrize("command", LONG)
def test_long_examples_are_understood(armature: Armature, command: str) -> None:
    commands = commands_in(example_of(armature, command))
    assert not command or command in [words[0] for words in commands]
    for words in commands:
        make_parser(words[0]).parse_args(words)


@pytest.mark.parametrize("command", PLAIN)
def test_plain_examples_work(
    armature: Armature, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands_in(example_of(armature, command)):
        result = armature(*words)
        assert result.exit_code == 0, result.err
        assert result.out


@pytest.mark.compiler
@pytest.mark.parametrize(
    "command", [*SHELL, *(pytest.param(command, marks=ONLY) for command in LONG)]
)
def test_examples_work_in_a_shell(
    armature: Armature, start: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    example = example_of(armature, command)
    (tmp_path / "firmware_protocol").mkdir()

    # The one that does not end by itself takes the shell's place, to be interrupted alone.
    prefix = "exec" if command == "mock serial" else ""
    process = start("sh", "-e", "-c", prefix + example, cwd=tmp_path)
    if prefix:
        assert process.stdout.readline().startswith("/dev/")
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=110)

    assert process.returncode == 0, err
    assert "Traceback" not in err
    is_written = any(path.stat().st_size for path in tmp_path.rglob("*.*"))
    assert out or is_written or prefix


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("dance",),
        ("frames",),
        ("frames", "dance"),
        ("frames", "table"),
        ("frames", "table", "--profile", "arm2"),
        ("frames", "table", "--profile", "arm", "--format", "pdf"),
        ("frames", "table", "--prof", "arm"),
        ("frames", "encode", "--profile", "arm"),
        ("mock",),
        ("mock", "serial"),
        ("mock", "step"),
        ("mock", "step", "--robot", "laas5"),
        ("mock", "step", "--robot", "bench1", "--speed", "9"),
        ("mock", "step", "--robot", "bench1", "extra"),
        ("doctor", "--robot", "bench1"),
        ("doctor", "--robot", "bench1", "--link", "carrier-pigeon"),
        ("mock", "truth", "--robot", "no/such/robot.toml"),
        ("-x",),
    ],
    ids=" ".join,
)
def test_usage_errors(armature: Armature, words: tuple[str, ...]) -> None:
    result = armature(*words)

    assert (result.exit_code, result.out) == (2, "")
    assert result.err


# --- step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("robot", "motors", "profile", "calibration_s"),
    [
        ("laas4", 4, None, (3.0, 4.1)),
        ("bench1", 1, "udriver2", (1.0, 1.1)),
        ("bench1", 1, "uomodri", (3.0, 4.1)),
    ],
)
def test_step(
    armature: Armature,
    robot: str,
    motors: int,
    profile: str | None,
    calibration_s: tuple[float, float],
) -> None:
    options = ("--profile", profile) if profile else ()

    result = armature("mock", "step", "--robot", robot, *options, "--json")

    assert (result.exit_code, result.err) == (0, "")
    report = result.json
    assert report["faults"] == []
    earliest_s, latest_s = calibration_s
    assert earliest_s <= report["calibration_s"] <= latest_s
    last = report["samples"][-1]
    assert last["time_s"] == 1.0
    assert len(last["motor_position_rad"]) == len(last["iq_a"]) == motors
    assert last["motor_position_rad"] == pytest.approx([3.14] * motors, abs=0.6)  # gravity
    for counters in report["counters"].values():
        good = counters["valid"] + counters["late"] + counters["unconfirmed"]
        assert counters["exchanges"] == good


def test_step_for_people(armature: Armature) -> None:
    result = armature("mock", "step", "--robot", "bench1")

    assert result.exit_code == 0
    assert " 3." in result.lines[0]
    assert result.err.count(" s ") == 2, "the robot's time and ours"


@pytest.mark.parametrize("at_s", [0.5, 3.5])
def test_a_board_fault_is_exit_code_3(
    armature: Armature, monkeypatch: pytest.MonkeyPatch, at_s: float
) -> None:
    @contextlib.contextmanager
    def open_faulty(robot: Robot, _: LinkAddress, *, profile: str | None) -> Iterator[OpenBoards]:
        clock = VirtualClock()
        script = FaultScript([parse_fault(f"board-error:at={at_s},code=7")])
        (link,) = mock_links(MockRobot(robot), clock, script)
        board = Board("bench", robot_profile(robot), link, now_ns=clock.now_ns)
        yield OpenBoards([board], clock.now_ns, clock.sleep_until_ns, clock.now_ns)

    monkeypatch.setattr(tools.mock.step, "open_boards", open_faulty)

    for_machines = armature("mock", "step", "--robot", "bench1", "--json")
    for_people = armature("mock", "step", "--robot", "bench1")

    assert (for_machines.exit_code, for_people.exit_code) == (3, 3)
    assert for_machines.json["faults"] == ["bench: error 7, gate-driver fault"]
    assert for_machines.json["faults"][0] in for_people.err


def robot_profile(robot: Robot) -> Any:
    from daq.boards.wire_limits import board_profile

    return board_profile(robot.boards[0])


@pytest.mark.parametrize("moment", ["step", "import"])
def test_interrupted(start: Callable[..., subprocess.Popen[str]], moment: str) -> None:
    code = """
import importlib, sys, time
import tools.main

def wait(*_):
    print("ready", flush=True)
    time.sleep(60)

if sys.argv[1] == "step":
    import tools.mock.step
    tools.mock.step._Session.calibrate = wait
else:
    importlib.import_module = wait
sys.exit(tools.main.main(["mock", "step", "--robot", "bench1"]))
"""
    process = start("python3", "-c", code, moment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


def test_ctrl_c_while_an_extension_is_imported_is_no_import_error(
    armature: Armature, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_arguments: object) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error

    monkeypatch.setattr(tools.mock.step, "_step", interrupted, raising=True)
    assert armature("mock", "step", "--robot", "bench1") == (130, "", "")


# --- truth ----------------------------------------------------------------------------------------


def test_truth_follows_from_the_seed(armature: Armature) -> None:
    first, second, other = (
        armature("mock", "truth", "--robot", "laas4", "--seed", seed, "--json") for seed in "112"
    )

    assert first.json == second.json
    assert first.json != other.json


@pytest.mark.parametrize(("robot", "named"), [("laas4", "link mass"), ("bench1", "load inertia")])
def test_truth_for_people(armature: Armature, robot: str, named: str) -> None:
    result = armature("mock", "truth", "--robot", robot)

    assert result.exit_code == 0
    assert named in result.out
    assert f"mock of robot {robot}, seed 0, spread 0.25" in result.out
    assert "backlash_rad=0" in result.out


def test_the_sizes_of_effects_are_part_of_the_truth(armature: Armature) -> None:
    words = ("mock", "truth", "--robot", "bench1", "--effects", "troubles,stribeck=0.5", "--json")
    effects = armature(*words).json["effects"]
    assert (effects["stribeck"], effects["torque_constant_drop"]) == (0.5, 0.2)


def test_a_robot_file_may_put_friction_at_either_side_of_the_gear(
    armature: Armature, tmp_path: Path
) -> None:
    shipped = (Path(daq.robot.__file__).parent / "robots" / "bench1.toml").read_text()
    file = tmp_path / "rubbing.toml"
    file.write_text(
        shipped.replace(
            "coulomb_joint_nm = 0.122",
            "coulomb_joint_nm = 0.1, viscous_joint_nm_s_per_rad = 0.002, coulomb_motor_nm = 0.003",
        )
    )

    (joint,) = armature("mock", "truth", "--robot", str(file), "--json").json["joints"]
    assert joint["viscous_joint_nm_s_per_rad"] == 0.002
    assert joint["coulomb_motor_nm"] == 0.003

    text = armature("mock", "truth", "--robot", str(file)).out
    assert "0.003 N·m (motor side), 0.1 (joint side)" in text
