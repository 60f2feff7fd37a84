from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_examples import fourier_motion, prepared
from refusals import refused

from estimation.errors import DatasetError
from estimation.excitation.fourier import FreeCoefficients, SampledMotion
from estimation.signals.preparation import Prepared
from estimation.signals.repetition import average_repetitions, find_period_s


def of_angles(q_rad: np.ndarray, period_s: float = 0.01) -> Prepared:
    t_s = period_s * np.arange(len(q_rad))
    return prepared(SampledMotion(t_s, q_rad, q_rad, q_rad), np.zeros_like(q_rad))


def series(f0_hz: float, duration_s: float, seed: int, rate_hz: float = 100.0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    free = FreeCoefficients(5)
    made = free.series(f0_hz, np.zeros(3), generator.normal(size=(free.count, 3)))
    q_rad: np.ndarray = made.at(np.arange(round(duration_s * rate_hz)) / rate_hz).q_rad
    return q_rad


@settings(max_examples=examples(80))
@given(
    period_s=st.floats(3.0, 12.0),
    times=st.floats(1.8, 4.0),
    seed=st.integers(0, 100),
    noise_rad=st.sampled_from([0.0, 1e-3]),
)
def test_the_period_of_a_motion_is_found(
    period_s: float, times: float, seed: int, noise_rad: float
) -> None:
    q_rad = series(1.0 / period_s, times * period_s, seed)
    q_rad += noise_rad * np.random.default_rng(seed).standard_normal(q_rad.shape)
    assert find_period_s(of_angles(q_rad)) == pytest.approx(period_s, abs=0.02)


@pytest.mark.parametrize("rate_hz", [50.0, 100.0, 1000.0])
def test_the_rate_does_not_matter(rate_hz: float) -> None:
    found = of_angles(series(0.1, 22.0, 1, rate_hz), 1.0 / rate_hz)
    assert find_period_s(found) == pytest.approx(10.0, abs=1.5 / rate_hz)


def test_what_comes_before_and_after_does_not_matter() -> None:
    q_rad = series(0.1, 25.0, 2)
    around = np.concatenate([np.repeat(q_rad[:1], 150, 0), q_rad, np.repeat(q_rad[-1:], 150, 0)])
    assert find_period_s(of_angles(around)) == pytest.approx(10.0, abs=0.02)


def test_a_joint_that_stands_still_does_not_matter() -> None:
    motion = fourier_motion(moving=(1, 2))
    found = find_period_s(prepared(motion, np.zeros_like(motion.q_rad)))
    assert found == pytest.approx(10.0, abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_motion_that_came_once_has_no_period(seed: int) -> None:
    assert find_period_s(of_angles(series(0.1, 10.0, seed))) is None
    assert find_period_s(of_angles(series(0.05, 15.0, seed))) is None


def test_a_motion_that_never_repeats_itself_has_no_period() -> None:
    t_s = np.arange(3000)[:, np.newaxis] / 100.0
    wandering = np.sin(t_s * [0.7, 1.1, 0.5]) + np.sin(t_s * np.sqrt([3.0, 2.0, 5.0]))
    assert find_period_s(of_angles(wandering)) is None
    assert find_period_s(of_angles(np.cumsum(np.ones((2000, 2)), axis=0))) is None


@pytest.mark.parametrize("rows", [2, 5, 100, 2000])
def test_too_little_and_standing_still(rows: int) -> None:
    assert find_period_s(of_angles(np.zeros((rows, 2)))) is None
    assert find_period_s(of_angles(series(0.1, 0.01 * rows, 0)[: min(rows, 15)])) is None


@pytest.mark.parametrize("seconds", [30.5, 45.0])
def test_a_repeated_motion_is_averaged(seconds: float) -> None:
    q_rad = series(0.1, seconds, 4)
    whole = of_angles(np.concatenate([np.repeat(q_rad[:1] + 1.0, 150, 0), q_rad]))
    noise = np.random.default_rng(0).standard_normal(whole.tau_nm.shape)
    average = average_repetitions(dataclasses.replace(whole, tau_nm=noise))
    periods = int(seconds // 10.0)
    assert average.periods == periods
    assert len(average.prepared) == 1000
    assert average.prepared.tau_nm.std() == pytest.approx(periods**-0.5, rel=0.05)
    first = round(average.prepared.t_s[0] / 0.01) - 150
    np.testing.assert_allclose(average.prepared.q_rad, q_rad[first : first + 1000], atol=1e-9)


def test_what_came_less_than_twice_is_not_averaged() -> None:
    with refused(DatasetError, "less-than-two-periods", "10 s", "19 s", "--duration"):
        average_repetitions(of_angles(series(0.1, 19.0, 4)))
    with refused(DatasetError, "no-repetition"):
        average_repetitions(of_angles(series(0.1, 9.0, 4)))
