"""Why a plateau is not used: each reason in words, with its numbers and what to do."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from estimation.bench.record import JointRecord
from estimation.bench.result import Cause, Plateau
from estimation.bench.window import BLOCKS, PlateauWindow
from estimation.types import Rows

SPEED_TOLERANCE = 0.03
DRIFT_TOLERANCE = 0.03
SATURATED = 0.95
INVALID_SHARE, GAP_MAX_S = 0.02, 0.05
SLIP_SHARE = 0.5
"""Of the usual current: where it falls below this, the gear does not grip."""
RESPONSE_MAX = 0.03
"""Of the current: it is known only as well as the motor's inertia, to a quarter or so."""
UNEVEN_MAX = 0.3
"""Variance of the times between commands, relative to their mean squared."""
COUNTED_MIN = 0.3
"""Of a plateau's intervals, that their moments are known."""
_ROWS_MIN = 20
_CURRENT_MIN_A = 0.01
"""Fewer say nothing about a gear."""
_JUMP_COUNTS, _REPLY_AGE_S = 8.0, 0.004
_SWING_SHARE, _SWING_A = 0.35, 0.1
_CHECK_CABLE = "check the board's cable and supply"
_CHECK_GEAR = "check the gear and how it is fastened"


class Rejection(NamedTuple):
    """Why a plateau is not used: of what kind the reason is, and in words."""

    cause: Cause
    reason: str


def find_problem(window: PlateauWindow, gains_advice: str) -> Rejection | None:
    """Why a plateau is not used; None if nothing speaks against it."""
    if not window.is_settled:
        spent_s = window.record.t_s[window.span.end] - window.record.t_s[window.span.begin]
        return Rejection(
            Cause.NOT_SETTLED,
            f"it did not settle within {spent_s:.1f} s: wait longer (--settle-max), or "
            f"{gains_advice}",
        )
    if len(window.rows) < _ROWS_MIN:
        return Rejection(
            Cause.TOO_FEW_SAMPLES,
            f"hardly anything was recorded: {len(window.rows)} valid samples, at least "
            f"{_ROWS_MIN} are needed; check the board's cable, or measure longer (--dwell)",
        )
    for cause, check in (
        (Cause.ENCODER_GAP, _check_encoder),
        (Cause.INVALID_SAMPLES, _check_validity),
        (Cause.NO_WHOLE_TURN, _check_turns),
        (Cause.SKIPPED, _check_pauses),
        (Cause.SLIP, _check_slip),
        (Cause.SATURATION, _check_saturation),
        (Cause.SPEED, _check_speed),
        (Cause.OSCILLATION, _check_oscillation),
        (Cause.DRIFT, _check_drift),
    ):
        if reason := check(window, gains_advice):
            return Rejection(cause, reason)
    return None


def _check_validity(window: PlateauWindow, gains_advice: str) -> str:
    gap_s = float(np.max(np.diff(window.record.t_s[window.rows])))
    if gap_s > GAP_MAX_S:
        limit = f"limit {1e3 * GAP_MAX_S:.0f} ms"
        return f"no valid sample for {1e3 * gap_s:.0f} ms ({limit}); {_CHECK_CABLE}"
    if window.invalid_share > INVALID_SHARE:
        share, limit = f"{window.invalid_share:.1%}", f"{INVALID_SHARE:.0%}"
        return f"{share} of its samples are not valid (limit {limit}); {_CHECK_CABLE}"
    return ""


def _check_turns(window: PlateauWindow, gains_advice: str) -> str:
    if not window.turns:
        first_rad, last_rad = window.record.angle_rad[window.rows[[0, -1]]]
        way_rad = abs(last_rad - first_rad)
        return (
            f"the motor did not make a whole turn: {way_rad:.3g} of {math.tau:.3g} rad; "
            "measure longer (--dwell)"
        )
    return ""


def _check_pauses(window: PlateauWindow, gains_advice: str) -> str:
    """Between commands that are far apart, the motor does what only its inertia tells."""
    if window.counted_share < COUNTED_MIN:
        return (
            f"only {window.counted_share:.0%} of it lies away from missing samples and from "
            f"exchanges that took too long (at least {COUNTED_MIN:.0%} must): the computer or the "
            "link is too slow, see `armature doctor`"
        )
    behaviour = window.record.behaviour
    if not window.is_stated or behaviour.is_reference_advanced:
        return ""
    share = abs(window.response_a() / float(np.mean(window.record.iq_a[window.rows])))
    steps_s = np.diff(window.record.t_s[window.rows])
    uneven = float(np.var(steps_s) / np.mean(steps_s) ** 2)
    if share <= RESPONSE_MAX and uneven <= UNEVEN_MAX:
        return ""
    why = (
        f"which is too uneven ({uneven:.2f}, limit {UNEVEN_MAX:g})"
        if uneven > UNEVEN_MAX
        else f"and what the motor did meanwhile is {share:.1%} of the current (limit "
        f"{RESPONSE_MAX:.0%})"
    )
    return (
        f"commands came {1e3 * float(np.mean(steps_s)):.1f} ms apart on average and up to "
        f"{1e3 * float(np.max(steps_s)):.1f} ms, {why}: the computer skipped too many periods, see "
        "`armature doctor`, or the link is too slow"
    )


def _check_encoder(window: PlateauWindow, gains_advice: str) -> str:
    return find_encoder_gap(window.record, window.rows, window.target_rad_s)


def _check_slip(window: PlateauWindow, gains_advice: str) -> str:
    """Segments in which the current is far below what it usually is."""
    if window.record.header.window_rad is not None:
        return ""  # gravity changes on the way
    blocks = np.abs(window.blocks())
    usual_a = float(np.quantile(blocks, 0.75))
    slipping = np.flatnonzero(blocks < SLIP_SHARE * usual_a)
    if not len(slipping) or usual_a < 5.0 * window.noise_a():
        return ""
    way = window.record.angle_rad[window.rows[[0, -1]]] / window.record.drive.reduction
    at_rad = way[0] + (way[1] - way[0]) * (slipping[0] + 0.5) / len(blocks)
    return (
        f"the gear slips: the current falls from {1e3 * usual_a:.0f} to "
        f"{1e3 * float(np.min(blocks)):.0f} mA around {at_rad % math.tau:.2f} rad of the joint"
        f"; {_CHECK_GEAR}"
    )


def _check_saturation(window: PlateauWindow, gains_advice: str) -> str:
    limit_a = float(np.nanmean(window.record.limit_a[window.rows]))
    mean_a = abs(float(np.mean(window.record.iq_a[window.rows])))
    if limit_a > 0.0 and mean_a >= SATURATED * limit_a:
        return (
            f"the current is saturated: {mean_a:.3g} A of {limit_a:.3g} A; drive it slower "
            "(--speed-max) or raise the joint's current_max_a"
        )
    return ""


def _check_speed(window: PlateauWindow, gains_advice: str) -> str:
    record, rows = window.record, window.rows
    way_rad = record.angle_rad[rows[-1]] - record.angle_rad[rows[0]]
    speed_rad_s = way_rad / (record.t_s[rows[-1]] - record.t_s[rows[0]])
    tolerance = SPEED_TOLERANCE if record.header.kind == "free" else 3.0 * SPEED_TOLERANCE
    if abs(speed_rad_s - window.target_rad_s) > tolerance * abs(window.target_rad_s):
        return (
            f"the motor turns at {speed_rad_s:.4g} rad/s instead of {window.target_rad_s:.4g} "
            f"(limit {tolerance:.0%}): the PI is badly tuned, {gains_advice}"
        )
    return ""


def _check_oscillation(window: PlateauWindow, gains_advice: str) -> str:
    record, rows = window.record, window.rows
    swing_rad_s = float(np.nanstd(record.velocity_rad_s[rows]))
    swing_a = float(np.std(record.iq_a[rows]))
    if record.header.window_rad is not None:  # what gravity changes on the way is not a swing
        parts = np.array_split(record.iq_a[rows], BLOCKS)
        swing_a = math.sqrt(float(np.mean([np.var(part) for part in parts])))
    mean_a = abs(float(np.mean(record.iq_a[rows])))
    is_fast = abs(window.target_rad_s) > 5.0
    is_swinging = is_fast and swing_rad_s > _SWING_SHARE * abs(window.target_rad_s)
    if is_swinging or swing_a > 2.0 * mean_a + _SWING_A:
        return (
            f"it oscillates: the speed by ±{swing_rad_s:.3g} rad/s at the motor, the current by"
            f" ±{swing_a:.3g} A; the PI is badly tuned, {gains_advice}"
        )
    return ""


def _check_drift(window: PlateauWindow, gains_advice: str) -> str:
    if window.record.header.window_rad is not None:
        return ""  # gravity changes on the way
    blocks = window.blocks()
    half = len(blocks) // 2
    first_a, second_a = float(np.mean(blocks[:half])), float(np.mean(blocks[half:]))
    # Of the difference of both halves: from block to block (three of them at least say something
    # about that), and from sample to sample.
    steps_a = float(np.std(np.diff(blocks), ddof=1)) if len(blocks) > 2 else 0.0
    block_a = max(steps_a / math.sqrt(2.0), window.noise_a())
    noise_a = block_a * math.sqrt(2.0 / half)
    change_a = abs(second_a - first_a)
    if change_a > max(DRIFT_TOLERANCE * abs(first_a), 5.0 * noise_a):
        return (
            f"not settled: the current changes from {1e3 * first_a:.1f} to "
            f"{1e3 * second_a:.1f} mA within it; let the joint run in and repeat the test"
        )
    return ""


def find_encoder_gap(record: JointRecord, rows: Rows, fastest_rad_s: float) -> str:
    """Tell of positions that jump by more than a motor of this speed can turn; empty if none do."""
    rows = rows[np.isfinite(record.angle_rad[rows])]
    if len(rows) < 2:
        return ""
    step_s = np.diff(record.t_s[rows])
    step_rad = np.abs(np.diff(record.angle_rad[rows]))
    # A reply is as old as the exchange before, and each exchange takes its time.
    since_s = step_s.copy()
    since_s[1:] += step_s[:-1]
    transfer_s = record.transfer_s[rows[1:]] + record.transfer_s[rows[:-1]]
    plausible_rad = 1.5 * abs(fastest_rad_s) * (since_s + transfer_s + _REPLY_AGE_S)
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


def reject_slipping(plateaus: list[Plateau]) -> list[Plateau]:
    """Reject plateaus whose whole way lay where the gear does not grip.

    Their current is far below that of the others at the same speed; in the same direction if it was
    driven more than once, for friction may differ between the two.
    """
    return [_without_slip(plateau, plateaus) for plateau in plateaus]


def _without_slip(plateau: Plateau, plateaus: list[Plateau]) -> Plateau:
    speed = plateau.joint_velocity_rad_s
    used = [other for other in plateaus if other.is_used]
    same = [other for other in used if math.isclose(other.joint_velocity_rad_s, speed)]
    if len(same) < 2:
        same = [o for o in used if math.isclose(abs(o.joint_velocity_rad_s), abs(speed))]
    usual_a = max((abs(other.iq_a or 0.0) for other in same), default=0.0)
    is_low = plateau.iq_a is not None and abs(plateau.iq_a) < SLIP_SHARE * usual_a
    if not plateau.is_used or plateau.iq_a is None or not is_low or usual_a < _CURRENT_MIN_A:
        return plateau
    reason = (
        f"the gear slips: the current is {1e3 * abs(plateau.iq_a):.0f} mA where it was "
        f"{1e3 * usual_a:.0f} mA at another time; {_CHECK_GEAR}"
    )
    return msgspec.structs.replace(plateau, is_used=False, reason=reason, cause=Cause.SLIP)
