"""One motor board on top of a link: exchange, check, count.

Every reply is judged by its checksum, protocol version, echoed index and timestamp before its
values are handed on. Nothing here raises for a bad reply: in a loop that is data. The first failure
of a streak is counted under its cause; those that follow without a clean exchange in between are
counted as `consequent`, so that one fault is one count however long its effects last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from daq.links.failures import transport_error
from daq.links.link import Link
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import ProtocolError, ProtocolVersionError, is_idle_line
from firmware_protocol.profiles import Profile
from firmware_protocol.values import CommandValues, ReplyValues

_INDEX_MASK = 0xFFFF
_USUAL_LAG = 1
_STALL_AFTER_NS = 10_000_000


class Outcome(Enum):
    """How an exchange went. The value is the counter that it raises."""

    OK = "valid"
    """A fresh reply that confirms the last command in time."""
    LATE = "late"
    """A fresh reply that confirms an older command than it could."""
    COMMAND_LOST = "lost_commands"
    """A fresh reply that shows that the board never took the command before this one."""
    STALE = "stale"
    """The reply before this one, once more."""
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
    resynchronised: int = 0
    saturated: int = 0
    """Values that had to be clamped to what the wire carries."""


class Board:
    """A board on a link.

    Args:
        name: For messages, as in the robot file.
        profile: Which wire format it speaks.
        link: What carries its frames.
        now_ns: Monotonic clock, to notice when the board's own clock stands still.

    Attributes:
        now_ns: The clock.
        counters: What went right and wrong so far.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        link: Link,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.name = name
        self.profile = profile
        self.link = link
        self.counters = Counters()
        self._command = command_codec(profile, link.framing)
        self._reply = reply_codec(profile, link.framing)
        self._lag_max = profile.behaviour.reply_lag_max
        self.now_ns = now_ns
        self._index = 0
        self._suspect: int | None = None
        self._echo = -1
        self._timestamp_ms = -1
        self._timestamp_changed_ns = now_ns()
        self._is_failing = False
        self._realigned = 0
        self._last_frame = b""
        self._last_sound_frame = b""

    def command(self, **values: object) -> CommandValues:
        """A command of this board's profile; what is not named is zero.

        Raises:
            UnknownNameError: The profile has no such field.
        """
        return self._command.make(**values)

    def exchange(self, command: CommandValues, *, is_real_time: bool = False) -> Reading:
        """Send a command, receive and judge a reply. The index is filled in here.

        Args:
            command: What to send.
            is_real_time: Clamp and count values that the wire cannot carry, instead of raising.

        Raises:
            FieldRangeError: A value that the wire cannot carry.
            TransportError: The device failed.
        """
        self._index = (self._index + 1) & _INDEX_MASK
        indexed = command._replace(index=self._index)
        if is_real_time:
            frame, saturated = self._command.encode_saturating(indexed)
            self.counters.saturated += saturated
        else:
            frame = self._command.encode(indexed)
        try:
            received = self.link.exchange(frame)
            self.counters.exchanges += 1
            reading = self._judge(received)
        except OSError as error:
            raise transport_error(self.link.name, error) from error
        self._last_frame = received
        self.counters.resynchronised = self._realigned + self.link.resynchronised
        return reading

    def close(self) -> None:
        """Give the link back."""
        self.link.close()

    # --- judging a reply --------------------------------------------------------------------------

    def _judge(self, frame: bytes) -> Reading:
        try:
            values = self._reply.decode(frame)
        except ProtocolVersionError:
            return self._failed(Outcome.MISMATCHED, frame)
        except ProtocolError:
            return self._failed(self._unsound(frame), frame)
        now_ns = self.now_ns()
        is_echo_new = values.index != self._echo
        if frame == self._last_sound_frame:
            return self._failed(Outcome.STALE, frame)
        if values.timestamp_ms != self._timestamp_ms:
            self._timestamp_changed_ns = now_ns
        elif now_ns - self._timestamp_changed_ns > _STALL_AFTER_NS:
            return self._failed(Outcome.STALLED, frame)
        self._last_sound_frame = frame
        self._echo = values.index
        self._timestamp_ms = values.timestamp_ms
        return Reading(self._confirmation(values.index, is_echo_new), values, frame)

    def _confirmation(self, echo: int, is_echo_new: bool) -> Outcome:
        """Which command the board had taken when it replied, against which it should have."""
        if echo == self._suspect:
            # Not lost after all, only late.
            self.counters.lost_commands -= 1
            self.counters.late += 1
        self._suspect = None
        lag = (self._index - echo) & _INDEX_MASK
        # The first replies were made before our first command reached the board.
        if lag <= _USUAL_LAG or self.counters.exchanges <= self._lag_max:
            self._is_failing = False
            self.counters.valid += 1
            return Outcome.OK
        if lag <= self._lag_max:
            self._is_failing = False
            self.counters.late += 1
            return Outcome.LATE
        outcome = Outcome.LATE if is_echo_new else Outcome.COMMAND_LOST
        if not is_echo_new and not self._is_failing:
            self._suspect = (self._index - 1) & _INDEX_MASK
        self._count(outcome)
        return outcome

    def _unsound(self, frame: bytes) -> Outcome:
        """Why a reply could not be decoded; brings the board back in step where that is needed."""
        missing = self._reply.size - len(frame)
        if not frame or (not missing and is_idle_line(frame)):
            return Outcome.SILENT
        if missing:
            if self.profile.behaviour.is_misaligned_by_truncation:
                self._realign(missing)
            return Outcome.TRUNCATED
        if self._is_failing:
            self._find_alignment(frame)
        return Outcome.CORRUPT

    def _find_alignment(self, frame: bytes) -> None:
        """Look for a sound reply across the last two frames: then the board is out of step."""
        both, size = self._last_frame + frame, self._reply.size
        for shift in range(1, len(both) - size):
            if self._reply.is_sound(both[shift : shift + size]):
                self._realign(shift)
                return

    def _realign(self, missing: int) -> None:
        self.link.realign(missing)
        self._realigned += 1

    def _failed(self, outcome: Outcome, frame: bytes) -> Reading:
        self._count(outcome)
        return Reading(outcome, None, frame)

    def _count(self, outcome: Outcome) -> None:
        name = "consequent" if self._is_failing else outcome.value
        setattr(self.counters, name, getattr(self.counters, name) + 1)
        self._is_failing = True
