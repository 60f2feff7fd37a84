"""`armature robot`: what a robot file describes, and robot files from URDFs and back."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daq.errors import ConfigError
from daq.recording.text import plain
from daq.recording.whole_files import create_file
from daq.robot import Joint, Robot, load_robot, parse_robot
from estimation.errors import EstimationError
from tools.shared.cli import (
    OK,
    Verbs,
    add_json_option,
    add_verb,
    make_console,
    new_file_problems,
    print_json,
    say,
)

if TYPE_CHECKING:
    from estimation.model.base import BaseParameters

_SIZE_MAX = 5_000_000
_GRAVITY_M_S2 = (0.0, 0.0, -9.81)
"""The gravity of robot files that do not state it."""
_EXAMPLE = """\
  armature robot to-urdf laas4 --out laas4.urdf
  armature robot from-urdf laas4.urdf --out arm.toml
  armature robot show arm.toml"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "robot", handler=None, summary=summary, example=_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    show = add_verb(
        actions,
        "show",
        handler=_show,
        summary="show the joints, limits, masses and base parameters of a robot",
        example="  armature robot show laas4",
    )
    _add_robot(show)
    add_json_option(show)

    read = add_verb(
        actions,
        "from-urdf",
        handler=_from_urdf,
        summary="make a robot file, to analyse recordings with, of the chain of joints in a URDF",
        example=_EXAMPLE,
    )
    read.add_argument("urdf", type=Path, metavar="FILE.urdf", help="only this file is opened")
    read.add_argument(
        "--out", type=Path, required=True, metavar="FILE.toml", help="the robot file to write"
    )
    read.add_argument("--name", metavar="NAME", help="the robot's name; by default the URDF's")
    read.add_argument(
        "--tip", metavar="LINK", help="the chain leads there; joints elsewhere are held at 0"
    )
    read.add_argument(
        "--lock",
        action="append",
        default=[],
        metavar="JOINT=VALUE",
        help="hold this joint there (rad or m); may be repeated",
    )

    write = add_verb(
        actions,
        "to-urdf",
        handler=_to_urdf,
        summary="write a URDF of a robot whose links are known",
        example="  armature robot to-urdf laas4 --out laas4.urdf",
    )
    _add_robot(write)
    write.add_argument(
        "--out", type=Path, required=True, metavar="FILE.urdf", help="the URDF to write"
    )


def _add_robot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", metavar="NAME|FILE", help="a shipped robot or a robot file")


# --- from and to URDFs ----------------------------------------------------------------------------


def _from_urdf(arguments: argparse.Namespace) -> int:
    from estimation.urdf import robot_from_urdf

    problems = new_file_problems("--out", arguments.out, ".toml")
    lock: dict[str, float] = {}
    for text in arguments.lock:
        joint, _, value = text.rpartition("=")
        try:
            lock[joint] = float(value)
        except ValueError:
            problems.append(f"--lock {text}: expected JOINT=VALUE with a number, as in finger=0")
    if problems:
        raise ConfigError("armature robot from-urdf", problems)
    made = robot_from_urdf(
        _read(arguments.urdf),
        source=arguments.urdf.name,
        name=arguments.name,
        tip=arguments.tip,
        lock=lock,
    )
    robot = parse_robot(made.text, str(arguments.out))
    _write(arguments.out, made.text)
    for warning in made.warnings:
        say(f"armature: {plain(warning)}")
    print(f"{arguments.out}: robot {robot.name}, {_count(robot)}; {_use(robot)}")
    return OK


def _to_urdf(arguments: argparse.Namespace) -> int:
    from estimation.urdf import urdf_text

    problems = new_file_problems("--out", arguments.out)
    if problems:
        raise ConfigError("armature robot to-urdf", problems)
    robot = load_robot(arguments.robot)
    _write(arguments.out, urdf_text(robot))
    print(f"{arguments.out}: robot {robot.name}, {_count(robot)}")
    return OK


def _read(path: Path) -> str:
    try:
        # To open a pipe would take until somebody writes to it.
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ConfigError(str(path), ["not a regular file, expected a URDF"])
        with path.open("rb") as file:
            data = file.read(_SIZE_MAX + 1)
        if len(data) > _SIZE_MAX:
            raise ConfigError(str(path), [f"more than {_SIZE_MAX} bytes, expected a URDF"])
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), ["is not UTF-8 text, expected a URDF"]) from error


def _write(path: Path, text: str) -> None:
    try:
        create_file(path, text.encode())
    except OSError as error:
        raise OSError(f"{path}: cannot be written: {error.strerror}") from error


# --- show -----------------------------------------------------------------------------------------


def _show(arguments: argparse.Namespace) -> int:
    robot = load_robot(arguments.robot)
    base, problem = _find_base(robot)
    facts = _facts(robot)
    if arguments.json:
        print_json({**facts, **_base_facts(base, problem)})
        return OK
    print(f"{robot.name}: {plain(robot.description)}")
    print(f"{_count(robot)}; {_use(robot)}")
    _print_joints(facts["joints"])
    total = facts["total_mass_kg"]
    unknown = [joint["name"] for joint in facts["joints"] if joint["mass_kg"] is None]
    if total is not None:
        print(f"total mass of the links: {total:.4g} kg")
    else:
        print(f"total mass: not known ({', '.join(unknown)} without link)")
    if tuple(robot.gravity_m_s2) != _GRAVITY_M_S2:
        print(f"gravity: {', '.join(f'{part:g}' for part in robot.gravity_m_s2)} m/s²")
    if robot.coupling is not None:
        print("motors are coupled: motor angle, after its gear, by joint angles")
        for row in robot.coupling:
            print("  " + "  ".join(f"{part:g}" for part in row))
    if problem is not None:
        print(f"base parameters: {plain(problem)}")
    if base is not None:
        _print_base(base)
    return OK


def _facts(robot: Robot) -> dict[str, Any]:
    masses = [joint.link.mass_kg for joint in robot.joints if joint.link is not None]
    return {
        "robot": robot.name,
        "description": robot.description,
        "is_driven": robot.is_driven,
        "gravity_m_s2": robot.gravity_m_s2,
        "joints": [_joint_facts(robot, joint) for joint in robot.joints],
        "total_mass_kg": sum(masses) if len(masses) == len(robot.joints) else None,
        "coupling": robot.coupling,
        "estimation_terms": robot.estimation.terms,
    }


def _find_base(robot: Robot) -> tuple[BaseParameters | None, str | None]:
    """Return what is identifiable, or None and why that is not known; a bench has neither."""
    if any(joint.is_on_bench for joint in robot.joints):
        return None, None
    try:
        from estimation.model.base import find_base
        from estimation.model.regressor import Regressor

        return find_base(Regressor(robot)), None
    except ModuleNotFoundError as error:
        return None, f"needs {error.name}: pip install 'armature[estimation]'"
    except EstimationError as error:
        return None, str(error)


def _base_facts(base: BaseParameters | None, problem: str | None) -> dict[str, Any]:
    return {
        "rank": base and base.rank,
        "parameters": base and len(base.symbols),
        "base_parameters": base and [base.expression(row) for row in range(base.rank)],
        "lost": base and [base.symbols[index] for index in base.lost],
        "rounded": base and base.rounded,
        "base_parameters_problem": problem,
    }


def _joint_facts(robot: Robot, joint: Joint) -> dict[str, Any]:
    limits = joint.limits
    gear = "drive" if joint.drive else "transmission" if joint.transmission else None
    return {
        "name": joint.name,
        "kind": joint.kind,
        "position_min_rad": limits.position_min_rad,
        "position_max_rad": limits.position_max_rad,
        "velocity_max_rad_s": limits.velocity_max_rad_s,
        "acceleration_max_rad_s2": limits.acceleration_max_rad_s2,
        "torque_max_nm": limits.torque_max_nm,
        "current_max_a": limits.current_max_a if math.isfinite(limits.current_max_a) else None,
        "mass_kg": None if joint.link is None else joint.link.mass_kg,
        "moved_by": gear,
        "motor": joint.drive.motor if joint.drive else None,
        "gear_reduction": joint.gear_reduction,
        "direction": joint.direction,
        "joint_offset_rad": joint.joint_offset_rad,
        "torque_constant_nm_per_a": robot.torque_constant_nm_per_a(joint),
        "rotor_inertia_kg_m2": joint.rotor_inertia_kg_m2,
    }


def _print_joints(joints: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    columns: dict[str, list[str]] = {
        "joint": [joint["name"] for joint in joints],
        "kind": [joint["kind"] or "" for joint in joints],
        "from\nrad": [f"{joint['position_min_rad']:.4g}" for joint in joints],
        "to\nrad": [f"{joint['position_max_rad']:.4g}" for joint in joints],
        "up to\nrad/s": [f"{joint['velocity_max_rad_s']:.4g}" for joint in joints],
        "up to\nN·m": [f"{joint['torque_max_nm']:.4g}" for joint in joints],
        "mass\nkg": [
            "" if joint["mass_kg"] is None else f"{joint['mass_kg']:.4g}" for joint in joints
        ],
        "moved by": [joint["motor"] or joint["moved_by"] or "" for joint in joints],
        "gear": [
            f"{joint['direction'] * joint['gear_reduction']:g}" if joint["moved_by"] else ""
            for joint in joints
        ],
    }
    # What no joint has takes room from the names.
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = Table()
    for heading in columns:
        is_text = heading in ("joint", "kind", "moved by")
        table.add_column(
            heading,
            justify="left" if is_text else "right",
            # Joints whose names are cut cannot be distinguished.
            overflow="fold" if heading == "joint" else "ellipsis",
            no_wrap=heading == "gear",
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(escape(cell) or "–" for cell in row))
    make_console().print(table)


def _print_base(base: BaseParameters) -> None:
    """Print what is identifiable: parameters by themselves, combinations, and what is lost."""
    from rich.table import Table

    alone, combined = [], Table("parameter", "only together with")
    for row, index in enumerate(base.independent):
        symbol, expression = base.symbols[index], base.expression(row)
        if expression == symbol:
            alone.append(symbol)
        else:
            combined.add_row(symbol, expression.removeprefix(f"{symbol} "))
    console = make_console()
    print(f"{base.rank} of {len(base.symbols)} parameters are identifiable")
    if alone:
        console.print(f"{len(alone)} by themselves: {', '.join(alone)}", highlight=False)
    if combined.row_count:
        console.print(f"{combined.row_count} in combinations:", highlight=False)
        console.print(combined)
    if len(base.lost):
        names = ", ".join(base.symbols[index] for index in base.lost)
        text = f"{len(base.lost)} lost, no torque depends on them: {names}"
        console.print(text, highlight=False)
    if base.rounded:
        console.print(
            "note: not counted, as only rounded numbers seem to determine them, such as 1.5708 "
            f"for a right angle: {base.rounded}",
            highlight=False,
        )


def _count(robot: Robot) -> str:
    count = len(robot.joints)
    return f"{count} joint{'s' if count != 1 else ''}"


def _use(robot: Robot) -> str:
    return "can be driven" if robot.is_driven else "can be analysed, not driven"
