"""Finds out why a joint on the bench does not turn as it should. Pure computation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from daq.bench.settling import Diagnosis, Look

_STUCK, _STUCK_S, _LOOKS_MIN = 0.1, 0.09, 3
_LED = 0.5
"""Of the speed that is wanted: a reference that is slower is only just setting off."""
_REPLY_AGE_S = 0.004


def find_obstacle(
    looks: Sequence[Look],
    joint: str,
    *,
    target_rad_s: float,
    friction_a: float,
    limit_a: float,
    joint_position_rad: float,
    has_moved: bool,
) -> Diagnosis | None:
    """Find out whether the motor stands still against a current that friction does not explain.

    The speed is what was commanded, at the motor; the currents what friction takes, and what the
    board lets through. None if it turns.
    """
    looks = list(looks)
    latest = [look for look in looks if look.t_s > looks[-1].t_s - _STUCK_S]
    latest = latest if len(latest) >= _LOOKS_MIN else looks[-_LOOKS_MIN:]
    if len(latest) < _LOOKS_MIN:
        return None
    elapsed_s = latest[-1].t_s - latest[0].t_s
    speed_rad_s = (latest[-1].angle_rad - latest[0].angle_rad) / elapsed_s
    current_a = abs(sum(look.iq_a for look in latest)) / len(latest)
    led_rad = [look.angle_rad + look.lag_rad for look in (latest[0], latest[-1])]
    led_rad_s = abs(led_rad[1] - led_rad[0]) / elapsed_s
    # One that gravity pulls may be behind before it is led anywhere.
    if led_rad_s < _LED * abs(target_rad_s) or abs(speed_rad_s) > _STUCK * abs(target_rad_s):
        return None
    if current_a < min(2.0 * friction_a, 0.9 * limit_a):
        return None
    where = f"joint {joint} stands still at {joint_position_rad:+.3f} rad although its motor gets "
    where += f"{current_a:.3g} A"
    if current_a > 0.9 * limit_a:
        where += f", all that its limit of {limit_a:.3g} A allows"
    if has_moved:
        return Diagnosis(
            "hit",
            f"{where}: it has hit something. Is it clamped, is it still mounted, is its way free?",
        )
    return Diagnosis(
        "never-moved",
        f"{where}: it never moved. It is blocked, or friction needs more current than the joint's "
        "current_max_a",
    )


def find_encoder_gap(looks: Sequence[Look], fastest_rad_s: float) -> Diagnosis | None:
    """Say so if the position has jumped by more than the motor can have turned; else None."""
    for before, after in itertools.pairwise(looks):
        jump_rad, time_s = after.angle_rad - before.angle_rad, after.t_s - before.t_s
        if abs(jump_rad) > 1.5 * fastest_rad_s * (time_s + _REPLY_AGE_S):
            return Diagnosis(
                "encoder-gap",
                f"the encoder has a gap: the motor's position jumps by {jump_rad:+.3g} rad within "
                f"{1e3 * time_s:.0f} ms; check the encoder and its cable",
            )
    return None
