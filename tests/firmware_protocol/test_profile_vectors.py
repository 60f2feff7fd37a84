"""The independent vectors of all profiles, both ways, as integers and as SI values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.codec import FrameCodec, codec_for
from firmware_protocol.errors import CrcError
from firmware_protocol.fields import Direction
from firmware_protocol.profiles import PROFILES

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "profiles.json").read_text())
# What the vectors give as integers only: how the protocol's text converts them.
CONVERSIONS = {
    "winding_temperature_degc": lambda raw: [r - 40.0 if r else math.nan for r in raw["temp"]],
    "coil_resistance_ohm": lambda raw: [r / 2**15 for r in raw["tail_words"][:2]],
    "external_adc_v": lambda raw: [r / 2**14 for r in raw["tail_words"][2:]],
    "external_adc_fraction": lambda raw: [r / 2**16 for r in raw["tail_words"][2:]],
    "timestamp_ms": lambda raw: raw["timestamp"],
}


def numbered(is_valid: bool) -> list[Any]:
    return [
        pytest.param(vector, id=f"{number}-{vector['profile']}-{vector['direction']}")
        for number, vector in enumerate(VECTORS)
        if vector.get("valid", True) is is_valid
    ]


def codec_of(vector: dict[str, Any]) -> FrameCodec[Any]:
    return codec_for(PROFILES[vector["profile"]], Direction(vector["direction"]))


def si_values(codec: FrameCodec[Any], vector: dict[str, Any]) -> dict[str, Any]:
    """Every value of a vector by its SI name, without help from the codec's scales."""
    values: dict[str, Any] = {}
    for name in codec.values_type._fields:
        if name in vector["si"]:
            value = vector["si"][name]
        elif name in CONVERSIONS:
            value = CONVERSIONS[name](vector["raw"])
        else:
            value = vector["raw"][name]
        values[name] = tuple(value) if isinstance(value, list) else value
    return values


def test_there_are_vectors_of_every_profile_and_direction() -> None:
    seen = {(vector["profile"], vector["direction"]) for vector in VECTORS}
    assert seen == {(name, way.value) for name in PROFILES for way in Direction}


@pytest.mark.parametrize("vector", numbered(is_valid=True))
def test_bytes_give_the_vectors_integers(vector: dict[str, Any]) -> None:
    codec = codec_of(vector)
    raws = codec.decode_raw(bytes.fromhex(vector["hex"]))
    assert codec.raw_by_key(raws) == vector["raw"]


@pytest.mark.parametrize("vector", numbered(is_valid=True))
def test_the_vectors_integers_give_its_bytes(vector: dict[str, Any]) -> None:
    codec = codec_of(vector)
    assert codec.encode_raw(codec.raws_from_keys(vector["raw"])).hex() == vector["hex"]


@pytest.mark.parametrize("vector", numbered(is_valid=True))
def test_bytes_give_the_vectors_si_values(vector: dict[str, Any]) -> None:
    codec = codec_of(vector)
    decoded = codec.decode(bytes.fromhex(vector["hex"]))._asdict()
    for name, expected in si_values(codec, vector).items():
        assert decoded[name] == pytest.approx(expected, rel=1e-12, abs=0.0, nan_ok=True), name


@pytest.mark.parametrize("vector", numbered(is_valid=True))
def test_the_vectors_si_values_give_its_bytes(vector: dict[str, Any]) -> None:
    codec = codec_of(vector)
    values = codec.make(**si_values(codec, vector))
    assert codec.encode(values).hex() == vector["hex"]
    assert codec.encode_saturating(values) == (bytes.fromhex(vector["hex"]), 0)


@pytest.mark.parametrize("vector", numbered(is_valid=False))
def test_damaged_frames_are_refused(vector: dict[str, Any]) -> None:
    codec = codec_of(vector)
    frame = bytes.fromhex(vector["hex"])
    with pytest.raises(CrcError):
        codec.decode(frame)
    with pytest.raises(CrcError):
        codec.decode_raw(frame)
    assert not codec.is_sound(frame)
