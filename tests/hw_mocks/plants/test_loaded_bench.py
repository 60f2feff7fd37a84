"""A load arm, end stops and a slipping gear against closed forms; all at the joint unless said."""

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from hw_mocks.errors import MockConfigError
from hw_mocks.plants.effects import PRESETS, Effects
from hw_mocks.plants.load_arm import MockLoadArm
from hw_mocks.plants.loaded_bench import LoadedBench
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.truth import draw_truth

STEP_S = 250e-6
GEAR = 27.0
ARM = MockLoadArm(mass_kg=0.4, length_m=0.25)
WEIGHT_NM = 0.4 * 0.25 * 9.81
# Of the `bench` fixture: the rotor behind its gear, the load, Coulomb friction.
ROTOR_KG_M2 = 2e-5 * GEAR**2
LOAD_KG_M2 = 5e-3
COULOMB_NM = 0.103
VISCOUS_NM_S_PER_RAD = 3.96e-6 * GEAR**2
ARM_KG_M2 = ROTOR_KG_M2 + LOAD_KG_M2 + 0.4 * 0.25**2


@pytest.fixture(scope="module")
def truth(bench):
    return draw_truth(bench, seed=0, spread=0.0)


@pytest.fixture(scope="module")
def smooth(truth):
    """Nothing rubs."""
    return change(truth, viscous_motor_nm_s_per_rad=0.0, coulomb_joint_nm=0.0)


def change(truth, **values):
    return dataclasses.replace(truth, joints=(dataclasses.replace(truth.joints[0], **values),))


def change_drive(robot, **values):
    (joint,) = robot.joints
    drive = msgspec.structs.replace(joint.drive, **values)
    return msgspec.structs.replace(robot, joints=(msgspec.structs.replace(joint, drive=drive),))


def state(plant):
    """Position and velocity of the rotor's side."""
    return plant.motor_position_rad[0] / GEAR, plant.motor_velocity_rad_s[0] / GEAR


def run(plant, torque_nm, duration_s):
    """Angle and speed after each step under a constant torque."""
    track = []
    for _ in range(round(duration_s / plant.step_s)):
        plant.step([torque_nm / GEAR])
        track.append(state(plant))
    return np.array(track).T


def turn(plant, speed_rad_s, duration_s):
    """Hold a speed; angle before each step and the torque that it took."""
    track = []
    for _ in range(round(duration_s / plant.step_s)):
        angle_rad, now_rad_s = state(plant)
        torque_nm = 40.0 * (speed_rad_s - now_rad_s)
        track.append((angle_rad, torque_nm))
        plant.step([torque_nm / GEAR])
    return np.array(track).T


def rising_zeros_s(angles_rad):
    before = np.flatnonzero((angles_rad[:-1] < 0.0) & (angles_rad[1:] >= 0.0))
    part = -angles_rad[before] / (angles_rad[before + 1] - angles_rad[before])
    return (before + part) * STEP_S


def geometric_arithmetic_mean(a, b):
    for _ in range(40):
        a, b = (a + b) / 2.0, math.sqrt(a * b)
    return a


# --- load arm -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kick_nm", [2.0, 25.0, 36.0])
def test_the_arm_swings_with_the_period_of_a_pendulum(bench, smooth, kick_nm):
    """T = 2π·√(J/(m·g·l)) / agm(1, cos(θ/2)), exact for every amplitude θ (Gauss)."""
    plant = make_plant(bench, smooth, Effects(), load_arm=ARM)
    run(plant, kick_nm, 0.01)
    angles_rad, _ = run(plant, 0.0, 10.0)
    amplitude_rad = angles_rad.max()
    assert angles_rad.min() == pytest.approx(-amplitude_rad, rel=1e-6)
    small_s = math.tau * math.sqrt(ARM_KG_M2 / WEIGHT_NM)
    expected_s = small_s / geometric_arithmetic_mean(1.0, math.cos(amplitude_rad / 2.0))
    assert (amplitude_rad < 0.1) == (kick_nm == 2.0)
    assert (amplitude_rad > 1.9) == (kick_nm == 36.0)
    periods_s = np.diff(rising_zeros_s(angles_rad))
    assert len(periods_s) >= 4
    assert periods_s == pytest.approx(expected_s, rel=1e-6)


def test_a_swinging_arm_keeps_its_energy(bench, smooth):
    plant = make_plant(bench, smooth, Effects(), load_arm=ARM)
    run(plant, 36.0, 0.01)
    angles_rad, speeds_rad_s = run(plant, 0.0, 10.0)
    energy_j = 0.5 * ARM_KG_M2 * speeds_rad_s**2 - WEIGHT_NM * np.cos(angles_rad)
    assert np.ptp(energy_j) < 1e-6 * WEIGHT_NM


def test_friction_takes_its_work_from_the_swing(bench, truth):
    """Between two turning points the weight gives what Coulomb friction takes."""
    plant = make_plant(
        bench, change(truth, viscous_motor_nm_s_per_rad=0.0), Effects(), load_arm=ARM
    )
    run(plant, 36.0, 0.01)
    angles_rad, speeds_rad_s = run(plant, 0.0, 30.0)
    turning = np.flatnonzero(speeds_rad_s[:-1] * speeds_rad_s[1:] < 0.0)
    assert len(turning) > 4
    for start, end in zip(angles_rad[turning[:-1]], angles_rad[turning[1:]], strict=True):
        gained_nm = WEIGHT_NM * (math.cos(end) - math.cos(start))
        assert gained_nm == pytest.approx(COULOMB_NM * abs(end - start), abs=1e-5)
    # It comes to rest where friction carries it, away from the lowest point, and stays.
    assert speeds_rad_s[-1] == 0.0
    assert 0.0 < abs(math.sin(angles_rad[-1])) <= COULOMB_NM / WEIGHT_NM


@pytest.mark.parametrize("angle_rad", [0.5, 1.2, -0.8])
def test_the_torque_that_holds_an_arm(bench, smooth, angle_rad):
    held = change(smooth, viscous_joint_nm_s_per_rad=0.3)
    plant = make_plant(bench, held, Effects(), load_arm=ARM)
    angles_rad, speeds_rad_s = run(plant, WEIGHT_NM * math.sin(angle_rad), 30.0)
    assert angles_rad[-1] == pytest.approx(angle_rad, abs=1e-9)
    assert speeds_rad_s[-1] == pytest.approx(0.0, abs=1e-9)


def test_gravity_is_the_robots_wherever_it_points(bench, smooth):
    moon = msgspec.structs.replace(bench, gravity_m_s2=(0.0, 1.62 * 0.6, 1.62 * 0.8))
    plant = make_plant(moon, smooth, Effects(), load_arm=ARM)
    run(plant, 0.1, 0.01)
    periods_s = np.diff(rising_zeros_s(run(plant, 0.0, 20.0)[0]))
    expected_s = math.tau * math.sqrt(ARM_KG_M2 / (0.4 * 0.25 * 1.62))
    assert periods_s == pytest.approx(expected_s, rel=1e-4)


def test_it_hangs_where_the_joint_starts(bench, smooth):
    plants = [
        make_plant(bench, smooth, Effects(), load_arm=ARM, posture_rad=[start])
        for start in (0.0, 2.0)
    ]
    here, there = (run(plant, 5.0, 0.5)[0] for plant in plants)
    assert there - 2.0 == pytest.approx(here, abs=1e-9)


def test_an_elastic_gear_winds_up_by_what_the_arm_weighs(bench, smooth):
    held = change(smooth, viscous_joint_nm_s_per_rad=0.5)
    plant = make_plant(bench, held, Effects(joint_resonance_hz=30.0), load_arm=ARM)
    torque_nm = WEIGHT_NM * math.sin(0.7)
    rotor_rad = run(plant, torque_nm, 30.0)[0][-1]
    stiffness_nm_per_rad = ROTOR_KG_M2 * (math.tau * 30.0) ** 2
    assert plant.joint_position_rad[0] == pytest.approx(0.7, abs=1e-9)
    assert rotor_rad - 0.7 == pytest.approx(torque_nm / stiffness_nm_per_rad, rel=1e-6)


@pytest.mark.parametrize("values", [(0.0, 0.2), (1.0, -0.2), (math.nan, 0.2), (1.0, math.inf)])
def test_an_impossible_load_arm_is_refused(values):
    with pytest.raises(MockConfigError) as refused:
        MockLoadArm(*values)
    assert refused.value.source == "load arm"
    (problem,) = refused.value.problems
    assert problem.startswith(("mass_kg = ", "length_m = "))


# --- end stops ------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize("start_rad", [0.0, 0.7])
def test_the_shaft_rests_at_the_stop_exactly(bench, truth, direction, start_rad):
    effects = Effects(end_stop_rad=0.3)
    plant = make_plant(bench, truth, effects, posture_rad=[start_rad])
    angles_rad, speeds_rad_s = run(plant, 0.5 * direction, 2.0)
    stop_rad = start_rad + 0.3 * direction
    assert plant.joint_position_rad == [stop_rad]
    arrived = np.flatnonzero(speeds_rad_s == 0.0)[0]
    assert angles_rad[arrived:] == pytest.approx(stop_rad, abs=1e-15)
    assert not speeds_rad_s[arrived:].any()
    assert np.all(np.diff(angles_rad[: arrived + 1]) * direction > 0.0)
    # When, by θ = (τ−f)/b·(t − T·(1−e^(−t/T))) with T = J/b.
    time_constant_s = (ROTOR_KG_M2 + LOAD_KG_M2) / VISCOUS_NM_S_PER_RAD
    t_s = (arrived + np.array([0.0, 1.0])) * STEP_S
    rise_s = t_s + time_constant_s * np.expm1(-t_s / time_constant_s)
    before_rad, after_rad = (0.5 - COULOMB_NM) / VISCOUS_NM_S_PER_RAD * rise_s
    assert before_rad < 0.3 <= after_rad


def test_from_the_stop_it_turns_back_as_from_anywhere(bench, truth):
    stopped, fresh = (
        make_plant(bench, truth, effects) for effects in (Effects(end_stop_rad=0.3), Effects())
    )
    run(stopped, 0.5, 2.0)
    back_rad, back_rad_s = run(stopped, -0.4, 0.2)
    free_rad, free_rad_s = run(fresh, -0.4, 0.2)
    assert back_rad - 0.3 == pytest.approx(free_rad, abs=1e-12)
    assert back_rad_s == pytest.approx(free_rad_s, abs=1e-12)


def test_friction_holds_it_at_the_stop(bench, truth):
    plant = make_plant(bench, truth, Effects(end_stop_rad=0.3))
    run(plant, 0.5, 2.0)
    run(plant, -0.99 * COULOMB_NM, 1.0)
    assert plant.joint_position_rad == [0.3]
    run(plant, -1.01 * COULOMB_NM, 1.0)
    assert plant.joint_position_rad[0] < 0.3


def test_short_of_the_stops_nothing_changes(bench, truth):
    plants = [
        make_plant(bench, truth, effects) for effects in (Effects(), Effects(end_stop_rad=100.0))
    ]
    assert isinstance(plants[1], LoadedBench)
    assert not isinstance(plants[0], LoadedBench)
    for torque_nm in (0.5, -0.4, 0.0):
        free, stopped = (run(plant, torque_nm, 0.3) for plant in plants)
        assert np.array_equal(free, stopped)


def test_an_elastic_gear_winds_up_at_the_stop(bench, truth):
    plant = make_plant(bench, truth, Effects(end_stop_rad=0.3, joint_resonance_hz=30.0))
    angles_rad, speeds_rad_s = run(plant, 0.5, 5.0)
    stiffness_nm_per_rad = ROTOR_KG_M2 * (math.tau * 30.0) ** 2
    assert plant.joint_position_rad == [0.3]
    assert angles_rad[-1] - 0.3 == pytest.approx(0.5 / stiffness_nm_per_rad, rel=1e-6)
    assert speeds_rad_s[-1] == pytest.approx(0.0, abs=1e-9)


# --- slip -----------------------------------------------------------------------------------------


def is_in_slip(angles_rad, slip, start_rad=0.0):
    """Less than half the part away from half a turn, by the angle alone."""
    away_rad = np.angle(np.exp(1j * (angles_rad - start_rad - math.pi)))
    return np.abs(away_rad) < math.pi * slip


@pytest.mark.parametrize(
    ("slip", "speed_rad_s", "start_rad"),
    [(0.02, 3.0, 0.0), (0.02, -3.0, 1.0), (0.3, 3.0, 1.0), (0.9, -3.0, 0.0)],
)
def test_where_the_gear_slips_only_the_motors_friction_is_felt(
    bench, truth, slip, speed_rad_s, start_rad
):
    plant = make_plant(bench, truth, Effects(gear_slip=slip), posture_rad=[start_rad])
    turn(plant, speed_rad_s, 1.0)
    angles_rad, torques_nm = turn(plant, speed_rad_s, 2.0 * math.tau / 3.0)
    slips = is_in_slip(angles_rad, slip, start_rad)
    assert np.mean(slips) == pytest.approx(slip, abs=3e-3)
    # Long enough after a change for the speed to have settled.
    settled = np.ones_like(slips)
    for change_at in np.flatnonzero(slips[1:] != slips[:-1]) + 1:
        settled[change_at : change_at + 200] = False
    viscous_nm = VISCOUS_NM_S_PER_RAD * speed_rad_s
    coulomb_nm = math.copysign(COULOMB_NM, speed_rad_s)
    if slip > 0.02:
        assert torques_nm[slips & settled] == pytest.approx(viscous_nm, rel=1e-2)
    assert torques_nm[~slips & settled] == pytest.approx(viscous_nm + coulomb_nm, rel=1e-2)


def test_where_the_gear_slips_only_the_rotor_is_accelerated(bench, truth):
    """Motor side: dω/dt = τ/J_rotor there, whatever the gear's efficiency; else (τ − f…)/J."""
    robot = change_drive(bench, gear_efficiency=0.8)
    smooth = change(truth, viscous_motor_nm_s_per_rad=0.0)
    plant = make_plant(robot, smooth, Effects(gear_slip=0.4))
    torque_nm, angles_rad, gains_rad_s2 = 0.02, [], []
    for _ in range(6000):
        angle_rad, before = plant.motor_position_rad[0] / GEAR, plant.motor_velocity_rad_s[0]
        plant.step([torque_nm])
        angles_rad.append(angle_rad)
        gains_rad_s2.append((plant.motor_velocity_rad_s[0] - before) / STEP_S)
    slips = is_in_slip(np.array(angles_rad), 0.4)
    assert 0.2 < np.mean(slips) < 0.6
    gains_rad_s2 = np.array(gains_rad_s2)
    assert gains_rad_s2[slips] == pytest.approx(torque_nm / 2e-5, rel=1e-6)
    gripping_kg_m2 = 2e-5 + LOAD_KG_M2 / GEAR**2 / 0.8
    gripping_nm = torque_nm - COULOMB_NM / GEAR / 0.8
    assert gains_rad_s2[~slips] == pytest.approx(gripping_nm / gripping_kg_m2, rel=1e-6)


def test_friction_at_the_motor_is_felt_everywhere(bench, truth):
    all_at_motor = change(truth, coulomb_motor_nm=COULOMB_NM / GEAR, coulomb_joint_nm=0.0)
    plant = make_plant(bench, all_at_motor, Effects(gear_slip=0.5))
    turn(plant, 3.0, 1.0)
    _, torques_nm = turn(plant, 3.0, 3.0)
    assert torques_nm == pytest.approx(VISCOUS_NM_S_PER_RAD * 3.0 + COULOMB_NM, rel=1e-3)


def test_a_slipping_gear_feels_no_weight(bench, smooth):
    plant = make_plant(bench, smooth, Effects(gear_slip=0.5), load_arm=ARM)
    angles_rad, torques_nm = turn(plant, 3.0, 4.0)
    slips = is_in_slip(angles_rad, 0.5)
    settled = slips & np.roll(slips, 200)
    assert settled.sum() > 3000
    assert torques_nm[settled] == pytest.approx(0.0, abs=1e-2)
    assert np.abs(torques_nm[~slips]).max() > 0.6


def test_stops_hold_where_the_gear_slips(bench, truth):
    for effects in (
        Effects(gear_slip=0.9, end_stop_rad=1.0),
        Effects(gear_slip=0.9, end_stop_rad=1.0, joint_resonance_hz=30.0),
    ):
        plant = make_plant(bench, truth, effects)
        run(plant, 0.5, 5.0)
        assert plant.joint_position_rad == [1.0]
        assert state(plant) == pytest.approx((1.0, 0.0), abs=1e-12)
        run(plant, -0.5, 0.5)
        assert plant.joint_position_rad[0] < 1.0


@pytest.mark.parametrize("preset", PRESETS)
def test_all_of_them_with_every_preset(bench, preset):
    effects = dataclasses.replace(PRESETS[preset], gear_slip=0.2, end_stop_rad=8.0)
    plant = make_plant(bench, draw_truth(bench, seed=3), effects, load_arm=ARM)
    for speed_rad_s in (4.0, -4.0):
        angles_rad, _ = turn(plant, speed_rad_s, 5.0)
        assert np.abs(angles_rad).max() < 8.5  # the rotor winds up a little
        assert plant.joint_position_rad == [math.copysign(8.0, speed_rad_s)]


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effects", "load_arm", "named"),
    [
        (Effects(end_stop_rad=1.0), None, ["end_stop_rad"]),
        (Effects(gear_slip=0.1), None, ["gear_slip"]),
        (Effects(), ARM, ["load arm"]),
        (Effects(end_stop_rad=1.0, gear_slip=0.1), ARM, ["end_stop_rad", "gear_slip", "load arm"]),
    ],
)
def test_an_arm_refuses_what_only_the_bench_can_have(arm, effects, load_arm, named):
    with pytest.raises(MockConfigError) as caught:
        make_plant(arm, draw_truth(arm, seed=0), effects, load_arm=load_arm)
    assert [problem.split(":")[0] for problem in caught.value.problems] == named


def test_slip_needs_a_rotor_with_inertia(bench, truth):
    massless = change(truth, rotor_inertia_kg_m2=0.0)
    make_plant(bench, massless, Effects(end_stop_rad=1.0))
    with pytest.raises(MockConfigError) as refused:
        make_plant(bench, massless, Effects(gear_slip=0.1))
    (problem,) = refused.value.problems
    assert problem.startswith("gear_slip: ")
