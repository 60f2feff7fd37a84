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
from pathlib import Path

import msgspec

from daq.bench.plan import BenchPlan, is_progress
from daq.boards.wire_limits import wire_problems
from daq.errors import ConfigError, DaqError
from daq.links.address import LinkKind, parse_link
from daq.recorder.journal import journal_of
from daq.robot import DrivenJoint, DrivenRobot, parse_robot, robot_text
from daq.robot.editing.edit import bench_text, with_velocity_gains
from estimation.errors import EstimationError
from firmware_protocol.profiles import PROFILES
from hw_mocks.faults.script import parse_fault
from hw_mocks.plants.load_arm import LoadArm as MockLoadArm
from tools.bench.analyse import report
from tools.bench.plan import plan_bench
from tools.running.mock_options import (
    add_board_options,
    add_mock_robot_options,
    draw_problems,
    joint_seed,
)
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
"""A laptop is no real-time computer, and an unloaded joint on a bench no arm."""
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
    text = robot_text(arguments.robot)
    robot = parse_robot(text, arguments.robot, profiles=PROFILES).driven()
    joint = _joint(robot, arguments)
    _check(arguments)
    plan = plan_bench(robot, joint, arguments)
    directory, name = arguments.out, _name(arguments)
    target = directory / f"{name}.h5"
    _check_target(target)
    if arguments.mounted:
        text = with_velocity_gains(text, joint.name, plan.gains, source=arguments.robot)
    else:
        # Only a free joint needs soft gains: a load arm is led by the joint's own.
        gains = None if arguments.load_arm else plan.gains
        text = bench_text(text, joint.name, gains=gains, source=arguments.robot)
    _check_gains(parse_robot(text, arguments.robot).driven(), joint, arguments)
    say(_announcement(plan, joint))
    directory.mkdir(parents=True, exist_ok=True)
    robot_file = directory / f"{name}.toml"
    with robot_file.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    with tempfile.TemporaryDirectory(prefix="armature-bench-") as temporary:
        plan_file = Path(temporary, "plan.json")
        plan_file.write_bytes(msgspec.json.encode(plan))
        exit_code = _run(_run_arguments(arguments, robot_file, plan_file, target), plan)
    if not target.exists():
        say("armature: nothing was recorded")
        return exit_code or FAILED
    if exit_code != OK:
        _say_why(target)
        return exit_code
    return report(target, directory, name, is_json=arguments.json)


def _joint(robot: DrivenRobot, arguments: argparse.Namespace) -> DrivenJoint:
    names = [joint.name for joint in robot.joints]
    if arguments.joint not in names:
        problem = f"{arguments.joint}: {robot.name} has {', '.join(names)}"
        raise ConfigError("--joint", [problem])
    return robot.joints[names.index(arguments.joint)]


def _name(arguments: argparse.Namespace) -> str:
    suffix = "_mounted" if arguments.mounted else "_load_arm" if arguments.load_arm else ""
    return f"{arguments.joint}{suffix}"


def _check(arguments: argparse.Namespace) -> None:
    """What can be found wrong before anything starts.

    Raises:
        ConfigError: Options contradict each other or are out of range; lists every problem.
    """
    problems = draw_problems(arguments)
    is_mock = parse_link(arguments.link).kind is LinkKind.MOCK
    if arguments.fast and not is_mock:
        problems.append(f"--fast: time is real on --link {arguments.link}; use --link mock")
    if not is_mock and arguments.fault:
        problems.append("--fault: only on --link mock")
    if not is_mock and not arguments.arm:
        problems.append("--arm: missing; this turns a real motor")
    limits = {
        "--speed-min": (0.0, 100.0),
        "--speed-max": (0.0, 100.0),
        "--dwell": (0.1, 60.0),
        "--settle-max": (0.5, 60.0),
        "--speeds": (2, 50),
        "--repetitions": (1, 20),
        "--kp": (0.0, 5.0),
        "--kd": (0.0, 5.0),
    }
    for option, (low, high) in limits.items():
        value = getattr(arguments, option[2:].replace("-", "_"))
        if value is not None and not (low <= value <= high and value > 0):
            problems.append(f"{option} {value:g}: must lie between {low:g} and {high:g}")
    arm = arguments.load_arm or ()
    if not all(1e-3 <= part <= 100.0 for part in arm):
        problems.append("--load-arm: mass and length must lie between 0.001 and 100")
    for text in arguments.fault:
        parse_fault(text)
    timeout_ms = arguments.command_timeout_ms
    if timeout_ms is not None and not 1 <= timeout_ms <= 255:
        problems.append(f"--command-timeout-ms {timeout_ms}: must lie between 1 and 255")
    if problems:
        raise ConfigError("armature bench friction", problems)


def _check_target(target: Path) -> None:
    problems = []
    outputs = [target.with_suffix(suffix) for suffix in OUTPUT_SUFFIXES]
    for path in (*outputs, journal_of(target)):
        if os.path.lexists(path):
            problems.append(f"{path} is there already and is not overwritten: choose another --out")
    parent = next(path for path in target.absolute().parents if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        problems.append(f"--out {target.parent}: {parent} cannot be written to")
    if problems:
        raise ConfigError("armature bench friction", problems)


def _check_gains(robot: DrivenRobot, joint: DrivenJoint, arguments: argparse.Namespace) -> None:
    """Whether the wire carries the gains.

    Raises:
        ConfigError: It does not.
    """
    law = "control.velocity."
    problems = [
        problem.partition(law)[2]
        for problem in wire_problems(robot, profile=arguments.profile)
        if law in problem
    ]
    if problems:
        raise ConfigError(f"gains of joint {joint.name} (--kp, --kd)", problems)


def _announcement(plan: BenchPlan, joint: DrivenJoint) -> str:
    """What is going to happen, before it does."""
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


def _run_arguments(
    arguments: argparse.Namespace, robot_file: Path, plan_file: Path, target: Path
) -> argparse.Namespace:
    """The options of a run of the bench robot."""
    timeout_ms = arguments.command_timeout_ms
    if timeout_ms is None and parse_link(arguments.link).kind is LinkKind.SERIAL:
        timeout_ms = _SERIAL_TIMEOUT_MS
    return argparse.Namespace(
        robot=str(robot_file),
        joint=None,  # it is a robot of its own by now
        link=arguments.link,
        arm=arguments.arm,
        enable=False,
        home=False,
        play=None,
        bench=plan_file,
        duration=None,
        record=target,
        runtime=arguments.runtime,
        command_timeout_ms=timeout_ms,
        bind=[],
        keys=None,
        plotjuggler=None,
        profile=arguments.profile,
        fault=arguments.fault,
        effects=arguments.effects,
        seed=arguments.seed if arguments.mounted else joint_seed(arguments.seed, arguments.joint),
        spread=arguments.spread,
        load_arm=None if arguments.load_arm is None else MockLoadArm(*arguments.load_arm),
        fast=arguments.fast,
        json=True,
    )


def _run(arguments: argparse.Namespace, plan: BenchPlan) -> int:
    if arguments.fast:
        from tools.running.fast import run_fast

        # It shows a bar of its own.
        _, exit_code = run_fast(arguments, _say_unless_shown)
        return exit_code
    from tools.running.supervised import run_supervised

    begun = 0
    with progress_bar(f"joint {plan.header.joint}") as advance:

        def tell(line: str) -> None:
            nonlocal begun
            if is_progress(line):
                begun += 1
                advance(begun - 1, plan.parts)
            _say_unless_shown(line)

        _, exit_code = run_supervised(arguments, tell)
    return exit_code


def _say_why(target: Path) -> None:
    """What else is known of a test that failed."""
    # It may have ended before it began, on a computer that has no SciPy.
    with contextlib.suppress(EstimationError, DaqError, ModuleNotFoundError):
        from estimation.bench.analysis import explain_end

        if reason := explain_end(target):
            say(f"armature: {reason}")
    say(f"armature: what was measured is in {target}; `armature bench analyse` shows it")


def _say_unless_shown(line: str) -> None:
    """Lines that tell how far it is are for those who see no bar."""
    if not (sys.stderr.isatty() and is_progress(line)):
        say(line)
