"""Size of a session's samples, without all that it takes to decode them."""

from __future__ import annotations

from daq.errors import ConfigError
from daq.robot import parse_robot
from daq.samples.batches import BatchError, Session, framing_of
from daq.samples.sample import SampleLayout
from firmware_protocol.codec import reply_codec
from firmware_protocol.errors import UnknownNameError
from firmware_protocol.profiles import profile_named


def sample_size(session: Session) -> int | None:
    """Return the bytes of a sample; None if the session cannot be understood."""
    try:
        joints = len(parse_robot(session.robot_text, session.robot_source).joints)
        sizes = [
            reply_codec(profile_named(board.profile), framing_of(board)).size
            for board in session.boards
        ]
    except (ConfigError, UnknownNameError, BatchError):
        return None
    return SampleLayout(joints, sizes).size
