"""A lease that a client keeps, so that nobody else commands the robot meanwhile.

    with CommandClient(robot_endpoints().commands) as robot, CommandLease(robot, "my sweep"):
        robot.ask(SetMode(mode="hold"))

A thread of this process renews it, over a connection of its own, whatever the script is busy with:
it is lost when the process dies or is cut off, and not when it computes for a while. A script that
should rather lose the lease when it hangs sets `is_renewed` to False, and calls `renew`, or gives a
command that needs the lease, at least every two seconds.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
import sys
import threading
from pathlib import Path

from daq.errors import ConfigError
from daq.stream.command_client import CommandClient
from daq.stream.errors import CommandRefusedError, CommandTimeoutError, StreamError
from daq.stream.messages import HOLDER_NAME_MAX, ReleaseLease, RenewLease, TakeLease

RENEW_EVERY_S = 0.5
"""A quarter of the time after which it lapses: three may get lost."""
_LOST = ("held", "lease-lost")


class CommandLease:
    """The lease of a client, from entering to leaving its `with`; commands are given under it.

    Args:
        client: Which one; it keeps one lease at a time.
        name: What the client is, for the people who find the robot held; by default the script's.
            User, computer and process are added.
        takes_over: Take it from whoever has it.
        is_renewed: Whether a thread renews it.
    """

    def __init__(
        self,
        client: CommandClient,
        name: str = "",
        *,
        takes_over: bool = False,
        is_renewed: bool = True,
    ) -> None:
        self._client = client
        self._name = holder_name(name or Path(sys.argv[0]).name or "python")
        self._takes_over = takes_over
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True) if is_renewed else None
        self._token = secrets.token_hex(16)

    def renew(self) -> None:
        """Keep it for another two seconds.

        Raises:
            CommandRefusedError: It was lost; the message says how.
            CommandTimeoutError: Nobody answers.
        """
        self._client.ask(RenewLease())

    def __enter__(self) -> CommandLease:
        """Take the lease.

        Raises:
            ConfigError: The client keeps one already.
            CommandRefusedError: Somebody else has it (code `held`).
            CommandTimeoutError: Nobody answers.
        """
        if self._client.lease:
            raise ConfigError("lease", ["this client keeps one already"])
        self._client.lease = self._token
        try:
            self._client.ask(TakeLease(name=self._name, takes_over=self._takes_over))
        except BaseException:
            self._client.lease = ""  # what was taken unheard lapses by itself
            raise
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        # If nobody hears it, the lease lapses by itself; if it is another's, nothing happens.
        with contextlib.suppress(StreamError):
            self._client.ask(ReleaseLease())
        self._client.lease = ""

    def _keep(self) -> None:
        # A client is not for two threads, and the script's may be waiting for an answer.
        with CommandClient(self._client.endpoint, keys=self._client.keys) as client:
            client.lease = self._token
            while not self._is_over.wait(RENEW_EVERY_S):
                try:
                    client.ask(RenewLease(), timeout_s=RENEW_EVERY_S)
                except CommandRefusedError as error:
                    if error.code in _LOST:
                        return  # the script's next command is refused with the reason
                except CommandTimeoutError:
                    continue  # the gateway may come back in time


def holder_name(what: str) -> str:
    """Return who we are, for the people who find the robot held."""
    user = str(os.getuid())
    with contextlib.suppress(OSError, KeyError):
        user = getpass.getuser()
    name = f"{what[:50]} ({user[:20]}@{socket.gethostname()[:30]}, pid {os.getpid()})"
    return "".join(sign if sign.isprintable() else "?" for sign in name)[:HOLDER_NAME_MAX]
