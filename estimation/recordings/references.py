"""What a board's position reference does between two replies, and their currents do not show. Pure.

Between two frames a board holds its reference, or moves it on at the speed it was told; with the
next command it jumps, the more so if that comes late. The current follows, times Kp, but it is seen
only once per frame: low-passed, a moment before the next command acts. The recording tells which
reference acted when, so that the difference between what the current was on average and what the
replies say can be computed:

    Kp·(mean of r between two replies − mean of low-passed r at both), r(t) = θref(t) − ω·t.

Of regular frames and a held reference that is Kp·ω·c (`estimation.recordings.board_effects`). The
motor responds to it: too little to matter within a millisecond, but not within five
(`VelocityLoop`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.signal

from daq.recording import BoardBehaviour
from estimation.types import FloatArray, Rows

_GRID_S = 1e-4
"""Steps in which the motor's response is computed."""
_REGULAR_ROWS = 400
"""Until a regular motion has settled, and as many again."""
LEAD_ROWS = 30
"""Frames before the first reply that its low-passed current may still show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a board was sent, row by row, shape (n,) each; at the motor.

    Attributes:
        sent_s: When.
        reference_rad: Position; NaN where nothing was sent.
        reference_rad_s: Velocity.
    """

    sent_s: FloatArray
    reference_rad: FloatArray
    reference_rad_s: FloatArray


class Unseen(NamedTuple):
    """How much more the current was between each two replies than they show, shape (n,) each.

    Attributes:
        reference_a: By what the references did.
        response_a: By what the motor made of it, as far as its inertia is known.
    """

    reference_a: FloatArray
    response_a: FloatArray


def regular_response_s(period_s: float, behaviour: BoardBehaviour, loop: VelocityLoop) -> float:
    """Return what the motor's response adds to c, where frames come regularly."""
    if behaviour.is_reference_advanced or not loop.kp_a_per_rad > 0.0:
        return 0.0
    sent_s = np.asarray(period_s * np.arange(_REGULAR_ROWS), np.float64)
    commands = Commands(sent_s=sent_s, reference_rad=sent_s, reference_rad_s=np.ones(len(sent_s)))
    rows = np.arange(_REGULAR_ROWS // 2, _REGULAR_ROWS)
    unseen = unseen_current(commands, behaviour, loop, 1.0, rows)
    return float(np.mean(unseen.response_a)) / loop.kp_a_per_rad


def unseen_current(
    commands: Commands,
    behaviour: BoardBehaviour,
    loop: VelocityLoop,
    speed_rad_s: float,
    rows: Rows,
) -> Unseen:
    """Return how much more the current was between two replies than they show.

    Args:
        commands: All that were sent from some frames before the first reply on.
        behaviour: Of the board; it states how old replies are.
        loop: What the motor makes of it.
        speed_rad_s: Of the motor, on average.
        rows: The replies that count, rising.
    """
    path = _ReferencePath(commands, behaviour, speed_rad_s)
    latched_s = commands.sent_s[rows] - behaviour.reply_age_s
    lag_s = max(behaviour.current_lag_s, np.finfo(np.float64).tiny)
    mean_rad = np.diff(path.integral(latched_s)) / np.diff(latched_s)
    error_rad = mean_rad - _middle(path.filtered(latched_s, lag_s))
    response_a = loop.unseen_response_a(path, latched_s, lag_s)
    return Unseen(loop.kp_a_per_rad * error_rad, response_a)


@dataclass(frozen=True, slots=True, kw_only=True)
class VelocityLoop:
    """A motor under the board's law, around a constant speed.

    While the reference stands, the motor slows down, and Kd makes up for some of it:

        J/K_i·θ'' = i,  i = Kp·(r − θ) − Kd·ω,  ω low-passed.

    Attributes:
        kp_a_per_rad: Gain on the position error.
        kd_a_s_per_rad: Gain on the velocity error.
        rad_s2_per_a: K_i/J; 0 for a motor that is too heavy to respond within some frames.
        velocity_lag_s: Of the velocity that the law sees.
    """

    kp_a_per_rad: float
    kd_a_s_per_rad: float
    rad_s2_per_a: float
    velocity_lag_s: float

    def unseen_response_a(
        self, path: _ReferencePath, latched_s: FloatArray, lag_s: float
    ) -> FloatArray:
        """Return what the response of the motor adds, between each two replies."""
        x, kp, kd, tau = (
            self.rad_s2_per_a,
            self.kp_a_per_rad,
            self.kd_a_s_per_rad,
            self.velocity_lag_s,
        )
        if not x * kp > 0.0:
            return np.zeros(len(latched_s) - 1)
        grid_s = np.arange(path.acts_s[0], latched_s[-1] + 2.0 * _GRID_S, _GRID_S)
        r_rad = np.diff(path.integral(grid_s)) / _GRID_S
        # −(Kp + Kd·s/(1 + s·τ))·θ/r, times 1 + s·τ.
        numerator = [-x * kp * (kp * tau + kd), -x * kp * kp]
        denominator = np.array([tau, 1.0, x * (kd + kp * tau), x * kp])
        now_a = _discrete(numerator, denominator, r_rad - r_rad[0])
        late_a = _discrete([1.0], np.array([lag_s, 1.0]), now_a) if lag_s > _GRID_S / 10 else now_a
        steps = np.concatenate([[0.0], np.cumsum(_middle(now_a)) * _GRID_S])
        means_a = np.diff(np.interp(latched_s, grid_s[:-1], steps)) / np.diff(latched_s)
        result: FloatArray = means_a - _middle(np.interp(latched_s, grid_s[:-1], late_a))
        return result


def _discrete(numerator: list[float], denominator: FloatArray, values: FloatArray) -> FloatArray:
    """Return what a continuous filter makes of values that hold for a step of the grid each."""
    strict = np.trim_zeros(denominator, "f")  # a filter without a lag
    b, a, _ = scipy.signal.cont2discrete((numerator, strict), _GRID_S)
    result: FloatArray = scipy.signal.lfilter(b.ravel(), a, values)
    return result


def _middle(values: FloatArray) -> FloatArray:
    result: FloatArray = 0.5 * (values[1:] + values[:-1])
    return result


class _ReferencePath:
    """The reference of a board, seen from a frame that moves with the motor: r.

    Attributes:
        acts_s: When each command begins to act.
    """

    def __init__(self, commands: Commands, behaviour: BoardBehaviour, speed_rad_s: float) -> None:
        known = np.isfinite(commands.reference_rad) & np.isfinite(commands.reference_rad_s)
        self.acts_s = commands.sent_s[known] + behaviour.command_delay_s
        self._slope_rad_s = np.full(len(self.acts_s), -speed_rad_s)
        if behaviour.is_reference_advanced:
            self._slope_rad_s += commands.reference_rad_s[known]
        self._start_rad = commands.reference_rad[known] - speed_rad_s * (
            self.acts_s - self.acts_s[0]
        )
        lasts_s = np.diff(self.acts_s)
        self._end_rad = self._start_rad[:-1] + self._slope_rad_s[:-1] * lasts_s
        steps = 0.5 * (self._start_rad[:-1] + self._end_rad) * lasts_s
        self._passed = np.concatenate([[0.0], np.cumsum(steps)])

    def integral(self, t_s: FloatArray) -> FloatArray:
        """Of r, from when the first command acts."""
        number, since_s, now_rad = self._at(t_s)
        result: FloatArray = (
            self._passed[number] + 0.5 * (self._start_rad[number] + now_rad) * since_s
        )
        return result

    def filtered(self, t_s: FloatArray, lag_s: float) -> FloatArray:
        """Return r through a low-pass of first order: y + τ·dy/dt = r."""
        # It has the solution r − slope·τ, and a difference to it that fades away. The difference
        # goes on smoothly where r jumps and its slope changes.
        late_rad = self._slope_rad_s * lag_s
        jumps = (self._end_rad - late_rad[:-1]) - (self._start_rad[1:] - late_rad[1:])
        left = np.exp(-np.diff(self.acts_s) / lag_s)
        difference, differences = 0.0, [0.0]
        for share, jump in zip(left.tolist(), jumps.tolist(), strict=True):
            difference = difference * share + jump
            differences.append(difference)
        number, since_s, now_rad = self._at(t_s)
        fading = np.array(differences)[number] * np.exp(-np.maximum(since_s, 0.0) / lag_s)
        result: FloatArray = now_rad - late_rad[number] + fading
        return result

    def _at(self, t_s: FloatArray) -> tuple[Rows, FloatArray, FloatArray]:
        """Which command acts, for how long already, and r."""
        number = np.clip(np.searchsorted(self.acts_s, t_s, side="right") - 1, 0, None)
        since_s = t_s - self.acts_s[number]
        return number, since_s, self._start_rad[number] + self._slope_rad_s[number] * since_s
