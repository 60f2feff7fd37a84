"""Recordings as segments of samples at a constant rate: positions, torques, what belongs to them.

Reads slices only: a recording of an hour costs no more memory than one of two minutes. Which rows
are used and why is in `estimation.recordings.usable_rows`, how they come to a constant rate in
`estimation.recordings.uniform_rows`; single values that stand far off
(`estimation.recordings.spikes`) become gaps. The torque of boards that hold their reference is
corrected here, values that were cut on the wire get back what is missing
(`estimation.recordings.board_effects`), torn positions are mended (`estimation.recordings.torn`).
Nothing is filtered: `estimation.signals.preparation`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from daq.recording import Recording
from estimation.errors import DatasetError
from estimation.recordings.board_effects import held_delay_s, untruncated
from estimation.recordings.references import VelocityLoop, regular_response_s
from estimation.recordings.sample_times import SampleTimes, is_in_time
from estimation.recordings.segment import Segment
from estimation.recordings.spikes import find_outliers, only_numbers
from estimation.recordings.torn import mended
from estimation.recordings.uniform_rows import at, make_grid
from estimation.recordings.usable_rows import GAP_MAX_S, DatasetSummary, UsableRows, are_commands
from estimation.types import Flags, FloatArray

ROWS_MAX = 120_000
"""Of a segment, without its overlap: two minutes at 1 kHz."""
ROWS_MIN = 200
"""Of a segment: from less no filter makes anything."""
_INERTIA_MIN_KG_M2 = 1e-7
_GAINS = ("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s")
OVERLAP_S = 2.0
"""What two parts of a long segment share on either side: a filter of 5 Hz has forgotten its border
to 1e-9 by then."""


class OpenDataset:
    """An open recording and its usable rows, which are looked for once.

    Args:
        recording: Open, for as long as this is used.
        all_modes: Whether to use rows in which the robot is active but follows no trajectory.
        rows_min: Shorter segments are left out.

    Raises:
        DatasetError: It is damaged.
    """

    def __init__(
        self, recording: Recording, *, all_modes: bool = False, rows_min: int = ROWS_MIN
    ) -> None:
        self.recording = recording
        self._rows = UsableRows(recording, all_modes=all_modes, rows_min=rows_min)
        recording.drop_caches()

    @property
    def path(self) -> Path:
        """The file."""
        return self.recording.path

    @property
    def summary(self) -> DatasetSummary:
        """What of the recording is used, and what not and why."""
        return self._rows.summary

    def segments(
        self, *, rows_max: int = ROWS_MAX, overlap_rows: int | None = None
    ) -> Iterator[Segment]:
        """Yield the usable samples, in order.

        Args:
            rows_max: A longer segment comes in parts of at most so many rows, overlap not counted.
            overlap_rows: What neighbouring parts share on either side; None for 2 s.

        Yields:
            Segments; none where nothing can be used: the summary says why.

        Raises:
            RecordingError: The file is damaged.
            DatasetError: Its times do not rise, or an argument is out of range.
        """
        if rows_max < 1 or (overlap_rows is not None and overlap_rows < 0):
            raise DatasetError(
                f"parts of {rows_max} rows that share {overlap_rows}: the first must be at least "
                "1, the second at least 0",
                code="out-of-range",
            )
        reader = _Reader(self.recording, self._rows)
        overlap = round(OVERLAP_S / reader.period_s) if overlap_rows is None else overlap_rows
        for begin, end in self._rows.segments:
            # Parts of about the same length: a short rest would be nothing but overlap.
            parts = -(-(end - begin) // rows_max)
            cuts = [begin + (end - begin) * number // parts for number in range(parts + 1)]
            for part in itertools.pairwise(cuts):
                yield reader.read((begin, end), part, overlap)
        self.recording.drop_caches()


class _Reader:
    """Turns rows of a recording into segments."""

    def __init__(self, recording: Recording, rows: UsableRows) -> None:
        self.period_s = recording.period_ns * 1e-9
        self._recording = recording
        self._has_velocity = rows.has_velocity
        self._effects = effects = rows.effects
        self._is_import = effects is None
        # Boards' exchanges follow each other at once: one age for all of them.
        age_s = float(np.mean(effects.reply_age_s)) if effects and effects.is_reply_fresh else None
        self._times = SampleTimes(recording, age_s)
        # From when a row's values were taken until its command was sent.
        self._ahead_s = 0.0 if self._is_import else self.period_s if age_s is None else age_s
        if effects is not None:
            robot = recording.robot.driven()
            # What a gain of 1 takes from the joint's torque, per rate of the joint and second that
            # references seem late: signs cancel.
            self._nm_per_rate = np.array(
                [robot.nm_per_a(joint) * joint.motor_per_joint for joint in robot.joints]
            )
            self._rad_s2_per_a = [
                robot.motor_of(joint).torque_constant_nm_per_a
                / max(joint.drive.rotor_inertia_kg_m2, _INERTIA_MIN_KG_M2)
                for joint in robot.joints
            ]
            self._held_s = np.array(
                [
                    held_delay_s(self.period_s, lag_s, early_s)
                    for lag_s, early_s in zip(
                        effects.current_lag_s,
                        effects.reply_age_s + effects.command_delay_s,
                        strict=True,
                    )
                ]
            )

    def read(self, whole: tuple[int, int], part: tuple[int, int], overlap: int) -> Segment:
        effects = self._effects
        first, last = max(whole[0], part[0] - overlap), min(whole[1], part[1] + overlap)
        start_s = self._times.taken_s(whole[0])
        # In periods since the whole's first value: where the whole ends, and where the part and its
        # overlap begin and end.
        count = math.floor((self._times.taken_s(whole[1] - 1) - start_s) / self.period_s + 1e-3) + 1
        edges = [
            (self._times.taken_s(row) - start_s) / self.period_s if row < whole[1] else count
            for row in (first, part[0], part[1], last)
        ]
        lead, begin, end, tail = (min(math.ceil(edge - 1e-3), count) for edge in edges)
        # A time at the edge may lie in a gap, and need values from beyond.
        margin = math.ceil(GAP_MAX_S / self.period_s) + 1
        wide = slice(max(whole[0], first - margin), min(whole[1], last + margin))
        sound, sent_s, taken_s = self._usable(wide)
        if not len(taken_s):
            raise DatasetError(
                f"{self._recording.path}: of rows {wide.start} to {wide.stop - 1}, it is sure of "
                f"{len(taken_s)} when their values were taken, expected most: do their numbers "
                "(seq) follow each other? The file is damaged",
                code="unsure-times",
            )
        taken_s, sent_s = taken_s - start_s, sent_s - start_s
        grid = make_grid(taken_s, lead, tail, self.period_s)

        def measured(name: str) -> FloatArray | None:
            values = self._optional(name, wide, sound)
            return None if values is None else at(grid, taken_s, values)

        def commanded(name: str) -> FloatArray | None:
            # Beside a value stands the command that was sent after it, as in the recording.
            values = self._optional(name, wide, sound)
            return None if values is None else at(grid, sent_s, values, ahead_s=self._ahead_s)

        dq_rad_s = measured("joint_velocity_rad_s") if self._has_velocity else None
        gains = [commanded(name) for name in _GAINS]
        reference_rad_s = commanded("reference_velocity_rad_s")
        q_rad, tau_nm = measured("joint_position_rad"), measured("joint_torque_nm")
        if q_rad is None or tau_nm is None:  # rows are usable only where both are finite
            raise DatasetError(
                f"{self._recording.path}: has no positions or no torques", code="no-values"
            )
        tau_nm = tau_nm + self._held_nm(dq_rad_s, reference_rad_s, gains)
        return Segment(
            source=self._recording.path,
            first_seq=int(self._recording["seq"][first]),
            rows_before=lead,
            rows_after=max(0, count - tail),
            lead_rows=begin - lead,
            tail_rows=tail - end,
            is_beginning=part[0] == whole[0],
            is_end=part[1] == whole[1],
            period_s=self.period_s,
            t_s=grid.times_s + start_s,
            is_in_gap=grid.is_in_gap if grid.is_in_gap.any() else None,
            q_rad=q_rad,
            dq_rad_s=dq_rad_s,
            tau_nm=tau_nm,
            iq_a=measured("iq_a"),
            reference_position_rad=commanded("reference_position_rad"),
            reference_velocity_rad_s=reference_rad_s,
            kp_a_per_rad=gains[0],
            kd_a_s_per_rad=gains[1],
            ki_a_per_rad_s=gains[2],
            joint_names=self._recording.joint_names,
            is_reference_held=None if effects is None else effects.is_reference_held,
            velocity_lag_s=0.0 if effects is None else effects.velocity_lag_s,
            torque_lag_s=0.0 if effects is None else effects.current_lag_s,
            is_reply_fresh=effects is not None and effects.is_reply_fresh,
            command_delay_s=0.0
            if effects is None
            else effects.reply_age_s + effects.command_delay_s,
        )

    def _usable(self, rows: slice) -> tuple[Flags, FloatArray, FloatArray]:
        """Which rows have sound values; when these were sent and when their values were taken."""
        recording = self._recording
        sent_s, taken_s, is_sure = self._times.of(rows)
        names = ["joint_position_rad", "joint_torque_nm"]
        names += ["joint_velocity_rad_s"] if self._has_velocity else []
        sound = (recording["joint_valid"][rows] == 1).all(axis=1) & is_sure
        sound &= are_commands(recording, rows, self._effects)
        columns = {name: self._column(name, rows) for name in names}
        for values in columns.values():
            sound &= ~np.isnan(values).any(axis=1)
        judged = np.flatnonzero(sound)
        for name in names[:2]:
            sound[judged] &= ~find_outliers(columns[name][judged]).any(axis=1)
        if self._has_velocity and not self._is_import:
            sound &= is_in_time(columns[names[0]], columns[names[2]], taken_s)
        return sound, sent_s[sound], taken_s[sound]

    def _held_nm(
        self,
        dq_rad_s: FloatArray | None,
        reference_rad_s: FloatArray | None,
        gains: list[FloatArray | None],
    ) -> FloatArray | float:
        """Return what held references took from the torques; both sides of the gear count alike."""
        effects = self._effects
        if effects is None:
            return 0.0
        is_held = effects.is_reference_held
        missing: FloatArray | float = 0.0
        kp_a_per_rad, kd_a_s_per_rad, _ = gains
        speeds, late_s = dq_rad_s, self._held_s
        if effects.is_reply_fresh and reference_rad_s is not None:
            # It is the reference that jumps, and a soft joint does not go at its speed. The row's
            # own is that of the coming frame, the one before that of the frame that ends.
            before_rad_s = np.concatenate([reference_rad_s[:1], reference_rad_s[:-1]])
            speeds = 0.5 * (reference_rad_s + before_rad_s)
            late_s = late_s + self._response_s(kp_a_per_rad, kd_a_s_per_rad)
        if is_held.any() and speeds is not None and kp_a_per_rad is not None:
            missing = self._nm_per_rate * late_s * is_held * np.nan_to_num(kp_a_per_rad * speeds)
        # A single row has no rate.
        if reference_rad_s is not None and len(reference_rad_s) > 1 and kd_a_s_per_rad is not None:
            rates = np.gradient(reference_rad_s, self.period_s, axis=0)
            missing = missing + self._nm_per_rate * self._held_s * np.nan_to_num(
                kd_a_s_per_rad * rates
            )
        return missing

    def _response_s(
        self, kp_a_per_rad: FloatArray | None, kd_a_s_per_rad: FloatArray | None
    ) -> FloatArray | float:
        """Return what the motors' response adds; of the rotors alone, for links are not known."""
        if self._effects is None or kp_a_per_rad is None or kd_a_s_per_rad is None:
            return 0.0
        return np.array(
            [
                regular_response_s(
                    self.period_s,
                    board,
                    VelocityLoop(
                        kp_a_per_rad=float(np.nanmedian(kp)),
                        kd_a_s_per_rad=float(np.nanmedian(kd)),
                        rad_s2_per_a=rad_s2_per_a,
                        velocity_lag_s=board.velocity_lag_s,
                    ),
                )
                for board, kp, kd, rad_s2_per_a in zip(
                    self._effects.boards,
                    kp_a_per_rad.T,
                    kd_a_s_per_rad.T,
                    self._rad_s2_per_a,
                    strict=True,
                )
            ]
        )

    def _optional(self, name: str, rows: slice, sound: Flags) -> FloatArray | None:
        if name not in self._recording:
            return None
        values = self._column(name, rows)[sound]
        return None if np.isnan(values).all() else values

    def _column(self, name: str, rows: slice) -> FloatArray:
        """Return some rows as they were before the boards put them on the wire."""
        values = only_numbers(np.asarray(self._recording[name][rows], np.float64))
        effects = self._effects
        if effects is None:
            return values
        if name in effects.truncated:
            return untruncated(values, effects.truncated[name])
        if name == "joint_position_rad" and self._has_velocity and effects.torn_step_rad.any():
            speeds = only_numbers(np.asarray(self._recording["joint_velocity_rad_s"][rows]))
            sent_s = self._times.of(rows).sent_s
            return np.column_stack(
                [
                    mended(
                        values[:, joint],
                        speeds[:, joint],
                        sent_s,
                        step_rad=float(effects.torn_step_rad[joint]),
                        output=output,
                        lag_s=float(effects.velocity_lag_s[joint]),
                    )
                    for joint, output in enumerate(effects.output)
                ]
            )
        return values
