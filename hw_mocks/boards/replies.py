"""Makes the replies of a mock board: status bits, measured values, and how the firmware sends them.

A reply is made for the window that takes it: its values were latched a little before, and are cut
toward zero where the firmware does so.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from operator import itemgetter, mul

from firmware_protocol.behaviour import Behaviour, SystemBit
from firmware_protocol.codec import FrameCodec
from firmware_protocol.crc import crc32_mpeg2_halves_swapped
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.fields import CRC_SIZE, RS485_ADDRESS, Direction, Field
from firmware_protocol.profile import VERSION_SHIFT, Profile
from firmware_protocol.profiles import MODE_BITS, STATUS_BITS
from firmware_protocol.values import ReplyValues
from hw_mocks.boards.motor_output import MEASUREMENTS, MotorOutput, MotorState

_ENABLE_SYSTEM = MODE_BITS["ES"]
_SYSTEM_ENABLED = STATUS_BITS["SE"]
_MOTOR_BITS = tuple(
    (
        MODE_BITS[f"EM{n}"],
        STATUS_BITS[f"M{n}E"],
        STATUS_BITS[f"M{n}R"],
        STATUS_BITS[f"IDX{n}D"],
        STATUS_BITS[f"IDX{n}T"],
    )
    for n in (1, 2)
)
_OF_BOARD = ("bus_voltage_v", "status", "timestamp_ms", "index")
_POWER = MEASUREMENTS.index("input_power_w")
_SUPPLY_RESISTANCE_OHM = 0.05
_SAFE_CUT = 1.0 + 1e-12
"""Keeps a value that is a whole number of steps from being cut below it by our own rounding."""
_UPPER_HALF = ~0xFFFF


class ReplyMaker:
    """What a board says of itself and of its two outputs.

    Attributes:
        torn_share: Of replies whose first words are older than the rest.
    """

    def __init__(
        self,
        profile: Profile,
        outputs: tuple[MotorOutput, MotorOutput],
        chance: random.Random,
        *,
        bus_nominal_v: float,
    ) -> None:
        self._behaviour: Behaviour = profile.behaviour
        self._outputs = outputs
        self._bits = [
            (output, output.encoder, *bits)
            for output, bits in zip(outputs, _MOTOR_BITS, strict=True)
        ]
        self._chance = chance
        self._bus_nominal_v = bus_nominal_v
        self._version_bits = (profile.reply.protocol_version or 0) << VERSION_SHIFT
        self._is_idle_shown = self._behaviour.system_bit is not SystemBit.MOTOR_2
        self.torn_share = self._behaviour.torn_share
        flat = [(field, n) for field in profile.reply.fields for n in _motors(field)]
        self._in_wire_order = itemgetter(*(_place(field.name, n) for field, n in flat))
        is_cut = self._behaviour.is_truncated
        self._to_int: Callable[[float], int] = int if is_cut else round
        self._per_value = [
            1 if field.is_integer else (_SAFE_CUT if is_cut else 1.0) / field.lsb
            for field, _ in flat
        ]
        self._wires = [field.wire for field, _ in flat]
        names = [field.name for field, _ in flat]
        self._index_at = names.index("index")
        self._second_at = names.index("motor_position_rad") + 1
        self._made: list[int] | None = None
        self._before: list[int] | None = None
        now = self._in_wire_order(self._measured(0, 0, 0, 0.0))
        shifted = [(at, field) for at, (field, _) in enumerate(flat) if field.is_shifted]
        self._offsets = [(at, field.offset) for at, field in shifted if not math.isnan(now[at])]
        self._absent = [
            (at, (field.absent_raw or 0) * field.lsb)
            for at, field in shifted
            if math.isnan(now[at])
        ]

    def forget(self) -> None:
        """Have sent nothing yet."""
        self._made = self._before = None

    def note_sent(self) -> None:
        """Note that the last reply has gone out: the next may be torn from it."""
        self._before = self._made

    def status(self, mode: int | None, error: int) -> int:
        """Return the status word after a command's mode; None before there was one."""
        commanded = mode or 0
        status = self._version_bits | error
        is_idle_shown = self._is_idle_shown
        if is_idle_shown:
            if (mode is None or mode & _ENABLE_SYSTEM) and not error:
                status |= _SYSTEM_ENABLED
        elif commanded & _ENABLE_SYSTEM and self._outputs[1].state is not MotorState.IDLE:
            status |= _SYSTEM_ENABLED
        for output, encoder, enable, enabled, ready, found, toggle in self._bits:
            # An idle motor has cleared its command.
            if commanded & enable and (is_idle_shown or output.state is not MotorState.IDLE):
                status |= enabled
            if output.is_ready:
                status |= ready
            if encoder.is_index_found:
                status |= found
            if encoder.index_toggle:
                status |= toggle
        return status

    def make(
        self,
        codec: FrameCodec[ReplyValues],
        *,
        status: int,
        timestamp: int,
        index: int,
        offset_s: float,
    ) -> bytes:
        """Return a reply whose values were latched so long after the last physics step."""
        values = self._in_wire_order(self._measured(status, timestamp, index, offset_s))
        if self._offsets or self._absent:
            values = list(values)
            for at, offset in self._offsets:
                values[at] -= offset
            for at, value in self._absent:
                values[at] = value
        raws = list(map(self._to_int, map(mul, values, self._per_value)))
        if self.torn_share:
            raws = self._torn(raws)
        try:
            return codec.encode_raw(raws)
        except FieldRangeError:
            wires = zip(raws, self._wires, strict=True)
            return codec.encode_raw([max(w.minimum, min(w.maximum, raw)) for raw, w in wires])

    def blank(self, codec: FrameCodec[ReplyValues]) -> bytes:
        """Return a reply of zeros, but for the protocol version, where that is not 0."""
        raws = [0] * len(self._wires)
        raws[0] = self._version_bits
        return codec.encode_raw(raws)

    def unreadable(self, codec: FrameCodec[ReplyValues]) -> bytes:
        """Return zeros, the header too; the checksum is that of another header."""
        body = bytes(codec.size - CRC_SIZE)
        header = bytes([RS485_ADDRESS[Direction.REPLY], 0])
        return body + crc32_mpeg2_halves_swapped(header + body[len(header) :])

    def again(self, codec: FrameCodec[ReplyValues], frame: bytes, index: int) -> bytes:
        """Return a reply once more, with another index."""
        raws = list(codec.unpack(frame))
        raws[self._index_at] = index
        return codec.encode_raw(raws)

    def _measured(
        self, status: int, timestamp: int, index: int, offset_s: float
    ) -> tuple[float, ...]:
        """Return all there is to say; the last value is 0, for what nobody measures."""
        first, second = self._outputs
        of_first, of_second = first.measure(offset_s), second.measure(offset_s)
        power_w = of_first[_POWER] + of_second[_POWER]
        bus_v = self._bus_nominal_v - _SUPPLY_RESISTANCE_OHM * power_w / self._bus_nominal_v
        return (*of_first, *of_second, bus_v, status, timestamp, index, 0)

    def _torn(self, raws: list[int]) -> list[int]:
        """Return a reply that was sent while it was rewritten: its first words are older."""
        before, self._made = self._before, raws
        if before is None or self._chance.random() >= self.torn_share:
            return raws
        at = self._second_at
        upper_half, lower_half = before[at] & _UPPER_HALF, raws[at] & 0xFFFF
        return [*before[:at], upper_half | lower_half, *raws[at + 1 :]]


def _motors(field: Field) -> tuple[int, ...]:
    """Return the motors of a field's integers, in wire order; 0 for the board's own."""
    if not field.is_per_motor:
        return (0,)
    return (2, 1) if field.is_motor_2_first else (1, 2)


def _place(name: str, motor: int) -> int:
    """Return where a value stands among those measured; the last one is 0, for what is not."""
    count = len(MEASUREMENTS)
    if motor and name in MEASUREMENTS:
        return MEASUREMENTS.index(name) + (motor - 1) * count
    return 2 * count + _OF_BOARD.index(name) if name in _OF_BOARD else -1
