"""Settings of the preparation, and how they are chosen from the samples themselves.

Each choice comes with a sentence that says why, with figures, for the report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Literal

import numpy as np

from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.signals.filters import check_cutoff
from estimation.signals.spectra import choose_cutoff_hz
from estimation.signals.velocity_choice import Spectra

Velocity = Literal["measured", "differentiated"]
Method = Literal["butterworth", "fft"]
Differences = Literal["sixth", "second"]

ORDER = 4
TRIM_S, TRIM_PERIODS = 0.5, 3.0
"""Dropped at a true border: so many seconds, and so many periods of the cut-off frequency."""
ROWS_PER_CUTOFF = 4.0
"""Rows kept per period of the cut-off frequency, at least: twice what the band needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationSettings:
    """How samples become rows.

    Attributes:
        cutoff_hz: Of the low-pass; half of an amplitude is left there (`fft`: all of it).
        order: Of the Butterworth filter, which is run both ways.
        decimation: Every so many samples a row.
        trim_s: Dropped at either end of a segment.
        velocity: As the board measured it, or from the positions.
        method: Butterworth, or [De Facci 2024]'s rectangular window, which also differentiates.
        differences: Order of the differences after Butterworth; [De Facci 2024] has second.
        exclude_slow_rad_s: A joint slower than this does not count in a row (`Prepared.use`): there
            friction may be anything between its two signs. One speed, or one per joint; None to
            use all.
    """

    cutoff_hz: float
    decimation: int
    trim_s: float
    velocity: Velocity
    order: int = ORDER
    method: Method = "butterworth"
    differences: Differences = "sixth"
    exclude_slow_rad_s: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        wrong = [
            f"{name} {value!r}: it must be {limit}"
            for name, value, is_right, limit in (
                ("cutoff_hz", self.cutoff_hz, 0.0 < self.cutoff_hz < math.inf, "above 0"),
                ("decimation", self.decimation, self.decimation >= 1, "at least 1"),
                ("trim_s", self.trim_s, 0.0 <= self.trim_s < math.inf, "at least 0"),
                ("order", self.order, 1 <= self.order <= 12, "1 to 12"),
                (
                    "exclude_slow_rad_s",
                    self.exclude_slow_rad_s,
                    self.exclude_slow_rad_s is None
                    or min(np.atleast_1d(self.exclude_slow_rad_s)) >= 0.0,
                    "at least 0, or None",
                ),
            )
            if not is_right
        ]
        if wrong:
            raise DatasetError(f"preparation: {'; '.join(wrong)}", code="bad-settings")


def choose_settings(
    segments: Iterable[Segment],
    *,
    cutoff_hz: float | None = None,
    decimation: int | None = None,
    trim_s: float | None = None,
    velocity: Velocity | None = None,
    method: Method = "butterworth",
    differences: Differences = "sixth",
    order: int = ORDER,
    exclude_slow_rad_s: float | tuple[float, ...] | None = None,
) -> tuple[PreparationSettings, tuple[str, ...]]:
    """Choose what is not given, from the samples.

    Args:
        segments: What will be prepared, of one rate; gone through once.
        cutoff_hz: By default from the bandwidth of the motion and the noise of its positions
            (`choose_cutoff_hz`).
        decimation: By default as much as leaves four rows per period of the cut-off frequency.
        trim_s: By default 0.5 s and three periods of the cut-off frequency.
        velocity: By default as measured if that agrees with the positions and is less noisy.
        method: Of the filter.
        differences: As in `PreparationSettings`.
        order: Of the filter.
        exclude_slow_rad_s: As in `PreparationSettings`.

    Returns:
        The settings, and sentences that say what was chosen and why.

    Raises:
        DatasetError: There is no segment that is long enough, or a value is out of range.
    """
    spectra = Spectra(segments)
    rate_hz, notes = spectra.rate_hz, []
    content_hz = max(spectra.bandwidths_hz())
    if cutoff_hz is None:
        quiet_hz = spectra.quiet_hz()
        cutoff_hz = choose_cutoff_hz(content_hz, rate_hz, quiet_hz)
        note = (
            f"low-pass at {cutoff_hz:.3g} Hz: the motion's own content ends at {content_hz:.3g} Hz"
        )
        if cutoff_hz < choose_cutoff_hz(content_hz, rate_hz):
            note += f", and from {quiet_hz:.3g} Hz on noise of the positions disturbs accelerations"
        notes.append(note)
    else:
        check_cutoff(cutoff_hz, rate_hz)
        if cutoff_hz < content_hz:
            notes.append(
                f"the low-pass at {cutoff_hz:.3g} Hz takes from the motion, whose content ends at "
                f"{content_hz:.3g} Hz"
            )
    if decimation is None:
        decimation = max(1, int(rate_hz / (ROWS_PER_CUTOFF * cutoff_hz)))
    if velocity is None:
        velocity, reason = _choose_velocity(spectra, cutoff_hz, content_hz)
        notes.append(reason)
    elif velocity == "measured" and not spectra.has_velocity:
        raise DatasetError(
            "velocity 'measured': a recording has none; use 'differentiated'", code="no-velocity"
        )
    settings = PreparationSettings(
        cutoff_hz=cutoff_hz,
        order=order,
        decimation=decimation,
        trim_s=TRIM_S + TRIM_PERIODS / cutoff_hz if trim_s is None else trim_s,
        velocity=velocity,
        method=method,
        differences=differences,
        exclude_slow_rad_s=exclude_slow_rad_s,
    )
    return settings, tuple(notes)


def _choose_velocity(spectra: Spectra, cutoff_hz: float, content_hz: float) -> tuple[Velocity, str]:
    if not spectra.has_velocity:
        return "differentiated", "velocity from the positions: none was measured"
    joints = spectra.velocities(cutoff_hz, content_hz)
    names = spectra.joint_names
    wrong = [(name, joint) for name, joint in zip(names, joints, strict=True) if not joint.agrees]
    if wrong:
        name, worst = max(wrong, key=lambda pair: pair[1].disagreement)
        return "differentiated", (
            f"velocity from the positions: the measured one of {name} is "
            f"{worst.gain:.3f} times their derivative and {1e3 * worst.delay_s:+.2f} ms late"
        )
    noise = [
        (joint.noise_measured, joint.noise_differentiated)
        for joint in joints
        if joint.noise_measured > 0.0 and joint.noise_differentiated > 0.0
    ]
    measured, derived = map(geometric_mean, zip(*noise, strict=True)) if noise else (1.0, 1.0)
    ratio = measured / derived
    figures = (
        f"noise above the cut-off {measured:.2g} against {derived:.2g} (rad/s)/√Hz, mean of joints"
    )
    if ratio > 1.0:
        return "differentiated", (
            f"velocity from the positions: {ratio:.2g} times less noise than the measured one "
            f"({figures})"
        )
    return "measured", (
        f"velocity as measured: it agrees with the positions and has {1.0 / ratio:.2g} times less "
        f"noise than their derivative ({figures})"
    )
