"""The regressor Φ of an arm, for many samples at once: τ = Φ(q, q̇, q̈)·θ ([De Facci 2024], 3.6).

Rigid links come from Pinocchio; friction and drive inertia are columns of our own. The order of θ
is that of `estimation.model.parameters`.

Friction that switches with the sign of a velocity is not a smooth function of the motion: where
torques were filtered, its columns must be worked out at the full rate and filtered alike, or every
reversal counts as an error. `Regressor.switching` gives them, and takes them back.
"""

from __future__ import annotations

import numpy as np
import pinocchio
from numpy.typing import ArrayLike

from daq.robot import Robot
from daq.robot.friction import FrictionShape
from daq.robot.rigid_body import make_model
from estimation.errors import DatasetError
from estimation.model.parameters import Parameters, choose_parameters, coupling_matrix
from estimation.types import FloatArray

SWITCHING = ("coulomb", "asymmetric", "stribeck", "motor_coulomb")
"""Kinds of parameters whose columns jump, or bend, where a velocity changes its sign."""


class Regressor:
    """Turns motion into rows of Φ.

    Attributes:
        robot: Kinematics, gravity and coupling of motors.
        parameters: What θ consists of; by default as the robot file says.
    """

    def __init__(self, robot: Robot, parameters: Parameters | None = None) -> None:
        self.robot = robot
        self.parameters = choose_parameters(robot) if parameters is None else parameters
        self._model = make_model(robot)
        self._data = self._model.createData()
        self._coupling = coupling_matrix(robot)
        self._friction = FrictionShape(
            robot.estimation.stribeck_velocity_rad_s, robot.estimation.smooth_sign_velocity_rad_s
        )
        items = self.parameters.items
        self._switching = [i for i, item in enumerate(items) if item.kind in SWITCHING]

    def switching(self, dq_rad_s: ArrayLike) -> FloatArray:
        """Return the columns of friction that switches, one per parameter of such a kind.

        From velocities (n_samples, n_joints), shape (n_samples, n_switching), each column at its
        own joint or motor.
        """
        dq = self._motion(dq_rad_s)
        motor_dq = dq @ self._coupling.T
        columns = np.empty((len(dq), len(self._switching)))
        for place, index in enumerate(self._switching):
            item = self.parameters.items[index]
            speed = (motor_dq if item.is_coupled else dq)[:, item.joint]
            columns[:, place] = self._column(item.term, speed, speed)
        return columns

    def __call__(
        self,
        q_rad: ArrayLike,
        dq_rad_s: ArrayLike,
        ddq_rad_s2: ArrayLike,
        switching: FloatArray | None = None,
    ) -> FloatArray:
        """Return Φ of every sample, shape (n_samples, n_joints, n_parameters).

        Args:
            q_rad: Joint angles, shape (n_samples, n_joints).
            dq_rad_s: Their velocities, of the same shape.
            ddq_rad_s2: Their accelerations, of the same shape.
            switching: As `switching` returns it, filtered perhaps; by default from `dq_rad_s`.

        Raises:
            DatasetError: Shapes do not fit, or a value is not finite.
        """
        q, dq, ddq = (self._motion(values) for values in (q_rad, dq_rad_s, ddq_rad_s2))
        if not q.shape == dq.shape == ddq.shape:
            raise DatasetError(
                f"positions, velocities and accelerations have the shapes {q.shape}, {dq.shape} "
                f"and {ddq.shape}: they must be the same",
                code="different-shapes",
            )
        phi = np.zeros((*q.shape, len(self.parameters)))
        links = phi[:, :, : self.parameters.inertial_count]
        regress, model, data = pinocchio.computeJointTorqueRegressor, self._model, self._data
        for sample, row in enumerate(links):
            row[:] = regress(model, data, q[sample], dq[sample], ddq[sample])
        self._add_terms(phi, dq, ddq, self.switching(dq) if switching is None else switching)
        return phi

    def inertia_matrices(self, theta: ArrayLike, q_rad: ArrayLike) -> FloatArray:
        """Return B(q) of every posture, drive inertia included, by Φ's own columns.

        Of postures (n_samples, n_joints), shape (n_samples, n_joints, n_joints).
        """
        q = self._motion(q_rad)
        vector = np.asarray(theta, dtype=np.float64)
        rest = np.zeros_like(q)
        gravity = self(q, rest, rest) @ vector
        columns = []
        for joint in range(q.shape[1]):
            push = rest.copy()
            push[:, joint] = 1.0
            columns.append(self(q, rest, push) @ vector - gravity)
        return np.stack(columns, axis=2)

    def _add_terms(
        self, phi: FloatArray, dq: FloatArray, ddq: FloatArray, switching: FloatArray
    ) -> None:
        motor_dq, motor_ddq = dq @ self._coupling.T, ddq @ self._coupling.T
        places = {index: place for place, index in enumerate(self._switching)}
        items = self.parameters.items
        for index in range(self.parameters.inertial_count, len(items)):
            item = items[index]
            joint = item.joint
            if index in places:
                column = switching[:, places[index]]
            else:
                speeds, rates = (motor_dq, motor_ddq) if item.is_coupled else (dq, ddq)
                column = self._column(item.term, speeds[:, joint], rates[:, joint])
            if item.is_coupled:
                phi[:, :, index] = column[:, np.newaxis] * self._coupling[joint]
            else:
                phi[:, joint, index] = column

    def _column(self, term: str, dq: FloatArray, ddq: FloatArray) -> FloatArray:
        """Return what one unit of a term adds to the torque, from velocities of any shape."""
        return ddq if term == "drive_inertia" else self._friction.column(term, dq)

    def _motion(self, values: ArrayLike) -> FloatArray:
        array = np.ascontiguousarray(values, dtype=np.float64)
        joints = self.parameters.joint_count
        if array.ndim != 2 or array.shape[1] != joints:
            raise DatasetError(
                f"motion has the shape {array.shape}: expected (n, {joints})", code="wrong-shape"
            )
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise DatasetError(
                f"motion is not finite in row {row}: leave such rows out", code="not-finite"
            )
        return array
