"""Motions in closed form: between postures, to another speed, at rest, and one after another.

They are computed cycle by cycle in plain floats, so starting one costs the loop nothing. None of
them knows limits: `daq.motion.planning` makes those that keep them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Protocol

from daq.motion.errors import MotionError

Row = tuple[float, ...]
"""q of all joints (rad), dq of all (rad/s), then feed-forward torque of all (N·m), joint side."""
SEAM_TOLERANCE_RAD = 1e-9


class Motion(Protocol):
    """A reference that the loop follows; asked once per cycle, so `row` must be cheap."""

    @property
    def cycles(self) -> int | None:
        """Periods from its first row to its end, where the next motion begins; None for never."""
        ...

    def row(self, k: int) -> Row:
        """Return the reference in cycle k ≥ 0; from `cycles` on the last posture, at rest."""
        ...


class QuinticMove:
    """From one posture and speed to another, without acceleration at either end.

    Args:
        start_q: Where the joints are (rad).
        start_dq: How fast they are (rad/s).
        start_torque: Feed-forward torque at the start (N·m); by default none.
        end_torque: Feed-forward torque at the end, faded over to smoothly; by default none.
    """

    __slots__ = (
        "_change",
        "_inverse",
        "_is_between_rests",
        "_joints",
        "_last",
        "_seconds",
        "_torque",
        "cycles",
    )

    def __init__(
        self,
        start_q: Sequence[float],
        start_dq: Sequence[float],
        end_q: Sequence[float],
        end_dq: Sequence[float],
        *,
        cycles: int,
        period_s: float,
        start_torque: Sequence[float] | None = None,
        end_torque: Sequence[float] | None = None,
    ) -> None:
        if cycles < 1:
            raise MotionError(f"a move of {cycles} cycles; it takes at least 1", code="no-cycles")
        self.cycles = cycles
        self._seconds = cycles * period_s
        self._inverse = 1.0 / cycles
        ends = zip(start_q, end_q, start_dq, end_dq, strict=True)
        self._joints = [(q, end - q, dq, end_speed) for q, end, dq, end_speed in ends]
        self._is_between_rests = not any(start_dq) and not any(end_dq)
        rest = (0.0,) * len(self._joints)
        self._torque = tuple(start_torque or rest)
        end_torque = tuple(end_torque or rest)
        pairs = list(zip(self._torque, end_torque, strict=True))
        self._change = pairs if any(start != end for start, end in pairs) else None
        self._last = (*map(float, end_q), *rest, *end_torque)

    def row(self, k: int) -> Row:
        """Return the reference in cycle k."""
        if k >= self.cycles:
            return self._last
        s = k * self._inverse
        ss = s * s
        sss = s * ss
        seconds = self._seconds
        way = sss * (10.0 + s * (6.0 * s - 15.0))
        way_rate = 30.0 * ss * (1.0 - s) * (1.0 - s) / seconds
        torque = self._torque
        if self._change:
            torque = tuple([start + way * (end - start) for start, end in self._change])
        joints = self._joints
        if self._is_between_rests:
            return (
                *[q + delta * way for q, delta, _, _ in joints],
                *[delta * way_rate for _, delta, _, _ in joints],
                *torque,
            )
        first = seconds * (s + sss * (s * (8.0 - 3.0 * s) - 6.0))
        second = seconds * sss * (s * (7.0 - 3.0 * s) - 4.0)
        first_rate = 1.0 + ss * (s * (32.0 - 15.0 * s) - 18.0)
        second_rate = ss * (s * (28.0 - 15.0 * s) - 12.0)
        return (
            *[q + delta * way + u0 * first + u1 * second for q, delta, u0, u1 in joints],
            *[delta * way_rate + u0 * first_rate + u1 * second_rate for _, delta, u0, u1 in joints],
            *torque,
        )


class SpeedChange:
    """From the present speeds to constant ones; then on at those forever, or at rest.

    Speed follows 3s² - 2s³, so acceleration is zero at both ends of the change and jerk is bounded;
    position is its exact integral.

    Args:
        start_q: Where the joints are (rad).
        start_dq: How fast they are (rad/s).
        target_dq: How fast they shall be; all zero brings them to rest.
        ramp_s: How long each joint takes for it.
        start_torque: Feed-forward torque at the start (N·m), faded out smoothly.
        fade_s: How long that takes.

    Attributes:
        cycles: Until the last joint is at rest; None when one goes on.
        changing_cycles: Until the last joint has its speed.
    """

    __slots__ = (
        "_fade_s", "_joints", "_last", "_period_s", "_rest", "_torque", "changing_cycles", "cycles",
    )  # fmt: skip

    def __init__(
        self,
        start_q: Sequence[float],
        start_dq: Sequence[float],
        target_dq: Sequence[float],
        *,
        ramp_s: Sequence[float],
        period_s: float,
        start_torque: Sequence[float] | None = None,
        fade_s: float = 0.0,
    ) -> None:
        self._period_s = period_s
        # Per joint: q and speed at the start, change of speed, ramp, final speed, and where the
        # straight line after the ramp would have begun.
        self._joints = [
            (q, dq, to - dq, ramp, to, q - 0.5 * (to - dq) * ramp)
            for q, dq, to, ramp in zip(start_q, start_dq, target_dq, ramp_s, strict=True)
        ]
        self._rest = (0.0,) * len(self._joints)
        has_torque = start_torque is not None and any(start_torque)
        self._torque = tuple(start_torque) if start_torque is not None and has_torque else None
        self._fade_s = fade_s
        longest_s = max([*ramp_s, fade_s if has_torque else 0.0])
        cycles = math.ceil(longest_s / period_s - 1e-9)
        self.changing_cycles = cycles
        self.cycles: int | None = None if any(target_dq) else cycles
        self._last: Row = (*(line for *_, line in self._joints), *self._rest, *self._rest)

    def row(self, k: int) -> Row:
        """Return the reference in cycle k."""
        if self.cycles is not None and k >= self.cycles:
            return self._last
        t = k * self._period_s
        positions, speeds = [], []
        for q, dq, change, ramp_s, final, line in self._joints:
            if t >= ramp_s:
                positions.append(line + final * t)
                speeds.append(final)
            else:
                s = t / ramp_s
                positions.append(q + dq * t + change * ramp_s * s * s * s * (1.0 - 0.5 * s))
                speeds.append(dq + change * s * s * (3.0 - 2.0 * s))
        if self._torque is None or t >= self._fade_s:
            return (*positions, *speeds, *self._rest)
        s = t / self._fade_s
        left = 1.0 - s * s * (3.0 - 2.0 * s)
        return (*positions, *speeds, *[left * torque for torque in self._torque])


class Standstill:
    """Stay at a posture (rad) forever."""

    __slots__ = ("_row",)
    cycles: int | None = None

    def __init__(self, q: Sequence[float]) -> None:
        self._row: Row = (*q, *(0.0,) * (2 * len(q)))

    def row(self, k: int) -> Row:
        """Return the same in every cycle."""
        return self._row


class MotionSequence:
    """One motion after the other; each begins in the cycle in which the one before it ends.

    Args:
        motions: In their order; only the last may be endless.

    Attributes:
        cycles: Of all together.

    Raises:
        MotionError: A motion begins elsewhere than the one before it ends, or never begins.
    """

    __slots__ = ("_begin", "_current", "_end", "_motions", "_number", "_starts", "cycles")

    def __init__(self, *motions: Motion) -> None:
        self._motions = motions
        self._starts = [0]
        for number, (motion, following) in enumerate(itertools.pairwise(motions)):
            if motion.cycles is None:
                raise MotionError(
                    f"motion {number} never ends, and others were to follow it", code="endless"
                )
            ends, begins = motion.row(motion.cycles), following.row(0)
            for place in range(len(begins) // 3):
                if abs(ends[place] - begins[place]) > SEAM_TOLERANCE_RAD:
                    raise MotionError(
                        f"motion {number} ends with value {place} at {ends[place]:.9g} rad, the"
                        f" next begins at {begins[place]:.9g}: that would be a jump",
                        code="position-jump",
                    )
            self._starts.append(self._starts[-1] + motion.cycles)
        last = motions[-1].cycles
        self.cycles = None if last is None else self._starts[-1] + last
        self._enter(0)

    def row(self, k: int) -> Row:
        """Return the reference in cycle k."""
        while k >= self._end:
            self._enter(self._number + 1)
        if k < self._begin:
            self._enter(0)
            return self.row(k)
        return self._current.row(k - self._begin)

    @property
    def number(self) -> int:
        """Which of the motions the last row was of."""
        return self._number

    def _enter(self, number: int) -> None:
        self._number = number
        self._current = self._motions[number]
        self._begin = self._starts[number]
        is_last = number + 1 == len(self._starts)
        self._end: float = math.inf if is_last else self._starts[number + 1]
