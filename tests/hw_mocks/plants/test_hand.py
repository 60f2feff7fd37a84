"""The hand turns rotors past any index, forth and back, whatever holds them moderately."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.robot import load_robot
from daq.robot.description import DrivenRobot
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.effects import PRESETS
from hw_mocks.plants.hand import TURN_S, Hand
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.truth import draw_truth

STEP_NS = 250_000
Brake = Callable[[float], float]


def turn(
    robot: DrivenRobot, *, seed: int = 0, at_s: float = 0.5, brake: Brake = lambda _: 0.0
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return where the rotors were and are, how far each came and the largest torque on it."""
    truth = draw_truth(robot, seed=seed, spread=0.25)
    plant = make_plant(robot, truth, PRESETS["troubles"])
    hand = Hand([at_s])
    start_rad = list(plant.motor_position_rad)
    farthest_rad, strongest_nm = [0.0] * len(start_rad), [0.0] * len(start_rad)
    for step in range(round((at_s + TURN_S + 0.5) * 1e9) // STEP_NS):
        now_ns = step * STEP_NS
        velocities_rad_s = plant.motor_velocity_rad_s
        torques_nm = hand.torques_nm(now_ns, plant.motor_position_rad, velocities_rad_s)
        is_held = at_s <= now_ns * 1e-9 < at_s + TURN_S
        assert (torques_nm is not None) is is_held
        push_nm = torques_nm or [0.0] * len(start_rad)
        plant.step([t + brake(v) for t, v in zip(push_nm, velocities_rad_s, strict=True)])
        for number, position_rad in enumerate(plant.motor_position_rad):
            ahead_rad = position_rad - start_rad[number]
            farthest_rad[number] = max(farthest_rad[number], ahead_rad)
            strongest_nm[number] = max(strongest_nm[number], abs(push_nm[number]))
    return start_rad, plant.motor_position_rad, farthest_rad, strongest_nm


@pytest.mark.parametrize("name", ["bench1", "laas4"])
@pytest.mark.parametrize("is_braked", [False, True])
def test_every_motor_passes_any_index_and_comes_back(name: str, is_braked: bool) -> None:
    robot = load_robot(name).driven()
    motor = robot.motor_of(robot.joints[0])
    # Shorted windings, as boards leave them in IDLE.
    braking = motor.torque_constant_nm_per_a**2 / 1.5 / motor.coil_resistance_ohm

    start_rad, end_rad, farthest_rad, strongest_nm = turn(
        robot, brake=(lambda v: -braking * v) if is_braked else (lambda _: 0.0)
    )

    assert all(math.tau < far < 1.3 * math.tau for far in farthest_rad), farthest_rad
    for before_rad, after_rad in zip(start_rad, end_rad, strict=True):
        assert abs(after_rad - before_rad) < 0.2 * math.tau
    assert max(strongest_nm) <= 0.15


def test_a_motor_that_is_held_firmly_is_not_forced() -> None:
    hand = Hand([0.0])
    for now_ns in range(0, 4_000_000_000, 10_000_000):
        (torque_nm,) = hand.torques_nm(now_ns, [3.0], [0.0]) or [0.0]
        assert abs(torque_nm) <= 0.15


@given(st.lists(st.floats(0.0, 100.0), max_size=4), st.floats(-1e3, 1e3))
@settings(max_examples=examples(40))
def test_it_takes_hold_gently_where_each_motor_stands(at_s: list[float], from_rad: float) -> None:
    times_s = sorted(at_s)
    if any(b < a + TURN_S for a, b in itertools.pairwise(times_s)):
        with pytest.raises(MockConfigError):
            Hand(at_s)
        return
    hand = Hand(at_s)
    for number, begin_s in enumerate(times_s):
        position_rad = from_rad + number
        torques_nm = hand.torques_nm(round(begin_s * 1e9) + 1, [position_rad], [0.0])
        assert torques_nm == [pytest.approx(0.0, abs=1e-3)]
        assert hand.torques_nm(round((begin_s + TURN_S) * 1e9) + 1, [0.0], [0.0]) is None


@pytest.mark.parametrize("at_s", [[-1.0], [math.nan], [math.inf], [1.0, 4.9]])
def test_times_that_cannot_be(at_s: list[float]) -> None:
    with pytest.raises(MockConfigError):
        Hand(at_s)
