"""One joint on the bench: motor, gear and a load inertia ([De Facci 2024], 4.8 to 4.11).

The torque is constant during a step, so that each mass has a closed-form motion: it is integrated
exactly, through standstill and reversal too, and friction really holds it below breakaway.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from daq.robot.description import DrivenRobot
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.transmission import (
    Coupling,
    check_stiffness,
    make_coupling,
    make_transmission,
    scale_coulomb,
)
from hw_mocks.plants.truth import Truth


class Shaft:
    """A turning mass with viscous and Coulomb friction: J·dω/dt + b·ω + f·sgn(ω) = τ.

    It starts at rest. J is not zero; `stribeck` is relative extra friction at standstill.
    """

    def __init__(
        self,
        *,
        inertia_kg_m2: float,
        viscous_nm_s_per_rad: float,
        coulomb_nm: float,
        stribeck: float,
        position_rad: float,
        step_s: float,
    ) -> None:
        self.position_rad = position_rad
        self.velocity_rad_s = 0.0
        self._inertia_kg_m2 = inertia_kg_m2
        self._viscous_nm_s_per_rad = viscous_nm_s_per_rad
        self._coulomb_nm = coulomb_nm
        self._stribeck = stribeck
        self._step_s = step_s
        self._step_gains = self._gains(step_s)

    def advance(self, torque_nm: float) -> None:
        """Move on by one step under a constant torque."""
        velocity_rad_s = self.velocity_rad_s
        coulomb_nm = self._coulomb_nm
        if self._stribeck:
            coulomb_nm *= scale_coulomb(self._stribeck, velocity_rad_s)
        if velocity_rad_s == 0.0:
            if -coulomb_nm <= torque_nm <= coulomb_nm:
                return
            direction = math.copysign(1.0, torque_nm)
        else:
            direction = math.copysign(1.0, velocity_rad_s)
        net_nm = torque_nm - direction * coulomb_nm
        decay, glide_s, rad_s_per_nm, rad_per_nm = self._step_gains
        end_rad_s = velocity_rad_s * decay + net_nm * rad_s_per_nm
        if net_nm * direction >= 0.0 or end_rad_s * direction > 0.0:
            self.position_rad += velocity_rad_s * glide_s + net_nm * rad_per_nm
            self.velocity_rad_s = end_rad_s
        else:
            self._stop_and_go(torque_nm, net_nm)

    def _stop_and_go(self, torque_nm: float, net_nm: float) -> None:
        """Advance by a step in which the shaft comes to rest, and stays there or turns back."""
        velocity_rad_s = self.velocity_rad_s
        lag = -self._viscous_nm_s_per_rad * velocity_rad_s / net_nm
        stop_s = -self._inertia_kg_m2 * velocity_rad_s / net_nm
        if lag:
            stop_s *= math.log1p(lag) / lag
        _, glide_s, _, rad_per_nm = self._gains(stop_s)
        self.position_rad += velocity_rad_s * glide_s + net_nm * rad_per_nm
        self.velocity_rad_s = 0.0

        coulomb_nm = self._coulomb_nm * (1.0 + self._stribeck)
        if not -coulomb_nm <= torque_nm <= coulomb_nm:
            net_nm = torque_nm - math.copysign(coulomb_nm, torque_nm)
            _, _, rad_s_per_nm, rad_per_nm = self._gains(max(0.0, self._step_s - stop_s))
            self.position_rad += net_nm * rad_per_nm
            self.velocity_rad_s = net_nm * rad_s_per_nm

    def _gains(self, duration_s: float) -> tuple[float, float, float, float]:
        """Return velocity kept, distance per velocity, velocity per torque, distance per torque."""
        decay = duration_s * self._viscous_nm_s_per_rad / self._inertia_kg_m2
        if decay > 1e-2:
            first = -math.expm1(-decay) / decay
            second = (1.0 - first) / decay
        else:  # the same functions as series: the closed forms cancel
            second = 0.5 - decay * (1 / 6 - decay * (1 / 24 - decay * (1 / 120 - decay / 720)))
            first = 1.0 - decay * second
        glide_s = duration_s * first
        return (
            math.exp(-decay),
            glide_s,
            glide_s / self._inertia_kg_m2,
            duration_s * duration_s * second / self._inertia_kg_m2,
        )


class BenchPlant:
    """A `Plant` of one joint without a link; two masses when the gear has play or spring.

    It starts at rest and has no `BENCH_ONLY` effects: those are in `loaded_bench`.

    Raises:
        MockConfigError: A mass that must be there is zero, or the gear is too stiff for the step.
    """

    def __init__(
        self,
        robot: DrivenRobot,
        truth: Truth,
        effects: Effects,
        *,
        step_s: float = 250e-6,
        joint_position_rad: float = 0.0,
    ) -> None:
        (joint,), (true,) = robot.joints, truth.joints
        gear = make_transmission(joint, true)
        shaft = functools.partial(
            Shaft, stribeck=effects.stribeck, position_rad=joint_position_rad, step_s=step_s
        )
        rotor_kg_m2, load_kg_m2 = gear.rotor_inertia_kg_m2, true.load_inertia_kg_m2
        total_kg_m2 = rotor_kg_m2 + load_kg_m2
        if not (total_kg_m2 if effects.is_gear_rigid else rotor_kg_m2 * load_kg_m2):
            problem = f"joints.{joint.name}: a moving part has no inertia; nothing can be simulated"
            raise MockConfigError(f"robot {robot.name}", [problem])
        self._coupling: Coupling | None = None
        if effects.is_gear_rigid:
            self._rotor = self._load = shaft(
                inertia_kg_m2=total_kg_m2,
                viscous_nm_s_per_rad=gear.viscous_nm_s_per_rad,
                coulomb_nm=gear.coulomb_nm,
            )
        else:
            reduced_kg_m2 = rotor_kg_m2 * load_kg_m2 / total_kg_m2
            self._coupling = make_coupling(
                gear, effects, reduced_inertia_kg_m2=reduced_kg_m2, step_s=step_s
            )
            check_stiffness(robot, self._coupling.stiffness_nm_per_rad / reduced_kg_m2, step_s)
            self._rotor = shaft(
                inertia_kg_m2=rotor_kg_m2,
                viscous_nm_s_per_rad=gear.rotor_viscous_nm_s_per_rad,
                coulomb_nm=gear.rotor_coulomb_nm,
            )
            self._load = shaft(
                inertia_kg_m2=load_kg_m2,
                viscous_nm_s_per_rad=gear.joint_viscous_nm_s_per_rad,
                coulomb_nm=gear.joint_coulomb_nm,
            )
        self._gear = gear
        self._output_nm = 0.0  # what acts on the output from outside: nothing, on a free shaft
        self.step_s = step_s
        self.motor_position_rad = [gear.motor_position_rad(joint_position_rad)]
        self.motor_velocity_rad_s = [0.0]

    @property
    def joint_position_rad(self) -> list[float]:
        """Where the output shaft really is; nobody measures it."""
        return [self._load.position_rad]

    def step(self, motor_torque_nm: Sequence[float]) -> None:
        """Move on by one step, with a constant torque on the rotor."""
        gear, rotor, load = self._gear, self._rotor, self._load
        torque_nm = motor_torque_nm[0] * gear.joint_nm_per_motor_nm
        if self._coupling is None:
            rotor.advance(torque_nm + self._output_nm)
        else:
            # Taken half a step ahead, the spring neither gains nor loses energy (leapfrog).
            windup_rad_s = rotor.velocity_rad_s - load.velocity_rad_s
            windup_rad = rotor.position_rad - load.position_rad + 0.5 * self.step_s * windup_rad_s
            coupling_nm = self._coupling.torque_nm(windup_rad, windup_rad_s)
            rotor.advance(torque_nm - coupling_nm)
            load.advance(coupling_nm + self._output_nm)
        self.motor_position_rad[0] = gear.motor_position_rad(rotor.position_rad)
        self.motor_velocity_rad_s[0] = rotor.velocity_rad_s * gear.motor_turns_per_turn
