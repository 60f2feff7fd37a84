"""The torques of a robot, as its file describes it: what it takes to hold and to move the joints.

Gravity and inertia of links come from Pinocchio, which is loaded only here and only when asked for:
that takes longer than a board waits, so it is done before anything is powered. Joint side, joints
in the robot's order. The file's friction and rotors are added; a payload is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from daq.robot import DrivenJoint, DrivenRobot

UNKNOWN_PAYLOAD_KG = 0.3
"""What an arm may carry without anybody having told it."""


class TorqueModel(Protocol):
    """What the robot's joints need."""

    def gravity_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return the torques that hold the robot at a posture, without friction's help."""
        ...

    def payload_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return how much `UNKNOWN_PAYLOAD_KG` at the arm's end would add to it, without sign."""
        ...

    def inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return what each joint's torque has to turn while the others are held."""
        ...

    def free_inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return the same while the others give way: never more than when they are held."""
        ...

    def torque_nm(
        self, q_rad: Sequence[float], dq_rad_s: Sequence[float], ddq_rad_s2: Sequence[float]
    ) -> list[float]:
        """Return the torques of a motion, friction included."""
        ...


def load_torque_model(robot: DrivenRobot) -> TorqueModel | None:
    """Return the model of a robot; None where its file has no links, or Pinocchio is not there.

    Joints on the bench carry nothing and need no Pinocchio.
    """
    if all(joint.is_on_bench for joint in robot.joints):
        return FreeJoints(robot)
    if any(joint.link is None for joint in robot.joints):
        return None
    try:
        return LinkedArm(robot)
    except ModuleNotFoundError as error:
        if error.name != "pinocchio":
            raise
        return None


class FreeJoints:
    """Joints on the bench: each turns its rotor and its load, and gravity does nothing to it."""

    def __init__(self, robot: DrivenRobot) -> None:
        self._inertia_kg_m2 = [
            joint.drive.joint_inertia_kg_m2 + (joint.load_inertia_kg_m2 or 0.0)
            for joint in robot.joints
        ]
        self._friction = _friction(robot.joints)

    def gravity_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return none."""
        return [0.0] * len(self._inertia_kg_m2)

    def payload_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return none."""
        return [0.0] * len(self._inertia_kg_m2)

    def inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return what each joint turns."""
        return self._inertia_kg_m2

    def free_inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return the same: no joint feels another."""
        return self._inertia_kg_m2

    def torque_nm(
        self, q_rad: Sequence[float], dq_rad_s: Sequence[float], ddq_rad_s2: Sequence[float]
    ) -> list[float]:
        """Return the torques of a motion."""
        parts = zip(self._inertia_kg_m2, ddq_rad_s2, dq_rad_s, self._friction, strict=True)
        return [inertia * ddq + _friction_nm(dq, *law) for inertia, ddq, dq, law in parts]


class LinkedArm:
    """A chain of links on geared motors."""

    def __init__(self, robot: DrivenRobot) -> None:
        # Both take longer to load than a board waits.
        import numpy as np  # noqa: PLC0415
        import pinocchio as pin  # noqa: PLC0415

        from daq.robot.rigid_body import make_model  # noqa: PLC0415

        self._pin: Any = pin
        self._array = np.array
        self._invert, self._upper = np.linalg.inv, np.triu
        self._model: Any = make_model(robot)
        self._model.armature = np.array([j.drive.joint_inertia_kg_m2 for j in robot.joints])
        self._data: Any = self._model.createData()
        self._friction = _friction(robot.joints)
        self._loaded: Any = self._model.copy()
        weight = pin.Inertia(UNKNOWN_PAYLOAD_KG, np.array(_tip_m(robot)), np.zeros((3, 3)))
        self._loaded.appendBodyToJoint(self._loaded.njoints - 1, weight, pin.SE3.Identity())
        self._loaded_data: Any = self._loaded.createData()

    def gravity_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return the torques that hold the arm."""
        torques = self._pin.computeGeneralizedGravity(self._model, self._data, self._array(q_rad))
        gravity_nm: list[float] = torques.tolist()
        return gravity_nm

    def payload_nm(self, q_rad: Sequence[float]) -> list[float]:
        """Return what the payload adds, without sign."""
        torques = self._pin.computeGeneralizedGravity(
            self._loaded, self._loaded_data, self._array(q_rad)
        )
        pairs = zip(torques.tolist(), self.gravity_nm(q_rad), strict=True)
        return [abs(loaded_nm - bare_nm) for loaded_nm, bare_nm in pairs]

    def inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return the diagonal of the mass matrix."""
        inertia: list[float] = self._mass_matrix(q_rad).diagonal().tolist()
        return inertia

    def free_inertia_kg_m2(self, q_rad: Sequence[float]) -> list[float]:
        """Return the reciprocals of its inverse's diagonal."""
        mobility = self._invert(self._mass_matrix(q_rad)).diagonal().tolist()
        return [1.0 / each for each in mobility]

    def torque_nm(
        self, q_rad: Sequence[float], dq_rad_s: Sequence[float], ddq_rad_s2: Sequence[float]
    ) -> list[float]:
        """Return the torques of a motion."""
        array = self._array
        torques = self._pin.rnea(
            self._model, self._data, array(q_rad), array(dq_rad_s), array(ddq_rad_s2)
        )
        parts = zip(torques.tolist(), dq_rad_s, self._friction, strict=True)
        return [torque_nm + _friction_nm(dq, *law) for torque_nm, dq, law in parts]

    def _mass_matrix(self, q_rad: Sequence[float]) -> Any:
        # Pinocchio promises the upper triangle only.
        upper = self._upper(self._pin.crba(self._model, self._data, self._array(q_rad)))
        return upper + self._upper(upper, 1).T


def _tip_m(robot: DrivenRobot) -> tuple[float, float, float]:
    """Return the arm's far end, in the last joint's frame."""
    link = robot.joints[-1].link
    if link is None:
        return 0.0, 0.0, 0.0
    if link.tip_m is not None:
        return link.tip_m
    x, y, z = (2.0 * moment / link.mass_kg for moment in link.first_moment_kg_m)
    return x, y, z


def _friction(joints: Sequence[DrivenJoint]) -> list[tuple[float, float]]:
    """Return Coulomb (N·m) and viscous friction (N·m·s/rad) of each joint."""
    return [
        (joint.drive.joint_coulomb_nm, joint.drive.joint_viscous_nm_s_per_rad) for joint in joints
    ]


def _friction_nm(dq_rad_s: float, coulomb_nm: float, viscous_nm_s_per_rad: float) -> float:
    sign = (dq_rad_s > 0.0) - (dq_rad_s < 0.0)
    return sign * coulomb_nm + viscous_nm_s_per_rad * dq_rad_s
