"""A short hash of what a profile puts on the wire, for recordings and stream headers.

Our own canonical text is hashed: names, types, order, scales, checksum. No prose, and nothing that
a library's upgrade could change. Two computers with equal fingerprints understand each other's
frames.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from firmware_protocol.fields import FrameLayout
from firmware_protocol.profile import Profile


def fingerprint(profile: Profile) -> str:
    """Return sixteen hexadecimal digits."""
    text = "\n".join([*_lines(profile.command), *_lines(profile.reply)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lines(layout: FrameLayout) -> Iterator[str]:
    crc = "low half first" if layout.are_crc_halves_swapped else "big-endian"
    yield f"{layout.direction.value} version {layout.protocol_version} crc {crc}"
    for field in layout.fields:
        flags = ",".join(f"{flag.name}={flag.bit}" for flag in field.flags)
        order = "21" if field.is_motor_2_first else "12"
        motors = order if field.is_per_motor else "-"
        yield (
            f"{field.name} {field.wire.name} {motors} 2^{field.lsb_exponent} {field.unit.symbol}"
            f" offset {field.offset!r} absent {field.absent_raw} flags {flags}"
        )
