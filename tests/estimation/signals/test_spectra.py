from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy import signal

from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.signals.filters import derivative, second_difference
from estimation.signals.spectra import choose_cutoff_hz, derivative_fft, low_pass_fft, quiet_end_hz
from estimation.signals.velocity_choice import Spectra

RATE_HZ = 1000.0
seeds = st.integers(0, 2**32 - 1)


def fourier(
    t_s: np.ndarray, *, seed: int, f0_hz: float = 0.1, harmonics: int = 5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angle, velocity and acceleration of a Fourier trajectory."""
    random = np.random.default_rng(seed)
    k = np.arange(1, harmonics + 1)[:, None]
    a, b = random.normal(size=(2, harmonics, 1)) / k
    omega = 2.0 * np.pi * f0_hz * k
    sine, cosine = np.sin(omega * t_s), np.cos(omega * t_s)
    return (
        (a * sine + b * cosine).sum(0),
        (omega * (a * cosine - b * sine)).sum(0),
        (-(omega**2) * (a * sine + b * cosine)).sum(0),
    )


# --- the rectangular window -----------------------------------------------------------------------


@given(seeds, st.integers(9_000, 17_000), st.floats(-5.0, 5.0))
def test_any_other_record_is_right_away_from_its_borders(seed, rows, slope):
    t_s = np.arange(rows) / RATE_HZ
    q, dq, _ = fourier(t_s, seed=seed)
    q, dq, inner = q + slope * t_s, dq + slope, slice(700, -700)
    how = {"rate_hz": RATE_HZ, "cutoff_hz": 15.0}
    vibration = 0.1 * np.sin(2.0 * np.pi * 40.0 * t_s)
    assert np.abs(low_pass_fft(q, **how) - q)[inner].max() < 1e-4
    assert np.abs(low_pass_fft(q + vibration, **how) - q)[inner].max() < 1e-2
    assert np.abs(derivative_fft(q, **how) - dq)[inner].max() < 5e-3


def test_a_line_stays_what_it_is_up_to_its_ends():
    line = np.column_stack([np.linspace(1.0, 5.0, 500), np.full(500, 3.0)])
    how = {"rate_hz": RATE_HZ, "cutoff_hz": 20.0}
    np.testing.assert_allclose(low_pass_fft(line, **how), line, atol=1e-12)
    slope = np.tile([4.0 / 0.499, 0.0], (500, 1))
    np.testing.assert_allclose(derivative_fft(line, **how), slope, atol=1e-9)


def test_a_bin_at_the_cut_off_stays_and_the_next_one_goes():
    """Whole periods between two zeros are repeated as they are: there the filter is exact."""
    t_s = np.arange(1001) / RATE_HZ
    at, above = np.sin(2.0 * np.pi * 20.0 * t_s), np.sin(2.0 * np.pi * 21.0 * t_s)
    slope = 40.0 * np.pi * np.cos(2.0 * np.pi * 20.0 * t_s)
    how = {"rate_hz": RATE_HZ, "cutoff_hz": 20.0}
    np.testing.assert_allclose(low_pass_fft(at + above, **how), at, atol=1e-12)
    np.testing.assert_allclose(derivative_fft(at + above, **how), slope, atol=1e-9)


# --- differences and periods ----------------------------------------------------------------------


def test_differences_have_the_errors_that_are_stated():
    t_s = np.arange(2000) / RATE_HZ
    for frequency_hz in (30.0, 100.0):
        omega = 2.0 * np.pi * frequency_hz
        sine, inner = np.sin(omega * t_s), slice(3, -3)
        lost = (derivative(sine, rate_hz=RATE_HZ) / omega - np.cos(omega * t_s))[inner]
        assert np.abs(lost).max() == pytest.approx((omega / RATE_HZ) ** 6 / 140.0, rel=0.2)
        bend = second_difference(sine, rate_hz=RATE_HZ) / omega**2 + sine
        assert np.abs(bend[1:-1]).max() == pytest.approx((omega / RATE_HZ) ** 2 / 12.0, rel=0.1)


# --- bandwidth and cut-off ------------------------------------------------------------------------


def bandwidth_hz(values: np.ndarray, rate_hz: float) -> float:
    q_rad = values.reshape(len(values), -1)
    t_s = np.arange(len(q_rad)) / rate_hz
    segment = Segment(
        source=Path("made"),
        joint_names=("one",),
        period_s=1.0 / rate_hz,
        t_s=t_s,
        q_rad=q_rad,
        tau_nm=np.zeros_like(q_rad),
    )
    return max(Spectra([segment]).bandwidths_hz())


@given(seeds, st.sampled_from([(0.1, 5), (0.2, 10), (0.5, 20)]), st.floats(0.0, 1e-3))
def test_the_bandwidth_is_that_of_the_motion_whatever_the_noise(seed, shape, noise):
    f0_hz, harmonics = shape
    t_s = np.arange(17_345) / RATE_HZ
    q, *_ = fourier(t_s, seed=seed, f0_hz=f0_hz, harmonics=harmonics)
    q += np.random.default_rng(seed).normal(0.0, noise, q.size)
    count = 2.0 * np.pi / 4096 / 30
    found_hz = bandwidth_hz(np.round(q / count) * count, RATE_HZ)
    assert 0.4 * f0_hz * harmonics <= found_hz <= f0_hz * harmonics + 0.5


@given(seeds, st.sampled_from([50.0, 100.0, 249.0]), st.floats(1e-5, 1e-3))
def test_a_line_far_above_the_motion_is_none_of_it(seed, line_hz, size):
    t_s = np.arange(20_000) / RATE_HZ
    q, *_ = fourier(t_s, seed=seed)
    q += size * np.sin(2.0 * np.pi * line_hz * t_s)
    q += np.random.default_rng(seed).normal(0.0, 1e-6, q.size)
    assert bandwidth_hz(q, RATE_HZ) <= 1.0


def test_noise_alone_has_no_bandwidth_and_rest_neither():
    noise = np.random.default_rng(0).normal(size=(40_000, 3))
    assert bandwidth_hz(noise, RATE_HZ) == 0.0
    assert bandwidth_hz(np.zeros(40_000), RATE_HZ) == 0.0


@given(st.floats(0.0, 1e4), st.floats(10.0, 1e5))
def test_the_cut_off_keeps_its_rule(content_hz, rate_hz):
    cutoff_hz = choose_cutoff_hz(content_hz, rate_hz)
    assert cutoff_hz <= 0.2 * rate_hz
    if cutoff_hz < 0.2 * rate_hz:
        assert cutoff_hz >= max(15.0, 2.0 * content_hz)
        assert cutoff_hz <= max(30.0, 2.0 * content_hz)


@given(st.floats(0.0, 1e3), st.floats(10.0, 1e5), st.floats(0.0, 1e5))
def test_noise_lowers_the_cut_off_but_never_into_the_motion(content_hz, rate_hz, quiet_hz):
    without, with_noise = (
        choose_cutoff_hz(content_hz, rate_hz, *args) for args in ((), (quiet_hz,))
    )
    assert with_noise <= without
    assert with_noise >= min(without, max(4.0, 3.0 * content_hz))
    if quiet_hz >= without:
        assert with_noise == without


@given(st.floats(1e-7, 1e-3), seeds)
def test_the_quiet_band_holds_the_noise_that_it_says(noise, seed):
    t_s = np.arange(40_000) / RATE_HZ
    q, _, bend = fourier(t_s, seed=seed, f0_hz=0.1, harmonics=5)
    noisy = q + np.random.default_rng(seed).normal(0.0, noise, q.size)
    second = (noisy[2:] - 2.0 * noisy[1:-1] + noisy[:-2]) * RATE_HZ**2
    frequency_hz, power = signal.welch(second, RATE_HZ, nperseg=4000, detrend=False)
    found_hz = quiet_end_hz(frequency_hz, power, RATE_HZ, 1.0)
    density = noise**2 / (0.5 * RATE_HZ)
    share = (2.0 * np.pi) ** 4 * density * found_hz**5 / 5.0 / np.mean(bend**2)
    assert 1e-4 < share < 4e-4


@pytest.mark.parametrize(
    ("call", "code", "values"),
    [
        (lambda x: low_pass_fft(x, cutoff_hz=500.0, rate_hz=RATE_HZ), "bad-cutoff", ("500 Hz",)),
        (lambda x: low_pass_fft(x, cutoff_hz=0.0, rate_hz=RATE_HZ), "bad-cutoff", ("0 Hz",)),
        (lambda x: derivative_fft(x, cutoff_hz=1.0, rate_hz=0.0), "bad-cutoff", ("0 Hz",)),
        (lambda x: low_pass_fft(x[:2], cutoff_hz=1.0, rate_hz=RATE_HZ), "few-rows", ("2 rows",)),
        (
            lambda x: derivative_fft(x * np.nan, cutoff_hz=0.1, rate_hz=1.0),
            "not-finite",
            ("row 0",),
        ),
        (lambda x: derivative(x, rate_hz=-1.0), "bad-rate", ("-1 Hz",)),
    ],
)
def test_what_cannot_be_is_refused(call, code, values):
    with refused(DatasetError, code, *values):
        call(np.arange(100.0))
