"""Where everything is on the wire: typed by hand from the protocol's text, not from the table."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.document import layout_rows
from firmware_protocol.fields import FrameLayout
from firmware_protocol.profiles import ARM, MODE_FLAGS, PROFILES, STATUS_FLAGS, UDRIVER2, UOMODRI

ARM_COMMAND = {
    "mode": (0, "u8"),
    "timeout_ms": (1, "u8"),
    "motor_position_rad": (2, "i32"),
    "motor_velocity_rad_s": (10, "i16"),
    "iq_ff_a": (14, "i16"),
    "kp_a_per_rad": (18, "u16"),
    "kd_a_s_per_rad": (22, "u16"),
    "ki_a_per_rad_s": (26, "u16"),
    "isat_a": (30, "u8"),
    "index": (32, "u16"),
}
ARM_REPLY = {
    "status": (0, "u16"),
    "timestamp_ms": (2, "u16"),
    "motor_position_rad": (4, "i32"),
    "motor_velocity_rad_s": (12, "i16"),
    "iq_a": (16, "i16"),
    "motor_torque_nm": (20, "i16"),
    "bus_voltage_v": (24, "u16"),
    "input_power_w": (26, "i16"),
    "winding_temperature_degc": (30, "u8"),
    "index": (32, "u16"),
}
OLD_COMMAND = {
    "mode": (0, "u8"),
    "timeout_ms": (1, "u8"),
    "motor_position_rad": (2, "i32"),
    "motor_velocity_rad_s": (10, "i16"),
    "iq_ff_a": (14, "i16"),
    "kp_a_per_rad": (18, "u16"),
    "kd_a_s_per_rad": (22, "u16"),
    "isat_a": (26, "u8"),
    "index": (28, "u16"),
}
OLD_REPLY = {
    "status": (0, "u16"),
    "timestamp_ms": (2, "u16"),
    "motor_position_rad": (4, "i32"),
    "motor_velocity_rad_s": (12, "i16"),
    "iq_a": (16, "i16"),
    "coil_resistance_ohm": (20, "u16"),
    "external_adc_v": (24, "u16"),
    "index": (28, "u16"),
}
UDRIVER2_REPLY = {
    "external_adc_fraction" if name == "external_adc_v" else name: place
    for name, place in OLD_REPLY.items()
}
LAYOUTS = [
    pytest.param(ARM.command, ARM_COMMAND, 34, id="arm-command"),
    pytest.param(ARM.reply, ARM_REPLY, 34, id="arm-reply"),
    pytest.param(UOMODRI.command, OLD_COMMAND, 30, id="uomodri-command"),
    pytest.param(UOMODRI.reply, OLD_REPLY, 30, id="uomodri-reply"),
    pytest.param(UDRIVER2.command, OLD_COMMAND, 30, id="udriver2-command"),
    pytest.param(UDRIVER2.reply, UDRIVER2_REPLY, 30, id="udriver2-reply"),
]


@pytest.mark.parametrize(("layout", "places", "crc_byte"), LAYOUTS)
def test_bytes_and_types(
    layout: FrameLayout, places: dict[str, tuple[int, str]], crc_byte: int
) -> None:
    assert {field.name: (at, field.wire.name) for field, at in layout.offsets()} == places
    assert layout.size == crc_byte + 4
    assert layout_rows(layout)[-1][:2] == (str(crc_byte), "crc")


def test_frame_sizes() -> None:
    assert {name: profile.frame_size for name, profile in PROFILES.items()} == {
        "arm": 38,
        "uomodri": 34,
        "udriver2": 34,
    }


def test_bits_of_mode_and_status() -> None:
    assert {flag.name: flag.bit for flag in MODE_FLAGS} == {
        "ES": 7,
        "EM1": 6,
        "EM2": 5,
        "EPRE": 4,
        "EI1OC": 3,
        "EI2OC": 2,
        "reserved1": 1,
        "reserved0": 0,
    }
    assert {flag.name: flag.bit for flag in STATUS_FLAGS} == {
        "SE": 15,
        "M1E": 14,
        "M1R": 13,
        "M2E": 12,
        "M2R": 11,
        "IDX1D": 10,
        "IDX2D": 9,
        "IDX1T": 8,
        "IDX2T": 7,
    }


# --- whole frames, packed by hand -----------------------------------------------------------------

TURN_RAD = 6.283185307179586
KRPM_RAD_S = 104.71975511965977
COMMAND_VALUES = {
    "mode": 0b1110_0011,
    "timeout_ms": 20,
    "motor_position_rad": (1.5 * TURN_RAD, -2.25 * TURN_RAD),
    "motor_velocity_rad_s": (0.5 * KRPM_RAD_S, -1.0 * KRPM_RAD_S),
    "iq_ff_a": (1.25, -3.5),
    "kp_a_per_rad": (3.0 / TURN_RAD, 7.5 / TURN_RAD),
    "kd_a_s_per_rad": (2.0 / KRPM_RAD_S, 0.25 / KRPM_RAD_S),
    "isat_a": (5.0, 10.5),
    "index": 0xBEEF,
}
COMMAND_START = (0b1110_0011, 20, 3 << 23, -9 << 22, 1024, -2048, 1280, -3584)
COMMAND_GAINS = (3 * 2048, 15 * 1024, 2 * 1024, 256)
REPLY_VALUES = {
    "timestamp_ms": 54_321,
    "motor_position_rad": (-0.125 * TURN_RAD, 100.0 * TURN_RAD),
    "motor_velocity_rad_s": (-4.0 * KRPM_RAD_S, 2.5 * KRPM_RAD_S),
    "iq_a": (-0.5, 8.0),
    "index": 0xBEEE,
}
REPLY_MIDDLE = (54_321, -(1 << 21), 100 << 24, -8192, 5120, -512, 8192)


def crc32_mpeg2(data: bytes) -> int:
    """Bit by bit, from the definition."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte << 24
        for _ in range(8):
            register = register << 1 ^ (0x104C11DB7 if register >> 31 else 0)
    return register


def sealed_command(data: bytes) -> bytes:
    return data + struct.pack(">I", crc32_mpeg2(data))


def sealed_reply(data: bytes) -> bytes:
    crc = crc32_mpeg2(data)
    return data + struct.pack(">HH", crc & 0xFFFF, crc >> 16)


def test_an_arm_command() -> None:
    codec = command_codec(ARM)
    values = codec.make(**COMMAND_VALUES, ki_a_per_rad_s=(1.0 / TURN_RAD, 31.5 / TURN_RAD))
    fields = (*COMMAND_START, *COMMAND_GAINS, 2048, 31 * 2048 + 1024, 40, 84, 0xBEEF)
    assert codec.encode(values) == sealed_command(
        struct.pack(">BB ii hh hh HH HH HH BB H", *fields)
    )


def test_an_arm_reply() -> None:
    codec = reply_codec(ARM)
    values: Any = codec.make(
        **REPLY_VALUES,
        status=0b1111_1000_0001_0111,
        motor_torque_nm=(0.25, -0.5),
        bus_voltage_v=24.5,
        input_power_w=(12.25, -3.0),
        winding_temperature_degc=(21.0, 85.0),
    )
    fields = (0xF817, *REPLY_MIDDLE, 1024, -2048, 12_544, 196, -48, 61, 125, 0xBEEE)
    frame = sealed_reply(struct.pack(">HH ii hh hh hh H hh BB H", *fields))
    assert codec.encode(values) == frame
    assert codec.decode(frame) == values


@pytest.mark.parametrize(
    ("profile", "limits"), [(UOMODRI, (40, 84)), (UDRIVER2, (84, 40))], ids=["uomodri", "udriver2"]
)
def test_a_34_byte_command(profile: Any, limits: tuple[int, int]) -> None:
    codec = command_codec(profile)
    fields = (*COMMAND_START, *COMMAND_GAINS, *limits, 0xBEEF)
    assert codec.encode(codec.make(**COMMAND_VALUES)) == sealed_command(
        struct.pack(">BB ii hh hh HH HH BB H", *fields)
    )


@pytest.mark.parametrize(
    ("profile", "name", "adc"),
    [
        (UOMODRI, "external_adc_v", (1.5, 3.25)),
        (UDRIVER2, "external_adc_fraction", (0.375, 0.8125)),
    ],
    ids=["uomodri", "udriver2"],
)
def test_a_34_byte_reply(profile: Any, name: str, adc: tuple[float, float]) -> None:
    codec = reply_codec(profile)
    values = codec.make(
        **REPLY_VALUES, status=0xF806, coil_resistance_ohm=(0.5, 1.25), **{name: adc}
    )
    fields = (0xF806, *REPLY_MIDDLE, 16_384, 40_960, 24_576, 53_248, 0xBEEE)
    frame = sealed_reply(struct.pack(">HH ii hh hh HH HH H", *fields))
    assert codec.encode(values) == frame
    assert codec.decode(frame) == values
