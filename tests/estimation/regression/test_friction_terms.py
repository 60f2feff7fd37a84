from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from estimation.errors import DatasetError
from estimation.regression.friction_terms import ASYMMETRIC, COULOMB_VISCOUS, stribeck_column

speeds = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30).map(np.array)
parameter = st.floats(0.0, 10.0)


def by_hand(v: float, fv: tuple[float, float], fc: tuple[float, float]) -> float:
    if v > 0:
        return fv[0] * v + fc[0]
    if v < 0:
        return fv[1] * v - fc[1]
    return 0.0


@given(speeds, parameter, parameter)
def test_coulomb_and_viscous(v, fv, fc):
    friction = COULOMB_VISCOUS.columns(v) @ [fv, fc]
    np.testing.assert_allclose(friction, [by_hand(x, (fv, fv), (fc, fc)) for x in v], atol=1e-12)


@given(speeds, parameter, parameter, parameter, parameter)
def test_asymmetric(v, fv_plus, fv_minus, fc_plus, fc_minus):
    friction = ASYMMETRIC.columns(v) @ [fv_plus, fv_minus, fc_plus, fc_minus]
    expected = [by_hand(x, (fv_plus, fv_minus), (fc_plus, fc_minus)) for x in v]
    np.testing.assert_allclose(friction, expected, atol=1e-12)
    assert (friction * v >= 0.0).all()  # it only ever brakes


@given(speeds)
def test_asymmetric_columns_sum_up_to_the_symmetric_ones(v):
    columns = ASYMMETRIC.columns(v)
    np.testing.assert_array_equal(
        np.column_stack([columns[:, 0] + columns[:, 1], columns[:, 2] + columns[:, 3]]),
        COULOMB_VISCOUS.columns(v),
    )


@pytest.mark.parametrize("law", [COULOMB_VISCOUS, ASYMMETRIC], ids=lambda law: law.name)
def test_laws_name_their_columns_and_vanish_at_rest(law):
    assert law.columns([1, -2, 0]).shape == (3, len(law.names))
    assert len(set(law.names)) == len(law.names)
    np.testing.assert_array_equal(law.columns([0.0, -0.0]), 0.0)


def test_asymmetric_leaves_no_room_for_an_offset():
    columns = np.column_stack([ASYMMETRIC.columns([-3.0, -1.0, 2.0, 5.0, 7.0]), np.ones(5)])
    assert np.linalg.matrix_rank(columns) == 4


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_stribeck(v, v_s):
    (value,) = stribeck_column([v], v_s)
    (opposite,) = stribeck_column([-v], v_s)
    assert value == -opposite
    expected = math.copysign(math.exp(-((v / v_s) ** 2)), v) if v else 0.0
    assert value == pytest.approx(expected, rel=1e-12)


def test_stribeck_has_37_percent_left_at_its_velocity():
    np.testing.assert_allclose(stribeck_column([0.2, -0.2], 0.2), [math.exp(-1), -math.exp(-1)])


@pytest.mark.parametrize("velocity", [0.0, -0.1, math.nan])
def test_stribeck_velocity_must_be_positive(velocity):
    with refused(DatasetError, "bad-stribeck-velocity", f"{velocity:g}"):
        stribeck_column([1.0], velocity)
