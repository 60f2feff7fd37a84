from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from firmware_protocol.profiles import PROFILES

GOOD = {
    "mode": 192,
    "timeout_ms": 20,
    "pos": [1, -1],
    "vel": [0, 0],
    "ff": [0, 0],
    "kp": [0, 0],
    "kd": [0, 0],
    "isat": [40, 40],
    "index": 7,
}
Armature = Callable[..., Any]


def encode(armature: Armature, *lines: str | dict[str, Any], profile: str = "uomodri") -> Any:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return armature(
        "frames", "encode", "--profile", profile, "--jsonl", "-", stdin="\n".join(texts)
    )


def without(key: str, **others: Any) -> dict[str, Any]:
    return {**{k: v for k, v in GOOD.items() if k != key}, **others}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_command_vector_from_raw_si_and_mixed_keys(
    armature: Armature, vectors: list[dict[str, Any]], profile: str
) -> None:
    chosen = [v for v in vectors if (v["profile"], v["direction"]) == (profile, "command")]
    lines = []
    for vector in chosen:
        integers = {key: vector["raw"][key] for key in ("mode", "timeout_ms", "index")}
        mixed = {**vector["si"], **vector["raw"]}
        for name in ("motor_position_rad", "motor_velocity_rad_s"):
            del mixed[name]
        for key in ("ff", "kp", "kd", "isat", "ki"):
            mixed.pop(key, None)
        lines += [vector["raw"], {**vector["si"], **integers}, mixed]

    result = encode(armature, *lines, profile=profile)

    assert (result.exit_code, result.err) == (0, "")
    assert result.lines == [vector["hex"] for vector in chosen for _ in range(3)]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_reply_vector(
    armature: Armature, vectors: list[dict[str, Any]], profile: str
) -> None:
    chosen = [v for v in vectors if v["profile"] == profile and v["direction"] == "reply"]
    chosen = [vector for vector in chosen if vector["valid"]]

    result = armature(
        *("frames", "encode", "--profile", profile, "--direction", "reply", "--jsonl", "-"),
        stdin="\n".join(json.dumps(vector["raw"]) for vector in chosen),
    )

    assert result.lines == [vector["hex"] for vector in chosen]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (without("kp", kpp=[0, 0]), ["'kpp'", " kp?", "kp "]),
        (without("index"), ["index ", "[wrong-keys]"]),
        (without("pos"), ["pos ", "motor_position_rad"]),
        ({**GOOD, "motor_position_rad": [0, 0]}, ["pos and motor_position_rad"]),
        ({**GOOD, "pos": "12"}, ['pos = "12"', " 2 "]),
        ({**GOOD, "pos": [True, 0]}, ["pos = [true, 0]"]),
        ({**GOOD, "mode": True}, ["mode = true"]),
        ({**GOOD, "mode": None}, ["mode = null"]),
        ({**GOOD, "index": 1.0}, ["index = 1.0"]),
        ({**GOOD, "pos": [1.5, 0]}, ["pos = [1.5, 0]"]),
        ({**GOOD, "pos": [1]}, ["pos = [1]"]),
        ({**GOOD, "pos": [1, 2, 3]}, ["pos = [1, 2, 3]"]),
        ({**GOOD, "pos": []}, ["pos = []"]),
        ({**GOOD, "pos": 1}, ["pos = 1"]),
        ({**GOOD, "mode": [1]}, ["mode = [1]"]),
        ({**GOOD, "pos": [[1, 2], [3, 4]]}, ["pos = [[1, 2], [3, 4]]"]),
        ({**GOOD, "pos": {"motor1": 1}}, ["pos ="]),
        ({**GOOD, "mode": 256}, ["mode = 256", "0 to 255"]),
        ({**GOOD, "index": -1}, ["index = -1", "0 to 65535"]),
        ({**GOOD, "pos": [2**31, 0]}, ["pos = 2147483648"]),
        ({**GOOD, "pos": [10**300, 0]}, ["pos = 1000"]),
        (without("pos", motor_position_rad=[1e9, 0]), ["motor_position_rad = 1000000000.0"]),
        (without("pos", motor_position_rad=[10**400, 0]), ["motor_position_rad"]),
        (without("isat", isat_a=[-0.1, 0]), ["isat_a = -0.1"]),
        (without("isat", isat_a=[5, 0.0624]), ["isat_a = 0.0624", "0.125", "10 A"]),
        (without("isat", isat_a=[None, 0]), ["isat_a = [null, 0]"]),
        ({**GOOD, "ki": [0, 0]}, ["'ki'"]),
        ({**GOOD, "": 1}, ["''", "[wrong-keys]"]),
        (json.dumps(GOOD).replace("7", "NaN"), ["index", "NaN"]),
        (json.dumps(without("kp", kp_a_per_rad=[0, float("inf")])), ["kp_a_per_rad", "Infinity"]),
        (json.dumps(without("kp", kp_a_per_rad=[float("nan"), 0])), ["kp_a_per_rad", "NaN"]),
        (json.dumps(without("kp", kp_a_per_rad=[8.5, 0])).replace("8.5", "1e999"), ["kp_a_per"]),
        (json.dumps(GOOD)[:-1] + ', "mode": 1}', ["'mode'", "[doubled-key]"]),
        (json.dumps(GOOD)[:-1], ["[not-json]"]),
        (json.dumps(GOOD) * 2, ["[not-json]"]),
        ("[192, 20]", ["[not-an-object]"]),
        ('"mode"', ["[not-an-object]"]),
        ("null", ["[not-an-object]"]),
        ("", ["[not-json]"]),
        ("mode=1", ["[not-json]"]),
        # How deep is too deep depends on the version of Python.
        ('{"mode": ' + "[" * 4000, ["[not-json]"]),
        ('{"mode": ' + "9" * 5000 + "}", ["[not-json]"]),
        ('{"mode": "' + "x" * 1_000_000 + '"}', ["10000", "[line-too-long]"]),
    ],
)
def test_a_mistake_is_named_and_the_other_lines_are_encoded(
    armature: Armature, line: str | dict[str, Any], named: list[str]
) -> None:
    (good,) = encode(armature, GOOD).lines

    result = encode(armature, GOOD, line, GOOD)

    assert result.exit_code == 1
    assert result.lines == [good, "", good]
    (message,) = result.err.splitlines()
    assert message.startswith("armature: line 2: ")
    for text in named:
        assert text in message


def test_every_mistake_of_a_line_is_named_at_once(armature: Armature) -> None:
    result = encode(armature, {"mode": "on", "timeout_ms": 300, "speed": 1})

    for text in ("mode", "timeout_ms = 300", "index ", "'speed'", "[wrong-keys]"):
        assert text in result.err


def test_rs485_round_trip(armature: Armature) -> None:
    options = ("--profile", "uomodri", "--framing", "rs485", "--jsonl", "-")

    encoded = armature("frames", "encode", *options, stdin=json.dumps(GOOD))
    (decoded,) = armature(
        "frames", "decode", *options, "--direction", "command", stdin=encoded.out
    ).jsonl

    assert encoded.out.startswith("4224")
    assert decoded["raw"] == GOOD


def test_a_missing_sensor_is_null(armature: Armature) -> None:
    raw = {"status": 16, "timestamp": 0, "index": 0, "vbus": 0}
    pairs = {key: [0, 0] for key in ("pos", "vel", "iq", "torque", "power")}
    line = json.dumps({**raw, **pairs, "winding_temperature_degc": [None, 20]})

    options = ("--profile", "arm", "--direction", "reply", "--jsonl", "-")
    encoded = armature("frames", "encode", *options, stdin=line)
    (decoded,) = armature("frames", "decode", *options, stdin=encoded.out).jsonl

    assert decoded["raw"]["temp"] == [0, 60]
