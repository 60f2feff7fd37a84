"""A sign of life that one process leaves for another."""

from __future__ import annotations

import mmap
import struct

_COUNT = struct.Struct("<Q")


class Pulse:
    """Memory that a process shares with its children; a living child counts in it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _COUNT.size)
        self._seen = 0

    def beat(self) -> None:
        """Show that this process is alive."""
        _COUNT.pack_into(self._memory, 0, self._count + 1)

    def was_felt(self) -> bool:
        """Whether there was a beat since this was asked last."""
        before, self._seen = self._seen, self._count
        return self._seen != before

    @property
    def _count(self) -> int:
        count: int = _COUNT.unpack_from(self._memory)[0]
        return count
