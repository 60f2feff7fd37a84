"""The two robots of [De Facci 2024], written out: physics is tested without the robot files."""

import math

import pytest

from daq.robot import (
    BoardPort,
    Bus,
    Drive,
    Friction,
    Inertia,
    Joint,
    JointLimits,
    Link,
    Motor,
    Placement,
    Robot,
    SpiPort,
)

# Tables 4.1 and 4.3: pole pairs, K_v, I_max, τ_max, b_eq at the motor, f at the load.
MOTORS = {
    "mn4004": (12, 300.0, 9.0, 0.243, 2.42e-6, 0.122),
    "mn4006": (12, 380.0, 16.0, 0.352, 3.96e-6, 0.103),
    "mn5006": (14, 300.0, 20.0, 0.54, 6.45e-6, 0.247),
}
# Motor, 1/k_g, rotor inertia, xyz, rpy; then Table A.1: m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
QUARTER = math.pi / 2
ARM = [
    (
        ("mn5006", 31.0, 3e-5, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        (0.276, (0.0, 0.0, 2.87e-2), (4.33e-3, 0.0, 4.33e-3, 0.0, 0.0, 1.53e-4)),
    ),
    (
        ("mn4006", 27.0, 2e-5, (0.0, 0.0, 0.167), (QUARTER, 0.0, 0.0)),
        (0.554, (0.116, 0.0, 1.99e-3), (3.16e-4, 0.0, 3.07e-2, -3.5e-4, 0.0, 3.08e-2)),
    ),
    (
        ("mn4004", 31.0, 1.2e-5, (0.325, 0.0, 0.0), (QUARTER, 0.0, QUARTER)),
        (0.528, (2.06e-3, 0.0, 9.98e-2), (2.54e-2, 0.0, 2.54e-2, -3.44e-4, 0.0, 3.25e-4)),
    ),
    (
        ("mn4006", 27.0, 2e-5, (0.0, 0.0, 0.325), (QUARTER, 0.0, 0.0)),
        (0.129, (6.13e-3, 0.0, 0.0), (5.1e-5, 0.0, 4.9e-4, 4.49e-5, 0.0, 4.83e-4)),
    ),
]


def make_drive(motor: str, index: int, reduction: float, rotor_inertia_kg_m2: float) -> Drive:
    *_, viscous, coulomb = MOTORS[motor]
    return Drive(
        board=f"board{index // 2}",
        output=index % 2 + 1,
        motor=motor,
        gear="gear",
        gear_reduction=reduction,
        rotor_inertia_kg_m2=rotor_inertia_kg_m2,
        friction=Friction(viscous_motor_nm_s_per_rad=viscous, coulomb_joint_nm=coulomb),
    )


def make_robot(name: str, joints: list[Joint]) -> Robot:
    return Robot(
        schema=1,
        name=name,
        description="",
        bus=Bus(nominal_v=24.0, min_v=18.0, max_v=28.0),
        motors={
            motor: Motor(
                pole_pairs=pairs,
                kv_rpm_per_v=kv,
                current_max_a=current,
                torque_max_nm=torque,
                coil_resistance_ohm=0.2,
            )
            for motor, (pairs, kv, current, torque, _, _) in MOTORS.items()
        },
        boards=tuple(
            BoardPort(name=f"board{i}", profile="arm", spi=SpiPort(device=f"/dev/spidev0.{i}"))
            for i in range((len(joints) + 1) // 2)
        ),
        joints=tuple(joints),
    )


LIMITS = JointLimits(
    position_min_rad=-math.tau,
    position_max_rad=math.tau,
    velocity_max_rad_s=5.0,
    torque_max_nm=10.0,
    current_max_a=9.0,
)


@pytest.fixture(scope="session")
def arm() -> Robot:
    joints = []
    for index, ((motor, reduction, rotor, xyz, rpy), (mass, moment, inertia)) in enumerate(ARM):
        xx, xy, yy, xz, yz, zz = inertia
        joints.append(
            Joint(
                name=f"joint{index + 1}",
                kind="axial" if index % 2 == 0 else "radial",
                drive=make_drive(motor, index, reduction, rotor),
                limits=LIMITS,
                placement=Placement(xyz_m=xyz, rpy_rad=rpy),
                link=Link(
                    mass_kg=mass,
                    first_moment_kg_m=moment,
                    inertia_kg_m2=Inertia(xx=xx, xy=xy, yy=yy, xz=xz, yz=yz, zz=zz),
                ),
            )
        )
    return make_robot("arm", joints)


@pytest.fixture(scope="session")
def bench() -> Robot:
    joint = Joint(
        name="joint1",
        kind="radial",
        drive=make_drive("mn4006", 0, 27.0, 2e-5),
        limits=LIMITS,
        load_inertia_kg_m2=5e-3,
    )
    return make_robot("bench", [joint])
