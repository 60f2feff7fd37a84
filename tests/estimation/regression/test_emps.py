"""A real bench, published with its results ([EMPS 2019]).

The recordings are not part of the project; ARMATURE_DATA names the folder that holds them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from public_data import data_folder

from estimation.regression.friction_terms import ASYMMETRIC, COULOMB_VISCOUS, LinearFriction
from estimation.regression.least_squares import (
    LinearFit,
    block_numbers,
    bootstrap_blocks,
    fit_linear,
    relative_error_percent,
)
from estimation.signals.filters import central_difference, decimate, low_pass

RATE_HZ = 1000.0
DECIMATION = 10
DROPPED = 49

PUBLISHED = [95.1089, 203.5034, 20.3935, -3.1648]  # M (kg), Fv (N·s/m), Fc (N), offset (N)
PUBLISHED_SIGMA = [0.1085, 1.146, 0.1012, 0.0444]


@pytest.fixture(scope="module")
def folder() -> Path:
    return data_folder("emps")


def rows(
    path: Path, law: LinearFriction, *, offset: bool, dropped_at_the_end: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    record = scipy.io.loadmat(path)
    position = low_pass(record["qm"].ravel(), order=4, cutoff_hz=100.0, rate_hz=RATE_HZ)
    force = record["gtau"].item() * record["vir"].ravel()
    velocity = central_difference(position, rate_hz=RATE_HZ)
    acceleration = central_difference(velocity, rate_hz=RATE_HZ)
    columns = [acceleration, law.columns(velocity)]
    if offset:
        columns.append(np.ones_like(force))
    used = slice(DROPPED, force.size - dropped_at_the_end)
    return (
        decimate(np.column_stack(columns)[used], DECIMATION),
        decimate(force[used], DECIMATION),
    )


def fit_and_cross_test(folder: Path, law: LinearFriction, **how) -> tuple[LinearFit, float, float]:
    regressor, force = rows(folder / "DATA_EMPS.mat", law, **how)
    fit = fit_linear(regressor, force)
    other_regressor, other_force = rows(folder / "DATA_EMPS_PULSES.mat", law, **how)
    return (
        fit,
        relative_error_percent(force, regressor @ fit.parameters),
        relative_error_percent(other_force, other_regressor @ fit.parameters),
    )


def test_published_parameters_and_errors_come_out_to_the_last_digit(folder):
    fit, error, cross_error = fit_and_cross_test(folder, COULOMB_VISCOUS, offset=True)
    np.testing.assert_allclose(fit.parameters, PUBLISHED, atol=1e-4)
    np.testing.assert_allclose(fit.sigma, PUBLISHED_SIGMA, rtol=2e-3)
    assert fit.condition == pytest.approx(25.99, abs=0.005)
    assert error == pytest.approx(4.0834, abs=1e-4)
    assert cross_error == pytest.approx(5.9824, abs=1e-4)


def test_without_the_last_samples_either_the_border_costs_nothing(folder):
    # The publication keeps the end of the record, where the differences lack neighbours.
    fit, error, cross_error = fit_and_cross_test(
        folder, COULOMB_VISCOUS, offset=True, dropped_at_the_end=DROPPED
    )
    np.testing.assert_allclose(fit.parameters, PUBLISHED, rtol=0.005)
    assert 4.03 < error < 4.05
    assert 5.94 < cross_error < 5.96


def test_friction_that_differs_between_directions_explains_more(folder):
    fit, error, cross_error = fit_and_cross_test(folder, ASYMMETRIC, offset=False)
    assert error <= 3.2
    assert cross_error <= 5.4
    assert fit.parameters[0] == pytest.approx(PUBLISHED[0], rel=0.005)
    assert (fit.parameters > 0.0).all()


def test_blocks_of_a_second_show_how_optimistic_the_published_sigma_are(folder):
    regressor, force = rows(folder / "DATA_EMPS.mat", COULOMB_VISCOUS, offset=True)
    fit = fit_linear(regressor, force)
    replicates = bootstrap_blocks(
        regressor,
        force,
        block_numbers(force.size, round(RATE_HZ / DECIMATION)),
        replicates=2000,
        generator=np.random.default_rng(2019),
    )
    wider = replicates.std(axis=0, ddof=1) / fit.sigma
    # Over 20 seeds: 1.80–1.93, 6.13–6.42, 4.56–4.80, 5.11–5.43.
    np.testing.assert_allclose(wider, [2.1, 6.1, 4.7, 5.3], rtol=0.2)
    # Why that is so: what is left of one row is mostly left of the next, too.
    left = fit.residuals
    assert left[1:] @ left[:-1] > 0.6 * (left @ left)
