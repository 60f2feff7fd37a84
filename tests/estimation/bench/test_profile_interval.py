"""Intervals of Stribeck friction: honest when whole speeds are off, open where they must be."""

from __future__ import annotations

import numpy as np
import pytest
from acceptance import IS_LONG

from daq.robot.friction import FrictionShape
from estimation.bench.profile_interval import StribeckProfile, profile_stribeck
from estimation.types import FloatArray

B_NMS, F_NM, STATIC_NM, V_S_RAD_S = 2e-3, 0.12, 0.16, 0.05
SLOW_RAD_S = np.array([0.01, 0.02, 0.03, 0.045, 0.06, 0.08])
FAST_RAD_S = np.array([0.12, 0.3, 0.7, 1.2, 2.0, 3.0])
TRUTH = {"stribeck_velocity_rad_s": V_S_RAD_S, "f_static_nm": STATIC_NM}


def design(velocity_rad_s: FloatArray, v_s: float) -> FloatArray:
    shape = FrictionShape(v_s)
    terms = ("viscous", "coulomb", "stribeck")
    return np.column_stack([shape.column(term, velocity_rad_s) for term in terms])


def profile(
    speeds_rad_s: FloatArray,
    *,
    off_nm: float = 0.0,
    sigma_nm: float = 0.0,
    gravity_nm: float | None = None,
    seed: int = 0,
) -> StribeckProfile:
    """Two plateaus in each direction; `off_nm` is what all of a speed have in common."""
    random = np.random.default_rng(seed)
    velocity = np.tile(np.concatenate([speeds_rad_s, -speeds_rad_s]), 2)
    numbers = np.tile(np.arange(len(speeds_rad_s)), 4)
    torque = design(velocity, V_S_RAD_S) @ [B_NMS, F_NM, STATIC_NM - F_NM]
    torque += np.sign(velocity) * random.normal(0.0, off_nm, len(speeds_rad_s))[numbers]
    torque += random.normal(0.0, sigma_nm, len(velocity)) + (gravity_nm or 0.0)

    def design_at(v_s: float) -> FloatArray:
        columns = design(velocity, v_s)
        if gravity_nm is None:
            return columns
        return np.column_stack([columns, np.ones(len(velocity))])

    ends_rad_s = 0.5 * speeds_rad_s[0], 0.5 * speeds_rad_s[-1]
    return profile_stribeck(design_at, torque, velocity, numbers, between_rad_s=ends_rad_s)


@pytest.mark.parametrize(("off_nm", "sigma_nm"), [(0.001, 0.0002), (0.0, 0.002)])
def test_the_truth_is_inside_as_often_as_they_say(off_nm: float, sigma_nm: float) -> None:
    """Whether plateaus scatter on their own, or those of one speed together."""
    seeds = 400 if IS_LONG else 100
    speeds = np.concatenate([SLOW_RAD_S, FAST_RAD_S])
    found = [profile(speeds, off_nm=off_nm, sigma_nm=sigma_nm, seed=seed) for seed in range(seeds)]
    for name, truth in TRUTH.items():
        ends = [one.intervals[name] for one in found]
        assert 0.90 <= np.mean([low <= truth <= high for low, high in ends]) <= 0.99
        assert np.median([high - low for low, high in ends]) < 0.5 * truth
    assert not any(one.is_open for one in found)


def test_one_slow_speed_does_not_tell_both() -> None:
    found = profile(np.array([0.05, *FAST_RAD_S]), off_nm=0.0005, seed=1)
    assert found.is_open
    low, high = found.intervals["stribeck_velocity_rad_s"]
    assert low == pytest.approx(0.025)
    assert V_S_RAD_S < high < 0.1
    low, high = found.intervals["f_static_nm"]
    assert low < STATIC_NM < 2.0 * STATIC_NM < high


def test_as_few_speeds_as_parameters_tell_nothing() -> None:
    found = profile(np.array([0.02, 0.05, 0.5, 1.0]), off_nm=0.0005)
    assert found.is_open
    assert found.intervals["stribeck_velocity_rad_s"] == pytest.approx((0.01, 0.5))


def test_gravity_of_a_mounted_joint_changes_nothing() -> None:
    speeds = np.concatenate([SLOW_RAD_S, FAST_RAD_S])
    plain, mounted = (profile(speeds, off_nm=0.001, gravity_nm=nm) for nm in (None, 0.5))
    for name, ends in plain.intervals.items():
        assert mounted.intervals[name] == pytest.approx(ends, rel=1e-6)


def test_without_noise_it_is_where_it_is() -> None:
    found = profile(np.concatenate([SLOW_RAD_S, FAST_RAD_S]))
    for name, truth in TRUTH.items():
        assert found.intervals[name] == pytest.approx((truth, truth), rel=0.03)
