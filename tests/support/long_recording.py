"""A recording as long as wished, of the 4-DoF arm on a known motion with a known θ and noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from daq.recording.layout import IMPORT_LINK
from tests.support.identification_examples import fourier_motion, model_of, true_theta
from tests.support.recording_maker import make_recording

RATE_HZ = 1000.0
REPEATED_S = 20.0
NOISE_NM = 0.01
_PIECE = 2000


def make_long_recording(path: Path, samples: int, *, seed: int = 0) -> Path:
    """Writes a recording of `samples` rows at 1 kHz: 20 s of motion again and again.

    Args:
        path: The file.
        samples: A multiple of 20,000, so that the motion goes on without a jump.
        seed: Of motion and noise.
    """
    motion = fourier_motion(seed, REPEATED_S, rate_hz=RATE_HZ)
    regressor, _ = model_of()
    theta = true_theta()
    rows = len(motion.t_s)
    assert samples % rows == 0
    pieces = [slice(first, first + _PIECE) for first in range(0, rows, _PIECE)]
    tau_nm = np.concatenate(
        [
            regressor(motion.q_rad[p], motion.dq_rad_s[p], motion.ddq_rad_s2[p]) @ theta
            for p in pieces
        ]
    )
    times = (samples // rows, 1)
    noise_nm = NOISE_NM * np.random.default_rng(seed).standard_normal((samples, tau_nm.shape[1]))
    return make_recording(
        path,
        {
            "joint_position_rad": np.tile(motion.q_rad, times),
            "joint_velocity_rad_s": np.tile(motion.dq_rad_s, times),
            "joint_torque_nm": np.tile(tau_nm, times) + noise_nm,
        },
        # What boards do to their values is not in here, and must not be taken out.
        link=IMPORT_LINK,
        rate_hz=RATE_HZ,
    )
