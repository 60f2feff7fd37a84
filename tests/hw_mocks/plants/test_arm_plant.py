import dataclasses
import math
import subprocess
import sys

import msgspec
import mujoco
import numpy as np
import pytest

from hw_mocks.errors import MockConfigError, MockPhysicsError
from hw_mocks.plants.arm_model import hanging_posture_rad
from hw_mocks.plants.arm_plant import ArmPlant
from hw_mocks.plants.effects import PRESETS, Effects
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.transmission import make_transmission
from hw_mocks.plants.truth import draw_truth

HANGING = [0.0, -math.pi / 2, 0.0, 0.0]


@pytest.fixture(scope="module")
def truth(arm):
    return draw_truth(arm, seed=4)


def change_joints(truth, **values):
    joints = tuple(dataclasses.replace(joint, **values) for joint in truth.joints)
    return dataclasses.replace(truth, joints=joints)


def change_drives(robot, **values):
    joints = tuple(
        msgspec.structs.replace(joint, drive=msgspec.structs.replace(joint.drive, **values))
        for joint in robot.joints
    )
    return msgspec.structs.replace(robot, joints=joints)


def single_joint(robot, truth):
    """The second joint alone, without gravity: a link of 0.03 kg·m² about its joint."""
    robot = msgspec.structs.replace(robot, joints=robot.joints[1:2], gravity_m_s2=(0.0, 0.0, 0.0))
    return robot, dataclasses.replace(truth, joints=truth.joints[1:2])


def load_to(plant, robot, fraction):
    """Motor torques that carry the arm's weight and load each joint by a part of its friction."""
    mujoco.mj_forward(plant.model, plant.data)
    gravity = plant.data.qfrc_bias.tolist()
    return [
        (weight + fraction * joint.drive.friction.coulomb_joint_nm) / joint.drive.gear_reduction
        for weight, joint in zip(gravity, robot.joints, strict=True)
    ]


def run(plant, torques_nm, duration_s):
    for _ in range(round(duration_s / plant.step_s)):
        plant.step(torques_nm)


def test_the_arm_hangs_by_default(arm, truth):
    assert hanging_posture_rad(arm) == HANGING
    assert ArmPlant(arm, truth, Effects()).joint_position_rad == HANGING


def test_a_frictionless_arm_hangs_where_nothing_pulls(arm):
    values = {"viscous_motor_nm_s_per_rad": 0.0, "coulomb_joint_nm": 0.0}
    robot = change_drives(
        arm, friction=msgspec.structs.replace(arm.joints[0].drive.friction, **values)
    )
    plant = ArmPlant(robot, draw_truth(robot, seed=0, spread=0.0), Effects())
    mujoco.mj_forward(plant.model, plant.data)
    assert np.abs(plant.data.qfrc_bias).max() < 1e-9
    assert plant.data.qpos[1] == pytest.approx(-math.pi / 2, abs=0.05)
    assert plant.data.qpos[3] == pytest.approx(math.pi / 2, abs=0.05)


@pytest.mark.parametrize("posture_rad", [HANGING, [0.3, 0.4, -0.7, 1.1]])
@pytest.mark.parametrize("fraction", [-0.9, -0.5, 0.5, 0.9])
def test_friction_holds_below_breakaway(arm, truth, posture_rad, fraction):
    plant = ArmPlant(arm, truth, Effects(), posture_rad=posture_rad)
    run(plant, load_to(plant, arm, fraction), 2.0)
    np.testing.assert_allclose(plant.joint_position_rad, posture_rad, rtol=0, atol=1e-9)


@pytest.mark.parametrize("fraction", [-1.1, 1.1])
@pytest.mark.parametrize("index", range(4))
def test_friction_lets_go_above_breakaway(arm, truth, index, fraction):
    plant = ArmPlant(arm, truth, Effects())
    torques = load_to(plant, arm, 0.0)
    torques[index] = load_to(plant, arm, fraction)[index]
    run(plant, torques, 0.1)
    moved = np.subtract(plant.joint_position_rad, HANGING)
    assert np.abs(moved).argmax() == index
    assert moved[index] * fraction > 1e-4


def test_stribeck_holds_longer(arm, truth):
    plant = ArmPlant(arm, truth, Effects(stribeck=0.3))
    run(plant, load_to(plant, arm, 1.25), 1.0)
    np.testing.assert_allclose(plant.joint_position_rad, HANGING, rtol=0, atol=1e-9)
    run(plant, load_to(plant, arm, 1.35), 0.1)
    assert np.abs(np.subtract(plant.joint_position_rad, HANGING)).max() > 1e-4


def test_friction_is_the_same_on_either_side_of_the_gear(arm, truth):
    joints = tuple(
        dataclasses.replace(
            true,
            viscous_motor_nm_s_per_rad=0.0,
            viscous_joint_nm_s_per_rad=true.viscous_motor_nm_s_per_rad
            * joint.drive.gear_reduction**2,
            coulomb_motor_nm=true.coulomb_joint_nm / joint.drive.gear_reduction,
            coulomb_joint_nm=0.0,
        )
        for joint, true in zip(arm.joints, truth.joints, strict=True)
    )
    plants = [
        ArmPlant(arm, these, Effects())
        for these in (truth, dataclasses.replace(truth, joints=joints))
    ]
    for plant in plants:
        run(plant, [0.02, 0.03, -0.02, 0.01], 0.3)
    one, two = (plant.motor_position_rad for plant in plants)
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_direction_and_offset_of_the_motors(arm, truth):
    mirrored = change_drives(arm, direction=-1, joint_offset_rad=0.1)
    plain, mirror = ArmPlant(arm, truth, Effects()), ArmPlant(mirrored, truth, Effects())
    torques = np.array([0.02, 0.03, -0.02, 0.01])
    run(plain, torques.tolist(), 0.1)
    run(mirror, (-torques).tolist(), 0.1)
    assert mirror.joint_position_rad == pytest.approx(plain.joint_position_rad, abs=1e-12)
    speeds = np.negative(plain.motor_velocity_rad_s)
    assert mirror.motor_velocity_rad_s == pytest.approx(speeds.tolist(), abs=1e-9)
    reduction = np.array([joint.drive.gear_reduction for joint in arm.joints])
    expected = -(np.array(plain.joint_position_rad) - 0.1) * reduction
    assert mirror.motor_position_rad == pytest.approx(expected.tolist(), abs=1e-9)


def test_efficiency_of_the_gear_acts_as_on_the_bench(arm, truth):
    """One joint, no gravity: the arm's plant and the bench's are the same physics."""
    robot, true = single_joint(change_drives(arm, gear_efficiency=0.8), truth)
    joint = robot.joints[0]
    load = true.joints[0].link.inertia_kg_m2.zz
    bare = msgspec.structs.replace(joint, link=None, load_inertia_kg_m2=load)
    bench = msgspec.structs.replace(robot, joints=(bare,))
    bench_truth = change_joints(true, link=None, load_inertia_kg_m2=load)
    for effects in (Effects(), Effects(stribeck=0.3), Effects(joint_resonance_hz=20.0)):
        plants = [make_plant(robot, true, effects, posture_rad=[0.0])]
        plants.append(make_plant(bench, bench_truth, effects))
        for torque_nm in (0.03, -0.05, 0.0):
            speeds = []
            for plant in plants:
                run(plant, [torque_nm], 0.2)
                speeds.append(plant.motor_velocity_rad_s[0])
            # MuJoCo places a reversal to one step: f·h/J, 0.04 rad/s at the motor.
            assert speeds[0] == pytest.approx(speeds[1], abs=0.1)


def test_backlash_seen_when_reversing_slowly_is_the_gap(arm, truth):
    robot, true = single_joint(arm, truth)
    effects = Effects(backlash_rad=math.radians(0.2))
    plant = make_plant(robot, true, effects, posture_rad=[0.0])

    def creep(motor_rad_s):
        track = []
        for _ in range(8000):
            plant.step([0.02 * (motor_rad_s - plant.motor_velocity_rad_s[0])])
            track.append((plant.motor_position_rad[0] / 27.0, plant.joint_position_rad[0]))
        return np.array(track).T

    creep(+0.1)
    rotor, load = creep(-0.1)
    waiting = np.flatnonzero(load > load.max() - 1e-7)[-1]
    teeth_rad = 2 * 0.103 / plant._couplings[0].stiffness_nm_per_rad
    assert rotor.max() - rotor[waiting] - teeth_rad == pytest.approx(math.radians(0.2), rel=0.01)


@pytest.mark.parametrize("resonance_hz", [10.0, 30.0])
def test_rotor_and_link_ring_at_the_stated_frequency(arm, truth, resonance_hz):
    robot, true = single_joint(arm, truth)
    true = change_joints(true, viscous_motor_nm_s_per_rad=0.0, coulomb_joint_nm=0.0)
    rotor = make_transmission(robot.joints[0], true.joints[0]).rotor_inertia_kg_m2
    link = true.joints[0].link.inertia_kg_m2.zz
    plant = make_plant(robot, true, Effects(joint_resonance_hz=resonance_hz), posture_rad=[0.0])
    plant.step([0.05])
    windup = []
    for _ in range(round(8 / resonance_hz / plant.step_s)):
        plant.step([0.0])
        windup.append(plant.motor_position_rad[0] / 27.0 - plant.joint_position_rad[0])
    windup = np.array(windup)
    crossings = np.flatnonzero((windup[:-1] < 0.0) & (windup[1:] >= 0.0))
    exact = crossings - windup[crossings] / (windup[crossings + 1] - windup[crossings])
    measured_hz = (len(exact) - 1) / (exact[-1] - exact[0]) / plant.step_s
    # Held link: the stated frequency. Free link: faster by the reduced inertia.
    assert measured_hz == pytest.approx(resonance_hz * math.sqrt(1 + rotor / link), rel=0.01)


def test_a_gear_too_stiff_for_the_step_is_refused(arm, truth):
    with pytest.raises(MockConfigError) as refused:
        ArmPlant(arm, truth, Effects(joint_resonance_hz=200.0))
    (problem,) = refused.value.problems
    assert problem.startswith("joint_resonance_hz: ")


def test_every_draw_can_have_all_troubles(arm):
    for seed in range(20):
        for effects in (PRESETS["troubles"], Effects(backlash_rad=0.005)):
            ArmPlant(arm, draw_truth(arm, seed=seed), effects)


@pytest.mark.parametrize("missing", ["placement", "link"])
def test_what_is_missing_is_named(arm, missing):
    joints = list(arm.joints)
    joints[2] = msgspec.structs.replace(joints[2], **{missing: None})
    robot = msgspec.structs.replace(arm, joints=tuple(joints))
    with pytest.raises(MockConfigError) as refused:
        make_plant(robot, draw_truth(robot, seed=0), Effects())
    (problem,) = refused.value.problems
    assert problem.startswith(f"joints.joint3.{missing}: ")


@pytest.mark.parametrize("which", ["arm", "bench"])
def test_a_posture_of_another_robot_is_refused(request, which):
    robot = request.getfixturevalue(which)
    with pytest.raises(MockConfigError) as refused:
        make_plant(robot, draw_truth(robot, seed=0), Effects(), posture_rad=[0.0, 0.0])
    (problem,) = refused.value.problems
    assert problem.startswith("posture_rad ")


def test_a_runaway_shows(arm, truth):
    plant = ArmPlant(arm, truth, Effects())
    with pytest.raises(MockPhysicsError) as failed:
        run(plant, [0.3] * 4, 10.0)
    assert failed.value.code == "too-fast"


@pytest.mark.system
def test_the_bench_needs_no_mujoco():
    modules = "sys, hw_mocks.plants.plant, hw_mocks.plants.actuator"
    code = f"import {modules}; assert 'mujoco' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
