import dataclasses

import numpy as np
import pytest
from acceptance import IS_LONG
from identification_examples import fourier_motion, make_problem, simulated, true_theta
from refusals import refused

from estimation.errors import DatasetError
from estimation.identification.estimators.pseudo_inertia import link_parameters
from estimation.identification.output import payload
from estimation.identification.output.payload import identify_payload

COVERED = 8 if IS_LONG else 4
MASS_KG = 0.3
CENTRE_M = np.array([0.08, 0.01, -0.02])
INERTIA_KG_M2 = np.diag([2e-4, 3e-4, 3.5e-4])


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    if not IS_LONG:
        monkeypatch.setattr(payload, "DRAWS", 80)


def payload_parameters():
    second = 0.5 * np.trace(INERTIA_KG_M2) * np.eye(3) - INERTIA_KG_M2
    pseudo = np.zeros((4, 4))
    pseudo[:3, :3] = second + MASS_KG * np.outer(CENTRE_M, CENTRE_M)
    pseudo[:3, 3] = pseudo[3, :3] = MASS_KG * CENTRE_M
    pseudo[3, 3] = MASS_KG
    return link_parameters(pseudo)


def problem(*, is_loaded, seed, noise_nm=0.05, friction=1.0):
    theta = true_theta()
    if is_loaded:
        theta[30:40] += payload_parameters()
        theta[40:48] *= friction
    motion = fourier_motion(int(is_loaded))
    return make_problem(simulated(theta, motion, noise_nm=noise_nm, memory=0.8, seed=seed))


def test_a_payload_is_found():
    found = identify_payload(problem(is_loaded=False, seed=1), problem(is_loaded=True, seed=2))
    assert found.mass_kg.low <= MASS_KG <= found.mass_kg.high
    assert found.mass_kg.value == pytest.approx(MASS_KG, rel=0.03)
    assert found.mass_kg.high - found.mass_kg.low < 0.03
    for interval, true in zip(found.centre_m, CENTRE_M, strict=True):
        assert interval.value == pytest.approx(true, abs=0.01)
    xx, xy, yy, xz, yz, zz = (interval.value for interval in found.inertia_kg_m2)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    assert np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)[0] > -1e-9
    assert found.misfit < 2.0
    assert not found.notes


def test_intervals_cover():
    covered = [
        (
            found := identify_payload(*(problem(is_loaded=b, seed=50 + 2 * n + b) for b in (0, 1)))
        ).mass_kg.low
        <= MASS_KG
        <= found.mass_kg.high
        for n in range(COVERED)
    ]
    assert sum(covered) >= 0.75 * COVERED


def test_without_noise_all_ten_parameters_are_found():
    found = identify_payload(
        problem(is_loaded=False, seed=1, noise_nm=1e-5),
        problem(is_loaded=True, seed=2, noise_nm=1e-5),
    )
    assert found.mass_kg.value == pytest.approx(MASS_KG, abs=1e-5)
    centre = [interval.value for interval in found.centre_m]
    np.testing.assert_allclose(centre, CENTRE_M, atol=1e-4)
    inertia = [interval.value for interval in found.inertia_kg_m2]
    np.testing.assert_allclose(inertia, [2e-4, 0, 3e-4, 0, 0, 3.5e-4], atol=2e-5)


def test_friction_that_grows_with_the_load_is_not_mass():
    found = identify_payload(
        problem(is_loaded=False, seed=1), problem(is_loaded=True, seed=2, friction=1.5)
    )
    assert found.mass_kg.value == pytest.approx(MASS_KG, rel=0.03)


def test_no_payload_is_said_to_be_none():
    found = identify_payload(problem(is_loaded=False, seed=1), problem(is_loaded=False, seed=2))
    assert found.mass_kg.value < 0.01
    assert found.mass_kg.low <= 1e-3
    assert found.notes


def test_a_change_elsewhere_is_noticed():
    bare = problem(is_loaded=False, seed=1)
    theta = true_theta()
    theta[10:20] *= 1.5
    changed = make_problem(simulated(theta, fourier_motion(1), noise_nm=0.05, seed=3))
    found = identify_payload(bare, changed)
    assert found.misfit > 3.0
    assert any(f"{found.misfit:.1f}" in note for note in found.notes)


def test_another_model_is_refused():
    bare = problem(is_loaded=False, seed=1)
    other = dataclasses.replace(
        bare, base=dataclasses.replace(bare.base, symbols=bare.base.symbols[::-1])
    )
    with refused(DatasetError, "different-models"):
        identify_payload(bare, other)
