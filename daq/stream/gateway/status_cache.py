"""A cache of the loop's last status, so that many may ask without keeping the loop busy."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from daq.stream.messages import Answer, AnyCommand, Report, Status

FRESH_S = 0.05
_UNCHANGING = (Status, Report)
_decode = msgspec.json.Decoder(Answer).decode
_encode = msgspec.json.Encoder().encode


class StatusCache:
    """The last status, kept for a moment unless a command has come after it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._result: bytes | None = None
        self._since_s = 0.0

    def answer(self, command: AnyCommand) -> bytes | None:
        """Return the answer to a command, if it asks for nothing but a status and there is one."""
        if not isinstance(command, Status) or self._result is None:
            return None
        if self._now_s() > self._since_s + FRESH_S:
            return None
        return _encode(Answer(id=command.id, ok=True, result=msgspec.Raw(self._result)))

    def note(self, command: AnyCommand, data: bytes) -> None:
        """Keep the loop's answer to a command, if it is a status."""
        if isinstance(command, Status):
            answer = _decode(data)
            self._result, self._since_s = bytes(answer.result) if answer.ok else None, self._now_s()

    def forget(self, command: AnyCommand) -> None:
        """Drop the status when a command goes to the loop: it need not be true after that."""
        if not isinstance(command, _UNCHANGING):
            self._result = None
