"""What the wire cannot carry: refused on the ordinary path, clamped and counted in the loop."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CODECS, frame_values, limits

from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.fields import Field
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import ARM, PROFILES, UDRIVER2, UOMODRI

SPI_CODECS = {name: codec for name, codec in CODECS.items() if name.endswith("spi")}
every_codec = pytest.mark.parametrize("codec", SPI_CODECS.values(), ids=SPI_CODECS)
COMMAND, REPLY = command_codec(ARM), reply_codec(ARM)
TEMPERATURE = "winding_temperature_degc"
ABSENT = [math.nan]


def with_value(codec: FrameCodec[Any], field: Field, value: Any) -> list[Any]:
    """A frame with the value in a field: once per motor where there are two."""
    blank = codec.make()
    if not field.is_per_motor:
        return [blank._replace(**{field.name: value})]
    fine = limits(field)[1]
    return [blank._replace(**{field.name: pair}) for pair in ((value, fine), (fine, value))]


def outside(field: Field) -> list[float]:
    """Just outside of the range, and far outside."""
    low, high = limits(field)
    if field.is_integer:
        return [low - 1, high + 1, -(10**30), 10**30]
    below = low - (1 if field.zero_means is None else 2) * field.lsb
    return [below, high + field.lsb, -1e9 + low, 1e9 + high, -1e308, 1e308]


@every_codec
def test_out_of_range_is_refused_with_name_value_and_limits(codec: FrameCodec[Any]) -> None:
    for field in codec.layout.fields:
        low, high = limits(field)
        for value in outside(field):
            for values in with_value(codec, field, value):
                with pytest.raises(FieldRangeError) as caught:
                    codec.encode(values)
                assert (caught.value.field, caught.value.value) == (field.name, value)
                for part in (field.name, repr(value), f"{low:.9g}", f"{high:.9g}"):
                    assert part in str(caught.value)


@every_codec
def test_out_of_range_is_clamped_and_counted_in_the_loop(codec: FrameCodec[Any]) -> None:
    for field in codec.layout.fields:
        low, high = limits(field)
        for value in outside(field):
            nearest = min(max(value, low), high)
            for values, clamped in zip(
                with_value(codec, field, value), with_value(codec, field, nearest), strict=True
            ):
                assert codec.encode_saturating(values) == (codec.encode(clamped), 1), field
            if field.is_per_motor:
                both = codec.make(**{field.name: (value, value)})
                expected = codec.encode(codec.make(**{field.name: (nearest, nearest)}))
                assert codec.encode_saturating(both) == (expected, 2), field


@every_codec
def test_limits_themselves_are_carried(codec: FrameCodec[Any]) -> None:
    for field in codec.layout.fields:
        for value in limits(field):
            for values in with_value(codec, field, value):
                assert codec.encode_saturating(values) == (codec.encode(values), 0), field


@every_codec
def test_what_is_no_finite_number_is_refused_on_both_paths(codec: FrameCodec[Any]) -> None:
    """But for the one NaN with a meaning, which both carry."""
    for field in codec.layout.fields:
        for value in (math.nan, math.inf, -math.inf, "1", None, 1j, b"\x01"):
            for values in with_value(codec, field, value):
                if field.absent_raw is not None and value in ABSENT:
                    assert codec.encode_saturating(values) == (codec.encode(values), 0)
                    continue
                for encode in (codec.encode, codec.encode_saturating):
                    with pytest.raises(FieldRangeError) as caught:
                        encode(values)
                    assert caught.value.field == field.name


@pytest.mark.parametrize("encode", [COMMAND.encode, COMMAND.encode_saturating])
@pytest.mark.parametrize("pair", [1.0, (), (1.0,), (1.0, 2.0, 3.0), None])
def test_a_field_of_both_motors_takes_two_values(encode: Any, pair: object) -> None:
    with pytest.raises(FieldRangeError) as caught:
        encode(COMMAND.make(iq_ff_a=pair))
    assert (caught.value.field, caught.value.value) == ("iq_ff_a", pair)


@pytest.mark.parametrize("profile", [ARM, UOMODRI, UDRIVER2], ids=lambda profile: profile.name)
def test_one_value_too_many_and_one_too_few_do_not_make_up_for_each_other(profile: Any) -> None:
    codec = command_codec(profile)
    names = [field.name for field in profile.command.fields if field.is_per_motor]
    for many in names:
        for few in names:
            values = codec.make(**{many: (0.0, 0.0, 0.0), few: (0.0,)})
            for encode in (codec.encode, codec.encode_saturating):
                with pytest.raises(FieldRangeError) as caught:
                    encode(values)
                assert caught.value.field in (many, few)
                assert caught.value.value in ((0.0,), (0.0, 0.0, 0.0))


@pytest.mark.parametrize("encode", [COMMAND.encode, COMMAND.encode_saturating])
@pytest.mark.parametrize("name", ["timeout_ms", "mode", "index"])
def test_fractions_of_integers_are_refused(encode: Any, name: str) -> None:
    with pytest.raises(FieldRangeError) as caught:
        encode(COMMAND.make(**{name: 10.5}))
    assert (caught.value.field, caught.value.value) == (name, 10.5)


def test_numpy_numbers_are_numbers() -> None:
    plain = COMMAND.make(timeout_ms=10, iq_ff_a=(1.5, -2.5), kp_a_per_rad=(0.25, 0.5))
    for kind in (np.float64, np.float32):
        values = COMMAND.make(
            timeout_ms=np.int64(10),
            iq_ff_a=np.array([1.5, -2.5], dtype=kind),
            kp_a_per_rad=(kind(0.25), kind(0.5)),
        )
        assert COMMAND.encode(values) == COMMAND.encode(plain)
        assert COMMAND.encode_saturating(values) == (COMMAND.encode(plain), 0)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(60))
def test_saturating_equals_encoding_the_clamped_values(
    codec: FrameCodec[Any], data: st.DataObject
) -> None:
    fine = data.draw(frame_values(codec))
    field = data.draw(st.sampled_from(codec.layout.fields))
    numbers = (
        st.integers(-(2**40), 2**40)
        if field.is_integer
        else st.floats(allow_nan=False, allow_infinity=False)
    )
    drawn = data.draw(st.tuples(numbers, numbers) if field.is_per_motor else st.tuples(numbers))
    low, high = limits(field)
    nearest = tuple(0.0 if is_code(field, value) else min(max(value, low), high) for value in drawn)
    wild, clamped = (
        fine._replace(**{field.name: values if field.is_per_motor else values[0]})
        for values in (drawn, nearest)
    )
    count = sum(is_clamped(field, value) for value in drawn)
    assert codec.encode_saturating(wild) == (codec.encode(clamped), count)


def is_clamped(field: Field, value: float) -> bool:
    """Whether the nearest step, in exact arithmetic, is not one of the wire's."""
    if is_code(field, value):
        return False
    nearest = round((Fraction(value) - Fraction(field.offset)) / Fraction(field.lsb))
    return not field.raw_minimum <= nearest <= field.raw_maximum


def is_code(field: Field, value: float) -> bool:
    return field.zero_means is not None and value == 0.0


# --- current limit: raw 0 means the board's maximum, or no limit ----------------------------------

SMALL_A = st.floats(-0.0625, 0.0625).filter(bool)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@given(small_a=SMALL_A, other_a=st.just(0.0) | SMALL_A | st.floats(0.125, 31.875))
@settings(max_examples=examples(60))
def test_a_small_current_limit_never_becomes_the_largest(
    profile: Profile, small_a: float, other_a: float
) -> None:
    codec = command_codec(profile)
    for pair in ((small_a, other_a), (other_a, small_a)):
        values = codec.make(isat_a=pair)
        with pytest.raises(FieldRangeError) as caught:
            codec.encode(values)
        assert caught.value.field == "isat_a"
        assert caught.value.value in pair
        frame, clamped = codec.encode_saturating(values)
        for given_a, sent_a in zip(pair, codec.decode(frame).isat_a, strict=True):
            assert sent_a == (given_a if given_a == 0.0 else max(0.125, round(given_a * 8) / 8))
        assert clamped == sum(0.0 < abs(given_a) <= 0.0625 for given_a in pair)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_negative_current_limit_is_not_taken_for_the_largest(profile: Profile) -> None:
    codec = command_codec(profile)
    frame, clamped = codec.encode_saturating(codec.make(isat_a=(-5.0, 1.0)))
    assert (codec.decode(frame).isat_a, clamped) == ((0.125, 1.0), 1)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_refusal_of_a_small_current_limit_says_what_zero_means(profile: Profile) -> None:
    largest_a = profile.behaviour.current_max_a
    zero = "no limit" if largest_a is None else f"{largest_a:g} A"
    codec = command_codec(profile)
    with pytest.raises(FieldRangeError) as caught:
        codec.encode(codec.make(isat_a=(5.0, 0.0624)))
    for part in ("isat_a", "0.0624", "0.125", zero):
        assert part in str(caught.value)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("zero", [0, 0.0, -0.0, np.float32(0.0)])
def test_a_current_limit_of_zero_is_sent_as_it_is(profile: Profile, zero: float) -> None:
    codec = command_codec(profile)
    for pair in ((zero, zero), (zero, 5.0), (5.0, zero)):
        values = codec.make(isat_a=pair)
        assert codec.decode(codec.encode(values)).isat_a == pair
        assert codec.encode_saturating(values) == (codec.encode(values), 0)


# --- temperature: raw 0 means that there is no sensor ---------------------------------------------


def temperature_bytes(frame: bytes) -> tuple[int, int]:
    return frame[30], frame[31]


def test_no_sensor_is_nan_both_ways() -> None:
    frame = REPLY.encode(REPLY.make(status=0x10, winding_temperature_degc=(math.nan, 25.0)))
    assert temperature_bytes(frame) == (0, 65)
    first, second = REPLY.decode(frame).winding_temperature_degc
    assert math.isnan(first)
    assert second == 25.0


@pytest.mark.parametrize(("degc", "raw"), [(-39.0, 1), (-38.6, 1), (0.0, 40), (215.0, 255)])
def test_temperatures_on_the_wire(degc: float, raw: int) -> None:
    frame = REPLY.encode(REPLY.make(status=0x10, winding_temperature_degc=(degc, degc)))
    assert temperature_bytes(frame) == (raw, raw)


@pytest.mark.parametrize("degc", [-40.0, -39.6, -41.0, 216.0])
def test_a_temperature_never_comes_out_as_no_sensor(degc: float) -> None:
    values = REPLY.make(status=0x10, winding_temperature_degc=(25.0, degc))
    with pytest.raises(FieldRangeError) as caught:
        REPLY.encode(values)
    assert (caught.value.field, caught.value.value) == (TEMPERATURE, degc)
    assert "-39 " in str(caught.value) and "215 °C" in str(caught.value)
    frame, count = REPLY.encode_saturating(values)
    assert temperature_bytes(frame) == (65, 1 if degc < 0.0 else 255)
    assert count == 1


def test_no_sensor_stays_so_when_another_field_is_clamped() -> None:
    values = REPLY.make(status=0x10, winding_temperature_degc=(math.nan, 25.0), iq_a=(100.0, 0.0))
    frame, count = REPLY.encode_saturating(values)
    assert (temperature_bytes(frame), count) == ((0, 65), 1)


def test_no_sensor_is_not_blamed_for_another_fields_value() -> None:
    values = REPLY.make(winding_temperature_degc=(math.nan, 25.0), index=70_000)
    with pytest.raises(FieldRangeError) as caught:
        REPLY.encode(values)
    assert caught.value.field == "index"


# --- integers as they are -------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [-1, 256, 1.0, "1", None])
def test_an_integer_that_does_not_fit_is_refused(raw: Any) -> None:
    raws = [0] * 17
    raws[1] = raw
    with pytest.raises(FieldRangeError) as caught:
        COMMAND.encode_raw(raws)
    assert (caught.value.field, caught.value.value) == ("timeout_ms", raw)


@pytest.mark.parametrize("count", [0, 16, 18])
def test_too_few_or_many_integers_are_refused(count: int) -> None:
    with pytest.raises(FieldRangeError):
        COMMAND.encode_raw([0] * count)


# --- udriver2 writes motor 2's current limit first ------------------------------------------------


def test_current_limits_are_motor_1_first_in_values_and_swapped_on_udriver2s_wire() -> None:
    values = {"isat_a": (1.0, 2.0)}
    for profile, expected in ((UOMODRI, "0810"), (UDRIVER2, "1008")):
        codec = command_codec(profile)
        frame = codec.encode(codec.make(**values))
        assert frame[26:28].hex() == expected
        assert codec.decode(frame).isat_a == (1.0, 2.0)
        assert codec.raw_by_key(codec.decode_raw(frame))["isat"] == [8, 16]
        clamped, count = codec.encode_saturating(codec.make(isat_a=(1.0, 99.0)))
        assert codec.decode(clamped).isat_a == (1.0, 31.875)
        assert count == 1
