"""Hypothesis strategies for frames, made from the tables alone: a new field needs none of them."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from firmware_protocol.codec import FrameCodec, codec_for
from firmware_protocol.fields import Direction, Field, FrameLayout, Framing
from firmware_protocol.profile import VERSION_MASK, VERSION_SHIFT
from firmware_protocol.profiles import PROFILES

CODECS: dict[str, FrameCodec[Any]] = {
    f"{profile.name}-{direction.value}-{framing.value}": codec_for(profile, direction, framing)
    for profile in PROFILES.values()
    for direction in Direction
    for framing in Framing
}
"""Every codec there is, by a name for test ids."""


def raws(field: Field) -> st.SearchStrategy[int]:
    """Any integer that fits the field."""
    return st.integers(field.wire.minimum, field.wire.maximum)


def limits(field: Field) -> tuple[float, float]:
    """The lowest and the highest value of a field; 0 is none where it means something else."""
    if field.is_integer:
        return field.raw_minimum, field.raw_maximum
    low = field.raw_minimum * field.lsb + field.offset
    high = field.raw_maximum * field.lsb + field.offset
    return low, high


def values(field: Field) -> st.SearchStrategy[float]:
    """Any value that the field carries: between two steps, or exactly on one."""
    if field.is_integer:
        return st.integers(field.raw_minimum, field.raw_maximum)
    on_a_step = st.integers(field.raw_minimum, field.raw_maximum).map(
        lambda raw: raw * field.lsb + field.offset
    )
    options = [st.floats(*limits(field)), on_a_step]
    if field.absent_raw is not None:
        options.append(st.just(math.nan))
    if field.zero_means is not None:
        options.append(st.just(0.0))
    return st.one_of(options)


def raw_frames(layout: FrameLayout) -> st.SearchStrategy[tuple[int, ...]]:
    """All integers of a frame in wire order; replies say the right protocol version."""
    flat = [raws(field) for field in layout.fields for _ in range(field.count)]
    return st.tuples(*flat).map(lambda drawn: (_versioned(layout, drawn[0]), *drawn[1:]))


def frame_values(codec: FrameCodec[Any]) -> st.SearchStrategy[Any]:
    """The values of a whole command or reply."""

    def of(field: Field) -> st.SearchStrategy[Any]:
        one = values(field)
        return st.tuples(one, one) if field.is_per_motor else one

    return st.tuples(*map(of, codec.layout.fields)).map(
        lambda drawn: codec.values_type(_versioned(codec.layout, drawn[0]), *drawn[1:])
    )


def _versioned(layout: FrameLayout, first: int) -> int:
    """The first field, with the version bits that a receiver will accept."""
    if layout.protocol_version is None:
        return first
    return first & ~(VERSION_MASK << VERSION_SHIFT) | layout.protocol_version << VERSION_SHIFT
