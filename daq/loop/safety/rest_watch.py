"""Whether the joints stand still while nothing drives them.

Calibrating a motor whose arm swings would push it about, and end in an error of its encoder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from daq.loop.io.axis import Axis

STANDING_RAD_S = 0.05
"""A joint that is slower on average over `_LOOKS` looks stands still."""
_LOOKS = 5
"""At 50 looks a second, a tenth of a second."""


class RestWatch:
    """Remembers the latest speeds of all joints; `look` is called 50 times a second."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self._axes = axes
        self._speeds: deque[list[float]] = deque(maxlen=_LOOKS)

    def look(self) -> None:
        """Take in how fast they are."""
        self._speeds.append([axis.velocity_rad_s for axis in self._axes])

    @property
    def moving(self) -> list[tuple[str, float]]:
        """The joints that move: name and mean speed (rad/s)."""
        means = (sum(speeds) / len(speeds) for speeds in zip(*self._speeds, strict=True))
        return [
            (axis.joint.name, mean_rad_s)
            for axis, mean_rad_s in zip(self._axes, means, strict=False)
            if abs(mean_rad_s) > STANDING_RAD_S
        ]
