"""A mock motor board at byte level: what goes in on the wire, what comes out.

It decodes commands and encodes replies with the profile's tables, and behaves as the profile's
`Behaviour` says; there is no code per profile. SPI windows and RS-485 bytes are two doors to the
same board. Time is counted in physics steps, by `tick`.
"""

from __future__ import annotations

import math
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np

from firmware_protocol.behaviour import ErrorsClear
from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.errors import ProtocolError
from firmware_protocol.fields import FaultCause, Field, Framing
from firmware_protocol.frame_finder import FrameFinder
from firmware_protocol.profile import VERSION_SHIFT, Profile
from firmware_protocol.profiles import MODE_BITS, STATUS_BITS
from firmware_protocol.values import CommandValues, ReplyValues
from hw_mocks.boards.motor_output import MEASUREMENTS, SETPOINT, MotorOutput

_ENABLE_SYSTEM = MODE_BITS["ES"]
_ENABLE_ROLLOVER_ERROR = MODE_BITS["EPRE"]
_MOTOR_MODE = ((MODE_BITS["EM1"], MODE_BITS["EI1OC"]), (MODE_BITS["EM2"], MODE_BITS["EI2OC"]))
_SYSTEM_ENABLED = STATUS_BITS["SE"]
_MOTOR_STATUS = tuple(
    (STATUS_BITS[f"M{n}E"], STATUS_BITS[f"M{n}R"], STATUS_BITS[f"IDX{n}D"], STATUS_BITS[f"IDX{n}T"])
    for n in (1, 2)
)
_SUPPLY_RESISTANCE_OHM = 0.05
_NS_PER_MS = 1_000_000
_MEASURED = (*MEASUREMENTS, "bus_voltage_v", "status", "timestamp_ms", "index")
_POWER = MEASUREMENTS.index("input_power_w")
_NOT_ASKED = (0.0, 0.0)
_NOT_MEASURED = ((0, 0), 0)
"""A field that this board measures nothing for reads zero, for two motors or for one value."""


class _Codecs(NamedTuple):
    """The frames of one door."""

    command: FrameCodec[CommandValues]
    reply: FrameCodec[ReplyValues]


class MockBoard:
    """A board with two outputs.

    Attributes:
        name: As in the robot file.
        profile: Which firmware it pretends to run.
        outputs: Its two motor outputs.
        error: The latched error code, 0 for none.
        is_powered: Whether it has supply; without, the line idles.
        is_index_frozen: Fault: the echoed index stays what it is.
        line_ns: When the next window begins, where that is known better than to a physics step.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        outputs: tuple[MotorOutput, MotorOutput],
        *,
        bus_nominal_v: float,
        step_ns: int,
        generator: np.random.Generator,
    ) -> None:
        self.name = name
        self.profile = profile
        self.outputs = outputs
        self.error = 0
        self.is_powered = True
        self.is_index_frozen = False
        self.line_ns = 0
        self._bus_nominal_v = bus_nominal_v
        self._step_ns = step_ns
        self._generator = generator
        self._spi, self._rs485 = (
            _Codecs(command_codec(profile, framing), reply_codec(profile, framing))
            for framing in (Framing.SPI, Framing.RS485)
        )
        asked = [field.name for field in profile.command.fields]
        self._in_setpoint_order = itemgetter(
            *(asked.index(name) if name in asked else -1 for name in SETPOINT)
        )
        self._in_table_order = itemgetter(*map(_place_among_measured, profile.reply.fields))
        before_index = takewhile(lambda field: field.name != "index", profile.reply.fields)
        self._index_at = sum(field.count for field in before_index)
        self._mode_bits = list(zip(outputs, _MOTOR_MODE, strict=True))
        self._status_bits = list(zip(outputs, _MOTOR_STATUS, strict=True))
        self._version_bits = (profile.reply.protocol_version or 0) << VERSION_SHIFT
        self._frame_size = profile.frame_size
        self._frame_gap_min_ns = round(profile.behaviour.frame_gap_min_s * 1e9)
        self._now_ns = 0
        self._power_up()

    def _power_up(self) -> None:
        for output in self.outputs:
            output.power_up()
        self.error = 0
        self._mode = 0
        self._deadline_ns = math.inf
        self._last_window_ns = -math.inf
        self._started_ns = self._now_ns
        self._echo = self._previous_echo = 0
        self._finder = FrameFinder(self._rs485.command)
        self._is_rs485_disabled = False
        self._incoming = b""
        self._unsettled = b""
        self._held: list[bytes] = []
        self._hold_windows = 0
        self._measured_at: object = None
        self._measured = b""
        self._measured_raws: list[int] = []
        self._outgoing = self._reply(self._spi.reply)

    # --- supply -----------------------------------------------------------------------------------

    def power_off(self) -> None:
        """Take the supply away: outputs dead, the line idles."""
        self.is_powered = False
        self._deadline_ns = math.inf
        for output in self.outputs:
            output.power_up()

    def power_on(self) -> None:
        """Give the supply back: the board boots, remembering nothing."""
        self.is_powered = True
        self._power_up()

    # --- time -------------------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """Do what is due after each physics step: calibration, watchdog, temperature, rollover."""
        self._now_ns = now_ns
        first, second = self.outputs
        if first.has_failed_alignment or second.has_failed_alignment:
            is_first = first.has_failed_alignment
            self._report(FaultCause.ENCODER_1 if is_first else FaultCause.ENCODER_2)
        if first.encoder.has_rolled_over or second.encoder.has_rolled_over:
            first.encoder.has_rolled_over = second.encoder.has_rolled_over = False
            if self._mode & _ENABLE_ROLLOVER_ERROR:
                self._report(FaultCause.ROLLOVER)
        if now_ns >= self._deadline_ns:
            self._report(FaultCause.TIMEOUT)
        if now_ns % _NS_PER_MS < self._step_ns:
            for output in self.outputs:
                output.heat(1e-3)
                if output.is_too_hot:
                    self._report(FaultCause.TEMPERATURE)

    def _report(self, cause: FaultCause) -> None:
        """Latch the error by which this firmware reports an event, if it does."""
        code = self.profile.code_of(cause)
        if code is not None:
            self.latch(code)

    def latch(self, error: int) -> None:
        """Latch an error: the motors are made safe until it is cleared."""
        if self.error or not self.is_powered:
            return
        self.error = error
        for output in self.outputs:
            output.make_safe()

    def freeze_encoders(self, is_frozen: bool) -> None:
        """Make both encoders stay at what they read last (a fault), or see their rotors again."""
        for output in self.outputs:
            output.encoder.is_frozen = is_frozen

    # --- SPI --------------------------------------------------------------------------------------

    def transfer(self, sent: bytes) -> bytes:
        """Make one chip-select window: bytes in, as many bytes out."""
        received = self.shift(sent)
        self.settle()
        return received

    def shift(self, sent: bytes) -> bytes:
        """Exchange the bytes of a window; what came in waits for `settle`.

        What goes out is known before the window.
        """
        self.settle()
        if not self.is_powered:
            return bytes(len(sent))
        started_ns = max(self._now_ns, self.line_ns)
        is_too_early = started_ns - self._last_window_ns < self._frame_gap_min_ns
        self._last_window_ns = started_ns
        if self.profile.behaviour.is_receiver_shifted:
            return self._stream(sent)
        size = self._frame_size
        if len(sent) >= size and not is_too_early:
            self._unsettled = sent[:size]
        return self._outgoing[: len(sent)].ljust(len(sent), b"\x00")

    @property
    def ready_reply(self) -> bytes | None:
        """What a window gets that sends a whole frame now; None in the middle of a frame."""
        return None if self._incoming or self._unsettled else self._outgoing

    def settle(self) -> None:
        """Act on the frame of the last window and make the reply for the next one."""
        if self._unsettled:
            frame, self._unsettled = self._unsettled, b""
            self._end_of_frame(frame)

    def _stream(self, sent: bytes) -> bytes:
        """Exchange bytes where DMA runs on across windows: a short one shifts all that follow."""
        size = self._frame_size
        received = bytearray()
        while sent:
            self.settle()
            done = len(self._incoming)
            part, sent = sent[: size - done], sent[size - done :]
            received += self._outgoing[done : done + len(part)]
            self._incoming += part
            if len(self._incoming) == size:
                self._unsettled, self._incoming = self._incoming, b""
        return bytes(received)

    def _end_of_frame(self, frame: bytes) -> None:
        self._previous_echo = self._echo
        due = [*self._held, frame]
        self._held = []
        if self._hold_windows:
            # Fault: commands are acted upon one window late.
            self._hold_windows -= 1
            self._held = [due.pop()]
        for command in due:
            self._is_rs485_disabled |= self._accept(command, self._spi.command)
        self._outgoing = self._reply(self._spi.reply)

    def hold_commands(self, windows: int) -> None:
        """Act one window late upon the commands of the next windows (a fault)."""
        self._hold_windows = windows

    # --- RS-485 -----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[bytes]:
        """Take bytes from the RS-485 line; return one reply per valid command found in them.

        The first valid SPI frame disables RS-485 until reset.
        """
        if not self.is_powered or self._is_rs485_disabled:
            return []
        self._finder.feed(data)
        replies = []
        while frame := self._finder.take():
            self._previous_echo = self._echo
            self._accept(frame, self._rs485.command)
            replies.append(self._reply(self._rs485.reply))
        return replies

    # --- commands ---------------------------------------------------------------------------------

    def _accept(self, frame: bytes, codec: FrameCodec[CommandValues]) -> bool:
        """Act on a command; returns whether it was one. A wrong checksum is ignored silently."""
        try:
            command = codec.decode(frame)
        except ProtocolError:
            return False
        if not self.is_index_frozen:
            self._echo = command.index
        is_disabled_already = not (self._mode & _ENABLE_SYSTEM or self.error)
        self._mode = mode = command.mode
        is_watched = command.timeout_ms and mode & _ENABLE_SYSTEM
        self._deadline_ns = (
            self._now_ns + command.timeout_ms * _NS_PER_MS if is_watched else math.inf
        )
        if mode & _ENABLE_SYSTEM:
            if not self.error:
                self._obey(command)
        elif not is_disabled_already:
            self._disable()
        return True

    def _disable(self) -> None:
        if self.profile.behaviour.errors_clear is ErrorsClear.SYSTEM_DISABLED_ONE_FRAME:
            self.error = 0
        if not self.error:
            for output in self.outputs:
                output.reset()

    def _obey(self, command: CommandValues) -> None:
        mode = self._mode
        asked = (*cast("tuple[Any, ...]", command), _NOT_ASKED)
        setpoints = zip(*self._in_setpoint_order(asked), strict=True)
        for output, (enable, compensate) in self._mode_bits:
            output.command(next(setpoints))
            output.encoder.compensate_index(bool(mode & compensate))
            if mode & enable:
                output.enable()
            else:
                output.stop()

    # --- replies ----------------------------------------------------------------------------------

    def _reply(self, codec: FrameCodec[ReplyValues]) -> bytes:
        status, index = self._status(), self._echoed_index()
        # Within one physics step nothing is measured anew: a host that asks faster gets the same
        # reply with its own index.
        moment = (self._now_ns, status, self._mode, codec)
        if moment == self._measured_at:
            if not self._measured_raws:
                self._measured_raws = list(codec.decode_raw(self._measured))
            self._measured_raws[self._index_at] = index
            return codec.encode_raw(self._measured_raws)
        self._measured_at, self._measured_raws = moment, []
        self._measured = self._measure(codec, status, index)
        return self._measured

    def _measure(self, codec: FrameCodec[ReplyValues], status: int, index: int) -> bytes:
        first, second = self.outputs
        pairs = tuple(zip(first.measure(), second.measure(), strict=True))
        power_w = sum(pairs[_POWER])
        sag_v = _SUPPLY_RESISTANCE_OHM * power_w / self._bus_nominal_v
        timestamp_ms = (self._now_ns - self._started_ns) // _NS_PER_MS & 0xFFFF
        bus_v = self._bus_nominal_v - sag_v
        measured = (*pairs, bus_v, status, timestamp_ms, index, *_NOT_MEASURED)
        values = codec.values_type._make(self._in_table_order(measured))
        return codec.encode_saturating(values)[0]

    def _status(self) -> int:
        status = self._version_bits | self.error
        if self._mode & _ENABLE_SYSTEM:
            status |= _SYSTEM_ENABLED
        for output, (enabled, ready, found, toggle) in self._status_bits:
            if output.is_enabled:
                status |= enabled
            if output.is_ready:
                status |= ready
            if output.encoder.is_index_found:
                status |= found
            if output.encoder.index_toggle:
                status |= toggle
        return status

    def _echoed_index(self) -> int:
        # A slow firmware sometimes builds its reply before it has looked at the command.
        if self.profile.behaviour.reply_lag_max > 1 and self._generator.random() < 0.05:
            return self._previous_echo
        return self._echo


def _place_among_measured(field: Field) -> int:
    return _MEASURED.index(field.name) if field.name in _MEASURED else -field.count
