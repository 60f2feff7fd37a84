"""Friction of each joint as a function of its speed, from identified, CAD's and true parameters.

τ_f(q̇) = fv·q̇ + fc·sign(q̇) + off + fva·|q̇|, and fst·sign(q̇) more at standstill (Stribeck), which
has faded away at the speeds a picture shows. Friction of coupled motors is at their own speeds and
is not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from estimation.identification.result import Identification
from estimation.types import FloatArray

_SYMBOL = re.compile(r"(fva|fv|fc|off|fst)(\d+)")
_COUPLED = re.compile(r"(fv|fc)m\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionLaw:
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
        """Friction at some speeds, without what is left of Stribeck's there.

        Args:
            dq_rad_s: Speeds, any shape.
        """
        torque: FloatArray = (
            self.viscous_nm_s_per_rad * dq_rad_s
            + self.coulomb_nm * np.sign(dq_rad_s)
            + self.offset_nm
            + self.asymmetric_nm_s_per_rad * np.abs(dq_rad_s)
        )
        return torque

    @property
    def breakaway_nm(self) -> tuple[float, float]:
        """At standstill, backwards and forwards."""
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

    identified: FrictionLaw | None
    cad: FrictionLaw | None
    true: FrictionLaw | None


def find_friction(result: Identification, joints: int) -> tuple[JointFriction, ...]:
    """The friction laws of all joints.

    Args:
        result: What was identified.
        joints: How many there are.
    """
    identified: dict[str, float] = {}
    cad: dict[str, float] = {}
    true: dict[str, float] = {}
    for base in result.base_parameters:
        if base.expression == base.symbol:  # mixed with others it is no friction of one joint
            identified[base.symbol] = base.value
            _add(cad, base.symbol, base.cad)
            _add(true, base.symbol, base.true)
    for parameter in result.parameters:
        identified[parameter.symbol] = parameter.value
        _add(cad, parameter.symbol, parameter.cad)
    return tuple(
        JointFriction(
            identified=_law(identified, number), cad=_law(cad, number), true=_law(true, number)
        )
        for number in range(1, joints + 1)
    )


def has_coupled_friction(result: Identification) -> bool:
    """Whether some friction is at the speed of a coupled motor.

    Args:
        result: What was identified.
    """
    return any(_COUPLED.fullmatch(base.symbol) for base in result.base_parameters)


def _add(values: dict[str, float], symbol: str, value: float | None) -> None:
    if value is not None:
        values[symbol] = value


def _law(values: Mapping[str, float], number: int) -> FrictionLaw | None:
    own = {
        found[1]: value
        for symbol, value in values.items()
        if (found := _SYMBOL.fullmatch(symbol)) and int(found[2]) == number
    }
    if not own.keys() & {"fv", "fc"}:
        return None
    return FrictionLaw(
        viscous_nm_s_per_rad=own.get("fv", 0.0),
        coulomb_nm=own.get("fc", 0.0),
        offset_nm=own.get("off", 0.0),
        asymmetric_nm_s_per_rad=own.get("fva", 0.0),
        stribeck_nm=own.get("fst", 0.0),
    )
