import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_examples import fourier_motion, laas4, model_of

from estimation.model.base import condition_numbers, find_base
from estimation.model.parameters import choose_parameters
from estimation.model.regressor import Regressor

PUBLISHED_TERMS = ("viscous", "coulomb")


@pytest.mark.parametrize(("terms", "rank", "count"), [(PUBLISHED_TERMS, 30, 48), (None, 32, 52)])
def test_ranks_of_the_arm_are_the_published_ones(terms, rank, count):
    regressor, base = model_of(terms)
    assert (base.rank, len(regressor.parameters)) == (rank, count)
    assert base.gap > 1e6


@pytest.mark.parametrize("terms", [PUBLISHED_TERMS, None])
def test_the_rank_does_not_depend_on_what_was_drawn(terms):
    regressor, base = model_of(terms)
    for seed in range(1, 4):
        other = find_base(regressor, seed=seed)
        np.testing.assert_array_equal(other.independent, base.independent)
        np.testing.assert_allclose(other.mapping, base.mapping, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_base_parameters_predict_the_same_torques(seed):
    regressor, base = model_of()
    generator = np.random.default_rng(seed)
    theta = generator.normal(size=len(regressor.parameters))
    motion = [generator.uniform(-size, size, (5, 4)) for size in (np.pi, 3.0, 20.0)]
    phi = regressor(*motion)
    torque = phi @ theta
    np.testing.assert_allclose(
        base.columns(phi) @ base.of(theta), torque, rtol=0, atol=1e-9 * np.abs(torque).max()
    )
    near = generator.normal(size=len(theta))
    for start in (None, near):
        same = base.least_theta(base.of(theta), near=start)
        np.testing.assert_allclose(base.of(same), base.of(theta), atol=1e-9)


def test_least_theta_changes_only_what_it_must():
    _, base = model_of()
    theta = np.random.default_rng(0).normal(size=52)
    np.testing.assert_allclose(base.least_theta(base.of(theta), near=theta), theta, atol=1e-12)


def test_what_no_motion_tells_is_named():
    _, base = model_of()
    lost = {base.symbols[index] for index in base.lost}
    # Joint 1 turns about the vertical: nothing but its inertia about that axis counts.
    assert {"m1", "mcx1", "mcy1", "mcz1", "Ixx1", "Ixy1", "Iyy1"} <= lost
    assert "Izz1" not in lost


def test_expressions_can_be_read():
    _, base = model_of()
    names = [base.symbols[index] for index in base.independent]
    text = base.expression(names.index("Izz1"))
    assert text.startswith("Izz1 ")
    assert "+ Ia1" in text
    assert base.expression(names.index("fv2")) == "fv2"


def test_condition_numbers():
    matrix = np.diag([1.0, 10.0])
    assert condition_numbers(matrix) == (pytest.approx(10.0), pytest.approx(1.0))
    assert condition_numbers(np.diag([1.0, 0.0])) == (np.inf, np.inf)
    regressor, base = model_of()
    motion = fourier_motion(0, 10.0)
    phi = regressor(motion.q_rad, motion.dq_rad_s, motion.ddq_rad_s2)
    plain, scaled = condition_numbers(base.columns(phi).reshape(-1, base.rank))
    assert 1.0 < scaled < plain < 1e3


def test_without_drive_inertia_columns_the_first_rotor_is_in_izz1():
    base = find_base(Regressor(laas4(), choose_parameters(laas4(), ("drive_inertia",))))
    row = base.independent.tolist().index(base.symbols.index("Izz1"))
    assert base.mapping[row, base.symbols.index("Ia1")] == pytest.approx(1.0)
