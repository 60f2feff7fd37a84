"""Whatever arrives on the wire: it decodes, or it is refused with an error of the wire."""

from __future__ import annotations

from typing import Any

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CODECS, raw_frames

from firmware_protocol.codec import FrameCodec
from firmware_protocol.crc import crc32_mpeg2
from firmware_protocol.errors import (
    CrcError,
    FrameHeaderError,
    FrameLengthError,
    ProtocolError,
    ProtocolVersionError,
)
from firmware_protocol.fields import Framing

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
every_rs485_codec = pytest.mark.parametrize(
    "codec", [codec for name, codec in CODECS.items() if name.endswith(Framing.RS485.value)]
)


def sealed(codec: FrameCodec[Any], body: bytes) -> bytes:
    crc = crc32_mpeg2(body)
    return body + (crc[2:] + crc[:2] if codec.layout.are_crc_halves_swapped else crc)


def flipped(frame: bytes, bit: int) -> bytes:
    damaged = bytearray(frame)
    damaged[bit // 8] ^= 0x80 >> bit % 8
    return bytes(damaged)


def decodes(codec: FrameCodec[Any], frame: bytes) -> bool:
    try:
        values = codec.decode(frame)
    except ProtocolError:
        return False
    # Bytes that are taken for a frame say exactly what a sender of those values would have sent.
    assert codec.encode(values) == frame
    return True


@every_codec
@given(frame=st.binary(max_size=80))
@settings(max_examples=examples(100))
def test_any_bytes(codec: FrameCodec[Any], frame: bytes) -> None:
    is_decoded = decodes(codec, frame)
    assert is_decoded <= codec.is_sound(frame)


@every_codec
def test_every_other_length_is_refused(codec: FrameCodec[Any]) -> None:
    for length in set(range(81)) - {codec.size}:
        for filler in (b"\x00", b"\xff", codec.header[:1] or b"\xa5"):
            with pytest.raises(FrameLengthError) as caught:
                codec.decode(filler * length)
            assert (caught.value.length, caught.value.expected) == (length, codec.size)
            assert not codec.is_sound(filler * length)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_any_bytes_of_the_right_length(codec: FrameCodec[Any], data: st.DataObject) -> None:
    decodes(codec, data.draw(st.binary(min_size=codec.size, max_size=codec.size)))


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_any_content_with_a_right_checksum(codec: FrameCodec[Any], data: st.DataObject) -> None:
    """Only the version can still be wrong then; unknown error codes and reserved bits are fine."""
    size = codec.size - len(codec.header) - 4
    frame = sealed(codec, codec.header + data.draw(st.binary(min_size=size, max_size=size)))
    assert codec.is_sound(frame)
    if codec.layout.protocol_version is not None:
        status = int.from_bytes(frame[len(codec.header) :][:2], "big")
        if status >> 4 & 7 != codec.layout.protocol_version:
            with pytest.raises(ProtocolVersionError):
                codec.decode(frame)
            return
    assert decodes(codec, frame)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(8), deadline=None)
def test_every_single_flipped_bit_is_caught(codec: FrameCodec[Any], data: st.DataObject) -> None:
    frame = codec.encode_raw(data.draw(raw_frames(codec.layout)))
    for bit in range(8 * len(frame)):
        damaged = flipped(frame, bit)
        expected = FrameHeaderError if bit < 8 * len(codec.header) else CrcError
        with pytest.raises(expected):
            codec.decode(damaged)
        assert not codec.is_sound(damaged)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_every_burst_of_up_to_32_bits_is_caught(
    codec: FrameCodec[Any], data: st.DataObject
) -> None:
    """What a CRC-32 promises, as long as the burst does not straddle the swapped halves."""
    frame = codec.encode_raw(data.draw(raw_frames(codec.layout)))
    body_bits = 8 * (len(frame) - 4)
    start = data.draw(st.integers(0, body_bits - 32))
    burst = data.draw(st.integers(1, 2**32 - 1)) << (8 * len(frame) - 32 - start)
    damaged = (int.from_bytes(frame, "big") ^ burst).to_bytes(len(frame), "big")
    with pytest.raises(ProtocolError):
        codec.decode(damaged)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(30))
def test_a_checksum_in_the_other_byte_order_is_refused(
    codec: FrameCodec[Any], data: st.DataObject
) -> None:
    frame = codec.encode_raw(data.draw(raw_frames(codec.layout)))
    swapped = frame[:-4] + frame[-2:] + frame[-4:-2]
    if swapped != frame:
        with pytest.raises(CrcError):
            codec.decode(swapped)


@every_rs485_codec
@given(data=st.data())
@settings(max_examples=examples(30))
def test_the_checksum_covers_the_rs485_header(codec: FrameCodec[Any], data: st.DataObject) -> None:
    frame = codec.encode_raw(data.draw(raw_frames(codec.layout)))
    with_header, without_header = sealed(codec, frame[:-4]), sealed(codec, frame[2:-4])
    assert frame == with_header
    assert frame[-4:] != without_header[-4:]
    # Right header, right content, but a checksum over the content alone, as on SPI.
    with pytest.raises(CrcError):
        codec.decode(frame[:-4] + without_header[-4:])


@every_rs485_codec
def test_a_sound_frame_with_another_header_is_refused(codec: FrameCodec[Any]) -> None:
    frame = codec.encode(codec.make(**blank(codec)))
    address, size = frame[:2]
    for header in (
        bytes([address ^ 1, size]),
        bytes([address, size | 0x40]),  # another type
        bytes([address, size - 1]),
    ):
        with pytest.raises(FrameHeaderError) as caught:
            codec.decode(sealed(codec, header + frame[2:-4]))
        assert (caught.value.header, caught.value.expected) == (header, frame[:2])


def test_rs485_headers_are_those_of_the_protocol() -> None:
    headers = {name: codec.header.hex() for name, codec in CODECS.items() if codec.header}
    assert headers == {
        "arm-command-rs485": "4228",
        "arm-reply-rs485": "ff28",
        "uomodri-command-rs485": "4224",
        "uomodri-reply-rs485": "ff24",
        "udriver2-command-rs485": "4224",
        "udriver2-reply-rs485": "ff24",
    }


def blank(codec: FrameCodec[Any]) -> dict[str, int]:
    version = codec.layout.protocol_version
    return {} if version is None else {"status": version << 4}
