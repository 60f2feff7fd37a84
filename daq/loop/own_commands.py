"""The commands that a loop gives itself: under a lease, so that nobody interferes meanwhile."""

from __future__ import annotations

import secrets

import msgspec

from daq.loop.setup import Loop
from daq.stream import messages as m
from daq.stream.errors import LeaseError


class OwnCommands:
    """Gives commands to the loop's own handler, and holds the lease until it is given back.

    It does not lapse: who gives these commands ends with the loop.

    Raises:
        LeaseError: Somebody else commands already.
    """

    def __init__(self, loop: Loop, name: str) -> None:
        self._loop = loop
        self._token = secrets.token_hex(16)
        command = m.TakeLease(lease=self._token, name=name)
        loop.lease.take(command, never_lapses=True)

    def __call__(self, command: m.AnyCommand, payload: bytes = b"") -> object:
        """Give a command.

        Raises:
            RefusedError: It was not carried out; a `LeaseError` when somebody has taken over.
        """
        return self._loop.handler(msgspec.structs.replace(command, lease=self._token), payload)

    def why_lost(self) -> LeaseError | None:
        """Return the refusal that the next command would get, None while the lease is ours."""
        try:
            self._loop.handler(m.RenewLease(lease=self._token))
        except LeaseError as error:
            return error
        return None

    def release(self) -> None:
        """Let others command; nothing happens if they do already."""
        self._loop.handler(m.ReleaseLease(lease=self._token))
