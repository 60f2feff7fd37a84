"""The parameter vector θ: which numbers, in which order, in which units. Stated once, here.

(3.3) and (3.5) of [De Facci 2024] come first, so that its published vectors are the head of ours:

```
θ = [π₁ … πₙ,  fv₁ … fvₙ,  fc₁ … fcₙ,  Ia₁ … Iaₙ,  off₁ …,  fva₁ …,  fst₁ …,  coupled motors]
πᵢ = [m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz]      in the frame of joint i (z is its axis)
```

The inertia is about the frame's origin. Friction and drive inertia Ia (the rotor's, times the
square of the reduction) are at the joint; only the terms that a model has take part. A motor that
several joints turn (a coupled wrist) has drive inertia and friction of its own, at its own speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from daq.robot import Robot
from estimation.errors import DatasetError
from estimation.types import FloatArray, Rows

INERTIAL: Final = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Of one link, the order of (3.3); Pinocchio's as well."""
INERTIAL_UNITS: Final = ("kg", *("kg·m",) * 3, *("kg·m²",) * 6)


class Term(NamedTuple):
    """What a model may have beside rigid links: one number per joint."""

    name: str
    symbol: str
    unit: str
    meaning: str


TERMS: Final = (
    Term("viscous", "fv", "N·m·s/rad", "viscous friction"),
    Term("coulomb", "fc", "N·m", "Coulomb friction"),
    Term("drive_inertia", "Ia", "kg·m²", "drive inertia"),
    Term("offset", "off", "N·m", "constant torque, or an offset of the current"),
    Term("asymmetric", "fva", "N·m·s/rad", "viscous friction, forwards less backwards (half)"),
    Term("stribeck", "fst", "N·m", "friction beyond Coulomb's at standstill"),
)
"""In the order of θ. Coulomb friction that differs between directions is `offset`."""
DYNAMICS: Final = {
    "viscous": "viscous_nm_s_per_rad",
    "coulomb": "coulomb_nm",
    "drive_inertia": "drive_inertia_kg_m2",
    "offset": "offset_nm",
    "asymmetric": "asymmetric_nm_s_per_rad",
    "stribeck": "stribeck_nm",
    "motor_viscous": "coupled_viscous_nm_s_per_rad",
    "motor_coulomb": "coupled_coulomb_nm",
    "motor_drive_inertia": "coupled_drive_inertia_kg_m2",
}
"""Where the robot file states a kind of parameter: keys of `[joints.dynamics]`."""
COUPLED_TERMS: Final = ("viscous", "coulomb", "drive_inertia")
"""Those that a coupled motor has of its own."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One element of θ.

    Attributes:
        symbol: Such as `mcx2`; joints count from 1.
        unit: SI.
        joint: The joint it belongs to, from 0; of a coupled motor, the joint of the same number.
        term: One of `INERTIAL`, or the name of a term.
        is_coupled: Whether it is a coupled motor's, at the motor's own speed.
    """

    symbol: str
    unit: str
    joint: int
    term: str
    is_coupled: bool = False

    @property
    def kind(self) -> str:
        """The term; `motor_` in front for a coupled motor's."""
        return f"motor_{self.term}" if self.is_coupled else self.term


@dataclass(frozen=True)
class Parameters:
    """The elements of a model's θ.

    Attributes:
        joint_names: Of the robot.
        terms: Names of the terms that the model has, in the order of `TERMS`.
        coupled_motors: Those that several joints turn, from 0.
    """

    joint_names: tuple[str, ...]
    terms: tuple[str, ...]
    coupled_motors: tuple[int, ...] = ()

    @cached_property
    def items(self) -> tuple[Parameter, ...]:
        """All elements, in the order of θ."""
        return tuple(self._generate())

    def __len__(self) -> int:
        return len(self.items)

    def _generate(self) -> Iterator[Parameter]:
        joints = range(len(self.joint_names))
        for joint in joints:
            for kind, unit in zip(INERTIAL, INERTIAL_UNITS, strict=True):
                yield Parameter(f"{kind}{joint + 1}", unit, joint, kind)
        for term in TERMS:
            if term.name in self.terms:
                for joint in joints:
                    yield Parameter(f"{term.symbol}{joint + 1}", term.unit, joint, term.name)
        for motor in self.coupled_motors:
            for term in TERMS:
                if term.name in self.terms and term.name in COUPLED_TERMS:
                    symbol = f"{term.symbol}m{motor + 1}"
                    yield Parameter(symbol, term.unit, motor, term.name, is_coupled=True)

    @property
    def joint_count(self) -> int:
        """How many joints."""
        return len(self.joint_names)

    @property
    def inertial_count(self) -> int:
        """Elements that describe links: the first ones of θ."""
        return len(INERTIAL) * self.joint_count

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Of all elements."""
        return tuple(item.symbol for item in self.items)

    def link(self, joint: int) -> slice:
        """Where πᵢ is in θ."""
        return slice(len(INERTIAL) * joint, len(INERTIAL) * (joint + 1))

    def of_kind(self, kind: str) -> Rows:
        """Where the elements of a kind are in θ."""
        return np.array([i for i, item in enumerate(self.items) if item.kind == kind], np.intp)


def choose_parameters(robot: Robot, terms: Sequence[str] | None = None) -> Parameters:
    """Return the parameters of a robot's model, by default as its file says under `estimation`.

    `asymmetric` brings `offset` with it, the difference of Coulomb friction.

    Raises:
        DatasetError: There is no such term, or there are no links to identify.
    """
    wanted = set(robot.estimation.terms if terms is None else terms)
    known = [term.name for term in TERMS]
    unknown = sorted(wanted.difference(known))
    if unknown:
        raise DatasetError(
            f"term {unknown[0]!r} is unknown: expected some of {', '.join(known)}",
            code="unknown-term",
        )
    if any(joint.is_on_bench for joint in robot.joints):
        raise DatasetError(
            f"robot {robot.name} is a joint on the bench, without links: `armature bench analyse` "
            "is for it",
            code="joint-on-bench",
        )
    if "asymmetric" in wanted:
        wanted.add("offset")
    coupling = coupling_matrix(robot)
    coupled = np.flatnonzero(np.count_nonzero(coupling, axis=1) > 1)
    return Parameters(
        joint_names=tuple(joint.name for joint in robot.joints),
        terms=tuple(name for name in known if name in wanted),
        coupled_motors=tuple(coupled.tolist()),
    )


def coupling_matrix(robot: Robot) -> FloatArray:
    """From joint angles to motor angles (after their gears), shape (n_joints, n_joints)."""
    if robot.coupling is None:
        return np.eye(len(robot.joints))
    return np.array(robot.coupling, dtype=np.float64)


def cad_vector(robot: Robot, parameters: Parameters) -> FloatArray | None:
    """Return θ as the robot file states it: links from CAD, friction and rotors of the drives.

    Shape (p,), with 0 for friction and rotors that the file does not know; None when a joint has no
    link.
    """
    theta = np.zeros(len(parameters))
    for index, joint in enumerate(robot.joints):
        link = joint.link
        if link is None:
            return None
        inertia = link.inertia_kg_m2
        theta[parameters.link(index)] = [
            link.mass_kg,
            *link.first_moment_kg_m,
            *(inertia.xx, inertia.xy, inertia.yy, inertia.xz, inertia.yz, inertia.zz),
        ]
    for index, item in enumerate(parameters.items):
        if index >= parameters.inertial_count:
            joint = robot.joints[item.joint]
            stated = getattr(joint.dynamics, DYNAMICS[item.kind], None)
            by_drive = _drive_values(robot, item.joint).get(item.kind, 0.0)
            theta[index] = by_drive if stated is None else stated
    return theta


def _drive_values(robot: Robot, index: int) -> dict[str, float]:
    """At the joint; η makes the motor's own friction smaller there ([De Facci 2024], 4.11)."""
    joint = robot.joints[index]
    if joint.drive is None:
        return {"drive_inertia": (joint.rotor_inertia_kg_m2 or 0.0) * joint.gear_reduction**2}
    return {
        "viscous": joint.drive.joint_viscous_nm_s_per_rad,
        "coulomb": joint.drive.joint_coulomb_nm,
        "drive_inertia": joint.drive.joint_inertia_kg_m2,
    }
