"""The text of a robot file from that of a URDF. No I/O; no library reads the URDF for us."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from daq.robot import Inertia, Link, parse_robot
from daq.robot.geometry import is_positive_definite, pseudo_inertia, rpy_of
from estimation.types import FloatArray
from estimation.urdf.chain import ChainJoint, make_chain
from estimation.urdf.tree import Body, UrdfJoint, parse_urdf

VELOCITY_RAD_S, TORQUE_NM = 10.0, 1000.0
"""Limits where the URDF states none: our choice, more than arms reach."""
_OURS = "our choice, the URDF states none"


@dataclass(frozen=True, slots=True)
class ConvertedRobot:
    """A robot file that can be analysed.

    Attributes:
        text: TOML.
        warnings: What was changed or left out; the text's comments say so as well.
    """

    text: str
    warnings: tuple[str, ...]


def robot_from_urdf(
    text: str,
    *,
    source: str,
    name: str | None = None,
    tip: str | None = None,
    lock: Mapping[str, float] | None = None,
) -> ConvertedRobot:
    """Make a robot file of the chain of turning joints in a URDF.

    Frames are turned so that z is each joint's axis; fixed joints and joints that are held are
    merged into the link that carries them.

    Args:
        text: The URDF.
        source: What to call it, in errors and in the file.
        name: Of the robot; by default the URDF's.
        tip: The chain leads to this link; joints elsewhere are held at 0.
        lock: Joints to hold, and where (rad or m).

    Raises:
        UrdfError: It is not a URDF, or has no chain of turning joints.
        ConfigError: The name is not a robot's.
    """
    tree = parse_urdf(text, source)
    chain, warnings = make_chain(tree, source, tip=tip, lock=lock or {})
    names = _names([part.joint.name for part in chain])
    lines = [
        f"# Made by armature from {_printable(source)}.",
        "# It can be analysed, not driven: there are no boards, motors and drives in it.",
        "# Frames are turned so that z is each joint's axis; links are stated in these frames.",
        *(f"# {_printable(warning)}" for warning in warnings),
        *(f"# {_printable(joint)} is held at {value:g}." for joint, value in (lock or {}).items()),
        "",
        "schema = 1",
        f'name = "{_quoted(name) if name is not None else _name(tree.name)}"',
        f'description = "From {_quoted(source)}, robot {_quoted(tree.name)}"',
        "",
        "[estimation]",
        'terms = ["viscous", "coulomb", "drive_inertia", "offset"]',
        "smooth_sign_velocity_rad_s = 0.01 # at rest, where signs are noise, there is no friction",
        "",
        "# Our choice, for `armature excite`: the arm stands on the ground. Check it.",
        "[workspace]",
        "ground_z_m = 0.0",
    ]
    for part, joint_name in zip(chain, names, strict=True):
        lines += ["", "[[joints]]", *_joint_lines(part, joint_name, warnings)]
    made = "\n".join(lines) + "\n"
    parse_robot(made, source)
    return ConvertedRobot(made, tuple(warnings))


def _joint_lines(part: ChainJoint, name: str, warnings: list[str]) -> Iterator[str]:
    joint = part.joint
    yield f'name = "{name}"' + ("" if name == joint.name else f" # {_printable(joint.name)}")
    damping, friction = (joint.dynamics.get(key, 0.0) for key in ("damping", "friction"))
    if damping or friction:
        values = f"viscous_nm_s_per_rad = {_number(damping)}, coulomb_nm = {_number(friction)}"
        yield f"dynamics = {{ {values} }} # the URDF's damping and friction"
    yield from _link_lines(part, name, warnings)
    yield ""
    yield "[joints.limits]"
    yield from _limit_lines(joint, name, warnings)
    yield ""
    yield "[joints.placement]"
    yield f"xyz_m = {_array(part.pose[:3, 3].tolist())}"
    yield f"rpy_rad = {_array(rpy_of(part.pose))}"
    if joint.reduction is not None and joint.reduction != 1.0:
        yield ""
        yield "[joints.transmission]"
        yield f"gear_reduction = {_number(abs(joint.reduction))}"
        yield f"direction = {1 if joint.reduction > 0 else -1}"


def _limit_lines(joint: UrdfJoint, name: str, warnings: list[str]) -> Iterator[str]:
    low, high = (joint.limits.get(key) for key in ("lower", "upper"))
    remark = ""
    if joint.kind == "continuous":
        low, high, remark = -math.tau, math.tau, " # continuous in the URDF: two turns, our choice"
    elif low is None or high is None or not low < high:
        is_stated = low is not None and high is not None
        found = f"'s range is {low:g} to {high:g}" if is_stated else " states no range"
        warnings.append(f"joint {name}: the URDF{found}; the file says -2π to 2π")
        low, high, remark = -math.tau, math.tau, f" # {_OURS}"
    yield f"position_min_rad = {_number(low)}{remark}"
    yield f"position_max_rad = {_number(high)}{remark}"
    for key, attribute, default in (
        ("velocity_max_rad_s", "velocity", VELOCITY_RAD_S),
        ("torque_max_nm", "effort", TORQUE_NM),
    ):
        value = joint.limits.get(attribute, 0.0)
        if value > 0.0:
            yield f"{key} = {_number(value)}"
        else:
            yield f"{key} = {_number(default)} # {_OURS}"


def _link_lines(part: ChainJoint, name: str, warnings: list[str]) -> Iterator[str]:
    mass, moment, inertia = _sum(part.bodies)
    elements = {"xx": 0, "xy": 1, "yy": 4, "xz": 2, "yz": 5, "zz": 8}
    values = {key: float(inertia.flat[at]) for key, at in elements.items()}
    x, y, z = moment.tolist()
    link = None
    if mass > 0.0:
        link = Link(mass_kg=mass, first_moment_kg_m=(x, y, z), inertia_kg_m2=Inertia(**values))
    is_possible = all(body.mass_kg >= 0.0 for body in part.bodies)
    if link is None or not is_possible or not is_positive_definite(pseudo_inertia(link)):
        reason = "has no mass" if mass == 0.0 else "is not one that a rigid body can have"
        warnings.append(f"joint {name}: what it carries {reason} in the URDF; its link is left out")
        yield f"# No link: in the URDF what it carries {reason} (mass {mass:g} kg)."
        return
    yield ""
    yield "[joints.link]"
    yield f"mass_kg = {_number(mass)}"
    yield f"first_moment_kg_m = {_array((x, y, z))}"
    pairs = ", ".join(f"{key} = {_number(value)}" for key, value in values.items())
    yield f"inertia_kg_m2 = {{ {pairs} }}"


def _sum(bodies: Sequence[Body]) -> tuple[float, FloatArray, FloatArray]:
    """Mass, first moment and inertia about the origin of bodies together."""
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for body in bodies:
        centre = body.centre_m
        mass += body.mass_kg
        moment = moment + body.mass_kg * centre
        steiner = centre @ centre * np.eye(3) - np.outer(centre, centre)
        inertia = inertia + body.inertia_kg_m2 + body.mass_kg * steiner
    return mass, moment, inertia


def _names(names: Sequence[str]) -> list[str]:
    """Names that a robot file may use, all different."""
    made: list[str] = []
    for original in names:
        name, number = _name(original), 2
        while name in made:
            name, number = f"{_name(original)[:36]}_{number}", number + 1
        made.append(name)
    return made


def _name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return (name if re.match(r"[A-Za-z]", name) else f"j_{name}")[:40]


def _number(value: float) -> str:
    # What rounding left of a zero: nothing in an arm is that small.
    return repr(0.0 if abs(value) < 1e-15 else float(value))


def _array(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_number, values))}]"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


def _quoted(text: str) -> str:
    return _printable(text).replace("\\", "\\\\").replace('"', '\\"')
