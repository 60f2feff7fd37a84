"""A wrapper that shows the decoded traffic of any link (`spy+…` in a link's address)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daq.links.link import BoardLink
from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.errors import ProtocolError
from firmware_protocol.profile import Profile


class TracingLink:
    """Passes everything through and reports each frame as one line of text."""

    def __init__(self, link: BoardLink, profile: Profile, report: Callable[[str], None]) -> None:
        self._link = link
        self.name, self.framing, self.clock_hz = link.name, link.framing, link.clock_hz
        self._command = command_codec(profile, link.framing)
        self._reply = reply_codec(profile, link.framing)
        self._report = report

    @property
    def resynchronised(self) -> int:
        """The watched link's count."""
        return self._link.resynchronised

    def exchange(self, frame: bytes) -> bytes:
        """Exchange, and report both frames."""
        self._report(f"{self.name} > {_described(self._command, frame)}")
        try:
            received = self._link.exchange(frame)
        except OSError as error:
            self._report(f"{self.name} ! {error}")
            raise
        self._report(f"{self.name} < {_described(self._reply, received)}")
        return received

    def realign(self, missing: int) -> None:
        """Realign, and report it."""
        self._report(f"{self.name} . realign, {missing} bytes missing")
        self._link.realign(missing)

    def close(self) -> None:
        """Close the watched link."""
        self._link.close()


def _described(codec: FrameCodec[Any], frame: bytes) -> str:
    try:
        values = codec.decode(frame)
    except ProtocolError as error:
        return f"{frame.hex()}  {error}"
    return " ".join(f"{name}={_shown(name, value)}" for name, value in values._asdict().items())


def _shown(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(f"{part:.6g}" for part in value) + ")"
    return f"0x{value:02x}" if name in ("mode", "status") else f"{value:.6g}"
