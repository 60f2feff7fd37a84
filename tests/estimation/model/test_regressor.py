"""The regressor against Pinocchio's inverse dynamics and against MuJoCo, which shares no code."""

import msgspec
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from identification_examples import laas4, model_of, true_theta, truth_vector
from refusals import refused

from daq.robot.rigid_body import make_model
from estimation.errors import DatasetError
from estimation.model.parameters import choose_parameters
from estimation.model.regressor import Regressor
from hw_mocks.plants import arm_model
from hw_mocks.plants.truth import draw_truth

TERMS = ("viscous", "coulomb", "drive_inertia", "offset", "asymmetric", "stribeck")


def random_motion(count=50, seed=0, slowest=0.0):
    generator = np.random.default_rng(seed)
    q, dq, ddq = (generator.uniform(-size, size, (count, 4)) for size in (np.pi, 4.0, 20.0))
    return q, dq + slowest * np.sign(dq), ddq


def test_rigid_links_are_pinocchios_inverse_dynamics():
    regressor, _ = model_of()
    theta = true_theta(4)
    model = make_model(laas4())
    for joint in range(4):
        link = theta[regressor.parameters.link(joint)]
        model.inertias[joint + 1] = pin.Inertia.FromDynamicParameters(link)
    data = model.createData()
    q, dq, ddq = random_motion()
    expected = np.array([pin.rnea(model, data, *row) for row in zip(q, dq, ddq, strict=True)])
    links = regressor(q, dq, ddq)[..., :40] @ theta[:40]
    np.testing.assert_allclose(links, expected, rtol=0, atol=1e-9)


def test_terms_are_what_they_say():
    regressor, _ = model_of(TERMS)
    theta = np.zeros(len(regressor.parameters))
    theta[40:] = np.random.default_rng(1).normal(size=24)
    fv, fc, ia, off, fva, fst = theta[40:].reshape(6, 4)
    q, dq, ddq = random_motion(seed=2)
    v_s = laas4().estimation.stribeck_velocity_rad_s
    fade = np.sign(dq) * np.exp(-((dq / v_s) ** 2))
    expected = fv * dq + fc * np.sign(dq) + ia * ddq + off + fva * np.abs(dq) + fst * fade
    np.testing.assert_allclose(regressor(q, dq, ddq) @ theta, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_mujocos_inverse_dynamics_with_rotors_and_friction(seed):
    robot = laas4()
    truth = draw_truth(robot, seed=seed, spread=0.3)
    model = arm_model.make_model(robot, truth, step_s=1e-3)
    data = mujoco.MjData(model)
    regressor, _ = model_of()
    theta = truth_vector(robot, truth, regressor.parameters)
    # Sliding, so that MuJoCo's friction is fully there.
    q, dq, ddq = random_motion(seed=seed, slowest=1.0)
    predicted = regressor(q, dq, ddq) @ theta
    for row, tau in enumerate(predicted):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[row], dq[row], ddq[row]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(tau, data.qfrc_inverse, rtol=0, atol=1e-6)


def test_a_coupled_motor_acts_on_all_joints_that_turn_it():
    coupling = np.eye(4)
    coupling[2, 3], coupling[3, 2] = 0.7, -0.4
    robot = msgspec.structs.replace(laas4(), coupling=tuple(map(tuple, coupling.tolist())))
    regressor = Regressor(robot, choose_parameters(robot))
    theta = np.zeros(len(regressor.parameters))
    fv, fc, ia = [0.2, 0.3], [0.4, 0.5], [0.6, 0.7]
    for place, name in enumerate(("viscous", "coulomb", "drive_inertia")):
        indices = regressor.parameters.of_kind(f"motor_{name}")
        theta[indices] = (fv, fc, ia)[place]
    q, dq, ddq = random_motion(seed=5)
    motor_dq, motor_ddq = (dq @ coupling.T)[:, 2:], (ddq @ coupling.T)[:, 2:]
    motor = fv * motor_dq + fc * np.sign(motor_dq) + ia * motor_ddq
    np.testing.assert_allclose(regressor(q, dq, ddq) @ theta, motor @ coupling[2:], atol=1e-12)


def test_the_inertia_matrix_is_symmetric_and_has_the_drives():
    regressor, _ = model_of()
    theta = true_theta()
    q = random_motion(10)[0]
    matrices = regressor.inertia_matrices(theta, q)
    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), atol=1e-12)
    assert np.linalg.eigvalsh(matrices).min() > 0.0
    theta[regressor.parameters.of_kind("drive_inertia")] += 1.0
    more = regressor.inertia_matrices(theta, q) - matrices
    np.testing.assert_allclose(more, np.broadcast_to(np.eye(4), more.shape), atol=1e-12)


def test_friction_columns_may_come_filtered():
    regressor, _ = model_of()
    q, dq, ddq = random_motion(5)
    columns = regressor.switching(dq)
    assert columns.shape == (5, 4)
    halved = regressor(q, dq, ddq, 0.5 * columns) - regressor(q, dq, ddq)
    places = regressor.parameters.of_kind("coulomb")
    np.testing.assert_allclose(halved[:, np.arange(4), places], -0.5 * np.sign(dq))
    halved[:, :, places] = 0.0
    assert not halved.any()


def test_a_smooth_sign():
    robot = msgspec.structs.replace(
        laas4(),
        estimation=msgspec.structs.replace(laas4().estimation, smooth_sign_velocity_rad_s=0.1),
    )
    np.testing.assert_allclose(
        Regressor(robot).switching(np.full((1, 4), 0.1)), np.full((1, 4), np.tanh(1.0))
    )


def test_motion_that_does_not_fit_is_refused():
    regressor, _ = model_of()
    zeros = np.zeros((5, 4))
    with refused(DatasetError, "wrong-shape", "(5, 3)", "(n, 4)"):
        regressor(np.zeros((5, 3)), zeros, zeros)
    with refused(DatasetError, "different-shapes", "(5, 4)", "(4, 4)"):
        regressor(zeros, np.zeros((4, 4)), zeros)
    broken = zeros.copy()
    broken[3, 1] = np.nan
    with refused(DatasetError, "not-finite", "row 3"):
        regressor(zeros, broken, zeros)
