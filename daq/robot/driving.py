"""What moves a robot: motors, boards, gears, gains, limits of the loop. Frozen values, SI units.

A robot that is only analysed has none of this. Joint side and motor side are always distinguished:
`gear_reduction` is 1/k_g, motor turns per joint turn.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from msgspec import Meta

from daq.robot.tables import Angle, Cycles, Description, Name, NotNegative, Positive


class Motor(Description, frozen=True, kw_only=True):
    """A motor type, as its data sheet and the friction bench describe it (motor side)."""

    pole_pairs: Annotated[int, Meta(ge=1, le=100)]
    kv_rpm_per_v: Positive
    current_max_a: Positive
    torque_max_nm: Positive
    """What the data sheet gives at `current_max_a`, which is the limit that is kept. For people to
    compare: no program reads it."""
    torque_constant_published_nm_per_a: Positive | None = None
    """As printed in the source, for people to compare: no program reads it. Calculations use
    `torque_constant_nm_per_a`."""
    coil_resistance_ohm: Positive

    @property
    def torque_constant_nm_per_a(self) -> float:
        """K_i = (3/2)(1/√3)(60/2π)/K_v ([De Facci 2024], equation 4.3)."""
        return 1.5 / math.sqrt(3.0) * 60.0 / (2.0 * math.pi) / self.kv_rpm_per_v


class SpiPort(Description, frozen=True, kw_only=True):
    """How a board hangs on the SPI bus."""

    device: Annotated[
        str,
        Meta(
            pattern=r"^/dev/spidev[0-9]{1,3}\.[0-9]{1,3}\Z",
            description='an SPI device such as "/dev/spidev0.0"',
        ),
    ]
    mode: Annotated[int, Meta(ge=0, le=3)] = 0
    speed_hz: Annotated[int, Meta(ge=10_000, le=125_000_000)] = 8_000_000

    @property
    def bus_and_chip_select(self) -> tuple[int, int]:
        """The two numbers of /dev/spidev<bus>.<chip select>."""
        bus, chip_select = self.device.removeprefix("/dev/spidev").split(".")
        return int(bus), int(chip_select)


class BoardPort(Description, frozen=True, kw_only=True):
    """One motor board: which wire format it speaks and where it is connected."""

    name: Name
    profile: Name
    spi: SpiPort
    rs485_baud: Annotated[int, Meta(ge=9600, le=20_000_000)] = 12_500_000
    command_timeout_ms: Annotated[int, Meta(ge=1, le=255)] = 10
    """The board stops its motors after this long without a valid command. 0 (never) is refused."""


class Friction(Description, frozen=True, kw_only=True):
    """Friction of one drive, at either side of its gear ([De Facci 2024], equation 4.11).

    Published tables refer all viscous friction to the motor and all Coulomb friction to the load;
    who knows better where it arises states it there.
    """

    viscous_motor_nm_s_per_rad: NotNegative
    """b_eq of Table 4.3."""
    coulomb_joint_nm: NotNegative
    """f of Table 4.3."""
    viscous_joint_nm_s_per_rad: NotNegative = 0.0
    coulomb_motor_nm: NotNegative = 0.0


class Drive(Description, frozen=True, kw_only=True):
    """What moves a joint: a motor on one of the two outputs of a board, behind a gear."""

    board: Name
    output: Annotated[int, Meta(ge=1, le=2)]
    """Motor 1 or 2 of the board."""
    motor: Name
    gear: Name
    gear_reduction: Annotated[float, Meta(ge=1, le=10_000)]
    """1/k_g: motor turns per joint turn."""
    gear_efficiency: Annotated[float, Meta(gt=0, le=1)] = 1.0
    direction: int = 1
    """+1 when motor and joint turn the same way, -1 otherwise."""
    joint_offset_rad: Angle = 0.0
    """Joint angle at which the motor's encoder index is taken as zero."""
    rotor_inertia_kg_m2: NotNegative
    encoder_counts_per_turn: Annotated[int, Meta(ge=2, le=1 << 24)] = 4096
    friction: Friction
    """Measured on the friction bench (Table 4.3)."""
    friction_cad: Friction | None = None
    """The values that the CAD parameter vector carries (Table A.1), where published. For people to
    compare: accepted and checked, but no program reads it."""

    @property
    def torque_ratio(self) -> float:
        """η/k_g: torque at the joint over torque at the motor, without sign."""
        return self.gear_reduction * self.gear_efficiency

    @property
    def inertia_ratio(self) -> float:
        """η/k_g²: an inertia, or viscous friction, at the joint over the same at the motor."""
        return self.gear_reduction * self.torque_ratio

    @property
    def joint_viscous_nm_s_per_rad(self) -> float:
        """All of its viscous friction, seen at the joint."""
        friction = self.friction
        motor = self.inertia_ratio * friction.viscous_motor_nm_s_per_rad
        return friction.viscous_joint_nm_s_per_rad + motor

    @property
    def joint_coulomb_nm(self) -> float:
        """All of its Coulomb friction, seen at the joint."""
        return self.friction.coulomb_joint_nm + self.torque_ratio * self.friction.coulomb_motor_nm

    @property
    def joint_inertia_kg_m2(self) -> float:
        """Its rotor's inertia, seen at the joint."""
        return self.inertia_ratio * self.rotor_inertia_kg_m2


class Gains(Description, frozen=True, kw_only=True):
    """Gains of the board's position law, at the motor, as they go over the wire."""

    kp_a_per_rad: NotNegative
    kd_a_s_per_rad: NotNegative
    ki_a_per_rad_s: NotNegative = 0.0
    """Only where the board has an integrator (profile `arm`); ignored elsewhere."""


class Control(Description, frozen=True, kw_only=True):
    """How a joint is controlled by default."""

    position: Gains = Gains(kp_a_per_rad=0.5, kd_a_s_per_rad=0.01)
    """To hold, to go somewhere and to follow a trajectory."""
    velocity: Gains = Gains(kp_a_per_rad=0.02, kd_a_s_per_rad=0.02)
    """Velocity PI on the board: Kd is the proportional gain, Kp the integral one."""


class Bench(Description, frozen=True, kw_only=True):
    """How a joint is driven on the friction bench, unless the command says otherwise."""

    speed_min_rad_s: Positive | None = None
    """Slowest speed at the joint; by default one motor turn takes 4 s."""
    speed_max_rad_s: Positive | None = None
    """Fastest speed at the joint; by default 85 % of the joint's limit."""
    speeds: Annotated[int, Meta(ge=2, le=50)] = 9
    """How many speeds in each direction."""
    repetitions: Annotated[int, Meta(ge=1, le=20)] = 2
    """How often all of them are driven, each time in another order."""
    dwell_s: Annotated[float, Meta(ge=0.1, le=60)] = 1.5
    """How long a settled speed is measured at least; the fastest twice as long."""
    settle_max_s: Annotated[float, Meta(ge=0.5, le=60)] = 4.0
    """A speed that has not settled after this long is given up."""
    gains: Gains | None = None
    """Of the velocity PI; by default chosen for the motor's inertia."""


class Bus(Description, frozen=True, kw_only=True):
    """The supply of the boards."""

    nominal_v: Positive
    min_v: Positive
    max_v: Positive


class Timing(Description, frozen=True, kw_only=True):
    """How the 1 kHz loop is run."""

    priority: Annotated[int, Meta(ge=1, le=98)] = 80
    """SCHED_FIFO priority."""
    core: Annotated[int, Meta(ge=0, le=1023)] | None = None
    """A core of its own, best one that the kernel keeps free (isolcpus)."""
    spin_us: Annotated[float, Meta(ge=0, le=500)] = 0.0
    """Wait the last microseconds before a deadline busily: less jitter for some of a core."""


class Safety(Description, frozen=True, kw_only=True):
    """How the loop stops the motors, and when by itself: so many cycles in a row beyond a limit."""

    stop: Literal["brake", "hold", "coast"] = "brake"
    """What a stop does: brake to rest and lower what gravity pulls; hold the posture, after
    commands and limits of motion; or leave the arm to itself."""
    stop_max_s: Annotated[float, Meta(ge=0.1, le=2)] = 0.3
    """How long a stop brakes; what still moves then is lowered."""
    lower_max_s: Annotated[float, Meta(ge=1, le=120)] = 20.0
    """How long a joint that gravity pulls is lowered at most, before its board is switched off."""
    hold_max_s: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """How long a stop holds the posture at most; then the arm is lowered."""
    unhomed_current_max_a: Positive | None = None
    """Of every motor until its joint is homed, where that is less than the joint's own limit."""
    ramp_s: Annotated[float, Meta(gt=0, le=0.5)] | None = None
    """Accepted for old files: no program reads it. Stops used to ramp the current down in it."""
    position_cycles: Cycles = 1
    velocity_cycles: Cycles = 3
    current_cycles: Cycles = 5
    temperature_cycles: Cycles = 10
    bus_voltage_cycles: Cycles = 10
    unreadable_cycles: Cycles = 20
    """Replies that are corrupt, cut short or missing."""
    stale_cycles: Cycles = 20
    """Replies that do not confirm our commands: an echoed index or a clock that stands still."""
    following_error_max_rad: Positive = 0.5
    """How far a joint may be from where it is led."""
    skipped_max_per_s: Annotated[int, Meta(ge=1, le=1000)] = 200
    """Deadline budget: periods that may be skipped within a second."""
