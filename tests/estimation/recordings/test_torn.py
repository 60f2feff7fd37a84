"""Replies of two moments: positions are mended, and nothing else is touched."""

from __future__ import annotations

import math

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from estimation.recordings.torn import mended
from estimation.types import FloatArray

TURN = math.tau
LSB_RAD, COUNT_RAD = TURN / 2**24, TURN / 2**12
STEP_RAD = TURN / 2**8
ROWS = 3000
PERIOD_S, LAG_S = 1e-3, 1.59e-3


def measured(speed_rad_s: float, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Time, true position in whole counts, and a motor's velocity late by its filter; it swings."""
    t_s = np.arange(ROWS) * PERIOD_S
    phase = np.random.default_rng(seed).uniform(0.0, TURN, 2)
    angle_rad = speed_rad_s * t_s + 0.02 * speed_rad_s * np.sin(20.0 * t_s + phase[0]) + phase[1]
    late_s = t_s - LAG_S
    velocity_rad_s = speed_rad_s * (1.0 + 0.4 * np.cos(20.0 * late_s + phase[0]))
    return t_s, COUNT_RAD * np.round(angle_rad / COUNT_RAD), velocity_rad_s


def torn(position_rad: FloatArray, output: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """As a board sends them while it rewrites, a quarter of the replies; and which those are."""
    raw = np.round(position_rad / LSB_RAD).astype(np.int64)
    is_torn = np.random.default_rng(seed).random(len(raw)) < 0.25
    is_torn[0] = False
    before = np.concatenate([raw[:1], raw[:-1]])
    mixed = before if output == 1 else (before & ~0xFFFF) | (raw & 0xFFFF)
    sent = np.where(is_torn, mixed, raw)
    return sent * LSB_RAD, sent != raw


@settings(max_examples=examples(40), deadline=None)
@given(
    speed_rad_s=st.one_of(st.floats(0.5, 180.0), st.floats(-180.0, -0.5)),
    seed=st.integers(0, 100),
)
def test_the_second_outputs_position_is_whole_again(speed_rad_s: float, seed: int) -> None:
    t_s, position_rad, velocity_rad_s = measured(speed_rad_s, seed)
    seen_rad, is_wrong = torn(position_rad, 2, seed)
    assert not is_wrong.any() or np.abs(seen_rad - position_rad).max() > 0.9 * STEP_RAD
    found = mended(seen_rad, velocity_rad_s, t_s, step_rad=STEP_RAD, output=2, lag_s=LAG_S)
    assert np.sum(np.abs(found - position_rad) > 2 * LSB_RAD) <= 0.01 * ROWS


@pytest.mark.parametrize("speed_rad_s", [12.0, -50.0, 170.0])
def test_the_first_outputs_position_is_not_late(speed_rad_s: float) -> None:
    t_s, position_rad, velocity_rad_s = measured(speed_rad_s, 1)
    seen_rad, is_wrong = torn(position_rad, 1, 1)
    assert np.mean(is_wrong) > 0.2
    found = mended(seen_rad, velocity_rad_s, t_s, step_rad=STEP_RAD, output=1, lag_s=LAG_S)
    off_rad = np.abs(found - position_rad)[20:-20]
    assert np.mean(off_rad > 2 * COUNT_RAD) < 0.01
    assert np.mean(np.abs(found - position_rad)) < 0.2 * np.mean(np.abs(seen_rad - position_rad))


@pytest.mark.parametrize("output", [1, 2])
@pytest.mark.parametrize("speed_rad_s", [0.0, 0.3, 40.0, -180.0])
def test_sound_positions_stay_as_they_are(output: int, speed_rad_s: float) -> None:
    t_s, position_rad, velocity_rad_s = measured(speed_rad_s, 2)
    position_rad[100:120] = math.nan
    found = mended(position_rad, velocity_rad_s, t_s, step_rad=STEP_RAD, output=output, lag_s=LAG_S)
    np.testing.assert_array_equal(found, position_rad)


@pytest.mark.parametrize("output", [1, 2])
@pytest.mark.parametrize("speed_rad_s", [0.3, 40.0, -180.0])
def test_skipped_periods_tear_nothing(output: int, speed_rad_s: float) -> None:
    is_skipped = np.random.default_rng(0).random(ROWS) < 0.1
    t_s = np.cumsum(1 + is_skipped) * PERIOD_S
    position_rad, velocity_rad_s = speed_rad_s * t_s, np.full(ROWS, speed_rad_s)
    found = mended(position_rad, velocity_rad_s, t_s, step_rad=STEP_RAD, output=output, lag_s=LAG_S)
    np.testing.assert_array_equal(found, position_rad)


def test_without_torn_replies_nothing_is_done() -> None:
    t_s, position_rad, velocity_rad_s = measured(50.0, 3)
    seen_rad, _ = torn(position_rad, 2, 3)
    assert mended(seen_rad, velocity_rad_s, t_s, step_rad=0.0, output=2, lag_s=LAG_S) is seen_rad
