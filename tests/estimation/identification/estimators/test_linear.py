import dataclasses

import numpy as np
import pytest
from identification_examples import (
    coloured,
    example,
    fourier_motion,
    make_problem,
    model_of,
    prepared,
    simulated,
    true_theta,
)
from refusals import refused

from estimation.errors import DatasetError
from estimation.identification.data.factors import triangular
from estimation.identification.data.reduction import design
from estimation.identification.estimators.linear import (
    estimate_irls,
    estimate_tls,
    estimate_uls,
    estimate_wls,
)

ALL = (estimate_uls, estimate_wls, estimate_irls, estimate_tls)


def truth():
    return model_of()[1].of(true_theta())


def distance(problem, beta):
    """How far the torques of β are from the true ones, relatively."""
    factor = problem.factors.total()[:, : problem.base.rank]
    return float(np.linalg.norm(factor @ (beta - truth())) / np.linalg.norm(factor @ truth()))


@pytest.mark.parametrize("estimate", ALL)
def test_without_noise_the_truth_is_found(estimate):
    problem = make_problem(simulated(true_theta(), fourier_motion()))
    np.testing.assert_allclose(estimate(problem).beta, truth(), atol=1e-6)


@pytest.mark.parametrize("estimate", ALL)
def test_none_is_below_the_floor_and_all_are_near_the_truth(estimate):
    problem = example()
    floor = problem.factors.error_percent(estimate_uls(problem).beta)[0]
    beta = estimate(problem).beta
    assert problem.factors.error_percent(beta)[0] >= floor * (1.0 - 1e-9)
    assert distance(problem, beta) < 0.005


def test_weights_help_where_one_joint_is_noisy():
    motion = fourier_motion()
    errors: dict[str, list[float]] = {"uls": [], "wls": []}
    for seed in range(5):
        part = simulated(true_theta(), motion)
        noise = coloured(np.random.default_rng(seed), part.tau_nm.shape)
        part = prepared(motion, part.tau_nm + noise * [2.0, 0.01, 0.01, 0.01])
        problem = make_problem(part)
        for estimate in (estimate_uls, estimate_wls):
            found = estimate(problem)
            errors[found.method].append(distance(problem, found.beta))
    assert np.mean(errors["wls"]) < 0.7 * np.mean(errors["uls"])


def test_a_joint_without_any_error_gets_no_infinite_weight():
    motion = fourier_motion()
    part = simulated(true_theta(), motion)
    noise = np.random.default_rng(0).standard_normal(part.tau_nm.shape) * [0.1, 0.1, 0.1, 0.0]
    found = estimate_wls(make_problem(prepared(motion, part.tau_nm + noise)))
    assert np.isfinite(found.beta).all()


def test_robust_weights_ignore_outliers():
    motion = fourier_motion()
    part = simulated(true_theta(), motion, noise_nm=0.02)
    generator = np.random.default_rng(3)
    tau = part.tau_nm + 10.0 * (generator.random(part.tau_nm.shape) < 0.02)
    problem = make_problem(prepared(motion, tau))
    plain, robust = estimate_uls(problem), estimate_irls(problem)
    assert distance(problem, robust.beta) < 0.2 * distance(problem, plain.beta)
    assert "count less" in robust.notes[0]


def with_column_errors(motion, relative, seed):
    """Errors in every column of [Φ₁ τ], alike relative to its length, in place of noise in τ."""
    problem = make_problem(simulated(true_theta(), motion))
    (part,) = problem.samples()
    columns = design(problem.regressor, problem.base, part, slice(None))
    sizes = np.sqrt(np.mean(columns**2, axis=(0, 1)))
    errors = np.random.default_rng(seed).standard_normal(columns.shape)
    columns = columns + relative * sizes * errors
    blocks = np.stack(
        [
            np.stack([triangular(block[:, joint]) for joint in range(4)])
            for block in np.split(columns, problem.factors.block_count)
        ]
    )
    return dataclasses.replace(problem, factors=dataclasses.replace(problem.factors, blocks=blocks))


def test_total_least_squares_is_for_errors_in_all_columns_alike():
    clean = make_problem(simulated(true_theta(), fourier_motion()))
    for seed in range(5):
        problem = with_column_errors(fourier_motion(seed), 0.1, seed)
        plain, total = (
            distance(clean, estimate(problem).beta) for estimate in (estimate_uls, estimate_tls)
        )
        assert total < 0.55 * plain


def test_noise_in_the_motion_alone_is_not_what_total_least_squares_is_for():
    clean = make_problem(simulated(true_theta(), fourier_motion()))
    errors: dict[str, list[float]] = {"uls": [], "wls": [], "tls": []}
    for seed in range(5):
        part = simulated(true_theta(), fourier_motion(seed), noise_nm=0.01, seed=seed)
        noise = np.random.default_rng(seed).standard_normal(part.tau_nm.shape)
        problem = make_problem(dataclasses.replace(part, ddq_rad_s2=part.ddq_rad_s2 + 2.0 * noise))
        for estimate in (estimate_uls, estimate_wls, estimate_tls):
            found = estimate(problem)
            errors[found.method].append(distance(clean, found.beta))
    means = {name: np.mean(values) for name, values in errors.items()}
    # Better than all rows alike only for its weights of the joints.
    assert means["tls"] < 0.95 * means["uls"]
    assert means["tls"] == pytest.approx(means["wls"], rel=0.05)


@pytest.mark.parametrize("estimate", ALL)
def test_a_motion_that_tells_too_little_is_named(estimate):
    still = simulated(true_theta(), fourier_motion(moving=(0, 1)), noise_nm=0.01)
    with refused(DatasetError, "not-excited", "of 32 ", "fv3", "`armature excite`"):
        estimate(make_problem(still))


def test_torque_that_is_zero_is_refused():
    motion = fourier_motion()
    problem = make_problem(prepared(motion, np.zeros_like(motion.q_rad)))
    with refused(DatasetError, "zero-torque"):
        estimate_tls(problem)
