import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw_mocks.plants.actuator import Actuator, make_actuators
from hw_mocks.plants.effects import PRESETS, Effects

STEP_S = 250e-6
TURN = np.linspace(0.0, math.tau, 7200, endpoint=False)


@pytest.fixture(scope="module")
def motor(bench):
    return bench.motors["mn4006"]


def make(motor, seed=0, **effects):
    return Actuator(motor, Effects(**effects), np.random.default_rng(seed), step_s=STEP_S)


def test_a_perfect_motor_is_its_torque_constant(motor):
    actuator = make(motor)
    for iq_a in (-16.0, -0.3, 0.0, 2.0):
        assert actuator.torque_nm(iq_a, 1.234, 56.0) == motor.torque_constant_nm_per_a * iq_a


def test_torque_constant_has_dropped_by_a_fifth_at_the_highest_current(motor):
    actuator = make(motor, torque_constant_drop=0.20)
    for iq_a in (motor.current_max_a, -motor.current_max_a):
        constant = actuator.torque_nm(iq_a, 0.0, 0.0) / iq_a
        assert constant == pytest.approx(0.8 * motor.torque_constant_nm_per_a, rel=1e-12)
    small = actuator.torque_nm(0.1, 0.0, 0.0) / 0.1
    assert small == pytest.approx(motor.torque_constant_nm_per_a, rel=1e-4)


@given(drop=st.floats(0.0, 0.9), low=st.floats(0.0, 50.0), more=st.floats(0.01, 50.0))
def test_more_current_is_never_less_torque(motor, drop, low, more):
    actuator = make(motor, torque_constant_drop=drop)
    assert actuator.torque_nm(low + more, 0.0, 0.0) > actuator.torque_nm(low, 0.0, 0.0)


def test_cogging_has_its_amplitude_its_period_and_no_mean(motor):
    actuator = make(motor, cogging_nm=1e-3)
    torque = np.array([actuator.torque_nm(0.0, angle, 0.0) for angle in TURN])
    spectrum = np.abs(np.fft.rfft(torque)) * 2 / len(TURN)
    assert spectrum.argmax() == 6 * motor.pole_pairs
    assert spectrum.max() == pytest.approx(1e-3, rel=1e-9)
    assert np.delete(spectrum, spectrum.argmax()).max() < 1e-15


def test_ripple_is_relative_to_the_torque(motor):
    actuator = make(motor, torque_ripple=0.02)
    torque = np.array([actuator.torque_nm(4.0, angle, 0.0) for angle in TURN])
    assert torque.mean() == pytest.approx(4.0 * motor.torque_constant_nm_per_a, rel=1e-12)
    assert np.ptp(torque) / 2 / torque.mean() == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize("velocity_rad_s", [0.0, 3.0, -150.0, 349.0, 700.0])
def test_torque_is_the_mean_over_the_step(motor, velocity_rad_s):
    actuator = make(motor, cogging_nm=1e-3, torque_ripple=0.02)
    substeps = (np.arange(2000) + 0.5) / 2000 * STEP_S
    mean = np.mean([actuator.torque_nm(2.0, 0.7 + velocity_rad_s * t, 0.0) for t in substeps])
    assert actuator.torque_nm(2.0, 0.7, velocity_rad_s) == pytest.approx(mean, abs=1e-9)


def test_phases_are_seeded_and_each_motor_has_its_own(arm):
    def torques(seed):
        generator = np.random.default_rng(seed)
        actuators = make_actuators(arm, PRESETS["default"], generator, step_s=STEP_S)
        return [actuator.torque_nm(0.0, 0.0, 0.0) for actuator in actuators]

    assert torques(1) == torques(1)
    assert len({*torques(1), *torques(2)}) == 8
