"""Motion of all joints over time, as arrays."""

from __future__ import annotations

from typing import NamedTuple

from estimation.types import FloatArray


class SampledMotion(NamedTuple):
    """Samples of a motion.

    Attributes:
        t_s: Times, shape (n_samples,).
        q_rad: Joint angles, shape (n_samples, n_joints).
        dq_rad_s: Their velocities, of the same shape.
        ddq_rad_s2: Their accelerations, of the same shape.
    """

    t_s: FloatArray
    q_rad: FloatArray
    dq_rad_s: FloatArray
    ddq_rad_s2: FloatArray
