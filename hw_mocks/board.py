"""A mock motor board at byte level: what goes in on the wire, what comes out.

It decodes commands and encodes replies with the profile's tables, and behaves as the profile's
`Behaviour` says; there is no code per profile. SPI windows and RS-485 bytes are two doors to the
same board. Time is counted in physics steps, by `tick`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import ProtocolError
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import (
    MODE_FLAGS,
    STATUS_FLAGS,
    VERSION_SHIFT,
    ErrorsClear,
    Profile,
)
from firmware_protocol.values import CommandValues
from hw_mocks.motor_output import MotorOutput, Setpoint

_MODE = {flag.name: 1 << flag.bit for flag in MODE_FLAGS}
_STATUS = {flag.name: 1 << flag.bit for flag in STATUS_FLAGS}
_ENABLE_MOTOR = (_MODE["EM1"], _MODE["EM2"])
_COMPENSATE_INDEX = (_MODE["EI1OC"], _MODE["EI2OC"])
_MOTOR_STATUS = tuple(
    (_STATUS[f"M{n}E"], _STATUS[f"M{n}R"], _STATUS[f"IDX{n}D"], _STATUS[f"IDX{n}T"]) for n in (1, 2)
)
ERROR_ENCODER = (1, 6)
ERROR_TIMEOUT = 2
ERROR_TEMPERATURE = 3
ERROR_ROLLOVER = 5
_SUPPLY_RESISTANCE_OHM = 0.05
_NS_PER_MS = 1_000_000


class MockBoard:
    """A board with two outputs.

    Attributes:
        name: As in the robot file.
        profile: Which firmware it pretends to run.
        outputs: Its two motor outputs.
        error: The latched error code, 0 for none.
        is_powered: Whether it has supply; without, the line idles.
        is_index_frozen: Fault: the echoed index stays what it is.
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
        self._bus_nominal_v = bus_nominal_v
        self._step_ns = step_ns
        self._generator = generator
        self._commands = {framing: command_codec(profile, framing) for framing in Framing}
        self._replies = {framing: reply_codec(profile, framing) for framing in Framing}
        sources = self._sources()
        self._reply_sources: list[Callable[[], object]] = [
            sources.get(field.name, (lambda: (0.0, 0.0)) if field.is_per_motor else (lambda: 0))
            for field in profile.reply.fields
        ]
        self._frame_size = profile.frame_size
        self._has_temperature_fault = ERROR_TEMPERATURE in profile.faults
        self._frame_gap_min_ns = round(profile.behaviour.frame_gap_min_s * 1e9)
        self._now_ns = 0
        self._held: list[bytes] = []
        self._hold_windows = 0
        self._power_up()

    def _power_up(self) -> None:
        for output in self.outputs:
            output.power_up()
        self.error = 0
        self._is_enabled = False
        self._mode = 0
        self._deadline_ns = math.inf
        self._last_window_ns = -math.inf
        self._started_ns = self._now_ns
        self._echo = self._previous_echo = 0
        self._serial_input = b""
        self._is_rs485_disabled = False
        self._incoming = b""
        version = self.profile.reply.protocol_version or 0
        blank = self._replies[Framing.SPI].make(status=version << VERSION_SHIFT)
        self._outgoing = self._replies[Framing.SPI].encode(blank)

    # --- supply -----------------------------------------------------------------------------------

    def power_off(self) -> None:
        """Supply gone: outputs dead, the line idles."""
        self.is_powered = False
        self._deadline_ns = math.inf
        for output in self.outputs:
            output.power_up()

    def power_on(self) -> None:
        """Supply back: boots, remembering nothing."""
        self.is_powered = True
        self._power_up()

    # --- time -------------------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """After each physics step: calibration, watchdog, temperature, rollover."""
        self._now_ns = now_ns
        first, second = self.outputs
        if first.has_failed_alignment or second.has_failed_alignment:
            self.latch(ERROR_ENCODER[0 if first.has_failed_alignment else 1])
        if first.has_rolled_over or second.has_rolled_over:
            first.has_rolled_over = second.has_rolled_over = False
            if self._mode & _MODE["EPRE"]:
                self.latch(ERROR_ROLLOVER)
        if now_ns >= self._deadline_ns:
            self.latch(ERROR_TIMEOUT)
        if now_ns % _NS_PER_MS < self._step_ns:
            for output in self.outputs:
                output.heat(1e-3)
                if output.is_too_hot and self._has_temperature_fault:
                    self.latch(ERROR_TEMPERATURE)

    def latch(self, error: int) -> None:
        """Latch an error: the motors are made safe until it is cleared."""
        if self.error:
            return
        self.error = error
        for output in self.outputs:
            output.make_safe()

    # --- SPI --------------------------------------------------------------------------------------

    def transfer(self, sent: bytes) -> bytes:
        """One chip-select window: bytes in, as many bytes out."""
        if not self.is_powered:
            return bytes(len(sent))
        is_too_early = self._now_ns - self._last_window_ns < self._frame_gap_min_ns
        self._last_window_ns = self._now_ns
        if self.profile.behaviour.is_misaligned_by_truncation:
            return self._stream(sent)
        size = self._frame_size
        received = self._outgoing[: len(sent)].ljust(len(sent), b"\x00")
        if len(sent) >= size and not is_too_early:
            self._end_of_frame(sent[:size])
        return received

    def _stream(self, sent: bytes) -> bytes:
        """A board whose DMA runs on across windows: a short window shifts all that follow."""
        size = self._frame_size
        received = bytearray()
        while sent:
            done = len(self._incoming)
            part, sent = sent[: size - done], sent[size - done :]
            received += self._outgoing[done : done + len(part)]
            self._incoming += part
            if len(self._incoming) == size:
                frame, self._incoming = self._incoming, b""
                self._end_of_frame(frame)
        return bytes(received)

    def _end_of_frame(self, frame: bytes) -> None:
        if self._hold_windows:
            # Fault: commands are acted upon one window late.
            self._hold_windows -= 1
            for held in self._held:
                self._accept(held, Framing.SPI)
            self._held = [frame]
        else:
            for held in [*self._held, frame]:
                self._accept(held, Framing.SPI)
            self._held = []
        self._outgoing = self._reply(Framing.SPI)

    def hold_commands(self, windows: int) -> None:
        """Fault: act one window late upon the commands of the next windows."""
        self._hold_windows = windows

    # --- RS-485 -----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[bytes]:
        """Bytes from the RS-485 line; returns one reply per valid command found in them.

        The first valid SPI frame disables RS-485 until reset.
        """
        if not self.is_powered or self._is_rs485_disabled:
            return []
        codec = self._commands[Framing.RS485]
        self._serial_input += data
        replies: list[bytes] = []
        while True:
            start = self._serial_input.find(codec.header)
            if start < 0:
                # Keep what may be the first byte of a header.
                keep = len(codec.header) - 1
                self._serial_input = self._serial_input[-keep:]
                return replies
            frame = self._serial_input[start : start + codec.size]
            if len(frame) < codec.size:
                self._serial_input = self._serial_input[start:]
                return replies
            if self._accept(frame, Framing.RS485):
                self._serial_input = self._serial_input[start + codec.size :]
                replies.append(self._reply(Framing.RS485))
            else:
                self._serial_input = self._serial_input[start + 1 :]

    # --- commands ---------------------------------------------------------------------------------

    def _accept(self, frame: bytes, framing: Framing) -> bool:
        """Act on a command; one with a wrong checksum is ignored silently."""
        try:
            command = self._commands[framing].decode(frame)
        except ProtocolError:
            return False
        self._is_rs485_disabled |= framing is Framing.SPI
        self._previous_echo, self._echo = (
            self._echo,
            self._echo if self.is_index_frozen else command.index,
        )
        self._mode = command.mode
        is_watched = command.timeout_ms and command.mode & _MODE["ES"]
        self._deadline_ns = (
            self._now_ns + command.timeout_ms * _NS_PER_MS if is_watched else math.inf
        )
        self._obey(command)
        return True

    def _obey(self, command: CommandValues) -> None:
        self._is_enabled = bool(command.mode & _MODE["ES"])
        if not self._is_enabled:
            clears = self.profile.behaviour.errors_clear is ErrorsClear.SYSTEM_DISABLED_ONE_FRAME
            if clears:
                self.error = 0
            if not self.error:
                for output in self.outputs:
                    output.reset()
        if self.error or not self._is_enabled:
            return
        ki: tuple[float, float] = getattr(command, "ki_a_per_rad_s", (0.0, 0.0))
        for motor, output in enumerate(self.outputs):
            output.is_index_compensated = bool(command.mode & _COMPENSATE_INDEX[motor])
            output.command(
                Setpoint(
                    command.motor_position_rad[motor],
                    command.motor_velocity_rad_s[motor],
                    command.iq_ff_a[motor],
                    command.kp_a_per_rad[motor],
                    command.kd_a_s_per_rad[motor],
                    ki[motor],
                    command.isat_a[motor],
                )
            )
            if command.mode & _ENABLE_MOTOR[motor]:
                output.enable()
            else:
                output.stop()

    # --- replies ----------------------------------------------------------------------------------

    def _reply(self, framing: Framing) -> bytes:
        codec = self._replies[framing]
        values = codec.values_type._make(source() for source in self._reply_sources)
        return codec.encode_saturating(values)[0]

    def _sources(self) -> dict[str, Callable[[], Any]]:
        """What fills each field of a reply, by name; a field without an entry reads zero."""
        first, second = self.outputs
        return {
            "status": self._status,
            "timestamp_ms": lambda: (self._now_ns - self._started_ns) // _NS_PER_MS & 0xFFFF,
            "motor_position_rad": lambda: (first.position_rad, second.position_rad),
            "motor_velocity_rad_s": lambda: (first.velocity_rad_s, second.velocity_rad_s),
            "iq_a": lambda: (first.measured_iq_a(), second.measured_iq_a()),
            "motor_torque_nm": lambda: (first.torque_nm, second.torque_nm),
            "bus_voltage_v": self._bus_voltage_v,
            "input_power_w": lambda: (first.input_power_w, second.input_power_w),
            "winding_temperature_degc": lambda: (_degc(first), _degc(second)),
            "coil_resistance_ohm": lambda: (_ohm(first), _ohm(second)),
            "index": self._echoed_index,
        }

    def _status(self) -> int:
        status = (self.profile.reply.protocol_version or 0) << VERSION_SHIFT | self.error
        if self._is_enabled:
            status |= _STATUS["SE"]
        for output, (enabled, ready, found, toggle) in zip(
            self.outputs, _MOTOR_STATUS, strict=True
        ):
            status |= enabled * output.is_enabled | ready * output.is_ready
            status |= found * output.is_index_found | toggle * output.index_toggle
        return status

    def _echoed_index(self) -> int:
        # A slow firmware sometimes builds its reply before it has looked at the command.
        if self.profile.behaviour.reply_lag_max > 1 and self._generator.random() < 0.05:
            return self._previous_echo
        return self._echo

    def _bus_voltage_v(self) -> float:
        power_w = sum(output.input_power_w for output in self.outputs)
        return self._bus_nominal_v - _SUPPLY_RESISTANCE_OHM * power_w / self._bus_nominal_v


def _degc(output: MotorOutput) -> float:
    return math.nan if output.connection is None else output.winding_degc


def _ohm(output: MotorOutput) -> float:
    """Known once calibration has measured it."""
    if output.connection is None or not output.is_ready:
        return 0.0
    return output.connection.motor.coil_resistance_ohm
