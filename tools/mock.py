"""`armature mock`: hardware that is not there, for programs that believe it is."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daq.robot.load import load_robot
from hw_mocks.effects import parse_effects
from hw_mocks.errors import MockConfigError
from hw_mocks.faults import FaultKind, FaultScript, parse_fault
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_port import SerialPort
from hw_mocks.spi_boards import SpiBoards
from hw_mocks.spidev_shim import shim_environment
from tools.cli import (
    FAILED,
    OK,
    USAGE,
    add_json_option,
    add_profile_option,
    add_robot_option,
    add_verb,
    print_json,
    say,
)

_EXEC_EXAMPLE = """\
  armature mock exec --robot laas4 --profile uomodri --fault flip:rate=0.01 -- \\
      python3 -c 'import spidev; s = spidev.SpiDev(); s.open(0, 0); print(s.xfer2([0] * 34))'"""
_FAULT_HELP = (
    "KIND:key=value,… with KIND one of "
    + ", ".join(kind.value for kind in FaultKind)
    + "; keys: rate (per exchange) or at (seconds), for (seconds), board (0, 1, …), "
    "direction (flip: command or reply), code (board-error). May be repeated"
)


def add_to(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "mock",
        handler=None,
        summary="run programs against mock boards",
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
    _add_mock_options(run)
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ARGS")

    serial = add_verb(
        actions,
        "serial",
        handler=_serial,
        summary="print a serial port with a live board behind it, and serve until interrupted",
        example="  armature mock serial --robot bench1",
    )
    _add_mock_options(serial)
    serial.add_argument("--board", type=int, default=0, metavar="N", help="which board (default 0)")

    truth = add_verb(
        actions,
        "truth",
        handler=_truth,
        summary="print the true parameters of a mock robot, which a recording never describes",
        example="  armature mock truth --robot laas4 --seed 1 --json",
    )
    _add_mock_options(truth)
    add_json_option(truth)


def _add_mock_options(parser: argparse.ArgumentParser) -> None:
    add_robot_option(parser)
    add_profile_option(parser, is_required=False)
    parser.add_argument("--fault", action="append", default=[], metavar="FAULT", help=_FAULT_HELP)
    parser.add_argument(
        "--effects",
        default="default",
        metavar="EFFECTS",
        help="none, default or troubles, then changes: default,backlash_rad=0.003,iq_noise_a=0",
    )
    parser.add_argument("--seed", type=int, default=0, help="everything random follows from it")
    parser.add_argument(
        "--spread",
        type=float,
        default=0.25,
        help="how far the true parameters are from the robot file's CAD values (default 0.25)",
    )


def _make_mock(arguments: argparse.Namespace) -> tuple[MockRobot, FaultScript]:
    if arguments.seed < 0:
        raise MockConfigError("--seed", [f"{arguments.seed}: must not be negative"])
    robot = load_robot(arguments.robot)
    faults = [parse_fault(text) for text in arguments.fault]
    for fault, text in zip(faults, arguments.fault, strict=True):
        if fault.board is not None and fault.board >= len(robot.boards):
            problem = f"board={fault.board}: robot {robot.name} has {len(robot.boards)}, from 0"
            raise MockConfigError(f"--fault {text}", [problem])
    mock = MockRobot(
        robot,
        profile=arguments.profile,
        seed=arguments.seed,
        effects=parse_effects(arguments.effects),
        spread=arguments.spread,
    )
    return mock, FaultScript(faults, seed=arguments.seed)


# --- exec -----------------------------------------------------------------------------------------


def _exec(arguments: argparse.Namespace) -> int:
    command = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        say("armature: nothing to run: armature mock exec --robot laas4 -- CMD ARGS")
        return USAGE
    mock, script = _make_mock(arguments)
    # A short path: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="armature-") as directory:
        boards = SpiBoards(mock, script, Path(directory))
        environment = shim_environment(Path(directory), os.environ)
        try:
            child = subprocess.Popen(command, env=environment)
        except OSError as error:
            say(f"armature: cannot run {command[0]}: {error.strerror}")
            return FAILED
        # The child decides what an interrupt means; it gets it from the terminal too.
        with _signals_to(child):
            boards.run(lambda: child.poll() is not None)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


@contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    def forward(number: int, _frame: object) -> None:
        child.send_signal(number)

    previous = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, forward),
        signal.SIGHUP: signal.signal(signal.SIGHUP, forward),
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


# --- serial ---------------------------------------------------------------------------------------


def _serial(arguments: argparse.Namespace) -> int:
    mock, script = _make_mock(arguments)
    if not 0 <= arguments.board < len(mock.boards):
        problem = f"{arguments.board}: robot {mock.robot.name} has {len(mock.boards)}, from 0"
        raise MockConfigError("--board", [problem])
    port = SerialPort(mock, arguments.board, script)
    print(port.device, flush=True)
    say(f"serving board {mock.boards[arguments.board].name}; stop with Ctrl-C")
    port.run(_interrupted())
    return OK


def _interrupted() -> Callable[[], bool]:
    """Whether somebody asked us to stop: how this command ends, and no error."""
    is_over = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_over
        is_over = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    return lambda: is_over


# --- truth ----------------------------------------------------------------------------------------


def _truth(arguments: argparse.Namespace) -> int:
    mock, _ = _make_mock(arguments)
    if arguments.json:
        print_json(mock.truth.as_dict())
        return OK
    for joint in mock.truth.joints:
        print(f"{joint.name}:")
        print(f"  rotor inertia  {joint.rotor_inertia_kg_m2:.4g} kg·m² (motor side)")
        print(f"  viscous        {joint.viscous_motor_nm_s_per_rad:.4g} N·m·s/rad (motor side)")
        print(f"  Coulomb        {joint.coulomb_joint_nm:.4g} N·m (joint side)")
        if joint.link is None:
            print(f"  load inertia   {joint.load_inertia_kg_m2:.4g} kg·m² (joint side)")
        else:
            print(f"  link mass      {joint.link.mass_kg:.4g} kg")
            moment = "  ".join(f"{part:.4g}" for part in joint.link.first_moment_kg_m)
            print(f"  first moment   {moment} kg·m")
    sys.stdout.flush()
    return OK
