import dataclasses

import numpy as np
import pytest
from acceptance import IS_LONG
from identification_examples import (
    example,
    factors_of,
    fourier_motion,
    make_problem,
    model_of,
    prepared,
    simulated,
    true_theta,
)
from refusals import refused
from scipy.special import stdtrit

from estimation.errors import DatasetError
from estimation.identification.estimators.linear import estimate_uls
from estimation.identification.estimators.uncertainty import (
    bootstrap,
    covariance,
    essential,
    find_uncertainty,
    information_inflation,
)

pytestmark = pytest.mark.chain


def noisy_factors(seed, memory, duration_s=40.0):
    part = simulated(
        true_theta(), fourier_motion(0, duration_s), noise_nm=0.1, memory=memory, seed=seed
    )
    return factors_of([part])


@pytest.mark.parametrize(("memory", "rate"), [(0.0, (0.9, 1.0)), (0.9, (0.88, 0.99))])
def test_intervals_cover_the_truth_whatever_the_noise_remembers(memory, rate):
    truth = model_of()[1].of(true_theta())
    covered = []
    for seed in range(25 if IS_LONG else 6):
        factors = noisy_factors(seed, memory)
        beta = np.linalg.solve(factors.total()[:32, :32], factors.total()[:32, 32])
        covered.append(np.abs(beta - truth) <= find_uncertainty(factors).half_width)
    assert rate[0] <= np.mean(covered) <= rate[1]


def test_ordinary_intervals_do_not_when_noise_remembers():
    truth = model_of()[1].of(true_theta())
    covered = []
    for seed in range(10 if IS_LONG else 3):
        factors = noisy_factors(seed, 0.9)
        beta = np.linalg.solve(factors.total()[:32, :32], factors.total()[:32, 32])
        covered.append(np.abs(beta - truth) <= 1.96 * find_uncertainty(factors).sigma_ordinary)
    assert np.mean(covered) < 0.7


def test_inflation_tells_coloured_noise_from_white():
    assert information_inflation(noisy_factors(0, 0.0)) < 2.0
    assert information_inflation(noisy_factors(0, 0.9)) > 4.0


def test_the_ordinary_covariance_is_the_textbooks():
    problem = example()
    part = next(problem.samples())
    phi = problem.base.columns(
        problem.regressor(part.q_rad, part.dq_rad_s, part.ddq_rad_s2)
    ).reshape(-1, 32)
    beta = estimate_uls(problem).beta
    rest = part.tau_nm.ravel() - phi @ beta
    expected = rest @ rest / (len(rest) - 32) * np.linalg.inv(phi.T @ phi)
    np.testing.assert_allclose(covariance(problem.factors, beta), expected, rtol=1e-6, atol=1e-12)


def test_draws_are_repeatable_and_exact():
    factors = example().factors
    beta = estimate_uls(example()).beta
    first, again = (bootstrap(factors, beta, replicates=3, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    # The first draw anew, from the blocks that it drew.
    generator = np.random.default_rng(7)
    count = factors.block_count
    counts = generator.multinomial(count, np.full(count, 1.0 / count), size=3)
    chosen = factors.select(np.repeat(np.arange(count), counts[0])).total()
    np.testing.assert_allclose(
        first[0], np.linalg.solve(chosen[:32, :32], chosen[:32, 32]), rtol=1e-6, atol=1e-9
    )


def test_too_few_blocks_are_refused():
    factors = example().factors.select([0, 1, 2])
    with refused(DatasetError, "few-blocks"):
        bootstrap(factors, np.zeros(32))


def test_parameters_that_matter_are_kept():
    problem = make_problem(simulated(true_theta(), fourier_motion(), noise_nm=0.5, seed=2))
    kept = essential(problem.factors)
    names = [problem.base.symbols[problem.base.independent[index]] for index in kept]
    assert 1 <= len(kept) < 32
    assert {"fc1", "mcx2"} <= set(names)
    assert len(essential(make_problem(simulated(true_theta(), fourier_motion())).factors)) == 32


def test_relative_deviation_of_zero_is_infinite():
    uncertainty = find_uncertainty(example().factors)
    assert np.isinf(uncertainty.relative_percent(np.zeros(32))).all()
    degrees = example().factors.block_count - 1
    np.testing.assert_allclose(uncertainty.half_width / uncertainty.sigma, stdtrit(degrees, 0.975))


def test_a_joint_that_counts_in_one_block_only_does_not_break_the_draws():
    motion = fourier_motion()
    part = simulated(true_theta(), motion, noise_nm=0.01)
    use = np.ones_like(part.use)
    use[50:, 3] = False
    factors = factors_of([dataclasses.replace(prepared(motion, part.tau_nm), use=use)])
    uncertainty = find_uncertainty(factors)
    assert np.isfinite(uncertainty.sigma).all()
    assert (uncertainty.sigma >= uncertainty.sigma_ordinary).all()
