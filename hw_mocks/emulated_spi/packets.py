"""The packets between programs and an emulated device, one each way per request.

`c/shim_transfers.c` states them too: change `VERSION` with either.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

VERSION: Final = 1
MAGIC: Final = b"SPI"
REQUEST: Final = struct.Struct("=3sBBBBxII")
"""Magic, version, operation, setting, bits per word, sequence, value; then what is clocked out."""
REPLY: Final = struct.Struct("=3sBIII")
"""Magic, version, sequence, errno, value; then what was clocked in, or who answers."""
PACKET_MAX_BYTES: Final = REQUEST.size + 8192
"""spidev's limits: 4096 out, then 4096 in."""


class Operation(IntEnum):
    """What a program asks for."""

    TRANSFER = 0
    GET = 1
    SET = 2
    INTRODUCE = 3
    """Who answers? The shim never asks; see `introduction.py`."""
