"""CRC-32/MPEG-2, as the boards compute it (polynomial 0x04C11DB7, not reflected, no final xor).

zlib's CRC-32 runs the same polynomial over reflected bits and complements its result. Reflecting
the bits of every byte going in, and of the result coming out, turns one into the other, far faster
than a loop in Python (`make bench`).
"""

from __future__ import annotations

from struct import Struct
from zlib import crc32

_REFLECTED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_REFLECTED_COMPLEMENT = bytes(_REFLECTED[byte ^ 0xFF] for byte in range(256))
_ZERO_COMPLEMENT = 0xFFFFFFFF
_HALVES = Struct("<HH").unpack
"""Reflected, a CRC's first byte is the lowest of zlib's result."""


def crc32_mpeg2(data: bytes) -> bytes:
    """Return the CRC-32/MPEG-2 of some bytes, big-endian; `b"123456789"` gives 0x0376E6E7."""
    reflected = crc32(data.translate(_REFLECTED)).to_bytes(4, "little")
    return reflected.translate(_REFLECTED_COMPLEMENT)


def crc32_mpeg2_halves_swapped(data: bytes) -> bytes:
    """Return the CRC with its low 16-bit half first, as boards write it into their replies."""
    crc = crc32_mpeg2(data)
    return crc[2:] + crc[:2]


def ends_with_crc(frame: bytes) -> bool:
    """Whether the last four bytes are the CRC of those before them.

    A CRC that runs over its own result ends at zero, so there is nothing to compare byte by byte.
    """
    return crc32(frame.translate(_REFLECTED)) == _ZERO_COMPLEMENT


def ends_with_crc_halves_swapped(frame: bytes) -> bool:
    """Whether the last four bytes are the CRC of those before them, its low half first."""
    reflected = frame.translate(_REFLECTED)
    low, high = _HALVES(reflected[-4:])
    expected: int = low << 16 | high
    return crc32(reflected[:-4]) ^ _ZERO_COMPLEMENT == expected
