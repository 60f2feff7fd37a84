"""Position errors are plain differences: what a reference does that crosses the wrap.

Figures are those of the firmwares, run natively: of seven crossings four ended in a runaway.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from board_rig import IDLE, ON, Rig

MakeRig = Callable[..., Rig]
ISAT_A = 2.0


def wrap_rad(rig: Rig) -> float:
    return rig.profile.behaviour.position_wrap_turns * math.tau


def lead(
    rig: Rig, position_rad: float, speed_rad_s: float, until_rad: float, **gains: float
) -> float:
    """Move the reference on by itself, sent modulo the wrap as a careless host does; its end."""
    wrap = wrap_rad(rig)
    while abs(until_rad - position_rad) > abs(speed_rad_s) * 1e-3:
        position_rad += speed_rad_s * 1e-3
        rig.send(
            mode=ON,
            motor_position_rad=(position_rad + wrap) % (2.0 * wrap) - wrap,
            motor_velocity_rad_s=speed_rad_s,
            kd_a_s_per_rad=0.02,
            isat_a=9.0,
            **gains,
        )
        rig.wait()
    return position_rad


def stand_near_the_wrap(rig: Rig, turns: float) -> None:
    """Lead the rotor to a position, and let friction hold it there."""
    target_rad = turns * math.tau
    reached = lead(rig, 0.0, math.copysign(500.0, turns), 0.9 * target_rad, kp_a_per_rad=1.0)
    reached = lead(rig, reached, math.copysign(100.0, turns), target_rad, kp_a_per_rad=3.0)
    rig.run(60, mode=ON, motor_position_rad=target_rad, kp_a_per_rad=4.0, kd_a_s_per_rad=0.02)
    rig.run(20, mode=ON)
    assert rig.look().motor_position_rad[0] == pytest.approx(target_rad, abs=1.0)


@pytest.mark.parametrize(
    ("profile", "side"),
    [("arm", 1.0), ("uomodri", -1.0), ("udriver2", 1.0), ("udriver2", -1.0)],
)
def test_the_position_error_is_a_plain_difference_across_the_wrap(held: Rig, side: float) -> None:
    """A fifth of a turn away on the other side: all the board has, and not towards it.

    The difference of `udriver2` is one of 32 bits, 256 turns wide, and its range 200: there the
    full current points to where the reference is.
    """
    behaviour = held.profile.behaviour
    near_turns = side * (behaviour.position_wrap_turns - 0.1)
    stand_near_the_wrap(held, near_turns)
    beyond = {"motor_position_rad": -near_turns * math.tau, "isat_a": ISAT_A}
    held.run(5, mode=ON, kp_a_per_rad=0.3, **beyond)
    iq_a = held.ask_again(mode=ON, kp_a_per_rad=0.3, **beyond).iq_a[0]
    is_wrapped = behaviour.position_difference_wraps_turns is not None
    assert iq_a == pytest.approx(side * (ISAT_A if is_wrapped else -ISAT_A), rel=2e-3)


def test_a_reference_that_wraps_before_the_rotor_makes_the_motor_run_away(
    profile: str, rig: MakeRig
) -> None:
    """By the rotor's true speed. `udriver2` pushes forward, and the rotor overtakes the wrap."""
    speed_rad_s, gains = 100.0, {"kp_a_per_rad": 0.18}
    turning = rig(profile, effects=IDLE)
    turning.calibrate()
    wrap = wrap_rad(turning)
    reached = lead(turning, 0.0, 500.0, wrap - 60.0, kp_a_per_rad=0.1)
    reached = lead(turning, reached, speed_rad_s, wrap - 0.5, **gains)
    assert turning.robot.plant.motor_velocity_rad_s[0] == pytest.approx(speed_rad_s, rel=0.05)
    speeds = []
    for _ in range(100):
        reached = lead(turning, reached, speed_rad_s, reached + 2e-3 * speed_rad_s, **gains)
        speeds.append(turning.robot.plant.motor_velocity_rad_s[0])
    if turning.profile.behaviour.position_difference_wraps_turns is None:
        assert speeds[-1] < -500.0
    else:
        assert max(speeds) > 1.5 * speed_rad_s


def test_udriver2_changes_the_sign_of_its_current_at_128_a(held: Rig) -> None:
    """Kp 5 A/rad, 4.1 turns: 128.8 A, which its integer takes for −127.2 A."""
    highest_a = held.profile.behaviour.current_sum_max_a
    position_rad = held.look().motor_position_rad[0]
    for sign in (1.0, -1.0):
        for turns, feed_forward_a, is_too_much in (
            (4.0, 0.0, False),
            (4.1, 0.0, True),
            (4.1, -2.0, False),
            (4.0, 4.0, True),
        ):
            fields = {
                "motor_position_rad": position_rad + sign * turns * math.tau,
                "kp_a_per_rad": 5.0,
                "iq_ff_a": sign * feed_forward_a,
                "isat_a": ISAT_A,
            }
            held.run(3, mode=ON, **fields)
            iq_a = held.ask_again(mode=ON, **fields).iq_a[0]
            is_turned = highest_a is not None and is_too_much
            assert iq_a == pytest.approx(sign * (-ISAT_A if is_turned else ISAT_A), rel=2e-3)
