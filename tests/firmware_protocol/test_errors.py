"""Every error of the wire: what it carries, and that callers can catch it as they expect to."""

from __future__ import annotations

import inspect

import pytest

from firmware_protocol import errors
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import (
    CrcError,
    FieldRangeError,
    FrameHeaderError,
    FrameLengthError,
    ProtocolError,
    ProtocolVersionError,
    UnknownNameError,
    is_idle_line,
)
from firmware_protocol.fields import Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import ARM, PROFILES, UDRIVER2, UOMODRI, profile_named

ERRORS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, Exception) and kind is not ProtocolError
]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_a_protocol_error_and_a_value_error(kind: type[Exception]) -> None:
    assert issubclass(kind, ProtocolError)
    assert issubclass(kind, ValueError)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert len(ERRORS) >= 6
    for kind in ERRORS:
        assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("level", [0x00, 0xFF])
def test_an_idle_line_says_that_nobody_answers(profile: Profile, level: int) -> None:
    codec = reply_codec(profile)
    with pytest.raises(CrcError) as caught:
        codec.decode(bytes([level]) * codec.size)
    assert f"0x{level:02x}" in str(caught.value)


def test_a_damaged_frame_says_what_was_received_and_computed() -> None:
    frame = bytes.fromhex("00" * 30 + "dfff5284")
    with pytest.raises(CrcError) as caught:
        reply_codec(UOMODRI).decode(frame)
    assert "0x" not in str(caught.value)  # the line is not idle
    assert caught.value.received.hex() == "dfff5284"
    assert caught.value.computed.hex() == "dfff5283"


def test_idle_lines() -> None:
    assert is_idle_line(bytes(34))
    assert is_idle_line(b"\xff" * 38)
    assert not is_idle_line(b"")
    assert not is_idle_line(b"\x00" * 33 + b"\x01")
    assert not is_idle_line(b"\x55" * 34)


@pytest.mark.parametrize("version", range(8))
def test_other_protocol_versions_are_refused(version: int) -> None:
    codec = reply_codec(ARM)
    frame = codec.encode(codec.make(status=0xF800 | version << 4))
    if version == 1:
        assert codec.decode(frame).status == 0xF810
        return
    with pytest.raises(ProtocolVersionError) as caught:
        codec.decode(frame)
    assert (caught.value.version, caught.value.expected) == (version, 1)


def test_the_34_byte_profiles_are_version_0() -> None:
    for profile in (UOMODRI, UDRIVER2):
        codec = reply_codec(profile)
        assert codec.decode(codec.encode(codec.make(status=0x8000))).status == 0x8000
        with pytest.raises(ProtocolVersionError) as caught:
            codec.decode(codec.encode(codec.make(status=0x8010)))
        assert (caught.value.version, caught.value.expected) == (1, 0)


def test_wrong_length_and_header_say_both_sides() -> None:
    with pytest.raises(FrameLengthError) as caught:
        reply_codec(ARM).decode(bytes(34))
    assert (caught.value.length, caught.value.expected) == (34, 38)
    frame = command_codec(ARM, Framing.RS485).encode(command_codec(ARM).make())
    with pytest.raises(FrameHeaderError) as other:
        reply_codec(ARM, Framing.RS485).decode(frame)
    assert (other.value.header, other.value.expected) == (b"\x42\x28", b"\xff\x28")


def test_unknown_profile() -> None:
    with pytest.raises(UnknownNameError) as caught:
        profile_named("arm2")
    assert all(name in str(caught.value) for name in ("'arm2'", *PROFILES))
    assert profile_named("arm") is ARM


def test_unknown_field() -> None:
    with pytest.raises(UnknownNameError) as caught:
        command_codec(UOMODRI).make(ki_a_per_rad_s=(0.0, 0.0))
    known = [field.name for field in UOMODRI.command.fields]
    assert all(name in str(caught.value) for name in ("ki_a_per_rad_s", *known))


def test_out_of_range_message() -> None:
    codec = command_codec(ARM)
    with pytest.raises(FieldRangeError) as caught:
        codec.encode(codec.make(iq_ff_a=(0.0, 40.0)))
    assert (caught.value.field, caught.value.value) == ("iq_ff_a", 40.0)
    assert all(part in str(caught.value) for part in ("-32", "31.9990234 A"))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_error_code_has_a_fault_with_a_remedy(profile: Profile) -> None:
    for code in range(1, 16):
        fault = profile.fault_of(0xF800 | code)
        assert fault.code == code
        assert fault.meaning
        assert fault.remedy.endswith(".")
        assert (fault.meaning == "unknown") is (code not in profile.faults)
    assert profile.fault_of(0xFFF0) is None


def test_defined_error_codes() -> None:
    assert {name: sorted(profile.faults) for name, profile in PROFILES.items()} == {
        "arm": [1, 2, 3, 5, 6, 7],
        "uomodri": [1, 2, 5, 6, 7],
        "udriver2": [1, 2, 4, 5, 6, 7],
    }
    assert UDRIVER2.faults[1].meaning == "encoder 1: index mismatch"
    assert UDRIVER2.faults[4].meaning == "position converter"
    assert UDRIVER2.faults[7].meaning == "other"
    assert ARM.faults[3].meaning == "critical temperature"
