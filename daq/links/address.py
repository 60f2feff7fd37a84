"""Addresses of links, as people type them after `--link`.

`mock`, `spi`, `serial:///dev/ttyUSB0?baud=2000000`; `spy+` in front traces any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from daq.errors import ConfigError

_BAUD_RANGE = range(9_600, 20_000_001)
_SERIAL = re.compile(r"serial://(?P<device>/[^?\0]+)(\?baud=(?P<baud>[0-9]{1,9}))?")


class LinkKind(Enum):
    """What carries the frames."""

    MOCK = "mock"
    SPI = "spi"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """A parsed address."""

    kind: LinkKind
    device: str = ""
    """The port, for serial links."""
    baud: int | None = None
    """For serial links; None takes the robot file's."""
    is_traced: bool = False


def parse_link(text: str) -> LinkAddress:
    """Read an address.

    Raises:
        ConfigError: It is not an address of a link.
    """
    address = text.removeprefix("spy+")
    is_traced = address != text
    if address in (LinkKind.MOCK.value, LinkKind.SPI.value):
        return LinkAddress(LinkKind(address), is_traced=is_traced)
    match = _SERIAL.fullmatch(address)
    if match is None:
        raise ConfigError(
            f"--link {text[:200]}",
            ["expected mock, spi or serial:///dev/ttyUSB0?baud=2000000, with spy+ in front or not"],
            code="unknown-link",
        )
    device, baud = match["device"], match["baud"]
    if baud is not None and int(baud) not in _BAUD_RANGE:
        limits = f"expected {_BAUD_RANGE.start} to {_BAUD_RANGE.stop - 1}"
        raise ConfigError(f"--link {text}", [f"baud={baud}: {limits}"], code="unknown-link")
    return LinkAddress(
        LinkKind.SERIAL, device=device, baud=int(baud) if baud else None, is_traced=is_traced
    )
