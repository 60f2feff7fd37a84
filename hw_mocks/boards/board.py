"""A mock motor board at byte level: what goes in on the wire, what comes out.

It decodes commands and encodes replies with the profile's tables, and behaves as the profile's
`Behaviour` says; there is no code per profile. SPI windows and RS-485 bytes are two doors to the
same board. Time is counted in physics steps, by `tick`.
"""

from __future__ import annotations

import random
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np

from firmware_protocol.behaviour import ErrorsClear, Watchdog
from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.errors import ProtocolError
from firmware_protocol.fields import FaultCause, Framing
from firmware_protocol.frame_finder import FrameFinder
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS
from firmware_protocol.values import CommandValues, ReplyValues
from hw_mocks.boards.control_law import SETPOINT
from hw_mocks.boards.motor_output import MotorOutput, MotorState
from hw_mocks.boards.replies import ReplyMaker
from hw_mocks.boards.watchdog import WatchdogTimer

_ENABLE_SYSTEM = MODE_BITS["ES"]
_ENABLE_ROLLOVER_ERROR = MODE_BITS["EPRE"]
_MOTOR_MODE = ((MODE_BITS["EM1"], MODE_BITS["EI1OC"]), (MODE_BITS["EM2"], MODE_BITS["EI2OC"]))
_MOTOR_OF = {FaultCause.ENCODER_1: 0, FaultCause.ENCODER_2: 1}
_NS_PER_MS = 1_000_000
_NOT_ASKED = (0.0, 0.0)
_SLOW_SHARE = 0.05
"""Of replies that a slow firmware builds before it has looked at the last command. That they come
was seen, how often was not counted: our choice."""
_NEIGHBOURS = 1
_REWRITTEN_NS = 2_000_000
"""After so long a reply has been rewritten as a whole, whatever was sent before."""


class _Codecs(NamedTuple):
    """The frames of one door."""

    command: FrameCodec[CommandValues]
    reply: FrameCodec[ReplyValues]


class MockBoard:
    """A board with two outputs.

    A calibration duration that is given makes calibrations last so long and begin at once.

    Attributes:
        name: As in the robot file.
        profile: Which firmware it pretends to run.
        outputs: Its two motor outputs.
        replies: How it makes its replies.
        error: The latched error code, 0 for none.
        is_powered: Whether it has supply; without, the line idles.
        is_index_frozen: Fault: the echoed index stays what it is.
        line_ns: When the next window begins, where that is known better than to a physics step.
        clock_hz: Of the SPI clock, which decides how long a frame takes.
        timer_ns: Period of the board's millisecond timer.
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
        clock_hz: float = 8e6,
        timeout_min_ms: int = 0,
        is_calibration_prompt: bool = False,
    ) -> None:
        behaviour = profile.behaviour
        self.name = name
        self.profile = profile
        self.outputs = outputs
        self.error = 0
        self.is_powered = True
        self.is_index_frozen = False
        self.line_ns = 0
        self.clock_hz = clock_hz
        self.timer_ns = round(behaviour.timestamp_step_s * 1e9)
        self._step_ns = step_ns
        self._chance = random.Random(int(generator.integers(1 << 62)))
        self._spi, self._rs485 = (
            _Codecs(command_codec(profile, framing), reply_codec(profile, framing))
            for framing in (Framing.SPI, Framing.RS485)
        )
        self.replies = ReplyMaker(profile, outputs, self._chance, bus_nominal_v=bus_nominal_v)
        self._watchdog = WatchdogTimer(behaviour, self._chance, timeout_min_ms=timeout_min_ms)
        asked = [field.name for field in profile.command.fields]
        self._in_setpoint_order = itemgetter(
            *(asked.index(name) if name in asked else -1 for name in SETPOINT)
        )
        self._encoders = (outputs[0].encoder, outputs[1].encoder)
        self._mode_bits = list(zip(outputs, _MOTOR_MODE, strict=True))
        is_late = behaviour.calibration.late_max_s > 0.0
        self._is_calibration_late = is_late and not is_calibration_prompt
        self._frame_size = profile.frame_size
        self._frame_gap_min_ns = round(behaviour.frame_gap_min_s * 1e9)
        self._tick_ns = round(behaviour.law_period_s * 1e9)
        self._age_max_ns = behaviour.reply_age_max_s * 1e9
        self._lag_max = behaviour.reply_lag_max
        self._now_ns = 0
        self._heat_ns = _NS_PER_MS
        self._power_up()

    def _power_up(self, uptime_ns: int = 0) -> None:
        for output in self.outputs:
            output.power_up()
        self.error = 0
        self._has_failed = False
        self._mode: int | None = None
        self._settled_mode: int | None = None
        self._is_calibrating = False
        self._started_ns = self._now_ns - uptime_ns
        self._watchdog.power_up(self._started_ns)
        self._last_window_ns: float = -self._frame_gap_min_ns
        self._usual_gap_ns = self._last_gap_ns = 0
        self._timer_phase_ns = self._chance.randrange(self.timer_ns)
        self._echo = self._shown_echo = 0
        self._echoes_late = 0  # in a row, the next reply's included
        self._finders = _finders(self._rs485.command)
        self._is_rs485_disabled = False
        self._has_replied = False
        self._incoming = b""
        self._unsettled: list[bytes] = []
        self._held: list[bytes] = []
        self._hold_windows = 0
        self._made_at: object = None
        self._made = b""
        self.replies.forget()

    # --- supply -----------------------------------------------------------------------------------

    def power_off(self) -> None:
        """Take the supply away: outputs dead, the line idles."""
        self.is_powered = False
        self._watchdog.power_off()
        for output in self.outputs:
            output.power_off()

    def power_on(self, uptime_s: float = 0.0) -> None:
        """Give the supply back: the board boots, remembering nothing; its clock may stand on."""
        self.is_powered = True
        self._power_up(round(uptime_s * 1e9))

    # --- time -------------------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """Do what is due after each physics step: calibration, watchdog, temperature, rollover."""
        self._now_ns = now_ns
        if self._is_calibrating:
            self._calibrate(now_ns)
        first, second = self._encoders
        if first.has_rolled_over or second.has_rolled_over:
            first.has_rolled_over = second.has_rolled_over = False
            if self._mode and self._mode & _ENABLE_ROLLOVER_ERROR:
                self._report(FaultCause.ROLLOVER)
        if now_ns >= self._watchdog.deadline_ns and self._is_watched:
            self._watchdog.strike()
            self._report(FaultCause.TIMEOUT)
        if now_ns >= self._heat_ns:
            self._heat_ns = now_ns + _NS_PER_MS
            for output in self.outputs:
                output.heat(1e-3)
                if output.is_too_hot:
                    self._report(FaultCause.TEMPERATURE)

    @property
    def _is_watched(self) -> bool:
        if self.profile.behaviour.watchdog is Watchdog.ALWAYS:
            return True
        return any(output.is_asking for output in self.outputs)

    def _report(self, cause: FaultCause) -> None:
        """Latch the error by which this firmware reports an event, if it does."""
        code = self.profile.code_of(cause)
        if code is not None:
            self.latch(code, _MOTOR_OF.get(cause))

    def latch(self, error: int, motor: int | None = None) -> None:
        """Latch an error: of one motor, counted from 0, or of the whole board.

        Code 0 is an error, too: of a gate driver that did not initialise, and nothing but the
        supply makes it try again.
        """
        if not self.is_powered:
            return
        self.error = self.error or error
        self._has_failed = True
        self._settled_mode = None
        is_of_one = motor is not None and self.profile.behaviour.are_faults_per_motor
        for number, output in enumerate(self.outputs):
            if not is_of_one or number == motor:
                output.fail(is_for_good=not error)

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

    def shift(self, sent: bytes, prepared: bytes | None = None) -> bytes:
        """Exchange the bytes of a window; what came in waits for `settle`.

        The reply is rebuilt until the window begins, unless a prepared one has gone out already;
        only commands are counted across windows.
        """
        self.settle()
        if not self.is_powered:
            return bytes(len(sent))
        began_ns = max(self._now_ns, self.line_ns)
        gap_ns = began_ns - self._last_window_ns
        if gap_ns > _REWRITTEN_NS:
            self.replies.forget()
        reply = self._reply(self._spi.reply, began_ns) if prepared is None else prepared
        self._note_sent()
        self._last_window_ns = began_ns
        # One pause is no habit.
        self._last_gap_ns, self._usual_gap_ns = int(gap_ns), min(self._last_gap_ns, int(gap_ns))
        self._acts_ns = began_ns + int(len(sent) * 8e9 / self.clock_hz)
        if gap_ns >= self._frame_gap_min_ns:
            self._take_in(sent)
        return reply[: len(sent)].ljust(len(sent), b"\x00")

    def _take_in(self, sent: bytes) -> None:
        size = self._frame_size
        if not self.profile.behaviour.is_receiver_shifted:
            if len(sent) >= size:
                self._unsettled.append(sent[:size])
            return
        if len(sent) == size and not self._incoming:
            self._unsettled.append(sent)
            return
        # DMA counts 16-bit words across windows: one of another length shifts all that follow.
        incoming = self._incoming + sent[: len(sent) & ~1]
        while len(incoming) >= size:
            self._unsettled.append(incoming[:size])
            incoming = incoming[size:]
        self._incoming = incoming

    def prepared_reply(self) -> bytes | None:
        """Return what the next window will get, foreseen from the last ones; None while at work."""
        if self._unsettled:
            return None
        if not self.is_powered:
            return bytes(self._frame_size)
        latest_ns = self._now_ns + self._step_ns
        foreseen_ns = min(self._last_window_ns + self._usual_gap_ns, latest_ns)
        return self._reply(self._spi.reply, max(self._now_ns, int(foreseen_ns)))

    def settle(self) -> None:
        """Act on the frames of the last window."""
        if not self._unsettled:
            return
        frames, self._unsettled = self._unsettled, []
        for frame in frames:
            due = [*self._held, frame]
            self._held = []
            if self._hold_windows:
                # Fault: commands are acted upon one window late.
                self._hold_windows -= 1
                self._held = [due.pop()]
            for command in due:
                self._is_rs485_disabled |= self._accept(command, self._spi.command)

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
        replies = []
        for finder in self._finders:
            finder.feed(data)
            while frame := finder.take():
                is_made_before = self.profile.behaviour.rs485_lag > 0
                if is_made_before:
                    replies.append(self._rs485_reply())
                self._acts_ns = self._now_ns
                self._accept(frame, finder.codec)
                if not is_made_before:
                    replies.append(self._rs485_reply())
        return replies

    def _rs485_reply(self) -> bytes:
        is_first, self._has_replied = not self._has_replied, True
        if is_first and self.profile.behaviour.is_rs485_blank_first:
            return self.replies.unreadable(self._rs485.reply)
        reply = self._reply(self._rs485.reply, self._now_ns)
        self._note_sent()
        return reply

    # --- commands ---------------------------------------------------------------------------------

    def _accept(self, frame: bytes, codec: FrameCodec[CommandValues]) -> bool:
        """Act on a command; returns whether it was one. A wrong checksum is ignored silently."""
        try:
            command = codec.decode(frame)
        except ProtocolError:
            return False
        if not self.is_index_frozen:
            self._echo = command.index
        was_enabled = self._mode is not None and self._mode & _ENABLE_SYSTEM
        self._mode = command.mode
        self._watchdog.hear(self._now_ns, command.timeout_ms)
        if command.mode & _ENABLE_SYSTEM:
            self._obey(command)
        elif was_enabled or self._has_failed:
            self._disable()
        return True

    def _disable(self) -> None:
        clear = self.profile.behaviour.errors_clear
        if clear is ErrorsClear.SYSTEM_DISABLED_ONE_FRAME:
            self.error = 0
            self._has_failed = False
        self._settled_mode = None
        for output in self.outputs:
            is_latched = self._has_failed and output.state is MotorState.ERROR
            if not (is_latched or output.has_failed_for_good):
                output.reset()

    def _obey(self, command: CommandValues) -> None:
        mode = command.mode
        asked = (*cast("tuple[Any, ...]", command), _NOT_ASKED)
        setpoints = zip(*self._in_setpoint_order(asked), strict=True)
        # It acts at the next tick of the law. To the microsecond: what follows from it recurs.
        acts_ns = self._acts_ns + self._tick_ns * self._chance.random()
        delay_s = max(0.0, round((acts_ns - self._now_ns) * 1e-3) * 1e-6)
        for output, setpoint in zip(self.outputs, setpoints, strict=True):
            output.command(setpoint, delay_s)
        if mode != self._settled_mode:
            self._enable(mode)

    def _enable(self, mode: int) -> None:
        """Enable and stop motors as asked, until every one is where the mode wants it."""
        is_settled = True
        for output, (enable, compensate) in self._mode_bits:
            output.encoder.compensate_index(bool(mode & compensate))
            if not mode & enable:
                output.stop()
                continue
            output.enable()
            is_settled &= output.state is MotorState.RUNNING
            if output.is_waiting and self._is_start_noticed():
                self._begin_calibration(output)
        self._settled_mode = mode if is_settled else None

    # --- calibration ------------------------------------------------------------------------------

    def _is_start_noticed(self) -> bool:
        """Whether two refreshes of the command, by frame and by timer, follow each other.

        An idle motor clears its command at every tick of the law, and starts on the second of two
        neighbouring ones.
        """
        if not self._is_calibration_late:
            return True
        number = round((self._acts_ns - self._timer_phase_ns) / self.timer_ns)
        timer_ns = self._timer_phase_ns + number * self.timer_ns
        apart = self._acts_ns // self._tick_ns - timer_ns // self._tick_ns
        return abs(apart) == _NEIGHBOURS

    def _begin_calibration(self, output: MotorOutput) -> None:
        apart_ns = 0.0
        if self._is_calibration_late:
            apart_ns = 1e9 * self.profile.behaviour.calibration.apart_max_s
        output.start_ns = self._now_ns + int(apart_ns * self._chance.random())
        self._is_calibrating = True

    def _calibrate(self, now_ns: int) -> None:
        """Begin calibrations that are due, and see which have failed."""
        for output, cause in zip(self.outputs, _MOTOR_OF, strict=True):
            if output.start_ns is not None and now_ns >= output.start_ns:
                output.calibrate()
            if output.has_failed_alignment and output.state is not MotorState.ERROR:
                self._report(cause)
        self._is_calibrating = any(output.is_calibrating for output in self.outputs)

    # --- replies ----------------------------------------------------------------------------------

    def _reply(self, codec: FrameCodec[ReplyValues], window_ns: int) -> bytes:
        if self._mode is None and self.profile.behaviour.is_blank_before_commands:
            return self.replies.blank(codec)
        status, index = self.replies.status(self._mode, self.error), self._echoed_index()
        # Within one physics step nothing is measured anew: a host that asks faster gets the same
        # reply with its own index.
        moment = (window_ns, self._now_ns, status, self._mode, codec)
        if moment == self._made_at:
            self._made = self.replies.again(codec, self._made, index)
            return self._made
        age_ns = self._age_max_ns * self._chance.random()
        self._made_at = moment
        self._made = self.replies.make(
            codec,
            status=status,
            timestamp=(self._now_ns - self._started_ns) // self.timer_ns & 0xFFFF,
            index=index,
            offset_s=(window_ns - age_ns - self._now_ns) * 1e-9,
        )
        return self._made

    def _echoed_index(self) -> int:
        if not self._echoes_late:
            self._shown_echo = self._echo
        return self._shown_echo

    def _note_sent(self) -> None:
        """Note that a reply has gone out.

        By chance a slow firmware builds the next one before it has looked at the command, however
        often that is rebuilt.
        """
        self.replies.note_sent()
        is_slow = self._echoes_late < self._lag_max - 1 and self._chance.random() < _SLOW_SHARE
        self._echoes_late = self._echoes_late + 1 if is_slow else 0


def _finders(codec: FrameCodec[CommandValues]) -> list[FrameFinder]:
    """Return finders of commands with the board's address, and with 0, which means everybody."""
    to_all: FrameCodec[CommandValues] = FrameCodec(codec.layout, Framing.RS485)
    to_all.header = bytes([0, codec.header[1]])
    return [FrameFinder(codec), FrameFinder(to_all)]
