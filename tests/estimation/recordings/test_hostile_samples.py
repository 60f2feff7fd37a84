"""Samples that are nonsense: they are not used, the reason is said, and NumPy warns of nothing."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from datasets import read_segments, summarise
from recording_maker import make_recording
from refusals import refused

from daq.robot import load_robot
from estimation.errors import DatasetError
from estimation.recordings.uniform_rows import widened
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


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a motion; to be copied."""
    return make_recording(tmp_path_factory.mktemp("sound") / "r.h5", motion())


def changed(sound: Path, path: Path, name: str, values: dict[tuple[int, int], float]) -> Path:
    """A copy with other values of all joints in some rows of a column."""
    shutil.copy(sound, path)
    with h5py.File(path, "r+") as file:
        for (begin, end), value in values.items():
            file[f"samples/{name}"][begin:end] = value
    return path


def few(values: Sequence[float]) -> dict[tuple[int, int], float]:
    """Each value for ten rows, far from the others."""
    return {(1000 + 200 * n, 1010 + 200 * n): value for n, value in enumerate(values)}


def rows_of(values: dict[tuple[int, int], float]) -> list[int]:
    """Where they stand in the segment, which begins with the third row."""
    return [row - 2 for begin, end in values for row in range(begin, end)]


# --- codes ----------------------------------------------------------------------------------------


def test_modes_that_do_not_exist_are_not_used(sound: Path, tmp_path: Path) -> None:
    path = changed(sound, tmp_path / "r.h5", "joint_mode", {(0, ROWS): 255})
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


def test_a_reply_is_valid_or_not(sound: Path, tmp_path: Path) -> None:
    path = changed(sound, tmp_path / "r.h5", "joint_valid", {(0, ROWS): 255})
    assert summarise(path).left_out["no valid reply of some joint"] == ROWS - 2


# --- commands -------------------------------------------------------------------------------------


COMMANDS = ("kp_a_per_rad", "kd_a_s_per_rad", "reference_velocity_rad_s")


def test_the_limits_of_commands_are_those_of_the_wire(sound: Path, tmp_path: Path) -> None:
    reduction = next(joint.gear_reduction for joint in load_robot("laas4").joints)
    limits = {
        field.name.replace("motor", "reference"): field.raw_maximum * field.lsb
        for field in ARM.command.fields
    }
    for name in COMMANDS:
        limit = limits[name] / (reduction if name == COMMANDS[2] else 1.0)
        for share, left_out in ((1.0, 0), (1.01, 10)):
            path = Path(shutil.copy(sound, tmp_path / f"{name}{left_out}.h5"))
            with h5py.File(path, "r+") as file:
                file[f"samples/{name}"][1000:1010, 0] = share * limit
            assert summarise(path).left_out.get(NO_COMMAND, 0) == left_out


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_no_board_can_hold(sound: Path, tmp_path: Path, name: str) -> None:
    (usual,) = read_segments(sound)
    values = few([1e30, math.inf, -math.inf, 2000.0])
    path = changed(sound, tmp_path / "few.h5", name, values)
    (segment,) = read_segments(path)
    assert segment.is_in_gap is not None
    assert np.flatnonzero(segment.is_in_gap).tolist() == rows_of(values)
    far = ~widened(segment.is_in_gap)
    np.testing.assert_allclose(segment.tau_nm[far], usual.tau_nm[far])
    assert np.abs(segment.tau_nm).max() < 2.0
    assert summarise(path).left_out[NO_COMMAND] == 40
    path = changed(sound, tmp_path / "all.h5", name, {(0, ROWS): 2000.0})
    assert list(read_segments(path)) == []
    assert summarise(path).left_out[NO_COMMAND] == ROWS - 2


def test_some_boards_have_no_integral_gain(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path / "r.h5"))
    gain = np.full((ROWS, 4), 1.0, np.float32)
    gain[:, :2] = math.nan
    gain[2000:, 3] = 1e30
    with h5py.File(path, "r+") as file:
        file["samples/ki_a_per_rad_s"] = gain
    assert summarise(path).left_out[NO_COMMAND] == 1000
    assert summarise(path).used == 1998


# --- measured values ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["joint_position_rad", "joint_torque_nm", "joint_velocity_rad_s"])
def test_values_that_are_no_numbers(sound: Path, tmp_path: Path, name: str) -> None:
    large = 1e300 if name == "joint_position_rad" else 1e30
    values = few([large, -1e30, math.inf, 2e9, math.nan])
    path = changed(sound, tmp_path / "few.h5", name, values)
    (segment,) = read_segments(path)
    assert segment.is_in_gap is not None
    assert set(rows_of(values)) <= set(np.flatnonzero(segment.is_in_gap))
    assert np.abs(segment.q_rad).max() < 1.1 and np.abs(segment.tau_nm).max() < 2.0
    assert summarise(path).left_out[NO_NUMBER] == 50
    path = changed(sound, tmp_path / "all.h5", name, {(0, ROWS): large})
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
def test_what_is_known_besides_may_be_nonsense(sound: Path, tmp_path: Path, name: str) -> None:
    (segment,) = read_segments(changed(sound, tmp_path / "r.h5", name, {(0, ROWS): math.inf}))
    assert getattr(segment, name) is None


def test_a_velocity_that_is_always_zero_disagrees(sound: Path) -> None:
    (segment,) = read_segments(sound)
    still = replace(segment, dq_rad_s=np.zeros_like(segment.q_rad))
    for joint in Spectra([still]).velocities(20.0, 5.0):
        assert (joint.gain, joint.delay_s) == (0.0, 0.0)
        assert not joint.agrees


def test_times_that_jump_over_the_end_of_the_clock(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path / "r.h5"))
    with h5py.File(path, "r+") as file:
        file["samples/t_ns"][0] = -(1 << 63)
        file["samples/t_ns"][1000] = (1 << 63) - 1
    with refused(DatasetError, "times-do-not-rise", "r.h5", "row 1:"):
        summarise(path)
