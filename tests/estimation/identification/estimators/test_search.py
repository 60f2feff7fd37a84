"""SLSQP and simulated annealing: the documents' own estimators, kept to physics."""

import dataclasses

import numpy as np
import pytest
from acceptance import IS_LONG, ONLY
from identification_examples import example, fourier_motion, make_problem, simulated, true_theta
from refusals import refused

from estimation.errors import EstimationError
from estimation.identification.estimators import annealing, search
from estimation.identification.estimators.annealing import estimate_annealing
from estimation.identification.estimators.constrained import estimate_cls2
from estimation.identification.estimators.linear import estimate_uls
from estimation.identification.estimators.pseudo_inertia import least_eigenvalues
from estimation.identification.estimators.search import estimate_slsqp
from estimation.identification.estimators.search_space import draw_start, make_space

pytestmark = pytest.mark.chain

QUIET, NOISY = 0.05, 0.5
NOISES = [pytest.param(QUIET, marks=ONLY), NOISY]
STARTS, STEPS = 10 if IS_LONG else 4, annealing.STEPS


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch):
    """However busy this computer is, what comes out is the same."""
    for module in (search, annealing):
        monkeypatch.setattr(module, "TIME_MAX_S", float("inf"))
    if not IS_LONG:
        monkeypatch.setattr(annealing, "STEPS", 2000)


def floor_percent(problem):
    return problem.factors.error_percent(estimate_uls(problem).beta)[0]


def judge(problem, found):
    """Its error; fails when it is no arm that can exist within the bounds."""
    assert least_eigenvalues(found.theta, 4).min() > 0.0
    space = make_space(problem)
    assert not space.violations(found.theta / space.scales.theta)
    np.testing.assert_allclose(problem.base.of(found.theta), found.beta)
    error = problem.factors.error_percent(found.beta)[0]
    assert error >= floor_percent(problem) * (1.0 - 1e-9)
    return error


@pytest.mark.parametrize("noise_nm", NOISES)
def test_slsqp_finds_what_the_convex_programme_finds(noise_nm):
    problem = dataclasses.replace(example(noise_nm), starts=STARTS)
    found = estimate_slsqp(problem)
    best = problem.factors.error_percent(estimate_cls2(problem).beta)[0]
    assert judge(problem, found) == pytest.approx(best, rel=1e-4)
    assert found.method == "slsqp"
    assert f" of {STARTS} starts " in found.notes[-1]


@pytest.mark.parametrize("noise_nm", NOISES)
def test_annealing_comes_near(noise_nm):
    problem = dataclasses.replace(example(noise_nm), starts=STARTS)
    found = estimate_annealing(problem)
    assert judge(problem, found) < 1.05 * floor_percent(problem)
    assert f"{STARTS} of {STARTS} starts " in found.notes[0]


@pytest.mark.parametrize("estimate", [estimate_slsqp, estimate_annealing])
def test_both_do_without_cad(estimate, monkeypatch):
    monkeypatch.setattr(
        annealing, "STEPS", STEPS
    )  # it takes all of them to find links from nothing
    problem = dataclasses.replace(example(QUIET), cad=None, starts=6 if IS_LONG else 2)
    assert judge(problem, estimate(problem)) < 1.1 * floor_percent(problem)


@pytest.mark.parametrize("estimate", [estimate_slsqp, estimate_annealing])
def test_the_seed_decides(estimate, monkeypatch):
    monkeypatch.setattr(annealing, "STEPS", 200)
    first, again, other = (
        estimate(dataclasses.replace(example(QUIET), starts=2, seed=seed)).beta
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() or estimate is estimate_slsqp  # the first start is CAD


def test_starts_are_arms_that_can_exist_and_differ():
    problem = example(QUIET)
    space = make_space(problem)
    generator = np.random.default_rng(0)
    for spread in (0.0, 0.4, 0.4):
        x = draw_start(problem, space, generator, spread=spread)
        assert np.linalg.eigvalsh(space.pseudo_inertias(x)).min() > 0.0
        is_cad = np.allclose(space.scales.theta * x, problem.cad)
        assert is_cad == (spread == 0.0)


def test_the_constraints_are_those_of_the_convex_programme():
    problem = example(QUIET)
    space = make_space(problem)
    assert {"mass of joint2 ≥ 0.2216 kg", "total mass ≤ 2.3 kg", "fc3 ≥ 0", "Ia1 ≥ 0"} <= set(
        space.names
    )
    theta = true_theta()
    assert not space.violations(theta / space.scales.theta)
    theta[0], theta[10], theta[45] = 0.05, 1.5, -0.1
    theta[36] = 1e-9
    broken = space.violations(theta / space.scales.theta)
    assert {"mass of joint1 ≥ 0.1104 kg", "mass of joint2 ≤ 1.385 kg", "fc2 ≥ 0"} <= set(broken)
    assert "link of joint4 is physically consistent" in broken
    assert ((space.low <= problem.cad / space.scales.theta) & (space.high >= 0.0)).all()


def test_the_gradients_are_right():
    problem = example(QUIET)
    space = make_space(problem)
    local = search._Local(problem, space)
    z = local._z.to_z @ draw_start(problem, space, np.random.default_rng(0))
    gradient = local._slack_gradient(z)
    direction = np.random.default_rng(1).normal(size=len(z)) / np.linalg.norm(local._z.to_x, axis=0)
    step = 1e-6
    slope = (local._slack(z + step * direction) - local._slack(z - step * direction)) / (2 * step)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-5, atol=1e-6)


def test_bounds_that_contradict_each_other():
    bounds = dataclasses.replace(example(QUIET).bounds, total_mass_kg=(0.1, 0.4))
    problem = dataclasses.replace(example(QUIET), bounds=bounds, starts=2)
    with refused(EstimationError, "no-feasible-start"):
        estimate_slsqp(problem)
    found = estimate_annealing(problem)
    assert "0 of 2 starts " in found.notes[0]
    assert len(found.notes) == 2  # and what the least impossible one breaks


def test_annealing_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(annealing, "TIME_MAX_S", -1.0)
    found = estimate_annealing(example(QUIET))
    assert "-1 s" in found.notes[-1]


def test_slsqp_without_excitation_keeps_to_physics():
    still = simulated(true_theta(), fourier_motion(moving=(0, 1)), noise_nm=0.01)
    problem = make_problem(still, starts=1)
    assert least_eigenvalues(estimate_slsqp(problem).theta, 4).min() > 0.0
