from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.codec import codec_for, reply_codec
from firmware_protocol.fields import Direction, Framing
from firmware_protocol.profiles import PROFILES

KEYS = {"valid", "error", "raw", "si", "auxiliary", "flags", "fault"}
IDLE_REPLY = "000000000000000000000000000000000000000000000000000000000000dfff5283"
CASES = [(profile, direction) for profile in PROFILES for direction in ("command", "reply")]

Armature = Callable[..., Any]


def reply_with_error(profile: str, code: int) -> str:
    codec = reply_codec(PROFILES[profile])
    version = PROFILES[profile].reply.protocol_version or 0
    return codec.encode(codec.make(status=version << 4 | code)).hex()


def select(vectors: list[dict[str, Any]], profile: str, direction: str) -> list[dict[str, Any]]:
    chosen = [v for v in vectors if (v["profile"], v["direction"]) == (profile, direction)]
    assert chosen
    return chosen


@pytest.mark.parametrize(("profile", "direction"), CASES)
def test_every_vector(
    armature: Armature, vectors: list[dict[str, Any]], profile: str, direction: str
) -> None:
    chosen = select(vectors, profile, direction)
    options = ("--profile", profile, "--direction", direction, "--jsonl", "-")

    result = armature(
        "frames", "decode", *options, stdin="".join(vector["hex"] + "\n" for vector in chosen)
    )

    assert (result.exit_code, result.err) == (0, "")
    for vector, decoded in zip(chosen, result.jsonl, strict=True):
        assert decoded.keys() == KEYS
        if vector.get("valid", True):
            assert decoded["valid"] is True
            assert decoded["error"] is None
            assert decoded["raw"] == vector["raw"]
            assert decoded["si"].keys() == vector["si"].keys()
            for name, value in vector["si"].items():
                assert decoded["si"][name] == pytest.approx(value, rel=1e-12, abs=0.0)
            assert all(type(is_set) is bool for is_set in decoded["flags"].values())
        else:
            assert decoded == {**dict.fromkeys(KEYS), "valid": False, "error": decoded["error"]}
            assert "CRC" in decoded["error"]


@pytest.mark.parametrize(("profile", "direction"), CASES)
def test_rs485_vectors(
    armature: Armature, vectors: list[dict[str, Any]], profile: str, direction: str
) -> None:
    chosen = [v for v in select(vectors, profile, direction) if v.get("valid", True)]
    codec = codec_for(PROFILES[profile], Direction(direction), Framing.RS485)
    frames = [codec.encode_raw(codec.raws_from_keys(vector["raw"])).hex() for vector in chosen]
    options = ("--profile", profile, "--direction", direction, "--framing", "rs485", "--jsonl", "-")

    result = armature("frames", "decode", *options, stdin="\n".join([*frames, chosen[0]["hex"]]))

    *decoded, plain = result.jsonl
    assert [row["raw"] for row in decoded] == [vector["raw"] for vector in chosen]
    assert not plain["valid"]
    size = PROFILES[profile].frame_size
    assert re.findall("[0-9]+", plain["error"]) == [str(size), str(size + 2)]


@pytest.mark.parametrize("profile", PROFILES)
def test_faults(armature: Armature, profile: str) -> None:
    frames = "\n".join(reply_with_error(profile, code) for code in range(16))

    result = armature("frames", "decode", "--profile", profile, "--jsonl", "-", stdin=frames)

    none, *faults = [row["fault"] for row in result.jsonl]
    assert none is None
    assert all(row["valid"] for row in result.jsonl)
    for code, fault in enumerate(faults, 1):
        assert fault.keys() == {"code", "meaning", "remedy"}
        assert fault["code"] == code
        assert fault["remedy"]
        assert (fault["meaning"] == "unknown") == (code not in PROFILES[profile].faults)
    assert faults[1]["meaning"] == "command timeout"
    assert faults[14]["meaning"] == "unknown"


def test_temperature_without_sensor_is_null(armature: Armature) -> None:
    codec = reply_codec(PROFILES["arm"])
    frame = codec.encode(codec.make(status=1 << 4, winding_temperature_degc=(math.nan, 25.0))).hex()

    (row,) = armature("frames", "decode", "--profile", "arm", "--jsonl", "-", stdin=frame).jsonl

    assert row["auxiliary"] == {"winding_temperature_degc": [None, 25.0]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "0 bytes"),
        (IDLE_REPLY[:-1], " 67 "),
        ("zz" + IDLE_REPLY[2:], "'z'"),
        ("0x" + IDLE_REPLY, "'x'"),
        (IDLE_REPLY[:-2], "33 bytes"),
        (IDLE_REPLY * 2, "68 bytes"),
        ("00" * 34, "0x00"),
        ("ff" * 34, "0xff"),
        ("µ" * 68, "'µ'"),
        ("ab" * 500_000, " 10000 "),
        ("\0" * 5, r"'\x00'"),
    ],
)
def test_what_is_no_frame_is_refused_and_the_next_line_decoded(
    armature: Armature, line: str, reason: str
) -> None:
    options = ("--profile", "uomodri", "--jsonl", "-")

    result = armature("frames", "decode", *options, stdin=f"{line}\n{IDLE_REPLY}\n")

    refused, decoded = result.jsonl
    assert refused["valid"] is False
    assert reason in refused["error"]
    assert decoded["valid"] is True


def test_binary_garbage(armature: Armature) -> None:
    garbage = bytes(range(256)) * 40 + b"\n" + IDLE_REPLY.encode()

    rows = armature("frames", "decode", "--profile", "uomodri", "--jsonl", "-", stdin=garbage).jsonl

    assert [row["valid"] for row in rows[:-1]] == [False] * (len(rows) - 1)
    assert rows[-1]["valid"]


@pytest.mark.parametrize(
    "text",
    [
        IDLE_REPLY,
        IDLE_REPLY + "\n",
        IDLE_REPLY + "\r\n",
        f"  {IDLE_REPLY}\t \n",
        IDLE_REPLY.upper(),
        " ".join(IDLE_REPLY[i : i + 2] for i in range(0, 68, 2)),
        "\ufeff" + IDLE_REPLY,
    ],
    ids=["no newline", "newline", "crlf", "blanks", "capitals", "spaced bytes", "byte order mark"],
)
def test_ways_to_write_a_frame(armature: Armature, tmp_path: Path, text: str) -> None:
    file = tmp_path / "frames"
    file.write_bytes(text.encode())
    options = ("--profile", "uomodri", "--jsonl")

    (from_stdin,) = armature("frames", "decode", *options, "-", stdin=text).jsonl
    (from_file,) = armature("frames", "decode", *options, str(file)).jsonl

    assert from_stdin["valid"]
    assert from_file == from_stdin


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read(armature: Armature, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)

    result = armature("frames", "decode", "--profile", "arm", "--jsonl", path)

    assert (result.exit_code, result.out) == (1, "")
    assert path in result.err


def test_table_for_people(armature: Armature, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    faulty = reply_with_error("uomodri", 2)

    from_arguments = armature("frames", "decode", "--profile", "uomodri", IDLE_REPLY, faulty)
    from_stdin = armature(
        "frames", "decode", "--profile", "uomodri", stdin=f"{IDLE_REPLY}\n\n{faulty}"
    )

    assert from_arguments.exit_code == 0
    assert from_stdin.out == from_arguments.out
    assert from_arguments.out.count("coil_resistance_ohm") == 2
    assert "fault 2: command timeout" in from_arguments.out


def test_table_for_people_of_a_broken_frame(armature: Armature) -> None:
    result = armature("frames", "decode", "--profile", "uomodri", "00", IDLE_REPLY)

    assert result.exit_code == 1
    assert re.findall("[0-9]+", result.err) == ["00", "1", "34"]
    assert "motor_position_rad" in result.out


def test_arguments_and_jsonl_together_are_a_usage_error(armature: Armature) -> None:
    result = armature("frames", "decode", "--profile", "uomodri", "--jsonl", "-", IDLE_REPLY)

    assert (result.exit_code, result.out) == (2, "")


def test_lines_are_answered_as_they_come(start: Callable[..., Any]) -> None:
    process = start(
        "armature", "frames", "decode", "--profile", "uomodri", "--jsonl", "-", stdin=-1
    )

    for _ in range(2):
        process.stdin.write(IDLE_REPLY + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["valid"]


def test_a_reader_that_leaves_early(run: Callable[..., Any], tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.write_text(f"{IDLE_REPLY}\n" * 5000)
    script = (
        f"armature frames decode --profile uomodri --jsonl {frames} | head -1; "
        "armature frames decode --profile uomodri < "
        f"{frames} | head -1; armature doctor --robot bench1 --link mock | true; "
        "armature frames table --profile arm | true; armature --help | true"
    )

    result = run("bash", "-c", script)

    assert result.err == ""
    assert json.loads(result.lines[0])["valid"]
