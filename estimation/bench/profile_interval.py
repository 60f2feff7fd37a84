"""Intervals of Stribeck friction, whose two parameters only the slowest speeds tell apart.

Drawing plateaus again and again says little about them: what is off at a speed is off in all of its
plateaus, and often a single speed shows more than Coulomb friction at all. So each speed counts
once here, and a value is inside its interval when the best fit that has it is no worse than chance
makes it (profile likelihood). Where one speed must determine both, one end stays open: as far as
was looked.

References:
    D. M. Bates, D. G. Watts, "Nonlinear Regression Analysis and Its Applications", Wiley, 1988,
    chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.special

from estimation.types import FloatArray, Rows

_CONFIDENCE = 0.95
_STEPS = 600
_VANISHED = 1e-9


@dataclass(frozen=True, slots=True)
class StribeckProfile:
    """What the speeds say of Stribeck friction.

    Attributes:
        intervals: Of 95 %, by parameter.
        is_open: Whether static friction may fade at the lowest velocity that was looked at, or
            below: then only one end is known of that velocity, and of how large it is.
    """

    intervals: Mapping[str, tuple[float, float]]
    is_open: bool


def profile_stribeck(
    design_at: Callable[[float], FloatArray],
    torque_nm: FloatArray,
    velocity_rad_s: FloatArray,
    speeds: Rows,
    *,
    between_rad_s: tuple[float, float],
) -> StribeckProfile:
    """Fit every velocity at which static friction may fade, and see which are no worse.

    Args:
        design_at: What each parameter takes per unit when static friction fades at a velocity,
            (n, p); the second one is Coulomb friction, the third what static friction has more.
        torque_nm: At the motor, (n,).
        velocity_rad_s: At the motor, (n,).
        speeds: Which plateaus have the same speed, in either direction: numbers from 0, (n,).
        between_rad_s: Where the velocity is looked for.
    """
    # Both directions of a speed are one: friction changes its sign with it.
    mean = (speeds == np.arange(speeds.max() + 1)[:, None]) * np.sign(velocity_rad_s)
    mean /= np.abs(mean).sum(axis=1, keepdims=True)
    target = mean @ torque_nm
    tried_rad_s = np.geomspace(*between_rad_s, _STEPS)
    designs = np.stack([mean @ design_at(v_s) for v_s in tried_rad_s])
    lengths = np.linalg.norm(designs, axis=1)
    # Gravity has gone where both directions are there: it does not change its sign with them.
    is_left = np.all(lengths > _VANISHED * np.max(lengths), axis=0)
    designs, lengths = designs[..., is_left], lengths[:, is_left]
    inverses = np.linalg.pinv(designs / lengths[:, None, :])
    solutions = (inverses @ target) / lengths
    squared = np.sum((target - np.einsum("rij,rj->ri", designs, solutions)) ** 2, axis=1)
    # Static friction is Coulomb friction and what it has more.
    static_nm = solutions[:, 1] + solutions[:, 2]
    of_static = inverses[:, 1] / lengths[:, 1:2] + inverses[:, 2] / lengths[:, 2:3]
    static_share = np.sum(of_static**2, axis=1)
    degrees = len(target) - designs.shape[2] - 1
    chance = np.inf
    if degrees > 0:
        chance = scipy.special.stdtrit(degrees, 0.5 + 0.5 * _CONFIDENCE) ** 2 / degrees
    spare = np.min(squared) * (1.0 + chance) - squared
    is_inside = spare >= 0.0
    half_nm = np.sqrt(static_share[is_inside] * spare[is_inside]) if degrees > 0 else 0.0
    inside, inside_nm = np.flatnonzero(is_inside), static_nm[is_inside]
    # As far as the first that are outside: the ends lie between.
    low_rad_s = tried_rad_s[max(inside[0] - 1, 0)]
    high_rad_s = tried_rad_s[min(inside[-1] + 1, _STEPS - 1)]
    intervals = {
        "stribeck_velocity_rad_s": (low_rad_s, high_rad_s),
        "f_static_nm": (np.min(inside_nm - half_nm), np.max(inside_nm + half_nm)),
    }
    ends = {name: (float(low), float(high)) for name, (low, high) in intervals.items()}
    return StribeckProfile(ends, bool(is_inside[0]))
