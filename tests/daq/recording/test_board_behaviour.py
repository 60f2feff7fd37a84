"""A recording states how its boards behave; those of formats 1.0 and 1.1 state less."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import msgspec
import numpy as np
import pytest
from older_formats import as_format, behaviour_in_1_1
from recording_maker import make_recording
from sessions import make_session

from daq.recording import (
    BoardBehaviour,
    RecordingFormatError,
    RecordingIncompleteError,
    open_recording,
)
from daq.recording.layout import ATTRIBUTES
from daq.samples.batches import decode_session, encode_session
from daq.samples.columns import ColumnDecoder, behaviour_of
from firmware_protocol.profiles import PROFILES

ADDED = [item.name for item in ATTRIBUTES if item.since_minor]
WIRE_S = 38e-6


def as_format_1_0(path: Path, profile: str = "arm") -> Path:
    """The same file as armature 0.1 would have written it."""
    with h5py.File(path, "r+") as file:
        count = len(file.attrs["board_profiles"])
        file.attrs.create("board_profiles", [profile] * count, dtype=h5py.string_dtype())
    return as_format(path, 0)


@pytest.mark.parametrize("profile", PROFILES)
def test_what_the_table_says_is_in_the_file(tmp_path: Path, profile: str) -> None:
    path = make_recording(
        tmp_path / "r.h5",
        {"seq": np.arange(300)},
        behaviour=behaviour_of(PROFILES[profile], wire_s=WIRE_S),
    )
    expected, command = PROFILES[profile].behaviour, PROFILES[profile].command
    resolved = {field.name: field.lsb for field in PROFILES[profile].reply.fields}
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
            assert board.reply_age_max_s == expected.reply_age_max_s
            assert board.wire_s == WIRE_S
            assert board.law_period_s == expected.law_period_s
            assert board.is_truncated is expected.is_truncated
            assert board.current_lsb_a == resolved["iq_a"]
            assert board.motor_velocity_lsb_rad_s == resolved["motor_velocity_rad_s"]
            assert board.motor_position_lsb_rad == resolved["motor_position_rad"]
            torn_rad = math.tau / 256 if expected.torn_share else 0.0
            assert board.torn_step_rad == pytest.approx(torn_rad)


def test_the_recorder_writes_it(decoder: ColumnDecoder) -> None:
    info = decoder.recording_info("test")
    wire_s = 8.0 * 38 / 8e6
    assert info.board_behaviours == (behaviour_of(PROFILES["arm"], wire_s=wire_s),) * 2


@pytest.mark.parametrize(
    ("framing", "said_s", "wire_s"),
    # Sessions of version 0.1 did not say: by the robot file's clock, on SPI.
    [("spi", None, 8.0 * 34 / 8e6), ("rs485", None, 0.0), ("spi", 136e-6, 136e-6)],
)
def test_the_time_on_the_wire_is_the_sessions(
    framing: str, said_s: float | None, wire_s: float
) -> None:
    session = make_session(profile="uomodri", framing=framing)
    boards = tuple(msgspec.structs.replace(board, wire_s=said_s) for board in session.boards)
    session = msgspec.structs.replace(session, boards=boards)
    info = ColumnDecoder(decode_session(encode_session(session))).recording_info("test")
    assert [board.wire_s for board in info.board_behaviours] == pytest.approx([wire_s] * 2)


def test_a_session_of_version_0_1_is_read() -> None:
    """They had no `wire_s`: the same schema, so that their journals can be recovered."""
    text = encode_session(make_session()).decode().replace(',"wire_s":null', "")
    assert "wire_s" not in text
    assert decode_session(text.encode()) == make_session()


def test_format_1_1_does_not_state_when_replies_are_made(file_path: Path) -> None:
    with open_recording(as_format(file_path, 1)) as recording:
        assert recording.version == "1.1"
        board, _ = recording.board_behaviours
    assert board == behaviour_in_1_1("arm")
    assert board.reply_age_max_s is None
    assert (board.command_delay_s, board.is_truncated, board.torn_step_rad) == (0.0, False, 0.0)


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
def test_nothing_of_its_version_may_be_missing(file_path: Path, name: str) -> None:
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Boards answer and obey within a period.
        *(("reply_age_max_s", 0.00107), ("wire_s", 0.01), ("law_period_s", 0.00105)),
        *(("is_reference_advanced", 0.001), ("is_reference_advanced", 1e30), ("is_truncated", 2.0)),
        *(("current_lsb_a", 1e30), ("motor_velocity_lsb_rad_s", math.inf), ("torn_step_rad", 10.0)),
    ],
)
def test_what_no_board_does_is_named(file_path: Path, name: str, value: float) -> None:
    with h5py.File(file_path, "r+") as file:
        file.attrs[f"board_{name}"] = np.array([0.0, value])
    with open_recording(file_path) as recording, pytest.raises(RecordingFormatError) as refused:
        _ = recording.board_behaviours
    assert refused.value.code == "impossible-behaviour"
    assert f"board_{name} = {value:g};" in str(refused.value)


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
    filters = ("velocity_filter_hz", "current_filter_hz")
    moments = ("reply_age_max_s", "wire_s", "law_period_s")
    values = dict.fromkeys(BoardBehaviour.__dataclass_fields__, 1.0)
    values |= dict.fromkeys(filters, math.inf) | dict.fromkeys(moments, 1e-5)
    file_path = make_recording(
        tmp_path / "r.h5", {"seq": np.arange(300)}, behaviour=BoardBehaviour(**values)
    )
    with open_recording(file_path) as recording:
        board, _ = recording.board_behaviours
    assert (board.velocity_lag_s, board.current_lag_s) == (0.0, 0.0)
