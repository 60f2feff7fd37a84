"""Values go to the nearest step, and to the even one from the middle between two."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CODECS, values

from firmware_protocol.codec import FrameCodec, command_codec
from firmware_protocol.fields import Field
from firmware_protocol.profiles import ARM, PROFILES

SPI_CODECS = {name: codec for name, codec in CODECS.items() if name.endswith("spi")}
CURRENT_STEP_A = 2.0**-10
# A step of these is a power of two in SI, so exact arithmetic says where a value belongs.
DYADIC_UNITS = {"A", "V", "N·m", "W", "Ω", "°C", "of full scale"}
DYADIC = [
    pytest.param(codec, field, id=f"{name}-{field.name}")
    for name, codec in SPI_CODECS.items()
    for field in codec.layout.fields
    if field.unit.symbol in DYADIC_UNITS
]
SCALED = [
    pytest.param(codec, field, id=f"{name}-{field.name}")
    for name, codec in SPI_CODECS.items()
    for field in codec.layout.fields
    if not field.is_integer
]


def numbers(field: Field) -> st.SearchStrategy[float]:
    return values(field).filter(lambda drawn: not math.isnan(drawn))


def raw_sent(codec: FrameCodec[Any], field: Field, value: float) -> int:
    """The integer on the wire for motor 1, after every motor was given the value."""
    given = (value, value) if field.is_per_motor else value
    raws = codec.raw_by_key(
        codec.decode_raw(codec.encode(blank(codec)._replace(**{field.name: given})))
    )
    found = raws[field.raw_key]
    if isinstance(found, int):
        return found
    sharing = [other for other in codec.layout.fields if other.raw_key == field.raw_key]
    first = 2 * sharing.index(field)
    assert found[first] == found[first + 1]
    return found[first]


def blank(codec: FrameCodec[Any]) -> Any:
    version = codec.layout.protocol_version
    return codec.make(**({} if version is None else {"status": version << 4}))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    ("steps", "raw"),
    [
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (3.5, 4),
        (-0.5, 0),
        (-1.5, -2),
        (-2.5, -2),
        (-3.5, -4),
        (0.49, 0),
        (0.51, 1),
        (-0.51, -1),
        (1.99, 2),
        (32766.5, 32766),
        (-32767.5, -32768),
        (-32768.5, -32768),  # to even, and so still on the wire
    ],
)
def test_current_steps(profile: Any, steps: float, raw: int) -> None:
    codec = command_codec(profile)
    (field,) = [field for field in codec.layout.fields if field.name == "iq_ff_a"]
    assert raw_sent(codec, field, steps * CURRENT_STEP_A) == raw


@pytest.mark.parametrize(("codec", "field"), DYADIC)
@given(data=st.data())
@settings(max_examples=examples(30))
def test_agrees_with_exact_arithmetic(
    codec: FrameCodec[Any], field: Field, data: st.DataObject
) -> None:
    # Quarters of a step: on a step, in the middle between two, and neither.
    quarters = st.integers(4 * field.raw_minimum, 4 * field.raw_maximum)
    value = data.draw(
        st.one_of(
            quarters.map(lambda count: count * field.lsb / 4.0 + field.offset), numbers(field)
        )
    )
    step = Fraction(2) ** field.lsb_exponent
    # Fraction's round is exact and goes to even from the middle.
    exact = round((Fraction(value) - Fraction(field.offset)) / step)
    assert raw_sent(codec, field, value) == exact


@pytest.mark.parametrize(("codec", "field"), SCALED)
@given(data=st.data())
@settings(max_examples=examples(20))
def test_no_other_step_is_nearer(codec: FrameCodec[Any], field: Field, data: st.DataObject) -> None:
    value = data.draw(numbers(field))
    raw = raw_sent(codec, field, value)
    distance = abs(Fraction(value) - Fraction(field.offset) - raw * Fraction(field.lsb))
    # Non-dyadic steps: the quotient is rounded to a float, at most one part in 2**52 off.
    tolerance = Fraction(abs(raw) + 1, 2**52) * Fraction(field.lsb)
    assert distance <= Fraction(field.lsb) / 2 + tolerance


@pytest.mark.parametrize(
    ("name", "unit_si"),
    [
        ("motor_position_rad", "2*pi"),
        ("motor_velocity_rad_s", "2000*pi/60"),
        ("kp_a_per_rad", "1/(2*pi)"),
        ("kd_a_s_per_rad", "60/(2000*pi)"),
        ("ki_a_per_rad_s", "1/(2*pi)"),
    ],
)
def test_irrational_steps_are_exact_to_the_last_places(name: str, unit_si: str) -> None:
    pi = Fraction("3.14159265358979323846264338327950288419716939937510")
    units = {
        "2*pi": 2 * pi,
        "2000*pi/60": 2000 * pi / 60,
        "1/(2*pi)": 1 / (2 * pi),
        "60/(2000*pi)": 60 / (2000 * pi),
    }
    (field,) = [field for field in ARM.command.fields if field.name == name]
    exact = units[unit_si] * Fraction(2) ** field.lsb_exponent
    assert abs(Fraction(field.lsb) / exact - 1) < Fraction(1, 2**51)
