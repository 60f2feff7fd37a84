"""What can go wrong when SPI devices are emulated.

```
MockError
├── CompilerMissingError               no C compiler to build our libraries with
├── LibraryBuildError                  the compiler refused one of our sources
├── EmulatedDeviceError (ValueError)   a directory or device name the emulation cannot use
├── OfferOpenError (RuntimeError)      a reply was offered while another one was still open
└── NotEmulatedError                   an opened device is not an emulated one
```
"""

from __future__ import annotations

from collections.abc import Sequence

from hw_mocks.errors import MockError


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
