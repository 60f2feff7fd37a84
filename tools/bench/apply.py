"""Friction from the bench into a robot file, as priors: all of it or nothing, and never unasked.

What does not belong in that file is reported at once, and what was there is kept in a copy.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daq.errors import ConfigError
from daq.recording.text import plain
from daq.recording.whole_files import replace_file
from daq.robot import Friction, Robot
from daq.robot.editing.edit import with_friction
from daq.robot.reading import suggest
from estimation.bench.result import BenchResult
from estimation.errors import DatasetError
from tools.shared.cli import say


def apply_friction(
    results: Sequence[BenchResult], robot: Robot, robot_file: str, *, source: str, target: Path
) -> dict[str, Any]:
    """Write friction into a robot file; return what was done, as `--json` prints it.

    Raises:
        ConfigError: It does not belong into that file; nothing is written.
        DatasetError: There is none.
    """
    if not results:
        raise DatasetError(
            "nothing to apply: these results have no friction, only load arms", code="no-friction"
        )
    problems = list(_misfits(robot, results))
    if problems:
        raise ConfigError(source, problems)
    values = {
        result.joint: Friction(
            viscous_motor_nm_s_per_rad=result.b_eq_nms.value, coulomb_joint_nm=result.f_nm.value
        )
        for result in results
        if result.b_eq_nms and result.f_nm
    }
    for result in results:
        _warn_of_uncertainty(result)
    text = with_friction(robot_file, values, source=source)
    for result in results:
        quantities = (result.b_eq_nms, result.f_nm)
        if any(quantity and quantity.truth is not None for quantity in quantities):
            say(f"warning: {result.joint} was measured on a mock: no values of a real joint")
    if results[0].robot != robot.name:
        say(f"warning: measured on robot {plain(results[0].robot)}, applied to {robot.name}")
    is_written, backup = _replace(target, text.encode())
    old = {joint.name: joint.drive.friction for joint in robot.driven().joints}
    return {
        "file": str(target),
        "is_written": is_written,
        "backup": backup,
        "changes": [
            {"joint": joint, "key": key, "from": getattr(old[joint], key), "to": value}
            for joint, new in values.items()
            for key, value in msgspec.structs.asdict(new).items()
            if getattr(old[joint], key) != value
        ],
    }


def _warn_of_uncertainty(result: BenchResult) -> None:
    for name, quantity in (("b_eq", result.b_eq_nms), ("f", result.f_nm)):
        half = quantity.half_width if quantity else None
        if quantity and half and half > 0.5 * abs(quantity.value):
            say(
                f"armature: warning: {plain(result.joint)}: {name} is {quantity.value:.3g} ± "
                f"{half:.2g}: hardly known"
            )


def _misfits(robot: Robot, results: Sequence[BenchResult]) -> Iterator[str]:
    robots = sorted({plain(result.robot) for result in results})
    if len(robots) > 1:
        yield f"results of several robots ({', '.join(robots)}): apply those of one"
    joints = {joint.name: joint for joint in robot.joints}
    for result in results:
        name = plain(result.joint)
        joint = joints.get(result.joint)
        if joint is None or joint.drive is None:
            meant = suggest(result.joint, list(joints))
            hint = f" (did you mean {meant}?)" if meant else ""
            yield f"{name}: not in this robot, expected one of {', '.join(joints)}{hint}"
            continue
        drive, torque_max_nm = joint.drive, joint.limits.torque_max_nm
        if result.motor != drive.motor:
            yield f"{name}: measured with motor {plain(result.motor)}, expected {drive.motor}"
        if not math.isclose(result.gear_reduction, drive.gear_reduction, rel_tol=1e-6):
            yield (
                f"{name}: measured with a gear of {result.gear_reduction:g}:1, expected "
                f"{drive.gear_reduction:g}:1"
            )
        for symbol, quantity in (("b_eq", result.b_eq_nms), ("f", result.f_nm)):
            if quantity is None or quantity.value < 0:
                found = "none" if quantity is None else f"{quantity.value:g}"
                yield f"{name}: {symbol} is {found}, expected at least 0: measure again"
        if result.plateaus_rejected > result.plateaus_used:
            yield (
                f"{name}: {result.plateaus_rejected} plateaus were rejected and only "
                f"{result.plateaus_used} used: measure again"
            )
        if result.f_nm is not None and (result.f_nm.low or 0.0) <= 0.0:
            yield f"{name}: f is {result.f_nm.value:.3g} N·m and may be zero: measure again"
        elif result.f_nm is not None and result.f_nm.value > torque_max_nm:
            yield (
                f"{name}: f is {result.f_nm.value:.3g} N·m, more than the joint's torque_max_nm = "
                f"{torque_max_nm:g}: measure again"
            )


def _replace(path: Path, data: bytes) -> tuple[bool, str | None]:
    """Write a file unless it is so already; return whether, and where a copy of the old one is."""
    backup = None
    if os.path.lexists(path):
        old = path.read_bytes()
        if old == data:
            return False, None
        for number in itertools.count(1):
            backup = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
            if not os.path.lexists(backup):
                shutil.copy2(path, backup)
                break
            if backup.is_file() and backup.read_bytes() == old:
                break
    replace_file(Path(os.path.realpath(path)), data)
    return True, str(backup) if backup else None


def describe(applied: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `apply_friction` has done, line by line."""
    for change in applied["changes"]:
        yield f"{change['joint']}: {change['key']} {change['from']:g} → {change['to']:g}"
    if not applied["is_written"]:
        yield f"{applied['file']}: nothing to change"
    elif applied["backup"]:
        yield f"{applied['file']} is written; as it was: {applied['backup']}"
    else:
        yield f"{applied['file']} is written"
