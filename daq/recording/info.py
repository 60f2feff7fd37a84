"""The facts about a session that a writer is given, as plain values: no wire, no stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from daq.recording.board_behaviour import BoardBehaviour
from daq.recording.layout import ColumnAxis


class EventRow(Protocol):
    """An event, such as `daq.samples.batches.Event`."""

    # ruff: noqa: D102 (the layout documents them)
    @property
    def seq(self) -> int: ...
    @property
    def t_ns(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingInfo:
    """What a recording says about itself.

    Most fields are attributes of the file, described in `daq.recording.layout.ATTRIBUTES`.

    Attributes:
        robot_text: The robot file, exactly.
        board_behaviours: What the firmware of each board does.
        frame_size: Bytes of the longest frame.
        grids: What columns are rounded to, per joint or board: powers of two.
    """

    session: str
    recording: str
    robot: str
    robot_text: str
    robot_source: str
    joint_names: tuple[str, ...]
    board_names: tuple[str, ...]
    board_profiles: tuple[str, ...]
    board_devices: tuple[str, ...]
    board_behaviours: tuple[BoardBehaviour, ...]
    frame_size: int
    fingerprint: str
    link: str
    is_virtual: bool
    period_ns: int
    session_start_utc_ns: int
    session_start_t_ns: int
    host: str
    armature_version: str
    commit: str
    grids: Mapping[str, tuple[float, ...]]

    def width(self, axis: ColumnAxis) -> int:
        """Return the number of columns of a dataset."""
        return {
            ColumnAxis.NONE: 1,
            ColumnAxis.JOINTS: len(self.joint_names),
            ColumnAxis.BOARDS: len(self.board_names),
            ColumnAxis.BYTES: self.frame_size,
        }[axis]
