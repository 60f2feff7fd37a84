"""Recordings that never took place, for tests: columns as wished, everything else plausible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from daq.recording import BoardBehaviour, RecordingWriter
from daq.recording.info import RecordingInfo
from daq.recording.layout import COLUMNS, ColumnAxis
from daq.robot import parse_robot, robot_text
from tests.support.older_formats import as_format, behaviour_in_1_1

Array = np.ndarray[Any, np.dtype[Any]]
START_T_NS, START_UTC_NS = 5_000_000_000, 1_700_000_000_000_000_000
PLAY, ACTIVE = 6, 3


def make_recording(
    path: Path,
    columns: dict[str, Any],
    *,
    text: str | None = None,
    profile: str = "arm",
    behaviour: BoardBehaviour | None = None,
    link: str = "mock",
    rate_hz: float = 1000.0,
    dropped: Any = (),
) -> Path:
    """Writes a recording in which all joints follow a trajectory.

    Args:
        path: The file.
        columns: Those that matter; the others are zero, valid and homed.
        text: Of the robot file.
        profile: Of its boards.
        behaviour: Of their firmware; None for what format 1.1 states of the profile.
        link: Of the recording.
        rate_hz: Samples per second.
        dropped: Rows that are missing in the file.
    """
    text = robot_text("laas4") if text is None else text
    robot = parse_robot(text, "test")
    joints, boards = len(robot.joints), len(robot.boards)
    rows = max(len(values) for values in columns.values())
    widths = {ColumnAxis.NONE: (), ColumnAxis.JOINTS: (joints,), ColumnAxis.BOARDS: (boards,)}
    full: dict[str, Array] = {
        name: np.zeros((rows, *widths[column.axis]), column.dtype)
        for name, column in COLUMNS.items()
        if not column.is_optional
    }
    behaviour = behaviour or behaviour_in_1_1(profile)
    period_ns = round(1e9 / rate_hz)
    full["seq"] = np.arange(rows, dtype=np.uint64) + 100
    full["t_ns"] = START_T_NS + np.arange(rows, dtype=np.int64) * period_ns
    full["state"][:] = ACTIVE
    full["joint_mode"][:] = PLAY
    full["joint_valid"][:] = full["joint_is_homed"][:] = 1
    for name, values in columns.items():
        full[name][:] = np.asarray(values)
    kept = np.setdiff1d(np.arange(rows), np.asarray(dropped, int))
    names = tuple(board.name for board in robot.boards)
    info = RecordingInfo(
        session="s",
        recording=path.stem,
        robot=robot.name,
        robot_text=text,
        robot_source="test",
        joint_names=tuple(joint.name for joint in robot.joints),
        board_names=names,
        board_profiles=(profile,) * boards,
        board_devices=("",) * boards,
        board_behaviours=(behaviour,) * boards,
        frame_size=40,
        fingerprint="f" * 16,
        link=link,
        is_virtual=True,
        period_ns=period_ns,
        session_start_utc_ns=START_UTC_NS,
        session_start_t_ns=START_T_NS,
        host="test",
        armature_version="0.1.0",
        commit="",
        grids={},
    )
    writer = RecordingWriter(path, info)
    writer.append({name: values[kept] for name, values in full.items()})
    writer.close()
    return as_format(path, 1) if behaviour.reply_age_max_s is None else path
