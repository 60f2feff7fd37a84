"""The errors of `hw_mocks`.

```
MockError
├── MockConfigError (ValueError)         a mock was asked for something that cannot be simulated
├── MockPhysicsError (ArithmeticError)   the simulated robot is too fast for the simulation
├── CompilerMissingError                 no C compiler to build our libraries with
├── LibraryBuildError                    the compiler refused one of our sources
├── EmulatedDeviceError (ValueError)     a directory or device name the emulation cannot use
├── OfferOpenError (RuntimeError)        a reply was offered while another one was still open
└── NotEmulatedError                     an opened device is not an emulated one
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class MockError(Exception):
    """Base of everything that `hw_mocks` raises on purpose.

    Attributes:
        code: What happened, in a word for programs and tests; empty where the class says it all.
    """

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*arguments)
        self.code = code


class MockConfigError(MockError, ValueError):
    """A mock cannot be set up as asked; carries every problem of its source, not the first."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{source}:", *(f"  {problem}" for problem in self.problems)]))


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: what was meant, or what there is."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


class MockPhysicsError(MockError, ArithmeticError):
    """The simulated robot moves faster than the simulation's steps can follow."""


class CompilerMissingError(MockError):
    """No C compiler was found."""

    def __init__(self, tried: Sequence[str]) -> None:
        self.tried = tuple(tried)
        super().__init__(
            f"emulating /dev/spidev needs a C compiler; none of {', '.join(self.tried)} is on the "
            "PATH. Install one: apt install gcc libc6-dev"
        )


class LibraryBuildError(MockError):
    """The compiler failed."""

    def __init__(self, command: Sequence[str], stderr: str) -> None:
        self.command = tuple(command)
        self.stderr = stderr
        super().__init__(
            f"emulating /dev/spidev: this failed: {' '.join(self.command)}\n{stderr.rstrip()}\n"
            "If headers are missing: apt install libc6-dev linux-libc-dev"
        )


class EmulatedDeviceError(MockError, ValueError):
    """A directory or a device name cannot be used for emulated devices."""


class OfferOpenError(MockError, RuntimeError):
    """A reply was offered before the last offer was taken back."""


class NotEmulatedError(MockError):
    """An opened device is not the emulated one that it was taken for."""

    def __init__(self, device: str, reason: str) -> None:
        self.device = device
        self.reason = reason
        super().__init__(
            f"{device} is not the emulated device that ARMATURE_SPIDEV_DIR announces: {reason}. "
            "Nothing runs on it as if it were a mock; unset the variable for real devices"
        )
