"""`armature mock`: runs programs against mock boards behind emulated devices."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import sys

import msgspec

from daq.system.signals import ENDINGS, handled
from hw_mocks.errors import MockConfigError
from hw_mocks.faults.script import FaultKind
from hw_mocks.serial_port import SerialPort
from tools.mock.step import add_step
from tools.running.child import Child
from tools.running.emulation import emulated_boards
from tools.running.mock_options import (
    add_board_options,
    add_foreign_program_options,
    add_joint_option,
    add_mock_robot_options,
    make_mock,
)
from tools.running.options import MockOptions
from tools.shared.cli import (
    OK,
    USAGE,
    Verbs,
    add_json_option,
    add_robot_option,
    add_verb,
    print_json,
    say,
)

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""Exit codes of `exec` when the program cannot be started, as in shells and env."""
_EXEC_EXAMPLE = """\
  armature mock exec --robot laas4 --profile uomodri --fault flip:rate=0.01 -- \\
      python3 -c 'from spidev import SpiDev; s = SpiDev(0, 0); s.max_speed_hz = 8000000
print(bytes(s.xfer2([0] * 34)).hex())'"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "mock", handler=None, summary=summary, example=_EXEC_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    run = add_verb(
        actions,
        "exec",
        handler=_exec,
        summary="run any program with the robot's SPI devices present and live boards behind them",
        example=_EXEC_EXAMPLE,
    )
    _add_mock(run)
    add_board_options(run)
    add_foreign_program_options(run)
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ARGS")

    add_step(actions)

    serial = add_verb(
        actions,
        "serial",
        handler=_serial,
        summary="print a serial port with a live board behind it, and serve until interrupted",
        example="  armature mock serial --robot laas4 --joint joint3",
    )
    _add_mock(serial)
    add_board_options(serial)
    add_foreign_program_options(serial)
    serial.add_argument("--board", type=int, default=0, metavar="N", help="which board (default 0)")

    truth = add_verb(
        actions,
        "truth",
        handler=_truth,
        summary="print the true parameters of a mock robot, which a recording never describes",
        example="  armature mock truth --robot laas4 --seed 1 --json",
    )
    _add_mock(truth)
    truth.set_defaults(profile=None, fault=[])
    add_json_option(truth)


def _add_mock(parser: argparse.ArgumentParser) -> None:
    add_robot_option(parser)
    add_joint_option(parser)
    add_mock_robot_options(parser)


def _for_foreign_program(arguments: argparse.Namespace) -> MockOptions:
    options = MockOptions.from_namespace(arguments, joint=arguments.joint)
    return options.with_foreign_program(arguments)


# --- exec -----------------------------------------------------------------------------------------


def _exec(arguments: argparse.Namespace) -> int:
    command = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        say("armature: nothing to run: armature mock exec --robot laas4 -- CMD ARGS")
        return USAGE
    mock, script = make_mock(
        _for_foreign_program(arguments), impossible=[FaultKind.UNPLUG, FaultKind.SKIP]
    )
    with Child() as child, emulated_boards(mock, script) as boards:  # it ends with us
        try:
            child.start(command, boards.environment)
        except OSError as error:
            say(f"armature: cannot run {command[0]}: {error.strerror}")
            return _NOT_FOUND if error.errno == errno.ENOENT else _NOT_EXECUTABLE
        boards.serve(child.is_over)
    return child.exit_code


# --- serial ---------------------------------------------------------------------------------------


def _serial(arguments: argparse.Namespace) -> int:
    mock, script = make_mock(
        _for_foreign_program(arguments), impossible=[FaultKind.IO_ERROR, FaultKind.SKIP]
    )
    if not 0 <= arguments.board < len(mock.boards):
        problem = f"{arguments.board}: robot {mock.robot.name} has {len(mock.boards)}, from 0"
        raise MockConfigError("--board", [problem])
    port = SerialPort(mock, arguments.board, script)
    ended: list[int] = []
    # Ready to be interrupted before the port is announced.
    with handled(ENDINGS, lambda number, _: ended.append(number)):
        print(port.device, flush=True)
        say(f"serving board {mock.boards[arguments.board].name}; stop with Ctrl-C")
        port.run(lambda: bool(ended))
    return OK


# --- truth ----------------------------------------------------------------------------------------


def _truth(arguments: argparse.Namespace) -> int:
    mock, _ = make_mock(MockOptions.from_namespace(arguments, joint=arguments.joint))
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
