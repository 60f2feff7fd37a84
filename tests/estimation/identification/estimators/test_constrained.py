import dataclasses

import cvxpy as cp
import numpy as np
import pytest
from identification_examples import (
    example,
    fourier_motion,
    laas4,
    make_problem,
    model_of,
    prepared,
    simulated,
    true_theta,
)
from refusals import refused

from estimation.errors import EstimationError, InfeasibleParametersError
from estimation.identification.estimators.bounds import Ellipsoid, LinkBound, bounds_of
from estimation.identification.estimators.constrained import (
    estimate_cls1,
    estimate_cls2,
    estimate_cls2_prior,
    estimate_cls2_wls,
    estimate_cls3,
    find_consistent,
)
from estimation.identification.estimators.constraints import (
    Realism,
    choose_scales,
    link_bounds,
    opposing,
)
from estimation.identification.estimators.linear import estimate_uls
from estimation.identification.estimators.pseudo_inertia import (
    least_eigenvalues,
    link_parameters,
    pseudo_inertias,
)
from estimation.identification.estimators.relaxation import relax_bounds
from estimation.identification.estimators.search_space import make_space

CONSISTENT = (estimate_cls2, estimate_cls3, estimate_cls2_prior, estimate_cls2_wls)


def noisy():
    """So noisy that least squares alone finds an arm that cannot exist."""
    return example(0.5)


def with_bounds(problem, **changes):
    return dataclasses.replace(problem, bounds=dataclasses.replace(problem.bounds, **changes))


def test_pseudo_inertia_and_back():
    links = np.random.default_rng(0).normal(size=(5, 10))
    np.testing.assert_allclose(link_parameters(pseudo_inertias(links)), links, atol=1e-14)
    assert least_eigenvalues(true_theta(), 4).min() > 0.0
    # A definite inertia is not enough: no body is this flat along all axes.
    flat = np.array([1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 3.0])
    assert np.linalg.eigvalsh(pseudo_inertias(flat))[0] < 0.0


@pytest.mark.parametrize("estimate", CONSISTENT)
@pytest.mark.parametrize("make", [example, noisy])
def test_links_can_exist_keep_their_bounds_and_are_not_below_the_floor(estimate, make):
    problem = make()
    floor = problem.factors.error_percent(estimate_uls(problem).beta)[0]
    found = estimate(problem)
    assert least_eigenvalues(found.theta, 4).min() > 0.0
    space = make_space(problem)
    assert not space.violations(found.theta / space.scales.theta)
    # What is never negative is not so by rounding either.
    assert (found.theta[opposing(problem.regressor.parameters)] >= 0.0).all()
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
    cad = pseudo_inertias(problem.cad[:40].reshape(4, 10))

    def divergence(theta):
        relative = np.linalg.solve(cad, pseudo_inertias(theta[:40].reshape(4, 10)))
        return float(np.sum(np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1]))

    assert divergence(near.theta) < divergence(plain.theta)


def test_a_prior_needs_cad():
    with refused(EstimationError, "no-links"):
        estimate_cls2_prior(dataclasses.replace(example(), cad=None))
    assert estimate_cls2(dataclasses.replace(example(), cad=None)).theta is not None


def test_masses_that_contradict_the_total_are_named_and_relaxed():
    problem = with_bounds(example(), total_mass_kg=(0.1, 0.4))
    with pytest.raises(InfeasibleParametersError) as raised:
        estimate_cls2(problem)
    assert raised.value.code == "contradicting-bounds"
    # The fewest that contradict each other, and the one bound that would help all by itself.
    conflict, helps = str(raised.value).split(". ", 1)
    for name in ("mass of joint2 ≥ 0.2216 kg", "mass of joint3 ≥ 0.2112 kg", "total mass ≤ 0.4 kg"):
        assert name in conflict
    assert "joint1" not in conflict and "joint4" not in conflict
    assert "total mass ≤ 0.4 kg, by 0.195 kg" in helps and "joint" not in helps
    relaxed, (note,) = relax_bounds(problem)
    assert "total mass ≤ 0.4 kg, by 0.1948 kg" in note
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
        moved = shift @ pseudo_inertias(theta[10 * joint : 10 * joint + 10]) @ shift.T
        assert np.sum(np.diag(moved)[:3] / axes**2) <= mass * (1.0 + 1e-6)


def test_weights_help_the_weakest_joint_of_an_arm_that_can_exist():
    motion = fourier_motion()
    clean = simulated(true_theta(), motion).tau_nm
    size = np.sqrt(np.mean(clean**2, axis=0))
    assert size.max() > 30.0 * size[3]
    unknown = make_problem(simulated(true_theta(), fourier_motion(7))).factors
    errors: dict[str, list[float]] = {"cls2": [], "cls2-wls": []}
    for seed in range(3):
        noise = 0.05 * size * np.random.default_rng(seed).standard_normal(clean.shape)
        problem = make_problem(prepared(motion, clean + noise))
        for estimate in (estimate_cls2, estimate_cls2_wls):
            found = estimate(problem)
            assert least_eigenvalues(found.theta, 4).min() > 0.0
            errors[found.method].append(unknown.error_percent(found.beta)[1][3])
    assert np.mean(errors["cls2-wls"]) < 0.3 * np.mean(errors["cls2"])


def test_a_joint_without_any_error_does_not_hide_the_others():
    motion = fourier_motion()
    clean = simulated(true_theta(), motion).tau_nm
    noise = 0.01 * np.random.default_rng(0).standard_normal(clean.shape) * [1.0, 1.0, 1.0, 0.0]
    problem = make_problem(prepared(motion, clean + noise))
    found = estimate_cls2_wls(problem)
    assert len(found.notes) > len(problem.bounds.notes)  # the weights
    floor = problem.factors.error_percent(estimate_uls(problem).beta)[0]
    assert problem.factors.error_percent(found.beta)[0] < 1.05 * floor


def test_cls3_says_where_it_knows_no_more_than_cls2():
    problem = example()
    known = len(estimate_cls3(problem).notes)
    links = tuple(
        dataclasses.replace(link, ellipsoid=None) if joint in (1, 2) else link
        for joint, link in enumerate(problem.bounds.links)
    )
    found = estimate_cls3(with_bounds(problem, links=links))
    assert len(found.notes) == known + 1
    assert "joint2, joint3" in found.notes[-1]


def test_mass_inside_an_ellipsoid_has_its_centre_there():
    problem = example()
    ellipsoid = Ellipsoid((0.1, -0.05, 0.02), (0.2, 0.1, 0.05))
    links = (LinkBound(ellipsoid=ellipsoid), *(LinkBound(),) * 3)
    scales = choose_scales(problem)
    x = cp.Variable(len(problem.regressor.parameters))
    bounds = dataclasses.replace(problem.bounds, links=links, total_mass_kg=None)
    (bound,) = link_bounds(x, bounds, scales, realism=Realism.DENSITY)
    generator = np.random.default_rng(0)
    kept = 0
    for _ in range(500):
        reach = generator.uniform(0.5, 2.5)
        points = generator.normal(size=(5, 3)) + generator.normal(size=3)
        points *= reach / np.linalg.norm(points, axis=1).max()
        points = np.array(ellipsoid.centre_m) + points * ellipsoid.semi_axes_m
        rows = np.column_stack([points, np.ones(5)]) * np.sqrt(generator.uniform(0.1, 1.0, (5, 1)))
        theta = np.zeros(len(scales.theta))
        theta[:10] = link_parameters(rows.T @ rows)
        x.value = theta / scales.theta
        centre = theta[1:4] / theta[0]
        off = np.linalg.norm((centre - ellipsoid.centre_m) / np.array(ellipsoid.semi_axes_m))
        if reach <= 1.0:
            assert bound.excess.value <= 0.0
        if bound.excess.value <= 0.0:
            kept += 1
            assert off < 1.0
    assert 100 < kept < 400


def with_ellipsoid(factor=1.0):
    """A box for the centre of mass that begins 1.6 times the ellipsoid's semi-axis away."""
    links = list(example().bounds.links)
    links[1] = dataclasses.replace(
        links[1],
        centre_m=((0.16, -0.01, -0.01), (0.18, 0.01, 0.01)),
        ellipsoid=Ellipsoid((0.0, 0.0, 0.0), (0.1 * factor, 0.1 * factor, 0.05 * factor)),
    )
    return with_bounds(example(), links=tuple(links))


def test_an_ellipsoid_that_contradicts_a_box_is_named():
    names = (
        "centre of mass x of joint2 ≥ 0.16 m",
        "mass of joint2 inside its ellipsoid (centre 0, 0, 0 m, semi-axes 0.1, 0.1, 0.05 m)",
        "ellipsoid of joint2, its semi-axes 1.602 times longer",
    )
    with refused(InfeasibleParametersError, "contradicting-bounds", *names):
        estimate_cls3(with_ellipsoid())


def test_an_ellipsoid_grows_by_the_least_that_helps():
    relaxed, (note,) = relax_bounds(with_ellipsoid())
    assert "ellipsoid of joint2, its semi-axes 1.602 times longer" in note
    theta = estimate_cls3(relaxed).theta
    assert theta[11] / theta[10] >= 0.16 - 1e-5
    assert relax_bounds(relaxed) == (relaxed, ())
    with refused(InfeasibleParametersError, "contradicting-bounds"):
        estimate_cls3(with_ellipsoid(1.595))
    # Masses and ellipsoids at once.
    relaxed, notes = relax_bounds(with_bounds(with_ellipsoid(), total_mass_kg=(0.1, 0.4)))
    for note, name in zip(notes, ("total mass ≤ 0.4 kg", "ellipsoid of joint2"), strict=True):
        assert name in note
    assert estimate_cls3(relaxed).theta is not None


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
