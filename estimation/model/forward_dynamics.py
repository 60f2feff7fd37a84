"""An identified arm that moves: B(q)·q̈ = τ − n(q, q̇) − friction(q̇), stepped in time.

```
(B(q½) + h·D(q̇))·q̈ = τ − n(q½, q̇½) − f(q̇)        q½ = q + h/2·q̇,  q̇½ = q̇ + h/2·q̈ of the step before
q̇ ← q̇ + h·q̈                                     q ← q + h/2·(q̇ before + q̇ after)
```

D = ∂f/∂q̇ makes the step implicit in the friction alone: the sign of Coulomb friction is replaced
by tanh(q̇/v₀), steep enough for a joint to stick and too steep for an explicit step. Not modelled:
elastic gears, play, limits of joints.
"""

from __future__ import annotations

import numpy as np
import pinocchio
from numpy.typing import ArrayLike

from daq.robot import Robot
from daq.robot.friction import FrictionShape
from daq.robot.rigid_body import make_model
from estimation.errors import EstimationError
from estimation.model.parameters import COUPLED_TERMS, TERMS, Parameters, coupling_matrix
from estimation.types import FloatArray

STICK_RAD_S = 2e-3
"""v₀ where the robot file states none. At half of its breakaway torque a joint creeps at half of
this."""
_POSTURES = 300


class ForwardDynamics:
    """An arm with given parameters θ, shape (p,).

    Attributes:
        joint_count: How many joints.

    Raises:
        EstimationError: No such arm can move: a link's mass is zero, or B(q) is not positive
            definite somewhere.
    """

    def __init__(self, robot: Robot, parameters: Parameters, theta: ArrayLike) -> None:
        vector = np.asarray(theta, dtype=np.float64)
        self.joint_count = parameters.joint_count
        self._model = make_model(robot)
        for joint in range(self.joint_count):
            link = vector[parameters.link(joint)]
            if not np.isfinite(link).all() or abs(float(link[0])) < 1e-9:
                raise EstimationError(
                    f"the link of {parameters.joint_names[joint]} has a mass of {link[0]:g} kg: it "
                    "cannot be simulated",
                    code="no-mass",
                )
            self._model.inertias[joint + 1] = pinocchio.Inertia.FromDynamicParameters(link)
        self._data = self._model.createData()
        self._smooth_rad_s = robot.estimation.smooth_sign_velocity_rad_s or STICK_RAD_S
        self._shape = FrictionShape(robot.estimation.stribeck_velocity_rad_s, self._smooth_rad_s)
        self._terms = {
            term.name: _values(parameters, vector, term.name, self.joint_count) for term in TERMS
        }
        self._motor_terms = {
            name: _values(parameters, vector, f"motor_{name}", self.joint_count)
            for name in COUPLED_TERMS
        }
        self._coupling = coupling_matrix(robot)
        self._has_motors = bool(parameters.coupled_motors)
        motors = self._motor_terms["drive_inertia"]
        self._drive_inertia = (
            np.diag(self._terms["drive_inertia"]) + (self._coupling.T * motors) @ self._coupling
        )
        self._has_stribeck = bool(self._terms["stribeck"].any())
        self._identity = np.eye(self.joint_count)
        self._check_inertia(parameters)

    def inertia(self, q_rad: FloatArray) -> FloatArray:
        """B(q) with drive inertia, shape (n_joints, n_joints)."""
        matrix: FloatArray = pinocchio.crba(self._model, self._data, q_rad)
        return matrix + self._drive_inertia

    def friction(self, dq_rad_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f(q̇), offsets included, shape (n_joints,), and D(q̇), shape (n_joints, n_joints)."""
        force, slope = self._friction(dq_rad_s, self._terms)
        terms = self._terms
        force = force + terms["offset"] + terms["asymmetric"] * np.abs(dq_rad_s)
        if self._has_stribeck:
            force += terms["stribeck"] * self._shape.column("stribeck", dq_rad_s)
        slopes = self._identity * slope
        if self._has_motors:
            coupling = self._coupling
            motor_force, motor_slope = self._friction(coupling @ dq_rad_s, self._motor_terms)
            force = force + coupling.T @ motor_force
            slopes = slopes + (coupling.T * motor_slope) @ coupling
        return force, slopes

    def acceleration(
        self, q_rad: FloatArray, dq_rad_s: FloatArray, tau_nm: FloatArray
    ) -> FloatArray:
        """q̈ of a state under torques, shape (n_joints,) each."""
        bias = pinocchio.nonLinearEffects(self._model, self._data, q_rad, dq_rad_s)
        result: FloatArray = np.linalg.solve(
            self.inertia(q_rad), tau_nm - bias - self.friction(dq_rad_s)[0]
        )
        return result

    def step(
        self,
        q_rad: FloatArray,
        dq_rad_s: FloatArray,
        ddq_rad_s2: FloatArray,
        tau_nm: FloatArray,
        step_s: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return angles and velocities after one step, and accelerations in it, (n_joints,) each.

        Takes accelerations of the step before, and torques of the drives during the step.
        """
        half_s = 0.5 * step_s
        middle = q_rad + half_s * dq_rad_s
        bias = pinocchio.nonLinearEffects(
            self._model, self._data, middle, dq_rad_s + half_s * ddq_rad_s2
        )
        force, slopes = self.friction(dq_rad_s)
        ddq = np.linalg.solve(self.inertia(middle) + step_s * slopes, tau_nm - bias - force)
        dq = dq_rad_s + step_s * ddq
        return q_rad + half_s * (dq_rad_s + dq), dq, ddq

    def _friction(
        self, speed: FloatArray, terms: dict[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        sign = self._shape.sign(speed)
        viscous, coulomb = terms["viscous"], terms["coulomb"]
        slope = viscous + coulomb * ((1.0 - sign * sign) / self._smooth_rad_s)
        # Estimates may have negative friction: a slope that drives is no help to an implicit step.
        return viscous * speed + coulomb * sign, np.maximum(slope, 0.0)

    def _check_inertia(self, parameters: Parameters) -> None:
        generator = np.random.default_rng(0)
        postures = generator.uniform(-np.pi, np.pi, (_POSTURES, self.joint_count))
        least = np.linalg.eigvalsh(np.stack([self.inertia(q) for q in postures]))[:, 0]
        if not least.min() > 0.0:
            worst = postures[int(np.argmin(least))]
            shown = ", ".join(f"{angle:.2f}" for angle in worst)
            raise EstimationError(
                f"the inertia matrix of these parameters is not positive definite (least "
                f"eigenvalue {least.min():.2g} kg·m² at q = {shown} rad; {int(np.sum(least <= 0))}"
                f" of {_POSTURES} postures of {', '.join(parameters.joint_names)}): such an arm "
                "cannot move; use a method that keeps to physics (cls2)",
                code="not-positive-definite",
            )


def _values(parameters: Parameters, theta: FloatArray, kind: str, joints: int) -> FloatArray:
    """Of one kind, by joint; zero where the model does not have it."""
    values = np.zeros(joints)
    for index in parameters.of_kind(kind):
        values[parameters.items[index].joint] = theta[index]
    return values
