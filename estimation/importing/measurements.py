"""Foreign measurements as one robot's joint-side arrays: sides, time, torque from current, checks.

Motor-side data become joint-side by the robot file: with M = diag(reduction · direction) · C, C its
coupling matrix, motor angles are p = M·(q - offset) and joint torques τ = Mᵀ·c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daq.recording.tables.arrays import VALUE_MAX
from daq.robot import Robot
from estimation.errors import DatasetError, OptionError
from estimation.importing.checks import check_names, check_ranges, check_velocity
from estimation.importing.even_rows import ROWS_MIN, make_even
from estimation.importing.files import ArrayFile
from estimation.importing.hints import list_columns, suggest_map
from estimation.importing.mapping import NONE, Taken, take
from estimation.importing.sampling import Sampling
from estimation.recordings.spikes import only_numbers
from estimation.types import Flags, FloatArray

Side = Literal["joint", "motor"]

INVALID_MAX = 0.5
"""Share of the rows that may have no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the files do not say themselves.

    Attributes:
        mapping: Sources by quantity, see `estimation.importing.mapping`.
        units: By quantity.
        side: Which side of the gears positions, velocities and torques are of.
        rate_hz: Samples per second; None to take it from the times.
        rows: First row and the one after the last, None for all.
        is_resampled: Whether to interpolate linearly to a constant rate.
    """

    mapping: Mapping[str, str]
    units: Mapping[str, str]
    side: Side = "joint"
    rate_hz: float | None = None
    rows: tuple[int, int | None] = (0, None)
    is_resampled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What was measured, at the joints; arrays of shape (n, joints), NaN where nothing is known.

    Attributes:
        sampling: When.
        q_rad: Joint angles.
        dq_rad_s: Joint velocities; None where the files have none.
        tau_nm: Torques at the joints.
        iq_a: Motor currents; None where the files have none.
        q_ref_rad: Commanded joint angles; None where the files have none.
        valid: Rows in which angle, velocity and torque of a joint are numbers.
        taken: Where each quantity was found.
        notes: What is odd, or was decided.
    """

    sampling: Sampling
    q_rad: FloatArray
    dq_rad_s: FloatArray | None
    tau_nm: FloatArray
    iq_a: FloatArray | None
    q_ref_rad: FloatArray | None
    valid: Flags
    taken: Mapping[str, Taken]
    notes: tuple[str, ...]


def measure(files: Sequence[ArrayFile], robot: Robot, options: ImportOptions) -> Measurements:
    """Make measurements of a robot out of files.

    Raises:
        OptionError: An option cannot be followed with these files.
        DatasetError: Something is missing, or cannot be what it is said to be.
    """
    names = [joint.name for joint in robot.joints]
    if options.side == "motor":
        _check_gears(robot)
    taken, notes = take(files, names, mapping=options.mapping, units=options.units)
    _check_complete(files, taken, options, len(names))
    notes += _lost_velocities(files, taken, options, len(names))
    if "tau_nm" in options.mapping and "tau_nm" in taken:
        notes += check_names(taken["tau_nm"], options.mapping["tau_nm"])
    rows = {len(one.values) for one in taken.values()}
    if len(rows) > 1:
        counts = ", ".join(f"{key} {len(one.values)}" for key, one in taken.items())
        raise DatasetError(
            f"the quantities have different numbers of rows: {counts}", code="different-rows"
        )
    values = {key: _numbers(key, one.values[slice(*options.rows)]) for key, one in taken.items()}
    count = len(values["q_rad"])
    if count < ROWS_MIN:
        all_rows = len(taken["q_rad"].values)
        wrong = OptionError if all_rows >= ROWS_MIN else DatasetError
        raise wrong(
            f"{count} rows, expected at least {ROWS_MIN}; --rows chooses them out of {all_rows}",
            code="few-rows",
        )
    try:
        sampling, values, said = make_even(
            values, names, rate_hz=options.rate_hz, is_resampled=options.is_resampled
        )
    except DatasetError as error:
        where = f"{taken['t_s'].source}: " if "t_s" in taken else ""
        raise type(error)(f"{where}{error}", code=error.code) from error
    notes += said
    to_motor = motor_matrix(robot)
    if options.side == "motor":
        _to_joint_side(values, robot, to_motor)
    if "tau_nm" not in values:
        values["tau_nm"] = _torque(values["iq_a"], robot)
    q_rad, tau_nm, dq_rad_s = values["q_rad"], values["tau_nm"], values.get("dq_rad_s")
    valid = np.isfinite(q_rad) & np.isfinite(tau_nm)
    if dq_rad_s is not None:
        valid &= np.isfinite(dq_rad_s)
    said = _check_valid(valid, taken, options)
    if dq_rad_s is not None:
        notes += check_velocity(q_rad, dq_rad_s, sampling.times_s)
    notes += check_ranges(robot, q_rad, tau_nm, sampling.times_s) + said
    return Measurements(
        sampling=sampling,
        q_rad=q_rad,
        dq_rad_s=dq_rad_s,
        tau_nm=tau_nm,
        iq_a=values.get("iq_a"),
        q_ref_rad=values.get("q_ref_rad"),
        valid=valid,
        taken=taken,
        notes=tuple(notes),
    )


def motor_matrix(robot: Robot) -> FloatArray:
    """M = diag(reduction · direction) · C, shape (joints, joints): motor speeds by joint speeds.

    Raises:
        DatasetError: It cannot be inverted.
    """
    gears = np.array([joint.motor_per_joint for joint in robot.joints])
    matrix: FloatArray = gears[:, np.newaxis] * np.array(robot.coupling_matrix, np.float64)
    if not np.linalg.cond(matrix) < 1e12:
        raise DatasetError(
            f"robot {robot.name}: its coupling matrix cannot be inverted: motor angles do not "
            "determine joint angles",
            code="singular-coupling",
        )
    return matrix


def _check_gears(robot: Robot) -> None:
    without = [j.name for j in robot.joints if j.drive is None and j.transmission is None]
    if without:
        raise DatasetError(
            f"--side motor: robot {robot.name} states no gear of {', '.join(without)}; write "
            "[joints.transmission] and gear_reduction = 100.0 behind each of these joints in its "
            "robot file, with the motor's turns per turn of the joint (1.0 without a gear), and "
            "direction = -1 where motor and joint turn opposite ways",
            code="no-gear",
        )


def _lost_velocities(
    files: Sequence[ArrayFile], taken: Mapping[str, Taken], options: ImportOptions, joints: int
) -> list[str]:
    if "dq_rad_s" in taken or "dq_rad_s" in options.mapping:
        return []
    hint = suggest_map(files, ["dq_rad_s"], joints, has_example=False)
    return [f"no velocities were taken; if there are some: {hint}"] if hint else []


def _check_complete(
    files: Sequence[ArrayFile], taken: Mapping[str, Taken], options: ImportOptions, joints: int
) -> None:
    missing = {} if "q_rad" in taken else {"q_rad": "q_rad (positions)"}
    if "tau_nm" not in taken and "iq_a" not in taken:
        missing["tau_nm"] = "tau_nm (torques) or iq_a (currents)"
    if missing:
        keys = list(missing)
        if "dq_rad_s" not in taken:
            keys.append("dq_rad_s")
        if "t_s" not in taken and options.rate_hz is None:
            keys.append("t_s")
        raise DatasetError(
            f"there is no {' and no '.join(missing.values())} by any usual name; "
            f"{list_columns(files)}; say which columns they are, as "
            f"{suggest_map(files, keys, joints)}",
            code="no-such-quantity",
        )
    if "t_s" not in taken and options.rate_hz is None:
        if options.mapping.get("t_s") == NONE:
            raise OptionError(
                "--map t_s=none leaves the times out: say how many samples there are per second, "
                "as --rate 1000",
                code="no-times",
            )
        raise DatasetError(
            f"there is no t_s (time) by any usual name; {list_columns(files)}; say which column it "
            f"is, as {suggest_map(files, ['t_s'], joints)}, or how many samples there are per "
            "second, as --rate 1000",
            code="no-times",
        )


def _numbers(key: str, values: FloatArray) -> FloatArray:
    """NaN for whatever is not a sensible number; times, which may count from 1970, from 0 on."""
    if key == "t_s":
        known = values[np.isfinite(values)]
        with np.errstate(over="ignore"):
            return values - known[0] if known.size else values
    return only_numbers(values)


def _check_valid(valid: Flags, taken: Mapping[str, Taken], options: ImportOptions) -> list[str]:
    bad, count = int(np.count_nonzero(~valid.all(axis=1))), len(valid)
    if bad > INVALID_MAX * count:
        many = "no row has" if bad == count else f"{bad} of {count} rows lack"
        raise DatasetError(
            f"{many} a position and a torque of every joint: {_lacking(taken, options)}",
            code="few-rows",
        )
    if not bad:
        return []
    limit = f"{VALUE_MAX:g}"
    return [f"{bad} of {count} rows have values that are not numbers, or beyond {limit}: not valid"]


def _lacking(taken: Mapping[str, Taken], options: ImportOptions) -> str:
    """Why rows cannot be used, by quantity."""
    reasons = []
    for key in ("q_rad", "dq_rad_s", "tau_nm", "iq_a"):
        if key not in taken:
            continue
        values = np.abs(taken[key].values[slice(*options.rows)])
        largest = float(values.max(initial=0.0, where=np.isfinite(values)))
        is_number = np.isfinite(values)
        if largest > VALUE_MAX:
            reasons.append(
                f"{key} ({taken[key].source}) reaches {largest:.3g}, limit {VALUE_MAX:g}"
            )
        if not is_number.all():
            missing = np.count_nonzero(~is_number)
            reasons.append(
                f"{key} ({taken[key].source}): {missing} of {values.size} values are not numbers"
            )
    return "; ".join(reasons)


def _to_joint_side(values: dict[str, FloatArray], robot: Robot, to_motor: FloatArray) -> None:
    to_joint = np.linalg.inv(to_motor).T
    offsets = np.array([joint.joint_offset_rad for joint in robot.joints])
    for key in ("q_rad", "q_ref_rad"):
        if key in values:
            values[key] = values[key] @ to_joint + offsets
    if "dq_rad_s" in values:
        values["dq_rad_s"] = values["dq_rad_s"] @ to_joint
    if "tau_nm" in values:
        values["tau_nm"] = values["tau_nm"] @ to_motor


def _torque(iq_a: FloatArray, robot: Robot) -> FloatArray:
    """Cᵀ·diag(K_i·N·η)·iq: currents are the motors' own on either side."""
    constants = []
    for joint in robot.joints:
        nm_per_a = robot.nm_per_a(joint)
        if nm_per_a is None:
            raise DatasetError(
                f"robot {robot.name}: joint {joint.name} has no torque constant, so that its "
                "current gives no torque: add transmission.torque_constant_nm_per_a to its robot "
                "file, or import torques (tau_nm)",
                code="no-torque-constant",
            )
        constants.append(nm_per_a)
    result: FloatArray = (iq_a * np.array(constants)) @ np.array(robot.coupling_matrix)
    return result
