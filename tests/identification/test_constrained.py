import dataclasses
import time

import numpy as np
import pytest
from identification_examples import (
    example,
    fourier_motion,
    laas4,
    make_problem,
    model_of,
    simulated,
    true_theta,
)

from estimation.errors import EstimationError, InfeasibleParametersError
from estimation.identification.bounds import bounds_of
from estimation.identification.constrained import (
    estimate_cls1,
    estimate_cls2,
    estimate_cls2_prior,
    estimate_cls3,
    find_consistent,
)
from estimation.identification.linear import estimate_uls
from estimation.identification.pseudo_inertia import (
    least_eigenvalues,
    link_parameters,
    pseudo_inertia,
)
from estimation.identification.relaxation import relax_bounds
from estimation.identification.search_space import make_space

CONSISTENT = (estimate_cls2, estimate_cls3, estimate_cls2_prior)


def noisy():
    """So noisy that least squares alone finds an arm that cannot exist."""
    return example(0.5)


def with_bounds(problem, **changes):
    return dataclasses.replace(problem, bounds=dataclasses.replace(problem.bounds, **changes))


def test_pseudo_inertia_and_back():
    links = np.random.default_rng(0).normal(size=(5, 10))
    np.testing.assert_allclose(link_parameters(pseudo_inertia(links)), links, atol=1e-14)
    assert least_eigenvalues(true_theta(), 4).min() > 0.0
    # A definite inertia is not enough: no body is this flat along all axes.
    flat = np.array([1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 3.0])
    assert np.linalg.eigvalsh(pseudo_inertia(flat))[0] < 0.0


@pytest.mark.parametrize("estimate", CONSISTENT)
@pytest.mark.parametrize("problem", [example(), noisy()], ids=["quiet", "noisy"])
def test_links_can_exist_keep_their_bounds_and_are_not_below_the_floor(estimate, problem):
    floor = problem.factors.error_percent(estimate_uls(problem).beta)[0]
    began_s = time.perf_counter()
    found = estimate(problem)
    print(f"{found.method}: {time.perf_counter() - began_s:.2f} s")
    assert least_eigenvalues(found.theta, 4).min() > 0.0
    space = make_space(problem)
    assert not space.violations(found.theta / space.scales.theta)
    assert floor * (1.0 - 1e-9) <= problem.factors.error_percent(found.beta)[0] < 1.05 * floor
    np.testing.assert_allclose(problem.base.of(found.theta), found.beta)


def test_bounds_alone_do_not_make_links_that_can_exist():
    found = estimate_cls1(noisy())
    assert least_eigenvalues(found.theta, 4).min() < 0.0
    for link, mass in zip(noisy().bounds.links, found.theta[:40:10], strict=True):
        assert link.mass_kg[0] - 1e-6 <= mass <= link.mass_kg[1] + 1e-6


def test_more_physics_costs_more():
    errors = [
        noisy().factors.error_percent(estimate(noisy()).beta)[0]
        for estimate in (estimate_uls, estimate_cls1, estimate_cls2, estimate_cls3)
    ]
    assert errors == sorted(errors)


def test_a_prior_keeps_links_nearer_to_cad():
    problem = example()
    plain, near = estimate_cls2(problem), estimate_cls2_prior(problem)
    cad = pseudo_inertia(problem.cad[:40].reshape(4, 10))

    def divergence(theta):
        relative = np.linalg.solve(cad, pseudo_inertia(theta[:40].reshape(4, 10)))
        return float(np.sum(np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1]))

    assert divergence(near.theta) < divergence(plain.theta)


def test_a_prior_needs_cad():
    with pytest.raises(EstimationError, match="needs links in the robot file"):
        estimate_cls2_prior(dataclasses.replace(example(), cad=None))
    assert estimate_cls2(dataclasses.replace(example(), cad=None)).theta is not None


def test_masses_that_contradict_the_total_are_named_and_relaxed():
    problem = with_bounds(example(), total_mass_kg=(0.1, 0.4))
    with pytest.raises(InfeasibleParametersError) as raised:
        estimate_cls2(problem)
    text = str(raised.value)
    # The fewest that contradict each other, and the one bound that would help all by itself.
    conflict = "mass of joint2 ≥ 0.2216 kg; mass of joint3 ≥ 0.2112 kg; total mass ≤ 0.4 kg."
    assert f"contradict each other: {conflict}" in text
    assert "to relax total mass ≤ 0.4 kg by 0.195 kg;" in text
    relaxed, notes = relax_bounds(problem)
    assert notes == ("relaxed: total mass ≤ 0.4 kg, by 0.1948 kg",)
    found = estimate_cls2(relaxed)
    assert found.theta[:40:10].sum() == pytest.approx(0.5948, rel=1e-3)


def test_bounds_that_agree_are_not_relaxed():
    problem, notes = relax_bounds(example())
    assert not notes
    assert problem is example() or problem.bounds == example().bounds


def test_centres_of_mass_stay_in_their_boxes():
    bounds = bounds_of(laas4())
    box = ((0.15, -0.01, -0.01), (0.18, 0.01, 0.01))
    links = list(bounds.links)
    links[1] = dataclasses.replace(links[1], centre_m=box)
    problem = make_problem(
        simulated(true_theta(), fourier_motion(), noise_nm=0.05),
        bounds=dataclasses.replace(bounds, links=tuple(links)),
    )
    for estimate in (estimate_cls1, estimate_cls2):
        theta = estimate(problem).theta
        centre = theta[11:14] / theta[10]
        assert (centre >= np.array(box[0]) - 1e-5).all()
        assert (centre <= np.array(box[1]) + 1e-5).all()


def test_mass_stays_inside_the_ellipsoid_with_density_realism():
    problem = noisy()
    theta = estimate_cls3(problem).theta
    for joint, link in enumerate(problem.bounds.links):
        centre, axes = (np.array(part) for part in dataclasses.astuple(link.ellipsoid))
        mass = theta[10 * joint]
        assert (
            np.linalg.norm((theta[10 * joint + 1 : 10 * joint + 4] / mass - centre) / axes) <= 1.0
        )
        shift = np.eye(4)
        shift[:3, 3] = -centre
        moved = shift @ pseudo_inertia(theta[10 * joint : 10 * joint + 10]) @ shift.T
        assert np.sum(np.diag(moved)[:3] / axes**2) <= mass * (1.0 + 1e-6)


def test_base_parameters_of_an_arm_that_exists_are_recognised():
    problem = example()
    beta = model_of()[1].of(true_theta())
    theta = find_consistent(problem, beta)
    assert theta is not None
    assert least_eigenvalues(theta, 4).min() > 0.0
    np.testing.assert_allclose(problem.base.of(theta), beta, atol=1e-6)
    assert find_consistent(problem, -beta) is None


def test_an_unexcited_arm_still_gets_links_that_can_exist():
    problem = make_problem(simulated(true_theta(), fourier_motion(moving=(0, 1)), noise_nm=0.01))
    assert least_eigenvalues(estimate_cls2(problem).theta, 4).min() > 0.0
