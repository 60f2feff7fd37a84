"""Friction of each joint as a function of its speed, from identified, CAD's and true parameters.

τ_f(q̇) = fv·q̇ + fc·sign(q̇) + off + fva·|q̇|, and fst·sign(q̇) more at standstill (Stribeck), which
has faded away at the speeds a picture shows. Friction of coupled motors is at their own speeds and
is not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from daq.robot.friction import FrictionShape
from estimation.identification.result import BaseParameter, Identification, ParameterValue
from estimation.model.parameters import DYNAMICS
from estimation.types import FloatArray

_SHAPE = FrictionShape(stribeck_velocity_rad_s=math.nan)
"""Stribeck's friction, which alone needs the velocity, is not drawn over speed."""
_KINDS = ("viscous", "coulomb", "offset", "asymmetric", "stribeck")
_Key = tuple[str, str]
"""Joint and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFrictionLaw:
    """Friction of one joint, at the joint.

    Attributes:
        viscous_nm_s_per_rad: fv.
        coulomb_nm: fc.
        offset_nm: off.
        asymmetric_nm_s_per_rad: fva.
        stribeck_nm: fst.
    """

    viscous_nm_s_per_rad: float = 0.0
    coulomb_nm: float = 0.0
    offset_nm: float = 0.0
    asymmetric_nm_s_per_rad: float = 0.0
    stribeck_nm: float = 0.0

    def torque_nm(self, dq_rad_s: FloatArray) -> FloatArray:
        """Return friction at some speeds, without the Stribeck term.

        Args:
            dq_rad_s: Speeds, any shape.
        """
        values = {
            "viscous": self.viscous_nm_s_per_rad,
            "coulomb": self.coulomb_nm,
            "offset": self.offset_nm,
            "asymmetric": self.asymmetric_nm_s_per_rad,
        }
        return _SHAPE.torque_nm(values, dq_rad_s)

    @property
    def breakaway_nm(self) -> tuple[float, float]:
        """Friction at standstill, backwards and forwards."""
        highest = self.coulomb_nm + self.stribeck_nm
        return self.offset_nm - highest, self.offset_nm + highest


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFriction:
    """Friction laws of one joint; None where unknown.

    Attributes:
        identified: By the chosen method.
        cad: By the robot file.
        true: On the mock.
    """

    identified: JointFrictionLaw | None
    cad: JointFrictionLaw | None
    true: JointFrictionLaw | None


def find_friction(result: Identification) -> tuple[JointFriction, ...]:
    """Return the friction laws of all joints."""
    # A base parameter that is mixed with others is not the friction of one joint.
    base = [parameter for parameter in result.base_parameters if parameter.is_alone]
    known: tuple[BaseParameter | ParameterValue, ...] = (*base, *result.parameters)
    identified = {(each.joint, each.kind): each.value for each in known}
    cad = {(each.joint, each.kind): each.cad for each in known}
    true = {(each.joint, each.kind): each.true for each in base}
    return tuple(
        JointFriction(identified=_law(identified, name), cad=_law(cad, name), true=_law(true, name))
        for name in result.joint_names
    )


def has_coupled_friction(result: Identification) -> bool:
    """Return whether some friction is at the speed of a coupled motor."""
    kinds = ("motor_viscous", "motor_coulomb")
    return any(base.kind in kinds for base in result.base_parameters)


def _law(values: Mapping[_Key, float | None], joint: str) -> JointFrictionLaw | None:
    own = {
        DYNAMICS[kind]: value for kind in _KINDS if (value := values.get((joint, kind))) is not None
    }
    if not own.keys() & {DYNAMICS["viscous"], DYNAMICS["coulomb"]}:
        return None
    return JointFrictionLaw(**own)
