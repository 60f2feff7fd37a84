"""The spool: the last minute of batches in shared memory, for readers that missed them.

A file of equal slots in the runtime directory (`/run` is memory), written round and round through a
mapping: the loop pays two copies per batch and no system call, and what it wrote outlives it and
the recorder. One record of `daq.samples.batches` begins in each slot; a larger one goes on into the
slots after it. Readers need no lock: a record that is being overwritten fails its checksum and
counts as not there. The writer holds an advisory lock on the file, so anybody can see whether the
session lives.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np

from daq.errors import DaqError
from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    RECORD_OVERHEAD,
    Record,
    Session,
    decode_session,
    read_record,
)
from daq.system.locks import hold, is_held

SECONDS_60 = 3000
"""Batches of 20 samples in a minute at 1 kHz."""
MODE = 0o640
_MAGIC = b"ARMSPL01"
_HEAD = struct.Struct("<8sIII")
_PAGE = 4096
# Of a slot: number of the first sample, bytes of the record, and a mark while that is true.
_SLOT = struct.Struct("<QII")
_SLOT_DTYPE = np.dtype([("seq", "<u8"), ("size", "<u4"), ("mark", "<u4")])
_MARK = 0x4C4F5053
_SIZES = struct.Struct("<II")
_SIZES_AT = 8
"""Where a record of `daq.samples.batches` states the sizes of its header and payload."""
_FIRST_SEQ = struct.Struct("<Q")
_HEADER_ROOM = 1024
"""What a header usually needs; one with many events takes a second slot."""


class SpoolError(DaqError, OSError):
    """A spool cannot be made or read."""

    def __init__(self, path: Path, message: str, *, code: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {message}", code=code)


class SpoolWriter:
    """The loop's side.

    Args:
        path: The file; it appears there complete.
        session_record: The framed session (`frame_record(KIND_SESSION, …)`).
        payload_max: Bytes of the samples of a full batch.
        batches: How many are kept.

    Attributes:
        dropped: Batches that were too large for it, or held no sample.

    Raises:
        SpoolError: There is no room for all of it, or the directory cannot be written.
    """

    def __init__(
        self, path: Path, session_record: bytes, *, payload_max: int, batches: int = SECONDS_60
    ) -> None:
        self._path = path
        self._slot_size = -(-(_SLOT.size + RECORD_OVERHEAD + _HEADER_ROOM + payload_max) // 64) * 64
        self._slots = batches
        self._first = -(-(_HEAD.size + len(session_record)) // _PAGE) * _PAGE
        self._next = 0
        self.dropped = 0
        size = self._first + self._slots * self._slot_size
        # Under another name until it is whole: no reader ever sees a part of it.
        temporary = path.with_name(f".{path.name}.new")
        try:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            self._file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
            try:
                # All of it now: a full file system later would end the loop with SIGBUS.
                os.posix_fallocate(self._file, 0, size)
                hold(self._file)
                populate = getattr(mmap, "MAP_POPULATE", 0)
                self._map = mmap.mmap(self._file, size, flags=mmap.MAP_SHARED | populate)
                head = _HEAD.pack(_MAGIC, self._first, self._slot_size, self._slots)
                self._map[: len(head) + len(session_record)] = head + session_record
                temporary.rename(path)
            except BaseException:
                os.close(self._file)
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise _not_made(path, error, size) from error

    def write(self, record: bytes) -> None:
        """Keep a framed batch, in place of the oldest. Makes no system call and never raises."""
        header_size, payload_size = _SIZES.unpack_from(record, _SIZES_AT)
        size = len(record)
        slots = -(-(_SLOT.size + size) // self._slot_size)
        if payload_size < _FIRST_SEQ.size or slots > self._slots // 2:
            self.dropped += 1
            return
        slot = self._next
        if slot + slots > self._slots:
            slot = 0
        self._next = (slot + slots) % self._slots
        start = self._first + slot * self._slot_size
        (seq,) = _FIRST_SEQ.unpack_from(record, RECORD_OVERHEAD + header_size)
        begin = start + _SLOT.size
        _SLOT.pack_into(self._map, start, 0, 0, 0)
        self._map[begin : begin + size] = record
        _SLOT.pack_into(self._map, start, seq, size, _MARK)

    def close(self, *, unlink: bool) -> None:
        """Let go of the file; unless it is removed here, the recorder does once it has all."""
        if self._map.closed:
            return
        if unlink:
            self._path.unlink(missing_ok=True)
        self._map.close()
        os.close(self._file)


def _not_made(path: Path, error: OSError, size: int) -> SpoolError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        problem = (
            f"no room for the {size / 1e6:.0f} MB of the spool: remove old spools or enlarge it"
        )
        return SpoolError(path, problem, code="no-room")
    return SpoolError(path, f"the spool cannot be made: {error.strerror}", code="not-writable")


class SpoolReader:
    """Everybody else's side; it changes nothing.

    Raises:
        SpoolError: It is not there, or not a spool.
        BatchError: Its session is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SpoolError(
                path, f"cannot be read: {error.strerror}", code="unreadable"
            ) from error
        try:
            self._map = self._open()
            record = read_record(memoryview(self._map)[: self._first], _HEAD.size)
            if record is None or record.kind != KIND_SESSION:
                raise SpoolError(path, "is not a spool: its session is damaged", code="not-a-spool")
            self.session_data = record.header
            self.session: Session = decode_session(record.header)
        except BaseException:
            os.close(self._file)
            raise

    def _open(self) -> mmap.mmap:
        size = os.fstat(self._file).st_size
        head = os.pread(self._file, _HEAD.size, 0)
        if len(head) < _HEAD.size or not head.startswith(_MAGIC):
            raise SpoolError(self.path, "is not a spool", code="not-a-spool")
        _, self._first, self._slot_size, self._slots = _HEAD.unpack(head)
        needed = self._first + self._slots * self._slot_size
        if size < needed or self._slot_size <= _SLOT.size or not self._slots:
            problem = f"is cut: {size} bytes, expected {needed}"
            raise SpoolError(self.path, problem, code="cut")
        return mmap.mmap(self._file, needed, access=mmap.ACCESS_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if not self._map.closed:
            self._map.close()
            os.close(self._file)

    def is_live(self) -> bool:
        """Whether its writer is still there."""
        return is_held(self._file)

    def read_from(self, seq: int) -> Iterator[Record]:
        """Yield the batches that hold this sample and later ones, in order, as far as present.

        What is written meanwhile is not among them: ask again. What is overwritten meanwhile is
        left out.
        """
        shape, stride = (self._slots,), (self._slot_size,)
        # A copy: no view of the mapping may live on.
        slots = np.ndarray(shape, _SLOT_DTYPE, self._map, self._first, stride).copy()
        used = np.flatnonzero(slots["mark"] == _MARK)
        numbers = slots["seq"][used]
        # The batch before may reach into what is wanted.
        since = numbers[numbers <= seq].max(initial=0)
        used = used[numbers >= since]
        for slot in used[np.argsort(slots["seq"][used])].tolist():
            record = self._record(slot, *slots[slot].tolist()[:2])
            if record is not None:
                yield record

    def _record(self, slot: int, seq: int, size: int) -> Record | None:
        start = self._first + slot * self._slot_size + _SLOT.size
        # A copy first: what is checked must be what is used.
        record = read_record(self._map[start : start + size])
        if record is None or record.kind != KIND_BATCH or len(record.payload) < _FIRST_SEQ.size:
            return None
        return record if _FIRST_SEQ.unpack_from(record.payload)[0] == seq else None
