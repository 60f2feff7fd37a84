"""A sign of life that one process leaves for another."""

from __future__ import annotations

import mmap
import struct
import time

_BEAT = struct.Struct("<d")


class Pulse:
    """Memory that a process shares with its children: who beats is alive."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BEAT.size)

    def beat(self) -> None:
        """Still here."""
        _BEAT.pack_into(self._memory, 0, time.monotonic())

    @property
    def age_s(self) -> float:
        """Since it was said."""
        said_s: float = _BEAT.unpack_from(self._memory)[0]
        return time.monotonic() - said_s
