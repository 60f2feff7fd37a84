"""Every key of a robot file is read by a program, and every limit by the loop.

`acceleration_max_rad_s2` was once accepted, checked, and kept by nobody. Attributes are found by
their names in the code of the five packages; of a name that several tables have, only where the
table stands in front of it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest
from rooms import PACKAGES, PROJECT

import daq.robot
from daq.robot.bodies import JointDynamics
from daq.robot.description import DrivenJoint, DrivenRobot, JointLimits
from daq.robot.driving import Bus, Safety
from daq.robot.tables import Description

NOT_READ = "no program reads it"
"""So a docstring says that a key is accepted for old files, or for people to compare."""
LIMITS = (JointLimits, Safety, Bus)
"""Tables of limits: the loop keeps them."""
NO_LIMITS = {(Bus, "nominal_v")}
BY_NAME = (JointDynamics,)
"""Tables whose keys are looked up by their names, which stand elsewhere as strings."""
NARROWED = (DrivenJoint, DrivenRobot)
"""The same tables with other types: what is read of them is found where they are first stated."""
FRONTS = {
    "JointLimits": ("limits", "limit"),
    "Motor": ("motor", "self"),
    "Drive": ("drive", "_gear", "self"),
    "Transmission": ("_gear", "transmission"),
    "PublishedParameters": ("published", "published_parameters"),
}
"""What stands in front of keys whose names other tables have, too."""


class Key(NamedTuple):
    """One key of a table."""

    table: type[Description]
    name: str

    def __str__(self) -> str:
        return f"{self.table.__name__}.{self.name}"


class Read(NamedTuple):
    """Where an attribute is read: in which file, in which class there, and of what."""

    path: str
    inside: str
    front: str


def tables(above: type[Description] = Description) -> Iterator[type[Description]]:
    for table in above.__subclasses__():
        yield table
        yield from tables(table)


def keys() -> list[Key]:
    for module in pkgutil.walk_packages(daq.robot.__path__, "daq.robot."):
        importlib.import_module(module.name)
    return [
        Key(table, name)
        for table in tables()
        if table.__module__.startswith("daq.robot") and table not in NARROWED
        for name in table.__annotations__
        if name in table.__struct_fields__
    ]


def remarks() -> dict[str, str]:
    """What the docstrings of tables and of their keys say, by `Table` and `Table.key`."""
    said = {}
    for path in (PROJECT / "daq" / "robot").glob("*.py"):
        for table in ast.walk(ast.parse(path.read_text())):
            if not isinstance(table, ast.ClassDef):
                continue
            said[table.name] = _plain(ast.get_docstring(table) or "")
            for node, after in zip(table.body, table.body[1:], strict=False):
                is_key = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                if is_key and is_text:
                    said[f"{table.name}.{node.target.id}"] = _plain(str(after.value.value))
    return said


def _plain(text: str) -> str:
    return " ".join(text.split())


class Reads(ast.NodeVisitor):
    """All attributes that are read, by their names, and all strings."""

    def __init__(self) -> None:
        self.of: dict[str, list[Read]] = defaultdict(list)
        self.strings: set[str] = set()
        self._path = self._inside = ""

    def look_at(self, path: str, source: str) -> None:
        self._path, self._inside = path, ""
        self.visit(ast.parse(source))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._inside = self._inside, node.name
        self.generic_visit(node)
        self._inside = outer

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            front = ast.unparse(node.value).rpartition(".")[2]
            self.of[node.attr].append(Read(self._path, self._inside, front))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and not self._path.startswith("daq/robot/"):
            self.strings.add(node.value)


def sources() -> dict[str, str]:
    return {
        str(path.relative_to(PROJECT)): path.read_text()
        for package in PACKAGES
        for path in sorted((PROJECT / package).rglob("*.py"))
    }


def remark_on(key: Key, said: Mapping[str, str]) -> str:
    """What is said of a key, of its table, and of the tables that are its value."""
    names = re.findall(r"\w+", str(key.table.__annotations__[key.name]))
    inner = [said.get(name, "") for name in names if name in {each.__name__ for each in tables()}]
    return " ".join((said.get(key.table.__name__, ""), said.get(str(key), ""), *inner))


def unread(code: Mapping[str, str]) -> dict[str, str]:
    """The keys that nobody reads who should, and why."""
    reads, said, problems = Reads(), remarks(), {}
    for path, source in code.items():
        reads.look_at(path, source)
    names = [key.name for key in keys()]
    for key in keys():
        is_limit = key.table in LIMITS and key not in NO_LIMITS
        remark = remark_on(key, said)
        if NOT_READ in remark:
            if is_limit and "Accepted for old files" not in remark:
                problems[str(key)] = "a limit, said to be read by nobody"
            continue
        found = [
            read
            for read in reads.of[key.name]
            if names.count(key.name) == 1 or _is_of(read, key.table)
        ]
        if is_limit:
            if not any(_is_of_the_loop(read.path) for read in found):
                problems[str(key)] = "a limit that nothing in daq keeps"
        elif not any(_is_outside(read, key.table, reads) for read in found):
            by_name = key.table in BY_NAME and key.name in reads.strings
            if not by_name:
                problems[str(key)] = "read by nobody"
    return problems


def _is_of(read: Read, table: type[Description]) -> bool:
    """Whether a name that several tables have belongs to this one, by what stands before it."""
    fronts = FRONTS.get(table.__name__)
    if fronts is None:
        return True
    of_self = read.front == "self" and read.inside == table.__name__
    return of_self or (read.front != "self" and any(front in read.front for front in fronts))


def _is_of_the_loop(path: str) -> bool:
    return path.startswith("daq/") and not path.startswith("daq/robot/")


def _is_outside(read: Read, table: type[Description], reads: Reads) -> bool:
    """Whether it is read for something: checks of the file itself do not count.

    A property of the table counts where that is read.
    """
    if read.path in ("daq/robot/checks.py", "daq/robot/arm_checks.py"):
        return False
    if read.inside != table.__name__:
        return True
    members = (name for name, value in vars(table).items() if isinstance(value, property))
    return any(other.inside != table.__name__ for name in members for other in reads.of[name])


@pytest.fixture(scope="module")
def code() -> dict[str, str]:
    return sources()


def test_every_key_is_read(code: dict[str, str]) -> None:
    assert len(keys()) > 100
    assert unread(code) == {}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("acceleration_max_rad_s2", "JointLimits.acceleration_max_rad_s2"),
        ("torque_max_nm", "JointLimits.torque_max_nm"),
        ("velocity_max_rad_s", "JointLimits.velocity_max_rad_s"),
        ("winding_temperature_max_degc", "JointLimits.winding_temperature_max_degc"),
        ("unhomed_current_max_a", "Safety.unhomed_current_max_a"),
        ("hold_max_s", "Safety.hold_max_s"),
        ("max_v", "Bus.max_v"),
    ],
)
def test_a_limit_that_the_loop_does_not_read_is_found(
    code: dict[str, str], name: str, key: str
) -> None:
    """Others may read it: the excitation, a model, a check of the file."""
    changed = {
        path: source.replace(f".{name}", ".something_else") if _is_of_the_loop(path) else source
        for path, source in code.items()
    }
    assert changed != code
    assert unread(changed) == {key: "a limit that nothing in daq keeps"}


def test_a_key_that_nobody_reads_is_found(code: dict[str, str]) -> None:
    changed = {path: source.replace(".rs485_baud", ".baud") for path, source in code.items()}
    assert unread(changed) == {"BoardPort.rs485_baud": "read by nobody"}


def test_what_is_said_to_be_read_by_nobody_is_no_limit() -> None:
    said = remarks()
    exempt = {str(key) for key in keys() if NOT_READ in remark_on(key, said)}
    assert exempt == {
        "Motor.torque_max_nm",  # of the data sheet: the joint's current never exceeds the motor's
        "Motor.torque_constant_published_nm_per_a",
        "Drive.friction_cad",
        "Safety.ramp_s",
        "Robot.published_parameters",
        *(f"PublishedParameters.{name}" for name in ("name", "source", "values")),
    }
