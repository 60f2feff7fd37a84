"""The checksum against a bitwise one, written from the definition."""

from __future__ import annotations

from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_protocol.crc import (
    crc32_mpeg2,
    crc32_mpeg2_halves_swapped,
    ends_with_crc,
    ends_with_crc_halves_swapped,
)


def bitwise(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte << 24
        for _ in range(8):
            is_set = register & 0x80000000
            register = register << 1 & 0xFFFFFFFF
            if is_set:
                register ^= 0x04C11DB7
    return register


def test_published_check_value() -> None:
    assert crc32_mpeg2(b"123456789").hex() == "0376e6e7"
    assert bitwise(b"123456789") == 0x0376E6E7


def test_of_nothing_is_the_initial_value() -> None:
    assert crc32_mpeg2(b"") == b"\xff\xff\xff\xff"


@given(st.binary(max_size=100))
@settings(max_examples=examples(500))
def test_equals_the_bitwise_definition(data: bytes) -> None:
    expected = bitwise(data)
    assert int.from_bytes(crc32_mpeg2(data), "big") == expected
    halves = (expected & 0xFFFF) << 16 | expected >> 16
    assert int.from_bytes(crc32_mpeg2_halves_swapped(data), "big") == halves


@given(st.binary(max_size=60))
def test_a_message_with_its_own_checksum_leaves_nothing(data: bytes) -> None:
    assert bitwise(data + crc32_mpeg2(data)) == 0


@given(st.binary(max_size=60), st.binary(min_size=4, max_size=4))
def test_the_check_accepts_its_own_checksum_and_no_other(data: bytes, other: bytes) -> None:
    crc = crc32_mpeg2(data)
    swapped = crc32_mpeg2_halves_swapped(data)
    assert ends_with_crc(data + crc)
    assert ends_with_crc_halves_swapped(data + swapped)
    assert ends_with_crc(data + other) == (other == crc)
    assert ends_with_crc_halves_swapped(data + other) == (other == swapped)
    assert ends_with_crc(data + swapped) == (swapped == crc)
