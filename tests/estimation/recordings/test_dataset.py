from __future__ import annotations

import math
from pathlib import Path

import h5py
import numpy as np
import pytest
from acceptance import examples
from datasets import read_segments, summarise
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from recording_maker import make_recording
from refusals import refused
from scipy import signal

from daq.recording import RecordingError, open_recording
from daq.robot import parse_robot, robot_text
from estimation.errors import DatasetError
from estimation.recordings.board_effects import held_delay_s
from estimation.recordings.dataset import OpenDataset
from estimation.recordings.segment import Segment

PLAY, HOLD, OFF = 6, 1, 0
ROWS = 3000


def seqs(segment: Segment) -> np.ndarray:
    """The numbers of a segment's own samples, without overlap."""
    first = segment.first_seq + segment.lead_rows
    return np.arange(first, segment.first_seq + len(segment) - segment.tail_rows)


SPEEDS_RAD_S = np.array([1.0, 2.0, 3.0, 4.0])


def ramp(rows: int = ROWS, t_s: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Positions that tell when they were taken: a period before the row they stand in."""
    t_s = np.arange(rows) * 1e-3 if t_s is None else t_s
    taken_s = np.concatenate([t_s[:1] - 1e-3, t_s[:-1]])
    return {
        "joint_position_rad": taken_s[:, None] * SPEEDS_RAD_S,
        "joint_velocity_rad_s": np.tile(SPEEDS_RAD_S, (rows, 1)),
    }


def test_a_whole_trajectory_is_one_segment(tmp_path: Path):
    path = make_recording(tmp_path / "r.h5", ramp())
    (segment,) = read_segments(path)
    # What the first two rows measured was before the trajectory.
    assert segment.first_seq == 102
    assert len(segment) == ROWS - 2
    assert (segment.is_beginning, segment.is_end) == (True, True)
    assert (segment.lead_rows, segment.tail_rows, segment.rows_before, segment.rows_after) == (
        0,
    ) * 4
    np.testing.assert_allclose(segment.q_rad, ramp()["joint_position_rad"][2:])
    # A reply is as old as the exchange before it.
    np.testing.assert_allclose(segment.t_s, 0.001 + np.arange(ROWS - 2) * 1e-3)
    assert not segment.is_reference_held.any()
    assert segment.ki_a_per_rad_s is None
    np.testing.assert_allclose(segment.velocity_lag_s, 4 * [1.0 / (2.0 * math.pi * 100.0)])
    np.testing.assert_allclose(segment.torque_lag_s, 4 * [1.0 / (2.0 * math.pi * 1000.0)])
    summary = summarise(path)
    assert (summary.rows, summary.used, summary.chosen) == (ROWS, ROWS - 2, "play")
    assert summary.left_out == {"first rows of a motion, measured before it": 2}


def test_only_rows_that_follow_a_trajectory_are_used_if_there_are_any(tmp_path: Path):
    mode = np.full((ROWS, 4), HOLD)
    mode[500:1500] = PLAY
    mode[1200, 2] = HOLD
    path = make_recording(tmp_path / "r.h5", {**ramp(), "joint_mode": mode})
    assert [(s.first_seq - 100, len(s)) for s in read_segments(path)] == [(502, 698), (1203, 297)]
    summary = summarise(path)
    assert summary.left_out == {
        "not following a trajectory": 2001,
        "first rows of a motion, measured before it": 4,
    }
    assert summary.used + sum(summary.left_out.values()) == ROWS
    (everything,) = read_segments(path, all_modes=True)
    assert len(everything) == ROWS - 2


def test_without_a_trajectory_all_rows_with_power_are_used(tmp_path: Path):
    mode, state = np.full((ROWS, 4), HOLD), np.full(ROWS, 3)
    state[:1000] = 2
    mode[2000:, 1] = OFF
    path = make_recording(tmp_path / "r.h5", {**ramp(), "joint_mode": mode, "state": state})
    assert [(s.first_seq - 100, len(s)) for s in read_segments(path)] == [(1002, 998)]
    assert summarise(path).chosen == "active"


def test_an_imported_recording_is_used_whole(tmp_path: Path):
    nothing = np.full((ROWS, 4), np.nan)
    columns = {
        **ramp(),
        "joint_mode": np.zeros((ROWS, 4)),
        "state": np.zeros(ROWS),
        "joint_velocity_rad_s": nothing,
        "iq_a": nothing,
        "kp_a_per_rad": nothing,
        "reference_position_rad": nothing,
    }
    path = make_recording(tmp_path / "r.h5", columns, link="import")
    (segment,) = read_segments(path)
    assert len(segment) == ROWS
    assert segment.dq_rad_s is None
    assert segment.iq_a is None
    assert segment.kp_a_per_rad is None
    assert segment.reference_position_rad is None
    assert (segment.velocity_lag_s, segment.torque_lag_s) == (0.0, 0.0)


GAPS = {
    "invalid": ("joint_valid", 0),
    "no position": ("joint_position_rad", math.nan),
    "no torque": ("joint_torque_nm", math.nan),
    "no velocity": ("joint_velocity_rad_s", math.nan),
}


@pytest.mark.parametrize("kind", GAPS)
def test_a_short_hole_is_bridged_for_filters_and_marked_a_long_one_never(tmp_path: Path, kind: str):
    name, value = GAPS[kind]
    columns = ramp()
    values = columns.get(name, np.ones((ROWS, 4)))
    for begin, end in ((1000, 1001), (1500, 1515), (2000, 2030)):
        values[begin:end, 2] = value
    path = make_recording(tmp_path / "r.h5", {**columns, name: values})
    bridged, rest = read_segments(path)
    assert [(s.first_seq - 100, len(s)) for s in (bridged, rest)] == [(2, 1998), (2030, 970)]
    assert bridged.is_in_gap is not None
    assert np.flatnonzero(bridged.is_in_gap).tolist() == [998, *range(1498, 1513)]
    np.testing.assert_allclose(bridged.q_rad, bridged.t_s[:, None] * SPEEDS_RAD_S, atol=1e-9)
    assert rest.is_in_gap is None


def late_by(periods: float) -> np.ndarray:
    t_s = np.arange(ROWS) * 1e-3
    t_s[1000:] += periods * 1e-3
    return t_s


@pytest.mark.parametrize("periods", [0.1, 0.5, 3.0, 18.0])
def test_late_cycles_are_brought_to_a_constant_rate(tmp_path: Path, periods: float):
    t_s = late_by(periods)
    t_ns = 5_000_000_000 + np.round(t_s * 1e9).astype(np.int64)
    (segment,) = read_segments(make_recording(tmp_path / "r.h5", {**ramp(t_s=t_s), "t_ns": t_ns}))
    np.testing.assert_allclose(np.diff(segment.t_s), 1e-3, atol=1e-9)
    np.testing.assert_allclose(segment.q_rad, segment.t_s[:, None] * SPEEDS_RAD_S, atol=1e-6)
    gaps = 0 if segment.is_in_gap is None else int(segment.is_in_gap.sum())
    assert gaps == (int(periods) if periods >= 1.0 else 0)


def test_a_long_pause_and_a_changed_zero_end_a_run(tmp_path: Path):
    t_s = late_by(30.0)
    homed = np.ones((ROWS, 4))
    homed[:2000, 3] = 0
    columns = {**ramp(t_s=t_s), "t_ns": 5_000_000_000 + np.round(t_s * 1e9).astype(np.int64)}
    path = make_recording(tmp_path / "r.h5", {**columns, "joint_is_homed": homed})
    parts = [seqs(segment) - 100 for segment in read_segments(path)]
    assert [p[0] for p in parts] == [2, 1000, 2000]
    summary = summarise(path)
    assert summary.not_homed == 1998


def test_values_that_were_not_taken_in_time_are_marked(tmp_path: Path):
    columns = ramp()
    # The third joint's board was read 4 ms late, in an exchange of ordinary length.
    columns["joint_position_rad"][1500, 2] += 4e-3 * SPEEDS_RAD_S[2]
    (segment,) = read_segments(make_recording(tmp_path / "r.h5", columns))
    assert segment.is_in_gap is not None
    assert set(np.flatnonzero(segment.is_in_gap)) <= {1498, 1499}
    np.testing.assert_allclose(segment.q_rad, segment.t_s[:, None] * SPEEDS_RAD_S, atol=1e-9)


def test_after_an_unusually_long_exchange_times_are_not_sure(tmp_path: Path):
    transfer_ns = np.full(ROWS, 20_000)
    transfer_ns[1200] = 700_000
    path = make_recording(tmp_path / "r.h5", {**ramp(), "transfer_ns": transfer_ns})
    (segment,) = read_segments(path)
    assert segment.is_in_gap is not None
    assert np.flatnonzero(segment.is_in_gap).tolist() == [1199]


def test_times_that_do_not_rise_are_refused(tmp_path: Path):
    t_ns = 5_000_000_000 + np.arange(ROWS) * 1_000_000
    t_ns[1000] = t_ns[999]
    path = make_recording(tmp_path / "r.h5", {**ramp(), "t_ns": t_ns})
    with refused(DatasetError, "times-do-not-rise", "r.h5", "row 1000"):
        list(read_segments(path))


def test_a_damaged_period_is_refused(tmp_path: Path):
    path = make_recording(tmp_path / "a.h5", ramp())
    for period_ns in (0, 1, -5, 10**4, 10**10, 1 << 62):
        with h5py.File(path, "r+") as file:
            file.attrs["period_ns"] = period_ns
        with refused(DatasetError, "damaged-period", "a.h5", f"{period_ns} ns"):
            list(read_segments(path))


def test_numbers_that_all_jump_are_refused(tmp_path: Path):
    path = make_recording(tmp_path / "a.h5", ramp())
    with h5py.File(path, "r+") as file:
        file["samples/seq"][:] = np.arange(ROWS) * 10
    with refused(DatasetError, "unsure-times", "a.h5"):
        list(read_segments(path))


def test_what_is_no_recording_is_refused(tmp_path: Path):
    (tmp_path / "r.h5").write_text("nothing")
    with refused(RecordingError, "not-hdf5", "r.h5"):
        list(read_segments(tmp_path / "r.h5"))


def test_pieces_without_rows_are_refused(tmp_path: Path):
    path = make_recording(tmp_path / "r.h5", ramp())
    with refused(DatasetError, "out-of-range", "0 rows"):
        list(read_segments(path, rows_max=0))


rows_out = st.lists(st.integers(0, ROWS - 1), max_size=12, unique=True)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows_out=st.tuples(rows_out, rows_out),
    pauses=st.lists(st.tuples(st.integers(1, ROWS - 1), st.floats(0.2, 40.0)), max_size=4),
    sizes=st.tuples(st.integers(50, 1500), st.integers(0, 300), st.integers(1, 99)),
)
@example(rows_out=([155, 917], []), pauses=[(2999, 29.9)], sizes=(50, 0, 1))  # one row alone
@example(rows_out=([266], []), pauses=[(2, 1.75), (268, 20.0)], sizes=(50, 0, 1))  # its time unsure
def test_pieces_are_the_whole_and_only_what_was_measured_counts(
    tmp_path_factory: pytest.TempPathFactory,
    rows_out: tuple[list[int], list[int]],
    pauses: list[tuple[int, float]],
    sizes: tuple[int, int, int],
):
    dropped, invalid = rows_out
    rows_max, overlap, rows_min = sizes
    t_s, valid = np.arange(ROWS) * 1e-3, np.ones((ROWS, 4))
    for row, periods in pauses:
        t_s[row:] += periods * 1e-3
    valid[invalid, 1] = 0
    path = make_recording(
        tmp_path_factory.mktemp("r") / "r.h5",
        {
            **ramp(t_s=t_s),
            "joint_valid": valid,
            "t_ns": 5_000_000_000 + np.round(t_s * 1e9).astype(np.int64),
        },
        dropped=dropped,
    )
    with open_recording(path) as recording:
        start_s = recording.attributes["start_t_ns"] * 1e-9 - 5.0
        dataset = OpenDataset(recording, rows_min=rows_min)
        whole = list(dataset.segments())
        pieces = list(dataset.segments(rows_max=rows_max, overlap_rows=overlap))
    for segment in (*whole, *pieces):
        np.testing.assert_allclose(np.diff(segment.t_s), 1e-3, atol=1e-9)
        counts = np.ones(len(segment), bool)
        if segment.is_in_gap is not None:
            counts &= ~segment.is_in_gap
        expected = (segment.t_s + start_s)[:, None] * SPEEDS_RAD_S
        np.testing.assert_allclose(segment.q_rad[counts], expected[counts], atol=1e-5)
        assert segment.is_beginning == (segment.rows_before + segment.lead_rows == 0)
    own = [p.t_s[p.lead_rows : len(p) - p.tail_rows] for p in pieces]
    np.testing.assert_allclose(
        np.concatenate([*own, []]), np.concatenate([*(s.t_s for s in whole), []]), atol=1e-9
    )


# --- boards that hold their reference -------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "is_held", "direction"),
    [("arm", 0, 1), ("uomodri", 1, -1), ("uomodri", 1, 1), ("udriver2", 1, 1)],
)
def test_the_torque_of_a_held_reference_is_corrected(
    tmp_path: Path, profile: str, is_held: int, direction: int
):
    text = robot_text("laas4").replace("direction = 1", f"direction = {direction}")
    text = text.replace("direction = 1", f"direction = {direction}\ngear_efficiency = 0.8")
    text = text.replace('profile = "arm"', f'profile = "{profile}"')
    robot = parse_robot(text, "test")
    speed = np.tile([0.5, -1.0, 2.0, 0.0], (ROWS, 1))
    columns = {
        "joint_position_rad": np.arange(ROWS)[:, None] * 1e-3 * speed,
        "joint_velocity_rad_s": speed,
        "kp_a_per_rad": np.full((ROWS, 4), 0.5),
        "joint_torque_nm": np.full((ROWS, 4), 0.25),
    }
    path = make_recording(tmp_path / "r.h5", columns, text=text, profile=profile)
    (segment,) = read_segments(path)
    for number, joint in enumerate(robot.joints):
        drive, constant = joint.drive, robot.motor_of(joint).torque_constant_nm_per_a
        motor_rad_s = drive.direction * drive.gear_reduction * speed[0, number]
        iq_a = 0.5 * motor_rad_s * held_delay_s(1e-3, 1.0 / (2.0 * math.pi * 1000.0))
        joint_nm = drive.direction * constant * drive.gear_reduction * drive.gear_efficiency * iq_a
        np.testing.assert_allclose(segment.tau_nm[:, number], 0.25 + is_held * joint_nm, rtol=1e-6)


@pytest.mark.parametrize(
    ("lag_s", "delay_s"),
    # The second as measured on the mock.
    [(0.0, 0.5e-3), (0.159e-3, 0.34e-3), (0.8e-3, 0.1e-3), (10e-3, 0.01e-3)],
)
def test_a_held_reference_seems_late(lag_s: float, delay_s: float) -> None:
    """The current of a held reference, filtered and sampled at the end of each of many frames."""
    steps, period_s = 10_000, 1e-3
    step_s = period_s / steps
    sawtooth = 0.5 * period_s - (np.arange(steps) + 0.5) * step_s
    share = -math.expm1(-step_s / lag_s) if lag_s else 1.0
    filtered = signal.lfilter([share], [1.0, share - 1.0], np.tile(sawtooth, 100))
    assert held_delay_s(period_s, lag_s) == pytest.approx(-filtered[-1], abs=2e-7)
    assert held_delay_s(period_s, lag_s) == pytest.approx(delay_s, abs=0.005e-3)
