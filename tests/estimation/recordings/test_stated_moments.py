"""What a recording of today states of its boards, and what readers of segments make of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import examples
from datasets import read_segments
from hypothesis import given, settings
from hypothesis import strategies as st
from older_formats import behaviour_in_1_1
from recording_maker import make_recording

from daq.recording import BoardBehaviour
from daq.robot import load_robot
from daq.samples.columns import behaviour_of
from estimation.model.position_law import law_of
from estimation.recordings.board_effects import held_delay_s, untruncated
from estimation.recordings.references import VelocityLoop, regular_response_s
from estimation.recordings.segment import Segment
from firmware_protocol.profiles import PROFILES

ROWS = 1000
WIRE_S = 34e-6
T_S = np.arange(ROWS) * 1e-3


def stated(profile: str = "uomodri", **changes: Any) -> BoardBehaviour:
    return replace(behaviour_of(PROFILES[profile], wire_s=WIRE_S), **changes)


def read(path: Path, columns: dict[str, Any], behaviour: BoardBehaviour) -> Segment:
    make_recording(path, columns, behaviour=behaviour)
    (segment,) = read_segments(path)
    return segment


# --- values that were cut -------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(mean=st.floats(-20.0, 20.0), noise=st.floats(2.0, 8.0), lsb=st.sampled_from([2**-10, 0.051]))
def test_half_a_step_goes_back_on(mean: float, noise: float, lsb: float) -> None:
    """On average values come out as they were, whatever their sign.

    Also around zero, where there is noise of some steps as on every board.
    """
    chance = np.random.default_rng(1)
    values = lsb * (mean + noise * chance.standard_normal(40_000))
    cut = lsb * np.trunc(values / lsb)
    back = untruncated(cut, 0.5 * lsb)
    assert abs(np.mean(back - values)) < 0.06 * lsb
    assert (back[cut == 0.0] == 0.0).all()


@pytest.mark.parametrize("is_truncated", [True, False])
def test_currents_torques_and_velocities_get_it_back(tmp_path: Path, is_truncated: bool) -> None:
    behaviour = stated("arm", is_truncated=is_truncated)
    robot = load_robot("laas4").driven()
    signs = np.array([1.0, -1.0, 1.0, 0.0])
    steps = np.array([behaviour.motor_velocity_lsb_rad_s / j.gear_reduction for j in robot.joints])
    constants = np.array([robot.nm_per_a(joint) for joint in robot.joints])
    columns = {
        "joint_velocity_rad_s": np.tile(3.0 * signs * steps, (ROWS, 1)),
        "joint_position_rad": T_S[:, None] * 3.5 * signs * steps,
        "iq_a": np.tile(5.0 * signs * behaviour.current_lsb_a, (ROWS, 1)),
        "joint_torque_nm": np.tile(5.0 * signs * constants * behaviour.current_lsb_a, (ROWS, 1)),
    }
    segment = read(tmp_path / "r.h5", columns, behaviour)
    half = 0.5 * is_truncated
    assert segment.dq_rad_s is not None
    assert segment.iq_a is not None
    np.testing.assert_allclose(segment.dq_rad_s[0], (3.0 + half) * signs * steps, rtol=1e-5)
    np.testing.assert_allclose(
        segment.iq_a[0], (5.0 + half) * signs * behaviour.current_lsb_a, rtol=1e-5
    )
    np.testing.assert_allclose(
        segment.tau_nm[0], (5.0 + half) * signs * constants * behaviour.current_lsb_a, rtol=1e-5
    )
    rows = columns["joint_position_rad"][-len(segment) :]  # the first may be older
    np.testing.assert_allclose(segment.q_rad, rows, atol=1e-15)


# --- when values were taken -----------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [stated(), behaviour_in_1_1("uomodri")])
def test_values_are_as_old_as_it_says(tmp_path: Path, behaviour: BoardBehaviour) -> None:
    """Frames at odd times: a position that grows evenly is read where it was."""
    chance = np.random.default_rng(0)
    jitter_s = 0.15e-3 * chance.random(ROWS)
    is_fresh = behaviour.reply_age_max_s is not None
    sent_s = T_S + jitter_s
    exchange_s = 0.1e-3
    before_s = np.concatenate([[sent_s[0] - 1e-3], sent_s[:-1]]) + exchange_s
    taken_s = sent_s - behaviour.reply_age_s if is_fresh else before_s
    speed = np.array([0.5, -1.0, 2.0, 0.1])
    columns = {
        "joint_position_rad": taken_s[:, None] * speed,
        "joint_velocity_rad_s": np.tile(speed, (ROWS, 1)),
        "t_ns": 5_000_000_000 + np.rint(sent_s * 1e9).astype(np.int64),
        "transfer_ns": np.full(ROWS, round(exchange_s * 1e9)),
    }
    segment = read(tmp_path / "r.h5", columns, replace(behaviour, is_truncated=False))
    origin_s = sent_s[0]  # of the segment's times: the recording's first sample
    np.testing.assert_allclose(
        segment.q_rad, (segment.t_s + origin_s)[:, None] * speed, atol=2e-6 * np.abs(speed).max()
    )
    assert segment.is_reply_fresh is is_fresh


def test_the_command_beside_a_value_is_the_one_that_follows_it(tmp_path: Path) -> None:
    speed = np.array([0.5, -1.0, 2.0, 0.1])
    columns = {
        "joint_position_rad": T_S[:, None] * speed,
        "joint_velocity_rad_s": np.tile(speed, (ROWS, 1)),
        "reference_position_rad": 0.01 + T_S[:, None] * speed,
        "reference_velocity_rad_s": np.tile(speed, (ROWS, 1)),
        "kp_a_per_rad": np.full((ROWS, 4), 0.5),
    }
    robot = load_robot("laas4")
    for behaviour, late_s in ((stated(), 18.5e-6 + WIRE_S + 12.5e-6), (None, 1e-3)):
        path = tmp_path / f"{late_s}.h5"
        segment = read(path, columns, behaviour or behaviour_in_1_1("uomodri"))
        law = law_of(robot, segment)
        # What a board obeys when a value is taken is so much behind what was sent with it.
        sent = columns["reference_position_rad"][-len(segment) :]
        behind = np.broadcast_to(late_s * speed, sent.shape)
        np.testing.assert_allclose((sent - law.reference_rad)[1:], behind[1:], atol=1e-12)


# --- held references ------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_the_reference_jumps_at_its_own_speed(tmp_path: Path, profile: str) -> None:
    """A bug: the joint's speed was taken, which a soft joint under load does not have."""
    behaviour = stated(profile, is_truncated=False, torn_step_rad=0.0)
    robot = load_robot("laas4").driven()
    speed = np.tile([0.5, -1.0, 2.0, 0.0], (ROWS, 1))
    columns = {
        "joint_position_rad": T_S[:, None] * speed * 0.9,
        "joint_velocity_rad_s": 0.9 * speed,
        "reference_position_rad": T_S[:, None] * speed,
        "reference_velocity_rad_s": speed,
        "kp_a_per_rad": np.full((ROWS, 4), 0.5),
        "kd_a_s_per_rad": np.full((ROWS, 4), 0.02),
        "joint_torque_nm": np.full((ROWS, 4), 0.25),
    }
    segment = read(tmp_path / "r.h5", columns, behaviour)
    early_s = 18.5e-6 + WIRE_S + 12.5e-6
    late_s = held_delay_s(1e-3, 1.0 / (2.0 * math.pi * 1000.0), early_s)
    for number, joint in enumerate(robot.joints):
        constant = robot.motor_of(joint).torque_constant_nm_per_a
        loop = VelocityLoop(
            kp_a_per_rad=0.5,
            kd_a_s_per_rad=0.02,
            rad_s2_per_a=constant / joint.drive.rotor_inertia_kg_m2,
            velocity_lag_s=behaviour.velocity_lag_s,
        )
        response_s = regular_response_s(1e-3, behaviour, loop)
        assert abs(response_s) < 0.01 * late_s
        rate = robot.nm_per_a(joint) * joint.motor_per_joint * speed[0, number]
        missing_nm = 0.5 * rate * (late_s + response_s)
        expected_nm = 0.25 + (0.0 if behaviour.is_reference_advanced else missing_nm)
        np.testing.assert_allclose(segment.tau_nm[:, number], expected_nm, rtol=1e-6)
