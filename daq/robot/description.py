"""The robot description: frozen values, exactly as the robot file states them, in SI units.

Nothing here reads files (`daq.robot.load`) or checks one value against another
(`daq.robot.checks`); the ranges of single values stand beside their fields. A robot without
boards, motors and drives can be analysed, not driven.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, overload

import msgspec
from msgspec import Meta

from daq.errors import ConfigError
from daq.robot.bodies import DhRow, JointDynamics, Link, LinkBounds, Placement
from daq.robot.driving import Bench, BoardPort, Bus, Control, Drive, Motor, Safety, Timing
from daq.robot.tables import (
    Angle,
    Description,
    Gravity,
    Metres,
    Name,
    NotNegative,
    Positive,
    Speed,
    Torque,
)

NOT_DRIVEN = "it can be analysed, not driven; add bus, boards, motors and drives to its file"
"""The message for callers that want to drive a robot without motors and boards."""


class Transmission(Description, frozen=True, kw_only=True):
    """How motor-side data of a joint without `drive` become joint-side ones."""

    gear_reduction: Annotated[float, Meta(gt=0, le=10_000)] = 1.0
    """Motor turns per joint turn."""
    direction: Literal[1, -1] = 1
    """+1 when motor and joint turn the same way, -1 otherwise."""
    joint_offset_rad: Angle = 0.0
    """Joint angle at which the motor's angle is zero."""
    torque_constant_nm_per_a: Positive | None = None
    """At the motor."""
    rotor_inertia_kg_m2: NotNegative | None = None
    """At the motor."""


class JointLimits(Description, frozen=True, kw_only=True):
    """What this joint must never exceed (joint side; the current at the motor)."""

    position_min_rad: Angle
    position_max_rad: Angle
    velocity_max_rad_s: Speed
    acceleration_max_rad_s2: Positive | None = None
    torque_max_nm: Torque
    current_max_a: Positive = math.inf
    """Infinite where the file states none, which only a joint without a drive may do."""
    winding_temperature_max_degc: Annotated[float, Meta(gt=0, le=200)] = 90.0


class Joint(Description, frozen=True, kw_only=True):
    """One joint of the chain and the link it moves."""

    name: Name
    kind: Literal["axial", "radial"] | None = None
    """Whether the link lies along the joint's axis or across it; stated for every driven joint."""
    drive: Drive | None = None
    transmission: Transmission | None = None
    limits: JointLimits
    dh: DhRow | None = None
    placement: Placement | None = None
    link: Link | None = None
    bounds: LinkBounds | None = None
    dynamics: JointDynamics | None = None
    load_inertia_kg_m2: NotNegative | None = None
    """For a joint on the bench, which carries no link: what its output shaft turns (joint side)."""
    control: Control = Control()
    bench: Bench = Bench()
    home_posture_rad: Angle = 0.0
    """About where the joint stands when the robot is homed, unless the command says otherwise."""

    @property
    def is_on_bench(self) -> bool:
        """Whether it turns freely, without a link: then its zero is where it was switched on."""
        return self.load_inertia_kg_m2 is not None

    @property
    def gear_reduction(self) -> float:
        """Motor turns per joint turn; 1 where neither drive nor transmission states it."""
        return self._gear.gear_reduction

    @property
    def direction(self) -> int:
        """+1 when motor and joint turn the same way, -1 otherwise."""
        return self._gear.direction

    @property
    def motor_per_joint(self) -> float:
        """Motor turns per joint turn, negative where they turn against each other."""
        return self.direction * self.gear_reduction

    @property
    def gear_efficiency(self) -> float:
        """η: torque behind the gear over torque in front of it, times the gear ratio."""
        return 1.0 if self.drive is None else self.drive.gear_efficiency

    @property
    def joint_offset_rad(self) -> float:
        """Joint angle at which the motor's angle is zero."""
        return self._gear.joint_offset_rad

    @property
    def rotor_inertia_kg_m2(self) -> float | None:
        """At the motor, where known."""
        return self._gear.rotor_inertia_kg_m2

    @property
    def _gear(self) -> Drive | Transmission:
        return self.drive or self.transmission or Transmission()


class DrivenJoint(Joint, frozen=True, kw_only=True):
    """A joint that a motor of ours moves."""

    drive: Drive


class Workspace(Description, frozen=True, kw_only=True):
    """What is around the robot."""

    ground_z_m: Metres | None = None
    """Height of the ground in the base frame."""


Term = Literal["viscous", "coulomb", "drive_inertia", "offset", "asymmetric", "stribeck"]


class Estimation(Description, frozen=True, kw_only=True):
    """What is estimated beside the links' parameters, and bounds of the whole arm."""

    terms: tuple[Term, ...] = ("viscous", "coulomb", "drive_inertia")
    total_mass_min_kg: NotNegative | None = None
    """Of all moving links."""
    total_mass_max_kg: Positive | None = None
    stribeck_velocity_rad_s: Positive = 0.05
    smooth_sign_velocity_rad_s: Positive | None = None
    """The sign in the friction model is then tanh(velocity / this), by default a step."""


class PublishedParameters(Description, frozen=True, kw_only=True):
    """A published parameter vector, in the order of Table A.1 of [De Facci 2024].

    Per link m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz; then all fv, then all fs. For people to
    compare with: accepted and checked for its length, but no program reads it.
    """

    name: Name
    source: str
    values: tuple[float, ...]


class Robot(Description, frozen=True, kw_only=True):
    """A whole robot, as its file describes it."""

    schema: Annotated[int, Meta(ge=1, le=1)]
    """Version of the robot file's format."""
    name: Name
    description: str
    gravity_m_s2: tuple[Gravity, Gravity, Gravity] = (0.0, 0.0, -9.81)
    """In the base frame."""
    bus: Bus | None = None
    motors: dict[Name, Motor] = msgspec.field(default_factory=dict)
    boards: tuple[BoardPort, ...] = ()
    dh_convention: Literal["standard", "modified"] = "standard"
    joints: tuple[Joint, ...]
    coupling: tuple[tuple[float, ...], ...] | None = None
    """Motor angles, each after its gear reduction, by joint angles; identity where left out."""
    workspace: Workspace = Workspace()
    estimation: Estimation = Estimation()
    timing: Timing = Timing()
    safety: Safety = Safety()
    published_parameters: tuple[PublishedParameters, ...] = ()

    @property
    def is_driven(self) -> bool:
        """Whether it can be driven; otherwise only analysed."""
        return bool(self.boards)

    def driven(self) -> DrivenRobot:
        """Return the same robot, for callers that drive it or read what its boards sent.

        Raises:
            ConfigError: It can be analysed, not driven.
        """
        if isinstance(self, DrivenRobot):
            return self
        if self.bus is None or any(joint.drive is None for joint in self.joints):
            raise ConfigError(f"robot {self.name}", [NOT_DRIVEN], code="not-driven")
        joints = tuple(DrivenJoint(**msgspec.structs.asdict(joint)) for joint in self.joints)
        return DrivenRobot(**{**msgspec.structs.asdict(self), "joints": joints})

    @property
    def coupling_matrix(self) -> tuple[tuple[float, ...], ...]:
        """`coupling`, or the identity; shape (n_joints, n_joints)."""
        if self.coupling is not None:
            return self.coupling
        count = range(len(self.joints))
        return tuple(tuple(float(row == column) for column in count) for row in count)

    def motor_of(self, joint: DrivenJoint) -> Motor:
        """Return the motor type that drives a joint."""
        return self.motors[joint.drive.motor]

    def torque_constant_nm_per_a(self, joint: Joint) -> float | None:
        """Return K_i, the torque per current at a joint's motor, where known."""
        if joint.drive is not None:
            return self.motors[joint.drive.motor].torque_constant_nm_per_a
        return None if joint.transmission is None else joint.transmission.torque_constant_nm_per_a

    @overload
    def nm_per_a(self, joint: DrivenJoint) -> float: ...
    @overload
    def nm_per_a(self, joint: Joint) -> float | None: ...
    def nm_per_a(self, joint: Joint) -> float | None:
        """Return K_i·N·η, the torque at the joint per current of its motor, where known.

        Negative where motor and joint turn against each other: the current is the motor's own.
        """
        constant = self.torque_constant_nm_per_a(joint)
        if constant is None:
            return None
        return constant * joint.motor_per_joint * joint.gear_efficiency


class DrivenRobot(Robot, frozen=True, kw_only=True):
    """A robot all of whose joints have a drive."""

    bus: Bus
    joints: tuple[DrivenJoint, ...]

    def joints_on(self, board: BoardPort) -> tuple[DrivenJoint | None, DrivenJoint | None]:
        """Return the joints on a board's outputs 1 and 2; None where nothing is connected."""
        by_output = {j.drive.output: j for j in self.joints if j.drive.board == board.name}
        return by_output.get(1), by_output.get(2)
