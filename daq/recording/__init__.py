"""The recording: one HDF5 file per run, readable without the rest of this software.

One of the two contract packages that every other package may import. `layout` states what is in the
file, `RECORDING_FORMAT.md` says it to people. Needs only NumPy, h5py and the robot description, and
knows nothing of wires, boards or streams: `daq.samples.columns` turns samples into columns.
"""

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
from daq.recording.summary import summary
from daq.recording.writer import RecordingWriter
from daq.samples.states import Mode, State

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
    "summary",
]
