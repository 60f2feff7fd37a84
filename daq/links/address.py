"""Addresses of links, as people type them after `--link`.

`mock`, `spi`, `serial:///dev/ttyUSB0?baud=2000000`; `spy+` in front traces any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from urllib.parse import parse_qsl, urlsplit

from daq.errors import ConfigError

_BAUD_RANGE = range(9_600, 20_000_001)


class LinkKind(Enum):
    """What carries the frames."""

    MOCK = "mock"
    SPI = "spi"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """A parsed address.

    Attributes:
        kind: What carries the frames.
        device: The port, for serial links.
        baud: Bits per second, for serial links; None takes the robot file's.
        is_traced: Whether the traffic is shown.
    """

    kind: LinkKind
    device: str = ""
    baud: int | None = None
    is_traced: bool = False


def parse_link(text: str) -> LinkAddress:
    """Read an address.

    Raises:
        ConfigError: It is none.
    """
    address = text.removeprefix("spy+")
    is_traced = address != text
    if address in (LinkKind.MOCK.value, LinkKind.SPI.value):
        return LinkAddress(LinkKind(address), is_traced=is_traced)
    parts = urlsplit(address)
    if parts.scheme != LinkKind.SERIAL.value:
        raise ConfigError(
            f"--link {text}",
            ["expected mock, spi or serial:///dev/ttyUSB0?baud=2000000, with spy+ in front or not"],
        )
    problems = []
    if parts.netloc or not parts.path.startswith("/"):
        problems.append("the port needs three slashes: serial:///dev/ttyUSB0")
    baud = None
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key != "baud":
            problems.append(f"unknown key {key!r}, expected baud")
        elif not value.isdecimal() or int(value) not in _BAUD_RANGE:
            problems.append(f"baud={value}: expected {_BAUD_RANGE.start} to {_BAUD_RANGE.stop - 1}")
        else:
            baud = int(value)
    if problems:
        raise ConfigError(f"--link {text}", problems)
    return LinkAddress(LinkKind.SERIAL, device=parts.path, baud=baud, is_traced=is_traced)
