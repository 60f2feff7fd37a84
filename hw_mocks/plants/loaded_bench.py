"""A joint on the bench whose output is not simply free: a weight, end stops, a gear that slips.

It is separate from `bench_plant`, where every microsecond counts: most benches have none of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from daq.robot.description import DrivenRobot
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.bench_plant import BenchPlant, Shaft
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.load_arm import MockLoadArm
from hw_mocks.plants.truth import Truth


class LoadedBench(BenchPlant):
    """A `Plant` of one joint with `end_stop_rad`, `gear_slip` and a load arm.

    Angles count from where the joint starts: there the load arm hangs, the stops are at either side
    of it, and the gear slips around the angle half a turn away. Where it slips, the output turns
    along but nothing on it is felt at the motor, only its end stops are.

    The truth is without the load arm.

    Raises:
        MockConfigError: A mass that must be there is zero, or the gear is too stiff for the step.
    """

    def __init__(
        self,
        robot: DrivenRobot,
        truth: Truth,
        effects: Effects,
        *,
        load_arm: MockLoadArm | None = None,
        step_s: float = 250e-6,
        joint_position_rad: float = 0.0,
    ) -> None:
        loaded = truth if load_arm is None else _with_load(truth, load_arm.inertia_kg_m2)
        super().__init__(
            robot, loaded, effects, step_s=step_s, joint_position_rad=joint_position_rad
        )
        self._start_rad = joint_position_rad
        self._weight_nm = load_arm.weight_nm(robot.gravity_m_s2) if load_arm else 0.0
        self._end_stop_rad = effects.end_stop_rad or math.inf
        self._half_slip = 0.5 * effects.gear_slip
        self._slipping: Shaft | None = None
        if effects.gear_slip:
            gear = self._gear
            if not gear.rotor_inertia_kg_m2:
                problem = "gear_slip: the rotor, then alone, has no inertia; it cannot be simulated"
                raise MockConfigError(f"mock of robot {robot.name}", [problem])
            self._slipping = Shaft(
                inertia_kg_m2=gear.rotor_inertia_kg_m2,
                viscous_nm_s_per_rad=gear.rotor_viscous_nm_s_per_rad,
                coulomb_nm=gear.rotor_coulomb_nm,
                stribeck=effects.stribeck,
                position_rad=joint_position_rad,
                step_s=step_s,
            )

    def step(self, motor_torque_nm: Sequence[float]) -> None:
        """Move on by one step, with a constant torque on the rotor."""
        gear, rotor, load, alone = self._gear, self._rotor, self._load, self._slipping
        if alone is not None and self._is_slipping_at(rotor.position_rad):
            alone.position_rad, alone.velocity_rad_s = rotor.position_rad, rotor.velocity_rad_s
            alone.advance(motor_torque_nm[0] * gear.joint_nm_per_motor_nm)
            self._meet_end_stop(alone)
            rotor.position_rad = load.position_rad = alone.position_rad
            rotor.velocity_rad_s = load.velocity_rad_s = alone.velocity_rad_s
        else:
            # Half a step ahead, as the gear's spring: a pendulum keeps its energy, too.
            halfway_rad = load.position_rad + 0.5 * self.step_s * load.velocity_rad_s
            self._output_nm = -self._weight_nm * math.sin(halfway_rad - self._start_rad)
            super().step(motor_torque_nm)
            self._meet_end_stop(load)
        self.motor_position_rad[0] = gear.motor_position_rad(rotor.position_rad)
        self.motor_velocity_rad_s[0] = rotor.velocity_rad_s * gear.motor_turns_per_turn

    def _is_slipping_at(self, joint_rad: float) -> bool:
        turn = (joint_rad - self._start_rad) / math.tau % 1.0
        return abs(turn - 0.5) < self._half_slip

    def _meet_end_stop(self, shaft: Shaft) -> None:
        """Hold a shaft that got as far as a stop there, until something turns it back."""
        turned_rad = shaft.position_rad - self._start_rad
        if not -self._end_stop_rad < turned_rad < self._end_stop_rad:
            shaft.position_rad = self._start_rad + math.copysign(self._end_stop_rad, turned_rad)
            shaft.velocity_rad_s = 0.0


def _with_load(truth: Truth, inertia_kg_m2: float) -> Truth:
    (joint,) = truth.joints
    loaded_kg_m2 = joint.load_inertia_kg_m2 + inertia_kg_m2
    loaded = dataclasses.replace(joint, load_inertia_kg_m2=loaded_kg_m2)
    return dataclasses.replace(truth, joints=(loaded,))
