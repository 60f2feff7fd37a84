"""Samples that are nonsense: they are not used, the reason is said, and NumPy warns of nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from datasets import summarise
from recording_maker import make_recording
from refusals import refused

from daq.robot import load_robot
from estimation.errors import DatasetError
from estimation.recordings.dataset import read_segments
from estimation.signals.velocity_choice import Spectra
from firmware_protocol.profiles import ARM

pytestmark = pytest.mark.chain

ROWS = 3000
PLAY, HOLD, ACTIVE, READY = 6, 1, 3, 2
NO_NUMBER = "a value that is not a number"
NO_COMMAND = "a gain or reference velocity that no board can hold"


def motion(rows: int = ROWS) -> dict[str, np.ndarray]:
    t_s = np.arange(rows)[:, None] * 1e-3 - 1e-3
    phase = 3.0 * t_s + np.arange(4)
    return {
        "joint_position_rad": np.sin(phase),
        "joint_velocity_rad_s": 3.0 * np.cos(phase),
        "joint_torque_nm": np.cos(phase),
        "reference_velocity_rad_s": 3.0 * np.cos(phase),
        "kp_a_per_rad": np.full((rows, 4), 1.0),
        "kd_a_s_per_rad": np.full((rows, 4), 0.02),
    }


def changed(path: Path, name: str, value: float, rows: slice = slice(None)) -> Path:
    """A recording of a motion, with a value in a column; at the second joint, if rows are few."""
    make_recording(path, motion())
    with h5py.File(path, "r+") as file:
        column = file[f"samples/{name}"]
        values = column[:]
        values[rows] = value
        column[:] = values
    return path


# --- codes ----------------------------------------------------------------------------------------


def test_modes_that_do_not_exist_are_not_used(tmp_path: Path) -> None:
    path = changed(tmp_path / "r.h5", "joint_mode", 255)
    assert summarise(path).left_out == {"robot not active, or a joint off": ROWS}
    mode = np.full((ROWS, 4), HOLD)
    mode[1000:, 1] = 8
    path = make_recording(tmp_path / "half.h5", {**motion(), "joint_mode": mode})
    (segment,) = read_segments(path)
    assert len(segment) == 998


def test_a_robot_that_is_not_active_follows_no_trajectory(tmp_path: Path) -> None:
    state = np.full(ROWS, ACTIVE)
    state[2000:] = READY
    path = make_recording(tmp_path / "r.h5", {**motion(), "state": state})
    (segment,) = read_segments(path)
    assert len(segment) == 1998
    assert summarise(path).left_out["not following a trajectory"] == 1000
    path = make_recording(tmp_path / "never.h5", {**motion(), "state": np.full(ROWS, 77)})
    assert summarise(path).used == 0
    path = make_recording(
        tmp_path / "import.h5", {**motion(), "state": np.zeros(ROWS)}, link="import"
    )
    assert summarise(path).used == ROWS


def test_a_reply_is_valid_or_not(tmp_path: Path) -> None:
    path = changed(tmp_path / "r.h5", "joint_valid", 255)
    assert summarise(path).left_out["no valid reply of some joint"] == ROWS - 2


# --- commands -------------------------------------------------------------------------------------


COMMANDS = ("kp_a_per_rad", "kd_a_s_per_rad", "reference_velocity_rad_s")


def test_the_limits_of_commands_are_those_of_the_wire(tmp_path: Path) -> None:
    reduction = next(joint.gear_reduction for joint in load_robot("laas4").joints)
    limits = {
        field.name.replace("motor", "reference"): field.raw_maximum * field.lsb
        for field in ARM.command.fields
    }
    for name in COMMANDS:
        limit = limits[name] / (reduction if name == COMMANDS[2] else 1.0)
        for share, left_out in ((1.0, 0), (1.01, 10)):
            path = changed(tmp_path / f"{name}{left_out}.h5", name, share * limit, slice(0, 0))
            with h5py.File(path, "r+") as file:
                file[f"samples/{name}"][1000:1010, 0] = share * limit
            assert summarise(path).left_out.get(NO_COMMAND, 0) == left_out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("value", [1e30, math.inf, -math.inf, 2000.0])
def test_commands_that_no_board_can_hold(tmp_path: Path, name: str, value: float) -> None:
    make_recording(tmp_path / "sound.h5", motion())
    (sound,) = read_segments(tmp_path / "sound.h5")
    path = changed(tmp_path / "few.h5", name, value, slice(1000, 1010))
    (segment,) = read_segments(path)
    assert segment.is_in_gap is not None
    assert np.flatnonzero(segment.is_in_gap).tolist() == list(range(998, 1008))
    np.testing.assert_allclose(segment.tau_nm[:990], sound.tau_nm[:990])
    np.testing.assert_allclose(segment.tau_nm[1020:], sound.tau_nm[1020:])
    assert np.abs(segment.tau_nm).max() < 2.0
    assert summarise(path).left_out[NO_COMMAND] == 10
    path = changed(tmp_path / "all.h5", name, value)
    assert list(read_segments(path)) == []
    assert summarise(path).left_out[NO_COMMAND] == ROWS - 2


def test_some_boards_have_no_integral_gain(tmp_path: Path) -> None:
    path = make_recording(tmp_path / "r.h5", motion())
    gain = np.full((ROWS, 4), 1.0, np.float32)
    gain[:, :2] = math.nan
    gain[2000:, 3] = 1e30
    with h5py.File(path, "r+") as file:
        file["samples/ki_a_per_rad_s"] = gain
    assert summarise(path).left_out[NO_COMMAND] == 1000
    assert summarise(path).used == 1998


# --- measured values ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["joint_position_rad", "joint_torque_nm", "joint_velocity_rad_s"])
@pytest.mark.parametrize("value", [1e30, -1e30, math.inf, 2e9, math.nan])
def test_values_that_are_no_numbers(tmp_path: Path, name: str, value: float) -> None:
    if name == "joint_position_rad" and value > 1e9:
        value *= 1e270
    path = changed(tmp_path / "few.h5", name, value, slice(1000, 1010))
    (segment,) = read_segments(path)
    assert segment.is_in_gap is not None
    assert set(range(998, 1008)) <= set(np.flatnonzero(segment.is_in_gap))
    assert np.abs(segment.q_rad).max() < 1.1 and np.abs(segment.tau_nm).max() < 2.0
    assert summarise(path).left_out[NO_NUMBER] == 10
    path = changed(tmp_path / "all.h5", name, value)
    if name == "joint_velocity_rad_s":  # positions will do
        (segment,) = read_segments(path)
        assert segment.dq_rad_s is None
    else:
        assert list(read_segments(path)) == []
        assert summarise(path).left_out == {
            "first rows of a motion, measured before it": 2,
            NO_NUMBER: ROWS - 2,
        }


@pytest.mark.parametrize("name", ["iq_a", "reference_position_rad"])
def test_what_is_known_besides_may_be_nonsense(tmp_path: Path, name: str) -> None:
    (segment,) = read_segments(changed(tmp_path / "r.h5", name, math.inf))
    assert getattr(segment, name) is None


def test_a_velocity_that_is_always_zero_disagrees(tmp_path: Path) -> None:
    path = make_recording(tmp_path / "r.h5", motion())
    (segment,) = read_segments(path)
    still = replace(segment, dq_rad_s=np.zeros_like(segment.q_rad))
    for joint in Spectra([still]).velocities(20.0, 5.0):
        assert (joint.gain, joint.delay_s) == (0.0, 0.0)
        assert not joint.agrees


def test_times_that_jump_over_the_end_of_the_clock(tmp_path: Path) -> None:
    path = make_recording(tmp_path / "r.h5", motion())
    with h5py.File(path, "r+") as file:
        file["samples/t_ns"][0] = -(1 << 63)
        file["samples/t_ns"][1000] = (1 << 63) - 1
    with refused(DatasetError, "times-do-not-rise", "r.h5", "row 1:"):
        summarise(path)
