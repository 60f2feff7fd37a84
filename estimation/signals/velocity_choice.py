"""Whether joint velocities are taken as measured or from the positions: spectra decide.

Spectra of all segments are averaged, so that any length of recording fits. Two questions: does the
measured velocity agree, where the joint moves, with the derivative of the position, in gain and
delay (after the lag of the board's filter, which is known, was taken out); and which of the two
carries less noise just above the band that is kept, where nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal

from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.signals.spectra import content_end_hz, quiet_end_hz, segment_rows
from estimation.types import FloatArray

GAIN_TOLERANCE = 0.02
"""How far the gain of the measured velocity may be from 1."""
DELAY_TOLERANCE_S, PHASE_TOLERANCE = 5e-4, 5e-3
"""How much later or earlier than the position it may be: the larger of this time and of this share
of 1/ω, ω where motion ends. Slow motion does not show shorter delays, nor suffer from them."""
_BAND = (1.2, 3.0)
"""Shares of the cut-off frequency between which noise is compared."""
_SEGMENT_ROWS_MIN = 64
_CLEARLY = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JointVelocity:
    """What spectra say of one joint's measured velocity.

    Attributes:
        gain: Of the measured velocity over the derivative of the position; NaN at rest.
        delay_s: Of the measured velocity, its known lag taken out; NaN at rest.
        delay_max_s: How much of that is tolerable for this motion.
        noise_measured: Density just above the cut-off, (rad/s)/√Hz.
        noise_differentiated: Likewise, of the derivative of the position.
    """

    gain: float
    delay_s: float
    delay_max_s: float
    noise_measured: float
    noise_differentiated: float

    @property
    def agrees(self) -> bool:
        """Whether it is the derivative of the position, as far as the joint moved at all."""
        return not self.disagreement > 1.0

    @property
    def disagreement(self) -> float:
        """How far it is beyond what is tolerable: above 1."""
        return max(abs(self.gain - 1.0) / GAIN_TOLERANCE, abs(self.delay_s) / self.delay_max_s)


class Spectra:
    """Mean spectra of segments of one rate.

    Attributes:
        rate_hz: Samples per second.
        rows: How many there were.
        joint_names: Of the segments.
        has_velocity: Whether every segment has measured velocities.

    Raises:
        DatasetError: There is none, they differ in rate, or all are too short.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.rate_hz = 0.0
        self.rows = 0
        self.joint_names: tuple[str, ...] = ()
        self._lag_s: FloatArray | float = 0.0
        self._welch_rows = 0
        self._means: dict[str, Any] = {}
        self.has_velocity = True
        for segment in segments:
            self._add(segment)
        if not self._means:
            raise DatasetError(
                "no segment of samples is long enough to look at its spectrum: record without "
                "gaps for some seconds",
                code="few-rows",
            )

    def bandwidths_hz(self) -> tuple[float, ...]:
        """Where the content of each joint's motion ends."""
        power = self._means["bend"]
        return tuple(content_end_hz(self._frequency_hz, joint, self.rate_hz) for joint in power.T)

    def quiet_hz(self) -> float:
        """Up to where accelerations are hardly noise; the median of the joints that move."""
        ends_hz = self.bandwidths_hz()
        quiet_hz = [
            quiet_end_hz(self._frequency_hz, joint, self.rate_hz, end_hz)
            for joint, end_hz in zip(self._means["bend"].T, ends_hz, strict=True)
            if end_hz > 0.0
        ]
        return float(np.median(quiet_hz)) if quiet_hz else float("inf")

    def velocities(self, cutoff_hz: float, content_hz: float) -> tuple[JointVelocity, ...]:
        """Measured against differentiated, joint by joint."""
        frequency_hz = self._frequency_hz
        lag_s = np.broadcast_to(self._lag_s, self._means["slope"].shape[1])
        # The derivative of the position is (x[i+1] - x[i-1])/2h here.
        droop = np.sinc(2.0 * frequency_hz / self.rate_hz)
        low, high = _BAND[0] * max(cutoff_hz, content_hz), _BAND[1] * max(cutoff_hz, content_hz)
        noise_band = (frequency_hz >= low) & (frequency_hz <= min(high, 0.4 * self.rate_hz))
        motion = (frequency_hz > 0.0) & (frequency_hz <= max(content_hz, 2.0 * frequency_hz[1]))
        end_rad_s = 2.0 * np.pi * max(content_hz, frequency_hz[1])
        delay_max_s = max(DELAY_TOLERANCE_S, PHASE_TOLERANCE / end_rad_s)
        result = []
        for joint in range(self._means["slope"].shape[1]):
            slope, measured = (self._means[name][:, joint] for name in ("slope", "measured"))
            lag = 1.0 / (1.0 + 2j * np.pi * frequency_hz * lag_s[joint])
            transfer = self._means["cross"][:, joint] / lag * droop
            noise = _density(slope[noise_band] / droop[noise_band] ** 2)
            # Only where motion stands clearly above the noise can the two be compared.
            moves = motion & (slope > _CLEARLY * noise**2)
            gain, delay_s = _gain_and_delay(frequency_hz[moves], transfer[moves], slope[moves])
            result.append(
                JointVelocity(
                    gain=gain,
                    delay_s=delay_s,
                    delay_max_s=delay_max_s,
                    noise_measured=_density(measured[noise_band] / np.abs(lag[noise_band]) ** 2),
                    noise_differentiated=noise,
                )
            )
        return tuple(result)

    def _add(self, segment: Segment) -> None:
        rate_hz = segment.rate_hz
        if self.rate_hz and abs(rate_hz / self.rate_hz - 1.0) > 1e-6:
            raise DatasetError(
                f"{segment.source}: {rate_hz:g} samples per second, others have {self.rate_hz:g}: "
                "prepare recordings of different rates each by itself",
                code="different-rates",
            )
        self.rate_hz, self.joint_names = rate_hz, segment.joint_names
        if not self._welch_rows:
            wanted = segment_rows(len(segment) - 2, rate_hz)
            if wanted < _SEGMENT_ROWS_MIN:
                return
            self._welch_rows, self._lag_s = wanted, segment.velocity_lag_s
        if len(segment) - 2 < self._welch_rows:
            return
        q = segment.q_rad
        bend = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * rate_hz**2
        slope = (q[2:] - q[:-2]) * (0.5 * rate_hz)
        how: dict[str, Any] = {"fs": rate_hz, "nperseg": self._welch_rows, "axis": 0}
        self._frequency_hz, power = signal.welch(bend, detrend=False, **how)
        found = {"bend": power}
        if segment.dq_rad_s is None:
            self.has_velocity = False
        else:
            measured = segment.dq_rad_s[1:-1]
            found["slope"] = signal.welch(slope, detrend="linear", **how)[1]
            found["measured"] = signal.welch(measured, detrend="linear", **how)[1]
            found["cross"] = signal.csd(slope, measured, detrend="linear", **how)[1]
        self.rows += len(segment)
        for name, values in found.items():
            weight = len(segment) / self.rows
            before = self._means.get(name, values)
            self._means[name] = before + weight * (values - before)


def _gain_and_delay(frequency_hz: FloatArray, cross: Any, power: FloatArray) -> tuple[float, float]:
    """Of what is measured over what it should be, weighted by its power; NaN at rest.

    What is always 0 has the gain 0 and no delay.
    """
    if not power.sum() > 0.0:
        return float("nan"), float("nan")
    omega = 2.0 * np.pi * frequency_hz
    gain = float(np.abs(cross).sum() / power.sum())
    weight = np.abs(cross) * omega**2
    if not weight.sum() > 0.0:
        return gain, 0.0
    delay_s = -float((np.angle(cross) * omega * np.abs(cross)).sum() / weight.sum())
    return gain, delay_s


def _density(power: FloatArray) -> float:
    return float(np.sqrt(np.mean(power))) if len(power) else float("nan")
