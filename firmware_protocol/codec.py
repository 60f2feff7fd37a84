"""Bytes to values and back, compiled from a frame's table.

The same codec serves the host and the mock board. The ordinary path refuses what the wire cannot
carry; `encode_saturating` is for the 1 kHz loop, which must send something and counts what it
clamped. The hot paths run over flat tuples inside C functions (`map`, `struct`, `itemgetter`); a
value that does not fit is looked for only after `struct` has refused it, so the checks cost nothing
while all is well.
"""

from __future__ import annotations

import math
import struct
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cache, partial
from operator import itemgetter, mul
from typing import Any, Generic, TypeVar, cast

from firmware_protocol.crc import (
    crc32_mpeg2,
    crc32_mpeg2_halves_swapped,
    ends_with_crc,
    ends_with_crc_halves_swapped,
)
from firmware_protocol.errors import (
    CrcError,
    FieldRangeError,
    FrameHeaderError,
    FrameLengthError,
    ProtocolVersionError,
    UnknownNameError,
)
from firmware_protocol.fields import CRC_SIZE, Direction, Field, FrameLayout, Framing
from firmware_protocol.profile import VERSION_MASK, VERSION_SHIFT, Profile
from firmware_protocol.scaling import scaling_runs
from firmware_protocol.values import CommandValues, FrameValues, ReplyValues

ValuesT = TypeVar("ValuesT", bound=FrameValues)

_REFUSALS = (struct.error, TypeError, ValueError, OverflowError, IndexError)
"""What the hot path raises for a value that is too large, not finite, not a number or missing."""


class FrameCodec(Generic[ValuesT]):
    """Encodes and decodes one frame of one profile on one kind of link.

    Attributes:
        layout: The table it was compiled from.
        header: The bytes in front of every frame, none on SPI.
        size: Bytes of a whole frame.
        values_type: The named tuple of the frame's values, fields in table order.
        unpack: The integers of a sound frame in wire order; checks nothing.
        ends_with_crc: Whether a frame's checksum is right.
        version_bits: Mask and value of the protocol version in the first integer.
    """

    def __init__(self, layout: FrameLayout, framing: Framing) -> None:
        self.layout = layout
        self.header = layout.header(framing)
        self.size = len(self.header) + layout.size
        self.values_type = _values_type(layout)
        # `_make` without its Python frame; the table already says how many values there are.
        self._new_values: Callable[[Iterable[Any]], ValuesT] = partial(
            tuple.__new__, self.values_type
        )
        self._crc, self.ends_with_crc = (
            (crc32_mpeg2_halves_swapped, ends_with_crc_halves_swapped)
            if layout.are_crc_halves_swapped
            else (crc32_mpeg2, ends_with_crc)
        )
        self._body_size = self.size - CRC_SIZE
        codes = "".join(field.wire.struct_code * field.count for field in layout.fields)
        self._pack = struct.Struct(f">{codes}").pack
        self.unpack: Callable[[bytes], tuple[int, ...]] = struct.Struct(
            f">{len(self.header)}x{codes}"
        ).unpack_from
        self._flat_fields = [field for field in layout.fields for _ in range(field.count)]
        self._lsb = tuple(field.lsb for field in self._flat_fields)
        self._shifts = tuple(
            (position, field.lsb, field.offset, field.absent_raw)
            for position, field in enumerate(self._flat_fields)
            if field.is_shifted
        )
        self._group = itemgetter(*_positions(layout.fields))
        self._runs = scaling_runs(layout.fields)
        self._swapped = tuple(
            (position, position + 1)
            for position, field in enumerate(self._flat_fields)
            if field.is_motor_2_first and self._flat_fields[position - 1] is not field
        )
        self._zero_coded = tuple(
            (slice(first, first + field.count), number, field)
            for number, field in enumerate(layout.fields)
            if field.zero_means is not None
            for first in [self._flat_fields.index(field)]
        )
        # The status is the first field of every reply.
        mask = 0 if layout.protocol_version is None else VERSION_MASK << VERSION_SHIFT
        self.version_bits = mask, (layout.protocol_version or 0) << VERSION_SHIFT
        zeros = {field.name: 0 if field.is_integer else 0.0 for field in layout.fields}
        self._blank = {
            field.name: (zeros[field.name],) * 2 if field.is_per_motor else zeros[field.name]
            for field in layout.fields
        }

    # --- values ---------------------------------------------------------------------------------

    def make(self, **values: object) -> ValuesT:
        """Return a frame's values; fields that are not named are zero.

        Raises:
            UnknownNameError: A name that this frame does not have.
        """
        unknown = sorted(values.keys() - self._blank.keys())
        if unknown:
            raise UnknownNameError(
                f"this profile's {self.layout.direction.value} has no {', '.join(unknown)}; "
                f"it has {', '.join(self._blank)}"
            )
        return cast(ValuesT, self.values_type(**{**self._blank, **values}))

    # --- encoding -------------------------------------------------------------------------------

    def encode(self, values: ValuesT) -> bytes:
        """Return the frame for some values, each rounded to the nearest step, ties to even.

        Raises:
            FieldRangeError: A value that the wire cannot carry, NaN and infinity among them.
        """
        try:
            return self._sealed(self._pack(*self._raws(values)))
        except _REFUSALS:
            pass  # at least one value is not as it should be: look at each
        raws = [checked_raw(field, value) for field, value in self._by_field(values)]
        return self._sealed(self._pack(*raws))

    def encode_saturating(self, values: ValuesT) -> tuple[bytes, int]:
        """Return the frame for values clamped to what the wire carries, and how many were clamped.

        Raises:
            FieldRangeError: NaN or infinity, for which there is no nearest value.
        """
        try:
            return self._sealed(self._pack(*self._raws(values))), 0
        except _REFUSALS:
            pass
        clamped: list[int] = []
        count = 0
        for field, value in self._by_field(values):
            raw = _raw(field, value)
            nearest = min(max(raw, field.raw_minimum), field.raw_maximum)
            clamped.append(raw if raw == field.code_raw else nearest)
            count += clamped[-1] != raw
        return self._sealed(self._pack(*clamped)), count

    def encode_raw(self, raws: Sequence[int]) -> bytes:
        """Return the frame for the integers in wire order.

        Raises:
            FieldRangeError: An integer that its field cannot hold, or too few or many of them.
        """
        try:
            body = self.header + self._pack(*raws)
            return body + self._crc(body)
        except struct.error:
            self._check_count(raws)
            for field, raw in zip(self._flat_fields, raws, strict=True):
                low, high = field.wire.minimum, field.wire.maximum
                if not isinstance(raw, int) or not low <= raw <= high:
                    raise FieldRangeError(
                        field.raw_key, raw, f"the wire carries integers {low} to {high}"
                    ) from None
            raise

    # --- decoding -------------------------------------------------------------------------------

    def decode(self, frame: bytes) -> ValuesT:
        """Return the values of a frame.

        Raises:
            ProtocolError: The frame cannot be trusted; the subclass says why.
        """
        return self.values_of(self.decode_raw(frame))

    def values_of(self, raws: Sequence[int]) -> ValuesT:
        """Return the values of a frame's integers, which stand in wire order."""
        if not self._shifts:
            return self._new_values(self._group(tuple(map(mul, raws, self._lsb))))
        values = list(map(mul, raws, self._lsb))
        for position, lsb, offset, absent_raw in self._shifts:
            raw = raws[position]
            values[position] = math.nan if raw == absent_raw else raw * lsb + offset
        return self._new_values(self._group(tuple(values)))

    def decode_raw(self, frame: bytes) -> tuple[int, ...]:
        """Return the integers of a frame, in wire order.

        Raises:
            ProtocolError: The frame cannot be trusted; the subclass says why.
        """
        if len(frame) != self.size:
            raise FrameLengthError(length=len(frame), expected=self.size)
        if self.header and not frame.startswith(self.header):
            raise FrameHeaderError(header=frame[: len(self.header)], expected=self.header)
        if not self.ends_with_crc(frame):
            body, received = frame[: self._body_size], frame[self._body_size :]
            raise CrcError(frame, received=received, computed=self._crc(body))
        raws = self.unpack(frame)
        mask, bits = self.version_bits
        if raws[0] & mask != bits:
            raise ProtocolVersionError(
                version=raws[0] >> VERSION_SHIFT & VERSION_MASK, expected=bits >> VERSION_SHIFT
            )
        return raws

    def is_sound(self, frame: bytes) -> bool:
        """Whether length, header and checksum are right."""
        return (
            len(frame) == self.size and frame.startswith(self.header) and self.ends_with_crc(frame)
        )

    # --- views by name, for people and files ----------------------------------------------------

    def raw_by_key(self, raws: Sequence[int]) -> dict[str, int | list[int]]:
        """Return the integers by raw key, motor 1 first; fields that share a key in one list."""
        result: dict[str, int | list[int]] = {}
        for field, value in zip(self.layout.fields, self._group(tuple(raws)), strict=True):
            if not field.is_per_motor:
                result[field.raw_key] = value
            else:
                result[field.raw_key] = [*cast(list[int], result.get(field.raw_key, [])), *value]
        return result

    def place_of(self, name: str, motor: int = 1) -> int | None:
        """Return where a field's integer stands in wire order; None for a field the frame has not.

        `motor` is 1 or 2, for fields of both motors.
        """
        start = 0
        for field in self.layout.fields:
            if field.name == name:
                is_second = field.is_per_motor and (motor == 2) != field.is_motor_2_first
                return start + is_second
            start += field.count
        return None

    def grouped_raws(self, raws: Sequence[int]) -> tuple[int | tuple[int, int], ...]:
        """Return the integers field by field, motor 1 first."""
        return cast(tuple[int | tuple[int, int], ...], self._group(tuple(raws)))

    def raws_from_keys(self, by_key: Mapping[str, int | Sequence[int]]) -> list[int]:
        """Return the integers in wire order, from `raw_by_key`'s form."""
        taken: dict[str, int] = {}
        values: list[Any] = []
        for field in self.layout.fields:
            given = by_key[field.raw_key]
            if isinstance(given, int):
                values.append(given)
            else:
                start = taken.get(field.raw_key, 0)
                taken[field.raw_key] = start + field.count
                values.append(tuple(given[start : start + field.count]))
        return self._flatten(values)

    # --- inside ---------------------------------------------------------------------------------

    def _raws(self, values: Any) -> list[int]:
        """Return values as integers in wire order, whatever their size.

        Raises:
            ValueError: Among others: one became 0 where 0 means something else.
        """
        raws: list[int] = []
        for run, to_raws in self._runs:
            raws += to_raws(values[run])
        for first, second in self._swapped:
            raws[first], raws[second] = raws[second], raws[first]
        for part, number, field in self._zero_coded:
            if 0 in raws[part] and not field.is_zero_meant(values[number]):
                raise ValueError(values[number])
        return raws

    def _flatten(self, values: Sequence[Any]) -> list[Any]:
        """Return one entry per integer on the wire."""
        flat: list[Any] = []
        for field, value in zip(self.layout.fields, values, strict=True):
            flat.extend(value if field.is_per_motor else [value])  # `+=` would add up an array
        self._check_count(flat)
        for first, second in self._swapped:
            flat[first], flat[second] = flat[second], flat[first]
        return flat

    def _check_count(self, flat: Sequence[Any]) -> None:
        if len(flat) != len(self._flat_fields):
            raise FieldRangeError(
                self.layout.direction.value, flat, "fields of both motors take two values each"
            )

    def _by_field(self, values: Any) -> Iterator[tuple[Field, Any]]:
        """Return each value with its field, in wire order.

        Raises:
            FieldRangeError: A field of both motors without two values.
        """
        for field, value in zip(self.layout.fields, values, strict=True):
            if field.is_per_motor and (not isinstance(value, Sized) or len(value) != field.count):
                raise FieldRangeError(field.name, value, "it takes two values, motor 1 and motor 2")
        return zip(self._flat_fields, self._flatten(values), strict=True)

    def _sealed(self, fields: bytes) -> bytes:
        body = self.header + fields
        return body + self._crc(body)


def checked_raw(field: Field, value: object) -> int:
    """Return the integer for one value of a field.

    Raises:
        FieldRangeError: The wire cannot carry it, or it is not a number.
    """
    raw = _raw(field, value)
    if raw != field.code_raw and not field.raw_minimum <= raw <= field.raw_maximum:
        raise FieldRangeError(field.name, value, field.limits)
    return raw


def _raw(field: Field, value: Any) -> int:
    try:
        return field.raw_of(value)
    except _REFUSALS:
        raise FieldRangeError(field.name, value, field.limits) from None


def _positions(fields: Iterable[Field]) -> list[int | slice]:
    """Return where each field's values stand in the flat wire order, motor 1 first."""
    result: list[int | slice] = []
    start = 0
    for field in fields:
        end = start + field.count
        if not field.is_per_motor:
            result.append(start)
        elif field.is_motor_2_first:
            result.append(slice(end - 1, start - 1 if start else None, -1))
        else:
            result.append(slice(start, end))
        start = end
    return result


def _values_type(layout: FrameLayout) -> Any:
    # The fields come from the table, so their types cannot be written down: `values.py` states
    # the ones that every profile has.
    names = [field.name for field in layout.fields]
    return namedtuple(f"{layout.direction.value.title()}Values", names)


@cache
def _codec(layout: FrameLayout, framing: Framing) -> FrameCodec[Any]:
    return FrameCodec(layout, framing)


def codec_for(
    profile: Profile, direction: Direction, framing: Framing = Framing.SPI
) -> FrameCodec[Any]:
    """Return the codec of a profile's frame in a direction."""
    return _codec(profile.layout(direction), framing)


def command_codec(profile: Profile, framing: Framing = Framing.SPI) -> FrameCodec[CommandValues]:
    """Return the codec of a profile's commands."""
    return _codec(profile.command, framing)


def reply_codec(profile: Profile, framing: Framing = Framing.SPI) -> FrameCodec[ReplyValues]:
    """Return the codec of a profile's replies."""
    return _codec(profile.reply, framing)
