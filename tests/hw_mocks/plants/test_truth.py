import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.robot import Friction
from daq.robot.geometry import pseudo_inertia
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.arm_model import make_model
from hw_mocks.plants.truth import draw_truth

SEEDS = st.integers(0, 2**63)


@given(seed=SEEDS, spread=st.floats(0.0, 1.0))
def test_every_draw_is_a_robot_that_can_exist(arm, seed, spread):
    for joint in draw_truth(arm, seed=seed, spread=spread).joints:
        moments = np.array(pseudo_inertia(joint.link))
        scale = np.sqrt(np.diag(moments))
        assert np.linalg.eigvalsh(moments / np.outer(scale, scale)).min() > 0.0
        assert joint.rotor_inertia_kg_m2 > 0.0


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_mujoco_accepts_every_draw(arm, seed):
    make_model(arm, draw_truth(arm, seed=seed), step_s=250e-6)


def test_no_spread_is_cad_exactly(arm, bench):
    truth = draw_truth(arm, seed=7, spread=0.0)
    assert [joint.link for joint in truth.joints] == [joint.link for joint in arm.joints]
    (joint,) = draw_truth(bench, seed=7, spread=0.0).joints
    assert joint.load_inertia_kg_m2 == bench.joints[0].load_inertia_kg_m2
    assert joint.rotor_inertia_kg_m2 == bench.joints[0].drive.rotor_inertia_kg_m2


@given(seed=SEEDS)
def test_friction_is_what_the_bench_measured(arm, seed):
    for joint, true in zip(arm.joints, draw_truth(arm, seed=seed).joints, strict=True):
        assert true.viscous_motor_nm_s_per_rad == joint.drive.friction.viscous_motor_nm_s_per_rad
        assert true.coulomb_joint_nm == joint.drive.friction.coulomb_joint_nm
        assert true.viscous_joint_nm_s_per_rad == true.coulomb_motor_nm == 0.0


def test_friction_may_arise_at_either_side_of_the_gear(bench):
    friction = Friction(
        viscous_motor_nm_s_per_rad=1e-6,
        coulomb_joint_nm=0.1,
        viscous_joint_nm_s_per_rad=2e-3,
        coulomb_motor_nm=3e-3,
    )
    (described,) = bench.joints
    drive = msgspec.structs.replace(described.drive, friction=friction)
    rubbing = msgspec.structs.replace(
        bench, joints=(msgspec.structs.replace(described, drive=drive),)
    )
    (joint,) = draw_truth(rubbing, seed=1).joints
    assert joint.viscous_motor_nm_s_per_rad == 1e-6
    assert joint.coulomb_joint_nm == 0.1
    assert joint.viscous_joint_nm_s_per_rad == 2e-3
    assert joint.coulomb_motor_nm == 3e-3


def _logarithmic_changes(robot, quantity):
    cad = [quantity(joint) for joint in draw_truth(robot, seed=0, spread=0.0).joints]
    draws = [draw_truth(robot, seed=seed).joints for seed in range(300)]
    return np.log([[quantity(joint) for joint in joints] for joints in draws]) - np.log(cad)


@pytest.mark.parametrize(
    "quantity",
    [
        lambda joint: joint.link.mass_kg,
        lambda joint: joint.link.inertia_kg_m2.xx,
        lambda joint: joint.link.inertia_kg_m2.yy,
        lambda joint: joint.link.inertia_kg_m2.zz,
        lambda joint: math.hypot(*joint.link.first_moment_kg_m),
        lambda joint: joint.rotor_inertia_kg_m2,
    ],
    ids=["mass", "Ixx", "Iyy", "Izz", "first moment", "rotor"],
)
def test_parameters_differ_by_about_a_quarter(arm, quantity):
    changes = _logarithmic_changes(arm, quantity)
    rms = np.sqrt(np.mean(changes**2, axis=0))
    assert np.all((rms > 0.17) & (rms < 0.34)), rms


def test_load_inertia_of_the_bench_differs_too(bench):
    changes = _logarithmic_changes(bench, lambda joint: joint.load_inertia_kg_m2)
    assert np.std(changes) == pytest.approx(0.25, rel=0.1)


def test_a_seed_is_repeatable_and_matters(arm):
    assert draw_truth(arm, seed=5) == draw_truth(arm, seed=5)
    assert draw_truth(arm, seed=5).joints != draw_truth(arm, seed=6).joints


def test_the_robot_description_is_left_alone(arm):
    before = msgspec.json.encode(arm)
    draw_truth(arm, seed=1)
    assert msgspec.json.encode(arm) == before


def test_as_dict_is_json_marked_simulated_with_units(arm):
    read = json.loads(json.dumps(draw_truth(arm, seed=5).as_dict()))
    assert read["simulated"] is True
    assert (read["seed"], read["spread"], read["robot"]) == (5, 0.25, "arm")
    joint = read["joints"][1]
    assert joint["name"] == "joint2"
    assert joint["coulomb_joint_nm"] == 0.103
    assert joint["link"]["mass_kg"] == draw_truth(arm, seed=5).joints[1].link.mass_kg
    assert set(joint["link"]["inertia_kg_m2"]) == {"xx", "xy", "yy", "xz", "yz", "zz"}


@pytest.mark.parametrize("spread", [-0.1, 1.1, math.nan])
def test_an_absurd_spread_is_refused(arm, spread):
    with pytest.raises(MockConfigError) as refused:
        draw_truth(arm, seed=0, spread=spread)
    assert refused.value.problems[0].startswith("spread = ")


def test_a_link_that_cannot_exist_is_named(arm):
    joint = arm.joints[2]
    inertia = msgspec.structs.replace(joint.link.inertia_kg_m2, zz=1.0)
    link = msgspec.structs.replace(joint.link, inertia_kg_m2=inertia)
    joints = (*arm.joints[:2], msgspec.structs.replace(joint, link=link), arm.joints[3])
    with pytest.raises(MockConfigError) as refused:
        draw_truth(msgspec.structs.replace(arm, joints=joints), seed=0)
    (problem,) = refused.value.problems
    assert problem.startswith("joints.joint3.link: ")
