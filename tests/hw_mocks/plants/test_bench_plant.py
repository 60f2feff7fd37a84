"""The bench against closed-form solutions of equation 4.11 in [De Facci 2024]."""

import dataclasses
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw_mocks.errors import MockConfigError
from hw_mocks.plants.bench_plant import Shaft
from hw_mocks.plants.effects import Effects
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.transmission import DAMPING_RATIO, make_transmission
from hw_mocks.plants.truth import draw_truth

STEP_S = 250e-6


@pytest.fixture(scope="module")
def truth(bench):
    return draw_truth(bench, seed=0, spread=0.0)


@pytest.fixture(scope="module")
def equation(bench, truth):
    """J_eq, b_eq and f·k_g of equation 4.11."""
    (joint,), k_g = truth.joints, 1.0 / bench.joints[0].drive.gear_reduction
    inertia = joint.rotor_inertia_kg_m2 + joint.load_inertia_kg_m2 * k_g**2
    return inertia, joint.viscous_motor_nm_s_per_rad, joint.coulomb_joint_nm * k_g


def change(truth, **values):
    return dataclasses.replace(truth, joints=(dataclasses.replace(truth.joints[0], **values),))


def change_drive(robot, **values):
    (joint,) = robot.joints
    drive = msgspec.structs.replace(joint.drive, **values)
    return msgspec.structs.replace(robot, joints=(msgspec.structs.replace(joint, drive=drive),))


def run(plant, torque_nm, duration_s):
    for _ in range(round(duration_s / plant.step_s)):
        plant.step([torque_nm])
    return plant.motor_position_rad[0], plant.motor_velocity_rad_s[0]


def test_constant_torque_approaches_its_final_speed_exponentially(bench, truth, equation):
    inertia, viscous, coulomb = equation
    plant = make_plant(bench, truth, Effects())
    final, time_constant = (0.02 - coulomb) / viscous, inertia / viscous
    for duration_s in (0.5, 2.0, 5.0):
        position, velocity = run(plant, 0.02, duration_s)
        t = {0.5: 0.5, 2.0: 2.5, 5.0: 7.5}[duration_s]
        rise = -math.expm1(-t / time_constant)
        assert velocity == pytest.approx(final * rise, rel=1e-10)
        assert position == pytest.approx(final * (t - time_constant * rise), rel=1e-9)


@pytest.mark.parametrize("torque_nm", [0.0045, 0.006, -0.006])
def test_final_speed(bench, truth, equation, torque_nm):
    _, viscous, coulomb = equation
    _, velocity = run(make_plant(bench, truth, Effects(), step_s=5e-3), torque_nm, 200.0)
    final = (abs(torque_nm) - coulomb) / viscous
    assert velocity == pytest.approx(math.copysign(final, torque_nm), rel=1e-9)


def test_coasting_down_takes_the_time_it_should(bench, truth, equation):
    inertia, viscous, coulomb = equation
    plant = make_plant(bench, truth, Effects())
    _, start = run(plant, 0.02, 0.5)
    expected_s = inertia / viscous * math.log1p(viscous * start / coulomb)
    elapsed_s = 0.0
    while plant.motor_velocity_rad_s[0] > 0.0:
        plant.step([0.0])
        elapsed_s += STEP_S
    assert expected_s <= elapsed_s <= expected_s + STEP_S
    assert plant.motor_velocity_rad_s[0] == 0.0


@pytest.mark.parametrize("fraction", [-0.9, -0.5, 0.0, 0.5, 0.9, 1.0])
def test_friction_holds_exactly_below_breakaway(bench, truth, equation, fraction):
    *_, coulomb = equation
    plant = make_plant(bench, truth, Effects())
    before = plant.motor_position_rad[0]
    position, velocity = run(plant, fraction * coulomb * (1 - 1e-12), 2.0)
    assert (position, velocity) == (before, 0.0)


def test_friction_lets_go_above_breakaway_and_holds_again(bench, truth, equation):
    *_, coulomb = equation
    plant = make_plant(bench, truth, Effects())
    position, velocity = run(plant, 1.1 * coulomb, 0.2)
    assert position > 0.1
    assert velocity > 1.0
    stopped, velocity = run(plant, 0.9 * coulomb, 2.0)
    assert velocity == 0.0
    assert run(plant, 0.9 * coulomb, 1.0) == (stopped, 0.0)


@given(
    start_rad_s=st.floats(-20.0, 20.0),
    torque_nm=st.floats(-2.0, 2.0),
    viscous=st.sampled_from([0.0, 1e-9, 0.01, 30.0]),
)
def test_the_length_of_a_step_does_not_matter(start_rad_s, torque_nm, viscous):
    """One step over standstill and reversal, or a thousand small ones: the same motion."""

    def make(step_s):
        shaft = Shaft(
            inertia_kg_m2=0.02,
            viscous_nm_s_per_rad=viscous,
            coulomb_nm=0.5,
            stribeck=0.0,
            position_rad=1.0,
            step_s=step_s,
        )
        shaft.velocity_rad_s = start_rad_s
        return shaft

    long, short = make(0.5), make(0.5 / 1000)
    long.advance(torque_nm)
    for _ in range(1000):
        short.advance(torque_nm)
    assert long.velocity_rad_s == pytest.approx(short.velocity_rad_s, rel=1e-9, abs=1e-9)
    assert long.position_rad == pytest.approx(short.position_rad, rel=1e-9, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(torques=st.lists(st.floats(-0.05, 0.05), min_size=1, max_size=20))
def test_friction_is_the_same_on_either_side_of_the_gear(bench, truth, torques):
    """Equation 4.11: b_L at the load is b_L·k_g² at the motor, f there is f·k_g."""
    (joint,), k_g = truth.joints, 1.0 / bench.joints[0].drive.gear_reduction
    other = change(
        truth,
        viscous_motor_nm_s_per_rad=0.0,
        viscous_joint_nm_s_per_rad=joint.viscous_motor_nm_s_per_rad / k_g**2,
        coulomb_motor_nm=joint.coulomb_joint_nm * k_g,
        coulomb_joint_nm=0.0,
    )
    plants = make_plant(bench, truth, Effects()), make_plant(bench, other, Effects())
    for torque_nm in torques:
        one, two = (run(plant, torque_nm, 0.01) for plant in plants)
        assert one == pytest.approx(two, rel=1e-9, abs=1e-9)


def test_direction_offset_and_efficiency_of_the_gear(bench, truth, equation):
    robot = change_drive(bench, direction=-1, joint_offset_rad=0.2, gear_efficiency=0.8)
    plant = make_plant(robot, truth, Effects())
    assert plant.motor_position_rad[0] == pytest.approx(0.2 * 27.0)
    _, velocity = run(plant, 0.02, 1.0)
    assert velocity > 0.0
    assert plant.joint_position_rad[0] < 0.0
    assert plant.motor_position_rad[0] == pytest.approx(-27.0 * (plant.joint_position_rad[0] - 0.2))
    # At the motor the load's inertia and friction count 1/η times (4.7 in 4.8 and 4.9).
    (joint,) = truth.joints
    inertia = joint.rotor_inertia_kg_m2 + joint.load_inertia_kg_m2 / 27.0**2 / 0.8
    viscous, coulomb = equation[1], equation[2] / 0.8
    expected = (0.02 - coulomb) / viscous * -math.expm1(-viscous / inertia)
    assert velocity == pytest.approx(expected, rel=1e-9)


def test_thousands_of_turns_cost_no_accuracy(bench, truth):
    near, far = (
        make_plant(bench, truth, Effects(), posture_rad=[start])
        for start in (0.0, 5000 * math.tau / 27.0)
    )
    moved = [run(plant, 0.0045, 2.0)[0] for plant in (near, far)]
    assert moved[1] - 5000 * math.tau == pytest.approx(moved[0], abs=1e-8)


def test_stribeck_holds_longer_and_slides_the_same(bench, truth, equation):
    inertia, viscous, coulomb = equation
    plant = make_plant(bench, truth, Effects(stribeck=0.3))
    assert run(plant, 1.25 * coulomb, 1.0)[1] == 0.0
    assert run(plant, 1.35 * coulomb, 1.0)[1] > 0.0
    _, fast = run(plant, 0.02, 1.0)
    _, faster = run(plant, 0.02, 1.0)
    decay = math.exp(-viscous / inertia)
    assert faster == pytest.approx(
        fast * decay + (0.02 - coulomb) / viscous * (1 - decay), rel=1e-9
    )


def test_backlash_seen_when_reversing_slowly_is_the_gap(bench, truth):
    effects = Effects(backlash_rad=math.radians(0.2))
    plant = make_plant(bench, truth, effects)

    def creep(motor_rad_s, duration_s):
        track = []
        for _ in range(round(duration_s / STEP_S)):
            plant.step([0.02 * (motor_rad_s - plant.motor_velocity_rad_s[0])])
            track.append((plant.motor_position_rad[0] / 27.0, plant.joint_position_rad[0]))
        return np.array(track)

    creep(+0.1, 2.0)
    rotor, load = creep(-0.1, 2.0).T
    turned = rotor.argmax()
    waiting = np.flatnonzero(load > load.max() - 1e-9)[-1]
    # One flank relaxes, the other takes up the load's friction.
    teeth_rad = 2 * 0.103 / plant._coupling.stiffness_nm_per_rad
    lost_rad = rotor[turned] - rotor[waiting]
    assert lost_rad - teeth_rad == pytest.approx(math.radians(0.2), rel=0.01)


def test_inside_the_gap_the_load_feels_nothing(bench, truth):
    plant = make_plant(bench, truth, Effects(backlash_rad=0.01))
    plant.step([0.05])
    while plant.motor_position_rad[0] / 27.0 < 0.0049:
        plant.step([0.0])
        assert plant.joint_position_rad == [0.0]


@pytest.mark.parametrize("resonance_hz", [10.0, 30.0, 100.0])
def test_the_rotor_rings_at_the_stated_frequency(bench, truth, resonance_hz):
    held = change(truth, load_inertia_kg_m2=1e9, viscous_motor_nm_s_per_rad=0.0)
    plant = make_plant(bench, held, Effects(joint_resonance_hz=resonance_hz))
    plant.step([0.01])
    speeds, count = [], 8
    for _ in range(round(count / resonance_hz / STEP_S)):
        plant.step([0.0])
        speeds.append(plant.motor_velocity_rad_s[0])
    speeds = np.array(speeds)
    crossings = np.flatnonzero((speeds[:-1] < 0.0) & (speeds[1:] >= 0.0))
    exact = crossings - speeds[crossings] / (speeds[crossings + 1] - speeds[crossings])
    measured_hz = (len(exact) - 1) / (exact[-1] - exact[0]) / STEP_S
    assert measured_hz == pytest.approx(resonance_hz * math.sqrt(1 - DAMPING_RATIO**2), rel=5e-3)


def test_a_spring_alone_keeps_its_energy(bench, truth):
    gear = make_transmission(bench.joints[0], truth.joints[0])
    rotor, load = gear.rotor_inertia_kg_m2, truth.joints[0].load_inertia_kg_m2
    free = change(truth, viscous_motor_nm_s_per_rad=0.0, coulomb_joint_nm=0.0)
    plant = make_plant(bench, free, Effects(joint_resonance_hz=30.0))
    coupling = plant._coupling
    coupling.damping_nm_s_per_rad = 0.0
    run(plant, 0.02, 0.01)

    def energy():
        windup = plant._rotor.position_rad - plant._load.position_rad
        kinetic = rotor * plant._rotor.velocity_rad_s**2 + load * plant._load.velocity_rad_s**2
        return 0.5 * (kinetic + coupling.stiffness_nm_per_rad * windup**2)

    before, energies = energy(), []
    for _ in range(20_000):
        plant.step([0.0])
        energies.append(energy())
    assert np.mean(energies[-1000:]) == pytest.approx(np.mean(energies[:1000]), rel=1e-6)
    assert energies[-1] == pytest.approx(before, rel=0.1)


def test_a_gear_too_stiff_for_the_step_is_refused(bench, truth):
    with pytest.raises(MockConfigError) as refused:
        make_plant(bench, truth, Effects(joint_resonance_hz=150.0), step_s=1e-3)
    (problem,) = refused.value.problems
    assert problem.startswith("joint_resonance_hz: ")


@pytest.mark.parametrize("effects", [Effects(), Effects(backlash_rad=0.01)])
def test_a_joint_without_inertia_is_refused(bench, truth, effects):
    massless = change(truth, load_inertia_kg_m2=0.0, rotor_inertia_kg_m2=0.0)
    with pytest.raises(MockConfigError) as refused:
        make_plant(bench, massless, effects)
    assert refused.value.source == f"robot {bench.name}"
    (problem,) = refused.value.problems
    assert problem.startswith(f"joints.{bench.joints[0].name}: ")
