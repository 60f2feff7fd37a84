"""Whatever is sent is received: within half a step as values, exactly as integers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CODECS, frame_values, raw_frames

from firmware_protocol.codec import FrameCodec

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_values_come_back_within_half_a_step(codec: FrameCodec[Any], data: st.DataObject) -> None:
    sent = data.draw(frame_values(codec))
    received = codec.decode(codec.encode(sent))
    for field in codec.layout.fields:
        before, after = getattr(sent, field.name), getattr(received, field.name)
        if not field.is_per_motor:
            before, after = (before,), (after,)
        for value, back in zip(before, after, strict=True):
            if math.isnan(value):
                assert math.isnan(back), field.name
                continue
            # Both conversions round once more, in the last place of a float.
            slack = 4.0 * math.ulp(value)
            assert abs(back - value) <= 0.5 * field.lsb + slack, field.name


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_integers_come_back_exactly(codec: FrameCodec[Any], data: st.DataObject) -> None:
    raws = data.draw(raw_frames(codec.layout))
    frame = codec.encode_raw(raws)
    assert codec.is_sound(frame)
    assert codec.decode_raw(frame) == raws
    assert codec.raws_from_keys(codec.raw_by_key(raws)) == list(raws)


@every_codec
@given(data=st.data())
@settings(max_examples=examples(40))
def test_decoded_values_encode_to_the_same_bytes(
    codec: FrameCodec[Any], data: st.DataObject
) -> None:
    frame = codec.encode_raw(data.draw(raw_frames(codec.layout)))
    values = codec.decode(frame)
    assert codec.encode(values) == frame
    assert codec.encode_saturating(values) == (frame, 0)


@every_codec
def test_decoded_frames_are_named_tuples_with_pairs(codec: FrameCodec[Any]) -> None:
    values = codec.decode(codec.encode_raw(zero_raws(codec)))
    assert type(values) is codec.values_type
    for field in codec.layout.fields:
        value = getattr(values, field.name)
        kinds = (int,) if field.is_integer else (float,)
        if field.is_per_motor:
            assert type(value) is tuple, field.name
            assert tuple(map(type, value)) == kinds * 2, field.name
        else:
            assert (type(value),) == kinds, field.name


@every_codec
def test_extremes_of_every_field_come_back(codec: FrameCodec[Any]) -> None:
    fields = [field for field in codec.layout.fields for _ in range(field.count)]
    blank = zero_raws(codec)
    for position, field in enumerate(fields[1:], start=1):
        for raw in (field.wire.minimum, field.wire.maximum):
            raws = [*blank[:position], raw, *blank[position + 1 :]]
            frame = codec.encode_raw(raws)
            assert codec.encode(codec.decode(frame)) == frame, field.name


def zero_raws(codec: FrameCodec[Any]) -> list[int]:
    """All zero but the version."""
    count = sum(field.count for field in codec.layout.fields)
    return [(codec.layout.protocol_version or 0) << 4, *[0] * (count - 1)]
