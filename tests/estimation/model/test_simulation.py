"""The identified arm in motion: against its own inverse dynamics, MuJoCo, and itself."""

import dataclasses

import msgspec
import mujoco
import numpy as np
import pytest
from identification_examples import (
    closed_loop,
    laas4,
    model_of,
    recorded,
    true_theta,
    truth_vector,
)
from refusals import refused

from estimation.errors import DatasetError, EstimationError
from estimation.model.forward_dynamics import ForwardDynamics
from estimation.model.parameters import choose_parameters
from estimation.model.regressor import Regressor
from estimation.model.simulation import (
    closed_loop_errors,
    open_loop_errors,
    simulate_closed_loop,
    simulate_open_loop,
)
from hw_mocks.plants import arm_model
from hw_mocks.plants.truth import draw_truth


def make_arm(theta=None):
    parameters = model_of()[0].parameters
    return ForwardDynamics(laas4(), parameters, true_theta() if theta is None else theta)


def test_forward_dynamics_undo_inverse_dynamics():
    regressor, _ = model_of()
    arm = make_arm()
    generator = np.random.default_rng(0)
    for _ in range(20):
        q, dq, ddq = (generator.uniform(-size, size, 4) for size in (np.pi, 3.0, 20.0))
        dq += np.sign(dq) * 0.1  # where the smooth sign is one
        tau = (regressor(q[None], dq[None], ddq[None]) @ true_theta())[0]
        np.testing.assert_allclose(arm.acceleration(q, dq, tau), ddq, atol=1e-9)


def test_coupled_motors_are_part_of_it():
    coupling = np.eye(4)
    coupling[2, 3] = 0.7
    robot = msgspec.structs.replace(laas4(), coupling=tuple(map(tuple, coupling.tolist())))
    regressor = Regressor(robot, choose_parameters(robot))
    theta = np.append(true_theta(), [0.02, 0.3, 0.01])
    arm = ForwardDynamics(robot, regressor.parameters, theta)
    q, dq, ddq = np.array([[0.3, -0.5, 1.0, 0.7], [1.0, -2.0, 0.5, 1.5], [3.0, 5.0, -7.0, 2.0]])
    tau = (regressor(q[None], dq[None], ddq[None]) @ theta)[0]
    np.testing.assert_allclose(arm.acceleration(q, dq, tau), ddq, atol=1e-9)


def test_all_terms_of_friction_are_part_of_it():
    terms = ("viscous", "coulomb", "drive_inertia", "offset", "asymmetric", "stribeck")
    regressor, _ = model_of(terms)
    theta = true_theta(terms=terms)
    theta[52:] = np.random.default_rng(0).uniform(0.01, 0.05, 12)
    arm = ForwardDynamics(laas4(), regressor.parameters, theta)
    q, dq, ddq = np.array([[0.3, -0.5, 1.0, 0.7], [0.04, -0.05, 0.5, 1.5], [3.0, 5.0, -7.0, 2.0]])
    tau = (regressor(q[None], dq[None], ddq[None]) @ theta)[0]
    np.testing.assert_allclose(arm.acceleration(q, dq, tau), ddq, atol=1e-6)


def test_open_loop_follows_mujoco():
    robot = laas4()
    truth = draw_truth(robot, seed=2, spread=0.2)
    model = arm_model.make_model(robot, truth, step_s=1e-5)
    data = mujoco.MjData(model)
    q0 = np.array([0.2, -0.5, 0.3, 0.6])
    dq0 = np.array([1.0, -1.5, 2.0, -1.0])
    tau = np.tile([0.5, 1.0, -0.3, 0.2], (201, 1))
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q0, dq0, tau[0]
    mujoco.mj_step(model, data, nstep=20_000)
    arm = make_arm(truth_vector(robot, truth, model_of()[0].parameters))
    motion = simulate_open_loop(arm, tau, q0, dq0, 1e-3)
    np.testing.assert_allclose(motion.q_rad[-1], data.qpos, atol=2e-3)
    assert np.abs(data.qpos - q0).max() > 0.2


def test_a_joint_sticks_under_less_than_its_friction():
    theta = true_theta()
    arm = make_arm(theta)
    posture = np.array([0.3, -np.pi / 2, 0.0, 0.0])
    weight = (model_of()[0](posture[None], np.zeros((1, 4)), np.zeros((1, 4))) @ theta)[0]
    push = np.array([0.1, 0.05, 0.06, 0.05])  # half of what is needed
    motion = simulate_open_loop(arm, np.tile(weight + push, (2001, 1)), posture, np.zeros(4), 1e-3)
    assert np.abs(motion.dq_rad_s[-1]).max() < 2e-3
    assert np.abs(motion.q_rad[-1] - posture).max() < 4e-3


def test_the_loop_follows_its_reference_and_keeps_to_the_model():
    regressor, _ = model_of()
    law, motion = closed_loop()
    assert np.sqrt(np.mean((motion.q_rad - law.reference_rad) ** 2)) < 0.02
    rows = (np.abs(motion.dq_rad_s) > 0.05).all(axis=1)
    predicted = regressor(motion.q_rad, motion.dq_rad_s, motion.ddq_rad_s2) @ true_theta()
    rest = (predicted - motion.tau_nm)[rows]
    assert np.linalg.norm(rest) < 0.01 * np.linalg.norm(motion.tau_nm[rows])


def test_a_cycle_takes_two_steps_of_the_model(monkeypatch):
    """What a simulation costs: nothing but its length makes it longer."""
    taken = []
    step = ForwardDynamics.step
    monkeypatch.setattr(
        ForwardDynamics, "step", lambda arm, *state: taken.append(1) or step(arm, *state)
    )
    for duration_s in (0.5, 1.0):
        law, _ = closed_loop(duration_s=duration_s)
        taken.clear()
        start = law.reference_rad[0], law.reference_rad_s[0]
        simulate_closed_loop(make_arm(), law, *start, 1e-3)
        assert len(taken) == 2 * law.sample_count


def test_the_right_model_is_told_from_a_wrong_one():
    robot = laas4()
    segment = recorded(*closed_loop())
    wrong = true_theta()
    wrong[:40] *= 1.2
    right_loop = closed_loop_errors(make_arm(), robot, segment)
    wrong_loop = closed_loop_errors(make_arm(wrong), robot, segment)
    assert right_loop.torque_percent < 0.5
    assert wrong_loop.torque_percent > 10.0
    assert max(right_loop.rms_rad) < 1e-4 < max(wrong_loop.rms_rad)
    right, off = (open_loop_errors(make_arm(theta), segment) for theta in (true_theta(), wrong))
    assert right.torque_percent is None
    # Joint 3 is light and often about to stick: its windows say little of its link.
    assert max(right.rms_rad) < 0.03
    for joint in (0, 1, 3):
        assert off.rms_rad[joint] > 10.0 * right.rms_rad[joint]


def test_a_held_reference_costs_current():
    law, moving = closed_loop()
    held = dataclasses.replace(law, is_held=np.ones(4, bool))
    motion = simulate_closed_loop(make_arm(), held, moving.q_rad[0], moving.dq_rad_s[0], 1e-3)
    # It lags by half a cycle more.
    late = (moving.q_rad - motion.q_rad)[5000:] / 0.5e-3
    fast = np.abs(law.reference_rad_s[5000:, 1]) > 1.0
    assert np.median(late[fast, 1] / law.reference_rad_s[5000:, 1][fast]) == pytest.approx(
        1.0, abs=0.2
    )


def test_the_current_is_limited():
    law, _ = closed_loop()
    weak = dataclasses.replace(law, limit_a=np.full(4, 0.5))
    motion = simulate_closed_loop(make_arm(), weak, law.reference_rad[0], np.zeros(4), 1e-3)
    assert (np.abs(motion.tau_nm) <= 0.5 * law.joint_nm_per_a + 1e-12).all()
    assert np.isfinite(motion.q_rad).all()


def test_integrators_begin_with_what_they_must_have_held():
    law, motion = closed_loop()
    later = dataclasses.replace(
        law, reference_rad=law.reference_rad[5000:], reference_rad_s=law.reference_rad_s[5000:]
    )
    again = simulate_closed_loop(
        make_arm(),
        later,
        motion.q_rad[5000],
        motion.dq_rad_s[5000],
        1e-3,
        tau0_nm=motion.tau_nm[5000],
    )
    assert np.abs(again.q_rad - motion.q_rad[5000:]).max() < 2e-3


def test_an_arm_that_cannot_move_is_refused():
    theta = true_theta()
    theta[model_of()[0].parameters.of_kind("drive_inertia")] = -0.5
    with refused(EstimationError, "not-positive-definite"):
        make_arm(theta)
    theta = true_theta()
    theta[20] = 0.0
    with refused(EstimationError, "no-mass", "joint3", "0 kg"):
        make_arm(theta)


def test_recordings_without_a_controller_are_refused():
    segment = recorded(*closed_loop(), has_gains=False)
    with refused(DatasetError, "no-commands", "kp_a_per_rad", "kd_a_s_per_rad"):
        closed_loop_errors(make_arm(), laas4(), segment)
    with refused(DatasetError, "no-velocity-window", segment.source):
        open_loop_errors(make_arm(), dataclasses.replace(segment, dq_rad_s=None))
