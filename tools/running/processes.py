"""Programs that run for us and end with us.

Each has a session of its own, so that Ctrl-C reaches only us and we end them in the right order;
and the kernel ends them when we are killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

OUR_COMMAND = (sys.executable, "-P", "-m", "tools.main")
"""`armature`; -P because a folder called `tools` where we happen to be is none of ours."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone, however that came."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """A verb of our own command, in a process of its own, whose output is kept.

    Args:
        words: The verb and its options.
        environment: All of its environment.
        tell: Gets the lines that it writes to stderr, whenever `listen` is called; by default they
            go where ours go.
        inherits: Descriptors that it gets from us.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        tell: Callable[[str], None] | None = None,
        *,
        inherits: Sequence[int] = (),
    ) -> None:
        self.words = tuple(words)
        self._environment = dict(environment)
        self._tell = tell
        self._inherits = tuple(inherits)
        self._unfinished = b""
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*OUR_COMMAND, *self.words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=None if self._tell is None else subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._inherits,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing but one system call
        )

    def listen(self) -> None:
        """Pass on the lines that it has written meanwhile; never waits."""
        stream = self._process.stderr
        if stream is None or stream.closed or self._tell is None:
            return
        os.set_blocking(stream.fileno(), False)
        while chunk := stream.read(1 << 16):
            self._pass_on(chunk)

    def _pass_on(self, chunk: bytes) -> None:
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            if self._tell is not None:
                self._tell(line.decode(errors="replace"))

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
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
        """Wait for its end; what it printed.

        Raises:
            subprocess.TimeoutExpired: It takes longer.
        """
        self.listen()
        if self._process.stderr is not None:
            os.set_blocking(self._process.stderr.fileno(), True)
        out, errors = self._process.communicate(timeout=timeout_s)
        self._pass_on(errors or b"")
        return out

    def kill(self) -> None:
        """End it at once."""
        if self.exit_code is None:
            self._process.kill()
            self._process.communicate()
