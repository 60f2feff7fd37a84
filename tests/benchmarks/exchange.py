"""What one exchange with one board costs the host: encode, checksum, check, decode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profile import VERSION_SHIFT, Profile
from firmware_protocol.profiles import PROFILES
from tests.benchmarks.hand_written import decode_reply, encode_command
from tests.benchmarks.measure import Row, at_least, at_most, side_by_side_s

TARGET_US = 8.0
TARGET_RATIO = 10.0


def run(*, repeats: int = 2000, calls: int = 10) -> Iterator[Row]:
    for name, profile in PROFILES.items():
        ours, by_hand = contenders(profile)
        best = side_by_side_s({"ours": ours, "by hand": by_hand}, repeats=repeats, calls=calls)
        yield at_most(f"exchange, {name}", best["ours"] * 1e6, TARGET_US, "µs")
        ratio = best["by hand"] / best["ours"]
        yield at_least(f"exchange, {name}, against hand-written", ratio, TARGET_RATIO)


def contenders(profile: Profile) -> tuple[Callable[[], object], Callable[[], object]]:
    """Two ways to do the same exchange, checked to agree."""
    name = profile.name
    commands, replies = command_codec(profile), reply_codec(profile)
    command = commands.make(**_pairs(profile.command.fields), mode=0xE0, timeout_ms=10, index=4660)
    version = profile.reply.protocol_version or 0
    reply = replies.encode(
        replies.make(
            **_pairs(profile.reply.fields),
            status=0xF800 | version << VERSION_SHIFT,
            timestamp_ms=54321,
            index=4659,
        )
    )
    by_name = command._asdict()

    def ours() -> object:
        return commands.encode(command), replies.decode(reply)

    def by_hand() -> object:
        return encode_command(name, by_name), decode_reply(name, reply)

    assert encode_command(name, by_name) == commands.encode(command)
    assert _rounded(decode_reply(name, reply)) == _rounded(replies.decode(reply)._asdict())
    return ours, by_hand


def _pairs(fields: Any) -> dict[str, Any]:
    """Some value in the middle of each range."""
    values: dict[str, Any] = {}
    for number, field in enumerate(fields):
        if not field.is_integer:
            value = field.raw_maximum * field.lsb * 0.3 + number * field.lsb
            values[field.name] = (value, 0.5 * value) if field.is_per_motor else value
    return values


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(round(v, 9) for v in value) if isinstance(value, tuple) else round(value, 9)
        for name, value in values.items()
    }
