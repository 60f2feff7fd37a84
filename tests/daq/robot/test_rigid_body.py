"""The Pinocchio model against MuJoCo's, and its joints where placements and DH rows put them."""

import math

import msgspec
import mujoco
import numpy as np
import numpy.typing as npt
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.robot import DhRow, Joint, JointLimits, Robot, load_robot
from daq.robot.geometry import joint_poses
from daq.robot.rigid_body import make_model
from hw_mocks.plants import arm_model
from hw_mocks.plants.truth import draw_truth

Matrix = npt.NDArray[np.float64]
LIMITS = JointLimits(
    position_min_rad=-3.0, position_max_rad=2.0, velocity_max_rad_s=4.0, torque_max_nm=5.0
)
lengths = st.floats(-1.0, 1.0)
angles = st.floats(-math.pi, math.pi)
rows = st.lists(
    st.builds(DhRow, a_m=lengths, d_m=lengths, alpha_rad=angles, theta_offset_rad=angles),
    min_size=1,
    max_size=7,
)


def robot_of(rows: list[DhRow], convention: str) -> Robot:
    joints = tuple(Joint(name=f"q{i}", limits=LIMITS, dh=row) for i, row in enumerate(rows))
    robot = Robot(schema=1, name="chain", description="", joints=joints)
    return msgspec.structs.replace(robot, dh_convention=convention)


def screw(axis: int, angle: float, shift: float) -> Matrix:
    """A turn about an axis and a shift along it, by Rodrigues' formula."""
    unit = np.eye(3)[axis]
    cross = np.cross(np.eye(3), unit)  # rows e_i × unit: the matrix of unit ×
    pose = np.eye(4)
    pose[:3, :3] = np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * (cross @ cross)
    pose[:3, 3] = shift * unit
    return pose


def compare_with_mujoco(robot: Robot) -> None:
    truth = draw_truth(robot, seed=0, spread=0.0)
    theirs = arm_model.make_model(robot, truth, step_s=1e-3)
    theirs.dof_armature[:] = theirs.dof_damping[:] = theirs.dof_frictionloss[:] = 0.0
    simulated = mujoco.MjData(theirs)
    model = make_model(robot)
    data = model.createData()
    generator = np.random.default_rng(3)
    for _ in range(50):
        q, v, a = (generator.uniform(-scale, scale, model.nv) for scale in (math.pi, 5.0, 40.0))
        simulated.qpos[:], simulated.qvel[:], simulated.qacc[:] = q, v, a
        mujoco.mj_inverse(theirs, simulated)
        torque = pin.rnea(model, data, q, v, a)
        error = np.abs(simulated.qfrc_inverse - torque).max()
        assert error <= 1e-9 * np.abs(torque).max()


def test_inverse_dynamics_against_mujoco() -> None:
    compare_with_mujoco(load_robot("laas4"))


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_an_arm_placed_by_dh_rows_against_mujoco(convention: str) -> None:
    arm = load_robot("laas4")
    joints = tuple(msgspec.structs.replace(joint, placement=None) for joint in arm.joints)
    compare_with_mujoco(msgspec.structs.replace(arm, joints=joints, dh_convention=convention))


@settings(max_examples=50, deadline=None)
@given(rows=rows, data=st.data())
def test_standard_rows_lead_to_the_tool(rows: list[DhRow], data: st.DataObject) -> None:
    q = np.array(data.draw(st.lists(angles, min_size=len(rows), max_size=len(rows))))
    expected = np.eye(4)
    for row, angle in zip(rows, q, strict=True):
        turned = expected @ screw(2, angle + row.theta_offset_rad, 0.0)
        expected = turned @ screw(2, 0.0, row.d_m) @ screw(0, row.alpha_rad, row.a_m)
    model = make_model(robot_of(rows, "standard"))
    found = model.createData()
    pin.forwardKinematics(model, found, q)
    # The last joint's frame, before its row leads on to the tool.
    np.testing.assert_allclose(found.oMi[len(rows)].homogeneous, turned, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(rows=rows, data=st.data())
def test_modified_rows_are_the_joint_frames(rows: list[DhRow], data: st.DataObject) -> None:
    q = np.array(data.draw(st.lists(angles, min_size=len(rows), max_size=len(rows))))
    model = make_model(robot_of(rows, "modified"))
    found = model.createData()
    pin.forwardKinematics(model, found, q)
    frame = np.eye(4)
    for index, (row, angle) in enumerate(zip(rows, q, strict=True)):
        tilted = frame @ screw(0, row.alpha_rad, row.a_m)
        frame = tilted @ screw(2, angle + row.theta_offset_rad, row.d_m)
        np.testing.assert_allclose(found.oMi[index + 1].homogeneous, frame, atol=1e-12)


def test_placements_go_before_rows() -> None:
    arm = load_robot("laas4")
    np.testing.assert_allclose(np.array(joint_poses(arm)[2])[:3, 3], [0.325, 0.0, 0.0])


def test_names_limits_and_gravity() -> None:
    robot = msgspec.structs.replace(
        robot_of([DhRow(a_m=0.1, d_m=0.0, alpha_rad=0.3)] * 2, "modified"),
        gravity_m_s2=(0.0, 9.81, 0.0),
    )
    model = make_model(robot)
    assert list(model.names) == ["universe", "q0", "q1"]
    assert model.lowerPositionLimit.tolist() == [-3.0, -3.0]
    assert model.upperPositionLimit.tolist() == [2.0, 2.0]
    assert model.velocityLimit.tolist() == [4.0, 4.0]
    assert model.effortLimit.tolist() == [5.0, 5.0]
    assert model.gravity.linear.tolist() == [0.0, 9.81, 0.0]


def test_an_unknown_link_weighs_nothing() -> None:
    model = make_model(robot_of([DhRow(a_m=0.1, d_m=0.0, alpha_rad=0.3)] * 3, "standard"))
    torque = pin.rnea(model, model.createData(), *np.random.default_rng(0).normal(size=(3, 3)))
    assert torque.tolist() == [0.0, 0.0, 0.0]


def test_a_joint_on_the_bench_turns_its_load() -> None:
    model = make_model(load_robot("bench1"))
    q, v, a = np.ones(1), np.ones(1), np.array([2.0])
    np.testing.assert_allclose(pin.rnea(model, model.createData(), q, v, a), [2e-4])
