"""A segment of samples at a constant rate: what readers of recordings give to everything else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from estimation.types import Flags, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Samples without a long gap, at a constant rate; arrays of shape (n,) or (n, joints).

    Attributes:
        source: The recording.
        first_seq: Number of the first sample in its session.
        rows_before: Rows of the same segment before the first; 0 unless a long one came in parts.
        rows_after: Rows of the same segment after the last, likewise.
        lead_rows: Overlap at the beginning, for filters; belongs to the part before.
        tail_rows: Overlap at the end; belongs to the part after.
        is_beginning: Whether nothing lies before: a true border. Then `lead_rows` is 0.
        is_end: Whether nothing follows.
        period_s: Time between two samples.
        t_s: When values were taken, since the recording's first sample.
        q_rad: Measured joint angles.
        dq_rad_s: Measured joint velocities; None where there are none.
        tau_nm: Torques at the joints, from the current; unfiltered, corrected where a board held
            its reference.
        iq_a: Measured currents; None where there are none.
        reference_position_rad: Joint angles that were sent; None where nothing was.
        reference_velocity_rad_s: Likewise.
        kp_a_per_rad: Gains at the motor; None where nothing was sent.
        kd_a_s_per_rad: Likewise.
        ki_a_per_rad_s: Likewise, or the boards have none.
        joint_names: Of the columns.
        is_reference_held: Whether the joint's board holds the position reference between frames,
            shape (joints,); None where there is no board.
        velocity_lag_s: Of the velocities behind the angles, first order, shape (joints,) or one
            for all; 0 where not known.
        torque_lag_s: Of the torques, likewise.
        is_reply_fresh: Whether values are of the moment before the command beside them was sent;
            else of when the one before began to act.
        command_delay_s: From when a row's values were taken until the command beside them acted,
            where that is known, shape (joints,) or one for all.
        is_in_gap: Rows that nobody measured, or wrongly: interpolated for filters, not to be
            counted; None where there are none.
    """

    source: Path
    first_seq: int = 0
    rows_before: int = 0
    rows_after: int = 0
    lead_rows: int = 0
    tail_rows: int = 0
    is_beginning: bool = True
    is_end: bool = True
    period_s: float
    t_s: FloatArray
    q_rad: FloatArray
    dq_rad_s: FloatArray | None = None
    tau_nm: FloatArray
    iq_a: FloatArray | None = None
    reference_position_rad: FloatArray | None = None
    reference_velocity_rad_s: FloatArray | None = None
    kp_a_per_rad: FloatArray | None = None
    kd_a_s_per_rad: FloatArray | None = None
    ki_a_per_rad_s: FloatArray | None = None
    joint_names: tuple[str, ...]
    is_reference_held: Flags | None = None
    velocity_lag_s: FloatArray | float = 0.0
    torque_lag_s: FloatArray | float = 0.0
    is_reply_fresh: bool = False
    command_delay_s: FloatArray | float = 0.0
    is_in_gap: Flags | None = None

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return 1.0 / self.period_s

    def __len__(self) -> int:
        return len(self.t_s)
