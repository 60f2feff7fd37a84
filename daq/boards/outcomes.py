"""The outcomes of an exchange with a board, and counters of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from daq.recording.states import Outcome
from firmware_protocol.values import ReplyValues


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
