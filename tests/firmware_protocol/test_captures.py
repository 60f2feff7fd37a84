"""Byte captures of a public host library that speaks to uomodri boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.crc import crc32_mpeg2
from firmware_protocol.errors import CrcError
from firmware_protocol.profiles import STATUS_FLAGS, UOMODRI

CAPTURES = json.loads((Path(__file__).parents[1] / "vectors" / "uomodri_captures.json").read_text())
COMMAND, REPLY = command_codec(UOMODRI), reply_codec(UOMODRI)
FLAG_NAMES = {
    "SE": "system_enabled",
    "M1E": "m1_enabled",
    "M1R": "m1_ready",
    "M2E": "m2_enabled",
    "M2R": "m2_ready",
    "IDX1D": "idx1_detected",
    "IDX2D": "idx2_detected",
    "IDX1T": "idx1_toggle",
    "IDX2T": "idx2_toggle",
}
FAULT_MEANINGS = {
    1: "encoder 1: alignment test failed",
    2: "command timeout",
    3: "unknown",
    4: "unknown",
    5: "position rollover",
    6: "encoder 2: alignment test failed",
    7: "gate-driver fault",
    15: "unknown",
}


def named(captures: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(capture, id=capture["name"]) for capture in captures]


def our_keys(raw: dict[str, Any]) -> dict[str, Any]:
    """The library's names to ours; it counts motors from 0 and calls the feed-forward `iq`."""
    pairs = {"pos": "pos", "vel": "vel", "iq": "ff", "kp": "kp", "kd": "kd", "isat": "isat"}
    result = {"mode": raw["mode_hi"], "timeout_ms": raw["timeout"], "index": raw["index"]}
    for theirs, ours in pairs.items():
        result[ours] = raw[theirs] if theirs in raw else [raw[f"{theirs}0"], raw[f"{theirs}1"]]
    return result


@pytest.mark.parametrize("capture", named(CAPTURES["commands"] + CAPTURES["raw_commands"]))
def test_commands(capture: dict[str, Any]) -> None:
    frame, expected = bytes.fromhex(capture["hex"]), our_keys(capture["raw"])
    assert COMMAND.raw_by_key(COMMAND.decode_raw(frame)) == expected
    assert COMMAND.encode_raw(COMMAND.raws_from_keys(expected)) == frame
    assert COMMAND.encode(COMMAND.decode(frame)) == frame
    if "crc" in capture["raw"]:
        assert int.from_bytes(frame[-4:], "big") == capture["raw"]["crc"]


@pytest.mark.parametrize(
    "capture", named([reply for reply in CAPTURES["replies"] if reply["crc_ok"]])
)
def test_replies(capture: dict[str, Any]) -> None:
    frame, expected = bytes.fromhex(capture["hex"]), capture["decoded"]
    values = REPLY.decode(frame)
    # The library adds its own position offsets after decoding.
    positions = [expected[f"position{motor}_rad"] for motor in (0, 1)]
    for motor, offset_rad in enumerate(capture["offsets"]):
        positions[motor] -= offset_rad

    def pair(name: str) -> Any:
        return pytest.approx([expected[name.format(motor)] for motor in (0, 1)], rel=1e-12)

    assert values.motor_position_rad == pytest.approx(positions, rel=1e-12, abs=1e-12)
    assert values.motor_velocity_rad_s == pair("velocity{}_rad_s")
    assert values.iq_a == pair("current{}_A")
    assert list(values.coil_resistance_ohm) == expected["coil_res_ohm_q15"]
    assert list(values.external_adc_v) == expected["adc_q14_V"]
    assert values.timestamp_ms == expected["timestamp"]
    assert values.index == expected["last_cmd_index"]
    for flag in STATUS_FLAGS:
        assert bool(values.status >> flag.bit & 1) is expected[FLAG_NAMES[flag.name]], flag.name
    words = REPLY.raw_by_key(REPLY.decode_raw(frame))["tail_words"]
    assert words == expected["coil_res_raw"] + expected["adc_raw"]
    assert REPLY.encode(values) == frame


@pytest.mark.parametrize(
    "capture", named([reply for reply in CAPTURES["replies"] if reply["crc_ok"]])
)
def test_faults_of_replies(capture: dict[str, Any]) -> None:
    fault = UOMODRI.fault_of(REPLY.decode(bytes.fromhex(capture["hex"])).status)
    code = capture["decoded"]["error"]
    if not code:
        assert fault is None
        return
    assert fault is not None
    assert (fault.code, fault.meaning) == (code, FAULT_MEANINGS[code])
    assert fault.remedy


@pytest.mark.parametrize(
    "capture", named([reply for reply in CAPTURES["replies"] if not reply["crc_ok"]])
)
def test_replies_that_must_be_refused(capture: dict[str, Any]) -> None:
    with pytest.raises(CrcError):
        REPLY.decode(bytes.fromhex(capture["hex"]))


def test_crc_checks() -> None:
    checks = {key: int(text, 16) for key, text in CAPTURES["crc_checks"].items() if "0x" in text}
    measured = {
        'crc32_mpeg2_check_"123456789"': b"123456789",
        "crc32_of_30_zero_bytes": bytes(30),
        "crc32_of_32_zero_bytes": bytes(32),
    }
    assert {key: int.from_bytes(crc32_mpeg2(data), "big") for key, data in measured.items()} == (
        checks
    )


def test_the_boards_first_reply_carries_the_literal_words_of_the_firmware() -> None:
    words = CAPTURES["crc_checks"]["firmware_initial_reply_crc_words_(msb,lsb)_in_wire_order"]
    assert REPLY.encode(REPLY.make()).hex().endswith(words.replace(" ", ""))
