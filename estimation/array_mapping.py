"""Which columns of foreign files are time, angles, velocities, torques, currents, and in what unit.

A mapping is written `QUANTITY=SOURCE[,SOURCE…]`, each source one of

    pos_read_data.csv          all columns of a file
    pos_read_data.csv:1-6      columns by number, counted from 1
    q_meas                     a column of that name, or all columns of an array of that name
    pos*                       all columns whose names begin so
    log.npz:q_meas:1-6         a file, an array in it, columns of that

What is not mapped is looked for by its usual names: t, time, q1, q_1, pos1, dq1, qd1, vel1, tau1,
torque1, iq1, current1, …, or q_shoulder for a joint called shoulder.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.array_files import ArrayFile, FloatArray
from estimation.column_names import describe
from estimation.errors import DatasetError

QUANTITIES = ("t_s", "q_rad", "dq_rad_s", "tau_nm", "iq_a", "q_ref_rad")
_TURN, _PER_MINUTE = 2.0 * math.pi, 2.0 * math.pi / 60.0
_DEGREE = math.pi / 180.0
_ANGLES = {"rad": 1.0, "deg": _DEGREE, "rev": _TURN, "turns": _TURN, "mrad": 1e-3}
UNITS: Mapping[str, Mapping[str, float]] = {
    "t_s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "q_rad": _ANGLES,
    "dq_rad_s": {"rad/s": 1.0, "deg/s": _DEGREE, "rpm": _PER_MINUTE, "rev/s": _TURN},
    "tau_nm": {"Nm": 1.0, "mNm": 1e-3, "kNm": 1e3, "Nmm": 1e-3, "Ncm": 1e-2},
    "iq_a": {"A": 1.0, "mA": 1e-3},
    "q_ref_rad": _ANGLES,
}
"""Factors to SI; the first of each is SI."""
_NAMES = {
    "t_s": "t time timestamp timestamps seconds",
    "q_rad": "q pos position positions q_meas q_measured qm joint_pos joint_position angle angles "
    "theta joint_positions actual_q",
    "dq_rad_s": "dq qd qdot q_dot dq_meas vel velocity velocities speed omega joint_vel "
    "joint_velocity joint_velocities dqm actual_qd",
    "tau_nm": "tau torque torques effort efforts trq tau_meas tau_measured joint_torque "
    "joint_torques taum tau_j",
    "iq_a": "iq i current currents curr cur motor_current motor_currents actual_current",
    "q_ref_rad": "q_ref qref q_des q_desired q_cmd pos_ref position_ref ref_position "
    "reference_position pos_des q_d target_q",
}
"""Among them what UR's RTDE (actual_q_0, …) and libfranka (q1, tau_J1, q_d1, …) write."""
_QUANTITY_OF = {name: key for key, names in _NAMES.items() for name in names.split()}
_UNIT_SUFFIXES = {
    "rad": "rad",
    "deg": "deg",
    "rad_s": "rad/s",
    "deg_s": "deg/s",
    "rpm": "rpm",
    "nm": "Nm",
    "mnm": "mNm",
    "a": "A",
    "ma": "mA",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
}
_NAME = re.compile(r"^(?P<name>[a-z_]*?[a-z])_?(?P<number>\d{0,3})$")
_RANGE = re.compile(r"^(\d{1,6})(?:-(\d{1,6}))?$")


@dataclass(frozen=True, slots=True)
class Taken:
    """One quantity, in SI.

    Attributes:
        values: Shape (rows, columns).
        source: Where it was found, for people.
        unit: In the file.
        has_stated_unit: Whether someone said so, in the name or as an option.
    """

    values: FloatArray
    source: str
    unit: str
    has_stated_unit: bool


@dataclass(frozen=True, slots=True)
class _Column:
    file: ArrayFile
    name: str
    values: FloatArray
    unit: str | None = None

    @property
    def label(self) -> str:
        return f"{self.file.path.name}:{self.name}"


def take(
    files: Sequence[ArrayFile],
    joints: Sequence[str],
    *,
    mapping: Mapping[str, str],
    units: Mapping[str, str],
) -> dict[str, Taken]:
    """Take quantities out of files.

    Args:
        files: With different names.
        joints: Names of the robot's joints, in order.
        mapping: Sources by quantity; what is not among them is looked for by name.
        units: By quantity: a name of `UNITS`, or a number to multiply by.

    Returns:
        What was found, by quantity, in the order of `QUANTITIES`.

    Raises:
        DatasetError: A source is not there or not clear, or does not have a column per joint.
    """
    _check_keys("--map", mapping)
    _check_keys("--unit", units)
    found = _by_name([file for file in files if file.has_names], joints, set(mapping))
    for key, text in mapping.items():
        found[key] = [
            column for word in text.split(",") for column in _select(files, key, word.strip())
        ]
    _check_apart(found, set(mapping))
    for key in units:
        if key not in found:
            raise DatasetError(
                f"--unit {key}={units[key]}: there is no {key} by any usual name; --map {key}=… "
                "says where it is"
            )
    result = {}
    for key in QUANTITIES:
        if key in found:
            result[key] = _combined(key, found[key], len(joints), units.get(key))
    return result


def _check_keys(option: str, given: Mapping[str, str]) -> None:
    for key in given:
        if key not in QUANTITIES:
            raise DatasetError(f"{option} {key}=…: expected one of {', '.join(QUANTITIES)}")


def _check_apart(found: Mapping[str, list[_Column]], mapped: set[str]) -> None:
    """No column may be two things; what was found by name never is."""
    seen: dict[str, str] = {}
    for key, columns in found.items():
        for column in columns:
            # A column out of an array is called after it: NAME:3.
            count = column.values.shape[1]
            labels = [column.label, *(f"{column.label}:{n + 1}" for n in range(count))]
            for label in labels[:1] if count == 1 else labels[1:]:
                if label in seen and (key in mapped or seen[label] in mapped):
                    twice = "twice" if seen[label] == key else f"and as {seen[label]}"
                    raise DatasetError(
                        f"column {label} is taken as {key} {twice}: --map each column once"
                    )
                seen[label] = key


def _select(files: Sequence[ArrayFile], key: str, text: str) -> list[_Column]:
    """The columns that one source names."""
    head, *rest = text.split(":")
    named = [file for file in files if head in (file.path.name, file.path.stem)]
    if named:
        words = rest
        if len(named) > 1:
            raise DatasetError(f"--map {key}={text}: several files are called so")
    else:
        words = [head, *rest]
        if len(files) > 1 and _RANGE.match(head):
            raise DatasetError(
                f"--map {key}={text}: columns of which file? as {files[0].path.name}:{head}"
            )
    chosen = [
        _Column(file, name, values)
        for file in named or files
        for name, values in file.fields.items()
    ]
    for word in words:
        chosen = _narrowed(chosen, word)
    if not chosen:
        raise DatasetError(f"--map {key}={text}: there is no such column; {describe(files)}")
    return chosen


def _narrowed(columns: list[_Column], word: str) -> list[_Column]:
    """Those of a name or pattern, or with certain numbers."""
    by_name = [column for column in columns if column.name == word]
    if by_name:
        return by_name
    if "*" in word or "?" in word:
        return [column for column in columns if fnmatch.fnmatchcase(column.name, word)]
    numbers = _RANGE.match(word)
    if not numbers:
        return []
    single = [
        _Column(column.file, f"{column.name}:{place + 1}", column.values[:, place : place + 1])
        if column.values.shape[1] > 1
        else column
        for column in columns
        for place in range(column.values.shape[1])
    ]
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    return single[first - 1 : last] if 1 <= first <= last <= len(single) else []


def _by_name(
    files: Sequence[ArrayFile], joints: Sequence[str], without: set[str]
) -> dict[str, list[_Column]]:
    """Quantities whose columns are called as usual."""
    found: dict[str, dict[str, list[tuple[int, _Column]]]] = {}
    for file in files:
        for name, values in file.fields.items():
            meaning = _meaning(name, joints)
            if meaning is None or meaning[0] in without:
                continue
            key, style, number, unit = meaning
            column = _Column(file, name, values, unit)
            found.setdefault(key, {}).setdefault(f"{file.path}:{style}", []).append(
                (number, column)
            )
    result = {}
    for key, styles in found.items():
        if len(styles) > 1:
            names = [columns[0][1].label for columns in styles.values()]
            raise DatasetError(
                f"{key} might be {' or '.join(names)}: say which, as --map {key}={names[0]}"
            )
        ((_, numbered),) = styles.items()
        numbered.sort(key=lambda pair: pair[0])
        result[key] = [column for _, column in numbered]
    return result


def _meaning(name: str, joints: Sequence[str]) -> tuple[str, str, int, str | None] | None:
    """Quantity, style of the name, number of the joint and unit; None for another thing."""
    plain = re.sub(r"[\s.]+", "_", name.strip().rpartition(".")[2].lower())
    unit = None
    bracket = re.match(r"^(.*?)_?[\[(]([^\])]*)[\])]$", plain)
    if bracket and not bracket[2].isdigit():
        plain, unit = bracket[1], _UNIT_SUFFIXES.get(bracket[2].replace("/", "_"))
    else:
        plain = re.sub(r"[\[(](\d+)[\])]", r"\1", plain)
        for suffix in sorted(_UNIT_SUFFIXES, key=len, reverse=True):
            if plain.endswith(f"_{suffix}"):
                plain, unit = plain.removesuffix(f"_{suffix}"), _UNIT_SUFFIXES[suffix]
                break
    for number, joint in enumerate(joints):
        if plain.endswith(f"_{joint.lower()}"):
            stem = plain.removesuffix(f"_{joint.lower()}")
            if stem in _QUANTITY_OF:
                return _QUANTITY_OF[stem], stem, number, unit
    parts = _NAME.match(plain)
    if parts is None or parts["name"] not in _QUANTITY_OF:
        return None
    return _QUANTITY_OF[parts["name"]], parts["name"], int(parts["number"] or 0), unit


def _labels(columns: list[_Column]) -> str:
    """Where columns are from: file by file, the first and the last of each."""
    texts = []
    for _, group in itertools.groupby(columns, key=lambda column: column.file.path):
        of_file = list(group)
        more = f" … {of_file[-1].name}" if len(of_file) > 1 else ""
        texts.append(of_file[0].label + more)
    return ", ".join(texts)


def _combined(key: str, columns: list[_Column], joints: int, unit: str | None) -> Taken:
    wanted = 1 if key == "t_s" else joints
    rows = {len(column.values) for column in columns}
    labels = _labels(columns)
    if len(rows) > 1:
        counts = ", ".join(str(count) for count in sorted(rows))
        raise DatasetError(f"{key} ({labels}): columns of {counts} rows do not belong together")
    values = np.hstack([column.values for column in columns])
    if values.shape[1] != wanted:
        raise DatasetError(
            f"{key} ({labels}): {values.shape[1]} columns, expected {wanted}, one per joint; "
            f"choose them with --map {key}=…"
        )
    stated = {column.unit for column in columns if column.unit in UNITS[key]}
    if unit is None and len(stated) > 1:
        raise DatasetError(f"{key} ({labels}): its columns are in different units")
    name = unit or next(iter(stated), None) or next(iter(UNITS[key]))
    factor = UNITS[key].get(name)
    if factor is None:
        try:
            factor = float(name)
        except ValueError:
            factor = math.nan
        if not math.isfinite(factor) or not factor:
            known = ", ".join(UNITS[key])
            raise DatasetError(
                f"--unit {key}={name}: expected one of {known}, or a number to multiply by"
            )
    with np.errstate(over="ignore"):  # infinite is no number of ours
        values = values * factor
    return Taken(values, labels, name, unit is not None or bool(stated))
