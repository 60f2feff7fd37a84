"""The quadrature current as a board measures it: low-passed, with noise."""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 1024
"""Noise is drawn in advance: one number at a time costs as much as a hundred."""


class CurrentSensor:
    """One motor's current, looked at once per physics step; the noise is stated as its rms.

    Attributes:
        filtered_a: The current without the noise.
    """

    def __init__(
        self, noise_a: float, generator: np.random.Generator, *, filter_hz: float, step_s: float
    ) -> None:
        filter_rad_s = 2.0 * math.pi * filter_hz
        self.filtered_a = 0.0
        self._noise_a = noise_a
        self._generator = generator
        self._noise_block: list[float] = []
        self._gain = 1.0 - math.exp(-filter_rad_s * step_s)
        # What a low-pass makes of a current that rises through the step, beyond its mean.
        self._ramp_s = step_s - self._gain * (0.5 * step_s + 1.0 / filter_rad_s)

    def read(self, mean_a: float, slope_a_per_s: float) -> None:
        """Follow the current through a physics step."""
        self.filtered_a += self._gain * (mean_a - self.filtered_a) + slope_a_per_s * self._ramp_s

    def measure_a(self) -> float:
        """Return what one reply says."""
        if not self._noise_a:
            return self.filtered_a
        if not self._noise_block:
            self._noise_block = self._generator.normal(0.0, self._noise_a, _BLOCK).tolist()
        return self.filtered_a + self._noise_block.pop()
