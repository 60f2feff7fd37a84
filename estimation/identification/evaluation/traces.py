"""Measured and predicted torques over time, for figures and for tests of the residuals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from daq.recording.text import plain
from estimation.identification.data.reduction import PIECE_SAMPLES, design
from estimation.identification.estimators.problem import Problem
from estimation.identification.result import ResidualTest
from estimation.signals.preparation import Prepared
from estimation.types import Flags, FloatArray

ROWS_MAX = 20_000
"""Of a trace: the beginning of a long recording stands for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One recording, as the chosen method sees it; arrays of shape (n,) or (n, joints).

    Attributes:
        title: `identification` or `validation`.
        file: The recording.
        period_s: Between two rows.
        t_s: Since the first sample.
        dq_rad_s: Joint velocities.
        measured_nm: Filtered torque.
        raw_nm: Torque before it was filtered.
        predicted_nm: By the chosen method.
        use: Whether a joint counts in a row.
    """

    title: str
    file: str
    period_s: float
    t_s: FloatArray
    dq_rad_s: FloatArray
    measured_nm: FloatArray
    raw_nm: FloatArray
    predicted_nm: FloatArray
    use: Flags


def make_trace(
    title: str, problem: Problem, beta: FloatArray, samples: Iterable[Prepared]
) -> Trace | None:
    """Return the first recording among samples, at most `ROWS_MAX` rows; None if there are none."""
    parts: list[Prepared] = []
    predicted: list[FloatArray] = []
    rows = 0
    for prepared in samples:
        if rows >= ROWS_MAX or (parts and prepared.source != parts[0].source):
            break
        parts.append(prepared)
        for first in range(0, len(prepared), PIECE_SAMPLES):
            piece = slice(first, first + PIECE_SAMPLES)
            columns = design(problem.regressor, problem.base, prepared, piece)
            predicted.append(columns[..., :-2] @ beta)
        rows += len(prepared)
    if not parts:
        return None

    def joined(name: str) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts])[:ROWS_MAX]

    return Trace(
        title=title,
        file=plain(parts[0].source.name),
        period_s=parts[0].period_s,
        t_s=joined("t_s"),
        dq_rad_s=joined("dq_rad_s"),
        measured_nm=joined("tau_nm"),
        raw_nm=joined("tau_raw_nm"),
        predicted_nm=np.concatenate(predicted)[:ROWS_MAX],
        use=np.concatenate([part.use for part in parts])[:ROWS_MAX],
    )


def residual_tests(trace: Trace, joint_names: tuple[str, ...]) -> tuple[ResidualTest, ...]:
    """Test whether the residuals of the torques look like noise."""
    tests = []
    for joint, name in enumerate(joint_names):
        use = trace.use[:, joint]
        left = (trace.measured_nm - trace.predicted_nm)[:, joint]
        used = left[use]
        if len(used) < 10 or not np.std(used) > 0.0:
            continue
        centred = used - used.mean()
        signs = np.sign(trace.dq_rad_s[use, joint])
        has_both = bool(np.std(signs) > 0.0)
        tests.append(
            ResidualTest(
                joint=name,
                mean_nm=float(used.mean()),
                rms_nm=float(np.sqrt(np.mean(used**2))),
                memory_s=_memory_rows(np.where(use, left - used.mean(), 0.0)) * trace.period_s,
                kurtosis=float(np.mean(centred**4) / np.mean(centred**2) ** 2 - 3.0),
                velocity_correlation=float(np.corrcoef(used, signs)[0, 1]) if has_both else 0.0,
            )
        )
    return tuple(tests)


def _memory_rows(values: FloatArray) -> int:
    """Return the lag at which the autocorrelation falls below 1/e."""
    padded = np.fft.rfft(values, 2 * len(values))
    correlation = np.fft.irfft(np.abs(padded) ** 2)[: len(values)]
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return int(below[0]) if len(below) else len(values)
