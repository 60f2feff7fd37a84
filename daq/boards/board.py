"""One motor board on top of a link: exchange, check, count.

Every reply is judged by its checksum, protocol version, echoed index and timestamp before its
values are handed on: they are the board's, they are new, and they were made after this session
began. Nothing here raises for a bad reply: in a loop that is data. Each fault is counted once,
under its cause; what follows from a fault already counted (the command that went down with a lost
exchange, the frames of a board that is out of step) is counted as `consequent`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from daq.boards.outcomes import Counters, Reading
from daq.errors import UnsafeCommandError
from daq.links.failures import transport_error
from daq.links.link import BoardLink
from daq.recording.states import Outcome
from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.errors import ProtocolError, ProtocolVersionError, is_idle_line
from firmware_protocol.fields import Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS
from firmware_protocol.values import CommandValues

__all__ = ["Board", "Counters", "Outcome", "Reading"]

_INDICES = 1 << 16
_INDEX_MASK = _INDICES - 1
_HALF = _INDICES // 2
# Far from 0, which a rebooted board echoes. Echoes of an earlier session look like the future.
_FIRST_INDEX = 0x5000
_USUAL_LAG = 1
_STALL_AFTER_NS = 10_000_000
_USUAL_STEP_MS = 10
_ENABLE_SYSTEM = MODE_BITS["ES"]


_MAY_BE_OUT_OF_STEP = (Outcome.CORRUPT, Outcome.TRUNCATED)


class Board:
    """A board on a link.

    Commands say `command_timeout_ms` by default: after this long without a valid one the board
    stops its motors. The monotonic clock `now_ns` shows when the board's own clock stands still.

    Attributes:
        outcome: How the last exchange went.
        sent: The last command's bytes.
        received: What came back for it.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        link: BoardLink,
        *,
        command_timeout_ms: int = 10,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.name = name
        self._command_timeout_ms = command_timeout_ms
        self.profile = profile
        self.link = link
        self._counters = Counters()
        self._usual = 0
        self._command = command_codec(profile, link.framing)
        self._reply = reply_codec(profile, link.framing)
        self._lag_max = profile.behaviour.reply_lag_max
        self.now_ns = now_ns
        self._lag_min = 1 if link.framing is Framing.SPI else 0
        self._is_misalignable = profile.behaviour.is_receiver_shifted
        self._index = _FIRST_INDEX
        self._echo = _FIRST_INDEX
        self._timestamp_ms: int | None = None
        self._timestamp_since_ns = self._exchanged_ns = now_ns()
        self._suspect: int | None = None
        self._last_outcome = Outcome.UNCONFIRMED
        self._realigned = 0
        self._last_frame = self._sound_frame = b""
        self.outcome = Outcome.UNCONFIRMED
        self.sent = self.received = b""
        self._timestamp_raw = 0
        self._mode_at, self._timeout_at, self._index_at = (
            _place(self._command, name) for name in ("mode", "timeout_ms", "index")
        )
        self._timestamp_at, self._echo_at = (
            _place(self._reply, name) for name in ("timestamp_ms", "index")
        )
        # The usual reply's way, without a detour through the codec.
        self._encode_raw, self._unpack = self._command.encode_raw, self._reply.unpack
        self._ends_with_crc, self._reply_size = self._reply.ends_with_crc, self._reply.size
        self._header = self._reply.header
        self._version_mask, self._version_bits = self._reply.version_bits

    @property
    def counters(self) -> Counters:
        """What went right and wrong so far."""
        counters, usual = self._counters, self._usual
        counters.exchanges += usual
        counters.valid += usual
        self._usual = 0
        return counters

    def command(self, **values: object) -> CommandValues:
        """Make a command of this board's profile; fields not named are zero, but for the time-out.

        Raises:
            UnknownNameError: The profile has no such field.
        """
        return self._command.make(**{"timeout_ms": self._command_timeout_ms, **values})

    def exchange(self, command: CommandValues, *, is_real_time: bool = False) -> Reading:
        """Send a command, receive and judge a reply. The index is filled in here.

        In real time, values that the wire cannot carry are clamped and counted.

        Raises:
            FieldRangeError: A value that the wire cannot carry.
            UnsafeCommandError: The system enabled without a time-out.
            TransportError: The device failed.
        """
        if not command.timeout_ms and command.mode & _ENABLE_SYSTEM:
            raise UnsafeCommandError(self.name)
        index = (self._index + 1) & _INDEX_MASK
        indexed = command._replace(index=index)
        if is_real_time:
            frame, saturated = self._command.encode_saturating(indexed)
            self.counters.saturated += saturated
        else:
            frame = self._command.encode(indexed)
        self.sent, self._index = frame, index
        began_ns = self.now_ns()
        self.transfer()
        raws = self.take(began_ns)
        values = None if raws is None else self._reply.values_of(raws)
        return Reading(self.outcome, values, self.received)

    # --- the loop's way: integers, in three steps -------------------------------------------------

    def prepare(self, raws: list[int]) -> None:
        """Make the frame of a command's integers in wire order; the index is filled in here.

        Raises:
            FieldRangeError: An integer that its field cannot hold.
            UnsafeCommandError: The system enabled without a time-out.
        """
        if not raws[self._timeout_at] and raws[self._mode_at] & _ENABLE_SYSTEM:
            raise UnsafeCommandError(self.name)
        raws[self._index_at] = self._index = (self._index + 1) & _INDEX_MASK
        self.sent = self._encode_raw(raws)

    def transfer(self) -> None:
        """Exchange the frame that was prepared.

        Raises:
            TransportError: The device failed.
        """
        try:
            self.received = self.link.exchange(self.sent)
        except OSError as error:
            raise transport_error(self.link.name, error) from error

    def take(self, began_ns: int) -> tuple[int, ...] | None:
        """Judge what was received by a transfer that began then.

        Returns:
            The reply's integers; None unless they are sound and new. `outcome` says why.

        Raises:
            TransportError: The device failed while it was brought back in step.
        """
        frame = self.received
        # Most replies are in every way as expected, after one that was. They are recognised here;
        # it says nothing that `_judge` would not say, and is faster.
        if (
            self._last_outcome is Outcome.OK
            and len(frame) == self._reply_size
            and self._ends_with_crc(frame)
        ):
            raws = self._unpack(frame)
            echo, timestamp_ms = raws[self._echo_at], raws[self._timestamp_at]
            if (
                echo == (self._index - self._lag_min) & _INDEX_MASK
                and raws[0] & self._version_mask == self._version_bits
                and 0 < (timestamp_ms - self._timestamp_raw) & _INDEX_MASK < _USUAL_STEP_MS
                and frame.startswith(self._header)
            ):
                self._timestamp_since_ns = self._exchanged_ns
                self._exchanged_ns = began_ns
                self._timestamp_ms = self._timestamp_raw = timestamp_ms
                self._echo = echo
                self._last_frame = self._sound_frame = frame
                self._usual += 1
                return raws
        return self._take_unusual(began_ns)

    def _take_unusual(self, began_ns: int) -> tuple[int, ...] | None:
        self.counters.exchanges += 1
        try:
            self.outcome, raws = self._judge(self.received)
        except OSError as error:
            raise transport_error(self.link.name, error) from error
        self._count(self.outcome)
        self._last_outcome = self.outcome
        self._last_frame = self.received
        self._exchanged_ns = began_ns
        self._timestamp_raw = self._timestamp_ms or 0
        self.counters.resynchronised = self._realigned + self.link.resynchronised
        return raws

    def close(self) -> None:
        """Give the link back."""
        self.link.close()

    # --- judging a reply --------------------------------------------------------------------------

    def _judge(self, frame: bytes) -> tuple[Outcome, tuple[int, ...] | None]:
        try:
            raws = self._reply.decode_raw(frame)
        except ProtocolVersionError:
            return Outcome.MISMATCHED, None
        except ProtocolError:
            return self._unsound(frame), None
        echo, timestamp_ms = raws[self._echo_at], raws[self._timestamp_at]
        lag = (self._index - echo) & _INDEX_MASK
        progress = (echo - self._echo + _HALF) % _INDICES - _HALF
        elapsed_ms = self._elapsed_ms(timestamp_ms)
        # A reply is new if it confirms a newer command of ours, or the same one at a later time
        # (within one millisecond: with other content).
        is_ours = self._lag_min <= lag < _HALF and progress >= 0
        is_before_first = self._timestamp_ms is None and progress <= 0
        is_repetition = progress == 0 and (
            elapsed_ms < 0 or (elapsed_ms == 0 and frame == self._sound_frame)
        )
        if not is_ours or is_before_first or is_repetition:
            is_first = self._timestamp_ms is None and self.counters.exchanges <= self._lag_max
            return (Outcome.UNCONFIRMED if is_first else Outcome.STALE), None
        if elapsed_ms < 0:
            self.counters.restarted += 1
        if elapsed_ms or self._timestamp_ms is None:
            # A reply was made at the latest when the exchange before this one ended, and at the
            # earliest when it began: a computer may be away in the middle of it.
            self._timestamp_since_ns = self._exchanged_ns
        elif self._exchanged_ns - self._timestamp_since_ns > _STALL_AFTER_NS:
            return Outcome.STALLED, None
        self._sound_frame = frame
        self._echo = echo
        self._timestamp_ms = timestamp_ms
        return self._confirmation(lag, progress), raws

    def _elapsed_ms(self, timestamp_ms: int) -> int:
        """Return the time since the last accepted reply, by the board's clock; 0 before one."""
        if self._timestamp_ms is None:
            return 0
        return (timestamp_ms - self._timestamp_ms + _HALF) % _INDICES - _HALF

    def _confirmation(self, lag: int, progress: int) -> Outcome:
        """Compare the command that the board had taken with the one it should have taken."""
        suspect, self._suspect = self._suspect, None
        if suspect is not None:
            if self._echo == suspect:
                self.counters.late += 1
            else:
                self.counters.lost_commands += 1
        if lag <= _USUAL_LAG:
            return Outcome.OK
        if progress or lag <= self._lag_max:
            return Outcome.LATE
        return Outcome.COMMAND_LOST

    def _unsound(self, frame: bytes) -> Outcome:
        """Return why a reply could not be decoded; bring the board back in step where needed."""
        missing = self._reply.size - len(frame)
        if not frame or (not missing and is_idle_line(frame)):
            return Outcome.SILENT
        if missing:
            if self._is_misalignable:
                self._realign(missing)
            return Outcome.TRUNCATED
        if self._last_outcome in _MAY_BE_OUT_OF_STEP:
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

    # --- counting ---------------------------------------------------------------------------------

    def _count(self, outcome: Outcome) -> None:
        if outcome is Outcome.OK:
            self.counters.valid += 1
        elif self._is_consequence(outcome):
            self.counters.consequent += 1
        elif outcome is Outcome.COMMAND_LOST:
            # Counted as lost or late when the next reply shows which.
            self._suspect = (self._index - 1) & _INDEX_MASK
        else:
            name = "lost_replies" if outcome is Outcome.SILENT else outcome.name.lower()
            setattr(self.counters, name, getattr(self.counters, name) + 1)

    def _is_consequence(self, outcome: Outcome) -> bool:
        """Whether the exchange before this one explains what is wrong with it."""
        before = self._last_outcome
        if outcome in (Outcome.LATE, Outcome.COMMAND_LOST) and self._lag_max == _USUAL_LAG:
            # The command went down with its exchange; or it is the one already suspected.
            went_down = before in (Outcome.SILENT, Outcome.TRUNCATED) or (
                before is Outcome.CORRUPT and self._is_misalignable
            )
            return went_down or (outcome is Outcome.LATE and before is Outcome.COMMAND_LOST)
        return (
            outcome is Outcome.CORRUPT and self._is_misalignable and before in _MAY_BE_OUT_OF_STEP
        )


def _place(codec: FrameCodec[Any], name: str) -> int:
    place = codec.place_of(name)
    if place is None:
        raise ValueError(f"every frame has a field {name}")
    return place
