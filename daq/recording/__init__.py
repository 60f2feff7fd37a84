"""The recording: one HDF5 file, readable without the rest of this software.

One of the two contract packages that every other package may import. `layout` states what is in the
file, `RECORDING_FORMAT.md` describes it to people. It needs only NumPy, h5py and the robot
description, and knows nothing of wires, boards or streams: `daq.samples.columns` turns samples into
columns. The names here are loaded when they are used: a program that only writes a text file need
not load HDF5.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daq.recording.board_behaviour import BoardBehaviour
    from daq.recording.errors import (
        RecordingError,
        RecordingExistsError,
        RecordingFormatError,
        RecordingIncompleteError,
        RecordingVersionError,
        RecordingWriteError,
    )
    from daq.recording.info import RecordingInfo
    from daq.recording.reader import Column, Gap, RecordedEvent, Recording, open_recording
    from daq.recording.states import Mode, State
    from daq.recording.summary import summarise
    from daq.recording.writer import RecordingWriter

__all__ = [
    "BoardBehaviour",
    "Column",
    "Gap",
    "Mode",
    "RecordedEvent",
    "Recording",
    "RecordingError",
    "RecordingExistsError",
    "RecordingFormatError",
    "RecordingIncompleteError",
    "RecordingInfo",
    "RecordingVersionError",
    "RecordingWriteError",
    "RecordingWriter",
    "State",
    "open_recording",
    "summarise",
]

_HOMES = {
    "BoardBehaviour": "board_behaviour",
    "Mode": "states",
    "RecordingInfo": "info",
    "RecordingWriter": "writer",
    "State": "states",
    "summarise": "summary",
    **dict.fromkeys(("Column", "Gap", "RecordedEvent", "Recording", "open_recording"), "reader"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'errors')}")
    return getattr(module, name)
