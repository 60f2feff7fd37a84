"""Which columns of foreign files are time, angles, velocities, torques, currents, and in what unit.

A mapping is written `QUANTITY=SOURCE[,SOURCE…]`, each source one of

    pos_read_data.csv          all columns of a file
    pos_read_data.csv:1-6      columns by number, counted from 1
    q_meas                     a column of that name, or all columns of an array of that name
    pos*                       all columns whose names begin so
    log.npz:q_meas:1-6         a file, an array in it, columns of that

    none                       nothing, even if there are columns of a usual name

What is not mapped is looked for by its usual names (`estimation.importing.names`): t, time, q1,
q_1, pos1, dq1, qd1, vel1, tau1, torque1, iq1, current1, …, or q_elbow, elbow_pos, position/elbow
for a joint called elbow. Columns that are named after joints are put in the robot's order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.errors import DatasetError, OptionError
from estimation.importing.columns import (
    SourceColumn,
    find_clocks,
    is_clock,
    join_clock,
    labels_of,
    select_columns,
)
from estimation.importing.files import ArrayFile
from estimation.importing.names import joint_of, meaning_of, robot_order
from estimation.types import FloatArray

QUANTITIES = ("t_s", "q_rad", "dq_rad_s", "tau_nm", "iq_a", "q_ref_rad")
_OPTIONAL = {"dq_rad_s", "iq_a", "q_ref_rad"}
NONE = "none"
"""The source of a quantity that is not to be taken."""
_TURN, _PER_MINUTE = 2.0 * math.pi, 2.0 * math.pi / 60.0
_DEGREE = math.pi / 180.0
_ANGLES = {"rad": 1.0, "deg": _DEGREE, "rev": _TURN, "turns": _TURN, "mrad": 1e-3}
_FACTOR_MIN, _FACTOR_MAX = 1e-12, 1e12
UNITS: Mapping[str, Mapping[str, float]] = {
    "t_s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "q_rad": _ANGLES,
    "dq_rad_s": {"rad/s": 1.0, "deg/s": _DEGREE, "rpm": _PER_MINUTE, "rev/s": _TURN},
    "tau_nm": {"Nm": 1.0, "mNm": 1e-3, "kNm": 1e3, "Nmm": 1e-3, "Ncm": 1e-2},
    "iq_a": {"A": 1.0, "mA": 1e-3},
    "q_ref_rad": _ANGLES,
}
"""Factors to SI; the first of each is SI."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One quantity, in SI.

    Attributes:
        values: Shape (rows, columns).
        source: Where it was found, for people.
        names: Of its columns in the file.
        unit: In the file.
        has_stated_unit: Whether someone said so, in the name or as an option.
    """

    values: FloatArray
    source: str
    names: tuple[str, ...]
    unit: str
    has_stated_unit: bool


def take(
    files: Sequence[ArrayFile],
    joints: Sequence[str],
    *,
    mapping: Mapping[str, str],
    units: Mapping[str, str],
) -> tuple[dict[str, Taken], list[str]]:
    """Take quantities out of files.

    Args:
        files: With different names.
        joints: Names of the robot's joints, in order.
        mapping: Sources by quantity; what is not among them is looked for by name.
        units: By quantity: a name of `UNITS`, or a number to multiply by.

    Returns:
        What was found, by quantity, in the order of `QUANTITIES`, and sentences about it.

    Raises:
        OptionError: A source is not there or not clear, does not have a column per joint, or a unit
            is none.
        DatasetError: The same of what was found by its name.
    """
    _check_keys("--map", mapping)
    _check_keys("--unit", units)
    given = _by_name([file for file in files if file.has_names], joints, set(mapping))
    for key, text in mapping.items():
        if text.strip() != NONE:
            given[key] = [select_columns(files, key, word.strip()) for word in text.split(",")]
    _drop_mapped(given, set(mapping))
    found, notes = _in_robot_order(given, joints, mapping)
    _check_apart(found, set(mapping))
    for key in units:
        if key not in found:
            raise OptionError(
                f"--unit {key}={units[key]}: there is no {key} by any usual name; --map {key}=… "
                "says where it is",
                code="no-such-quantity",
            )
    result = {}
    for key in QUANTITIES:
        if key in found:
            result[key] = _combined(
                key, found[key], len(joints), units.get(key), is_mapped=key in mapping
            )
    return result, notes


def _drop_mapped(given: dict[str, list[list[SourceColumn]]], mapped: set[str]) -> None:
    """Drop optional quantities found by name in columns that options map to another one."""
    labels = {column.label for key in mapped & set(given) for some in given[key] for column in some}
    for key in _OPTIONAL - mapped & set(given):
        if any(column.label in labels for some in given[key] for column in some):
            del given[key]


def _in_robot_order(
    given: Mapping[str, list[list[SourceColumn]]], joints: Sequence[str], mapping: Mapping[str, str]
) -> tuple[dict[str, list[SourceColumn]], list[str]]:
    """Columns by quantity; those of one source by the joints that they are named after."""
    found: dict[str, list[SourceColumn]] = {}
    moved: list[str] = []
    notes: list[str] = []
    for key, sources in given.items():
        columns = [column for source in sources for column in source]
        # What was listed one by one stays in that order.
        is_list = key in mapping and all(len(source) == 1 for source in sources)
        is_single = all(column.values.shape[1] == 1 for column in columns)
        places = list(range(len(columns)))
        if key != "t_s" and is_single and not is_list:
            what = f"--map {key}={mapping[key]}" if key in mapping else key
            places = robot_order([column.name for column in columns], joints, what)
        if places != sorted(places):
            moved.append(key)
        if len(places) < len(columns):
            rest = [column for place, column in enumerate(columns) if place not in places]
            notes.append(f"{key}: left out, as no joint is called so: {labels_of(rest)}")
        found[key] = [columns[place] for place in places]
        notes += _wrong_names(key, found[key], joints)
    if moved:
        notes.append(
            f"{', '.join(moved)}: the columns are named after joints and were put "
            f"in the robot's order: {', '.join(joints)}"
        )
    return found, notes


def _wrong_names(key: str, columns: Sequence[SourceColumn], joints: Sequence[str]) -> list[str]:
    """Whether columns that were listed one by one are named after other joints."""
    if key == "t_s" or len(columns) != len(joints):
        return []
    for joint, column in zip(joints, columns, strict=True):
        called = joint_of(column.name, joints)
        if called is not None and joints[called] != joint:
            return [f"{key}: joint {joint} is taken from {column.label}, as --map lists it there"]
    return []


def _check_keys(option: str, given: Mapping[str, str]) -> None:
    for key in given:
        if key not in QUANTITIES:
            raise OptionError(
                f"{option} {key}=…: expected one of {', '.join(QUANTITIES)}",
                code="unknown-quantity",
            )


def _check_apart(found: Mapping[str, list[SourceColumn]], mapped: set[str]) -> None:
    """No column may be two things; what was found by name never is."""
    seen: dict[str, str] = {}
    for key, columns in found.items():
        for column in columns:
            # A column out of an array is named after it: NAME:3.
            count = column.values.shape[1]
            labels = [column.label, *(f"{column.label}:{n + 1}" for n in range(count))]
            for label in labels[:1] if count == 1 else labels[1:]:
                if label in seen and (key in mapped or seen[label] in mapped):
                    twice = "twice" if seen[label] == key else f"and as {seen[label]}"
                    raise OptionError(
                        f"column {label} is taken as {key} {twice}: --map each column once",
                        code="mapped-twice",
                    )
                seen[label] = key


def _by_name(
    files: Sequence[ArrayFile], joints: Sequence[str], without: set[str]
) -> dict[str, list[list[SourceColumn]]]:
    """Quantities whose columns are called as usual; of each, columns that belong together."""
    found: dict[str, dict[str, list[tuple[int, SourceColumn]]]] = {}
    clocks = [] if "t_s" in without else [pair for file in files for pair in find_clocks(file)]
    parts = {part.label for pair in clocks for part in pair}
    for file in files:
        for name, values in file.fields.items():
            # An array is of all joints.
            meaning = meaning_of(name, joints if values.shape[1] == 1 else ())
            if meaning is None or meaning.key in without:
                continue
            # Named after joints, they are sorted by that later.
            place = 0 if meaning.is_joint else meaning.place
            column = SourceColumn(file, name, values, meaning.unit)
            if column.label in parts:
                continue
            found.setdefault(meaning.key, {}).setdefault(f"{file.path}:{meaning.style}", []).append(
                (place, column)
            )
    if "t_s" not in found and clocks:
        found["t_s"] = {str(n): [(0, part) for part in pair] for n, pair in enumerate(clocks)}
    result = {}
    for key, styles in found.items():
        if len(styles) > 1:
            names = [columns[0][1].label for columns in styles.values()]
            raise DatasetError(
                f"{key} might be {' or '.join(names)}: say which, as --map {key}={names[0]}",
                code="ambiguous-columns",
            )
        ((_, numbered),) = styles.items()
        numbered.sort(key=lambda pair: pair[0])
        result[key] = [[column for _, column in numbered]]
    return result


def _combined(
    key: str, columns: list[SourceColumn], joints: int, unit: str | None, *, is_mapped: bool
) -> Taken:
    wrong = OptionError if is_mapped else DatasetError
    wanted = 1 if key == "t_s" else joints
    if key == "t_s" and is_clock(columns):
        columns = [join_clock(columns)]
    rows = {len(column.values) for column in columns}
    labels = labels_of(columns)
    if len(rows) > 1:
        counts = ", ".join(str(count) for count in sorted(rows))
        raise wrong(
            f"{key} ({labels}): columns of {counts} rows do not belong together",
            code="different-rows",
        )
    values = np.hstack([column.values for column in columns])
    if values.shape[1] != wanted:
        raise wrong(
            f"{key} ({labels}): {values.shape[1]} columns, expected {wanted}"
            f"{'' if key == 't_s' else ', one per joint'}; choose them with --map {key}=…, or "
            f"leave it out with --map {key}={NONE}",
            code="number-of-columns",
        )
    stated = {column.unit for column in columns if column.unit in UNITS[key]}
    if unit is None and len(stated) > 1:
        raise wrong(f"{key} ({labels}): its columns are in different units", code="mixed-units")
    name = unit or next(iter(stated), None) or next(iter(UNITS[key]))
    with np.errstate(over="ignore"):  # infinite is not a number of ours
        values = values * _factor(key, name)
    names = tuple(column.name for column in columns)
    return Taken(values, labels, names, name, unit is not None or bool(stated))


def _factor(key: str, unit: str) -> float:
    """Return what values in a unit are multiplied by."""
    if unit in UNITS[key]:
        return UNITS[key][unit]
    try:
        factor = float(unit)
    except ValueError:
        factor = math.nan
    if not _FACTOR_MIN <= abs(factor) <= _FACTOR_MAX:
        raise OptionError(
            f"--unit {key}={unit}: expected one of {', '.join(UNITS[key])}, or a number to "
            f"multiply by, from {_FACTOR_MIN:g} to {_FACTOR_MAX:g}",
            code="unknown-unit",
        )
    return factor
