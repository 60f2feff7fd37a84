"""Changes to the text of a robot file that leave the rest of it as its author wrote it. No I/O.

Every result is parsed and compared with the robot that it should describe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import msgspec

from daq.errors import ConfigError
from daq.robot.bodies import JointDynamics, Link
from daq.robot.description import DrivenRobot, Estimation, Robot, Workspace
from daq.robot.driving import Control, Friction, Gains
from daq.robot.editing.remarks import with_remarks
from daq.robot.editing.toml_text import Path, joined, put, statements_of, without
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

_MADE_BY = "# Made by armature from "
_JOINT_OF_AN_ARM = ("link", "bounds", "dynamics", "dh", "placement", "home_posture_rad")
_OF_AN_ARM = ("published_parameters", "workspace", "estimation", "dh_convention")


def bench_text(
    text: str,
    joint: str,
    *,
    load_inertia_kg_m2: float | None = None,
    gains: Gains | None = None,
    description: str | None = None,
    source: str = "robot file",
) -> str:
    """Return the robot file of one joint of a robot, standing alone on the bench.

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
        The file's text. The robot keeps its name, so that results show where they belong.

    Raises:
        ConfigError: There is no such joint, or the text has mistakes.
    """
    robot = parse_robot(text, source).driven()
    index = _index(robot, joint, source)
    wanted = _on_bench(robot, index, load_inertia_kg_m2, gains, description)
    (kept,) = wanted.joints
    others: list[Path] = [(key,) for key in _OF_AN_ARM]
    others += [("motors", name) for name in robot.motors if name not in wanted.motors]
    others += [("boards", i) for i, port in enumerate(robot.boards) if port not in wanted.boards]
    others += [("joints", i) for i in range(len(robot.joints)) if i != index]
    others += [("joints", index, key) for key in _JOINT_OF_AN_ARM]
    text = joined(without(statements_of(text), others))

    newline = "\r\n" if "\r\n" in text else "\n"
    limits = {
        "position_min_rad": kept.limits.position_min_rad,
        "position_max_rad": kept.limits.position_max_rad,
    }
    statements = statements_of(text)
    statements = put(statements, (), {"description": wanted.description}, newline)
    statements = put(statements, ("joints", 0, "limits"), limits, newline)
    inertia = {"load_inertia_kg_m2": kept.load_inertia_kg_m2}
    statements = put(statements, ("joints", 0), inertia, newline)
    if gains is not None:
        for law in ("velocity", "position"):
            values = _values(gains, getattr(robot.joints[index].control, law))
            statements = put(statements, ("joints", 0, "control", law), values, newline)
    text = joined(statements)

    if text.startswith(_MADE_BY):  # made twice
        text = text.partition("\n")[2]
    remark = f"{_MADE_BY}{robot.name}: {joint} alone on the bench, where nothing stops its shaft."
    return _checked(remark + newline + text, wanted, source)


def with_friction(
    text: str,
    values: Mapping[str, Friction],
    *,
    remark: str | None = None,
    source: str = "robot file",
) -> str:
    """Return the same robot file with other friction (`drive.friction`).

    Args:
        text: The robot's file.
        values: The friction of each joint that changes, by the joint's name.
        remark: In place of comments beside the numbers that change; None to let those stay.
        source: What to call the text in an error.

    Returns:
        The text, with nothing but those numbers changed: comments stay, those beside them as well
        unless there is a remark.
        Of the two keys that may be left out only those are added that are not 0.

    Raises:
        ConfigError: There is no such joint, a value is not possible, or the text has mistakes.
    """
    robot = parse_robot(text, source).driven()
    newline = "\r\n" if "\r\n" in text else "\n"
    statements = statements_of(text)
    joints = list(robot.joints)
    for name, friction in values.items():
        index = _index(robot, name, source)
        drive = joints[index].drive
        changes = _values(friction, drive.friction)
        statements = put(statements, ("joints", index, "drive", "friction"), changes, newline)
        changed = msgspec.structs.replace(drive, friction=friction)
        joints[index] = msgspec.structs.replace(joints[index], drive=changed)
    wanted = msgspec.structs.replace(robot, joints=tuple(joints))
    new = _checked(joined(statements), wanted, source)
    return new if remark is None else _checked(with_remarks(text, new, remark), wanted, source)


def with_links(
    text: str,
    links: Mapping[str, Link],
    rotors_kg_m2: Mapping[str, float],
    *,
    dynamics: Mapping[str, JointDynamics] | None = None,
    source: str = "robot file",
) -> str:
    """Return the same robot file with other links, rotors and dynamics: those that were identified.

    Args:
        text: The robot's file.
        links: The link of each joint that changes, by the joint's name.
        rotors_kg_m2: Inertia of rotors (motor side), by the joint's name; written where the joint
            has a drive or a transmission.
        dynamics: Of joints, by their names; what they do not state stays.
        source: What to call the text in an error.

    Returns:
        The text, with nothing but those numbers changed. A comment beside one of them, which told
        where the old number came from, becomes `IDENTIFIED`.

    Raises:
        ConfigError: There is no such joint, a link is not physically consistent or breaks the
            file's own bounds, or the text has mistakes.
    """
    robot = parse_robot(text, source)
    newline = "\r\n" if "\r\n" in text else "\n"
    statements = statements_of(text)
    joints = list(robot.joints)
    for name, link in links.items():
        index = _index(robot, name, source)
        path: Path = ("joints", index, "link")
        values = msgspec.to_builtins(link)
        inertia = values.pop("inertia_kg_m2")
        if joints[index].link is None:
            values = {key: value for key, value in values.items() if value is not None}
            statements = put(statements, path, values | {"inertia_kg_m2": inertia}, newline)
        else:
            gone = [(*path, key) for key, value in values.items() if value is None]
            statements = without(statements, gone)
            old = msgspec.to_builtins(joints[index].link)
            values = {key: v for key, v in values.items() if v is not None and v != old[key]}
            statements = put(statements, path, values, newline)
            statements = put(statements, (*path, "inertia_kg_m2"), inertia, newline)
        joints[index] = msgspec.structs.replace(joints[index], link=link)
    for name, rotor_kg_m2 in rotors_kg_m2.items():
        index = _index(robot, name, source)
        joint = joints[index]
        key = "transmission" if joint.drive is None else "drive"
        part = joint.drive or joint.transmission
        if part is not None:
            values = {"rotor_inertia_kg_m2": rotor_kg_m2}
            statements = put(statements, ("joints", index, key), values, newline)
            changed = msgspec.structs.replace(part, rotor_inertia_kg_m2=rotor_kg_m2)
            joints[index] = msgspec.structs.replace(joint, **{key: changed})
    for name, stated in (dynamics or {}).items():
        index = _index(robot, name, source)
        values = {k: v for k, v in msgspec.structs.asdict(stated).items() if v is not None}
        statements = put(statements, ("joints", index, "dynamics"), values, newline)
        old = joints[index].dynamics or JointDynamics()
        new = msgspec.structs.replace(old, **values)
        joints[index] = msgspec.structs.replace(joints[index], dynamics=new)
    wanted = msgspec.structs.replace(robot, joints=tuple(joints))
    changed_text = _checked(joined(statements), wanted, source)
    return _checked(with_remarks(text, changed_text, IDENTIFIED), wanted, source)


def with_velocity_gains(text: str, joint: str, gains: Gains, *, source: str = "robot file") -> str:
    """Return the same robot file with other gains for a joint's velocity control.

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
    statements = put(statements_of(text), path, _values(gains, control.velocity), newline)
    control = msgspec.structs.replace(control, velocity=gains)
    joints[index] = msgspec.structs.replace(joints[index], control=control)
    wanted = msgspec.structs.replace(robot, joints=tuple(joints))
    return _checked(joined(statements), wanted, source)


def _on_bench(
    robot: DrivenRobot,
    index: int,
    load_inertia_kg_m2: float | None,
    gains: Gains | None,
    description: str | None,
) -> Robot:
    """Return the robot that the bench file shall describe."""
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
        bounds=None,
        home_posture_rad=0.0,
    )
    return msgspec.structs.replace(
        robot,
        description=description or f"{joint.name} of {robot.name} alone on the bench",
        motors={joint.drive.motor: robot.motor_of(joint)},
        boards=tuple(board for board in robot.boards if board.name == joint.drive.board),
        joints=(alone,),
        dh_convention="standard",
        workspace=Workspace(),
        estimation=Estimation(),
        published_parameters=(),
    )


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


def _checked(text: str, wanted: Robot, source: str) -> str:
    try:
        tomllib.loads(text)
        is_changed = parse_robot(text, source) == wanted
    except tomllib.TOMLDecodeError:
        is_changed = False
    if not is_changed:
        problem = "is written in a way that cannot be changed here: use tables like [joints.drive]"
        raise ConfigError(source, [problem], code="cannot-be-edited")
    return text
