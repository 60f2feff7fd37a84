"""From samples to plateaus: the mean current of a stretch of constant speed, or why there is none.

The current is averaged over the turned angle, not over time: ∮ K_i·iq dθ is the work of whole
motor turns, to which cogging contributes nothing however much the speed gives way to it, and the
encoder's error, periodic in a turn, nothing either. The angle is smoothed over a few counts first:
each count kicks the board's velocity, and so its current, just when the angle steps.

A board that holds its position reference between frames lets the current fall by Kp·ω·T while the
motor turns on; sampled at the end of each frame it reads Kp·ω·c too little, c = T/2 − τ, with τ the
lag of the board's current filter (PROTOCOL.md). That is added again.
"""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import scipy.signal

from daq.robot.velocity_gains import advice, choose_gains
from estimation.bench.record import Array, JointRecord, Rows, Span
from estimation.bench.result import Plateau

CURRENT_FILTER_S = 1.0 / (2.0 * math.pi * 1000.0)
"""Lag of the boards' 1 kHz low-pass on iq."""
SPEED_TOLERANCE = 0.03
DRIFT_TOLERANCE = 0.03
SATURATED = 0.95
INVALID_SHARE, GAP_MAX_S = 0.02, 0.05
SLIP_SHARE = 0.5
"""Of the usual current: where it falls below this, the gear does not grip."""
_BLOCKS, _ROWS_MIN = 8, 20
_JUMP_COUNTS, _REPLY_AGE_S = 8.0, 0.004
_SWING_SHARE, _SWING_A = 0.35, 0.1
_SMOOTHED_COUNTS, _CUBIC = 16.0, 3
_CHECK_CABLE = "check the board's cable and supply"
_CHECK_GEAR = "check the gear and how it is fastened"


def find_plateaus(record: JointRecord, *, is_reference_held: bool) -> list[Plateau]:
    """Average every plateau of a test, and say why one is not used.

    Args:
        record: The test.
        is_reference_held: Whether the board holds its reference between frames.

    Returns:
        All that were driven, in their order.
    """
    gains = choose_gains(record.joint, record.motor, is_reference_held=is_reference_held)
    per_repetition = max(1, record.header.plateaus // record.header.repetitions)
    return [
        _Window(record, span, advice(gains)).plateau(
            number=number,
            repetition=(number - 1) // per_repetition + 1,
            is_reference_held=is_reference_held,
        )
        for number, span in enumerate(record.plateaus, 1)
    ]


def _smoothed(record: JointRecord, span: Span, speed_rad_s: float) -> Array:
    """The motor's angle around a plateau without encoder steps, bridged where nothing was valid.

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
        smooth[first:last] = scipy.signal.savgol_filter(bridged, width, _CUBIC)
    return smooth


def mean_over_angle(values: Array, angle_rad: Array) -> float:
    """∫ values dθ / (θ_end − θ_begin), by the trapezoidal rule."""
    way_rad = angle_rad[-1] - angle_rad[0]
    middle = 0.5 * (values[1:] + values[:-1])
    return float(np.sum(middle * np.diff(angle_rad)) / way_rad)


def find_encoder_gap(record: JointRecord, rows: Rows, fastest_rad_s: float) -> str:
    """Positions that jump by more than the motor can have turned, in words; empty if none do.

    Args:
        record: The test.
        rows: Where to look; rows without a valid position are left out.
        fastest_rad_s: Speed of the motor there.
    """
    rows = rows[np.isfinite(record.angle_rad[rows])]
    if len(rows) < 2:
        return ""
    step_s = np.diff(record.t_s[rows])
    step_rad = np.abs(np.diff(record.angle_rad[rows]))
    # A reply may be older than its exchange, and each exchange takes its time.
    transfer_s = record.transfer_s[rows[1:]] + record.transfer_s[rows[:-1]]
    plausible_rad = 1.5 * abs(fastest_rad_s) * (step_s + transfer_s + _REPLY_AGE_S)
    excess_rad = step_rad - plausible_rad - _JUMP_COUNTS * record.drive.count_rad
    worst = int(np.argmax(excess_rad))
    if excess_rad[worst] <= 0.0:
        return ""
    where_rad = record.angle_rad[rows[worst]] / record.drive.reduction
    return (
        f"the encoder has a gap: the motor's position jumps by {step_rad[worst]:.3g} rad within "
        f"{1e3 * step_s[worst]:.1f} ms, at {where_rad:.3f} rad of the joint; check the encoder and "
        "its cable"
    )


class _Window:
    """What is averaged of one plateau."""

    def __init__(self, record: JointRecord, span: Span, gains_advice: str) -> None:
        self._record = record
        self._advice = gains_advice
        self._span = span
        # Exactly as sent; but a plateau that was given up may never have got there.
        self._target_rad_s = _last(record.reference_rad_s[span.begin : span.end + 1])
        if span.settled is None and span.target_rad_s is not None:
            self._target_rad_s = span.target_rad_s * record.drive.reduction
        self._smooth_rad = _smoothed(record, span, self._target_rad_s)
        self._is_settled = span.settled is not None
        rows = np.arange(span.settled or span.begin, span.end)
        valid = np.isfinite(record.iq_a[rows]) & np.isfinite(record.angle_rad[rows])
        self._invalid_share = 1.0 - float(np.mean(valid)) if len(rows) else 1.0
        self._rows = rows[valid]
        window_rad = record.header.window_rad
        if window_rad is not None and len(self._rows):
            joint_rad = record.angle_rad[self._rows] / record.drive.reduction
            self._rows = self._rows[(joint_rad >= window_rad[0]) & (joint_rad <= window_rad[1])]
        self._turns = 0
        if self._is_settled and len(self._rows) > 2:
            self._keep_whole_turns()

    def _keep_whole_turns(self) -> None:
        way_rad = np.abs(self._record.angle_rad[self._rows] - self._record.angle_rad[self._rows[0]])
        # A mounted joint's window is whole turns by itself, less what lies between two samples.
        slack_rad = 0.5 if self._record.header.window_rad is not None else 0.0
        self._turns = int((way_rad[-1] + slack_rad) / math.tau)
        if self._turns:
            last = int(np.argmax(way_rad >= self._turns * math.tau)) or len(way_rad) - 1
            self._rows = self._rows[: last + 1]

    def plateau(self, *, number: int, repetition: int, is_reference_held: bool) -> Plateau:
        """The plateau with everything that is known of it."""
        record, span, rows = self._record, self._span, self._rows
        reason = span.remark or self._problem()
        has_values = self._is_settled and self._turns > 0
        iq_a = sigma_a = velocity_rad_s = acceleration_rad_s2 = None
        correction_a = 0.0
        window_s = None
        if has_values:
            angle_rad, t_s = record.angle_rad[rows], record.t_s[rows]
            window_s = float(t_s[0]), float(t_s[-1])
            velocity_rad_s = float((angle_rad[-1] - angle_rad[0]) / (t_s[-1] - t_s[0]))
            if is_reference_held:
                correction_a = self._held_bias_a(velocity_rad_s)
            iq_a = self._mean_iq_a() + correction_a
            acceleration_rad_s2 = self._mean_acceleration_rad_s2()
            blocks = self._blocks()
            if len(blocks) > 1:  # less is left where the encoder jumps
                sigma_a = float(np.std(blocks, ddof=1) / math.sqrt(len(blocks)))
        power_w = self._mean(record.input_power_w) if has_values else None
        settle_s = None
        if span.settled is not None:
            settle_s = float(record.t_s[span.settled] - record.t_s[span.begin])
        return Plateau(
            number=number,
            repetition=repetition,
            start_s=float(record.t_s[span.begin]),
            settle_s=settle_s,
            window_s=window_s,
            joint_velocity_rad_s=self._target_rad_s / record.drive.reduction,
            motor_velocity_rad_s=velocity_rad_s,
            acceleration_rad_s2=acceleration_rad_s2,
            turns=self._turns,
            iq_a=iq_a,
            iq_sigma_a=sigma_a,
            iq_correction_a=correction_a,
            motor_torque_nm=None if iq_a is None else record.drive.k_i_nm_per_a * iq_a,
            is_used=not reason,
            reason=reason,
            winding_temperature_degc=self._mean(record.temperature_degc),
            bus_voltage_v=self._mean(record.bus_voltage_v),
            input_power_w=power_w,
            energy_j=(
                None
                if power_w is None or window_s is None
                else power_w * (window_s[1] - window_s[0])
            ),
        )

    def _mean_iq_a(self) -> float:
        record, rows = self._record, self._rows
        angle_rad, iq_a = self._smooth_rad[rows], record.iq_a[rows]
        window_rad = record.header.window_rad
        if window_rad is None:
            return mean_over_angle(iq_a, angle_rad)
        # Gravity is the same for all plateaus only between exactly the same angles.
        ends = np.sort(np.array(window_rad) * record.drive.reduction)
        if self._target_rad_s < 0:
            ends = ends[::-1]
        order = np.argsort(angle_rad)
        at_ends = np.interp(ends, angle_rad[order], iq_a[order])
        inside = (angle_rad > min(ends)) & (angle_rad < max(ends))
        return mean_over_angle(
            np.concatenate([at_ends[:1], iq_a[inside], at_ends[1:]]),
            np.concatenate([ends[:1], angle_rad[inside], ends[1:]]),
        )

    def _mean_acceleration_rad_s2(self) -> float | None:
        """∫ω̇ dθ/Δθ = (ω²_end − ω²_begin)/(2Δθ); None if the motor is where it was."""
        record, rows = self._record, self._rows
        few = max(3, min(20, len(rows) // 10))
        first, last = rows[:few], rows[-few:]
        begin, end = (np.nanmean(record.velocity_rad_s[part]) for part in (first, last))
        way_rad = np.mean(record.angle_rad[last]) - np.mean(record.angle_rad[first])
        return float((end**2 - begin**2) / (2.0 * way_rad)) if way_rad else None

    def _held_bias_a(self, velocity_rad_s: float) -> float:
        record, rows = self._record, self._rows
        period_s = np.diff(record.t_s[rows[0] : rows[-1] + 1])
        # The last sample of a period stands for half of it and half of the next, and so reads
        # ΣT·(T + T')/2 too little; on average the current falls by ΣT²/2. The rest is due.
        half_s = float(np.mean(period_s[1:] * period_s[:-1]) / (2.0 * np.mean(period_s)))
        kp = float(np.nanmean(record.kp_a_per_rad[rows]))
        return kp * velocity_rad_s * (half_s - CURRENT_FILTER_S)

    def _blocks(self) -> Array:
        """Mean currents of equal parts of the way: whole turns where there are enough of them."""
        record, rows = self._record, self._rows
        angle_rad, iq_a = self._smooth_rad[rows], record.iq_a[rows]
        count = min(max(self._turns, _BLOCKS), len(rows))
        edges_rad = np.linspace(angle_rad[0], angle_rad[-1], count + 1)
        way = angle_rad if angle_rad[-1] > angle_rad[0] else -angle_rad
        edges = edges_rad if angle_rad[-1] > angle_rad[0] else -edges_rad
        cuts = np.searchsorted(np.maximum.accumulate(way), edges)
        cuts[0], cuts[-1] = 0, len(rows) - 1
        return np.array(
            [
                mean_over_angle(iq_a[a : b + 1], angle_rad[a : b + 1])
                for a, b in itertools.pairwise(cuts)
                if angle_rad[b] != angle_rad[a]
            ]
        )

    def _mean(self, values: Array | None) -> float | None:
        if values is None or not len(self._rows):
            return None
        part = values[self._rows]
        return None if np.isnan(part).all() else float(np.nanmean(part))

    # --- why it is not used -----------------------------------------------------------------------

    def _problem(self) -> str:
        if not self._is_settled:
            spent_s = self._record.t_s[self._span.end] - self._record.t_s[self._span.begin]
            return (
                f"it did not settle within {spent_s:.1f} s: wait longer (--settle-max), or "
                f"{self._advice}"
            )
        if len(self._rows) < _ROWS_MIN:
            return (
                f"hardly anything was recorded: {len(self._rows)} valid samples, at least "
                f"{_ROWS_MIN} are due; check the board's cable, or measure longer (--dwell)"
            )
        for check in (
            self._check_encoder,
            self._check_validity,
            self._check_turns,
            self._check_slip,
            self._check_saturation,
            self._check_speed,
            self._check_oscillation,
            self._check_drift,
        ):
            if problem := check():
                return problem
        return ""

    def _check_validity(self) -> str:
        gap_s = float(np.max(np.diff(self._record.t_s[self._rows])))
        if gap_s > GAP_MAX_S:
            limit = f"limit {1e3 * GAP_MAX_S:.0f} ms"
            return f"no valid sample for {1e3 * gap_s:.0f} ms ({limit}); {_CHECK_CABLE}"
        if self._invalid_share > INVALID_SHARE:
            share, limit = f"{self._invalid_share:.1%}", f"{INVALID_SHARE:.0%}"
            return f"{share} of its samples are not valid (limit {limit}); {_CHECK_CABLE}"
        return ""

    def _check_turns(self) -> str:
        if not self._turns:
            first_rad, last_rad = self._record.angle_rad[self._rows[[0, -1]]]
            way_rad = abs(last_rad - first_rad)
            return (
                f"the motor did not make a whole turn: {way_rad:.3g} of {math.tau:.3g} rad; "
                "measure longer (--dwell)"
            )
        return ""

    def _check_encoder(self) -> str:
        return find_encoder_gap(self._record, self._rows, self._target_rad_s)

    def _check_slip(self) -> str:
        """Stretches in which the current is far below what it usually is."""
        if self._record.header.window_rad is not None:
            return ""  # gravity changes on the way
        blocks = np.abs(self._blocks())
        usual_a = float(np.quantile(blocks, 0.75))
        slipping = np.flatnonzero(blocks < SLIP_SHARE * usual_a)
        if not len(slipping) or usual_a < 5.0 * self._noise_a():
            return ""
        way = self._record.angle_rad[self._rows[[0, -1]]] / self._record.drive.reduction
        at_rad = way[0] + (way[1] - way[0]) * (slipping[0] + 0.5) / len(blocks)
        return (
            f"the gear slips: the current falls from {1e3 * usual_a:.0f} to "
            f"{1e3 * float(np.min(blocks)):.0f} mA around {at_rad % math.tau:.2f} rad of the joint; "
            f"{_CHECK_GEAR}"
        )

    def _check_saturation(self) -> str:
        limit_a = float(np.nanmean(self._record.limit_a[self._rows]))
        mean_a = abs(float(np.mean(self._record.iq_a[self._rows])))
        if limit_a > 0.0 and mean_a >= SATURATED * limit_a:
            return (
                f"the current is saturated: {mean_a:.3g} A of {limit_a:.3g} A; drive it slower "
                "(--speed-max) or raise the joint's current_max_a"
            )
        return ""

    def _check_speed(self) -> str:
        record, rows = self._record, self._rows
        way_rad = record.angle_rad[rows[-1]] - record.angle_rad[rows[0]]
        speed_rad_s = way_rad / (record.t_s[rows[-1]] - record.t_s[rows[0]])
        tolerance = SPEED_TOLERANCE if record.header.kind == "free" else 3.0 * SPEED_TOLERANCE
        if abs(speed_rad_s - self._target_rad_s) > tolerance * abs(self._target_rad_s):
            return (
                f"the motor turns at {speed_rad_s:.4g} rad/s instead of {self._target_rad_s:.4g} "
                f"(limit {tolerance:.0%}): the PI is badly tuned, {self._advice}"
            )
        return ""

    def _check_oscillation(self) -> str:
        record, rows = self._record, self._rows
        swing_rad_s = float(np.nanstd(record.velocity_rad_s[rows]))
        swing_a = float(np.std(record.iq_a[rows]))
        if record.header.window_rad is not None:  # what gravity changes on the way is no swing
            parts = np.array_split(record.iq_a[rows], _BLOCKS)
            swing_a = math.sqrt(float(np.mean([np.var(part) for part in parts])))
        mean_a = abs(float(np.mean(record.iq_a[rows])))
        is_fast = abs(self._target_rad_s) > 5.0
        is_swinging = is_fast and swing_rad_s > _SWING_SHARE * abs(self._target_rad_s)
        if is_swinging or swing_a > 2.0 * mean_a + _SWING_A:
            return (
                f"it oscillates: the speed by ±{swing_rad_s:.3g} rad/s at the motor, the current by"
                f" ±{swing_a:.3g} A; the PI is badly tuned, {self._advice}"
            )
        return ""

    def _check_drift(self) -> str:
        if self._record.header.window_rad is not None:
            return ""  # gravity changes on the way
        blocks = self._blocks()
        half = len(blocks) // 2
        first_a, second_a = float(np.mean(blocks[:half])), float(np.mean(blocks[half:]))
        noise_a = float(np.std(np.diff(blocks), ddof=1)) / math.sqrt(2.0 * half)
        change_a = abs(second_a - first_a)
        if change_a > max(DRIFT_TOLERANCE * abs(first_a), 5.0 * noise_a):
            return (
                f"not settled: the current changes from {1e3 * first_a:.1f} to "
                f"{1e3 * second_a:.1f} mA within it; let the joint run in and repeat the test"
            )
        return ""

    def _noise_a(self) -> float:
        """Of one block, from what differs between neighbouring samples."""
        iq_a = self._record.iq_a[self._rows]
        samples = max(1, len(iq_a) // max(self._turns, _BLOCKS))
        return float(np.std(np.diff(iq_a))) / math.sqrt(2.0 * samples)


def _last(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else 0.0


def reject_slipping(plateaus: list[Plateau]) -> list[Plateau]:
    """Reject plateaus whose whole way lay where the gear does not grip.

    Their current is far below that of the others at the same speed.
    """
    highest_a: dict[float, float] = {}
    for plateau in plateaus:
        if plateau.is_used and plateau.iq_a is not None:
            speed = round(abs(plateau.joint_velocity_rad_s), 6)
            highest_a[speed] = max(highest_a.get(speed, 0.0), abs(plateau.iq_a))
    return [_without_slip(plateau, highest_a) for plateau in plateaus]


def _without_slip(plateau: Plateau, highest_a: dict[float, float]) -> Plateau:
    usual_a = highest_a.get(round(abs(plateau.joint_velocity_rad_s), 6), 0.0)
    if not plateau.is_used or plateau.iq_a is None or abs(plateau.iq_a) >= SLIP_SHARE * usual_a:
        return plateau
    reason = (
        f"the gear slips: the current is {1e3 * abs(plateau.iq_a):.0f} mA where it was "
        f"{1e3 * usual_a:.0f} mA at another time; {_CHECK_GEAR}"
    )
    return msgspec.structs.replace(plateau, is_used=False, reason=reason)
