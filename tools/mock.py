"""`armature mock`: hardware that is not there, for programs that believe it is."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from daq.errors import ConfigError
from daq.robot.load import load_robot
from firmware_protocol.profiles import PROFILES
from hw_mocks.effects import Effects, parse_effects
from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.errors import MockConfigError
from hw_mocks.faults import Fault, FaultKind, FaultScript, parse_fault
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_port import SerialPort
from hw_mocks.spi_boards import SpiBoards
from tools.child import Child
from tools.cli import (
    OK,
    USAGE,
    Verbs,
    add_json_option,
    add_profile_option,
    add_robot_option,
    add_verb,
    print_json,
    say,
)

T = TypeVar("T")

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""Exit codes of `exec` when there is no program that could have one: those of env and the shells"""
_EXEC_EXAMPLE = """\
  armature mock exec --robot laas4 --profile uomodri --fault flip:rate=0.01 -- \\
      python3 -c 'from spidev import SpiDev; s = SpiDev(0, 0); s.max_speed_hz = 8000000
print(bytes(s.xfer2([0] * 34)).hex())'"""
_FAULT_HELP = (
    "KIND:key=value,… with KIND one of "
    + ", ".join(kind.value for kind in FaultKind)
    + "; keys: rate (per exchange) or at (seconds), for (seconds), board (0, 1, …), "
    "direction (flip: command or reply), code (board-error). May be repeated"
)


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "mock",
        handler=None,
        summary=summary,
        example=_EXEC_EXAMPLE,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    run = add_verb(
        actions,
        "exec",
        handler=_exec,
        summary="run any program with the robot's SPI devices present and live boards behind them",
        example=_EXEC_EXAMPLE,
    )
    _add_robot_options(run)
    _add_board_options(run)
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ARGS")

    serial = add_verb(
        actions,
        "serial",
        handler=_serial,
        summary="print a serial port with a live board behind it, and serve until interrupted",
        example="  armature mock serial --robot bench1",
    )
    _add_robot_options(serial)
    _add_board_options(serial)
    serial.add_argument("--board", type=int, default=0, metavar="N", help="which board (default 0)")

    truth = add_verb(
        actions,
        "truth",
        handler=_truth,
        summary="print the true parameters of a mock robot, which a recording never describes",
        example="  armature mock truth --robot laas4 --seed 1 --json",
    )
    _add_robot_options(truth)
    truth.set_defaults(profile=None, fault=[])
    add_json_option(truth)


def _add_board_options(parser: argparse.ArgumentParser) -> None:
    add_profile_option(parser, is_required=False)
    parser.add_argument("--fault", action="append", default=[], metavar="FAULT", help=_FAULT_HELP)


def _add_robot_options(parser: argparse.ArgumentParser) -> None:
    add_robot_option(parser)
    parser.add_argument(
        "--effects",
        default="default",
        metavar="EFFECTS",
        help="none, default or troubles, then changes: default,backlash_rad=0.003,iq_noise_a=0;"
        f" there are {', '.join(field.name for field in dataclasses.fields(Effects))}",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="everything random follows from it (default 0)"
    )
    parser.add_argument(
        "--spread",
        type=float,
        default=0.25,
        help="how far the true parameters are from the robot file's CAD values (default 0.25)",
    )


def _make_mock(
    arguments: argparse.Namespace, *, impossible: Collection[FaultKind] = ()
) -> tuple[MockRobot, FaultScript]:
    """The robot and the faults that the options ask for.

    Args:
        arguments: The options of `_add_robot_options` and `_add_board_options`.
        impossible: Faults that cannot happen on this kind of device.

    Raises:
        MockConfigError: Options are wrong; lists every problem of all of them.
    """
    problems: list[str] = []

    def read(parse: Callable[[str], T], text: str) -> T | None:
        try:
            return parse(text)
        except (ConfigError, MockConfigError) as error:
            problems.extend(f"{error.source}: {problem}" for problem in error.problems)
            return None

    if arguments.seed < 0:
        problems.append(f"--seed {arguments.seed}: must not be negative")
    if not 0.0 <= arguments.spread <= 1.0:
        problems.append(f"--spread {arguments.spread:g}: must lie between 0 and 1")
    robot = read(partial(load_robot, profiles=PROFILES), arguments.robot)
    effects = read(parse_effects, arguments.effects)
    faults: list[Fault] = []
    for text in arguments.fault:
        fault = read(parse_fault, text)
        if fault is None:
            continue
        faults.append(fault)
        if fault.kind in impossible:
            problems.append(f"fault {text!r}: cannot happen on this kind of device")
        if robot and fault.board is not None and fault.board >= len(robot.boards):
            count = len(robot.boards)
            problems.append(f"fault {text!r}: robot {robot.name} has {count} boards, from 0")
    if problems or robot is None or effects is None:
        raise MockConfigError("the mock cannot be set up", problems)
    mock = MockRobot(
        robot,
        profile=arguments.profile,
        seed=arguments.seed,
        effects=effects,
        spread=arguments.spread,
    )
    return mock, FaultScript(faults, seed=arguments.seed, is_from_first_exchange=True)


# --- exec -----------------------------------------------------------------------------------------


def _exec(arguments: argparse.Namespace) -> int:
    command = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        say("armature: nothing to run: armature mock exec --robot laas4 -- CMD ARGS")
        return USAGE
    mock, script = _make_mock(arguments, impossible=[FaultKind.UNPLUG])
    # A short path: the name of a socket has at most 107 bytes.
    with (
        Child() as child,  # which ends with us: it must not go on without its boards
        tempfile.TemporaryDirectory(prefix="armature-") as directory,
        closing(SpiBoards(mock, script, Path(directory))) as boards,
    ):
        environment = shim_environment(Path(directory), os.environ)
        try:
            child.start(command, environment)
        except OSError as error:
            say(f"armature: cannot run {command[0]}: {error.strerror}")
            return _NOT_FOUND if error.errno == errno.ENOENT else _NOT_EXECUTABLE
        boards.run(child.is_over)
    return child.exit_code


# --- serial ---------------------------------------------------------------------------------------


def _serial(arguments: argparse.Namespace) -> int:
    mock, script = _make_mock(arguments, impossible=[FaultKind.IO_ERROR])
    if not 0 <= arguments.board < len(mock.boards):
        problem = f"{arguments.board}: robot {mock.robot.name} has {len(mock.boards)}, from 0"
        raise MockConfigError("--board", [problem])
    port = SerialPort(mock, arguments.board, script)
    # Ready to be interrupted before anybody is told that it serves.
    with _interruption() as is_interrupted:
        print(port.device, flush=True)
        say(f"serving board {mock.boards[arguments.board].name}; stop with Ctrl-C")
        port.run(is_interrupted)
    return OK


@contextmanager
def _interruption() -> Iterator[Callable[[], bool]]:
    """Whether somebody asked us to stop: how this command ends, and no error."""
    is_over = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_over
        is_over = True

    previous = {number: signal.signal(number, stop) for number in _ENDING}
    try:
        yield lambda: is_over
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


# --- truth ----------------------------------------------------------------------------------------


def _truth(arguments: argparse.Namespace) -> int:
    mock, _ = _make_mock(arguments)
    truth, effects = mock.truth, dataclasses.asdict(mock.effects)
    if arguments.json:
        print_json({**truth.as_dict(), "effects": effects})
        return OK
    print(f"mock of robot {truth.robot}, seed {truth.seed}, spread {truth.spread:g}")
    print(f"effects: {', '.join(f'{name}={size:g}' for name, size in effects.items())}")
    for joint in truth.joints:
        print(f"{joint.name}:")
        print(f"  rotor inertia  {joint.rotor_inertia_kg_m2:.4g} kg·m² (motor side)")
        print(
            f"  viscous        {joint.viscous_motor_nm_s_per_rad:.4g} N·m·s/rad (motor side),"
            f" {joint.viscous_joint_nm_s_per_rad:.4g} (joint side)"
        )
        print(
            f"  Coulomb        {joint.coulomb_motor_nm:.4g} N·m (motor side),"
            f" {joint.coulomb_joint_nm:.4g} (joint side)"
        )
        if joint.link is None:
            print(f"  load inertia   {joint.load_inertia_kg_m2:.4g} kg·m² (joint side)")
        else:
            print(f"  link mass      {joint.link.mass_kg:.4g} kg")
            moment = "  ".join(f"{part:.4g}" for part in joint.link.first_moment_kg_m)
            print(f"  first moment   {moment} kg·m (x y z)")
            inertia = msgspec.structs.astuple(joint.link.inertia_kg_m2)
            names = " ".join(joint.link.inertia_kg_m2.__struct_fields__)
            print(
                f"  link inertia   {'  '.join(f'{part:.4g}' for part in inertia)} kg·m² ({names})"
            )
    sys.stdout.flush()
    return OK
