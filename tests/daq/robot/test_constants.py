"""The shipped robots carry the published numbers, typed here a second time."""

import math

import pytest

from daq.robot import Friction, Joint, Robot, load_robot

SLSQP = """
2.76e-1 1.50e-4 -8.11e-5 2.87e-2 4.35e-3 1.55e-4 4.29e-3 -2.86e-5 2.34e-4 2.01e-4
5.54e-1 1.16e-1 1.77e-4 2.23e-3 2.75e-4 -1.46e-4 3.07e-2 -2.61e-4 -2.21e-4 3.06e-2
5.28e-1 2.08e-3 9.94e-5 9.98e-2 2.55e-2 1.88e-4 2.53e-2 -2.45e-4 7.70e-5 3.80e-4
1.29e-1 6.09e-3 -6.80e-5 -5.06e-5 3.77e-5 3.22e-5 5.96e-4 6.50e-5 1.93e-4 5.34e-4
1.30e-4 0 3.09e-5 0 2.00e-1 1.10e-1 1.50e-1 1.10e-1
"""
SA = """
2.27e-1 -3.37e-3 2.30e-3 5.64e-2 2.73e-2 -1.84e-5 2.73e-2 3.79e-4 8.68e-4 1.00e-4
4.00e-1 2.00e-1 -5.00e-2 5.00e-2 1.00e-4 -4.59e-3 1.41e-1 -2.43e-2 8.03e-2 1.00e-4
8.00e-1 -5.79e-3 -2.43e-3 2.13e-2 1.57e-1 5.46e-2 1.16e-1 2.83e-2 5.98e-2 2.18e-2
5.00e-2 0 8.81e-3 1.00e-2 1.00e-5 -6.06e-3 7.08e-3 1.04e-3 7.00e-3 1.00e-5
3.57e-1 3.23e-1 1.30e-1 5.02e-3 3.00e-1 4.81e-2 4.64e-2 2.25e-1
"""
CAD = """
2.76e-1 0 0 2.87e-2 4.33e-3 0 4.33e-3 0 0 1.53e-4
5.54e-1 1.16e-1 0 1.99e-3 3.16e-4 0 3.07e-2 -3.50e-4 0 3.08e-2
5.28e-1 2.06e-3 0 9.98e-2 2.54e-2 0 2.54e-2 -3.44e-4 0 3.25e-4
1.29e-1 6.13e-3 0 0 5.10e-5 0 4.90e-4 4.49e-5 0 4.83e-4
5.30e-6 4.20e-6 8.00e-6 4.20e-6 2.00e-1 1.10e-1 1.50e-1 1.10e-1
"""


@pytest.fixture(scope="module")
def arm() -> Robot:
    return load_robot("laas4")


@pytest.fixture(scope="module")
def bench() -> Robot:
    return load_robot("bench1")


def numbers(table: str) -> list[float]:
    return [float(word) for word in table.split()]


def friction(viscous: float, coulomb: float) -> Friction:
    return Friction(viscous_motor_nm_s_per_rad=viscous, coulomb_joint_nm=coulomb)


@pytest.mark.parametrize("name", ["laas4", "bench1"])
@pytest.mark.parametrize(
    ("motor", "table_4_1"),
    [
        ("mn4004", (12, 300.0, 0.027, 9.0, 0.243)),
        ("mn4006", (12, 380.0, 0.022, 16.0, 0.352)),
        ("mn5006", (14, 300.0, 0.027, 20.0, 0.54)),
    ],
)
def test_motors(name: str, motor: str, table_4_1: tuple[float, ...]) -> None:
    found = load_robot(name).motors[motor]
    assert table_4_1 == (
        found.pole_pairs,
        found.kv_rpm_per_v,
        found.torque_constant_published_nm_per_a,
        found.current_max_a,
        found.torque_max_nm,
    )


def test_torque_constant_follows_the_formula_not_the_rounded_table(arm: Robot) -> None:
    constants = {name: motor.torque_constant_nm_per_a for name, motor in arm.motors.items()}
    expected = {"mn4004": 0.02757, "mn4006": 0.02176, "mn5006": 0.02757}
    assert constants == pytest.approx(expected, abs=5e-6)


def test_coil_resistances_are_our_choice(arm: Robot) -> None:
    found = {name: motor.coil_resistance_ohm for name, motor in arm.motors.items()}
    assert found == {"mn4004": 0.35, "mn4006": 0.20, "mn5006": 0.15}


def test_the_arm_s_drives(arm: Robot) -> None:
    def row(joint: Joint) -> tuple[object, ...]:
        drive = joint.drive
        wiring = joint.name, joint.kind, drive.board, drive.output, drive.motor, drive.gear
        return *wiring, drive.gear_reduction, drive.rotor_inertia_kg_m2, joint.limits.current_max_a

    assert [row(joint) for joint in arm.joints] == [
        ("joint1", "axial", "shoulder", 1, "mn5006", "cycloidal", 31, 3e-5, 20),
        ("joint2", "radial", "shoulder", 2, "mn4006", "herringbone", 27, 2e-5, 16),
        ("joint3", "axial", "elbow", 1, "mn4004", "cycloidal", 31, 1.2e-5, 9),
        ("joint4", "radial", "elbow", 2, "mn4006", "herringbone", 27, 2e-5, 16),
    ]
    assert {joint.drive.encoder_counts_per_turn for joint in arm.joints} == {4096}


def test_measured_friction_is_table_4_3(arm: Robot, bench: Robot) -> None:
    mn4004, mn4006 = friction(2.42e-6, 0.122), friction(3.96e-6, 0.103)
    mn5006 = friction(6.45e-6, 0.247)
    assert [joint.drive.friction for joint in arm.joints] == [mn5006, mn4006, mn4004, mn4006]
    assert bench.joints[0].drive.friction == mn4004


def test_cad_parameters_are_table_a_1(arm: Robot) -> None:
    found: list[float] = []
    for joint in arm.joints:
        assert joint.link is not None
        assert joint.link.capsule_radius_m == 0.04
        inertia = joint.link.inertia_kg_m2
        found += [joint.link.mass_kg, *joint.link.first_moment_kg_m]
        found += [inertia.xx, inertia.xy, inertia.yy, inertia.xz, inertia.yz, inertia.zz]
    cad = [joint.drive.friction_cad for joint in arm.joints]
    found += [values.viscous_motor_nm_s_per_rad for values in cad if values is not None]
    found += [values.coulomb_joint_nm for values in cad if values is not None]
    assert found == numbers(CAD)


def test_published_vectors_are_table_a_1(arm: Robot) -> None:
    found = {parameters.name: list(parameters.values) for parameters in arm.published_parameters}
    assert found == {"slsqp": numbers(SLSQP), "sa": numbers(SA)}


def test_dh_rows(arm: Robot) -> None:
    rows = [joint.dh for joint in arm.joints if joint.dh is not None]
    quarter = math.pi / 2
    assert [(row.a_m, row.d_m, row.alpha_rad, row.theta_offset_rad) for row in rows] == [
        (0, 0, quarter, 0),
        (0, 0, quarter, quarter),
        (0, 0.65, quarter, 0),
        (0, 0, 0, 0),
    ]


def test_limits_of_code_a_1(arm: Robot) -> None:
    for joint in arm.joints:
        limits = joint.limits
        assert (limits.position_min_rad, limits.position_max_rad) == (-math.tau, math.tau)
        assert (limits.velocity_max_rad_s, limits.torque_max_nm) == (5.0, 50.0)


def test_supply_gravity_and_boards(arm: Robot, bench: Robot) -> None:
    assert arm.gravity_m_s2 == (0.0, 0.0, -9.81)
    assert arm.bus.nominal_v == bench.bus.nominal_v == 24.0
    boards = {board.name: board for board in (*arm.boards, *bench.boards)}
    devices = {name: board.spi.device for name, board in boards.items()}
    assert devices == {
        "shoulder": "/dev/spidev0.0",
        "elbow": "/dev/spidev0.1",
        "bench": "/dev/spidev0.0",
    }
    for board in boards.values():
        assert (board.profile, board.command_timeout_ms) == ("arm", 10)
        assert (board.spi.speed_hz, board.spi.mode) == (8_000_000, 0)
    assert boards["elbow"].spi.bus_and_chip_select == (0, 1)
    assert arm.joints_on(boards["elbow"]) == arm.joints[2:]
    assert bench.joints_on(boards["bench"]) == (bench.joints[0], None)


def test_the_bench_lets_a_constant_speed_test_run(bench: Robot) -> None:
    (joint,) = bench.joints
    assert (joint.drive.motor, joint.drive.gear_reduction, joint.kind) == ("mn4004", 31, "axial")
    assert joint.link is None
    assert joint.load_inertia_kg_m2 == 1e-4
    assert 160 < joint.limits.velocity_max_rad_s * joint.drive.gear_reduction < 200
    motor_turns = joint.limits.position_max_rad * joint.drive.gear_reduction / math.tau
    assert motor_turns > 10_000
