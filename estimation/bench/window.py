"""The samples of one plateau that are averaged, and their averages.

The current is averaged over the turned angle, not over time: ∮ K_i·iq dθ is the work of whole
motor turns, to which cogging contributes nothing however much the speed gives way to it, and the
encoder's error, periodic in a turn, nothing either. The angle is smoothed over a few counts first:
each count kicks the board's velocity, and so its current, just when the angle steps.

Between two replies the board's reference moves and jumps, and with it the current, in a way that
depends on when its commands came; what the replies do not show of that is computed
(`estimation.recordings.references`). That goes for periods that the computer slept through, too.

Recordings of formats 1.0 and 1.1 do not state enough for it. There a held reference takes Kp·ω·c
from the current (`estimation.recordings.board_effects`), and what follows a skipped period does not
count.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.signal

from estimation.bench.record import JointRecord, Span
from estimation.recordings.board_effects import held_delay_s
from estimation.recordings.references import (
    LEAD_ROWS,
    Commands,
    Unseen,
    VelocityLoop,
    unseen_current,
)
from estimation.types import Flags, FloatArray, Rows

BLOCKS = 8
"""Parts of a plateau, at least, whose scatter is looked at."""
_PARTS = 20
"""Parts of the way whose speeds are told apart."""
_SMOOTHED_COUNTS, _CUBIC = 16.0, 3
_SLOW_S = 3e-4
"""What an exchange may take longer than usual for its moment to be known well enough."""
_LATE, _RECOVERY_S, _IN_TIME_MIN = 1.6, 0.02, 0.3
"""An interval so many times as long as usual, how long its consequences last, and how much must be
left for it to be worth it."""


class PlateauWindow:
    """What is averaged of one plateau.

    Attributes:
        target_rad_s: Speed that was commanded, at the motor.
        is_settled: Whether the loop has seen it settle.
        rows: Valid samples over whole turns.
        turns: How many.
        invalid_share: Of the samples that were not valid.
        counted_share: Of the intervals between samples, that their moments are known.
    """

    def __init__(self, record: JointRecord, span: Span) -> None:
        self.record = record
        self.span = span
        # Exactly as sent; but a plateau that was given up may never have got there.
        self.target_rad_s = _last(record.reference_rad_s[span.begin : span.end + 1])
        if span.settled is None and span.target_rad_s is not None:
            self.target_rad_s = span.target_rad_s * record.drive.reduction
        self._smooth_rad = _smoothed(record, span, self.target_rad_s)
        self.is_settled = span.settled is not None
        rows = np.arange(span.settled or span.begin, span.end)
        valid = np.isfinite(record.iq_a[rows]) & np.isfinite(record.angle_rad[rows])
        self.invalid_share = 1.0 - float(np.mean(valid)) if len(rows) else 1.0
        self.rows = rows[valid]
        window_rad = record.header.window_rad
        if window_rad is not None and len(self.rows):
            joint_rad = record.angle_rad[self.rows] / record.drive.reduction
            self.rows = self.rows[(joint_rad >= window_rad[0]) & (joint_rad <= window_rad[1])]
        self.turns = 0
        if self.is_settled and len(self.rows) > 2:
            self._keep_whole_turns()
        self.counted_share = 1.0
        self._counts = self._counted()
        if self.turns and not np.sum(_steps_rad(self._smooth_rad[self.rows], self._counts)):
            self.turns = 0  # it jumped, and what is left of it stands still
        self._unseen = self._find_unseen()

    def _keep_whole_turns(self) -> None:
        way_rad = np.abs(self.record.angle_rad[self.rows] - self.record.angle_rad[self.rows[0]])
        # A mounted joint's window is whole turns by itself, less what lies between two samples.
        slack_rad = 0.5 if self.record.header.window_rad is not None else 0.0
        self.turns = int((way_rad[-1] + slack_rad) / math.tau)
        if self.turns:
            last = int(np.argmax(way_rad >= self.turns * math.tau)) or len(way_rad) - 1
            self.rows = self.rows[: last + 1]

    @property
    def is_stated(self) -> bool:
        """Whether the recording states when replies were made and commands obeyed."""
        return self.record.behaviour.reply_age_max_s is not None

    def _counted(self) -> Flags | None:
        """Which intervals between two samples count; None for all."""
        record, rows = self.record, self.rows
        if not self.turns:
            return None
        if not self.is_stated:
            return _in_time(record.t_s[rows])
        # Where samples are missing, so is what was sent then.
        counts = np.diff(record.seq[rows]) == np.diff(rows)
        counts &= ~_near_slow_exchanges(record, rows)
        self.counted_share = float(np.mean(counts))
        return counts if 0.0 < self.counted_share < 1.0 else None

    def _find_unseen(self) -> Unseen | None:
        """Find what the samples do not show of the current; None if that is not known."""
        record, rows = self.record, self.rows
        if not self.is_stated or not self.turns:
            return None
        first = max(0, int(rows[0]) - LEAD_ROWS)
        part = slice(first, int(rows[-1]) + 1)
        commands = Commands(
            sent_s=record.t_s[part],
            reference_rad=record.reference_rad[part],
            reference_rad_s=record.reference_rad_s[part],
        )
        way_rad = record.angle_rad[rows[-1]] - record.angle_rad[rows[0]]
        speed_rad_s = float(way_rad / (record.t_s[rows[-1]] - record.t_s[rows[0]]))
        loop = VelocityLoop(
            kp_a_per_rad=float(np.nanmean(record.kp_a_per_rad[rows])),
            kd_a_s_per_rad=float(np.nanmean(record.kd_a_s_per_rad[rows])),
            rad_s2_per_a=record.rad_s2_per_a,
            velocity_lag_s=record.behaviour.velocity_lag_s,
        )
        return unseen_current(commands, record.behaviour, loop, speed_rad_s, rows - first)

    def mean_iq_a(self) -> float:
        """Over the turned angle; of a mounted joint between exactly the same angles always."""
        record, rows = self.record, self.rows
        angle_rad, iq_a = self._smooth_rad[rows], record.iq_a[rows]
        window_rad = record.header.window_rad
        if window_rad is None:
            return mean_over_angle(iq_a, angle_rad, self._counts)
        # Gravity is the same for all plateaus only between exactly the same angles.
        ends = np.sort(np.array(window_rad) * record.drive.reduction)
        if self.target_rad_s < 0:
            ends = ends[::-1]
        order = np.argsort(angle_rad)
        at_ends = np.interp(ends, angle_rad[order], iq_a[order])
        inside = (angle_rad > min(ends)) & (angle_rad < max(ends))
        return mean_over_angle(
            np.concatenate([at_ends[:1], iq_a[inside], at_ends[1:]]),
            np.concatenate([ends[:1], angle_rad[inside], ends[1:]]),
        )

    def speeds_rad_s(self) -> tuple[float, ...]:
        """Return the speeds of equal parts of the way, slow ones first: cogging moves it."""
        step_rad = np.diff(self._smooth_rad[self.rows]) * np.sign(self.target_rad_s)
        speed_rad_s = step_rad / np.diff(self.record.t_s[self.rows])
        order = np.argsort(speed_rad_s)
        way_rad = np.cumsum(np.maximum(step_rad[order], 0.0))
        middles_rad = (np.arange(_PARTS) + 0.5) / _PARTS * way_rad[-1]
        parts = np.interp(middles_rad, way_rad, speed_rad_s[order])
        return tuple((np.sign(self.target_rad_s) * parts).tolist())

    def mean_acceleration_rad_s2(self) -> float | None:
        """∫ω̇ dθ/Δθ = (ω²_end − ω²_begin)/(2Δθ); None if the motor is where it was."""
        record, rows = self.record, self.rows
        few = max(3, min(20, len(rows) // 10))
        first, last = rows[:few], rows[-few:]
        begin, end = (np.nanmean(record.velocity_rad_s[part]) for part in (first, last))
        way_rad = np.mean(record.angle_rad[last]) - np.mean(record.angle_rad[first])
        return float((end**2 - begin**2) / (2.0 * way_rad)) if way_rad else None

    def correction_a(self, velocity_rad_s: float) -> float:
        """Return what the current was more, on average, than the samples show."""
        if self._unseen is not None:
            reference_a = self._mean_unseen_a(self._unseen.reference_a)
            return reference_a + self.response_a()
        if self.is_stated or self.record.behaviour.is_reference_advanced:
            return 0.0
        return self._held_bias_a(velocity_rad_s)

    def response_a(self) -> float:
        """Return what of that the motor's response makes, as far as its inertia is known."""
        return 0.0 if self._unseen is None else self._mean_unseen_a(self._unseen.response_a)

    def _mean_unseen_a(self, values_a: FloatArray) -> float:
        return _mean_of_steps(values_a, self._smooth_rad[self.rows], self._counts)

    def _held_bias_a(self, velocity_rad_s: float) -> float:
        """Return what a held reference takes from the current at the end of a frame."""
        record, rows = self.record, self.rows
        period_s = np.diff(record.t_s[rows[0] : rows[-1] + 1])
        # The last sample of a period stands for half of it and half of the next, and so reads
        # ΣT·(T + T')/2 too little; on average the current falls by ΣT²/2. The rest is due.
        half_s = float(np.mean(period_s[1:] * period_s[:-1]) / (2.0 * np.mean(period_s)))
        kp = float(np.nanmean(record.kp_a_per_rad[rows]))
        return kp * velocity_rad_s * held_delay_s(2.0 * half_s, record.behaviour.current_lag_s)

    def blocks(self) -> FloatArray:
        """Mean currents of equal parts of the way: whole turns where there are enough of them."""
        record, rows = self.record, self.rows
        angle_rad, iq_a = self._smooth_rad[rows], record.iq_a[rows]
        count = min(max(self.turns, BLOCKS), len(rows))
        edges_rad = np.linspace(angle_rad[0], angle_rad[-1], count + 1)
        way = angle_rad if angle_rad[-1] > angle_rad[0] else -angle_rad
        edges = edges_rad if angle_rad[-1] > angle_rad[0] else -edges_rad
        cuts = np.searchsorted(np.maximum.accumulate(way), edges)
        cuts[0], cuts[-1] = 0, len(rows) - 1
        counts = np.ones(len(rows) - 1, bool) if self._counts is None else self._counts
        steps_a = 0.5 * (iq_a[1:] + iq_a[:-1])
        if self._unseen is not None:
            steps_a = steps_a + self._unseen.reference_a + self._unseen.response_a
        return np.array(
            [
                _mean_of_steps(steps_a[a:b], angle_rad[a : b + 1], counts[a:b])
                for a, b in itertools.pairwise(cuts)
                if np.sum(np.diff(angle_rad[a : b + 1])[counts[a:b]])
            ]
        )

    def mean(self, values: FloatArray | None) -> float | None:
        """Of a column; None where there is none."""
        if values is None or not len(self.rows):
            return None
        part = values[self.rows]
        return None if np.isnan(part).all() else float(np.nanmean(part))

    def noise_a(self) -> float:
        """Of one block, from what differs between neighbouring samples."""
        iq_a = self.record.iq_a[self.rows]
        samples = max(1, len(iq_a) // max(self.turns, BLOCKS))
        return float(np.std(np.diff(iq_a))) / math.sqrt(2.0 * samples)


def mean_over_angle(
    values: FloatArray, angle_rad: FloatArray, counts: Flags | None = None
) -> float:
    """∫ values dθ / ∫ dθ, by the trapezoidal rule.

    Args:
        values: At each sample, (n,).
        angle_rad: There, (n,).
        counts: Whether what lies between two samples counts, (n - 1,); all by default.
    """
    return _mean_of_steps(0.5 * (values[1:] + values[:-1]), angle_rad, counts)


def _mean_of_steps(values: FloatArray, angle_rad: FloatArray, counts: Flags | None = None) -> float:
    """∫ values dθ / ∫ dθ of values that are known between each two samples, (n - 1,)."""
    step_rad = _steps_rad(angle_rad, counts)
    return float(np.sum(values * step_rad) / np.sum(step_rad))


def _steps_rad(angle_rad: FloatArray, counts: Flags | None) -> FloatArray:
    """Return the way between each two samples; 0 where it does not count."""
    step_rad = np.diff(angle_rad)
    return step_rad if counts is None else np.where(counts, step_rad, 0.0)


def _in_time(t_s: FloatArray) -> Flags | None:
    """Which intervals the computer was there for, and not long before; None for all.

    What happens while it is away nobody has measured, and the board's law needs a moment to
    recover. A link that is always slow is not an exception to itself.
    """
    step_s = np.diff(t_s)
    late = step_s > _LATE * float(np.median(step_s))
    if not late.any():
        return None
    ends_s = t_s[1:][late]
    number = np.searchsorted(ends_s, t_s[:-1], side="right")
    since_s = t_s[:-1] - np.where(number > 0, ends_s[np.maximum(number - 1, 0)], -math.inf)
    counts: Flags = ~late & (since_s >= _RECOVERY_S)
    return counts if np.mean(counts) > _IN_TIME_MIN else None


def _near_slow_exchanges(record: JointRecord, rows: Rows) -> Flags:
    """Which intervals between two samples lie next to an exchange that took far too long.

    When in it the board was asked nobody knows, and its law needs a moment to recover. A link that
    is always slow is not an exception to itself.
    """
    transfer_s, t_s = record.transfer_s, record.t_s
    part = slice(max(0, int(rows[0]) - LEAD_ROWS), int(rows[-1]) + 1)
    is_slow = transfer_s[part] > float(np.median(transfer_s[part])) + _SLOW_S
    ends_s = (t_s[part] + transfer_s[part])[is_slow]
    begins_s = t_s[part][is_slow]
    # An interval is touched if an exchange begins before its end and has ended not long ago.
    began = np.searchsorted(begins_s, t_s[rows[1:]], side="right")
    recovered = np.searchsorted(ends_s + _RECOVERY_S, t_s[rows[:-1]], side="right")
    result: Flags = began > recovered
    return result


def _smoothed(record: JointRecord, span: Span, speed_rad_s: float) -> FloatArray:
    """Return the motor's angle around a plateau, without encoder steps and bridged across gaps.

    Returns:
        For all rows of the record, NaN elsewhere.
    """
    smooth = np.full(len(record.t_s), math.nan)
    first, last = max(0, span.begin - 1), min(len(record.t_s), span.end + 2)
    known = first + np.flatnonzero(np.isfinite(record.angle_rad[first:last]))
    if len(known) < 3:
        return smooth
    t_s = record.t_s[first:last]
    bridged = np.interp(t_s, record.t_s[known], record.angle_rad[known])
    period_s = float(np.median(np.diff(t_s)))
    steps_s = _SMOOTHED_COUNTS * record.drive.count_rad / max(abs(speed_rad_s), 1e-9)
    width = 2 * round(0.5 * steps_s / period_s) + 1
    smooth[first:last] = bridged
    if _CUBIC < width < len(t_s):
        # A cubic follows the speed as it gives way to cogging; a plain mean would flatten that.
        # What the motor turns anyway is left out: samples are not always equally far apart.
        is_stated = record.behaviour.reply_age_max_s is not None
        even_rad = (speed_rad_s if is_stated else 0.0) * (t_s - t_s[0])
        smooth[first:last] = even_rad + scipy.signal.savgol_filter(
            bridged - even_rad, width, _CUBIC
        )
    return smooth


def _last(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else 0.0
