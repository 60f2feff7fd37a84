"""The links and joints that a URDF states. Meshes, materials and plug-ins are passed over.

Parsed by hand rather than by a robotics library: those open the files that a URDF names, and
expand entities that it defines.
"""

from __future__ import annotations

import contextlib
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from daq.robot.geometry import rotation, translation
from estimation.errors import UrdfError
from estimation.types import FloatArray

Vector3 = tuple[float, float, float]
T = TypeVar("T")

SIZE_MAX = 5_000_000
"""Characters; URDFs have some ten thousand."""
NUMBER_MAX = 1e9
"""Of any length, mass or inertia: products of several must not overflow."""
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


@dataclass(frozen=True, slots=True)
class Body:
    """What a link weighs.

    Attributes:
        mass_kg: Its mass.
        centre_m: Its centre of mass, shape (3,).
        inertia_kg_m2: About the centre of mass, along the axes of the frame that `centre_m` is in,
            shape (3, 3).
    """

    mass_kg: float
    centre_m: FloatArray
    inertia_kg_m2: FloatArray


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A joint, as the URDF states it.

    Attributes:
        name: Its name.
        kind: revolute, continuous, prismatic, fixed, floating or planar.
        parent: The link that carries it.
        child: The link that it moves.
        origin: Pose of the joint, and of the child at zero, in the parent, shape (4, 4).
        axis: Direction, of length 1, shape (3,).
        limits: Its `limit` attributes that are finite numbers.
        dynamics: Its `dynamics` attributes, likewise.
        mimic: The joint that it follows, the factor and the offset.
        reduction: `mechanicalReduction` of its transmission, where there is one.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: FloatArray
    axis: FloatArray
    limits: dict[str, float]
    dynamics: dict[str, float]
    mimic: tuple[str, float, float] | None
    reduction: float | None

    def displacement(self, value: float) -> FloatArray:
        """Pose of the child in the parent when the joint stands at `value` (rad or m)."""
        pose = np.eye(4)
        if self.kind in ("revolute", "continuous"):
            cross = np.cross(np.eye(3), self.axis)
            turned = math.sin(value) * cross + (1.0 - math.cos(value)) * (cross @ cross)
            pose[:3, :3] += turned
        elif self.kind == "prismatic":
            pose[:3, 3] = value * self.axis
        return self.origin @ pose


@dataclass(frozen=True, slots=True)
class Tree:
    """A URDF.

    Attributes:
        name: The robot's name.
        root: The link that no joint moves.
        links: What each link weighs; None where the URDF does not say.
        joints: By name, in the URDF's order.
        carried: The joints that each link carries, by the link's name.
    """

    name: str
    root: str
    links: dict[str, Body | None]
    joints: dict[str, UrdfJoint]
    carried: dict[str, list[UrdfJoint]]


def parse_urdf(text: str, source: str) -> Tree:
    """Read a URDF; errors call it `source`.

    Raises:
        UrdfError: It is not a URDF, or not a tree of links.
    """
    if len(text) > SIZE_MAX:
        raise UrdfError(
            source, f"{len(text)} characters, expected at most {SIZE_MAX}", code="too-large"
        )
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UrdfError(
            source, "defines entities (<!DOCTYPE …>), expected a URDF without them", code="entities"
        )
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise UrdfError(source, f"is not XML: {error}", code="not-xml") from error
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    if root.tag != "robot":
        raise UrdfError(
            source,
            f"begins with <{root.tag}>, expected <robot>: it is not a URDF",
            code="not-a-urdf",
        )
    reader = _Reader(source)
    links = reader.named(root, "link", reader.link)
    reductions = reader.reductions(root)
    joints = reader.named(root, "joint", lambda element: reader.joint(element, reductions))
    carried: dict[str, list[UrdfJoint]] = {link: [] for link in links}
    first = _find_root(links, joints, source)
    for joint in joints.values():
        carried[joint.parent].append(joint)
    _check_tree(first, carried, source)
    return Tree(root.get("name") or "robot", first, links, joints, carried)


def _find_root(links: dict[str, Body | None], joints: dict[str, UrdfJoint], source: str) -> str:
    moved_by: dict[str, str] = {}
    for joint in joints.values():
        for link in (joint.parent, joint.child):
            if link not in links:
                raise UrdfError(
                    source, f"joint {joint.name}: there is no link {link!r}", code="no-such-link"
                )
        if joint.child in moved_by:
            other = moved_by[joint.child]
            problem = f"link {joint.child} is moved by {other} and by {joint.name}, expected a tree"
            raise UrdfError(source, problem, code="moved-twice")
        moved_by[joint.child] = joint.name
    roots = [link for link in links if link not in moved_by]
    if len(roots) != 1:
        found = ", ".join(roots) or "none"
        raise UrdfError(
            source, f"links that no joint moves: {found}; expected exactly one", code="not-one-root"
        )
    return roots[0]


def _check_tree(root: str, carried: dict[str, list[UrdfJoint]], source: str) -> None:
    """Every link hangs on the root."""
    reached, waiting = set(), [root]
    while waiting:
        link = waiting.pop()
        reached.add(link)
        waiting += [joint.child for joint in carried[link]]
    lost = [link for link in carried if link not in reached]
    if lost:
        raise UrdfError(
            source,
            f"links in a closed loop: {', '.join(lost)}; expected a tree",
            code="closed-loop",
        )


class _Reader:
    """Reads elements, and says where something is wrong."""

    def __init__(self, source: str) -> None:
        self._source = source

    def named(self, root: ET.Element, tag: str, read: Callable[[ET.Element], T]) -> dict[str, T]:
        """All elements of a kind, by their names."""
        found: dict[str, T] = {}
        for element in root.findall(tag):
            name = element.get("name")
            if not name:
                raise UrdfError(self._source, f"a <{tag}> has no name", code="no-name")
            if name in found:
                raise UrdfError(
                    self._source, f"there are two <{tag}>s called {name}", code="same-name"
                )
            found[name] = read(element)
        return found

    def link(self, element: ET.Element) -> Body | None:
        inertial = element.find("inertial")
        if inertial is None:
            return None
        where = f"link {element.get('name')}: inertial"
        mass = self._number(inertial.find("mass"), "value", where, 0.0)
        tensor = inertial.find("inertia")
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        xx, xy, xz, yy, yz, zz = (self._number(tensor, key, where, 0.0) for key in keys)
        pose = self._origin(inertial, where)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return Body(mass, pose[:3, 3], pose[:3, :3] @ inertia @ pose[:3, :3].T)

    def joint(self, element: ET.Element, reductions: dict[str, float]) -> UrdfJoint:
        name, kind = element.get("name", ""), element.get("type", "")
        where = f"joint {name}"
        if kind not in KINDS:
            expected = f"expected one of {', '.join(KINDS)}"
            raise UrdfError(
                self._source, f"{where}: type {kind!r}, {expected}", code="unknown-joint-type"
            )
        ends = []
        for tag in ("parent", "child"):
            end = element.find(tag)
            if end is None or not end.get("link"):
                raise UrdfError(self._source, f"{where}: has no {tag} link", code="no-link-named")
            ends.append(end.get("link", ""))
        axis = np.array(self._vector(element.find("axis"), "xyz", where, (1.0, 0.0, 0.0)))
        length = float(np.linalg.norm(axis))
        if kind in ("revolute", "continuous", "prismatic") and not 1e-6 < length < 1e6:
            raise UrdfError(
                self._source,
                f"{where}: axis {axis.tolist()}, expected a direction",
                code="no-direction",
            )
        mimic = element.find("mimic")
        return UrdfJoint(
            name=name,
            kind=kind,
            parent=ends[0],
            child=ends[1],
            origin=self._origin(element, where),
            axis=axis / (length or 1.0),
            limits=self._numbers(element.find("limit")),
            dynamics=self._numbers(element.find("dynamics")),
            mimic=None
            if mimic is None
            else (
                mimic.get("joint", ""),
                self._number(mimic, "multiplier", where, 1.0),
                self._number(mimic, "offset", where, 0.0),
            ),
            reduction=reductions.get(name),
        )

    def reductions(self, root: ET.Element) -> dict[str, float]:
        """Return the gears of simple transmissions, by joint."""
        found = {}
        for transmission in root.findall("transmission"):
            joints, actuators = transmission.findall("joint"), transmission.findall("actuator")
            text = actuators[0].findtext("mechanicalReduction") if len(actuators) == 1 else None
            if len(joints) == 1 and text is not None:
                value = self._finite(text, f"transmission {transmission.get('name')}")
                if value:
                    found[joints[0].get("name", "")] = value
        return found

    def _origin(self, element: ET.Element, where: str) -> FloatArray:
        origin = element.find("origin")
        roll, pitch, yaw = self._vector(origin, "rpy", where, (0.0, 0.0, 0.0))
        shift = translation(*self._vector(origin, "xyz", where, (0.0, 0.0, 0.0)))
        return shift @ rotation(2, yaw) @ rotation(1, pitch) @ rotation(0, roll)

    def _vector(
        self, element: ET.Element | None, key: str, where: str, default: Vector3
    ) -> Vector3:
        text = None if element is None else element.get(key)
        if text is None:
            return default
        numbers = [self._finite(word, where) for word in text.split()]
        if len(numbers) != 3:
            raise UrdfError(
                self._source,
                f"{where}: {key} = {text[:60]!r}, expected three numbers",
                code="not-numbers",
            )
        return numbers[0], numbers[1], numbers[2]

    def _number(self, element: ET.Element | None, key: str, where: str, default: float) -> float:
        text = None if element is None else element.get(key)
        return default if text is None else self._finite(text, where)

    def _numbers(self, element: ET.Element | None) -> dict[str, float]:
        """Attributes that are finite numbers: limits may well be infinite or missing."""
        found = {}
        for key, text in () if element is None else element.items():
            with contextlib.suppress(ValueError):
                if math.isfinite(float(text)):
                    found[key] = float(text)
        return found

    def _finite(self, text: str, where: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            hint = "; expand it first: xacro FILE > FILE.urdf" if "${" in text else ""
            raise UrdfError(
                self._source, f"{where}: {text[:60]!r}, expected a number{hint}", code="not-numbers"
            )
        if abs(value) > NUMBER_MAX:
            expected = f"expected a number of at most {NUMBER_MAX:g}"
            raise UrdfError(
                self._source, f"{where}: {text[:60]!r}, {expected}", code="out-of-range"
            )
        return value
