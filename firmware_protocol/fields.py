"""The vocabulary of the tables: wire types, scales, fields, named bits, faults, frames.

A scale is a power of two times a unit, and each unit knows its SI factor, so a table line states
what the firmware's documentation states (2⁻²⁴ turn) and the conversion to SI follows exactly.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from functools import cached_property
from operator import index
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class WireType:
    """An integer on the wire, most significant byte first."""

    name: str
    struct_code: str
    size: int
    minimum: int
    maximum: int


U8 = WireType("u8", "B", 1, 0, 0xFF)
U16 = WireType("u16", "H", 2, 0, 0xFFFF)
I16 = WireType("i16", "h", 2, -0x8000, 0x7FFF)
I32 = WireType("i32", "i", 4, -0x8000_0000, 0x7FFF_FFFF)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of the firmware's documentation, and what one of it is in SI."""

    symbol: str
    si_symbol: str
    in_si: float


_TURN_RAD = 2.0 * math.pi
_KRPM_RAD_S = 1000.0 * 2.0 * math.pi / 60.0

COUNT = Unit("", "", 1.0)
TURN = Unit("turn", "rad", _TURN_RAD)
KRPM = Unit("krpm", "rad/s", _KRPM_RAD_S)
AMPERE = Unit("A", "A", 1.0)
AMPERE_PER_TURN = Unit("A/turn", "A/rad", 1.0 / _TURN_RAD)
AMPERE_PER_KRPM = Unit("A/krpm", "A·s/rad", 1.0 / _KRPM_RAD_S)
AMPERE_PER_TURN_SECOND = Unit("A/(turn·s)", "A/(rad·s)", 1.0 / _TURN_RAD)
NEWTON_METRE = Unit("N·m", "N·m", 1.0)
VOLT = Unit("V", "V", 1.0)
WATT = Unit("W", "W", 1.0)
OHM = Unit("Ω", "Ω", 1.0)
CELSIUS = Unit("°C", "°C", 1.0)
MILLISECOND = Unit("ms", "ms", 1.0)
FULL_SCALE = Unit("of full scale", "of full scale", 1.0)


@dataclass(frozen=True, slots=True)
class Flag:
    """A named bit. Reserved bits are named too, and travel unchanged."""

    name: str
    bit: int
    summary: str


@dataclass(frozen=True)
class Field:
    """One line of a frame's table.

    Attributes:
        name: What the value is called everywhere, with its unit; the key of SI values.
        raw_key: The key of the integers. Neighbouring fields that share one are listed together.
        wire: Integer type on the wire.
        summary: One sentence for the reader of the table.
        unit: The unit of the least significant bit; `COUNT` leaves the integer as it is.
        lsb_exponent: The least significant bit is 2 to this power, in `unit`.
        is_per_motor: Whether there are two, motor 1 and motor 2.
        is_motor_2_first: Whether motor 2 comes first on the wire. Values are always motor 1 first.
        offset: Value of raw 0, in `unit`.
        absent_raw: The integer that means "no sensor"; its value is NaN.
        zero_means: What a firmware takes 0 for, where that is no small value; None where it is one.
            Only 0 itself is then sent as 0, and nothing that would round to it.
        flags: Named bits, for fields that hold them.
        is_auxiliary: Housekeeping rather than motion: listed apart where values are listed.
    """

    name: str
    raw_key: str
    wire: WireType
    summary: str
    unit: Unit = COUNT
    lsb_exponent: int = 0
    _: KW_ONLY
    is_per_motor: bool = False
    is_motor_2_first: bool = False
    offset: float = 0.0
    absent_raw: int | None = None
    zero_means: str | None = None
    flags: tuple[Flag, ...] = ()
    is_auxiliary: bool = False

    @cached_property
    def count(self) -> int:
        """How many integers the field has on the wire."""
        return 2 if self.is_per_motor else 1

    @cached_property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.count * self.wire.size

    @cached_property
    def is_integer(self) -> bool:
        """Whether the value is the integer itself (a counter, a code, bits)."""
        return self.unit in (COUNT, MILLISECOND) and not (self.lsb_exponent or self.offset)

    @cached_property
    def lsb(self) -> float | int:
        """The least significant bit in SI; the integer 1 where the value is the integer itself."""
        return 1 if self.is_integer else math.ldexp(self.unit.in_si, self.lsb_exponent)

    @cached_property
    def is_shifted(self) -> bool:
        """Whether plain scaling is not enough."""
        return bool(self.offset) or self.absent_raw is not None

    @cached_property
    def code_raw(self) -> int | None:
        """The integer that says something else than a value; None where there is none."""
        return self.absent_raw if self.zero_means is None else 0

    @cached_property
    def raw_minimum(self) -> int:
        """The smallest integer that carries a value."""
        return self.wire.minimum + (self.code_raw == self.wire.minimum)

    @cached_property
    def raw_maximum(self) -> int:
        """The largest integer that carries a value."""
        return self.wire.maximum - (self.code_raw == self.wire.maximum)

    def raw_of(self, value: float) -> int:
        """Return the integer for a value, whatever its size.

        NaN becomes the "no sensor" code. A value that would come out as a code, and does not mean
        it, lies outside of what the wire type holds.

        Raises:
            TypeError: Not a number, or a fraction where the value is the integer itself.
            ValueError: NaN, where there is no such code.
            OverflowError: Infinity.
        """
        if self.absent_raw is not None and math.isnan(value):
            return self.absent_raw
        if self.is_integer:
            raw = index(cast(int, value))
        else:
            # NumPy's short floats would be divided in their own, too coarse, arithmetic; and unlike
            # `float`, this takes no text for a number.
            value = math.ldexp(value, 0)
            steps = (value - self.offset) / self.lsb
            if math.isinf(steps) and math.isfinite(value):
                # Only the division has overflowed: there still is a nearest limit.
                return self.wire.maximum + 1 if steps > 0.0 else self.wire.minimum - 1
            raw = round(steps)
        if raw != self.code_raw or (self.zero_means is not None and not value):
            return raw
        return self.wire.minimum - 1 if raw == self.wire.minimum else self.wire.maximum + 1

    def is_zero_meant(self, values: Any) -> bool:
        """Whether of a field's values, one or a pair, only 0 itself is sent as 0."""
        for value in values if self.is_per_motor else (values,):
            if value and not round(value / self.lsb):
                return False
        return True

    @cached_property
    def limits(self) -> str:
        """What the wire carries, for messages."""
        low = self.raw_minimum * self.lsb + self.offset
        high = self.raw_maximum * self.lsb + self.offset
        kind = "integers " if self.is_integer else ""
        zero = "" if self.zero_means is None else f", and 0 for {self.zero_means}"
        carried = f"the wire carries {kind}{low:.9g} to {high:.9g} {self.unit.si_symbol}".rstrip()
        return carried + zero


class FaultCause(Enum):
    """Events that firmwares report under codes of their own."""

    ENCODER_1 = auto()
    ENCODER_2 = auto()
    TIMEOUT = auto()
    TEMPERATURE = auto()
    ROLLOVER = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error code of a board means and what a person does about it."""

    code: int
    meaning: str
    remedy: str
    cause: FaultCause | None = None
    """None: nothing that a mock board would come to by itself."""


class Direction(Enum):
    """Which way a frame travels."""

    COMMAND = "command"
    REPLY = "reply"


class Framing(Enum):
    """How a frame is wrapped on its link."""

    SPI = "spi"
    RS485 = "rs485"


CRC_SIZE = 4
RS485_ADDRESS = {Direction.COMMAND: 0x42, Direction.REPLY: 0xFF}
_RS485_FRAME_TYPE = 0
_RS485_HEADER_SIZE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLayout:
    """All fields of a frame in wire order, and how its checksum is written.

    Attributes:
        direction: Which way it travels.
        fields: In wire order, without the checksum.
        protocol_version: What the version bits of the status must say; None for commands.
        are_crc_halves_swapped: Whether the low half of the checksum comes first.
    """

    direction: Direction
    fields: tuple[Field, ...]
    protocol_version: int | None = None
    are_crc_halves_swapped: bool = False

    @property
    def size(self) -> int:
        """Bytes of the frame with its checksum, without an RS-485 header."""
        return sum(field.size for field in self.fields) + CRC_SIZE

    def header(self, framing: Framing) -> bytes:
        """Return the bytes in front of the frame on a link; the checksum covers them."""
        if framing is Framing.SPI:
            return b""
        size = self.size + _RS485_HEADER_SIZE
        return bytes([RS485_ADDRESS[self.direction], _RS485_FRAME_TYPE << 6 | size])

    def offsets(self) -> list[tuple[Field, int]]:
        """Return every field with the byte it starts at."""
        result, offset = [], 0
        for field in self.fields:
            result.append((field, offset))
            offset += field.size
        return result
