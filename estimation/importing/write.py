"""Write foreign measurements as a recording, which every other command then reads.

Its link is `import`: nobody commanded anything, so every joint is off and the robot idle, there are
no boards, and clocks are virtual. What nobody measured is NaN. Two events say where it came from.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from daq.recording import RecordedEvent, RecordingWriter
from daq.recording.errors import RecordingFormatError, RecordingWriteError, writing
from daq.recording.info import RecordingInfo
from daq.recording.layout import COLUMNS, IMPORT_LINK, ColumnAxis
from daq.recording.text import plain
from daq.recording.whole_files import publish, refuse_existing
from daq.robot import Robot
from estimation.importing.files import ArrayFile
from estimation.importing.measurements import ImportOptions, Measurements

EVENT, FACTS_EVENT = "import", "import_facts"
"""Kinds of the events that say where the samples came from, in words and as JSON."""
_BLOCK_ROWS = 1 << 16
_FRAME_SIZE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotFile:
    """The robot, and the text that describes it."""

    robot: Robot
    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who imports."""

    host: str
    armature_version: str


def write_import(
    path: Path,
    measurements: Measurements,
    *,
    files: Sequence[ArrayFile],
    robot_file: RobotFile,
    options: ImportOptions,
    origin: Origin,
) -> dict[str, Any]:
    """Write a recording: all of it or nothing, and never over another file.

    Returns:
        What the event says: sources, mapping, units, rate, rows and notes.

    Raises:
        RecordingExistsError: There is such a file already.
        RecordingWriteError: It cannot be written.
    """
    facts = _facts(measurements, files, options)
    info = _info(path, measurements, files, robot_file, origin)
    refuse_existing(path)
    # A folder of our own: nobody else writes there, and whatever happens it goes with all in it.
    with (
        writing(path),
        tempfile.TemporaryDirectory(
            prefix=".import-", dir=path.absolute().parent, ignore_cleanup_errors=True
        ) as folder,
    ):
        hidden = Path(folder, "recording.h5")
        try:
            _write(hidden, info, facts, measurements)
        except (RecordingWriteError, RecordingFormatError) as error:
            problem = str(error).removeprefix(f"{error.path}: ")
            if isinstance(error, RecordingFormatError):  # it does not read back as written
                raise RecordingFormatError(path, problem) from error
            raise RecordingWriteError(path, problem, error.errno) from error
        publish(hidden, path)
    return facts


def _write(
    path: Path, info: RecordingInfo, facts: dict[str, Any], measurements: Measurements
) -> None:
    writer = RecordingWriter(path, info)
    try:
        writer.add_events(
            [
                RecordedEvent(0, 0, EVENT, "info", "", _sentence(facts)),
                RecordedEvent(0, 0, FACTS_EVENT, "debug", "", msgspec.json.encode(facts).decode()),
            ]
        )
        for first in range(0, len(measurements.sampling.seq), _BLOCK_ROWS):
            writer.append(_columns(measurements, slice(first, first + _BLOCK_ROWS)))
        writer.close()
    except BaseException:
        writer.abandon()
        raise


def _info(
    path: Path,
    measurements: Measurements,
    files: Sequence[ArrayFile],
    robot_file: RobotFile,
    origin: Origin,
) -> RecordingInfo:
    robot = robot_file.robot
    # The file's own time is the best that is known of when it was measured.
    start_utc_ns = files[0].path.stat().st_mtime_ns
    return RecordingInfo(
        session=f"import-{files[0].sha256[:8]}",
        recording=plain(path.stem),
        robot=robot.name,
        robot_text=robot_file.text,
        robot_source=plain(robot_file.source),
        joint_names=tuple(joint.name for joint in robot.joints),
        board_names=(),
        board_profiles=(),
        board_devices=(),
        board_behaviours=(),
        frame_size=_FRAME_SIZE,
        fingerprint="",
        link=IMPORT_LINK,
        is_virtual=True,
        period_ns=round(1e9 / measurements.sampling.rate_hz),
        session_start_utc_ns=start_utc_ns,
        session_start_t_ns=0,
        host=origin.host,
        armature_version=origin.armature_version,
        commit="",
        grids={},
    )


def _facts(
    measurements: Measurements, files: Sequence[ArrayFile], options: ImportOptions
) -> dict[str, Any]:
    sampling = measurements.sampling
    return {
        "files": [
            {"name": file.name, "path": plain(file.path), "sha256": file.sha256} for file in files
        ],
        "taken": {
            key: {"source": one.source, "unit": plain(one.unit)}
            for key, one in measurements.taken.items()
        },
        "side": options.side,
        "rate_hz": sampling.rate_hz,
        "jitter_s": round(sampling.jitter / sampling.rate_hz, 9),
        "is_resampled": options.is_resampled,
        "first_row": options.rows[0],
        "rows": len(sampling.seq),
        "span_s": sampling.span_s,
        "missing": sampling.missing,
        "holes": sampling.gaps,
        "invalid_rows": int(np.count_nonzero(~measurements.valid.all(axis=1))),
        "notes": list(measurements.notes),
    }


def _sentence(facts: dict[str, Any]) -> str:
    files = ", ".join(f"{file['name']} (sha256 {file['sha256'][:12]}…)" for file in facts["files"])
    taken = "; ".join(
        f"{key} from {one['source']} in {one['unit']}" for key, one in facts["taken"].items()
    )
    return f"imported from {files}, {facts['side']} side: {taken}"


def _columns(measurements: Measurements, rows: slice) -> dict[str, Any]:
    sampling = measurements.sampling
    seq = sampling.seq[rows]
    joints = measurements.q_rad.shape[1]
    widths: dict[ColumnAxis, tuple[int, ...]] = {
        ColumnAxis.NONE: (),
        ColumnAxis.JOINTS: (joints,),
        ColumnAxis.BOARDS: (0,),
    }
    columns: dict[str, Any] = {}
    for name, column in COLUMNS.items():
        if not column.is_optional:
            dtype = np.dtype(column.dtype)
            unknown = np.nan if dtype.kind == "f" else 0
            columns[name] = np.full((len(seq), *widths[column.axis]), unknown, dtype)
    columns["seq"] = seq.astype(np.uint64)
    # From the rounded period, so that times and the period that the file states agree.
    columns["t_ns"] = seq * round(1e9 / sampling.rate_hz)
    columns["joint_valid"] = measurements.valid[rows].astype(np.uint8)
    columns["joint_is_homed"][:] = 1
    for name, values in {
        "joint_position_rad": measurements.q_rad,
        "joint_velocity_rad_s": measurements.dq_rad_s,
        "joint_torque_nm": measurements.tau_nm,
        "iq_a": measurements.iq_a,
        "reference_position_rad": measurements.q_ref_rad,
    }.items():
        if values is not None:
            columns[name] = values[rows]
    return columns
