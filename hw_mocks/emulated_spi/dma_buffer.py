"""The board's side of the frame buffers that it shares with programs (see c/dma_buffer.h).

`offer` lays a reply ready; a program's transfer takes it and leaves its frame, both at once and
without us; `take` finds the frame. Programs are not trusted: nothing they may have written is used
as a size or a position.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import time
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from hw_mocks.emulated_spi.c_library import build_library
from hw_mocks.errors import OfferOpenError

# The layout, as dma_buffer.h states it: change _VERSION with either.
_VERSION: Final = 1
_HEAD: Final = struct.Struct("=IIII")  # version, size, device's and highest speed
_TURN: Final = struct.Struct("=Q")
_WINDOW: Final = struct.Struct("=qI")  # when it began, its speed
FRAME_MAX_BYTES: Final = 256
_TURN_AT: Final = _HEAD.size
_WINDOW_AT: Final = _TURN_AT + _TURN.size
_REPLY_AT: Final = _WINDOW_AT + _WINDOW.size
_COMMAND_AT: Final = _REPLY_AT + FRAME_MAX_BYTES
_FILE_BYTES: Final = 4096

_OFFERS: Final = 1 << 62  # how many a turn can count
# A program owns the buffer for well under a microsecond, unless it loses the processor or dies.
_PATIENCE_S: Final = 0.01


class _Phase(IntEnum):
    CLOSED = 0
    READY = 1
    RUNNING = 2
    BUSY = 3


class DmaWindow(NamedTuple):
    """What a program left: the bytes for the board, its clock, and when the window began."""

    sent: bytes
    speed_hz: int
    started_ns: int


class DmaBuffer:
    """One board's buffers, in a new file that replaces what is there.

    Attributes:
        is_spoilt: A program seems to have died while it had the buffer. Should it only have slept,
            it will go on writing: nothing more may be offered.

    Raises:
        CompilerMissingError: No C compiler is on the PATH.
        LibraryBuildError: The compiler failed.
    """

    def __init__(self, path: Path) -> None:
        self._atomics = _load_atomics()
        self._path = path
        path.unlink(missing_ok=True)  # a dead server's; programs may still have it mapped
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o660)
        try:
            os.posix_fallocate(descriptor, 0, _FILE_BYTES)  # a hole in a full disk: SIGBUS later
            self._memory = mmap.mmap(descriptor, _FILE_BYTES)
        finally:
            os.close(descriptor)
        _HEAD.pack_into(self._memory, 0, _VERSION, 0, 0, 0)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.is_spoilt = False
        self._size = 0
        self._offers = 0
        self._is_offered = False

    def close(self) -> None:
        """Send programs to the socket and remove the file; may be called twice."""
        if not self._memory.closed:
            self.refuse()
            self._memory.close()
            self._path.unlink(missing_ok=True)

    def offer(self, reply: bytes, *, device_speed_hz: int, speed_max_hz: int) -> None:
        """Lay a reply ready for the next window of its length. The buffer must be ours.

        Args:
            reply: At most 256 bytes.
            device_speed_hz: The clock of transfers that name none.
            speed_max_hz: No window with a faster clock gets this reply.

        Raises:
            OfferOpenError: The buffer is not ours.
            ValueError: The reply is empty or too long.
        """
        size = len(reply)
        if not 0 < size <= FRAME_MAX_BYTES:
            raise ValueError(f"a reply of {size} bytes: 1 to {FRAME_MAX_BYTES} can be offered")
        if self._is_offered:
            raise OfferOpenError("the last offer must be taken back first")
        self._size = size
        _HEAD.pack_into(self._memory, 0, _VERSION, size, device_speed_hz, speed_max_hz)
        self._memory[_REPLY_AT : _REPLY_AT + size] = reply
        # A new count: a program that slept since an old offer cannot take this one for it.
        self._offers = (self._offers + 1) % _OFFERS
        self._is_offered = True
        self._set(_Phase.READY)

    @property
    def is_used(self) -> bool:
        """Whether there is something to `take`; costs little."""
        (turn,) = _TURN.unpack_from(self._memory, _TURN_AT)
        return self._is_offered and bool(turn & 3 == _Phase.BUSY)

    def take(self) -> DmaWindow | None:
        """Return what a program left, if one has used the offer; then the buffer is ours."""
        if not self._is_offered or self._turn() != self._turn_in(_Phase.BUSY):
            return None
        return self._window()

    def retract(self) -> DmaWindow | None:
        """Make the buffer ours; return what a program left, if one was quicker."""
        if not self._is_offered:
            return None
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            turn = self._turn()  # one look per round: it may change between any two
            if turn == self._turn_in(_Phase.BUSY):
                return self._window()
            is_running = turn == self._turn_in(_Phase.RUNNING)
            if is_running and time.monotonic() < deadline_s:
                os.sched_yield()
            elif self._move(turn, _Phase.BUSY):
                self._is_offered = False
                self.is_spoilt |= is_running
                return None

    def refuse(self) -> None:
        """Send programs to the socket. The buffer must be ours."""
        self._set(_Phase.CLOSED)

    def _window(self) -> DmaWindow:
        self._is_offered = False
        started_ns, speed_hz = _WINDOW.unpack_from(self._memory, _WINDOW_AT)
        return DmaWindow(self._memory[_COMMAND_AT : _COMMAND_AT + self._size], speed_hz, started_ns)

    def _turn_in(self, phase: _Phase) -> int:
        return self._offers << 2 | phase

    def _turn(self) -> int:
        return int(self._atomics.armature_dma_turn(self._address))

    def _set(self, phase: _Phase) -> None:
        self._atomics.armature_dma_set(self._address, self._turn_in(phase))

    def _move(self, turn: int, phase: _Phase) -> bool:
        return bool(self._atomics.armature_dma_move(self._address, turn, self._turn_in(phase)))


@functools.cache
def _load_atomics() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build_library("dma_buffer")))
    library.armature_dma_turn.argtypes = (ctypes.c_void_p,)
    library.armature_dma_turn.restype = ctypes.c_uint64
    library.armature_dma_set.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
    library.armature_dma_set.restype = None
    library.armature_dma_move.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    library.armature_dma_move.restype = ctypes.c_bool
    return library
