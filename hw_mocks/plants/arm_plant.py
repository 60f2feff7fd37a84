"""The physics of a whole arm, stepped by MuJoCo.

MuJoCo works in joint coordinates (`arm_model`); this module converts from and to the motors. When
gears have play or spring, the torque of each coupling is applied to the hinges of rotor and link. A
MuJoCo tendon would not do: its damper pulls inside the gap, harder than friction holds the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, mul
from typing import Any, Final

import mujoco
import numpy as np

from daq.robot.description import DrivenRobot
from hw_mocks.errors import MockPhysicsError
from hw_mocks.plants.arm_model import gear_mobilities, hanging_posture_rad, make_model
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.transmission import (
    Coupling,
    MockTransmission,
    check_stiffness,
    make_coupling,
    make_transmission,
    scale_coulomb,
)
from hw_mocks.plants.truth import Truth

_RUNAWAY_RAD_S: Final = 2e4
"""Sum of motor speeds; the arm's motors reach 3e3 on their supply, MuJoCo goes wrong at 1e5."""


class ArmPlant:
    """A `Plant` of a chain of links, at rest in a posture; by default `hanging_posture_rad`.

    Raises:
        MockConfigError: A joint lacks placement or link, a link is not physically consistent, or
            the gear is too stiff for the step.
    """

    def __init__(
        self,
        robot: DrivenRobot,
        truth: Truth,
        effects: Effects,
        *,
        step_s: float = 250e-6,
        posture_rad: Sequence[float] | None = None,
    ) -> None:
        gears = [make_transmission(*pair) for pair in zip(robot.joints, truth.joints, strict=True)]
        has_rotors = not effects.is_gear_rigid
        self.step_s = step_s
        self.model = make_model(robot, truth, step_s=step_s, has_rotors=has_rotors)
        self.data = mujoco.MjData(self.model)

        self._couplings: list[Coupling] = []
        if has_rotors:
            self._couplings = _make_couplings(robot, self.model, gears, effects, step_s)
        self._torque_gains = [gear.joint_nm_per_motor_nm for gear in gears]
        self._turns = [gear.motor_turns_per_turn for gear in gears]
        self._zeros_rad = [gear.motor_position_rad(0.0) for gear in gears]
        self._stribeck = effects.stribeck
        self._sliding = [
            (dof, sliding_nm)
            for dof, sliding_nm in enumerate(self.model.dof_frictionloss.tolist())
            if sliding_nm
        ]

        # Views of MuJoCo's own memory; reading one as a list is the fastest way to Python floats.
        count = len(gears)
        rotors = slice(count, 2 * count) if has_rotors else slice(0, count)
        self._positions, self._velocities = self.data.qpos, self.data.qvel
        self._joint_positions = self.data.qpos[:count]
        self._rotor_positions = self.data.qpos[rotors]
        self._rotor_velocities = self.data.qvel[rotors]
        self._applied = memoryview(self.data.qfrc_applied).cast("B").cast("d")
        self._friction = memoryview(self.model.dof_frictionloss).cast("B").cast("d")

        posture_rad = hanging_posture_rad(robot) if posture_rad is None else posture_rad
        self._joint_positions[:] = self._rotor_positions[:] = posture_rad
        self.motor_position_rad: list[float] = []
        self.motor_velocity_rad_s: list[float] = []
        self._read()

    @property
    def joint_position_rad(self) -> list[float]:
        """Where the links really are; nobody measures it."""
        positions_rad: list[float] = self._joint_positions.tolist()
        return positions_rad

    def step(self, motor_torque_nm: Sequence[float]) -> None:
        """Move on by one step, with a constant torque on each rotor.

        Raises:
            MockPhysicsError: The arm has become too fast to be simulated.
        """
        rotor_nm = map(mul, self._torque_gains, motor_torque_nm)
        if self._couplings:
            self._apply_through_couplings(rotor_nm)
        else:
            applied = self._applied
            for dof, torque_nm in enumerate(rotor_nm):
                applied[dof] = torque_nm
        if self._stribeck:
            self._update_friction()
        mujoco.mj_step(self.model, self.data)
        self._read()

    def _apply_through_couplings(self, rotor_nm: Iterable[float]) -> None:
        applied, couplings = self._applied, self._couplings
        positions_rad, velocities_rad_s = self._positions.tolist(), self._velocities.tolist()
        rotor = len(couplings)
        for link, torque_nm in enumerate(rotor_nm):
            coupling_nm = couplings[link].torque_nm(
                positions_rad[rotor] - positions_rad[link],
                velocities_rad_s[rotor] - velocities_rad_s[link],
            )
            applied[link] = coupling_nm
            applied[rotor] = torque_nm - coupling_nm
            rotor += 1

    def _update_friction(self) -> None:
        friction, stribeck = self._friction, self._stribeck
        velocities_rad_s = self._velocities.tolist()
        for dof, sliding_nm in self._sliding:
            friction[dof] = sliding_nm * scale_coulomb(stribeck, velocities_rad_s[dof])

    def _read(self) -> None:
        # At every step: `map` takes half the time of a comprehension.
        turns = self._turns
        turned_rad = map(mul, turns, self._rotor_positions.tolist())
        self.motor_position_rad = list(map(add, self._zeros_rad, turned_rad))
        self.motor_velocity_rad_s = list(map(mul, turns, self._rotor_velocities.tolist()))
        if not -_RUNAWAY_RAD_S < sum(self.motor_velocity_rad_s) < _RUNAWAY_RAD_S:
            speeds = ", ".join(f"{speed:.0f}" for speed in self.motor_velocity_rad_s)
            raise MockPhysicsError(
                f"the simulated motors turn at {speeds} rad/s, too fast for steps of"
                f" {self.step_s * 1e6:.0f} µs; limit their current or speed",
                code="too-fast",
            )


def _make_couplings(
    robot: DrivenRobot,
    model: Any,
    gears: Sequence[MockTransmission],
    effects: Effects,
    step_s: float,
) -> list[Coupling]:
    mobilities = gear_mobilities(model)
    couplings = [
        make_coupling(gear, effects, reduced_inertia_kg_m2=1.0 / mobility, step_s=step_s)
        for gear, mobility in zip(
            gears, mobilities.diagonal(axis1=1, axis2=2).max(axis=0).tolist(), strict=True
        )
    ]
    roots = np.sqrt([coupling.stiffness_nm_per_rad for coupling in couplings])
    squared_rad2_s2 = np.linalg.eigvalsh(roots[:, None] * mobilities * roots)
    check_stiffness(robot, float(squared_rad2_s2.max()), step_s)
    return couplings
