"""A recording states how its boards behave; those of format 1.0 did not, and are still read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from recording_maker import make_recording

from daq.recording import (
    BoardBehaviour,
    RecordingFormatError,
    RecordingIncompleteError,
    open_recording,
)
from daq.recording.layout import ATTRIBUTES, BEHAVIOUR_SINCE_MINOR
from daq.samples.columns import ColumnDecoder, behaviour_of
from firmware_protocol.profiles import PROFILES

ADDED = [item.name for item in ATTRIBUTES if item.since_minor == BEHAVIOUR_SINCE_MINOR]


def as_format_1_0(path: Path, profile: str = "arm") -> Path:
    """The same file as armature 0.1 would have written it."""
    with h5py.File(path, "r+") as file:
        for name in ADDED:
            del file.attrs[name]
        file.attrs["version_minor"] = np.int64(0)
        count = len(file.attrs["board_profiles"])
        file.attrs.create("board_profiles", [profile] * count, dtype=h5py.string_dtype())
    return path


@pytest.mark.parametrize("profile", PROFILES)
def test_what_the_table_says_is_in_the_file(tmp_path: Path, profile: str) -> None:
    path = make_recording(tmp_path / "r.h5", {"seq": np.arange(300)}, profile=profile)
    expected, command = PROFILES[profile].behaviour, PROFILES[profile].command
    highest = {field.name: field.raw_maximum * field.lsb for field in command.fields}
    with open_recording(path) as recording:
        assert len(recording.board_behaviours) == len(recording.board_names) == 2
        for board in recording.board_behaviours:
            assert board.velocity_filter_hz == expected.velocity_filter_hz
            assert board.current_filter_hz == expected.current_filter_hz
            assert board.is_reference_advanced is expected.is_reference_advanced
            assert board.kp_max_a_per_rad == highest["kp_a_per_rad"]
            assert board.kd_max_a_s_per_rad == highest["kd_a_s_per_rad"]
            assert board.ki_max_a_per_rad_s == highest.get("ki_a_per_rad_s", 0.0)
            assert board.motor_velocity_max_rad_s == highest["motor_velocity_rad_s"]


def test_the_recorder_writes_it(decoder: ColumnDecoder) -> None:
    info = decoder.recording_info("test")
    assert info.board_behaviours == (behaviour_of(PROFILES["arm"]),) * 2


# What boards of armature 0.1 did, whatever the tables of today say.
WITH_1_0 = {
    "arm": (True, 5.0929),
    "uomodri": (False, 0.0),
    "udriver2": (False, 0.0),
}


@pytest.mark.parametrize("profile", WITH_1_0)
def test_a_recording_of_format_1_0_is_read_by_its_own_table(file_path: Path, profile: str) -> None:
    with open_recording(as_format_1_0(file_path, profile)) as recording:
        assert recording.version == "1.0"
        board, _ = recording.board_behaviours
    is_advanced, ki_max = WITH_1_0[profile]
    assert (board.velocity_filter_hz, board.current_filter_hz) == (100.0, 1000.0)
    assert board.is_reference_advanced is is_advanced
    assert board.kp_max_a_per_rad == pytest.approx(5.0929, rel=1e-4)
    assert board.kd_max_a_s_per_rad == pytest.approx(0.61114, rel=1e-4)
    assert board.ki_max_a_per_rad_s == pytest.approx(ki_max, rel=1e-4)
    assert board.motor_velocity_max_rad_s == pytest.approx(1675.47, rel=1e-4)


def test_another_profile_in_format_1_0_is_refused_by_who_must_know(file_path: Path) -> None:
    with open_recording(as_format_1_0(file_path, "fourth")) as recording:
        assert len(recording["seq"]) == 300
        with pytest.raises(RecordingFormatError) as refused:
            _ = recording.board_behaviours
    assert refused.value.code == "unknown-profile"
    assert "'fourth'" in str(refused.value)


@pytest.mark.parametrize("name", ADDED)
def test_from_1_1_on_nothing_may_be_missing(file_path: Path, name: str) -> None:
    with h5py.File(file_path, "r+") as file:
        del file.attrs[name]
    with pytest.raises(RecordingIncompleteError) as refused:
        open_recording(file_path)
    assert refused.value.code == "missing-parts"


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_what_no_board_does(file_path: Path, name: str, value: float) -> None:
    with h5py.File(file_path, "r+") as file:
        file.attrs[name] = np.array([1.0, value])
    with open_recording(file_path) as recording, pytest.raises(RecordingFormatError) as refused:
        _ = recording.board_behaviours
    assert refused.value.code == "impossible-behaviour"


@pytest.mark.parametrize("change", [{"velocity_filter_hz": 0.0}, {"current_filter_hz": 0.0}])
def test_a_filter_lets_something_through(tmp_path: Path, change: dict[str, Any]) -> None:
    values = dict.fromkeys(BoardBehaviour.__dataclass_fields__, 1.0) | change
    file_path = make_recording(
        tmp_path / "r.h5", {"seq": np.arange(300)}, behaviour=BoardBehaviour(**values)
    )
    with open_recording(file_path) as recording, pytest.raises(RecordingFormatError) as refused:
        _ = recording.board_behaviours
    assert refused.value.code == "impossible-behaviour"


def test_no_filter_is_an_infinite_one(tmp_path: Path) -> None:
    values = dict.fromkeys(BoardBehaviour.__dataclass_fields__, math.inf)
    file_path = make_recording(
        tmp_path / "r.h5", {"seq": np.arange(300)}, behaviour=BoardBehaviour(**values)
    )
    with open_recording(file_path) as recording:
        board, _ = recording.board_behaviours
    assert (board.velocity_lag_s, board.current_lag_s) == (0.0, 0.0)
