"""Find the samples of a recording that can be used, in segments without a long gap.

A gap of more than `GAP_MAX_S` ends a segment. Across shorter ones, a cycle left out or a reply
lost, filters go on (`estimation.recordings.uniform_rows`), but what lies in them never counts. What
counts:

- Where the robot is active and all joints follow a trajectory (`joint_mode` play), if the recording
  has any of it; else where it is active and no joint is off. An imported recording (link `import`)
  is used whole: nobody commanded anything there.
- Values that are numbers (`estimation.recordings.spikes`), and commands that the joint's
  board can be sent.
- A reply is older than the command beside it. What row k measured was latched shortly before that
  exchange, and before the one at k - 1 had ended where a recording does not say (format 1.1): until
  then command k - 2 was obeyed. The first two rows of a mode may show the one before.
- Where the zero of a joint changes (`joint_is_homed`), positions jump: a segment ends there, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daq.recording import Mode, Recording, State
from daq.recording.layout import COLUMNS
from estimation.errors import DatasetError
from estimation.recordings.board_effects import BoardEffects, board_effects
from estimation.recordings.spikes import is_number
from estimation.types import Flags

OLDER_REPLIES = 2
"""Rows after a change of command whose replies do not know of it yet."""
GAP_MAX_S = 0.02
"""Filters go on across gaps of at most this: a third of a period of the usual cut-off, 15 Hz."""
PERIOD_MIN_NS, PERIOD_MAX_NS = 1000, 10_000_000_000
"""No recording of ours or of an import (`estimation.importing.sampling`) is faster or slower."""
PERIOD_WRONG = 10.0
"""By so much the times between samples may differ from the period."""
_FEW_ROWS = 10_000
_POWERED = [mode for mode in Mode if mode is not Mode.OFF]
_NOT_CHOSEN = {
    "play": "not following a trajectory",
    "active": "robot not active, or a joint off",
    "import": "",
}
_OLDER, _INVALID, _NO_NUMBER, _NO_COMMAND = (
    "first rows of a motion, measured before it",
    "no valid reply of some joint",
    "a value that is not a number",
    "a gain or reference velocity that no board can hold",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """What of a recording is used, and what is not and why.

    Attributes:
        source: The file.
        chosen: Which rows were looked for: `play`, `active` or `import` (all).
        rows: Samples in the file.
        used: Of them, in segments that are long enough.
        left_out: How many were not used, by reason; each row counts once.
        missing: Samples that the file does not have: its gaps.
        segments: Number of segments without a long gap.
        not_homed: Used samples in which the zero of some joint was not known.
        period_s: Time between two samples.
    """

    source: str
    chosen: str
    rows: int
    used: int
    left_out: dict[str, int] = field(hash=False)
    missing: int
    segments: int
    not_homed: int
    period_s: float


class UsableRows:
    """Segments of usable rows of a recording.

    Args:
        recording: Open; read block by block.
        all_modes: Whether rows count in which the robot is active but follows no trajectory.
        rows_min: Shorter segments are left out.

    Attributes:
        segments: First row and the one after the last, of each; in between there may be rows that
            cannot be used, for at most `GAP_MAX_S` at a time.
        has_velocity: Whether the recording has measured velocities.
        effects: What its boards do to the values; None of an import.
        summary: What was used and what not.

    Raises:
        RecordingError: It does not say what its boards do to values.
        DatasetError: Its times do not rise, or it states no period.
    """

    def __init__(self, recording: Recording, *, all_modes: bool, rows_min: int) -> None:
        self._recording = recording
        self._period_ns = recording.period_ns
        self._check_period()
        self.effects = board_effects(recording)
        self._chosen = self._choose(all_modes)
        self.has_velocity = _has_any(recording, "joint_velocity_rad_s")
        self._left_out: dict[str, int] = {}
        self._previous: dict[str, Any] = {}
        segments: list[tuple[int, int]] = []
        for block in recording.blocks():
            usable, joined = self._look_at(block)
            _extend(segments, usable, joined, block.start)
        segments = self._united(segments)
        long = [(begin, end) for begin, end in segments if end - begin >= rows_min]
        used, usable_rows = (sum(end - begin for begin, end in some) for some in (long, segments))
        self._count(f"in segments of fewer than {rows_min} samples", usable_rows - used)
        self.segments = tuple(long)
        self.summary = DatasetSummary(
            source=str(recording.path),
            chosen=self._chosen,
            rows=recording.sample_count,
            used=used,
            left_out=self._left_out,
            missing=sum(gap.count for gap in recording.gaps),
            segments=len(long),
            # A segment ends where that changes.
            not_homed=sum(
                end - begin for begin, end in long if not recording["joint_is_homed"][begin].all()
            ),
            period_s=self._period_ns * 1e-9,
        )

    def _check_period(self) -> None:
        path, period_ns = self._recording.path, self._period_ns
        if not PERIOD_MIN_NS <= period_ns <= PERIOD_MAX_NS:
            raise DatasetError(
                f"{path}: a period of {period_ns} ns, limits {PERIOD_MIN_NS} and {PERIOD_MAX_NS}: "
                "the file is damaged",
                code="damaged-period",
            )
        steps_ns = np.diff(self._recording["t_ns"][:_FEW_ROWS])
        usual_ns = float(np.median(steps_ns)) if len(steps_ns) else period_ns
        # Beyond that, what is filled in between the samples would not fit into memory.
        if usual_ns > 0 and not 1 / PERIOD_WRONG <= usual_ns / period_ns <= PERIOD_WRONG:
            raise DatasetError(
                f"{path}: its samples are {usual_ns:.6g} ns apart, its period is {period_ns} ns: "
                "the file is damaged",
                code="damaged-period",
            )

    def _choose(self, all_modes: bool) -> str:
        recording = self._recording
        if recording.is_import:
            return "import"
        if not all_modes:
            for block in recording.blocks():
                if self._is_chosen(block, "play").any():
                    return "play"
        return "active"

    def _look_at(self, block: slice) -> tuple[Flags, Flags]:
        """Which rows of a block are usable, and which go on from the row before."""
        recording = self._recording
        chosen = self._is_chosen(block, self._chosen)
        usable = self._without(chosen.copy(), ~chosen, _NOT_CHOSEN[self._chosen])
        if self._chosen != "import":
            before = self._previous.get("chosen", np.zeros(OLDER_REPLIES, bool))
            history = np.concatenate([before, chosen])
            self._previous["chosen"] = history[-OLDER_REPLIES:]
            fresh = np.ones(len(chosen), bool)
            for age in range(1, OLDER_REPLIES + 1):
                fresh &= history[OLDER_REPLIES - age : len(history) - age]
            usable = self._without(usable, ~fresh, _OLDER)
        valid = (recording["joint_valid"][block] == 1).all(axis=1)
        usable = self._without(usable, ~valid, _INVALID)
        names = ["joint_position_rad", "joint_torque_nm"]
        names += ["joint_velocity_rad_s"] if self.has_velocity else []
        known = np.logical_and.reduce([is_number(recording[n][block]).all(1) for n in names])
        usable = self._without(usable, ~known, _NO_NUMBER)
        is_sent = are_commands(recording, block, self.effects)
        usable = self._without(usable, ~is_sent, _NO_COMMAND)
        joined = self._joined(block)
        homed = recording["joint_is_homed"][block]
        changed = np.diff(homed, axis=0, prepend=self._previous.get("homed", homed[:1])).any(axis=1)
        self._previous["homed"] = homed[-1:]
        return usable, joined & ~changed

    def _is_chosen(self, block: slice, kind: str) -> Flags:
        """Which rows are of the kind that is looked for."""
        mode = self._recording["joint_mode"][block]
        if kind == "import":
            return np.ones(len(mode), bool)
        is_wanted = mode == Mode.PLAY if kind == "play" else np.isin(mode, _POWERED)
        is_active = self._recording["state"][block] == State.ACTIVE
        return np.asarray(is_active & is_wanted.all(axis=1))

    def _united(self, segments: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Join segments with only a short gap between them."""
        recording = self._recording
        united: list[tuple[int, int]] = []
        for begin, end in segments:
            if united:
                last = united[-1][1] - 1
                gap_ns = int(recording["t_ns"][begin]) - int(recording["t_ns"][last])
                homed = recording["joint_is_homed"]
                is_short = gap_ns <= GAP_MAX_S * 1e9 and (homed[begin] == homed[last]).all()
                if is_short and self._is_chosen(slice(last + 1, begin), self._chosen).all():
                    united[-1] = (united[-1][0], end)
                    continue
            united.append((begin, end))
        return united

    def _joined(self, block: slice) -> Flags:
        """Which rows follow the one before without a long gap."""
        recording = self._recording
        t_ns = recording["t_ns"][block]
        t_step = np.diff(t_ns, prepend=self._previous.get("t_ns", t_ns[:1]))
        if "t_ns" not in self._previous:
            t_step[0] = self._period_ns
        self._previous["t_ns"] = t_ns[-1:]
        if (t_step <= 0).any():
            row = block.start + int(np.argmax(t_step <= 0))
            raise DatasetError(
                f"{recording.path}: its times do not rise at row {row}: the file is damaged",
                code="times-do-not-rise",
            )
        joined: Flags = t_step <= max(GAP_MAX_S * 1e9, 1.5 * self._period_ns)
        return joined

    def _without(self, usable: Flags, wrong: Flags, reason: str) -> Flags:
        """Take rows away, and count those that were still there (all, of the first reason)."""
        is_first = reason == _NOT_CHOSEN[self._chosen]
        self._count(reason, int((wrong if is_first else usable & wrong).sum()))
        result: Flags = usable & ~wrong
        return result

    def _count(self, reason: str, rows: int) -> None:
        if rows:
            self._left_out[reason] = self._left_out.get(reason, 0) + rows


def _extend(segments: list[tuple[int, int]], usable: Flags, joined: Flags, first: int) -> None:
    """Add the segments of a block; one that reaches over its border goes on."""
    begins = usable & ~(np.concatenate([[False], usable[:-1]]) & joined)
    starts = np.flatnonzero(begins)
    if not usable.any():
        return
    # A segment ends where the next one begins, or at the first row that is not usable.
    is_end = usable & np.concatenate([~usable[1:] | begins[1:], [True]])
    ends = np.flatnonzero(is_end) + 1
    found = [(first + int(a), first + int(b)) for a, b in zip(starts, ends, strict=True)]
    if segments and found[0][0] == first and segments[-1][1] == first and joined[0]:
        found[0] = (segments.pop()[0], found[0][1])
    segments += found


def are_commands(recording: Recording, rows: slice, effects: BoardEffects | None) -> Flags:
    """Which rows have only commands that their boards can be sent; of an import, all."""
    result = np.ones(rows.stop - rows.start, bool)
    if effects is None:
        return result
    for name, limit in effects.command_max.items():
        if name in recording:
            values = recording[name][rows]
            is_command = is_number(values, limit)
            if COLUMNS[name].is_optional:  # NaN where a board has no such gain
                is_command |= np.isnan(values)
            result &= is_command.all(axis=1)
    return result


def _has_any(recording: Recording, name: str) -> bool:
    return any(is_number(recording[name][block]).any() for block in recording.blocks())
