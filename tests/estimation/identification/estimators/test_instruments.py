import dataclasses

import numpy as np
import pytest
from identification_examples import (
    closed_loop,
    example,
    factors_of,
    make_problem,
    model_of,
    recorded,
    true_theta,
)
from refusals import refused

from estimation.errors import DatasetError, EstimationError
from estimation.identification.estimators.instruments import estimate_iv, make_instruments
from estimation.identification.estimators.linear import estimate_uls, estimate_wls
from estimation.signals.preparation import PreparationSettings, prepare

pytestmark = pytest.mark.chain

SETTINGS = PreparationSettings(
    cutoff_hz=20.0, decimation=10, trim_s=0.5, velocity="measured", exclude_slow_rad_s=0.05
)


def noisy(seed=0, **changes):
    segment = recorded(*closed_loop(), speed_noise_rad_s=0.3, torque_noise_nm=0.05, seed=seed)
    return dataclasses.replace(segment, **changes)


def problem_of(segment):
    regressor, _ = model_of()
    problem = make_problem(prepare(segment, SETTINGS, regressor.switching))
    instruments = make_instruments(regressor, SETTINGS, [segment])
    return dataclasses.replace(problem, instruments=instruments)


def distance_percent(beta):
    """From the true torques, along the motion without noise."""
    regressor, base = model_of()
    clean = factors_of([prepare(recorded(*closed_loop()), SETTINGS, regressor.switching)])
    factor, truth = clean.total()[:, : base.rank], base.of(true_theta())
    return 100.0 * np.linalg.norm(factor @ (beta - truth)) / np.linalg.norm(factor @ truth)


def test_noise_in_the_motion_biases_least_squares_but_not_instruments():
    problem = problem_of(noisy())
    found = estimate_iv(problem)
    errors = [distance_percent(f(problem).beta) for f in (estimate_uls, estimate_wls)]
    print("uls, wls, iv:", *errors, distance_percent(found.beta), found.notes)
    assert min(errors) > 5.0
    assert distance_percent(found.beta) < 1.0
    # The bias takes from inertias: noise in accelerations looks like motion without torque.
    truth = problem.base.of(true_theta())
    row = problem.base.independent.tolist().index(problem.base.symbols.index("Izz1"))
    assert estimate_uls(problem).beta[row] < 0.5 * truth[row]
    assert found.beta[row] == pytest.approx(truth[row], rel=0.05)
    assert (
        problem.factors.error_percent(found.beta)[0]
        >= (problem.factors.error_percent(estimate_uls(problem).beta)[0])
    )


def test_the_reference_serves_where_gains_are_not_known():
    problem = problem_of(noisy(kp_a_per_rad=None))
    found = estimate_iv(problem)
    assert problem.instruments is not None
    assert not problem.instruments.is_simulated
    assert len(found.notes) == 1
    assert distance_percent(found.beta) < 1.0


def test_without_noise_instruments_are_least_squares():
    problem = problem_of(recorded(*closed_loop()))
    assert distance_percent(estimate_iv(problem).beta) < 0.3


def test_imported_data_have_no_instruments():
    with refused(EstimationError, "no-reference"):
        estimate_iv(example())
    assert problem_of(noisy(reference_position_rad=None)).instruments is None
    gone = np.full_like(noisy().q_rad, np.nan)
    assert problem_of(noisy(reference_velocity_rad_s=gone)).instruments is None


def test_samples_may_be_fewer_than_instruments():
    problem = problem_of(noisy(kp_a_per_rad=None))
    half = next(problem.samples()).select(slice(100, 540))
    fewer = dataclasses.replace(problem, samples=lambda: iter([half]))
    assert distance_percent(estimate_iv(fewer).beta) < 3.0


def test_samples_of_another_recording_are_refused():
    problem = problem_of(noisy(kp_a_per_rad=None))
    part = next(problem.samples())
    other = dataclasses.replace(part, t_s=part.t_s + 1e-4)
    with refused(DatasetError, "no-instruments"):
        estimate_iv(dataclasses.replace(problem, samples=lambda: iter([other])))
