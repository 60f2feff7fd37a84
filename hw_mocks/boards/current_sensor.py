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
        self.filtered_a = 0.0
        self._noise_a = noise_a
        self._generator = generator
        self._noise_block: list[float] = []
        self._lag_s = 1.0 / (2.0 * math.pi * filter_hz)
        self._weights: dict[float, tuple[float, float]] = {}
        self._weigh(step_s)
        self._end_a = 0.0
        self._slope_a_per_s = 0.0

    def read(self, mean_a: float, slope_a_per_s: float, duration_s: float) -> None:
        """Follow a current that rises evenly through a physics step, or through a part of one.

        Durations are whole microseconds, so that few of them are to be remembered.
        """
        try:
            gain, ramp_s = self._weights[duration_s]
        except KeyError:
            gain, ramp_s = self._weigh(duration_s)
        self.filtered_a += gain * (mean_a - self.filtered_a) + slope_a_per_s * ramp_s
        self._end_a = mean_a + 0.5 * slope_a_per_s * duration_s
        self._slope_a_per_s = slope_a_per_s

    def measure_a(self, offset_s: float) -> float:
        """Return what a reply says that was latched so long after the last step, or before."""
        # What a low-pass makes of a ramp: the ramp itself, late, and what is left of the past.
        slope = self._slope_a_per_s
        late_a = self._end_a - slope * self._lag_s
        past_a = (self.filtered_a - late_a) * math.exp(-offset_s / self._lag_s)
        filtered_a = late_a + slope * offset_s + past_a
        if not self._noise_a:
            return filtered_a
        if not self._noise_block:
            self._noise_block = self._generator.normal(0.0, self._noise_a, _BLOCK).tolist()
        return filtered_a + self._noise_block.pop()

    def _weigh(self, duration_s: float) -> tuple[float, float]:
        """Return what a low-pass makes of a mean, and of a rise through that time beyond it."""
        gain = 1.0 - math.exp(-duration_s / self._lag_s)
        weights = gain, duration_s - gain * (0.5 * duration_s + self._lag_s)
        self._weights[duration_s] = weights
        return weights
