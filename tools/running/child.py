"""A program that we run on behalf of a caller, with its signals passed on.

Signals meant for it reach us, because it is our process that others know: they are passed on. What
a terminal sends goes to every process of the foreground, the program included, and is not repeated:
programs take a second Ctrl-C for impatience.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Self

from daq.system.signals import handled

_FROM_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_FOR_ANY_PROGRAM: Final = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Child:
    """A program, and the signals for it: those that come before it starts wait for it.

    Leaving it before its end kills it.

    Args:
        passed_on: Signals that are; by default what any program may expect, unless it is ignored.
    """

    def __init__(self, passed_on: Iterable[int] | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        # A handler, not SIG_IGN, which the program would inherit; unless somebody (nohup) wants
        # just that.
        heard = [n for n in _FOR_ANY_PROGRAM if signal.getsignal(n) is not signal.SIG_IGN]
        self._handling = handled(heard if passed_on is None else passed_on, self._handle)

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._handling.__exit__(None, None, None)

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Start a program, looked for on the PATH; the new process does `before` first.

        Raises:
            OSError: It cannot be started.
        """
        self._process = subprocess.Popen(command, env=environment, preexec_fn=before)  # noqa: PLW1509
        for number in self._early:
            self._process.send_signal(number)

    def is_over(self) -> bool:
        """Whether the program has ended."""
        return self._process is not None and self._process.poll() is not None

    @property
    def exit_code(self) -> int:
        """As a shell states it: 128 and the signal's number if one ended the program."""
        code = None if self._process is None else self._process.returncode
        if code is None:
            raise ValueError("the program has not ended")
        return code if code >= 0 else 128 - code

    def _handle(self, number: int, _frame: object) -> None:
        if self._process is None:
            self._early.append(number)
        elif number not in _FROM_TERMINALS or not _is_in_foreground():
            self._process.send_signal(number)


def _is_in_foreground() -> bool:
    """Whether what a terminal sends reaches this process, and so the program by itself too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
