from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from estimation.errors import DatasetError
from estimation.signals.filters import central_difference, low_pass

RATE_HZ = 1000.0
seeds = st.integers(0, 2**32 - 1)


def amplitude_and_delay(values: np.ndarray, frequency_hz: float, rate_hz: float, first: float):
    """Of a sine, from the middle half of its record, whose first sample is at `first` (s)."""
    time = first + np.arange(values.size) / rate_hz
    part = slice(values.size // 4, 3 * values.size // 4)
    phase = 2.0 * np.pi * frequency_hz * time[part]
    (sine, cosine), *_ = np.linalg.lstsq(
        np.column_stack([np.sin(phase), np.cos(phase)]), values[part], rcond=None
    )
    return math.hypot(sine, cosine), math.atan2(cosine, sine) / (2.0 * np.pi * frequency_hz)


@given(st.integers(1, 6), st.floats(20.0, 400.0), st.floats(0.1, 1.2))
def test_low_pass_attenuates_twice_and_does_not_delay(order, cutoff_hz, relative):
    frequency_hz = min(relative * cutoff_hz, 480.0)
    time = np.arange(2000) / RATE_HZ
    sine = np.sin(2.0 * np.pi * frequency_hz * time)
    smooth = low_pass(sine, order=order, cutoff_hz=cutoff_hz, rate_hz=RATE_HZ)
    amplitude, delay_s = amplitude_and_delay(smooth, frequency_hz, RATE_HZ, 0.0)
    # The bilinear transform makes tan(πf/rate) of a frequency.
    warped = math.tan(np.pi * frequency_hz / RATE_HZ) / math.tan(np.pi * cutoff_hz / RATE_HZ)
    assert amplitude == pytest.approx(1.0 / (1.0 + warped ** (2 * order)), rel=1e-5, abs=1e-7)
    assert abs(delay_s) < 1e-6


@given(st.floats(-1e3, 1e3), st.integers(1, 6), st.integers(1, 100))
def test_low_pass_keeps_constants_up_to_the_borders(value, order, spare):
    values = np.full(3 * order + spare, value)
    smooth = low_pass(values, order=order, cutoff_hz=100.0, rate_hz=RATE_HZ)
    np.testing.assert_allclose(smooth, value, rtol=1e-9, atol=1e-12)


def test_what_low_pass_guesses_before_the_record_fades_within_it():
    # A record that begins in full motion: its beginning is a guess, the rest is not.
    time = np.arange(-1000, 1000) / RATE_HZ
    whole = low_pass(np.cos(30.0 * time), order=4, cutoff_hz=100.0, rate_hz=RATE_HZ)
    part = low_pass(np.cos(30.0 * time[1000:]), order=4, cutoff_hz=100.0, rate_hz=RATE_HZ)
    error = np.abs(part - whole[1000:])
    assert error.argmax() < 10
    assert error[50:].max() < 1e-4 * error.max()  # five periods of the cut-off frequency later


@given(seeds)
def test_columns_are_treated_alike(seed):
    values = np.random.default_rng(seed).normal(size=(150, 3))
    for function in (
        lambda x: low_pass(x, order=4, cutoff_hz=100.0, rate_hz=RATE_HZ),
        lambda x: central_difference(x, rate_hz=RATE_HZ),
    ):
        alone = np.column_stack([function(column) for column in values.T])
        np.testing.assert_allclose(function(values), alone, rtol=1e-12, atol=1e-12)


@given(st.lists(st.floats(-10.0, 10.0), min_size=3, max_size=3), st.integers(2, 60))
def test_differences_of_parabolas_are_exact_inside_and_one_sided_at_the_ends(coefficients, rows):
    a, b, c = coefficients
    time = np.arange(rows) / 100.0
    slope = central_difference(a + b * time + c * time**2, rate_hz=100.0)
    truth = b + 2.0 * c * time
    np.testing.assert_allclose(slope[1:-1], truth[1:-1], atol=1e-9)
    np.testing.assert_allclose(slope[0], truth[0] + c / 100.0, atol=1e-9)
    np.testing.assert_allclose(slope[-1], truth[-1] - c / 100.0, atol=1e-9)


@given(st.floats(0.1, 20.0), st.floats(0.0, 6.0), st.sampled_from([200.0, 500.0, 1000.0]))
def test_differences_of_a_sine_stay_within_the_bounds_of_their_order(w, phase, rate_hz):
    time = np.arange(300) / rate_hz
    values, truth = np.sin(w * time + phase), w * np.cos(w * time + phase)
    error = np.abs(central_difference(values, rate_hz=rate_hz) - truth)
    rounding = 1e-15 * rate_hz
    assert error[1:-1].max() <= w**3 / (6.0 * rate_hz**2) + rounding
    assert max(error[0], error[-1]) <= w**2 / (2.0 * rate_hz) + rounding


def test_error_of_differences_falls_with_the_square_of_the_step():
    errors = []
    for rate_hz in (100.0, 200.0, 400.0):
        time = np.arange(0.0, 3.0, 1.0 / rate_hz)
        position = np.exp(np.sin(time))
        velocity = central_difference(position, rate_hz=rate_hz)
        acceleration = central_difference(velocity, rate_hz=rate_hz)
        truth = position * (np.cos(time) ** 2 - np.sin(time))
        errors.append(np.abs(acceleration - truth)[2:-2].max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.05)


def test_outermost_accelerations_are_a_half_and_three_quarters():
    position = 0.5 * (np.arange(20) / RATE_HZ) ** 2
    velocity = central_difference(position, rate_hz=RATE_HZ)
    acceleration = central_difference(velocity, rate_hz=RATE_HZ)
    expected = np.ones(20)
    expected[[0, 1, -2, -1]] = 0.5, 0.75, 0.75, 0.5
    np.testing.assert_allclose(acceleration, expected, rtol=1e-9)


@pytest.mark.parametrize("cutoff_hz", [0.0, -1.0, 500.0, 600.0, math.nan])
def test_cutoff_must_be_below_half_the_rate(cutoff_hz):
    with refused(DatasetError, "bad-cutoff", f"{cutoff_hz:g} Hz", "500 Hz"):
        low_pass(np.zeros(100), order=4, cutoff_hz=cutoff_hz, rate_hz=RATE_HZ)


def test_order_must_be_positive():
    with refused(DatasetError, "bad-order", "0"):
        low_pass(np.zeros(100), order=0, cutoff_hz=10.0, rate_hz=RATE_HZ)


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, math.nan])
def test_rate_must_be_positive(rate_hz):
    with refused(DatasetError, "bad-rate", f"{rate_hz:g} Hz"):
        central_difference(np.zeros(100), rate_hz=rate_hz)


@pytest.mark.parametrize(
    ("function", "limit"),
    [
        (lambda x: low_pass(x, order=4, cutoff_hz=100.0, rate_hz=RATE_HZ), 12),
        (lambda x: central_difference(x, rate_hz=RATE_HZ), 1),
    ],
    ids=["low_pass", "central_difference"],
)
def test_short_or_broken_records_are_refused(function, limit):
    function(np.zeros(limit + 1))
    for values in (np.zeros(limit), np.zeros((limit, 2)), 1.0):
        with refused(DatasetError, "few-rows", limit):
            function(values)
    broken = np.zeros((100, 2))
    broken[17, 1] = broken[30, 0] = math.nan
    with refused(DatasetError, "not-finite", "2 rows", "row 17"):
        function(broken)
