"""Single wrong samples: found where there are some, and only there."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from datasets import read_segments
from hypothesis import given
from hypothesis import strategies as st
from identify_recordings import made_recording
from recording_maker import make_recording

from estimation.identification.pipeline import Request, identify
from estimation.recordings.spikes import find_outliers

ROWS = 26_000
T_S = np.arange(ROWS) * 1e-3
SPEEDS = np.array([0.7, 1.1, 1.9, 2.3])


def smooth(noise: float = 0.0, seed: int = 0) -> np.ndarray:
    clean = 0.8 * np.sin(T_S[:, None] * SPEEDS) + 0.3 * np.cos(3.0 * T_S[:, None] * SPEEDS)
    return clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def friction(noise: float = 0.0) -> np.ndarray:
    """Torques with a step wherever a joint turns round."""
    speed = np.cos(T_S[:, None] * SPEEDS)
    return 2.0 * smooth(noise) + np.sign(speed)


def places(count: int, seed: int) -> np.ndarray:
    """Rows that are apart."""
    return 10 + 5 * np.random.default_rng(seed).choice(ROWS // 5 - 10, count, replace=False)


def test_zeros_among_positions_and_spikes_among_torques_are_found_and_nothing_else() -> None:
    q, tau = smooth(1e-5), friction(0.01)
    rows = places(20, 1)
    rows = rows[np.abs(q[rows]).min(axis=1) > 0.02]
    q[rows] = 0.0
    assert np.flatnonzero(find_outliers(q).any(axis=1)).tolist() == sorted(rows)
    rows = places(80, 2)
    joints = rows % 4
    tau[rows, joints] += np.where(rows % 2, 8.0, -8.0)
    wanted = np.zeros(tau.shape, bool)
    wanted[rows, joints] = True
    np.testing.assert_array_equal(find_outliers(tau), wanted)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-2])
def test_friction_where_joints_turn_round_is_no_spike(noise: float) -> None:
    assert not find_outliers(friction(noise)).any()


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.integers(5, 90))
def test_no_step_is_an_outlier_not_even_in_two_stages(
    first: float, second: float, row: int
) -> None:
    x = np.zeros((100, 1))
    x[row] = min(first, second, key=abs) if first * second > 0.0 else 0.0
    x[row + 1 :] = first
    assert not find_outliers(x).any()


def test_a_joint_at_rest_may_flicker_by_a_count() -> None:
    q = smooth()
    count = 2.0 * np.pi / 4096
    q[:, 1] = count * (np.arange(ROWS) % 977 == 0)
    q[:, 2] = count * np.rint(q[:, 2] / count)
    assert not find_outliers(q).any()
    q[5000, 1:3] = 0.7  # which is no count
    assert np.argwhere(find_outliers(q)).tolist() == [[5000, 1], [5000, 2]]


def test_a_signal_that_is_nothing_but_noise_has_none() -> None:
    noise = np.random.default_rng(0).standard_cauchy((ROWS, 1))
    assert np.mean(find_outliers(noise)) <= 0.01
    still = np.zeros((ROWS, 1))
    still[ROWS // 2 :] = noise[: ROWS // 2].clip(-3.0, 3.0)
    assert np.mean(find_outliers(still)) <= 0.01


@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_few_samples(rows: int) -> None:
    assert not find_outliers(np.ones((rows, 2))).any()


def test_what_is_not_a_number_is_left_alone() -> None:
    q = smooth()
    q[100], q[:, 3] = np.nan, np.nan
    q[200, 0] = 5.0
    assert np.argwhere(find_outliers(q)).tolist() == [[200, 0]]


@pytest.mark.parametrize("link", ["import", "mock"])
def test_spikes_of_a_recording_become_holes(tmp_path: Path, link: str) -> None:
    q, tau = smooth(1e-5), friction(0.01)
    clean = q.copy()
    q[[5000, 12_001], 2], tau[9000, 1] = 3.0, 30.0
    columns = {"joint_position_rad": q, "joint_torque_nm": tau}
    if link == "import":
        columns["joint_velocity_rad_s"] = np.full(q.shape, np.nan)
    else:
        columns["joint_velocity_rad_s"] = np.gradient(clean, 1e-3, axis=0)
    path = make_recording(tmp_path / "r.h5", columns, link=link)
    offset = 0 if link == "import" else 2
    for rows_max in (120_000, 4000):  # pieces begin in the middle of things
        found = set()
        for part in read_segments(path, rows_max=rows_max, overlap_rows=100):
            if part.is_in_gap is not None:
                found |= set((np.flatnonzero(part.is_in_gap) + part.rows_before + offset).tolist())
            assert np.abs(part.q_rad).max() < 1.5
            assert np.abs(part.tau_nm).max() < 10.0
        assert {5000, 9000, 12_001} <= found
        # Where velocities are known, the row after a wrong position is not believed either.
        assert found <= {5000, 5001, 9000, 12_001, 12_002}
        assert link == "mock" or len(found) == 3


def test_what_is_identified_is_as_good_with_spikes_as_without(tmp_path: Path) -> None:
    clean = made_recording(tmp_path / "clean.h5")
    other = made_recording(tmp_path / "other.h5", seed=1)
    spiky = made_recording(tmp_path / "spiky.h5")
    random = np.random.default_rng(0)
    with h5py.File(spiky, "r+") as file:
        for name, count in (("joint_position_rad", 6), ("joint_torque_nm", 25)):
            (found,) = (path for path in _datasets(file) if path.endswith(name))
            values = file[found][:]
            rows = 10 + 5 * random.choice(1500, count, replace=False)
            values[rows] = 0.0 if "position" in name else values[rows] + 20.0
            file[found][:] = values
    errors = [
        identify(Request(recordings=(path,), validations=(other,), methods=("uls",)))
        .result.method("uls")
        .validation.moving
        for path in (clean, spiky)
    ]
    # A few thinned-out rows are lost to the gaps; the spikes themselves would cost far more.
    assert errors[1] < 1.1 * errors[0]


def _datasets(file: h5py.File) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
    return names
