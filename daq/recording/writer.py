"""The writer of recordings: finds gaps by the numbers of samples, reads the file back, renames it.

Memory is bounded: samples are collected until a chunk of the file is full. A crash leaves
`NAME.h5.part` and nothing else; a file that exists is never overwritten. One writer per file.
"""

from __future__ import annotations

import hashlib
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from daq.recording.board_behaviour import BEHAVIOUR_NAMES
from daq.recording.datasets import CHUNK_ROWS, ColumnWriter, TableWriter
from daq.recording.errors import RecordingFormatError, writing
from daq.recording.info import EventRow, RecordingInfo
from daq.recording.layout import (
    COLUMNS,
    FORMAT,
    ROBOT,
    SAMPLES,
    TABLES,
    VERSION_MAJOR,
    VERSION_MINOR,
)
from daq.recording.patient_file import PatientFile
from daq.recording.reader import Gap, open_recording
from daq.recording.text import plain
from daq.recording.whole_files import publish, refuse_existing

Array = np.ndarray[Any, np.dtype[Any]]

_LIBRARY_VERSIONS = ("v108", "v108")  # any HDF5 since 2008 reads it, whichever writes it


class Written(NamedTuple):
    """What is in a finished recording: how many samples, and which are missing."""

    samples: int
    gaps: tuple[Gap, ...]


class RecordingWriter:
    """Writer of one recording, which is called `part` until it is closed.

    Raises:
        RecordingExistsError: There is such a file already.
        RecordingWriteError: It cannot be created.
    """

    def __init__(self, path: Path, info: RecordingInfo) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self._info = info
        self._columns: dict[str, ColumnWriter] = {}
        self._seq_runs: list[tuple[int, int]] = []
        self._start_t_ns: int | None = None
        self._clock_offset_ns = info.session_start_utc_ns - info.session_start_t_ns
        self._has_clock_pairs = False
        refuse_existing(path)
        with writing(self.part):
            self._patient = PatientFile(self.part)
            self._file = h5py.File(self._patient, "w", libver=_LIBRARY_VERSIONS)
            # HDF5 would call a file of Python's after the interpreter's end, and crash.
            self._give_up = weakref.finalize(self, _close, self._file, self._patient)
            self._write_head()
            self._tables = {
                name: TableWriter(self._file.create_group(name), datasets, info)
                for name, datasets in TABLES.items()
            }

    def append(self, columns: Mapping[str, Array]) -> None:
        """Add samples as `ColumnDecoder.decode` returns them, `seq` increasing.

        Every call gives the same columns; thousands of samples at once are best.

        Raises:
            RecordingFormatError: A sample number that is not above the one before it.
            RecordingWriteError: It cannot be written.
        """
        seq = columns["seq"]
        if not len(seq):
            return
        with self._writing():
            self._note(seq, int(columns["t_ns"][0]))
            if not self._columns:
                self._make_columns(columns)
            for name, column in self._columns.items():
                column.append(columns[name])

    def add_events(self, events: Iterable[EventRow]) -> None:
        """Add rows to the table of events.

        Raises:
            RecordingWriteError: It cannot be written.
        """
        names = [dataset.name for dataset in TABLES["events"]]
        with self._writing():
            self._tables["events"].append(
                [tuple(getattr(event, name) for name in names) for event in events]
            )

    def add_clock_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Add moments on both clocks: monotonic and Unix time, in ns.

        Raises:
            RecordingWriteError: It cannot be written.
        """
        rows = list(pairs)
        if rows and not self._has_clock_pairs:
            self._has_clock_pairs = True
            self._clock_offset_ns = rows[0][1] - rows[0][0]
        with self._writing():
            self._tables["clock"].append(rows)

    def add_invalid_frames(self, seq: Array, board: Array, size: Array, frame: Array) -> None:
        """Add replies that were not valid, as `ColumnDecoder.invalid_frames` returns them.

        Raises:
            RecordingWriteError: It cannot be written.
        """
        with self._writing():
            self._tables["invalid_frames"].append(
                list(zip(seq.tolist(), board.tolist(), size.tolist(), frame, strict=True))
            )

    def close(self, gaps: Iterable[tuple[int, int]] = ()) -> Written:
        """Finish the file, check it, give it its name and return what was read back from it.

        `gaps` are first number and count of missing samples that the sample numbers do not show:
        those before the first and after the last. Others may be among them.

        Raises:
            RecordingExistsError: There is such a file now; what was written stays in `part`.
            RecordingFormatError: What was read back is not what was written.
            RecordingWriteError: It cannot be written.
        """
        with writing(self.part):
            if not self._columns:
                self._make_columns([c.name for c in COLUMNS.values() if not c.is_optional])
            for column in self._columns.values():
                column.flush()
            self._tables["gaps"].append(_united([*gaps, *self._gaps_between()]))
            for table in self._tables.values():
                table.flush()
            self._write_start()
            self._file.flush()
            self._patient.check()
            self._file.attrs["complete"] = np.int64(1)
            self._file.close()
            self._patient.sync()
            self._give_up()
        written = self._verify()
        publish(self.part, self.path)
        return written

    def abandon(self) -> None:
        """Close the file and remove it. Does nothing after `close`."""
        self._give_up()
        self.part.unlink(missing_ok=True)

    # --- inside -----------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with writing(self.part):
            self._patient.check()
            yield
            self._patient.check()

    def _note(self, seq: Array, t_ns: int) -> None:
        """Keep runs of sample numbers, from which the gaps follow."""
        steps = np.diff(seq.astype(np.int64))
        first = int(seq[0])
        last = self._seq_runs[-1][1] if self._seq_runs else first - 1
        if first <= last or (steps <= 0).any():
            raise RecordingFormatError(
                self.part,
                f"samples from {first} on follow {last}: their numbers must increase",
                code="not-increasing",
            )
        starts = np.flatnonzero(steps > 1) + 1
        firsts = [first, *seq[starts].tolist()]
        lasts = [*seq[starts - 1].tolist(), int(seq[-1])]
        if self._seq_runs and first == last + 1:
            firsts[0] = self._seq_runs.pop()[0]
        self._seq_runs += zip(firsts, lasts, strict=True)
        if self._start_t_ns is None:
            self._start_t_ns = t_ns

    def _gaps_between(self) -> list[tuple[int, int]]:
        pairs = zip(self._seq_runs, self._seq_runs[1:], strict=False)
        return [(last + 1, first - last - 1) for (_, last), (first, _) in pairs]

    def _make_columns(self, names: Iterable[str]) -> None:
        group = self._file.create_group(SAMPLES)
        given = set(names)
        for name, dataset in COLUMNS.items():
            if name in given or not dataset.is_optional:
                self._columns[name] = ColumnWriter(group, dataset, self._info)

    def _write_head(self) -> None:
        info, attributes = self._info, self._file.attrs
        attributes["format"] = FORMAT
        attributes["version_major"] = np.int64(VERSION_MAJOR)
        attributes["version_minor"] = np.int64(VERSION_MINOR)
        attributes["robot_sha256"] = hashlib.sha256(info.robot_text.encode()).hexdigest()
        for name in _HEAD:
            value = getattr(info, name)
            if isinstance(value, tuple):
                texts = [plain(text) for text in value]
                attributes.create(name, texts, (len(texts),), h5py.string_dtype())
            else:
                attributes[name] = plain(value) if isinstance(value, str) else np.int64(value)
        for name in BEHAVIOUR_NAMES:
            values = [getattr(board, name) for board in info.board_behaviours]
            attributes[f"board_{name}"] = np.array(values, np.float64)
        self._file.create_dataset(ROBOT, data=info.robot_text, dtype=h5py.string_dtype())
        self._file[ROBOT].attrs["description"] = "The robot file, exactly."

    def _write_start(self) -> None:
        start_t_ns = self._start_t_ns
        if start_t_ns is None:
            start_t_ns = self._info.session_start_t_ns
        utc_ns = start_t_ns + self._clock_offset_ns
        moment = datetime.fromtimestamp(utc_ns // 10**9, UTC).replace(tzinfo=None)
        attributes = self._file.attrs
        attributes["start_t_ns"] = np.int64(start_t_ns)
        attributes["start_utc_ns"] = np.int64(utc_ns)
        attributes["start_utc"] = f"{moment.isoformat()}.{utc_ns // 1000 % 10**6:06d}Z"

    def _verify(self) -> Written:
        """Read everything back: what takes its place among the recordings is sound."""
        with open_recording(self.part) as recording:
            for name, column in self._columns.items():
                checksum = 0
                for start in range(0, column.count, CHUNK_ROWS):
                    checksum = zlib.crc32(recording[name][start : start + CHUNK_ROWS], checksum)
                if len(recording[name]) != column.count or checksum != column.checksum:
                    raise RecordingFormatError(
                        self.part,
                        f"{name} does not read back as written: check disk and memory",
                        code="read-back",
                    )
            return Written(recording.sample_count, recording.gaps)


_NOT_IN_HEAD = ("robot_text", "board_behaviours", "frame_size", "grids")
_HEAD = [each.name for each in fields(RecordingInfo) if each.name not in _NOT_IN_HEAD]


def _close(file: h5py.File, patient: PatientFile) -> None:
    with suppress(OSError, RuntimeError):
        file.close()
    patient.close()


def _united(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same missing numbers in order, without overlap."""
    result: list[tuple[int, int]] = []
    for first, count in sorted(gaps):
        if result and first <= sum(result[-1]):
            start = result[-1][0]
            result[-1] = (start, max(sum(result[-1]), first + count) - start)
        elif count:
            result.append((first, count))
    return result
