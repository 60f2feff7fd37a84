"""Notes to systemd about how the service is doing (sd_notify, without its library).

Each message is one datagram that is sent without waiting. Nothing here raises or blocks: a loop
must not fail because nobody listens. Without `NOTIFY_SOCKET` every call does nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sender of this process's state to systemd.

    Args:
        address: The socket: a path, or a name of the abstract namespace behind an `@`; None for
            nobody. Other kinds of addresses are taken for nobody.
        watchdog_s: How long systemd waits for `watchdog` before it ends the service; None for ever.

    Attributes:
        watchdog_interval_s: How often to call `watchdog`: half of what systemd waits; None without
            a watchdog.
    """

    def __init__(self, address: str | None = None, *, watchdog_s: float | None = None) -> None:
        self.watchdog_interval_s = watchdog_s / 2 if watchdog_s else None
        self._address = b""
        self._socket: socket.socket | None = None
        if address and address[0] in "/@":
            self._address = os.fsencode(
                address.replace("@", "\0", 1) if address[0] == "@" else address
            )
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Notifier:
        """Return the notifier that systemd asked for by `NOTIFY_SOCKET` and `WATCHDOG_USEC`.

        A `WATCHDOG_PID` that is not ours means another process: then there is no watchdog.
        """
        period_us = environment.get("WATCHDOG_USEC", "")
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        is_watched = is_ours and period_us.isascii() and period_us.isdecimal()
        watchdog_s = int(period_us) * 1e-6 if is_watched else None
        return cls(environment.get("NOTIFY_SOCKET"), watchdog_s=watchdog_s)

    def ready(self) -> None:
        """Say that the service has started."""
        self._send(b"READY=1")

    def watchdog(self) -> None:
        """Say that the service is alive."""
        self._send(b"WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the service has begun to end."""
        self._send(b"STOPPING=1")

    def close(self) -> None:
        """Send no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: bytes) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):  # nobody is there, or does not listen: no reason to end
            # By address each time: systemd may have made its socket anew.
            self._socket.sendto(message, self._address)
