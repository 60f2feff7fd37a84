"""The reader of recordings, a lazy one: nothing is loaded before it is sliced.

Opening checks that the file is a recording, of a version that can be read, finished and whole, and
that it declares no more than it can hold: whatever the file, reading it takes bounded work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import h5py
import numpy as np

from daq.errors import ConfigError
from daq.recording.board_behaviour import BoardBehaviour, read_behaviours
from daq.recording.checks import check_content, check_storage, check_version
from daq.recording.errors import RecordingError, RecordingFormatError, reading
from daq.recording.layout import IMPORT_LINK, ROBOT, SAMPLES, TABLES
from daq.robot import Robot, parse_robot

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK_ROWS = 1 << 16
_CACHE_BYTES, _CACHE_SLOTS = 1 << 20, 521
"""Of each dataset. HDF5 2 would keep 8 MB: 100 MB for a recording that is gone through once; and a
table of 8191 places for chunks, which takes 1.5 MB of every open recording."""


class RecordedEvent(NamedTuple):
    """A row of the table of events; see `daq.recording.layout`."""

    seq: int
    t_ns: int
    kind: str
    severity: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Samples that are missing."""

    first_seq: int
    count: int


class Column:
    """A dataset that is read when it is sliced; its name carries the unit."""

    def __init__(self, dataset: h5py.Dataset, path: Path) -> None:
        self._dataset = dataset
        self._path = path
        with reading(path):
            self.name = str(dataset.name).rpartition("/")[2]
            self.shape: tuple[int, ...] = dataset.shape
            self.dtype: np.dtype[Any] = dataset.dtype

    @cached_property
    def unit(self) -> str:
        """Empty for what has none."""
        with reading(self._path):
            return str(self._dataset.attrs.get("unit", ""))

    @cached_property
    def description(self) -> str:
        """One sentence."""
        with reading(self._path):
            return str(self._dataset.attrs.get("description", ""))

    @property
    def codes(self) -> dict[int, str]:
        """Names of its values, for columns of codes."""
        return self._names("code")

    @property
    def bits(self) -> dict[int, str]:
        """Names of its bits, for columns of flags."""
        return self._names("bit")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if not self._dataset:
            raise RecordingError(
                self._path, "is closed: read inside its `with` block", code="closed"
            )
        try:
            return self._dataset[key]
        except (OSError, RuntimeError) as error:
            raise RecordingFormatError(
                self._path, f"{self.name} is damaged ({error}): copy the file again", code="damaged"
            ) from error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        return f"<Column {self.name} {self.shape} {self.dtype}{self.unit and ' in '}{self.unit}>"

    def _names(self, kind: str) -> dict[int, str]:
        attributes = self._dataset.attrs
        with reading(self._path):
            numbers, names = attributes.get(f"{kind}s", []), attributes.get(f"{kind}_names", [])
            return dict(zip(map(int, numbers), map(str, names), strict=True))


class Recording(Mapping[str, Column]):
    """An open recording: a mapping from the names of its columns to the columns.

    Made by `open_recording`; close it, or use it in a `with` block.

    Attributes:
        path: The file.
        attributes: What it says about itself; see `daq.recording.layout.ATTRIBUTES`.
        sample_count: Rows of every column.
    """

    def __init__(
        self,
        path: Path,
        file: h5py.File,
        attributes: dict[str, Any],
        samples: Mapping[str, h5py.Dataset],
    ) -> None:
        self.path = path
        self._file = file
        self.attributes = attributes
        self._columns = {name: Column(data, path) for name, data in samples.items()}
        self.sample_count = len(self._columns["seq"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def drop_caches(self) -> None:
        """Let go of what HDF5 keeps in memory of columns that were read."""
        self._columns.clear()  # first: a dataset that is opened twice keeps its cache
        with reading(self.path):
            datasets = dict(self._file[SAMPLES].items())
        self._columns.update((name, Column(data, self.path)) for name, data in datasets.items())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """Version of the format."""
        return f"{self.attributes['version_major']}.{self.attributes['version_minor']}"

    @property
    def name(self) -> str:
        """Name of the recording."""
        return str(self.attributes["recording"])

    @property
    def is_import(self) -> bool:
        """Whether it was made from foreign data, which no board measured."""
        return bool(self.attributes["link"] == IMPORT_LINK)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the columns."""
        return tuple(self.attributes["joint_names"])

    @property
    def board_names(self) -> tuple[str, ...]:
        """Names of the boards, in the order of the columns."""
        return tuple(self.attributes["board_names"])

    @cached_property
    def board_behaviours(self) -> tuple[BoardBehaviour, ...]:
        """What the firmware of each board does, in the order of the columns.

        Raises:
            RecordingFormatError: The file does not state it, or states something impossible.
        """
        return read_behaviours(self.path, self.attributes)

    @property
    def robot_text(self) -> str:
        """The robot file, exactly."""
        return str(self._table_column(ROBOT)[()].decode())

    @cached_property
    def robot(self) -> Robot:
        """The robot.

        Raises:
            RecordingFormatError: Its text has mistakes, or it has other joints.
        """
        try:
            robot = _parse(self.robot_text, f"robot in {self.path}")
        except ConfigError as error:
            raise RecordingFormatError(self.path, str(error), code="robot-mistakes") from error
        names = tuple(joint.name for joint in robot.joints)
        if names != self.joint_names:
            raise RecordingFormatError(
                self.path,
                f"its attribute joint_names is {', '.join(self.joint_names)}, its robot has "
                f"{', '.join(names)}: the file is damaged",
                code="other-joints",
            )
        return robot

    # --- time -------------------------------------------------------------------------------------

    @property
    def period_ns(self) -> int:
        """Time between two cycles."""
        return int(self.attributes["period_ns"])

    @property
    def duration_s(self) -> float:
        """From the first to the end of the last cycle."""
        if not self.sample_count:
            return 0.0
        t_ns = self["t_ns"]
        return float(int(t_ns[-1]) - int(t_ns[0]) + self.period_ns) * 1e-9

    @property
    def t_s(self) -> Array:
        """Seconds since the first sample, for every sample."""
        t_ns: Array = self["t_ns"][:]
        return (t_ns - t_ns[:1]) * 1e-9

    @property
    def utc_ns(self) -> Array:
        """Unix time of every sample, interpolated between the pairs of both clocks."""
        t_ns: Array = self["t_ns"][:]
        at_ns, utc_ns = self.clock
        if not len(at_ns):
            at_ns = np.array([self.attributes["start_t_ns"]])
            utc_ns = np.array([self.attributes["start_utc_ns"]])
        # Only small differences become floats: nanoseconds since 1970 would lose digits.
        offset_ns = utc_ns - at_ns
        drift = np.interp(t_ns - at_ns[0], at_ns - at_ns[0], offset_ns - offset_ns[0])
        result: Array = t_ns + offset_ns[0] + np.rint(drift).astype(np.int64)
        return result

    @property
    def clock(self) -> tuple[Array, Array]:
        """The pairs of both clocks: monotonic, Unix time; in ns."""
        return self._table_column("clock/t_ns")[:], self._table_column("clock/utc_ns")[:]

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[slice]:
        """Yield slices that cover all samples, to go through a long recording in little memory."""
        for start in range(0, self.sample_count, rows):
            yield slice(start, min(start + rows, self.sample_count))

    # --- tables -----------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[RecordedEvent, ...]:
        """What happened meanwhile."""
        columns = [self._table_column(f"events/{name}")[:] for name in RecordedEvent._fields]
        try:
            return tuple(
                RecordedEvent(int(seq), int(t_ns), *(text.decode() for text in texts))
                for seq, t_ns, *texts in zip(*columns, strict=True)
            )
        except UnicodeDecodeError as error:
            raise RecordingFormatError(
                self.path,
                f"its events are not UTF-8 text ({error}): the file is damaged",
                code="not-utf8",
            ) from error

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The samples that are missing."""
        columns = [
            self._table_column(f"gaps/{name}")[:].tolist() for name in ("first_seq", "count")
        ]
        return tuple(map(Gap, *columns))

    @property
    def invalid_frames(self) -> dict[str, Column]:
        """The table of replies that were not used, by column."""
        names = [dataset.name for dataset in TABLES["invalid_frames"]]
        return {name: self._table_column(f"invalid_frames/{name}") for name in names}

    def _table_column(self, name: str) -> Column:
        if not self._file:
            raise RecordingError(
                self.path, "is closed: read inside its `with` block", code="closed"
            )
        with reading(self.path):
            dataset = self._file[name]
        return Column(dataset, self.path)


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a recording, to be used in a `with` block, which closes the file.

    Raises:
        RecordingFormatError: It is not a recording, or cannot be read.
        RecordingVersionError: It has a version that cannot be read here.
        RecordingIncompleteError: It was not finished, or parts of it are missing.
    """
    path = Path(path)
    file = _open_file(path)
    try:
        check_version(path, file)
        datasets = check_storage(path, file)
        return Recording(path, file, check_content(path, file, datasets), datasets[SAMPLES])
    except BaseException:
        with suppress(OSError, RuntimeError):
            file.close()
        raise


@lru_cache(maxsize=8)
def _parse(text: str, source: str) -> Robot:
    # A recording is often opened several times, and checks take longer than reading.
    return parse_robot(text, source)


def _open_file(path: Path) -> h5py.File:
    try:
        # To open a pipe would take until somebody writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingFormatError(
                path, "is not a regular file, so not a recording", code="not-a-file"
            )
        with path.open("rb"):
            pass
    except RecordingError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecordingFormatError(path, f"cannot be read: {reason}", code="unreadable") from error
    if not h5py.is_hdf5(path):
        raise RecordingFormatError(path, "not an HDF5 file, so not a recording", code="not-hdf5")
    with reading(path):
        return h5py.File(path, "r", rdcc_nbytes=_CACHE_BYTES, rdcc_nslots=_CACHE_SLOTS)
