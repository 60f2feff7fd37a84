"""`armature doctor`: checks whether a robot could run here, and says what to do if not."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator, Sequence

from daq.boards.probe import diagnose_board
from daq.boards.wire_limits import board_profile, board_remarks, wire_problems
from daq.errors import DaqError
from daq.links.address import LinkAddress, LinkKind, parse_link
from daq.links.device_lock import lock_holder, programs_using
from daq.robot.description import DrivenRobot
from daq.robot.load import load_robot
from daq.system.findings import Finding, Level
from daq.system.host import diagnose_host, diagnose_pi_spi
from firmware_protocol.profiles import PROFILES
from hw_mocks.errors import MockError
from tools.running.boards import open_boards
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_link_option,
    add_profile_option,
    add_robot_option,
    add_verb,
    make_console,
    print_json,
)

_STYLES = {
    Level.OK: "green",
    Level.NOTE: "cyan",
    Level.WARNING: "yellow",
    Level.PROBLEM: "bold red",
}


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "doctor",
        handler=_doctor,
        summary=summary,
        example="  armature doctor --robot laas4 --link mock\n"
        "  armature mock exec --robot laas4 -- armature doctor --robot laas4 --link spi",
    )
    add_robot_option(parser)
    add_link_option(parser)
    add_profile_option(parser, is_required=False)
    add_json_option(parser)


def _doctor(arguments: argparse.Namespace) -> int:
    address = parse_link(arguments.link)
    robot = load_robot(arguments.robot, profiles=PROFILES).driven()
    findings = list(_diagnose(robot, address, arguments.profile))
    can_run = all(finding.level is not Level.PROBLEM for finding in findings)
    if arguments.json:
        rows = [{**finding._asdict(), "level": finding.level.value} for finding in findings]
        print_json(
            {"robot": robot.name, "link": arguments.link, "can_run": can_run, "findings": rows}
        )
    else:
        _show(robot, arguments.link, findings, can_run=can_run)
    return OK if can_run else FAILED


def _diagnose(robot: DrivenRobot, address: LinkAddress, profile: str | None) -> Iterator[Finding]:
    boards, joints = _counted(robot.boards, "board"), _counted(robot.joints, "joint")
    yield Finding(Level.OK, "robot file", f"{robot.name}: {joints}, {boards}")
    problems = wire_problems(robot, profile=profile)
    for problem in problems:
        yield Finding(Level.PROBLEM, "robot file", problem, "change the robot file")
    for remark in [] if problems else board_remarks(robot, profile=profile):
        fix = "lower the limit, or expect less torque"
        yield Finding(Level.WARNING, "robot file", remark, fix)
    yield _torque_model(robot)
    if address.kind is LinkKind.SERIAL and len(robot.boards) > 1:
        text = f"{robot.name} has {boards}; a serial port carries one"
        yield Finding(Level.PROBLEM, "link", text, "use --link spi, or a robot file of one board")
    yield from diagnose_host()
    if address.kind is LinkKind.SPI:
        yield from diagnose_pi_spi(robot)
    devices = list(_devices(robot, address))
    yield from devices
    if all(finding.level is not Level.PROBLEM for finding in devices):
        yield from _boards(robot, address, profile)


def _torque_model(robot: DrivenRobot) -> Finding:
    """Say whether plans know what torques the robot takes."""
    if all(joint.is_on_bench for joint in robot.joints):
        return Finding(Level.OK, "torque model", "joints on the bench carry nothing")
    without = [joint.name for joint in robot.joints if joint.link is None]
    if without:
        text = f"{', '.join(without)}: no link in the robot file, so plans do not know its torque"
        fix = "only the current limit counts: keep accelerations low, or add the links"
        return Finding(Level.WARNING, "torque model", text, fix)
    if importlib.util.find_spec("pinocchio") is None:
        text = "Python package pin is missing, so plans do not know what torque a motion takes"
        fix = "only the current limit counts: pip install '.[control]' in armature's folder"
        return Finding(Level.WARNING, "torque model", text, fix)
    return Finding(
        Level.OK, "torque model", "links and Pinocchio: plans keep to the motors' torque"
    )


def _counted(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'s' if len(things) != 1 else ''}"


def _devices(robot: DrivenRobot, address: LinkAddress) -> Iterator[Finding]:
    """Check nodes, permissions and holders before anything is opened."""
    if address.kind is LinkKind.MOCK:
        yield Finding(Level.NOTE, "devices", "mock boards in this process: no device is needed")
        return
    package = {LinkKind.SPI: "spidev", LinkKind.SERIAL: "serial"}[address.kind]
    if importlib.util.find_spec(package) is None:
        yield Finding(
            Level.PROBLEM,
            "devices",
            f"Python package {package} is missing",
            "pip install '.[robot]' in armature's folder",
        )
    is_spi = address.kind is LinkKind.SPI
    names = [port.spi.device for port in robot.boards] if is_spi else [address.device]
    for name in names:
        yield _device(name, is_spi=is_spi)


def _device(name: str, *, is_spi: bool) -> Finding:
    group = "spi" if is_spi else "dialout"
    if not os.path.exists(name):
        return Finding(
            Level.PROBLEM,
            name,
            "no such device",
            "enable SPI (dtparam=spi=on in config.txt) and reboot; without hardware run under "
            "`armature mock exec`"
            if is_spi
            else "plug the adapter in; `ls /dev/ttyUSB* /dev/ttyACM*` shows what there is",
        )
    if not os.access(name, os.R_OK | os.W_OK):
        return Finding(
            Level.PROBLEM,
            name,
            "this user may not read and write it",
            f"sudo usermod -aG {group} $USER, then log in again",
        )
    try:
        holder = lock_holder(name) if is_spi else None
        # The far end of a pseudo-terminal is always open, in the program that made it.
        users = [] if name.startswith("/dev/pts/") else programs_using(name)
    except OSError as error:
        fix = f"look at {error.filename} and remove it" if error.filename else "try again"
        return Finding(Level.PROBLEM, name, f"cannot see who holds it: {error.strerror}", fix)
    if holder:
        return Finding(Level.PROBLEM, name, f"in use by {holder}", "stop that program first")
    if users:
        text = f"also open in {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}"
        return Finding(Level.WARNING, name, text, "stop it: two programs confuse a board")
    return Finding(Level.OK, name, "present, permitted, free")


def _boards(robot: DrivenRobot, address: LinkAddress, profile: str | None) -> Iterator[Finding]:
    try:
        with open_boards(robot, address, profile=profile) as opened:
            for port, board in zip(robot.boards, opened.boards, strict=True):
                yield from diagnose_board(
                    port.name,
                    board_profile(port, profile),
                    board.link,
                    now_ns=opened.now_ns,
                    sleep_until_ns=opened.sleep_until_ns,
                )
    except (DaqError, MockError) as error:
        yield Finding(Level.PROBLEM, "boards", str(error), "fix that, then run doctor again")


def _show(robot: DrivenRobot, link: str, findings: list[Finding], *, can_run: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"Robot {escape(robot.name)} on link {escape(link)}", show_lines=False)
    table.add_column("")
    table.add_column("what")
    table.add_column("found, and what to do")
    for finding in findings:
        text = escape(finding.text) + (f"\n→ {escape(finding.fix)}" if finding.fix else "")
        style = _STYLES[finding.level]
        table.add_row(f"[{style}]{finding.level.value}[/]", escape(finding.subject), text)
    console = make_console()
    console.print(table)
    verdict = "[green]the robot can run[/]" if can_run else "[bold red]the robot cannot run[/]"
    console.print(verdict)
