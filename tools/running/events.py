"""Events of a loop, passed on as they are or printed as lines for people."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import msgspec

from daq.loop.process.event_log import Digest
from daq.samples.batches import Event
from tools.shared.cli import say

Listener = Callable[[Event], None]


class Teller:
    """Prints events as lines, without repetition.

    Args:
        is_shown: Whether somebody has shown an event already.
    """

    def __init__(self, is_shown: Callable[[Event], bool] = lambda _event: False) -> None:
        self._is_shown = is_shown
        self._digest = Digest(has_priorities=False)

    def __call__(self, event: Event) -> None:
        """Say an event."""
        if not self._is_shown(event):
            for line in self._digest.add(event, event.t_ns * 1e-9):
                say(line)

    def close(self) -> None:
        """Say how often repeated events occurred."""
        for line in self._digest.end():
            say(line)


class EventPipe:
    """Events from a loop in another process, which gets one end of a pipe.

    Attributes:
        far_end: The descriptor for the loop, `armature loop --events-to`.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._near_end, self.far_end = os.pipe()
        os.set_blocking(self._near_end, False)
        self._unfinished = b""
        self._decode = msgspec.json.Decoder(Event).decode

    def release_far_end(self) -> None:
        """Leave the loop's end to the loop, once it has started."""
        os.close(self.far_end)

    def listen(self) -> None:
        """Pass on what has come meanwhile; never waits."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._near_end, 1 << 16):
                *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
                for line in lines:
                    with contextlib.suppress(msgspec.MsgspecError):  # cut off: the pipe was full
                        self._listener(self._decode(line))

    def close(self) -> None:
        """Hear nothing more."""
        os.close(self._near_end)
