"""The MuJoCo model of an arm, generated from robot description and truth, and how the arm hangs.

One hinge per joint, in joint coordinates, with the rotor as armature; or, for gears with play or
spring, a second row of hinges for the rotors, after the joints and on axes of their own. Friction
that holds is MuJoCo's `frictionloss`. There are no contacts and no joint limits.
"""

from __future__ import annotations

import math
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt

from daq.robot import DrivenJoint, DrivenRobot
from daq.robot.geometry import Matrix, joint_poses
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.transmission import make_transmission
from hw_mocks.plants.truth import JointTruth, Truth, draw_truth, inertia_matrix

Array = npt.NDArray[np.float64]

# Friction must hold. At half the breakaway torque MuJoCo's defaults creep by 5 mrad/s, the shortest
# time constant it takes (two steps) with the hardest impedance by 0.1 µrad/s, and with three sweeps
# of the no-slip solver on top by 10 prad/s. That solver alone holds too, but gets sliding wrong.
_HARDEST_IMPEDANCE: Final = (0.9999, 0.9999, 0.001, 0.5, 2.0)
_NO_SLIP_SWEEPS: Final = 3
_WITHOUT: Final = int(
    mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_ISLAND  # one chain needs no search for islands
    | mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a runaway must show, not jump back to the start
)
_ROTOR_BODY_KG: Final = 1e-9
"""MuJoCo wants bodies to have mass and inertia; that of a rotor is its hinge's armature."""


def make_model(robot: DrivenRobot, truth: Truth, *, step_s: float, has_rotors: bool = False) -> Any:
    """Generate the `mujoco.MjModel` of an arm, with rotors as hinges of their own or without.

    Raises:
        MockConfigError: A joint lacks placement or link, or a link is not physically consistent.
    """
    spec = mujoco.MjSpec()
    spec.option.timestep = step_s
    spec.option.gravity = robot.gravity_m_s2
    spec.option.noslip_iterations = _NO_SLIP_SWEEPS
    spec.option.disableflags = _WITHOUT
    gears = [make_transmission(*pair) for pair in zip(robot.joints, truth.joints, strict=True)]
    link = spec.worldbody
    parts = zip(robot.joints, truth.joints, gears, joint_poses(robot), strict=True)
    for joint, true, gear, pose in parts:
        link = _add_link(robot, joint, true, link)
        _place(link, joint, pose)
        if has_rotors:
            _add_hinge(link, 0.0, gear.joint_coulomb_nm, step_s)
        else:
            _add_hinge(link, gear.rotor_inertia_kg_m2, gear.coulomb_nm, step_s)
    viscous = [gear.viscous_nm_s_per_rad for gear in gears]
    if has_rotors:
        for gear in gears:
            inertia = _ROTOR_BODY_KG * np.eye(3)
            rotor = _add_body(spec.worldbody, _ROTOR_BODY_KG, np.zeros(3), inertia)
            _add_hinge(rotor, gear.rotor_inertia_kg_m2, gear.rotor_coulomb_nm, step_s)
        viscous = [gear.joint_viscous_nm_s_per_rad for gear in gears]
        viscous += [gear.rotor_viscous_nm_s_per_rad for gear in gears]
    try:
        model = spec.compile()
    except ValueError as error:
        raise MockConfigError(f"robot {robot.name}", [f"MuJoCo refuses it: {error}"]) from error
    model.dof_damping[:] = viscous  # the specification's own field changed its shape with MuJoCo 4
    return model


def gear_mobilities(model: Any, *, posture_count: int = 100) -> Array:
    """Return how easily torques in the gears wind them up, with every rotor and link free.

    The postures are drawn at random but always the same; the model must have rotors.

    Returns:
        Angular acceleration of rotors against links per torque, shape (n_postures, n_joints,
        n_joints); the inverse of a diagonal element is that gear's reduced inertia.
    """
    count = model.nv // 2
    windup = np.hstack([-np.eye(count), np.eye(count)])
    response = np.empty_like(windup)
    data = mujoco.MjData(model)
    generator = np.random.default_rng(0)
    mobilities = np.empty((posture_count, count, count))
    for mobility in mobilities:
        data.qpos[:] = generator.uniform(-math.pi, math.pi, size=model.nq)
        mujoco.mj_forward(model, data)
        mujoco.mj_solveM(model, data, response, windup)
        mobility[:] = windup @ response.T
    return mobilities


def hanging_posture_rad(robot: DrivenRobot) -> list[float]:
    """Return where the arm comes to rest when let go at zero angles, by the robot file's values.

    From base to tip, each joint that friction does not hold goes to where its gravity torque
    vanishes and the arm is lowest, or to the nearest quarter turn when friction holds it there,
    within its limits.

    Raises:
        MockConfigError: As `make_model`.
    """
    model = make_model(robot, draw_truth(robot, seed=0, spread=0.0), step_s=1e-3)
    data = mujoco.MjData(model)
    holding_nm = model.dof_frictionloss + 1e-9

    def gravity_nm(index: int, position_rad: float) -> float:
        data.qpos[index] = position_rad
        mujoco.mj_forward(model, data)
        return float(data.qfrc_bias[index])

    for _ in range(100):
        mujoco.mj_forward(model, data)
        if np.all(np.abs(data.qfrc_bias) <= holding_nm):
            break
        for index, joint in enumerate(robot.joints):
            here_rad = float(data.qpos[index])
            here_nm = gravity_nm(index, here_rad)
            if abs(here_nm) <= holding_nm[index]:
                continue
            # Along one joint the gravity torque is a sine: two values determine it.
            turned_nm = gravity_nm(index, here_rad + math.pi / 2)
            lowest_rad = math.remainder(here_rad + math.atan2(-here_nm, turned_nm), math.tau)
            quarter_rad = round(lowest_rad / (math.pi / 2)) * (math.pi / 2)
            is_held = abs(gravity_nm(index, quarter_rad)) <= holding_nm[index]
            lowest, highest = joint.limits.position_min_rad, joint.limits.position_max_rad
            data.qpos[index] = min(max(quarter_rad if is_held else lowest_rad, lowest), highest)
    posture_rad: list[float] = data.qpos.tolist()
    return posture_rad


def _add_link(robot: DrivenRobot, joint: DrivenJoint, true: JointTruth, parent: Any) -> Any:
    if true.link is None or (joint.placement is None and joint.dh is None):
        missing = "link" if true.link is None else "placement"
        problem = f"joints.{joint.name}.{missing}: missing; the physics of an arm needs it"
        raise MockConfigError(f"robot {robot.name}", [problem])
    link = true.link
    centre = np.array(link.first_moment_kg_m) / link.mass_kg
    steiner = link.mass_kg * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    body = _add_body(parent, link.mass_kg, centre, inertia_matrix(link) - steiner)
    body.name = joint.name
    return body


def _place(body: Any, joint: DrivenJoint, pose: Matrix) -> None:
    quaternion = np.empty(4)
    if joint.placement is not None:  # exactly as stated, without the rounding of a matrix
        mujoco.mju_euler2Quat(quaternion, np.array(joint.placement.rpy_rad), "XYZ")
        body.pos, body.quat = joint.placement.xyz_m, quaternion
        return
    matrix = np.array(pose)
    mujoco.mju_mat2Quat(quaternion, matrix[:3, :3].ravel())
    body.pos, body.quat = matrix[:3, 3], quaternion


def _add_body(parent: Any, mass_kg: float, centre_m: Array, inertia_kg_m2: Array) -> Any:
    """Add a body, given its inertia about the centre of mass; MuJoCo wants principal axes."""
    moments, axes = np.linalg.eigh(inertia_kg_m2)
    axes *= np.linalg.det(axes)  # a rotation, not a reflection
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, axes.ravel())
    return parent.add_body(
        mass=mass_kg, ipos=centre_m, inertia=moments, iquat=quaternion, explicitinertial=True
    )


def _add_hinge(body: Any, armature_kg_m2: float, coulomb_nm: float, step_s: float) -> None:
    body.add_joint(
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=(0.0, 0.0, 1.0),
        armature=armature_kg_m2,
        frictionloss=coulomb_nm,
        solref_friction=(2.0 * step_s, 1.0),
        solimp_friction=_HARDEST_IMPEDANCE,
    )
