import dataclasses

import msgspec
import numpy as np
import pytest
from identification_examples import example, laas4, model_of, true_theta, truth_vector
from refusals import refused

from daq.robot import Robot, load_robot
from estimation.errors import DatasetError, EstimationError
from estimation.identification.estimators.methods import estimate_cad
from estimation.model.parameters import INERTIAL, cad_vector, choose_parameters
from estimation.model.regressor import Regressor
from hw_mocks.plants.truth import draw_truth

ALL_TERMS = ("viscous", "coulomb", "drive_inertia", "offset", "asymmetric", "stribeck")


def test_the_head_of_theta_is_the_published_vector():
    parameters = choose_parameters(laas4(), ("viscous", "coulomb"))
    assert len(parameters) == 48
    assert parameters.symbols[:11] == (*(f"{kind}1" for kind in INERTIAL), "m2")
    assert parameters.symbols[40:] == (*(f"fv{n}" for n in range(1, 5)), "fc1", "fc2", "fc3", "fc4")
    longer = choose_parameters(laas4(), ALL_TERMS)
    assert longer.symbols[:48] == parameters.symbols
    assert len(longer) == 40 + 6 * 4


def test_cad_links_are_the_files_own_and_friction_is_at_the_joint():
    parameters = choose_parameters(laas4())
    cad = cad_vector(laas4(), parameters)
    assert cad is not None
    np.testing.assert_array_equal(cad[10:14], [0.554, 0.116, 0.0, 0.00199])
    by_symbol = dict(zip(parameters.symbols, cad.tolist(), strict=True))
    assert by_symbol["fv1"] == pytest.approx(6.45e-6 * 31**2)
    assert by_symbol["fc3"] == pytest.approx(0.122)
    assert by_symbol["Ia4"] == pytest.approx(2e-5 * 27**2)


def test_cad_is_the_truth_of_an_arm_without_spread():
    parameters = model_of()[0].parameters
    truth = truth_vector(laas4(), draw_truth(laas4(), seed=3, spread=0.0), parameters)
    np.testing.assert_allclose(cad_vector(laas4(), parameters), truth, rtol=1e-12)
    assert np.abs(true_theta() - truth).max() > 1e-3


def without_links(*bare: int) -> Robot:
    joints = list(laas4().joints)
    for index in bare:
        joints[index] = msgspec.structs.replace(joints[index], link=None)
    return msgspec.structs.replace(laas4(), joints=tuple(joints))


@pytest.mark.parametrize(
    ("bare", "names"),
    [
        ((2,), " joint3,"),
        ((0, 2), " joint1, joint3,"),
        ((0, 1, 2, 3), ""),
    ],
)
def test_a_robot_without_links_has_no_cad_and_says_whose(bare, names):
    robot = without_links(*bare)
    regressor = Regressor(robot)
    assert cad_vector(robot, regressor.parameters) is None
    with refused(EstimationError, "no-links", names):
        estimate_cad(dataclasses.replace(example(), regressor=regressor, cad=None))


def test_asymmetric_friction_brings_the_offset_with_it():
    assert choose_parameters(laas4(), ("asymmetric",)).terms == ("offset", "asymmetric")


def test_unknown_terms_and_benches_are_refused():
    with refused(DatasetError, "unknown-term", "magic", "viscous"):
        choose_parameters(laas4(), ("magic",))
    with refused(DatasetError, "joint-on-bench", "bench1"):
        choose_parameters(load_robot("bench1"))


def test_a_coupled_motor_has_terms_of_its_own():
    coupling = ((1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 1.0, 0.5), (0, 0, 0, 1.0))
    robot = msgspec.structs.replace(laas4(), coupling=coupling)
    parameters = choose_parameters(robot)
    assert parameters.coupled_motors == (2,)
    assert parameters.symbols[-3:] == ("fvm3", "fcm3", "Iam3")
    assert parameters.of_kind("motor_viscous").tolist() == [52]
