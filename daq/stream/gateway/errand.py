"""The errand: a program that the keeper starts when the loop asks for it.

Starting a process would hold up a loop with locked memory for longer than its period. So the loop
writes a byte into a socket pair, and the keeper, which looks every 0.1 s, does the rest. What it
has started ends by itself, also when the loop and the keeper have ended before.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence

_BYTES = 16


class Errand:
    """A program, and whether it was asked for.

    Args:
        asked: The keeper's end of a pair, which does not block.
        command: What to start.
    """

    def __init__(self, asked: socket.socket, command: Sequence[str]) -> None:
        self._asked = asked
        self._command = tuple(command)
        self._running: list[subprocess.Popen[bytes]] = []

    def look(self) -> None:
        """Start the program if the loop has asked for it; never waits."""
        self._running = [process for process in self._running if process.poll() is None]
        try:
            is_asked = bool(self._asked.recv(_BYTES))
        except OSError:  # nothing there
            return
        if is_asked and self._command:
            self._start()

    def _start(self) -> None:
        try:
            # A session of its own: whoever ends the keeper's leaves it alone.
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            sys.stderr.write(
                f"armature: error: {self._command[0]} cannot be started: {error.strerror}\n"
            )
        else:
            self._running.append(process)
