"""Fourier trajectories that start and end at rest ([De Facci 2024]).

```
q(t)  = q₀ + Σ αₖ sin(kω₀t) + βₖ cos(kω₀t)          k = 1 … N, ω₀ = 2πf₀      (3.16)
q̇(t)  =      Σ kω₀ (αₖ cos(kω₀t) − βₖ sin(kω₀t))    (its 3.17 has sine and cosine exchanged)
q̈(t)  =     −Σ (kω₀)² (αₖ sin(kω₀t) + βₖ cos(kω₀t))
```

At t = 0 velocity and acceleration vanish when Σ kαₖ = 0 and Σ k²βₖ = 0, and then at the end of each
period, too. Coefficients are drawn from the null space of these two sums, so that the search
for them has N − 1 free sines and N − 1 free cosines per joint and need not think of the ends.

A duration that is not a whole number of periods ends by slowing down time: the motion goes on along
its path as q(s(t)), where ds/dt falls from 1 to 0 within `FADE_S`, twice differentiable. Positions
are then those of the Fourier series and speeds no higher; accelerations gain up to
1.5·|q̇|/`FADE_S`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from estimation.types import FloatArray

FADE_S = 1.0
"""Time in which a motion comes to rest that is cut off within a period; less when it is short."""
_WHOLE_S = 1e-6
"""A duration is a whole number of periods when it is this near to one."""


class SampledMotion(NamedTuple):
    """Samples of a motion.

    Attributes:
        t_s: Times, shape (n_samples,).
        q_rad: Joint angles, shape (n_samples, n_joints).
        dq_rad_s: Their velocities, of the same shape.
        ddq_rad_s2: Their accelerations, of the same shape.
    """

    t_s: FloatArray
    q_rad: FloatArray
    dq_rad_s: FloatArray
    ddq_rad_s2: FloatArray


@dataclass(frozen=True, slots=True)
class FourierTrajectory:
    """A Fourier series per joint.

    Attributes:
        f0_hz: Its fundamental frequency.
        offset_rad: q₀, shape (n_joints,).
        sine_rad: α, shape (n_harmonics, n_joints).
        cosine_rad: β, of the same shape.
    """

    f0_hz: float
    offset_rad: FloatArray
    sine_rad: FloatArray
    cosine_rad: FloatArray

    def at(self, t_s: FloatArray) -> SampledMotion:
        """Return the motion at any times, shape (n_samples,); its derivatives are exact."""
        t = np.asarray(t_s, dtype=np.float64)
        q = np.tile(self.offset_rad, (len(t), 1))
        dq, ddq = np.zeros_like(q), np.zeros_like(q)
        # One after the other: ten minutes of all harmonics at once would be a gigabyte.
        for order, pair in enumerate(zip(self.sine_rad, self.cosine_rad, strict=True), start=1):
            speed = 2.0 * np.pi * self.f0_hz * order
            sine, cosine = np.sin(speed * t), np.cos(speed * t)
            wave = np.outer(sine, pair[0]) + np.outer(cosine, pair[1])
            q += wave
            dq += speed * (np.outer(cosine, pair[0]) - np.outer(sine, pair[1]))
            ddq -= speed**2 * wave
        return SampledMotion(t, q, dq, ddq)

    def sampled(self, duration_s: float, *, period_s: float = 1e-3) -> SampledMotion:
        """Return the motion from rest to rest, as it is played, first and last sample included.

        The duration is rounded to whole sampling periods.
        """
        t = period_s * np.arange(round(duration_s / period_s) + 1, dtype=np.float64)
        s, ds, dds = _slowed_time(t, self._fade_s(duration_s))
        path = self.at(s)
        velocity, acceleration = path.dq_rad_s, path.ddq_rad_s2
        return SampledMotion(t, path.q_rad, velocity * ds, acceleration * ds**2 + velocity * dds)

    def scaled(self, factor: float) -> FourierTrajectory:
        """Return the same shape about the same centre, larger or smaller."""
        return FourierTrajectory(
            self.f0_hz, self.offset_rad, factor * self.sine_rad, factor * self.cosine_rad
        )

    def _fade_s(self, duration_s: float) -> float:
        periods = duration_s * self.f0_hz
        if abs(periods - round(periods)) / self.f0_hz <= _WHOLE_S:
            return 0.0
        return min(FADE_S, duration_s / 4.0)


class FreeCoefficients:
    """From free numbers to the coefficients of a series that rests at t = 0.

    Args:
        harmonics: How many, at least 2: with one alone nothing moves.

    Attributes:
        harmonics: How many.
        count: Free numbers per joint, 2·(harmonics − 1): those of sines first.
    """

    def __init__(self, harmonics: int) -> None:
        self.harmonics = harmonics
        self.count = 2 * (harmonics - 1)
        orders = np.arange(1.0, harmonics + 1.0)
        self._sine, self._cosine = _null_space(orders), _null_space(orders**2)

    def series(self, f0_hz: float, offset_rad: FloatArray, free: FloatArray) -> FourierTrajectory:
        """Return the trajectory that belongs to free numbers, shape (n_free, n_joints)."""
        half = self.harmonics - 1
        sine, cosine = self._sine @ free[:half], self._cosine @ free[half:]
        return FourierTrajectory(f0_hz, offset_rad, sine, cosine)

    def waves(self, f0_hz: float, t_s: FloatArray) -> SampledMotion:
        """Return what each free number moves: one column per free number, in place of a joint."""
        return self.series(f0_hz, np.zeros(self.count), np.eye(self.count)).at(t_s)


def _null_space(weights: FloatArray) -> FloatArray:
    """Orthonormal columns that are perpendicular to the weights, shape (n, n − 1)."""
    full: FloatArray = np.linalg.svd(weights[np.newaxis])[2]
    return full[1:].T


def _slowed_time(t: FloatArray, fade_s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """s(t) and its derivatives as columns: time that comes to rest within the last `fade_s`."""
    if not fade_s:
        return t, np.ones((len(t), 1)), np.zeros((len(t), 1))
    begin = float(t[-1]) - fade_s
    u = np.clip((t - begin) / fade_s, 0.0, 1.0)
    # ds/dt = 1 − 3u² + 2u³, and its integral.
    s = np.minimum(t, begin) + fade_s * (u - u**3 + 0.5 * u**4)
    ds, dds = 1.0 - u**2 * (3.0 - 2.0 * u), -6.0 * u * (1.0 - u) / fade_s
    return s, ds[:, np.newaxis], dds[:, np.newaxis]
