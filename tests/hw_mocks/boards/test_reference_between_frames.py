"""`arm` advances its position reference between frames; the 34-byte boards hold it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from board_rig import IDLE, ON, Rig

FRAME_S = 1e-3
LSB_A = 2.0**-10
MakeRig = Callable[..., Rig]


def test_between_frames_only_arm_moves_the_reference_on(held: Rig) -> None:
    behaviour = held.profile.behaviour
    lag_s = 1.0 / (math.tau * behaviour.current_filter_hz)
    position = held.look().motor_position_rad[0]
    fields = {"motor_position_rad": position, "motor_velocity_rad_s": 20.0, "kp_a_per_rad": 4.0}
    # Each frame sets it anew.
    for pause_s in (30e-3, 1e-3):
        held.wait(1)
        held.send(mode=ON, **fields)
        held.wait(1e3 * pause_s)
        iq_a = held.send(mode=ON, **fields).iq_a[0]
        advanced_a = 4.0 * 20.0 * (pause_s - lag_s) if behaviour.is_reference_advanced else 0.0
        # The board took it over after the wire and a tick, and latched its reply before.
        assert iq_a == pytest.approx(advanced_a, abs=0.012)


def bias_s(rig: Rig, velocity: float, kp: float = 0.5) -> float:
    """How much too low iq is that replies say, over Kp·ω; half an LSB goes back."""
    joint = rig.robot.robot.joints[0]
    nm_per_a = rig.robot.robot.motor_of(joint).torque_constant_nm_per_a
    rig.calibrate()
    reference, sampled = 0.0, []
    for cycle in range(1200):
        reference += velocity * FRAME_S
        reply = rig.send(
            mode=ON,
            motor_position_rad=reference,
            motor_velocity_rad_s=velocity,
            kp_a_per_rad=kp,
            kd_a_s_per_rad=0.01,
        )
        rig.wait()
        if cycle >= 700:
            sampled.append(reply.iq_a[0])
    friction = joint.drive.friction
    viscous_nm = friction.viscous_motor_nm_s_per_rad * velocity
    coulomb_nm = friction.coulomb_joint_nm / joint.drive.gear_reduction
    true_a = (viscous_nm + math.copysign(coulomb_nm, velocity)) / nm_per_a
    mean_a = float(np.mean(sampled))
    mean_a += math.copysign(0.5 * LSB_A, mean_a)
    return (true_a - mean_a) / (kp * velocity)


def held_reference_s(rig: Rig) -> float:
    """The end of a sawtooth, less its mean, behind a low-pass: what `bias_s` should be."""
    behaviour = rig.profile.behaviour
    wire_s = rig.profile.frame_size * 8.0 / rig.board.clock_hz
    early_s = 0.5 * behaviour.reply_age_max_s + wire_s + 0.5 * behaviour.law_period_s
    lag_s = 1.0 / (math.tau * behaviour.current_filter_hz)
    left_s = FRAME_S * math.exp(early_s / lag_s) / (math.exp(FRAME_S / lag_s) - 1.0)
    return 0.5 * FRAME_S - early_s - lag_s + left_s


@pytest.mark.parametrize(
    ("name", "clock_hz", "expected_s", "velocity"),
    [
        ("uomodri", math.inf, 0.312e-3, 155.0),
        ("uomodri", 8e6, 0.279e-3, 155.0),
        ("uomodri", 2e6, 0.179e-3, 155.0),
        ("udriver2", 8e6, 0.279e-3, -80.0),
    ],
)
def test_iq_of_a_held_reference_is_biased_by_wire_latch_and_tick(
    rig: MakeRig, name: str, clock_hz: float, expected_s: float, velocity: float
) -> None:
    board = rig(name, effects=IDLE)
    board.board.clock_hz = clock_hz
    assert held_reference_s(board) == pytest.approx(expected_s, abs=1e-6)
    assert bias_s(board, velocity) == pytest.approx(expected_s, abs=6e-6)


@pytest.mark.parametrize("clock_hz", [8e6, 2e6])
def test_iq_of_an_advanced_reference_is_not_biased(rig: MakeRig, clock_hz: float) -> None:
    board = rig("arm", effects=IDLE)
    board.board.clock_hz = clock_hz
    assert bias_s(board, 155.0) == pytest.approx(0.0, abs=3e-6)
