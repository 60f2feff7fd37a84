"""The seam between a board and whatever carries its bytes.

A link is anything of this shape: SPI, a serial port, a mock, a trace around any of them.
"""

from __future__ import annotations

from typing import Protocol

from firmware_protocol.fields import Framing

FILLER = b"\x55"
"""A byte that means nothing to a board. Not 0x00 or 0xff: the checksum begins at ff ff ff ff, so
that these four and any number of zeros are a sound frame, one that enables everything."""


class BoardLink(Protocol):
    """Carries frames to one board and back."""

    @property
    def name(self) -> str:
        """For messages: the device, or what stands in for it."""
        ...

    @property
    def framing(self) -> Framing:
        """How frames are wrapped on this link."""
        ...

    @property
    def clock_hz(self) -> float:
        """Bits per second while a board waits for the rest of a command that it has replied to.

        The SPI clock; infinite on serial lines, where the board replies to whole commands.
        """
        ...

    @property
    def resynchronised(self) -> int:
        """How often the link had to skip bytes that belonged to no reply."""
        ...

    def exchange(self, frame: bytes) -> bytes:
        """Send one frame and return what came back for it.

        Returns:
            As many bytes as a frame has; fewer when the transfer was cut short; none when nobody
            answered in time.

        Raises:
            OSError: The device failed; `daq.boards.board` names the failure.
        """
        ...

    def realign(self, missing: int) -> None:
        """Bring both ends back to a frame's start; so many bytes of it were not transferred.

        What is clocked for them is `FILLER`.
        """
        ...

    def close(self) -> None:
        """Give the device back."""
        ...
