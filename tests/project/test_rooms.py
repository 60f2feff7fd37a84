"""The house: rooms that a newcomer can name, a sentence per file, no name for two things."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from rooms import PACKAGES, PROJECT, modules, readme, rooms, sentence

MODULES_MAX = 15
LOOSE = {"daq": {"errors.py"}, "estimation": {"errors.py", "types.py"}}
"""What may stand outside of any room, beside the fronts."""


def name_of(room: Path) -> str:
    return str(room.relative_to(PROJECT))


@pytest.mark.parametrize("room", list(rooms()), ids=name_of)
def test_a_room_says_what_is_in_it(room: Path) -> None:
    assert len(modules(room)) <= MODULES_MAX
    assert all(sentence(module) for module in [room / "__init__.py", *modules(room)])
    assert (room / "README.md").read_text() == readme(room), "stale: run `make docs`"


@pytest.mark.parametrize("package", LOOSE)
def test_no_module_stands_outside_the_rooms(package: str) -> None:
    assert {path.name for path in modules(PROJECT / package)} <= LOOSE[package]


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(PROJECT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
