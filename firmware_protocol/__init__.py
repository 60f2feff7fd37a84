"""The wire: one table per board profile, and everything that follows from it.

`profiles` states each frame field by field. The codec, the mock's frames, the test strategies, the
generated `PROTOCOL.md`, the C header and the fingerprint all come from that table and from nothing
else.
Nothing here opens a device.
"""

from firmware_protocol.codec import FrameCodec
from firmware_protocol.errors import (
    CrcError,
    FieldRangeError,
    FrameHeaderError,
    FrameLengthError,
    ProtocolError,
    ProtocolVersionError,
    UnknownNameError,
)
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES, profile_named

__all__ = [
    "PROFILES",
    "CrcError",
    "FieldRangeError",
    "FrameCodec",
    "FrameHeaderError",
    "FrameLengthError",
    "Profile",
    "ProtocolError",
    "ProtocolVersionError",
    "UnknownNameError",
    "profile_named",
]
