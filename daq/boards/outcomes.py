"""How an exchange with a board went, and how often each way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from firmware_protocol.values import ReplyValues


class Outcome(Enum):
    """How an exchange went. The value is the counter that it raises."""

    OK = "valid"
    """A fresh reply that confirms the last command in time."""
    LATE = "late"
    """A fresh reply that confirms an older command than it could."""
    COMMAND_LOST = "lost_commands"
    """A fresh reply that does not confirm the command before this one."""
    UNCONFIRMED = "unconfirmed"
    """The first replies of a session, made before the board had taken a command of it."""
    STALE = "stale"
    """A reply that is not newer than the last one: a repetition, or somebody else's."""
    STALLED = "stalled"
    """The board's clock stands still."""
    CORRUPT = "corrupt"
    """The checksum or header is wrong."""
    TRUNCATED = "truncated"
    """Fewer bytes than a frame."""
    SILENT = "lost_replies"
    """Nobody answered: no bytes, or an idle line."""
    MISMATCHED = "mismatched"
    """A sound reply of another protocol version."""


class Reading(NamedTuple):
    """What came of one exchange.

    Attributes:
        outcome: How it went.
        values: The reply's values; None unless they are sound and new.
        frame: The bytes received, for a raw recording.
    """

    outcome: Outcome
    values: ReplyValues | None
    frame: bytes


@dataclass(slots=True)
class Counters:
    """Everything that went right or wrong on a board's link since it was opened."""

    exchanges: int = 0
    valid: int = 0
    unconfirmed: int = 0
    late: int = 0
    lost_commands: int = 0
    stale: int = 0
    stalled: int = 0
    corrupt: int = 0
    truncated: int = 0
    lost_replies: int = 0
    mismatched: int = 0
    consequent: int = 0
    """Failures that followed from one already counted."""
    restarted: int = 0
    """Times that the board's clock went backwards: it has rebooted."""
    resynchronised: int = 0
    saturated: int = 0
    """Values that had to be clamped to what the wire carries."""
