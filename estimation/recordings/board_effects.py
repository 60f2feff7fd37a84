"""What a board does to the values of its replies, and what is to be added to undo it.

Position, velocity and current of one reply are latched together, when the exchange before it ended;
they belong to one moment except for the lag of the board's own filters (PROTOCOL.md): the position
has none, the velocity is low-passed at 100 Hz (lag 1.59 ms), the current at 1 kHz (lag 0.16 ms).
Both are filters of first order, so that y + τ·dy/dt gives back what went in.

A board that holds its position reference between frames lets the current fall by Kp·ω·T while the
motor turns on. Sampled at the end of each frame it reads Kp·ω·c too little, c = T/2 − τ.

The velocity reference, too, is held between frames, by every board: that takes Kd·ω̇·c from the
current, and looks like a rotor inertia K_i·Kd·c too small (laas4's last two: 4 and 7 %).
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

CURRENT_FILTER_S = 1.0 / (2.0 * math.pi * 1000.0)
"""Lag of the boards' 1 kHz low-pass on iq."""
VELOCITY_FILTER_S = 1.0 / (2.0 * math.pi * 100.0)
"""Lag of the boards' 100 Hz low-pass on the velocity."""
HOLDING_PROFILES = frozenset({"uomodri", "udriver2"})
"""Boards that hold their position reference between frames. This package knows no wire formats; a
test compares this with their tables."""
COMMAND_MAX = {
    "kp_a_per_rad": 6.0,
    "kd_a_s_per_rad": 0.7,
    "ki_a_per_rad_s": 6.0,
    "reference_velocity_rad_s": 1800.0,
}
"""What no frame can hold, 16 bits being 5.1, 0.61, 5.1 and 1676 rad/s (of the motor; no joint is
faster than it). A test compares this, too, with the tables."""

Values = TypeVar("Values", float, NDArray[np.float64])


def held_bias_a(gain: Values, motor_rate: Values, half_period_s: float) -> Values:
    """What a held reference takes from the current that is sampled at the end of a frame.

    Args:
        gain: Of the position error, Kp in A/rad; or of the velocity error, Kd in A·s/rad.
        motor_rate: How fast the motor leaves that reference behind: its velocity in rad/s; or its
            acceleration in rad/s². In the direction in which the current is counted.
        half_period_s: T/2, half the time between two frames.

    Returns:
        gain·rate·(T/2 − τ), to be added to the measured current.
    """
    return gain * motor_rate * (half_period_s - CURRENT_FILTER_S)
