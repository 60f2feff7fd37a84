"""The URDF of a robot, for other programs. No I/O.

A URDF has no place for much of what moves an arm: the inertia of drives, offsets, friction that
differs between directions. A comment at its top says what is left out, in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from daq.robot import Joint, Link, Robot
from daq.robot.geometry import Matrix, joint_poses, rpy_of
from estimation.errors import UrdfError
from estimation.model.parameters import TERMS, cad_vector, choose_parameters

BASE = "base"
"""The link that does not move; those that do end in `_link`."""
_MISSING: Final = {
    "drive_inertia": "drive inertia",
    "offset": "offset",
    "asymmetric": "viscous friction forwards less backwards (half)",
    "stribeck": "friction beyond Coulomb's at standstill",
    "motor_viscous": "coupled motor's viscous friction",
    "motor_coulomb": "coupled motor's Coulomb friction",
    "motor_drive_inertia": "coupled motor's drive inertia",
}
"""Kinds of parameters that a URDF cannot state, in words."""
_ASCII: Final = str.maketrans({"·": " ", "²": "2"})


def urdf_text(robot: Robot, friction: Mapping[str, tuple[float, float]] | None = None) -> str:
    """Return a URDF that moves as the robot does.

    Friction is stated at the joint. What a URDF cannot say stands in comments: gravity, inertia
    of rotors and drives, offsets and other terms, the coupling of motors. Links are called by
    their joints: a robot file does not keep the names of links.

    Args:
        robot: One whose links are all known.
        friction: Viscous and Coulomb friction at joints, by name, in place of the drives' own.

    Raises:
        UrdfError: A link is not known.
    """
    unknown = [joint.name for joint in robot.joints if joint.link is None]
    if unknown:
        problem = f"joints without a link: {', '.join(unknown)}; a URDF needs all of them"
        raise UrdfError(f"robot {robot.name}", problem, code="joints-without-link")
    terms = _terms_of(robot)
    gravity = ", ".join(f"{part:g}" for part in robot.gravity_m_s2)
    lines = [
        '<?xml version="1.0"?>',
        f"<!-- Made by armature from robot {robot.name}: {_comment(robot.description)} -->",
        f"<!-- Gravity in the base frame (m/s2): {gravity} -->",
        *_missing_lines(robot, terms),
    ]
    if robot.coupling is not None:
        rows = "; ".join(" ".join(f"{part:g}" for part in row) for row in robot.coupling)
        lines.append(f"<!-- Motor angles after their gears, by joint angles: {rows} -->")
    lines += [f'<robot name="{robot.name}">', f'  <link name="{BASE}"/>']
    parent = BASE
    for joint, pose, known in zip(robot.joints, joint_poses(robot), terms, strict=True):
        stated = (friction or {}).get(joint.name)
        if stated is None and (joint.drive is not None or joint.dynamics is not None):
            stated = known["viscous"].value, known["coulomb"].value
        lines += _joint_lines(joint, pose, parent, stated)
        parent = f"{joint.name}_link"
    return "\n".join([*lines, "</robot>"]) + "\n"


class _Value(NamedTuple):
    value: float
    unit: str


def _terms_of(robot: Robot) -> list[dict[str, _Value]]:
    """Friction, drive inertia and the rest of each joint, at the joint, by kind."""
    parameters = choose_parameters(robot, [term.name for term in TERMS])
    theta = cad_vector(robot, parameters)
    terms: list[dict[str, _Value]] = [{} for _ in robot.joints]
    for place, item in enumerate(parameters.items):
        value = 0.0 if theta is None else float(theta[place])
        terms[item.joint][item.kind] = _Value(value, item.unit.translate(_ASCII))
    return terms


def _missing_lines(robot: Robot, terms: list[dict[str, _Value]]) -> Iterator[str]:
    """Yield what moves the arm and has no place in a URDF; nothing if that is nothing."""
    lines = []
    for joint, known in zip(robot.joints, terms, strict=True):
        parts = [
            f"{words} {known[kind].value:.6g} {known[kind].unit}"
            for kind, words in _MISSING.items()
            if kind in known and known[kind].value
        ]
        if parts:
            lines.append(_comment(f"       {joint.name}: {', '.join(parts)}"))
    if lines:
        yield "<!-- Not in this file, as a URDF has no place for it; torques that are computed from"
        yield f"     it alone lack these terms. The robot file, {robot.name}.toml, has all of them:"
        yield from lines
        yield "     Drive inertia is at the joint: what MuJoCo calls armature. -->"


def _joint_lines(
    joint: Joint, pose: Matrix, parent: str, stated: tuple[float, float] | None
) -> Iterator[str]:
    limits = joint.limits
    yield f'  <joint name="{joint.name}" type="revolute">'
    yield f"    {_origin(pose[:3, 3].tolist(), rpy_of(pose))}"
    yield f'    <parent link="{parent}"/>'
    yield f'    <child link="{joint.name}_link"/>'
    yield '    <axis xyz="0 0 1"/>'
    yield (
        f'    <limit lower="{limits.position_min_rad!r}" upper="{limits.position_max_rad!r}"'
        f' effort="{limits.torque_max_nm!r}" velocity="{limits.velocity_max_rad_s!r}"/>'
    )
    if stated is not None:
        yield f'    <dynamics damping="{stated[0]!r}" friction="{stated[1]!r}"/>'
    yield "  </joint>"
    if joint.link is not None:
        yield from _link_lines(joint.name, joint.link)
    yield from _transmission_lines(joint)


def _link_lines(name: str, link: Link) -> Iterator[str]:
    about = link.inertia_kg_m2
    centre = np.array(link.first_moment_kg_m) / link.mass_kg
    steiner = link.mass_kg * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    stated = np.array(
        [
            [about.xx, about.xy, about.xz],
            [about.xy, about.yy, about.yz],
            [about.xz, about.yz, about.zz],
        ]
    )
    inertia = (stated - steiner).tolist()
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2)}
    places["izz"] = (2, 2)
    elements = " ".join(f'{key}="{inertia[row][at]!r}"' for key, (row, at) in places.items())
    yield f'  <link name="{name}_link">'
    yield "    <inertial>"
    yield f"      {_origin(centre.tolist(), (0.0, 0.0, 0.0))}"
    yield f'      <mass value="{link.mass_kg!r}"/>'
    yield f"      <inertia {elements}/>"
    yield "    </inertial>"
    yield "  </link>"


def _transmission_lines(joint: Joint) -> Iterator[str]:
    rotor = joint.rotor_inertia_kg_m2
    if rotor is not None:
        yield f"  <!-- Rotor inertia of {joint.name}, at the motor: {rotor!r} kg m2 -->"
    if joint.drive is not None or joint.transmission is not None:
        interface = "<hardwareInterface>EffortJointInterface</hardwareInterface>"
        reduction = joint.motor_per_joint
        yield f'  <transmission name="{joint.name}_transmission">'
        yield "    <type>transmission_interface/SimpleTransmission</type>"
        yield f'    <joint name="{joint.name}">{interface}</joint>'
        yield f'    <actuator name="{joint.name}_motor">'
        yield f"      {interface}"
        yield f"      <mechanicalReduction>{reduction!r}</mechanicalReduction>"
        yield "    </actuator>"
        yield "  </transmission>"


def _origin(xyz: list[float], rpy: tuple[float, float, float]) -> str:
    place, turn = (" ".join(repr(part + 0.0) for part in parts) for parts in (xyz, rpy))
    return f'<origin xyz="{place}" rpy="{turn}"/>'


def _comment(text: str) -> str:
    """Text that may stand in an XML comment."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return escape(printable).replace("--", "- -").rstrip("-")
