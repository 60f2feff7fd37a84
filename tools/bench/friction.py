"""`armature bench friction`: drive one joint at constant speeds, and say what its friction is.

The joint becomes a robot of its own (`daq.robot.editing.edit`), whose loop and recorder run as for
`armature run`; inside the loop `daq.bench.run` drives the test. The recording is the raw result.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec

from daq.bench.plan import PART_BEGINS, BenchPlan
from daq.boards.wire_limits import board_profile, gain_problems
from daq.errors import ConfigError, DaqError
from daq.links.address import LinkKind
from daq.recorder.journal import journal_of
from daq.robot import DrivenJoint, DrivenRobot, parse_robot, robot_text
from daq.robot.editing.edit import bench_text, with_velocity_gains
from daq.samples.batches import Event
from estimation.errors import EstimationError
from firmware_protocol.profiles import PROFILES
from hw_mocks.faults.script import parse_fault
from hw_mocks.plants.load_arm import MockLoadArm
from tools.bench.analyse import report
from tools.bench.plan import BenchOptions, plan_bench
from tools.running.boards import may_be_emulated
from tools.running.events import Teller
from tools.running.mock_options import add_board_options, add_mock_robot_options, draw_problems
from tools.running.options import MockOptions, RunOptions
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_link_option,
    add_robot_option,
    add_verb,
    say,
)
from tools.shared.progress import progress_bar

OUTPUT_SUFFIXES = (".h5", ".toml", ".json", ".png", ".pdf", ".html")
_SERIAL_TIMEOUT_MS = 50
"""A laptop is not a real-time computer, and an unloaded joint on a bench is not an arm."""
_EXAMPLE = """\
  armature bench friction --robot laas4 --joint joint3 --link mock --fast --out bench
  armature bench friction --robot bench1 --joint joint1 --link mock --fast --out b \\
      --load-arm 1 0.2"""


def add_to(actions: Verbs) -> None:
    """Add the action to the command line."""
    parser = add_verb(
        actions,
        "friction",
        handler=_friction,
        summary="measure friction, inertia and torque constant of one joint on the bench",
        example=_EXAMPLE,
    )
    add_robot_option(parser)
    parser.add_argument("--joint", required=True, metavar="NAME", help="the joint on the bench")
    add_link_option(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="where recording, result, figures and page go",
    )
    parser.add_argument(
        "--arm", action="store_true", help="allow the motor to be enabled; a mock needs no leave"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--mounted",
        action="store_true",
        help="the joint is part of the arm and moves within its range; the others hold",
    )
    kind.add_argument(
        "--load-arm",
        nargs=2,
        type=float,
        metavar=("KG", "M"),
        help="a weight hangs at this distance from the joint's axis: measure the torque constant",
    )
    sweep = parser.add_argument_group("sweep", "in place of the robot file's [joints.bench]")
    for option, metavar, text in (
        ("--speed-min", "RAD_S", "slowest speed at the joint"),
        ("--speed-max", "RAD_S", "fastest speed at the joint"),
        ("--dwell", "S", "how long a settled speed is measured at least"),
        ("--settle-max", "S", "a speed that has not settled after this long is given up"),
        ("--kp", "A_PER_RAD", "gain on the position error, at the motor: the PI's integral part"),
        ("--kd", "A_S_PER_RAD", "gain on the velocity error: its proportional part"),
    ):
        sweep.add_argument(option, type=float, metavar=metavar, help=text)
    sweep.add_argument("--speeds", type=int, metavar="N", help="speeds in each direction")
    sweep.add_argument("--repetitions", type=int, metavar="N", help="how often all are driven")
    parser.add_argument(
        "--fast", action="store_true", help="in virtual time, as fast as possible (mock only)"
    )
    parser.add_argument("--runtime", type=Path, metavar="DIR", help="directory of the sockets")
    parser.add_argument(
        "--command-timeout-ms",
        type=int,
        metavar="MS",
        help="boards stop their motors after this long without a command (serial: 50, mock: 100)",
    )
    add_board_options(parser)
    add_mock_robot_options(parser)
    add_json_option(parser)


def _friction(arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="armature: %(message)s")
    test, mock = BenchOptions.from_namespace(arguments), MockOptions.from_namespace(arguments)
    run = RunOptions(
        robot=arguments.robot,
        link=arguments.link,
        profile=arguments.profile,
        is_armed=arguments.arm,
        runtime=arguments.runtime,
        command_timeout_ms=arguments.command_timeout_ms,
    )
    return _measure(test, run, mock, arguments.out, is_fast=arguments.fast, is_json=arguments.json)


def _measure(
    test: BenchOptions,
    run: RunOptions,
    mock: MockOptions,
    directory: Path,
    *,
    is_fast: bool,
    is_json: bool,
) -> int:
    text = robot_text(run.robot)
    robot = parse_robot(text, run.robot, profiles=PROFILES).driven()
    joint = _joint(robot, test.joint)
    _check(test, run, mock, is_fast=is_fast)
    plan = plan_bench(robot, joint, test, mock, is_on_mock=run.is_on_mock)
    target = directory / f"{test.name}.h5"
    _check_target(target)
    if test.is_mounted:
        text = with_velocity_gains(text, joint.name, plan.gains, source=run.robot)
    else:
        # Only a free joint needs soft gains: a load arm is led by the joint's own.
        gains = None if test.load_arm else plan.gains
        text = bench_text(text, joint.name, gains=gains, source=run.robot)
    _check_gains(parse_robot(text, run.robot).driven(), joint, run.profile)
    say(_announcement(plan, joint))
    directory.mkdir(parents=True, exist_ok=True)
    robot_file = directory / f"{test.name}.toml"
    with robot_file.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    mock = replace(
        mock,
        robot=str(robot_file),
        seed=test.seed_of_mock(mock.seed),
        load_arm=None if test.load_arm is None else MockLoadArm(*test.load_arm),
    )
    with tempfile.TemporaryDirectory(prefix="armature-bench-") as temporary:
        plan_file = Path(temporary, "plan.json")
        plan_file.write_bytes(msgspec.json.encode(plan))
        run = replace(run, robot=str(robot_file), bench=plan_file)
        exit_code = _run(_with_timeout(run), mock, target, plan, is_fast=is_fast)
    if not target.exists():
        say("armature: nothing was recorded")
        return exit_code or FAILED
    if exit_code != OK:
        _say_why(target)
        return exit_code
    return report(target, directory, test.name, is_json=is_json)


def _joint(robot: DrivenRobot, name: str) -> DrivenJoint:
    names = [joint.name for joint in robot.joints]
    if name not in names:
        raise ConfigError("--joint", [f"{name}: {robot.name} has {', '.join(names)}"])
    return robot.joints[names.index(name)]


def _check(test: BenchOptions, run: RunOptions, mock: MockOptions, *, is_fast: bool) -> None:
    """Check the options before anything starts."""
    problems = draw_problems(mock)
    if is_fast and not run.is_on_mock:
        problems.append(f"--fast: time is real on --link {run.link}; use --link mock")
    if not run.is_on_mock and mock.faults:
        problems.append("--fault: only on --link mock")
    if not run.is_armed and not may_be_emulated(run.address):  # the loop asks for the proof
        problems.append("--arm: missing; this turns a real motor")
    wishes = test.wishes
    for option, value, low, high in (
        ("--speed-min", wishes.speed_min_rad_s, 0.0, 100.0),
        ("--speed-max", wishes.speed_max_rad_s, 0.0, 100.0),
        ("--dwell", wishes.dwell_s, 0.1, 60.0),
        ("--settle-max", wishes.settle_max_s, 0.5, 60.0),
        ("--speeds", wishes.speeds, 2, 50),
        ("--repetitions", wishes.repetitions, 1, 20),
        ("--kp", wishes.kp_a_per_rad, 0.0, 5.0),
        ("--kd", wishes.kd_a_s_per_rad, 0.0, 5.0),
    ):
        if value is not None and not (low <= value <= high and value > 0):
            problems.append(f"{option} {value:g}: must lie between {low:g} and {high:g}")
    if not all(1e-3 <= part <= 100.0 for part in test.load_arm or ()):
        problems.append("--load-arm: mass and length must lie between 0.001 and 100")
    for text in mock.faults:
        parse_fault(text)
    timeout_ms = run.command_timeout_ms
    if timeout_ms is not None and not 1 <= timeout_ms <= 255:
        problems.append(f"--command-timeout-ms {timeout_ms}: must lie between 1 and 255")
    if problems:
        raise ConfigError("armature bench friction", problems)


def _check_target(target: Path) -> None:
    problems = []
    outputs = [target.with_suffix(suffix) for suffix in OUTPUT_SUFFIXES]
    for path in (*outputs, journal_of(target)):
        if os.path.lexists(path):
            problems.append(f"{path} exists and is not overwritten: choose another --out")
    parent = next(path for path in target.absolute().parents if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        problems.append(f"--out {target.parent}: {parent} cannot be written to")
    if problems:
        raise ConfigError("armature bench friction", problems)


def _check_gains(robot: DrivenRobot, joint: DrivenJoint, profile: str | None) -> None:
    """Refuse gains that the wire does not carry, or that the board's law cannot be trusted with."""
    driven = _joint(robot, joint.name)
    port = next(port for port in robot.boards if port.name == driven.drive.board)
    chosen = board_profile(port, profile)
    problems = list(gain_problems(driven.control.velocity, robot, driven, chosen))
    if problems:
        raise ConfigError(f"gains of joint {joint.name} (--kp, --kd)", problems)


def _announcement(plan: BenchPlan, joint: DrivenJoint) -> str:
    """Return what is going to happen, before it does."""
    header, limits = plan.header, joint.limits
    kinds = {
        "free": "turns freely: nothing may be mounted on it",
        "mounted": "moves within its range: keep clear of the arm",
        "load_arm": "swings its load by 90° to both sides: keep clear of it",
    }
    speeds = sorted({abs(plateau.joint_velocity_rad_s) for plateau in plan.plateaus})
    sweep = ""
    if speeds:
        sweep = (
            f", {header.plateaus} plateaus of {speeds[0]:.3g} to {speeds[-1]:.3g} rad/s (limit "
            f"{limits.velocity_max_rad_s:g} rad/s)"
        )
    return (
        f"armature: joint {joint.name} {kinds[header.kind]}{sweep}, at most "
        f"{limits.current_max_a:g} A, Kp {plan.gains.kp_a_per_rad:g} A/rad, Kd "
        f"{plan.gains.kd_a_s_per_rad:g} A·s/rad; about {plan.expected_s:.0f} s"
    )


def _with_timeout(run: RunOptions) -> RunOptions:
    if run.command_timeout_ms is None and run.address.kind is LinkKind.SERIAL:
        return replace(run, command_timeout_ms=_SERIAL_TIMEOUT_MS)
    return run


def _run(
    run: RunOptions, mock: MockOptions, target: Path, plan: BenchPlan, *, is_fast: bool
) -> int:
    """Drive the test; its progress is a bar on a terminal, lines elsewhere."""
    has_bar = sys.stderr.isatty()
    teller = Teller(is_shown=lambda event: has_bar and event.kind in PART_BEGINS)
    if is_fast:
        from tools.running.fast import run_fast

        # It shows a bar of its own.
        _, exit_code = run_fast(run, mock, target, teller)
        return exit_code
    from tools.running.supervised import run_supervised

    begun = 0
    with progress_bar(f"joint {plan.header.joint}") as advance:

        def listen(event: Event) -> None:
            nonlocal begun
            if event.kind in PART_BEGINS:
                advance(begun, plan.parts)
                begun += 1
            teller(event)

        _, exit_code = run_supervised(run, mock, target, listen)
    teller.close()
    return exit_code


def _say_why(target: Path) -> None:
    """Say what else is known of a test that failed."""
    # It may have ended before it began, on a computer that has no SciPy.
    with contextlib.suppress(EstimationError, DaqError, ModuleNotFoundError):
        from estimation.bench.analysis import explain_end

        if reason := explain_end(target):
            say(f"armature: {reason}")
    say(f"armature: what was measured is in {target}; `armature bench analyse` shows it")
