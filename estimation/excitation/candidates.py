"""From the optimiser's numbers to Fourier trajectories that keep to position and speed.

Each joint has one number for its centre and 2·(N − 1) for its wave, scaled such that 1 takes a
single wave about to the joint's limits. A wave that is too large, too fast or accelerates too much
is made smaller, and a centre that it cannot be swung about is moved: so these limits never stand
in the optimiser's way. What depends on several joints (torques, contact) is left to a penalty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimation.excitation.fourier import FourierTrajectory, FreeCoefficients
from estimation.excitation.limits import ArmLimits
from estimation.types import FloatArray

_TIGHTER = 0.99
"""Between two samples of a coarse grid the motion goes a little further than at them."""
_SAMPLES_MIN, _SAMPLES_PER_HARMONIC = 100, 24


class Candidates(NamedTuple):
    """Some trajectories on the coarse grid.

    Attributes:
        q_rad: Shape (n_candidates, n_samples, n_joints), as are the following.
        dq_rad_s: Velocities.
        ddq_rad_s2: Accelerations.
        excess: How far the optimiser's numbers went beyond what was taken of them, (n_candidates,).
    """

    q_rad: FloatArray
    dq_rad_s: FloatArray
    ddq_rad_s2: FloatArray
    excess: FloatArray


class CandidateSpace:
    """All trajectories of one fundamental frequency and number of harmonics.

    One that lasts less than a period is only looked at that far.

    Attributes:
        dimension: How many numbers make a candidate.
    """

    def __init__(
        self, limits: ArmLimits, *, f0_hz: float, harmonics: int, duration_s: float
    ) -> None:
        self._free = FreeCoefficients(harmonics)
        self._f0_hz = f0_hz
        count = max(_SAMPLES_MIN, _SAMPLES_PER_HARMONIC * harmonics)
        t = np.linspace(0.0, min(1.0 / f0_hz, duration_s), count, endpoint=False, dtype=np.float64)
        self._waves = self._free.waves(f0_hz, t)
        self._velocity_max = _TIGHTER * limits.velocity_max_rad_s
        self._acceleration_max = _TIGHTER * limits.acceleration_max_rad_s2
        middle = 0.5 * (limits.position_min_rad + limits.position_max_rad)
        half = 0.5 * _TIGHTER * (limits.position_max_rad - limits.position_min_rad)
        self._low, self._high = middle - half, middle + half
        # A joint that turns more than once need not be looked for further than half a turn away.
        low = np.maximum(self._low, limits.home_rad - np.pi)
        high = np.minimum(self._high, limits.home_rad + np.pi)
        self._middle, self._half = 0.5 * (low + high), 0.5 * (high - low)
        peaks = [np.abs(wave).max(axis=0)[:, np.newaxis] for wave in self._waves[1:]]
        bounds = (half, self._velocity_max, self._acceleration_max)
        # Radians per unit of a free number, shape (n_free, n_joints).
        self._scale = np.minimum.reduce(
            [bound / peak for bound, peak in zip(bounds, peaks, strict=True)]
        )
        self._joints = len(middle)
        self.dimension = self._joints * (1 + self._free.count)

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Numbers of a candidate at random, shape (dimension,)."""
        centre = generator.uniform(-1.0, 1.0, self._joints)
        return np.concatenate([centre, generator.normal(size=self.dimension - self._joints)])

    def make(self, numbers: FloatArray) -> Candidates:
        """Return trajectories on the coarse grid, of numbers of shape (n_candidates, dimension)."""
        offset, free, excess = self._coefficients(numbers)
        q, dq, ddq = (wave @ free for wave in self._waves[1:])
        return Candidates(q + offset[:, np.newaxis], dq, ddq, excess)

    def trajectory(self, numbers: FloatArray) -> FourierTrajectory:
        """Return the series of one candidate, from its numbers, shape (dimension,)."""
        offset, free, _ = self._coefficients(numbers[np.newaxis])
        return self._free.series(self._f0_hz, offset[0], free[0])

    def _coefficients(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Offsets (…, n_joints), free numbers in radians (…, n_free, n_joints), excess (…)."""
        centre = numbers[:, : self._joints]
        free = numbers[:, self._joints :].reshape(-1, self._free.count, self._joints)
        free = free * self._scale
        q, dq, ddq = (wave @ free for wave in self._waves[1:])
        sizes = np.stack(
            [
                np.ptp(q, axis=1) / (self._high - self._low),
                np.abs(dq).max(axis=1) / self._velocity_max,
                np.abs(ddq).max(axis=1) / self._acceleration_max,
            ]
        )
        size = np.maximum(sizes.max(axis=0), 1.0)
        lowest, highest = q.min(axis=1) / size, q.max(axis=1) / size
        wanted = self._middle + self._half * np.clip(centre, -1.0, 1.0)
        offset = np.clip(wanted, self._low - lowest, self._high - highest)
        excess = (size - 1.0).sum(axis=1) + np.maximum(np.abs(centre) - 1.0, 0.0).sum(axis=1)
        return offset, free / size[:, np.newaxis], excess
