"""A new field is one line of a table, a new profile one value: everything else follows."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import frame_values, raw_frames

from firmware_protocol.c_header import c_header
from firmware_protocol.codec import FrameCodec, command_codec, reply_codec
from firmware_protocol.document import markdown_section, text_table
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.fields import (
    I16,
    NEWTON_METRE,
    U8,
    U16,
    WATT,
    Fault,
    FaultCause,
    Field,
    Framing,
)
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import ARM
from hw_mocks.boards.board import MockBoard
from hw_mocks.boards.motor_output import MotorOutput
from hw_mocks.plants.effects import PRESETS

TORQUE_LIMIT = Field(
    name="torque_limit_nm",
    raw_key="tlim",
    wire=I16,
    unit=NEWTON_METRE,
    lsb_exponent=-6,
    is_per_motor=True,
    is_motor_2_first=True,
    summary="Torque limit.",
)
HUMIDITY = Field(
    name="humidity_percent",
    raw_key="humidity",
    wire=U8,
    unit=NEWTON_METRE,
    lsb_exponent=-1,
    offset=-10.0,
    absent_raw=0xFF,
    is_per_motor=True,
    summary="A sensor whose highest code means that it is absent.",
)
MARKER = Field(name="marker", raw_key="marker", wire=U16, summary="A count.")
FAN = Field(
    name="fan_w",
    raw_key="fan",
    wire=U8,
    unit=WATT,
    lsb_exponent=-2,
    zero_means="as hot as it likes",
    summary="A value for both motors whose 0 says something else.",
)
COUNTS = Field(name="counts", raw_key="counts", wire=U8, is_per_motor=True, summary="Two counts.")


def variant() -> Profile:
    """The arm's profile with one more field in its command, two in its reply."""
    return replace(
        ARM,
        name="arm_next",
        command=replace(ARM.command, fields=(*ARM.command.fields, TORQUE_LIMIT)),
        reply=replace(ARM.reply, fields=(*ARM.reply.fields, HUMIDITY, MARKER)),
    )


VARIANT = variant()
COMMAND, REPLY = command_codec(VARIANT), reply_codec(VARIANT)


def test_a_zero_with_a_meaning_is_sent_only_for_zero() -> None:
    command = replace(ARM.command, fields=(*ARM.command.fields, FAN))
    codec = FrameCodec[Any](command, Framing.SPI)
    for power_w, raw in ((0.0, 0), (0.13, 1), (0.5, 2)):
        assert codec.encode(codec.make(fan_w=power_w))[34] == raw
    with pytest.raises(FieldRangeError) as caught:
        codec.encode(codec.make(fan_w=0.12))
    assert FAN.zero_means is not None and FAN.zero_means in str(caught.value)
    assert codec.encode_saturating(codec.make(fan_w=0.12)) == (
        codec.encode(codec.make(fan_w=0.25)),
        1,
    )


def test_the_codec_follows() -> None:
    assert VARIANT.frame_size == ARM.frame_size + 4
    frame = COMMAND.encode(COMMAND.make(index=3, torque_limit_nm=(1.0, -2.0)))
    assert frame[34:38].hex() == "ff800040"
    assert COMMAND.decode(frame).torque_limit_nm == (1.0, -2.0)
    assert COMMAND.raw_by_key(COMMAND.decode_raw(frame))["tlim"] == [64, -128]
    reply = REPLY.encode(REPLY.make(status=0x10, humidity_percent=(math.nan, 40.0), marker=0x0708))
    assert reply[34:38].hex() == "ff640708"
    back = REPLY.decode(reply)
    assert math.isnan(back.humidity_percent[0])
    assert (back.humidity_percent[1], back.marker) == (40.0, 0x0708)
    assert command_codec(VARIANT, Framing.RS485).header.hex() == "422c"


def test_the_highest_code_is_never_a_value() -> None:
    frame, count = REPLY.encode_saturating(
        REPLY.make(status=0x10, humidity_percent=(117.5, 1e6))  # 117.5 would be 0xFF
    )
    assert (frame[34:36].hex(), count) == ("fefe", 2)


def test_the_documents_follow() -> None:
    text, page, header = text_table(VARIANT), markdown_section(VARIANT), c_header(VARIANT)
    assert "34    torque_limit_nm [2 1]" in text
    assert "| 34 | torque_limit_nm [2 1] | i16 | 2⁻⁶ N·m | tlim | Torque limit. |" in page
    assert "| 34 | humidity_percent [1 2] | u8 | 2⁻¹ N·m, raw 0 = -10 N·m |" in page
    assert "int16_t torque_limit_nm_raw[2]; /* byte 34, motor 2 first: Torque limit. */" in header
    assert "#define ARM_NEXT_COMMAND_TORQUE_LIMIT_NM_LSB 0.015625 /* N·m */" in header
    assert "#define ARM_NEXT_REPLY_HUMIDITY_PERCENT_NO_SENSOR 255" in header
    assert "#define ARM_NEXT_FRAME_SIZE 42" in header


@pytest.mark.system
@pytest.mark.compiler
def test_the_c_header_still_compiles(tmp_path: Path) -> None:
    compiler = next(path for name in ("cc", "gcc", "clang") if (path := shutil.which(name)))
    source = tmp_path / "program.c"
    source.write_text(c_header(VARIANT) + "int main(void) { return 0; }\n", encoding="utf-8")
    options = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    subprocess.run([compiler, *options, source], check=True)


def test_the_fingerprint_follows() -> None:
    assert fingerprint(VARIANT) != fingerprint(ARM)
    assert fingerprint(VARIANT) == fingerprint(variant())


@pytest.mark.parametrize("codec", [COMMAND, REPLY], ids=["command", "reply"])
@given(data=st.data())
@settings(max_examples=examples(40))
def test_the_strategies_follow(codec: Any, data: st.DataObject) -> None:
    values = data.draw(frame_values(codec))
    assert set(values._fields) == {field.name for field in codec.layout.fields}
    frame = codec.encode(values)
    assert codec.encode(codec.decode(frame)) == frame
    raws = data.draw(raw_frames(codec.layout))
    assert codec.decode_raw(codec.encode_raw(raws)) == raws


def board_of(profile: Profile) -> MockBoard:
    generator = np.random.default_rng(0)
    first, second = (
        MotorOutput(
            None,
            profile.behaviour,
            PRESETS["default"],
            generator,
            step_s=250e-6,
            calibration_s=3.0,
            bus_nominal_v=24.0,
        )
        for _ in range(2)
    )
    return MockBoard(
        profile.name,
        profile,
        (first, second),
        bus_nominal_v=24.0,
        step_ns=250_000,
        generator=generator,
    )


def test_a_mock_board_follows() -> None:
    board = board_of(VARIANT)
    for index in (41, 42):
        command = COMMAND.make(mode=0x80, timeout_ms=20, index=index, torque_limit_nm=(1.0, 2.0))
        received = board.transfer(COMMAND.encode(command))
        assert len(received) == 42
    reply = REPLY.decode(received)
    assert reply.index == 41
    assert reply.bus_voltage_v == 24.0
    assert reply.marker == 0  # the mock knows no source for it


def test_a_mock_board_echoes_the_index_wherever_it_stands() -> None:
    board = board_of(VARIANT)
    for index in range(1, 6):  # faster than it measures
        board.transfer(COMMAND.encode(COMMAND.make(index=index)))
        prepared = board.prepared_reply()
        assert prepared is not None
        reply = REPLY.decode(prepared)
        assert (reply.index, reply.marker) == (index, 0)


def test_a_mock_board_reports_events_under_the_tables_codes() -> None:
    others = [fault for fault in ARM.faults.values() if fault.cause is not FaultCause.TIMEOUT]
    faults = [*others, Fault(9, "no command", "send one", FaultCause.TIMEOUT)]
    board = board_of(replace(ARM, faults={fault.code: fault for fault in faults}))
    codec = command_codec(ARM)
    board.transfer(codec.encode(codec.make(mode=0x80, timeout_ms=1)))
    board.tick(2_000_000)
    assert board.error == 9


def test_a_mock_board_follows_on_rs485() -> None:
    codec = command_codec(VARIANT, Framing.RS485)
    board = board_of(VARIANT)
    frames = b"".join(codec.encode(codec.make(index=index)) for index in (7, 8))
    blank, reply = board.receive(b"noise" + frames)
    assert blank[:2] == b"\0\0"
    assert reply_codec(VARIANT, Framing.RS485).decode(reply).index == 7


def with_counts() -> Profile:
    """The arm's profile with a pair of plain integers more, each way."""
    return replace(
        ARM,
        name="arm_counts",
        command=replace(ARM.command, fields=(*ARM.command.fields, COUNTS)),
        reply=replace(ARM.reply, fields=(*ARM.reply.fields, COUNTS)),
    )


def test_a_pair_of_integers_follows() -> None:
    codec = command_codec(with_counts())
    assert codec.make().counts == (0, 0)
    assert codec.encode(codec.make())[34:36].hex() == "0000"
    assert codec.decode(codec.encode(codec.make(counts=(1, 2)))).counts == (1, 2)


def test_a_mock_board_follows_with_a_pair_of_integers() -> None:
    profile = with_counts()
    codec = command_codec(profile)
    assert len(board_of(profile).transfer(codec.encode(codec.make()))) == 40


def test_command_and_reply_of_unequal_length_are_refused() -> None:
    command = replace(ARM.command, fields=(*ARM.command.fields, COUNTS))
    with pytest.raises(ValueError, match=r"\b40\b.*\b38\b"):
        replace(ARM, command=command)
