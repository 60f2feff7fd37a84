"""Each effect alone, and all together, in two seconds of motion near the drives' limits."""

import dataclasses
import math

import numpy as np
import pytest

from hw_mocks.plants.actuator import make_actuators
from hw_mocks.plants.effects import BENCH_ONLY, PRESETS, Effects
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.truth import draw_truth

ALONE = {
    field.name: Effects(**{field.name: getattr(PRESETS["troubles"], field.name)})
    for field in dataclasses.fields(Effects)
    if field.name not in BENCH_ONLY
}


def drive(robot, effects, seed=11, duration_s=2.0):
    """Follow sines by position control at the motor, as a board would; joint angles every 1 ms."""
    plant = make_plant(robot, draw_truth(robot, seed=seed), effects)
    actuators = make_actuators(robot, effects, np.random.default_rng(seed))
    drives = [
        (joint.drive.gear_reduction, robot.motor_of(joint).current_max_a) for joint in robot.joints
    ]
    start = list(plant.motor_position_rad)
    torques = [0.0] * len(drives)
    errors, track = [], []
    for step in range(round(duration_s / plant.step_s)):
        time_s = step * plant.step_s
        for i, (reduction, current_max_a) in enumerate(drives):
            position, velocity = plant.motor_position_rad[i], plant.motor_velocity_rad_s[i]
            omega = 3.0 + i
            wanted = start[i] + reduction * (1 - math.cos(omega * time_s))
            wanted_rad_s = reduction * omega * math.sin(omega * time_s)
            iq_a = 1.0 * (wanted - position) + 0.05 * (wanted_rad_s - velocity)
            iq_a = min(max(iq_a, -current_max_a), current_max_a)
            torques[i] = actuators[i].torque_nm(iq_a, position, velocity)
            errors.append(abs(wanted - position) / reduction)
        plant.step(torques)
        if step % 4 == 3:
            track.append(plant.joint_position_rad)
    return np.array(track), max(errors)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("which", ["arm", "bench"])
def test_an_effect_alone_stays_stable(request, which, name):
    track, worst_rad = drive(request.getfixturevalue(which), ALONE[name])
    assert np.all(np.isfinite(track))
    assert np.ptp(track, axis=0).min() > 1.5
    assert worst_rad < 0.5


@pytest.mark.parametrize("which", ["arm", "bench"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_stays_stable_and_is_repeatable(request, which, preset):
    robot = request.getfixturevalue(which)
    track, worst_rad = drive(robot, PRESETS[preset])
    assert worst_rad < 0.5
    again, _ = drive(robot, PRESETS[preset], duration_s=1.0)
    assert np.array_equal(again, track[:1000])


@pytest.mark.parametrize("which", ["arm", "bench"])
@pytest.mark.parametrize(
    "name",
    [
        "cogging_nm",
        "torque_ripple",
        "backlash_rad",
        "torque_constant_drop",
        "stribeck",
        "joint_resonance_hz",
    ],
)
def test_an_effect_has_an_effect(request, which, name):
    robot = request.getfixturevalue(which)
    without, _ = drive(robot, Effects(), duration_s=1.0)
    with_it, _ = drive(robot, ALONE[name], duration_s=1.0)
    assert 1e-6 < np.abs(with_it - without).max() < 0.2
