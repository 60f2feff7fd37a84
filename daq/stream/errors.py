"""What can go wrong on the stream and the command socket.

```
DaqError
├── RefusedError             a handler refuses a command (in the loop's process)
│   └── LeaseError           because of who commands
└── StreamError
    ├── BindError (OSError)              an endpoint cannot be opened
    ├── CommandRefusedError              the loop refused a command (at the client)
    ├── CommandTimeoutError (TimeoutError)  the loop did not answer
    ├── StreamTimeoutError (TimeoutError)   nothing was published
    └── StreamMismatchError (ValueError)    the loop's samples are not what we understand
```

Wrong options and key files are a `ConfigError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daq.errors import DaqError

if TYPE_CHECKING:
    from daq.stream.messages import LeaseHolder


class RefusedError(DaqError):
    """A handler refuses a command: nothing has changed, and the client is told why.

    Attributes:
        code: For programs, as in `daq.stream.messages.Refusal`.
        message: For people.
        reason: Which of the situations with this code it is, in a word; stays in this process.
    """

    def __init__(self, code: str, message: str, *, reason: str = "") -> None:
        self.message = message
        self.reason = reason
        super().__init__(message, code=code)


class LeaseError(RefusedError):
    """A command is refused because of who commands: the code is `held` or `lease-lost`.

    Attributes:
        held_by: Who commands now; None for nobody.
    """

    def __init__(self, code: str, message: str, held_by: LeaseHolder | None) -> None:
        self.held_by = held_by
        super().__init__(code, message, reason=code)


class StreamError(DaqError):
    """Base of what fails between the loop and its peers."""


class BindError(StreamError, OSError):
    """An endpoint cannot be opened."""


class CommandRefusedError(StreamError):
    """The loop refused a command; nothing has changed. The attributes are those of `Refusal`."""

    def __init__(self, code: str, message: str, held_by: LeaseHolder | None = None) -> None:
        self.message = message
        self.held_by = held_by
        super().__init__(message, code=code)


class CommandTimeoutError(StreamError, TimeoutError):
    """The loop did not answer in time."""


class StreamTimeoutError(StreamError, TimeoutError):
    """Nothing was published in time."""


class StreamMismatchError(StreamError, ValueError):
    """What the loop publishes is not what this version understands."""
