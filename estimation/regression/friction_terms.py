"""Friction as columns of a linear regression: torque (or force) = columns(velocity)·parameters.

Pure computation for any speed and its force: rad/s and N·m, or m/s and N. At rest, where friction
is whatever it must be, sign(0) = 0 and every column is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from daq.robot.friction import FrictionShape
from estimation.errors import DatasetError
from estimation.types import FloatArray


@dataclass(frozen=True, slots=True)
class LinearFriction:
    """Friction that is linear in its parameters.

    Attributes:
        name: Of the law.
        names: Of its parameters, in the order of the columns.
        columns: From velocities, shape (n,), to columns, shape (n, k).
    """

    name: str
    names: tuple[str, ...]
    columns: Callable[[ArrayLike], FloatArray]


def _coulomb_viscous(velocity: ArrayLike) -> FloatArray:
    v = np.asarray(velocity, dtype=np.float64)
    return np.column_stack([v, np.sign(v)])


def _asymmetric(velocity: ArrayLike) -> FloatArray:
    v = np.asarray(velocity, dtype=np.float64)
    forward, backward = np.maximum(v, 0.0), np.minimum(v, 0.0)
    return np.column_stack([forward, backward, np.sign(forward), np.sign(backward)])


COULOMB_VISCOUS = LinearFriction("coulomb_viscous", ("fv", "fc"), _coulomb_viscous)
"""Fv·v + Fc·sign(v)."""

ASYMMETRIC = LinearFriction(
    "asymmetric", ("fv_plus", "fv_minus", "fc_plus", "fc_minus"), _asymmetric
)
"""Fv⁺·v + Fc⁺ forwards (v > 0), Fv⁻·v - Fc⁻ backwards (v < 0): all four positive as a rule.

It takes no constant offset beside it: (Fc⁺ - Fc⁻)/2 is one already, and no data that move could
tell the two apart.
"""


def stribeck_column(velocity: ArrayLike, stribeck_velocity: float) -> FloatArray:
    """Friction beyond Coulomb's that fades with speed: sign(v)·exp(-(v/v_s)²).

    Args:
        velocity: v, shape (n,).
        stribeck_velocity: v_s > 0, in the same unit: at this speed 37 % are left.

    Returns:
        The column, shape (n,), which multiplies Fs - Fc.

    Raises:
        DatasetError: v_s is not above 0.
    """
    if not stribeck_velocity > 0.0:
        raise DatasetError(
            f"a Stribeck velocity of {stribeck_velocity:g}: it must be above 0",
            code="bad-stribeck-velocity",
        )
    v = np.asarray(velocity, dtype=np.float64)
    return FrictionShape(stribeck_velocity).column("stribeck", v)
