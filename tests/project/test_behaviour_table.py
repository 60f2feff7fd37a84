"""`tests/BEHAVIOUR.md`: what boards do, line by line, with the data that says it and its tests."""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from firmware_protocol.behaviour import Behaviour, Calibration

PROJECT = Path(__file__).parents[2]
TABLE = PROJECT / "tests" / "BEHAVIOUR.md"
NOT_MODELLED = re.compile(r"not modelled: \S.{20,}", re.DOTALL)
PIN = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FIELD = re.compile(r"`(?:(calibration)\.)?(\w+)`")


class Row(NamedTuple):
    """One line of the table."""

    name: str
    line: str
    data: str
    pins: str


def rows() -> list[Row]:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TABLE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [A-Z]\d", line)
    ]
    assert all(len(row) == 4 for row in cells), [row for row in cells if len(row) != 4]
    return [Row(*row) for row in cells]


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_row_has_a_name_of_its_own() -> None:
    names = [row.name for row in rows()]
    assert len(names) > 30
    assert len(set(names)) == len(names)


def test_every_row_is_pinned_or_says_why_not() -> None:
    bare = [row for row in rows() if not (PIN.search(row.pins) or NOT_MODELLED.search(row.pins))]
    assert bare == []


def test_every_test_that_is_named_exists() -> None:
    missing = [
        f"{row.name}: {path}::{name}"
        for row in rows()
        for path, name in PIN.findall(row.pins)
        if not (PROJECT / path).is_file() or name not in functions_of(path)
    ]
    assert missing == []


def test_every_value_of_a_behaviour_has_its_line_and_no_other() -> None:
    of_board = {field.name for field in dataclasses.fields(Behaviour)} - {"calibration"}
    of_calibration = {field.name for field in dataclasses.fields(Calibration)}
    named = {match for row in rows() for match in FIELD.findall(row.data)}
    assert {name for prefix, name in named if not prefix} == of_board
    assert {name for prefix, name in named if prefix} == of_calibration
