"""One motor board on top of a link: exchange, check, count.

Every reply is judged by its checksum, protocol version, echoed index and timestamp before its
values are handed on: they are the board's, they are new, and they were made after this session
began. Nothing here raises for a bad reply: in a loop that is data. Each fault is counted once,
under its cause; what follows from a fault already counted (the command that went down with a lost
exchange) is counted as `consequent`.

A window of another length leaves some boards out of step: their replies stay sound, but commands
no longer arrive. A frozen echo shows it, and a board here cures it by itself (`_seek_step`).
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

__all__ = ["WORD", "Board", "Counters", "Outcome", "Reading", "is_blank"]

_INDICES = 1 << 16
_INDEX_MASK = _INDICES - 1
_HALF = _INDICES // 2
# Far from 0, which a rebooted board echoes. Echoes of an earlier session look like the future.
_FIRST_INDEX = 0x5000
_SPI_LAG = 1
"""Replies are exchanged together with commands: none can confirm its own."""
_HEAD_SIZE, _CRC_SIZE = 4, 4
"""Bytes at a frame's ends: RS-485 header and status, or status and time stamp; the checksum."""
WORD = 2
"""Bytes that a board's SPI counts as one."""
_FROZEN_MAX = 3
"""Sound replies in a row whose echo stands still before the board is brought in step; each time
that this did not help, twice as many."""
_STALL_AFTER_NS = 10_000_000
_USUAL_STEP_MS = 10
_ENABLE_SYSTEM = MODE_BITS["ES"]


class Board:
    """A board on a link.

    Commands that enable the system say `command_timeout_ms`: after this long without a valid one
    the board stops its motors. All others say 0: some firmwares count with ES = 0 too, and latch an
    error until they are powered off. `now_ns` shows when the board's own clock stands still.

    Attributes:
        command_timeout_ms: What commands that enable the system say by default.
        lag_usual: A reply usually confirms the command that was sent so many before it,
        lag_max: and at the latest, by the profile, the one so many before it.
        index: Of the last command.
        cured: How often a frozen echo showed that it was out of step, and it was brought back.
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
        self.command_timeout_ms = command_timeout_ms
        self.profile = profile
        self.link = link
        self._counters = Counters()
        self._usual = 0
        self._command = command_codec(profile, link.framing)
        self._reply = reply_codec(profile, link.framing)
        behaviour, is_spi = profile.behaviour, link.framing is Framing.SPI
        self._lag_min = _SPI_LAG if is_spi else 0
        self.lag_usual = _SPI_LAG if is_spi else behaviour.rs485_lag
        self.lag_max = max(behaviour.reply_lag_max, self.lag_usual)
        self.now_ns = now_ns
        self._is_misalignable = is_spi and behaviour.is_receiver_shifted
        self._frozen, self._frozen_max = 0, _FROZEN_MAX
        self.cured = 0
        self.index = _FIRST_INDEX
        self._echo = _FIRST_INDEX
        self._timestamp_ms: int | None = None
        self._timestamp_since_ns = self._exchanged_ns = now_ns()
        self._suspect: int | None = None
        self._last_outcome = Outcome.UNCONFIRMED
        self._realigned = 0
        self._sound_frame = b""
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
        """Make a command of this board's profile; fields not named are zero.

        The time-out, unless given, is the board's when the mode enables the system, and 0 when not.

        Raises:
            UnknownNameError: The profile has no such field.
        """
        command = self._command.make(**values)
        if "timeout_ms" in values or not command.mode & _ENABLE_SYSTEM:
            return command
        return command._replace(timeout_ms=self.command_timeout_ms)

    def exchange(self, command: CommandValues, *, is_real_time: bool = False) -> Reading:
        """Send a command, receive and judge a reply. The index is filled in here.

        In real time, values that the wire cannot carry are clamped and counted.

        Raises:
            FieldRangeError: A value that the wire cannot carry.
            UnsafeCommandError: The system enabled without a time-out, or a time-out without it.
            TransportError: The device failed.
        """
        if (not command.timeout_ms) is not (not command.mode & _ENABLE_SYSTEM):
            raise UnsafeCommandError(self.name, command.timeout_ms)
        index = (self.index + 1) & _INDEX_MASK
        indexed = command._replace(index=index)
        if is_real_time:
            frame, saturated = self._command.encode_saturating(indexed)
            self.counters.saturated += saturated
        else:
            frame = self._command.encode(indexed)
        self.sent, self.index = frame, index
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
            UnsafeCommandError: The system enabled without a time-out, or a time-out without it.
        """
        if raws[self._mode_at] & _ENABLE_SYSTEM:
            if not raws[self._timeout_at]:
                raise UnsafeCommandError(self.name, 0)
        elif raws[self._timeout_at]:
            raise UnsafeCommandError(self.name, raws[self._timeout_at])
        raws[self._index_at] = self.index = (self.index + 1) & _INDEX_MASK
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
                echo == (self.index - self.lag_usual) & _INDEX_MASK
                and raws[0] & self._version_mask == self._version_bits
                and 0 < (timestamp_ms - self._timestamp_raw) & _INDEX_MASK < _USUAL_STEP_MS
                and frame.startswith(self._header)
            ):
                self._timestamp_since_ns = self._exchanged_ns
                self._exchanged_ns = began_ns
                self._timestamp_ms = self._timestamp_raw = timestamp_ms
                self._echo = echo
                self._sound_frame = frame
                self._usual += 1
                return raws
        return self._take_unusual(began_ns)

    def _take_unusual(self, began_ns: int) -> tuple[int, ...] | None:
        self.counters.exchanges += 1
        try:
            self.outcome, raws = self._judge(self.received)
            if self._is_misalignable and self._frozen >= self._frozen_max:
                self._frozen_max *= 2
                self._seek_step()
        except OSError as error:
            raise transport_error(self.link.name, error) from error
        self._count(self.outcome)
        self._last_outcome = self.outcome
        self._exchanged_ns = began_ns
        self._timestamp_raw = self._timestamp_ms or 0
        self.counters.resynchronised = self._realigned + self.cured + self.link.resynchronised
        return raws

    def has_taken(self, index: int) -> bool:
        """Return whether the board has confirmed a command of this index, or a later one."""
        return self._timestamp_ms is not None and (self._echo - index) & _INDEX_MASK < _HALF

    def close(self) -> None:
        """Give the link back."""
        self.link.close()

    # --- judging a reply --------------------------------------------------------------------------

    def _judge(self, frame: bytes) -> tuple[Outcome, tuple[int, ...] | None]:
        try:
            raws = self._reply.decode_raw(frame)
        except ProtocolVersionError:
            return (self._unconfirmed() if is_blank(frame) else Outcome.MISMATCHED), None
        except ProtocolError:
            return self._unsound(frame), None
        echo, timestamp_ms = raws[self._echo_at], raws[self._timestamp_at]
        lag = (self.index - echo) & _INDEX_MASK
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
            return self._unconfirmed(), None
        if progress:
            self._frozen, self._frozen_max = 0, _FROZEN_MAX
        else:
            self._frozen += 1
        if elapsed_ms < 0:
            self.counters.restarted += 1
        if elapsed_ms or self._timestamp_ms is None:
            # A reply was made at the latest when this exchange began, and on some boards as early
            # as when the one before it began: a computer may be away in the middle of that.
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
        if lag <= self.lag_usual:
            return Outcome.OK
        if progress or lag <= self.lag_max:
            return Outcome.LATE
        return Outcome.COMMAND_LOST

    @property
    def _is_before_first(self) -> bool:
        """Whether a reply may still have been made before our first command."""
        return self._timestamp_ms is None and self.counters.exchanges <= self.lag_max

    def _unconfirmed(self) -> Outcome:
        """Return what a sound reply is that confirms no newer command of ours."""
        self._frozen += 1
        return Outcome.UNCONFIRMED if self._is_before_first else Outcome.STALE

    def _unsound(self, frame: bytes) -> Outcome:
        """Return why a reply could not be decoded; bring the board back in step where needed."""
        missing = self._reply.size - len(frame)
        if not missing and self._is_before_first and is_blank(frame):
            return Outcome.UNCONFIRMED
        if not frame or (not missing and is_idle_line(frame)):
            return Outcome.SILENT
        if missing:
            if self._is_misalignable:
                self.link.realign(missing)
                self._realigned += 1
            return Outcome.TRUNCATED
        return Outcome.CORRUPT

    def _seek_step(self) -> None:
        """Clock single words until a command arrives; after a whole frame of them all is as before.

        The command sent last is repeated, under its own index, so that the board obeys nothing new.
        """
        if self._is_heard():
            return
        for _ in range(self._reply.size // WORD - 1):
            self.link.realign(WORD)
            if self._is_heard():
                self.cured += 1
                return
        self.link.realign(WORD)

    def _is_heard(self) -> bool:
        """Whether the command sent last arrives when it is repeated."""
        self.link.exchange(self.sent)
        return self._echo_of(self.link.exchange(self.sent)) == self.index

    def _echo_of(self, frame: bytes) -> int | None:
        return self._unpack(frame)[self._echo_at] if self._reply.is_sound(frame) else None

    # --- counting ---------------------------------------------------------------------------------

    def _count(self, outcome: Outcome) -> None:
        if outcome is Outcome.OK:
            self.counters.valid += 1
        elif self._is_consequence(outcome):
            self.counters.consequent += 1
        elif outcome is Outcome.COMMAND_LOST:
            # Counted as lost or late when the next reply shows which.
            self._suspect = (self.index - 1) & _INDEX_MASK
        else:
            name = "lost_replies" if outcome is Outcome.SILENT else outcome.name.lower()
            setattr(self.counters, name, getattr(self.counters, name) + 1)

    def _is_consequence(self, outcome: Outcome) -> bool:
        """Whether the exchange before this one explains what is wrong with it."""
        before = self._last_outcome
        if outcome not in (Outcome.LATE, Outcome.COMMAND_LOST) or self.lag_max > self.lag_usual:
            return False
        # The command went down with its exchange; or it is the one already suspected.
        went_down = before in (Outcome.SILENT, Outcome.TRUNCATED)
        return went_down or (outcome is Outcome.LATE and before is Outcome.COMMAND_LOST)


def is_blank(frame: bytes) -> bool:
    """Return whether a reply says nothing beyond its status, as before a first command."""
    return len(frame) > _HEAD_SIZE + _CRC_SIZE and not any(frame[_HEAD_SIZE:-_CRC_SIZE])


def _place(codec: FrameCodec[Any], name: str) -> int:
    place = codec.place_of(name)
    if place is None:
        raise ValueError(f"every frame has a field {name}")
    return place
