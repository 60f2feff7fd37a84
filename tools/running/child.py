"""A program that we run on behalf of a caller, with its signals passed on.

Signals meant for it reach us, because it is our process that others know: they are passed on. What
a terminal sends goes to every process of the foreground, the program included, and is not repeated:
programs take a second Ctrl-C for impatience.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

_FROM_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON: Final = (
    *_FROM_TERMINALS,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Child:
    """A program, and the signals for it: those that come before it starts wait for it.

    Leaving it before its end kills it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _PASSED_ON:
            # A handler, not SIG_IGN, which the program would inherit; unless somebody (nohup)
            # wants just that.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

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
