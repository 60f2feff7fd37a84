from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimation.excitation.fourier import FADE_S, FourierTrajectory, FreeCoefficients


def series(f0_hz: float = 0.1, harmonics: int = 5, joints: int = 3) -> FourierTrajectory:
    generator = np.random.default_rng(harmonics)
    free = FreeCoefficients(harmonics)
    coefficients = generator.normal(size=(free.count, joints))
    return free.series(f0_hz, generator.normal(size=joints), coefficients)


def test_the_series_is_the_published_one() -> None:
    """(3.16), term by term."""
    trajectory = series()
    t = 1.7
    expected = trajectory.offset_rad.copy()
    for k in range(1, 6):
        phase = k * 2.0 * np.pi * 0.1 * t
        expected += trajectory.sine_rad[k - 1] * np.sin(phase)
        expected += trajectory.cosine_rad[k - 1] * np.cos(phase)
    assert trajectory.at(np.array([t])).q_rad[0] == pytest.approx(expected, abs=1e-12)


@given(f0_hz=st.floats(0.02, 2.0), harmonics=st.integers(2, 12), t_s=st.floats(0.0, 50.0))
def test_derivatives_are_exact(f0_hz: float, harmonics: int, t_s: float) -> None:
    trajectory = series(f0_hz, harmonics)
    h = 1e-4 / (f0_hz * harmonics)
    before, here, after = (trajectory.at(np.array([t_s + d])) for d in (-h, 0.0, h))
    speed, scale = np.abs(here.dq_rad_s).max(), 2 * np.pi * f0_hz * harmonics
    slope = (after.q_rad - before.q_rad) / (2 * h)
    assert here.dq_rad_s == pytest.approx(slope, rel=1e-4, abs=1e-4 * (speed + scale))
    slope = (after.dq_rad_s - before.dq_rad_s) / (2 * h)
    assert here.ddq_rad_s2 == pytest.approx(slope, rel=1e-4, abs=1e-4 * scale * (speed + scale))


@given(
    f0_hz=st.floats(0.05, 1.0),
    harmonics=st.integers(2, 10),
    periods=st.one_of(st.floats(1.0, 4.0), st.sampled_from([1.0, 2.0, 3.0])),
)
def test_motion_rests_at_both_ends_and_is_smooth_between(
    f0_hz: float, harmonics: int, periods: float
) -> None:
    trajectory = series(f0_hz, harmonics)
    motion = trajectory.sampled(periods / f0_hz)
    speed, acceleration = np.abs(motion.dq_rad_s).max(), np.abs(motion.ddq_rad_s2).max()
    assert len(motion.t_s) == round(1000 * periods / f0_hz) + 1
    for end in (0, -1):
        # The last sample is up to half a millisecond away from the end.
        tolerance = 1e-9 if end == 0 else 1e-3 * 2 * np.pi * f0_hz * harmonics
        assert np.abs(motion.dq_rad_s[end]).max() <= tolerance * speed
        assert np.abs(motion.ddq_rad_s2[end]).max() <= (2 * tolerance + 1e-9) * acceleration
    steps = np.diff(motion.q_rad, axis=0)
    explained = 5e-4 * (motion.dq_rad_s[1:] + motion.dq_rad_s[:-1])
    assert np.abs(steps - explained).max() < 1e-3 * speed * 1e-2 * max(1, f0_hz * harmonics)
    steps = np.diff(motion.dq_rad_s, axis=0)
    explained = 5e-4 * (motion.ddq_rad_s2[1:] + motion.ddq_rad_s2[:-1])
    assert np.abs(steps - explained).max() < 1e-4 * acceleration


def test_whole_periods_repeat_themselves_and_need_no_fade() -> None:
    motion = series().sampled(20.0)
    assert motion.q_rad[:10_000] == pytest.approx(motion.q_rad[10_000:-1], abs=1e-9)
    assert motion.q_rad[-1] == pytest.approx(motion.q_rad[0], abs=1e-12)


def test_a_cut_period_stays_on_its_path_and_is_never_faster() -> None:
    trajectory = series()
    motion = trajectory.sampled(13.0)
    whole = trajectory.at(motion.t_s)
    fading = motion.t_s > 13.0 - FADE_S
    assert motion.q_rad[~fading] == pytest.approx(whole.q_rad[~fading])
    # Half of the fading time is lost; every position is one of the series before that moment.
    path = trajectory.at(np.linspace(12.0, 12.5, 5001)).q_rad
    for q in motion.q_rad[fading][::50]:
        assert np.abs(path - q).sum(axis=1).min() < 1e-3
    assert np.abs(motion.dq_rad_s).max() <= np.abs(whole.dq_rad_s).max()


def test_scaling_keeps_the_centre() -> None:
    trajectory = series()
    t = np.linspace(0.0, 9.0, 50)
    small, large = trajectory.scaled(0.5).at(t), trajectory.at(t)
    offset = trajectory.offset_rad
    assert small.q_rad - offset == pytest.approx(0.5 * (large.q_rad - offset))
