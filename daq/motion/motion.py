"""The interface of a motion: the reference of some joints, cycle by cycle."""

from __future__ import annotations

from typing import Protocol

Row = tuple[float, ...]
"""q of all joints (rad), dq of all (rad/s), then feed-forward torque of all (N·m), joint side."""


class Motion(Protocol):
    """A reference that the loop follows; asked once per cycle, so `row` must be cheap."""

    @property
    def cycles(self) -> int | None:
        """Periods from its first row to where it ends, which is where the next motion begins.

        None when it never ends.
        """
        ...

    def row(self, k: int) -> Row:
        """Return the reference in cycle k ≥ 0; from `cycles` on the last posture, at rest."""
        ...
