"""Changes to the text of a robot file that leave the rest of it as its author wrote it. No I/O.

The text is cut into statements, and only those that change pass through tomlkit, one at a time: of
a whole document it would join tables that stand apart (`[[joints]]`, `[bus]`, `[[joints]]`).
Every result is parsed and compared with the robot that it should describe.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import tomlkit
from tomlkit.items import InlineTable

from daq.errors import ConfigError
from daq.robot.description import Control, Friction, Gains, Robot
from daq.robot.parse import parse_robot
from daq.robot.reading import show, suggest

__all__ = ["OUTPUT_SHAFT_KG_M2", "bench_text", "with_friction", "with_velocity_gains"]

OUTPUT_SHAFT_KG_M2 = 1e-4
"""Inertia of the gear's output shaft (joint side): our choice, as in bench1."""
FREE_TURN_RAD = 1e6
"""A free shaft has no stops: a limit that nobody reaches."""

Path = tuple[str | int, ...]
"""Where a table is, such as ("joints", 2, "drive")."""

_MADE_BY = "# Made by armature from "
_JOINT_OF_AN_ARM = ("link", "dh", "placement", "home_posture_rad")
# Strings and comments hide brackets and line breaks; of the rest only those matter.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""+'
    r"|'''.*?'''+"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


def bench_text(
    text: str,
    joint: str,
    *,
    load_inertia_kg_m2: float | None = None,
    gains: Gains | None = None,
    description: str | None = None,
    source: str = "robot file",
) -> str:
    """The robot file of one joint of a robot, standing alone on the bench.

    Only that joint, its board and its motor type are left, without a link; the shaft turns freely.
    What belongs to a table that goes, and the comments in front of it, go with it.

    Args:
        text: The robot's file; may be that of a joint on the bench already.
        joint: The joint's name.
        load_inertia_kg_m2: What its shaft turns (joint side); by default what the file says, else
            `OUTPUT_SHAFT_KG_M2`.
        gains: In place of the joint's own for velocity and position control, so that going from
            one to the other is no jerk.
        description: By default "joint3 of laas4 alone on the bench".
        source: What to call the text in an error.

    Returns:
        The file's text. The robot keeps its name, so that results tell where they belong.

    Raises:
        ConfigError: There is no such joint, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    index = _index(robot, joint, source)
    wanted = _on_bench(robot, index, load_inertia_kg_m2, gains, description)
    (kept,) = wanted.joints
    others: list[Path] = [("published_parameters",)]
    others += [("motors", name) for name in robot.motors if name not in wanted.motors]
    others += [("boards", i) for i, port in enumerate(robot.boards) if port not in wanted.boards]
    others += [("joints", i) for i in range(len(robot.joints)) if i != index]
    others += [("joints", index, key) for key in _JOINT_OF_AN_ARM]
    text = _joined(_without(_statements(text), others))

    newline = "\r\n" if "\r\n" in text else "\n"
    limits = {
        "position_min_rad": kept.limits.position_min_rad,
        "position_max_rad": kept.limits.position_max_rad,
    }
    statements = _statements(text)
    statements = _put(statements, (), {"description": wanted.description}, newline)
    statements = _put(statements, ("joints", 0, "limits"), limits, newline)
    inertia = {"load_inertia_kg_m2": kept.load_inertia_kg_m2}
    statements = _put(statements, ("joints", 0), inertia, newline)
    if gains is not None:
        for law in ("velocity", "position"):
            values = _values(gains, getattr(robot.joints[index].control, law))
            statements = _put(statements, ("joints", 0, "control", law), values, newline)
    text = _joined(statements)

    if text.startswith(_MADE_BY):  # made twice
        text = text.partition("\n")[2]
    remark = f"{_MADE_BY}{robot.name}: {joint} alone on the bench, where nothing stops its shaft."
    return _checked(remark + newline + text, wanted, source)


def with_friction(text: str, values: Mapping[str, Friction], *, source: str = "robot file") -> str:
    """The same robot file with other friction (`drive.friction`).

    Args:
        text: The robot's file.
        values: The friction of each joint that changes, by the joint's name.
        source: What to call the text in an error.

    Returns:
        The text, with nothing but those numbers changed: comments stay, those beside them as well.
        Of the two keys that may be left out only those are added that are not 0.

    Raises:
        ConfigError: There is no such joint, a value is not possible, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    newline = "\r\n" if "\r\n" in text else "\n"
    statements = _statements(text)
    joints = list(robot.joints)
    for name, friction in values.items():
        index = _index(robot, name, source)
        drive = joints[index].drive
        changes = _values(friction, drive.friction)
        statements = _put(statements, ("joints", index, "drive", "friction"), changes, newline)
        changed = msgspec.structs.replace(drive, friction=friction)
        joints[index] = msgspec.structs.replace(joints[index], drive=changed)
    wanted = msgspec.structs.replace(robot, joints=tuple(joints))
    return _checked(_joined(statements), wanted, source)


def with_velocity_gains(text: str, joint: str, gains: Gains, *, source: str = "robot file") -> str:
    """The same robot file with other gains for a joint's velocity control.

    Args:
        text: The robot's file.
        joint: The joint's name.
        gains: In place of its `control.velocity`.
        source: What to call the text in an error.

    Raises:
        ConfigError: There is no such joint, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    index = _index(robot, joint, source)
    newline = "\r\n" if "\r\n" in text else "\n"
    joints = list(robot.joints)
    control = joints[index].control
    path = ("joints", index, "control", "velocity")
    statements = _put(_statements(text), path, _values(gains, control.velocity), newline)
    control = msgspec.structs.replace(control, velocity=gains)
    joints[index] = msgspec.structs.replace(joints[index], control=control)
    wanted = msgspec.structs.replace(robot, joints=tuple(joints))
    return _checked(_joined(statements), wanted, source)


def _on_bench(
    robot: Robot,
    index: int,
    load_inertia_kg_m2: float | None,
    gains: Gains | None,
    description: str | None,
) -> Robot:
    """The robot that the bench file shall describe."""
    joint = robot.joints[index]
    if load_inertia_kg_m2 is None:
        load_inertia_kg_m2 = joint.load_inertia_kg_m2
    if load_inertia_kg_m2 is None:
        load_inertia_kg_m2 = OUTPUT_SHAFT_KG_M2
    control = joint.control
    if gains is not None:
        control = Control(position=gains, velocity=gains)
    limits = msgspec.structs.replace(
        joint.limits, position_min_rad=-FREE_TURN_RAD, position_max_rad=FREE_TURN_RAD
    )
    alone = msgspec.structs.replace(
        joint,
        limits=limits,
        control=control,
        load_inertia_kg_m2=load_inertia_kg_m2,
        dh=None,
        placement=None,
        link=None,
        home_posture_rad=0.0,
    )
    return msgspec.structs.replace(
        robot,
        description=description or f"{joint.name} of {robot.name} alone on the bench",
        motors={joint.drive.motor: robot.motor_of(joint)},
        boards=tuple(board for board in robot.boards if board.name == joint.drive.board),
        joints=(alone,),
        published_parameters=(),
    )


def _index(robot: Robot, joint: str, source: str) -> int:
    names = [known.name for known in robot.joints]
    if joint in names:
        return names.index(joint)
    meant = suggest(joint, names)
    hint = f" (did you mean {meant}?)" if meant else ""
    problem = f"{show(joint)} is no joint of {robot.name}, expected one of {', '.join(names)}"
    raise ConfigError(source, [problem + hint])


def _values(new: Friction | Gains, old: Friction | Gains) -> dict[str, object]:
    """What must be written: every key that is required, is not 0, or was not 0."""
    return {
        field.name: getattr(new, field.name)
        for field in msgspec.structs.fields(new)
        if field.required or getattr(new, field.name) or getattr(old, field.name)
    }


def _checked(text: str, wanted: Robot, source: str) -> str:
    try:
        tomllib.loads(text)
        is_changed = parse_robot(text, source) == wanted
    except tomllib.TOMLDecodeError:
        is_changed = False
    if not is_changed:
        problem = "is written in a way that cannot be changed here: use tables like [joints.drive]"
        raise ConfigError(source, [problem])
    return text


# --- statements -----------------------------------------------------------------------------------


class _Statement(NamedTuple):
    """A piece of the text up to its line break: a header, a key with its value, or neither.

    Attributes:
        text: As it stands, line break included.
        table: The table that it is in, or opens.
        is_header: Whether it opens a table.
        is_filler: Whether it is blank or a comment.
    """

    text: str
    table: Path
    is_header: bool
    is_filler: bool

    def rest_of(self, path: Path) -> Path | None:
        """What is left of a path below its table; None when the path is elsewhere."""
        length = len(self.table)
        return path[length:] if path[:length] == self.table else None


def _pieces(text: str) -> Iterator[str]:
    start = depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                yield text[start : token.end()]
                start = token.end()
    if start < len(text):
        yield text[start:]


def _statements(text: str) -> list[_Statement]:
    statements = []
    table: Path = ()
    elements: dict[str, int] = {}
    for piece in _pieces(text):
        bare = piece.lstrip()
        is_header = bare.startswith("[")
        if is_header:
            first, *others = _names(tomllib.loads(piece))
            if bare.startswith("[["):
                elements[first] = elements.get(first, -1) + 1
            table = (first, elements[first], *others) if first in elements else (first, *others)
        is_filler = not bare or bare.startswith("#")
        statements.append(_Statement(piece, table, is_header, is_filler))
    return statements


def _names(header: Any) -> Iterator[str]:
    """The names in a header, which reads as tables inside each other."""
    while header:
        if isinstance(header, list):
            (header,) = header
            continue
        ((name, header),) = header.items()
        yield name


def _joined(statements: Sequence[_Statement]) -> str:
    return "".join(statement.text for statement in statements)


def _reach(table: Any, path: Path) -> Any:
    """What is at a path below a table; None when there is nothing."""
    for step in path:
        if isinstance(step, int):
            table = table[step] if isinstance(table, list) and step < len(table) else None
        else:
            table = table.get(step) if isinstance(table, dict) else None
    return table


def _without(statements: Sequence[_Statement], paths: Sequence[Path]) -> list[_Statement]:
    """Drops what is at these paths, with the comments in front of it."""
    kept: list[_Statement] = []
    filler: list[_Statement] = []
    is_dropped = False
    for original in statements:
        statement = original
        if statement.is_filler:
            filler.append(statement)
            continue
        is_dropped = any(statement.table[: len(path)] == path for path in paths)
        if not is_dropped and not statement.is_header:
            document = tomlkit.parse(statement.text)
            # From the back, so that the elements of an array keep their numbers.
            for path in reversed(paths):
                _delete(document, statement.rest_of(path))
            if document.unwrap() != tomllib.loads(statement.text):
                statement = statement._replace(text=tomlkit.dumps(document))
                is_dropped = not tomllib.loads(statement.text)
        if not is_dropped:
            kept += [*filler, statement]
        filler = []
    return kept if is_dropped else [*kept, *filler]


def _delete(document: Any, path: Path | None) -> None:
    if path and _reach(document, path) is not None:
        del _reach(document, path[:-1])[path[-1]]


def _put(
    statements: Sequence[_Statement], path: Path, values: Mapping[str, object], newline: str
) -> list[_Statement]:
    """Writes values into the table at a path, however the file writes that table."""
    result = list(statements)
    missing = dict(values)
    last: tuple[int, Path] | None = None
    is_inline = False
    for number, statement in enumerate(statements):
        rest = statement.rest_of(path)
        if rest is None or statement.is_filler:
            continue
        document = tomlkit.parse("" if statement.is_header else statement.text)
        table = _reach(document, rest)
        if table is None:
            continue
        last = (number, rest)
        is_changed = False
        for key in [key for key in missing if key in table]:
            value = missing.pop(key)
            if table[key] != value:
                table[key] = value
                is_changed = True
        is_inline = any(
            isinstance(_reach(document, rest[:depth]), InlineTable)
            for depth in range(1, len(rest) + 1)
        )
        if is_inline and missing:
            _put_inline(document, rest, missing)
            is_changed = True
        if is_changed:
            result[number] = statement._replace(text=tomlkit.dumps(document))
    if last is None:
        around = path[:-1]
        beside = [number for number, other in enumerate(statements) if other.table[:-1] == around]
        if not beside or any(statement.table == around for statement in statements):
            return _put(statements, around, {str(path[-1]): values}, newline)
        # Only headers like [joints.control.velocity] speak of the table around it, which then
        # cannot be written as a key anywhere else: another header beside them.
        names = ".".join(step for step in path if isinstance(step, str))
        lines = [f"[{names}]", *(f"{key} = {_literal(value)}" for key, value in values.items())]
        text = _joined(statements[: beside[-1] + 1]).rstrip() + newline * 2
        text += "".join(line + newline for line in lines)
        tail = _joined(statements[beside[-1] + 1 :])
        return _statements(text + (newline + tail if tail else ""))
    if missing and not is_inline:
        number, rest = last
        before = result[number]
        indent = before.text[: len(before.text) - len(before.text.lstrip())]
        lines = [
            f"{indent}{'.'.join(map(str, (*rest, key)))} = {_literal(value)}{newline}"
            for key, value in missing.items()
        ]
        text = before.text if before.text.endswith("\n") else before.text + newline
        result[number] = before._replace(text=text + "".join(lines))
    return result


def _put_inline(document: Any, path: Path, values: Mapping[str, object]) -> None:
    """Adds values below an inline table, which is written anew: tomlkit would do it untidily."""
    depth = len(path)
    while not isinstance(_reach(document, path[:depth]), InlineTable):
        depth -= 1
    data = _reach(document, path[:depth]).unwrap()
    _reach(data, path[depth:]).update(values)
    _reach(document, path[: depth - 1])[path[depth - 1]] = tomlkit.value(_literal(data))


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_literal(item)}' for key, item in value.items())} }}"
    return tomlkit.item(value).as_string()
