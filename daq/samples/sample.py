"""One sample as it travels: the frames of a cycle as they were on the wire, and the cycle's timing.

Nothing is decoded on the way: the loop has no time for it, and raw frames lose nothing. Whoever
wants values decodes many samples at once (`daq.samples.columns`). Little-endian and packed, so that
a batch is a plain NumPy array of `SampleLayout.dtype`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

TIMING_MAX_NS = (1 << 32) - 1
SKIPPED_MAX = (1 << 16) - 1


_TIMING = struct.Struct("<QqIIIHB")
_TIMING_FIELDS = [
    ("seq", "<u8"),  # number in its session, from 0; executed cycles, not periods
    ("t_ns", "<i8"),  # monotonic clock when the cycle woke up
    ("wake_ns", "<u4"),  # how late that was
    ("transfer_ns", "<u4"),  # spent in the links
    ("work_ns", "<u4"),  # the rest of the cycle *before* this one: this one has not ended yet
    ("skipped", "<u2"),  # whole periods left out before this cycle; clipped at 65535
    ("state", "u1"),  # `daq.recording.states.State` at the end of the cycle
]


class SampleLayout:
    """Where things are in a sample of a robot.

    A sample is the cycle's timing, then for all joints `motor_offset_rad`, `joint_mode` and
    `joint_is_homed`, then for each board `outcome`, the command frame and the reply frame. A reply
    that was too short is filled with zeros. Joint angle = direction · (motor position on the wire
    + motor_offset_rad) / gear reduction.

    Args:
        joint_count: Joints of the robot.
        frame_sizes: Bytes of a frame on each board's link, in the robot file's order.

    Attributes:
        dtype: A sample as NumPy sees it.
        size: Bytes of a sample.
    """

    def __init__(self, joint_count: int, frame_sizes: Sequence[int]) -> None:
        self.joint_count = joint_count
        self.frame_sizes = tuple(frame_sizes)
        fields: list[Any] = [
            *_TIMING_FIELDS,
            ("motor_offset_rad", "<f8", (joint_count,)),
            ("joint_mode", "u1", (joint_count,)),
            ("joint_is_homed", "u1", (joint_count,)),
        ]
        for number, size in enumerate(self.frame_sizes):
            fields += [
                (f"outcome_{number}", "u1"),
                (f"command_{number}", "u1", (size,)),
                (f"reply_{number}", "u1", (size,)),
            ]
        self.dtype = np.dtype(fields)
        self.size = self.dtype.itemsize
        self._joints = struct.Struct(f"<{joint_count}d{joint_count}B{joint_count}B")

    pack_timing = staticmethod(_TIMING.pack)
    """The first part of a sample, from the values of its timing in order."""

    def pack_joints(
        self,
        motor_offset_rad: Sequence[float],
        joint_mode: Sequence[int],
        joint_is_homed: Sequence[bool],
    ) -> bytes:
        """Return the second part of a sample. It changes rarely: pack it when it does."""
        return self._joints.pack(*motor_offset_rad, *joint_mode, *joint_is_homed)

    def view(self, payload: bytes) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the samples of a payload, without a copy.

        Raises:
            ValueError: It does not hold a whole number of samples.
        """
        return np.frombuffer(payload, self.dtype)
