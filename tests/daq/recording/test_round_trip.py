"""What is written is what is read, lazily and with its units."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from sessions import make_session

from daq.recording import (
    Gap,
    RecordingFormatError,
    RecordingWriter,
    open_recording,
    summarise,
)
from daq.recording.layout import (
    ATTRIBUTES,
    COLUMNS,
    COMMAND_BITS,
    MODES,
    OUTCOMES,
    STATES,
    STATUS_BITS,
    TABLES,
)
from daq.samples.batches import Event
from daq.samples.columns import VALID_OUTCOMES, ColumnDecoder
from firmware_protocol.profiles import MODE_FLAGS, PROFILES, STATUS_FLAGS

Array = np.ndarray[Any, np.dtype[Any]]


def test_columns_come_back_within_a_sixteenth_of_the_wires_last_bit(
    recorded: Path, decoder: ColumnDecoder, samples: Array
) -> None:
    expected = decoder.decode(samples)
    with open_recording(recorded) as recording:
        assert set(recording) == set(expected) == set(COLUMNS)
        for name, values in expected.items():
            column = recording[name]
            assert column.dtype == COLUMNS[name].dtype
            found = column[:]
            if name in decoder.grids:
                # A grid is at most an eighth of the wire's last bit.
                error = np.abs(found - values) / np.array(decoder.grids[name])
                assert np.nanmax(error) <= 0.5 + 1e-9, name
                assert np.array_equal(np.isnan(found), np.isnan(values))
            else:
                assert np.array_equal(found, values), name


def test_units_descriptions_and_names_of_codes_are_in_the_file(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        for name, column in recording.items():
            assert (column.unit, column.description) == (
                COLUMNS[name].unit,
                COLUMNS[name].description,
            )
            assert column.codes == COLUMNS[name].codes
            assert column.bits == COLUMNS[name].bits
        assert recording["joint_position_rad"].unit == "rad"
        assert recording["board_outcome"].codes[255] == "no_exchange"
        assert "joint_torque_nm" in repr(recording["joint_torque_nm"])
    with h5py.File(recorded) as file:
        for group, datasets in TABLES.items():
            for dataset in datasets:
                attributes = file[group][dataset.name].attrs
                assert attributes["description"] == dataset.description
                assert attributes["unit"] == dataset.unit
        assert set(file.attrs) == {attribute.name for attribute in ATTRIBUTES}
        for dataset in file["samples"].values():
            assert dataset.compression == "gzip"
            assert dataset.shuffle


def test_codes_are_those_of_the_loop_and_the_wire() -> None:
    # Files hold these numbers: none may ever change.
    states = ("idle", "calibrating", "ready", "active", "stopping", "fault")
    assert dict(enumerate(states)) == STATES
    modes = ("off", "hold", "position", "velocity", "current", "torque", "play", "home")
    assert dict(enumerate(modes)) == MODES
    outcomes = ("ok", "late", "command_lost", "unconfirmed", "stale", "stalled", "corrupt")
    outcomes += ("truncated", "silent", "mismatched")
    assert {**dict(enumerate(outcomes)), 255: "no_exchange"} == OUTCOMES
    assert VALID_OUTCOMES == (0, 1, 2)
    assert {flag.bit: flag.name for flag in STATUS_FLAGS} == STATUS_BITS
    named = [flag for flag in MODE_FLAGS if not flag.name.startswith("reserved")]
    assert {flag.bit: flag.name for flag in named} == COMMAND_BITS


def test_nothing_is_read_before_it_is_asked_for(recorded: Path, tmp_path: Path) -> None:
    """Spoilt bytes in one column hurt only who reads them."""
    copy = tmp_path / "spoilt.h5"
    copy.write_bytes(recorded.read_bytes())
    with h5py.File(copy) as file:
        chunk = file["samples/joint_torque_nm"].id.get_chunk_info(0)
    with copy.open("r+b") as stream:
        stream.seek(chunk.byte_offset + 10)
        stream.write(b"\xff" * 40)
    with open_recording(copy) as recording:
        column = recording["joint_torque_nm"]
        assert recording["iq_a"][:].shape == column.shape
        with pytest.raises(RecordingFormatError) as refused:
            column[:]
    assert (refused.value.path, refused.value.code) == (copy, "damaged")
    assert "joint_torque_nm" in str(refused.value)


def test_a_column_is_an_array_when_it_must(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        position = recording["joint_position_rad"]
        assert np.array_equal(np.asarray(position), position[:], equal_nan=True)
        assert len(position) == recording.sample_count == 5000
        assert position[10:20, 1].shape == (10,)
        with pytest.raises(IndexError):
            position[5000]


def test_the_file_describes_itself(recorded: Path, decoder: ColumnDecoder) -> None:
    session = decoder.session
    with open_recording(recorded) as recording:
        assert recording.version == "1.2"
        assert recording.name == "test"
        assert recording.robot == decoder.robot
        assert recording.robot_text == session.robot_text
        assert recording.joint_names == tuple(joint.name for joint in decoder.robot.joints)
        assert recording.board_names == ("shoulder", "elbow")
        assert recording.attributes["session"] == session.session
        assert recording.attributes["board_profiles"] == ["arm", "arm"]
        assert recording.attributes["start_utc"].startswith("2023-11-14T22:13:20.0000")
        assert recording.attributes["start_t_ns"] == recording["t_ns"][0]
        assert recording.duration_s == pytest.approx(5.0, abs=1e-3)
        assert recording.t_s[0] == 0.0
        assert recording.t_s[-1] == pytest.approx(4.999, abs=1e-3)


def test_unix_time_is_exact_between_clock_pairs(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array
) -> None:
    path = tmp_path / "run.h5"
    writer = RecordingWriter(path, decoder.recording_info("clock"))
    writer.append(decoder.decode(samples))
    t_ns = samples["t_ns"]
    utc_ns = 1_700_000_000_123_456_789
    # Unix time gains 100 µs in five seconds.
    writer.add_clock_pairs([(int(t_ns[0]), utc_ns)])
    span = int(t_ns[-1] - t_ns[0])
    writer.add_clock_pairs([(int(t_ns[-1]), utc_ns + span + 100_000)])
    writer.close()
    with open_recording(path) as recording:
        found = recording.utc_ns
        assert found[0] == utc_ns
        assert found[-1] == utc_ns + span + 100_000
        middle = int(t_ns[2500] - t_ns[0])
        assert found[2500] == utc_ns + middle + round(100_000 * middle / span)
        assert recording.attributes["start_utc"] == "2023-11-14T22:13:20.123456Z"
        assert recording.attributes["start_utc_ns"] == utc_ns


def test_events_and_gaps(tmp_path: Path, decoder: ColumnDecoder, samples: Array) -> None:
    path = tmp_path / "run.h5"
    writer = RecordingWriter(path, decoder.recording_info("gaps"))
    kept = np.delete(samples[100:1000], [*range(50, 60), 200])
    for part in (kept[:50], kept[50:51], kept[51:]):
        writer.append(decoder.decode(part))
    events = [
        Event(seq=150, t_ns=7, kind="mark", text="Größe 1 mm ✓"),
        Event(seq=151, t_ns=8, kind="limit", text="a\0b", severity="error", source="joint1"),
    ]
    writer.add_events(events)
    # Whoever calls knows what is missing at the ends; the rest is found, however it is told.
    writer.close([(80, 20), (1000, 5), (152, 3)])
    with open_recording(path) as recording:
        assert recording.gaps == (Gap(80, 20), Gap(150, 10), Gap(300, 1), Gap(1000, 5))
        assert [event.text for event in recording.events] == ["Größe 1 mm ✓", r"a\x00b"]
        assert recording.events[1][:5] == (151, 8, "limit", "error", "joint1")
        present = set(recording["seq"][:].tolist())
        missing = {
            n for gap in recording.gaps for n in range(gap.first_seq, gap.first_seq + gap.count)
        }
        assert present | missing == set(range(80, 1005))
        assert not present & missing


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("framing", ["spi", "rs485"])
def test_every_profile_and_framing_is_recorded(
    tmp_path: Path,
    write: Callable[..., Path],
    profile: str,
    framing: str,
) -> None:
    decoder = ColumnDecoder(make_session(profile=profile, framing=framing))
    samples = np.zeros(100, decoder.layout.dtype)
    samples["seq"] = np.arange(100)
    samples["outcome_1"][3] = 6
    samples["reply_1"][3] = 7
    with open_recording(write(tmp_path / "run.h5", decoder, samples)) as recording:
        assert set(recording) == set(decoder.decode(samples))
        assert ("bus_voltage_v" in recording) is (profile == "arm")
        frames = recording.invalid_frames
        assert frames["seq"][:].tolist() == [3]
        assert frames["board"][:].tolist() == [1]
        size = int(frames["size"][0])
        assert size == decoder.layout.frame_sizes[1]
        assert frames["frame"][0].tolist() == [7] * size
        summarise(recording)


@pytest.mark.parametrize("robot", ["laas4", "bench1"])
def test_a_recording_without_samples(
    tmp_path: Path, write: Callable[..., Path], robot: str
) -> None:
    decoder = ColumnDecoder(make_session(robot=robot))
    nothing = np.zeros(0, decoder.layout.dtype)
    with open_recording(write(tmp_path / "run.h5", decoder, nothing)) as recording:
        assert recording.sample_count == 0
        assert recording.duration_s == 0.0
        assert recording["joint_position_rad"][:].shape == (0, len(recording.joint_names))
        assert len(recording.t_s) == len(recording.utc_ns) == 0
        json.dumps(summarise(recording), allow_nan=False)


def test_the_summary_is_right_whatever_the_blocks(
    recorded: Path, decoder: ColumnDecoder, samples: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_recording(recorded) as recording:
        whole = summarise(recording)
        blocks = recording.blocks
        monkeypatch.setattr(recording, "blocks", lambda: blocks(777))
        assert summarise(recording) == whole
    json.dumps(whole, allow_nan=False)
    columns = decoder.decode(samples)
    assert whole["samples"] == 5000
    assert whole["missing"] == whole["skipped"] == 0
    assert whole["size_bytes"] == recorded.stat().st_size
    joint = whole["joints"][2]
    assert joint["name"] == decoder.robot.joints[2].name
    grid = decoder.grids["joint_position_rad"][2]
    position = columns["joint_position_rad"][:, 2]
    assert joint["position_min_rad"] == pytest.approx(np.nanmin(position), abs=grid)
    assert joint["position_max_rad"] == pytest.approx(np.nanmax(position), abs=grid)
    assert joint["iq_max_a"] == pytest.approx(np.nanmax(np.abs(columns["iq_a"][:, 2])))
    assert joint["valid_percent"] == pytest.approx(99.98)
    assert whole["boards"][0]["outcomes"] == {"ok": 4999, "unconfirmed": 1}
    for name in ("wake", "transfer", "work"):
        durations_us = samples[f"{name}_ns"] / 1000
        quantiles = whole[f"{name}_us"]
        assert quantiles["max"] == durations_us.max()
        for key, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
            exact = np.quantile(durations_us, share, method="inverted_cdf")
            assert quantiles[key] == pytest.approx(exact, rel=3e-4)
