"""`armature loop`: the 1 kHz loop as a daemon, in real time."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import Any

import msgspec

from daq.bench.plan import read_plan
from daq.bench.run import BenchRun
from daq.errors import ConfigError
from daq.links.address import LinkAddress, LinkKind, parse_link
from daq.loop.agenda import Agenda
from daq.loop.process.daemon import Daemon, Options, Result
from daq.loop.runner import TIME_IS_OVER
from daq.loop.setup import Loop, make_session
from daq.motion.errors import MotionError
from daq.motion.limits import check_rows
from daq.motion.trajectory_file import read_trajectory
from daq.robot.description import DrivenRobot
from daq.robot.load import load_robot, robot_text
from daq.stream.keys import load_keys
from daq.system.runtime_directory import runtime_directory
from firmware_protocol.profiles import PROFILES
from hw_mocks.faults.script import FaultKind
from tools.running.boards import open_boards
from tools.running.child import Child
from tools.running.loop_words import loop_words
from tools.running.mock_options import (
    MOCK_MARK,
    add_board_options,
    add_mock_robot_options,
    make_mock,
)
from tools.running.processes import OUR_COMMAND, end_with_parent
from tools.shared.cli import (
    BOARD_FAULT,
    FAILED,
    INTERRUPTED,
    OK,
    Verbs,
    add_json_option,
    add_link_option,
    add_network_options,
    add_robot_option,
    add_verb,
    print_json,
    say,
)
from tools.version import __version__, commit

_COMMAND_TIMEOUT_USUAL_MS = 20
_SKIPPED_MAX_ON_MOCKS = 1000


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "loop",
        handler=_loop,
        summary=summary,
        example="  armature loop --robot laas4 --link mock --enable --duration 6 --json",
    )
    add_robot_option(parser)
    add_link_option(parser)
    add_loop_options(parser)
    add_board_options(parser)
    add_mock_robot_options(parser)
    parser.add_argument(
        "--record",
        nargs="?",
        const="",
        metavar="NAME",
        help="ask the recorder to record from the first sample on",
    )
    parser.add_argument(
        "--on-fault",
        choices=("stay", "exit"),
        default="stay",
        help="after a fault: stay and wait for `armature send reset` (default), or exit",
    )
    parser.add_argument("--bench", type=Path, help=argparse.SUPPRESS)  # what `bench` starts
    add_json_option(parser)


def add_loop_options(parser: argparse.ArgumentParser) -> None:
    """The options that `loop` and `run` share."""
    parser.add_argument(
        "--arm", action="store_true", help="allow motors to be enabled; on a mock they always are"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="end after this many seconds")
    parser.add_argument(
        "--runtime", type=Path, metavar="DIR", help="directory of the sockets and the spool"
    )
    parser.add_argument(
        "--command-timeout-ms",
        type=int,
        metavar="MS",
        help="boards stop their motors after this long without a command, in place of the robot "
        "file's; 100 on a mock, whose computer is now and then away for longer than 10",
    )
    parser.add_argument(
        "--enable", action="store_true", help="enable, calibrate and hold by itself"
    )
    parser.add_argument("--home", action="store_true", help="then find every joint's zero")
    parser.add_argument(
        "--play", type=Path, metavar="FILE", help="then follow a trajectory (homes first), and end"
    )
    add_network_options(parser)


def _loop(arguments: argparse.Namespace) -> int:
    if parse_link(arguments.link).kind is LinkKind.MOCK:
        return _loop_on_mock(arguments)
    if arguments.fault:
        raise ConfigError("--fault", ["only on --link mock"])
    result, problem = run_loop(arguments, record=arguments.record)
    if arguments.json:
        print_json(result_json(result))
    return exit_code(result, problem, has_end=has_end(arguments))


def _loop_on_mock(arguments: argparse.Namespace) -> int:
    """This process is the robot; the loop is another one, which opens its emulated devices."""
    from tools.running.emulation import emulated_boards

    mock, script = make_mock(arguments, impossible=[FaultKind.UNPLUG])
    words = loop_words(
        arguments,
        record=arguments.record,
        on_fault=arguments.on_fault,
        runtime=arguments.runtime,
        is_json=arguments.json,
    )
    with Child() as child, emulated_boards(mock, script) as boards:
        command = [*OUR_COMMAND, *words]
        child.start(command, boards.environment, before=end_with_parent)
        boards.serve(child.is_over)
    return child.exit_code


def _link_name(link: str, *, is_mock: bool) -> str:
    return f"mock+{link}{os.environ.get(MOCK_MARK, '')}" if is_mock else link


def run_loop(arguments: argparse.Namespace, *, record: str | None) -> tuple[Result, str]:
    """Run the loop that the options ask for, in real time.

    Returns:
        How it went, and why its agenda could not be followed (empty if it could).
    """
    address = parse_link(arguments.link)
    robot = load_robot(arguments.robot, profiles=PROFILES).driven()
    robot = with_command_timeout(robot, arguments.command_timeout_ms)
    if not is_emulated(address):
        _warn_of_timeout(robot)
    is_mock = is_emulated(address)
    if is_mock or (arguments.bench is not None and address.kind is LinkKind.SERIAL):
        # A serial port takes what time it takes; the test goes on at whatever rate that is.
        robot = _patient(robot)
    is_armed = arguments.arm or is_mock
    others = [address for address in arguments.bind if not address.startswith("tcp://")]
    if others:
        raise ConfigError("--bind", [f"{address}: expected tcp://HOST:PORT" for address in others])
    moves = arguments.enable or arguments.home or arguments.play or arguments.bench
    if moves and not is_armed:
        raise ConfigError("--arm", ["missing: --enable, --home and --play move real motors"])
    check_duration(arguments.duration)
    trajectory = read_play_file(arguments.play, robot)
    runtime = runtime_directory(arguments.runtime, is_made=True)
    keys = None if arguments.keys is None else load_keys(arguments.keys)
    options = Options(
        runtime=runtime,
        bind=arguments.bind,
        keys=keys,
        plotjuggler_port=arguments.plotjuggler,
        recording=record,
        duration_s=arguments.duration,
        ends_on_fault=arguments.on_fault == "exit",
        profile=arguments.profile,
        is_armed=is_armed,
    )
    with open_boards(robot, address, profile=arguments.profile) as opened:
        session = make_session(
            robot_text(arguments.robot),
            arguments.robot,
            opened.boards,
            link=_link_name(arguments.link, is_mock=is_mock),
            version=__version__,
            commit=commit(),
            start_t_ns=opened.now_ns(),
            start_utc_ns=opened.utc_ns(),
            is_virtual=False,
        )
        daemon = Daemon(robot, opened.boards, session, options)
        say(f"armature: loop {session.session} of robot {robot.name} in {runtime.path}")
        agenda = make_agenda(daemon.loop, robot, arguments, trajectory)
        if agenda is None:
            return daemon.run(), ""
        ends_when_done = is_ending_when_done(arguments)
        result = daemon.run(agenda=agenda.step, is_over=lambda: ends_when_done and agenda.is_over)
        return result, agenda_problem(agenda, result)


def is_ending_when_done(arguments: argparse.Namespace) -> bool:
    """Whether the run is over with its agenda."""
    has_end = arguments.play is not None or arguments.bench is not None
    return has_end and arguments.duration is None


def agenda_problem(agenda: Agenda | BenchRun, result: Result) -> str:
    """Why a run has not done what it was asked for, empty if it has."""
    if agenda.problem or result.status.reason != TIME_IS_OVER or not agenda.unfinished:
        return agenda.problem
    return f"the time was over before {agenda.unfinished} was: give a longer --duration"


def with_command_timeout(robot: DrivenRobot, timeout_ms: int | None) -> DrivenRobot:
    """The robot with another time-out on all of its boards.

    Raises:
        ConfigError: No board could keep it.
    """
    if timeout_ms is None:
        return robot
    if not 1 <= timeout_ms <= 255:
        raise ConfigError("--command-timeout-ms", [f"{timeout_ms}: must lie between 1 and 255"])
    boards = tuple(
        msgspec.structs.replace(port, command_timeout_ms=timeout_ms) for port in robot.boards
    )
    return msgspec.structs.replace(robot, boards=boards)


def _patient(robot: DrivenRobot) -> DrivenRobot:
    """The robot for an ordinary computer, which is now and then busy."""
    safety = msgspec.structs.replace(robot.safety, skipped_max_per_s=_SKIPPED_MAX_ON_MOCKS)
    return msgspec.structs.replace(robot, safety=safety)


def _warn_of_timeout(robot: DrivenRobot) -> None:
    longest_ms = max(port.command_timeout_ms for port in robot.boards)
    if longest_ms > _COMMAND_TIMEOUT_USUAL_MS:
        say(
            f"armature: warning: boards go on for {longest_ms} ms after the last command; real "
            f"ones should not for more than {_COMMAND_TIMEOUT_USUAL_MS}"
        )


def check_duration(duration_s: float | None) -> None:
    """Make sure that a duration is one.

    Raises:
        ConfigError: It is not.
    """
    if duration_s is not None and not 0.0 < duration_s <= 1e7:
        raise ConfigError("--duration", [f"{duration_s:g} s: must be more than 0, at most 1e7"])


def is_emulated(address: LinkAddress) -> bool:
    """Whether the SPI devices that this process sees are emulated ones: `mock exec`'s."""
    environment = os.environ
    is_preloaded = "armature" in environment.get("LD_PRELOAD", "")
    return address.kind is LinkKind.SPI and is_preloaded and "ARMATURE_SPIDEV_DIR" in environment


def read_play_file(path: Path | None, robot: DrivenRobot) -> Any:
    """The trajectory to play, None for none; checked before anything is opened.

    Raises:
        MotionError: It cannot be read, or not be played within the robot's limits.
    """
    if path is None:
        return None
    trajectory = read_trajectory(path, [joint.name for joint in robot.joints])
    try:
        check_rows(trajectory.rows, robot)
    except MotionError as error:
        raise MotionError(f"{path}: {error}") from error
    return trajectory


def make_agenda(
    loop: Loop, robot: DrivenRobot, arguments: argparse.Namespace, trajectory: Any
) -> Agenda | BenchRun | None:
    """What the options ask the loop to do by itself, None for nothing."""
    if arguments.bench is not None:
        limit_rad = robot.safety.following_error_max_rad
        plan = read_plan(arguments.bench)
        return BenchRun(loop, plan, following_error_max_rad=limit_rad)
    if not (arguments.enable or arguments.home or trajectory is not None):
        return None
    agenda = Agenda(loop)
    agenda.enable()
    agenda.hold()
    if arguments.home or trajectory is not None:
        agenda.home()
    if trajectory is not None:
        agenda.play(trajectory.rows, has_torque=trajectory.has_torque)
    return agenda


def result_json(result: Result) -> dict[str, object]:
    """What `--json` prints of a run."""
    status = result.status
    return {
        "robot": status.robot,
        "session": status.session,
        "state": status.state,
        "reason": status.reason,
        "is_virtual": status.is_virtual,
        "elapsed_s": result.elapsed_s,
        "cycles": status.cycles,
        "skipped": status.skipped,
        "lost": status.lost,
        "corrupt": status.corrupt,
        "wake_us": status.wake_us,
        "work_us": status.work_us,
        "boards": status.boards,
        "privileges": status.privileges,
    }


def has_end(arguments: argparse.Namespace) -> bool:
    """Whether a run that somebody interrupts is not what it should have been."""
    return arguments.duration is not None or arguments.bench is not None


def exit_code(result: Result, problem: str, *, has_end: bool = False) -> int:
    """How the command ends; says why when it is no success.

    Args:
        result: How the run went.
        problem: Why its agenda could not be followed; empty if it could.
        has_end: Whether it should have lasted longer when somebody interrupted it.
    """
    status = result.status
    if status.state == "fault":
        say(f"armature: stopped: {status.reason}")
        return BOARD_FAULT if status.is_fault_of_board else FAILED
    if problem:
        say(f"armature: {problem}")
        return FAILED
    is_interrupted = status.reason == signal.SIGINT.name
    return INTERRUPTED if has_end and is_interrupted else OK
