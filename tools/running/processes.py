"""Programs that run for us and end with us.

Each has a session of its own, so that Ctrl-C reaches only us and we end them in the right order;
and the kernel ends them when we are killed.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

OUR_COMMAND = (sys.executable, "-P", "-m", "tools.main")
"""`armature`; -P because a folder named `tools` in the current directory is not ours."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone, for whatever reason."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """A verb of our own command, in a process of its own, whose output is kept.

    Args:
        keeps_errors: Whether what it writes to stderr is kept, too; by default it goes where ours
            goes.

    Attributes:
        errors: What it has written to stderr, once `output` has returned.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        inherits: Sequence[int] = (),
        keeps_errors: bool = False,
    ) -> None:
        self.words = tuple(words)
        self._environment = dict(environment)
        self._inherits = tuple(inherits)
        self._keeps_errors = keeps_errors
        self.errors = ""
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*OUR_COMMAND, *self.words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if self._keeps_errors else None,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._inherits,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing but one system call
        )

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def start_again(self) -> None:
        """Run the same once more, after it has ended."""
        self._process.communicate()
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it."""
        return (self.exit_code or 0) < 0

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self.exit_code or 0
        return signal.Signals(-code).name if self.was_killed else f"exit code {code}"

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ask it to end."""
        if self.exit_code is None:
            self._process.send_signal(number)

    def output(self, timeout_s: float | None = None) -> bytes:
        """Wait for its end and return what it printed.

        Raises:
            subprocess.TimeoutExpired: It takes longer.
        """
        out, errors = self._process.communicate(timeout=timeout_s)
        self.errors = (errors or b"").decode(errors="replace")
        return out

    def kill(self) -> None:
        """End it at once."""
        if self.exit_code is None:
            self._process.kill()
            self._process.communicate()
