"""Changes to the text of a robot file that leave the rest of it as its author wrote it. No I/O.

Every result is read again and compared with the data that it should hold.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping

import msgspec
import tomlkit

from daq.errors import ConfigError
from daq.robot.bodies import JointDynamics, Link
from daq.robot.description import Robot
from daq.robot.driving import Friction, Gains
from daq.robot.editing.toml_text import Path, TomlText
from daq.robot.parse import parse_robot
from daq.robot.reading import show, suggest

__all__ = [
    "IDENTIFIED",
    "OUTPUT_SHAFT_KG_M2",
    "bench_text",
    "with_friction",
    "with_links",
    "with_velocity_gains",
]

IDENTIFIED = "identified"
"""In place of comments beside numbers that an identification has replaced."""

OUTPUT_SHAFT_KG_M2 = 1e-4
"""Inertia of the gear's output shaft (joint side): our choice, as in bench1."""
FREE_TURN_RAD = 1e6
"""A free shaft has no stops: a limit that nobody reaches."""

_JOINT_OF_AN_ARM = ("link", "bounds", "dynamics", "dh", "placement", "home_posture_rad")
_OF_AN_ARM = ("published_parameters", "workspace", "estimation", "dh_convention")

Change = tuple[Path, Mapping[str, object]]
"""Where a table is, and the values that it gets."""


def bench_text(
    text: str, joint: str, *, gains: Gains | None = None, source: str = "robot file"
) -> str:
    """Return the robot file of one joint of a robot, standing alone on the bench.

    Only that joint, its board and its motor type are left, without a link; the shaft turns freely.
    The robot keeps its name, so that results show where they belong. Comments are left out.

    Args:
        text: The robot's file; may be that of a joint on the bench already.
        joint: The joint's name.
        gains: In place of the joint's own for velocity and position control, so that going from
            one to the other is no jerk.
        source: What to call the text in an error.

    Raises:
        ConfigError: There is no such joint, or the text has mistakes.
    """
    robot = parse_robot(text, source).driven()
    index = _index(robot, joint, source)
    drive = robot.joints[index].drive
    data = {key: value for key, value in tomllib.loads(text).items() if key not in _OF_AN_ARM}
    alone = {key: v for key, v in data["joints"][index].items() if key not in _JOINT_OF_AN_ARM}
    alone.setdefault("load_inertia_kg_m2", OUTPUT_SHAFT_KG_M2)
    alone["limits"] |= {"position_min_rad": -FREE_TURN_RAD, "position_max_rad": FREE_TURN_RAD}
    if gains is not None:
        alone["control"] = dict.fromkeys(("position", "velocity"), msgspec.to_builtins(gains))
    data["description"] = f"{joint} of {robot.name} alone on the bench"
    data["motors"] = {drive.motor: data["motors"][drive.motor]}
    data["boards"] = [board for board in data["boards"] if board["name"] == drive.board]
    data["joints"] = [alone]
    remark = f"{robot.name}: {joint} alone on the bench, where nothing stops its shaft."
    return f"# Made by armature from {remark}\n{tomlkit.dumps(data)}"


def with_friction(
    text: str,
    values: Mapping[str, Friction],
    *,
    remark: str | None = None,
    source: str = "robot file",
) -> str:
    """Return the same robot file with other friction (`drive.friction`).

    Nothing but those numbers changes: comments stay, those beside them as well unless there is a
    remark. Of the two keys that may be left out only those are added that are not 0.

    Args:
        text: The robot's file.
        values: The friction of each joint that changes, by the joint's name.
        remark: In place of comments beside the numbers that change; None to let those stay.
        source: What to call the text in an error.

    Raises:
        ConfigError: There is no such joint, a value is not possible, or the text has mistakes.
    """
    robot = parse_robot(text, source).driven()
    changes = []
    for name, friction in values.items():
        index = _index(robot, name, source)
        stated = _values(friction, robot.joints[index].drive.friction)
        changes.append((("joints", index, "drive", "friction"), stated))
    return _changed(text, changes, source, remark)


def with_links(
    text: str,
    links: Mapping[str, Link],
    rotors_kg_m2: Mapping[str, float],
    *,
    dynamics: Mapping[str, JointDynamics] | None = None,
    source: str = "robot file",
) -> str:
    """Return the same robot file with other links, rotors and dynamics: those that were identified.

    Nothing but those numbers changes. A comment beside one of them, which told where the old number
    came from, becomes `IDENTIFIED`.

    Args:
        text: The robot's file.
        links: The link of each joint that changes, by the joint's name.
        rotors_kg_m2: Inertia of rotors (motor side), by the joint's name; written where the joint
            has a drive or a transmission.
        dynamics: Of joints, by their names; what they do not state stays.
        source: What to call the text in an error.

    Raises:
        ConfigError: There is no such joint, a link is not physically consistent or breaks the
            file's own bounds, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    changes: list[Change] = []
    for name, link in links.items():
        index = _index(robot, name, source)
        old = robot.joints[index].link
        before = {} if old is None else msgspec.to_builtins(old)
        values = {k: v for k, v in msgspec.to_builtins(link).items() if v != before.get(k)}
        if old is not None and "inertia_kg_m2" in values:
            inertia = values.pop("inertia_kg_m2")
            changes.append((("joints", index, "link", "inertia_kg_m2"), inertia))
        changes.append((("joints", index, "link"), values))
    for name, rotor_kg_m2 in rotors_kg_m2.items():
        index = _index(robot, name, source)
        joint = robot.joints[index]
        if joint.drive is not None or joint.transmission is not None:
            part = "transmission" if joint.drive is None else "drive"
            changes.append((("joints", index, part), {"rotor_inertia_kg_m2": rotor_kg_m2}))
    for name, stated in (dynamics or {}).items():
        path = "joints", _index(robot, name, source), "dynamics"
        values = {k: v for k, v in msgspec.structs.asdict(stated).items() if v is not None}
        changes.append((path, values))
    return _changed(text, changes, source, IDENTIFIED)


def with_velocity_gains(text: str, joint: str, gains: Gains, *, source: str = "robot file") -> str:
    """Return the same robot file with other gains for a joint's velocity control.

    Raises:
        ConfigError: There is no such joint, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    index = _index(robot, joint, source)
    values = _values(gains, robot.joints[index].control.velocity)
    return _changed(text, [(("joints", index, "control", "velocity"), values)], source)


def _changed(text: str, changes: Iterable[Change], source: str, remark: str | None = None) -> str:
    """Return the text with values written into tables, checked to say that and nothing else."""
    try:
        edited = TomlText(text, remark)
        for path, values in changes:
            edited.put(path, values)
        data = tomllib.loads(edited.text)
    except ValueError:
        data = None
    else:
        parse_robot(edited.text, source)
    if data is None or data != edited.data:
        problem = (
            "cannot be changed without moving its tables: put those of one kind together, such as "
            "all [[joints]] with their [joints.drive], with no other table between them"
        )
        raise ConfigError(source, [problem], code="cannot-be-edited")
    return edited.text


def _index(robot: Robot, joint: str, source: str) -> int:
    names = [known.name for known in robot.joints]
    if joint in names:
        return names.index(joint)
    meant = suggest(joint, names)
    hint = f" (did you mean {meant}?)" if meant else ""
    problem = f"{show(joint)} is not a joint of {robot.name}, expected one of {', '.join(names)}"
    raise ConfigError(source, [problem + hint], code="no-such-joint")


def _values(new: Friction | Gains, old: Friction | Gains) -> dict[str, object]:
    """Return what must be written: every key that is required, is not 0, or was not 0."""
    return {
        field.name: getattr(new, field.name)
        for field in msgspec.structs.fields(new)
        if field.required or getattr(new, field.name) or getattr(old, field.name)
    }
