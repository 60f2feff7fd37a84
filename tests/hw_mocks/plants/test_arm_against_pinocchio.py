"""MuJoCo's arm against Pinocchio's, built here by hand from the same truth."""

import dataclasses

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from hw_mocks.plants.arm_plant import ArmPlant
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.truth import draw_truth

SEEDS = range(5)


def make_pinocchio(robot, truth):
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity_m_s2)
    parent = 0
    for joint, true in zip(robot.joints, truth.joints, strict=True):
        place, link = joint.placement, true.link
        pose = pin.SE3(pin.rpy.rpyToMatrix(*place.rpy_rad), np.array(place.xyz_m))
        parent = model.addJoint(parent, pin.JointModelRZ(), pose, joint.name)
        elements = link.inertia_kg_m2
        order = ("xx", "xy", "yy", "xz", "yz", "zz")
        parameters = [link.mass_kg, *link.first_moment_kg_m, *(getattr(elements, e) for e in order)]
        inertia = pin.Inertia.FromDynamicParameters(np.array(parameters))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    model.armature = np.array(
        [
            true.rotor_inertia_kg_m2 * joint.drive.gear_reduction**2
            for joint, true in zip(robot.joints, truth.joints, strict=True)
        ]
    )
    return model, model.createData()


def random_states(count=40):
    generator = np.random.default_rng(1)
    for _ in range(count):
        yield (generator.uniform(-scale, scale, 4) for scale in (np.pi, 5.0, 3.0))


def without_friction(truth):
    values = {"viscous_motor_nm_s_per_rad": 0.0, "coulomb_joint_nm": 0.0}
    return dataclasses.replace(
        truth, joints=tuple(dataclasses.replace(joint, **values) for joint in truth.joints)
    )


def set_state(plant, position, velocity):
    plant.data.qpos[:], plant.data.qvel[:] = position, velocity
    mujoco.mj_forward(plant.model, plant.data)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_bias_and_gravity(arm, seed):
    truth = draw_truth(arm, seed=seed)
    plant = ArmPlant(arm, truth, Effects())
    model, data = make_pinocchio(arm, truth)
    for q, v, u in random_states():
        set_state(plant, q, v)
        bias = pin.nonLinearEffects(model, data, q, v)
        np.testing.assert_allclose(plant.data.qfrc_bias, bias, rtol=0, atol=1e-11)
        product = np.empty(4)
        mujoco.mj_mulM(plant.model, plant.data, product, u)
        expected = pin.rnea(model, data, q, v, u) - bias
        np.testing.assert_allclose(product, expected, rtol=0, atol=1e-11)
        set_state(plant, q, np.zeros(4))
        gravity = pin.computeGeneralizedGravity(model, data, q)
        np.testing.assert_allclose(plant.data.qfrc_bias, gravity, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_without_friction(arm, seed):
    truth = without_friction(draw_truth(arm, seed=seed))
    plant = ArmPlant(arm, truth, Effects())
    model, data = make_pinocchio(arm, truth)
    for q, v, u in random_states():
        plant.data.qfrc_applied[:] = u
        set_state(plant, q, v)
        acceleration = pin.aba(model, data, q, v, u)
        np.testing.assert_allclose(plant.data.qacc, acceleration, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_from_motor_torques_with_friction(arm, seed):
    """Semi-implicit: friction at its sliding value, viscous friction that of the step's end."""
    truth = draw_truth(arm, seed=seed)
    plant = ArmPlant(arm, truth, Effects())
    model, data = make_pinocchio(arm, truth)
    reduction = np.array([joint.drive.gear_reduction for joint in arm.joints])
    viscous = reduction**2 * [joint.viscous_motor_nm_s_per_rad for joint in truth.joints]
    coulomb = np.array([joint.coulomb_joint_nm for joint in truth.joints])
    h = plant.step_s
    for q, v, u in random_states():
        v[np.abs(v) < 0.5] = 0.5  # sliding, and still so at the end of the step
        set_state(plant, q, v)
        plant.step((u / reduction).tolist())
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        force = u - coulomb * np.sign(v) - pin.nonLinearEffects(model, data, q, v)
        velocity = np.linalg.solve(mass + h * np.diag(viscous), mass @ v + h * force)
        np.testing.assert_allclose(plant.motor_velocity_rad_s, reduction * velocity, atol=1e-7)
        np.testing.assert_allclose(
            plant.motor_position_rad, reduction * (q + h * velocity), atol=1e-9
        )


def test_energy_is_conserved_without_friction(arm):
    truth = without_friction(draw_truth(arm, seed=2))
    plant = ArmPlant(arm, truth, Effects(), posture_rad=[0.3, 0.5, -0.4, 0.8])
    model, data = make_pinocchio(arm, truth)
    kinetic, total = [], []
    for _ in range(3000):
        for _ in range(4):
            plant.step([0.0] * 4)
        q, v = plant.data.qpos.copy(), plant.data.qvel.copy()
        kinetic.append(pin.computeKineticEnergy(model, data, q, v))
        total.append(kinetic[-1] + pin.computePotentialEnergy(model, data, q))
    assert max(kinetic) > 1.0
    assert np.ptp(total) < 0.01 * max(kinetic)
