"""Finds whole frames in a stream of bytes, whatever else is in it.

For links without chip selects: a frame is taken only where header, length and checksum agree, so
garbage, halves of frames and lost bytes cost no more than the frames they hit.
"""

from __future__ import annotations

from typing import Any

from firmware_protocol.codec import FrameCodec


class FrameFinder:
    """Collects bytes and hands out the sound frames among them; their codec must have a header.

    Attributes:
        codec: Of the frames that it looks for.
        skipped: Bytes so far that belonged to no frame.
    """

    def __init__(self, codec: FrameCodec[Any]) -> None:
        self.codec = codec
        self._buffer = bytearray()
        self.skipped = 0

    def feed(self, data: bytes) -> None:
        """Add bytes as they come in."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Return the first sound frame, removed with all before it; None when there is none yet.

        What can no longer become a frame is dropped, so less than a frame is kept.
        """
        buffer, header, size = self._buffer, self.codec.header, self.codec.size
        start = buffer.find(header)
        while 0 <= start <= len(buffer) - size:
            frame = bytes(buffer[start : start + size])
            if self.codec.is_sound(frame):
                self._drop(start)
                del buffer[:size]
                return frame
            start = buffer.find(header, start + 1)
        # The end of the buffer may be the beginning of a header.
        self._drop(start if start >= 0 else max(0, len(buffer) - len(header) + 1))
        return None

    def clear(self) -> bytes:
        """Forget what is there; returns it."""
        rest = bytes(self._buffer)
        self._drop(len(rest))
        return rest

    def _drop(self, count: int) -> None:
        self.skipped += count
        del self._buffer[:count]
