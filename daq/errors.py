"""The errors that every part of `daq` may raise.

```
DaqError
├── UnsafeCommandError (ValueError)  a command whose time-out does not fit what it enables
├── ConfigError (ValueError)       a robot file or an option is wrong; lists every problem
└── TransportError (OSError)       a link failed; names the device and what to do
    ├── DeviceMissingError         there is no such device node or port
    ├── DevicePermissionError      it is there and we may not open it
    ├── DeviceBusyError            another program drives this board
    ├── DeviceIoError              a transfer failed
    └── DeviceGoneError            the device vanished while we used it
```

A corrupt frame inside the loop is data, not an exception: `daq.boards.board` counts it and says so.
"""

from __future__ import annotations

from collections.abc import Sequence


class DaqError(Exception):
    """Base of everything that `daq` raises on purpose.

    Attributes:
        code: What happened, in a word for programs and tests that outlives the sentence; empty
            where the class says it all.
    """

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*arguments)
        self.code = code


class ConfigError(DaqError, ValueError):
    """A configuration cannot be used; carries every problem, not the first.

    Attributes:
        source: The file or option that is wrong.
        problems: One line per mistake: path, value, what was expected.
    """

    def __init__(self, source: str, problems: Sequence[str], *, code: str = "") -> None:
        self.source = source
        self.problems = tuple(problems)
        count = len(self.problems)
        headline = f"{source}: {count} problem{'s' if count != 1 else ''}"
        lines = [headline, *(f"  {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines), code=code)


class UnsafeCommandError(DaqError, ValueError):
    """The system enabled with time-out 0, or disabled with another one.

    The motors would go on when the host is gone; or the board would latch a time-out then.

    Attributes:
        board: Name of the board.
        timeout_ms: What the command says.
    """

    def __init__(self, board: str, timeout_ms: int) -> None:
        self.board = board
        self.timeout_ms = timeout_ms
        super().__init__(
            f"board {board}: timeout_ms = {timeout_ms} with the system disabled: after the last "
            "command some firmwares would latch error 2 until they are powered off; send 0"
            if timeout_ms
            else f"board {board}: timeout_ms = 0 with the system enabled: its motors would never "
            "stop by themselves; send 10 to 20 ms"
        )


class TransportError(DaqError, OSError):
    """A link failed.

    Attributes:
        device: The device node or port concerned.
    """

    def __init__(self, device: str, message: str, *, code: str = "") -> None:
        self.device = device
        super().__init__(f"{device}: {message}", code=code)


class DeviceMissingError(TransportError):
    """There is no such device node or port."""


class DevicePermissionError(TransportError):
    """The device is there, and this user may not open it."""


class DeviceBusyError(TransportError):
    """Another program holds the device."""


class DeviceIoError(TransportError):
    """The operating system reported an error for a transfer."""


class DeviceGoneError(TransportError):
    """The device vanished while it was open."""
