"""Every error of the wire.

```
ProtocolError
├── FrameLengthError (ValueError)      not the number of bytes this profile exchanges
├── FrameHeaderError (ValueError)      RS-485 only: not the address, type or size expected
├── CrcError (ValueError)              the checksum does not fit; nobody there, or a damaged frame
├── ProtocolVersionError (ValueError)  a sound frame of a firmware that speaks another version
├── FieldRangeError (ValueError)       a value that the wire cannot carry (NaN, infinity too)
└── UnknownNameError (ValueError)      a profile or field name that no table defines
```
"""

from __future__ import annotations


class ProtocolError(Exception):
    """Base of everything that can be wrong with a frame or a value for it."""


class FrameLengthError(ProtocolError, ValueError):
    """The frame does not have the length of its profile."""

    def __init__(self, *, length: int, expected: int) -> None:
        self.length = length
        self.expected = expected
        super().__init__(f"frame of {length} bytes, expected {expected}")


class FrameHeaderError(ProtocolError, ValueError):
    """The two bytes in front of an RS-485 frame are not the ones expected."""

    def __init__(self, *, header: bytes, expected: bytes) -> None:
        self.header = header
        self.expected = expected
        super().__init__(f"RS-485 header {header.hex(' ')}, expected {expected.hex(' ')}")


class CrcError(ProtocolError, ValueError):
    """The checksum at the frame's end does not fit its content."""

    def __init__(self, frame: bytes, *, received: bytes, computed: bytes) -> None:
        self.received = received
        self.computed = computed
        message = f"CRC {received.hex()} received, {computed.hex()} computed"
        if is_idle_line(frame):
            message += f"; the line is stuck at 0x{frame[0]:02x}: no board answers"
        super().__init__(message)


class ProtocolVersionError(ProtocolError, ValueError):
    """A frame with a right checksum that says it follows another version of the protocol."""

    def __init__(self, *, version: int, expected: int) -> None:
        self.version = version
        self.expected = expected
        super().__init__(
            f"board speaks protocol version {version}, this profile is version {expected}: "
            "flash the matching firmware or choose the matching profile"
        )


class FieldRangeError(ProtocolError, ValueError):
    """A value that the wire cannot carry."""

    def __init__(self, field: str, value: object, limits: str) -> None:
        self.field = field
        self.value = value
        super().__init__(f"{field} = {value!r} cannot be sent: {limits}")


class UnknownNameError(ProtocolError, ValueError):
    """A name that no table defines."""


def is_idle_line(frame: bytes) -> bool:
    """Whether every byte is 0x00 or every byte is 0xFF, which is how an absent board reads."""
    return len(frame) > 0 and frame in (bytes(len(frame)), b"\xff" * len(frame))
