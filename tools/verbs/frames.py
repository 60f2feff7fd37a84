"""`armature frames`: decode, encode and document the frames of the wire."""

from __future__ import annotations

import argparse
import math
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TextIO

import msgspec

from firmware_protocol.c_header import c_header
from firmware_protocol.codec import FrameCodec, codec_for
from firmware_protocol.document import markdown_section, protocol_page, text_table
from firmware_protocol.errors import ProtocolError
from firmware_protocol.fields import Direction, Fault, Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import profile_named
from tools.printing.frame_json import FrameInputError, raws_from_json
from tools.shared.cli import (
    FAILED,
    OK,
    USAGE,
    Verbs,
    add_profile_option,
    add_verb,
    make_console,
    say,
)

_LINE_MAX_CHARACTERS = 10_000
_TOO_LONG = f"a line of more than {_LINE_MAX_CHARACTERS} characters"
_DECODE_EXAMPLE = """\
  echo 000000000000000000000000000000000000000000000000000000000000dfff5283 |
      armature frames decode --profile uomodri --direction reply --jsonl -"""
_ENCODE_EXAMPLE = """\
  echo '{"mode": 192, "timeout_ms": 20, "index": 1, "pos": [0, 0], "vel": [0, 0], "ff": [0, 0],
         "kp": [0, 0], "kd": [0, 0], "isat": [40, 40]}' | tr -d '\\n' |
      armature frames encode --profile uomodri --jsonl -"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "frames", handler=None, summary=summary, example=_DECODE_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    decode = add_verb(
        actions, "decode", handler=_decode, summary="show what frames say", example=_DECODE_EXAMPLE
    )
    _add_wire(decode, direction="reply")
    decode.add_argument(
        "--jsonl",
        metavar="FILE",
        help="read one hex frame per line (- for stdin), print one JSON object per line",
    )
    decode.add_argument("hex", nargs="*", help="frames to show as tables; default: from stdin")

    encode = add_verb(
        actions,
        "encode",
        handler=_encode,
        summary="make frames from JSON objects",
        example=_ENCODE_EXAMPLE,
    )
    _add_wire(encode, direction="command")
    encode.add_argument(
        "--jsonl",
        metavar="FILE",
        required=True,
        help="read one flat JSON object per line (- for stdin), print one line of hex each",
    )

    table = add_verb(
        actions,
        "table",
        handler=_table,
        summary="print the layout of a profile's frames",
        example="  armature frames table --profile arm --format c > arm_protocol.h",
    )
    add_profile_option(table, is_required=True)
    table.add_argument("--format", choices=["text", "markdown", "c"], default="text")

    add_verb(
        actions,
        "document",
        handler=_document,
        summary="print the generated page of all profiles (firmware_protocol/PROTOCOL.md)",
        example="  armature frames document > firmware_protocol/PROTOCOL.md",
    )


def _add_wire(parser: argparse.ArgumentParser, direction: str) -> None:
    add_profile_option(parser, is_required=True)
    parser.add_argument(
        "--direction",
        choices=[choice.value for choice in Direction],
        default=direction,
        help=f"who sends the frame (default {direction})",
    )
    parser.add_argument(
        "--framing",
        choices=[framing.value for framing in Framing],
        default=Framing.SPI.value,
        help="plain frames (spi, the default) or with the two header bytes of RS-485",
    )


# --- decode ---------------------------------------------------------------------------------------


def decoded(codec: FrameCodec[Any], profile: Profile, text: str) -> dict[str, Any]:
    """Return what a frame in hex says, ready for JSON."""
    names = ("raw", "si", "auxiliary", "flags", "fault")
    result: dict[str, Any] = {"valid": False, "error": None, **dict.fromkeys(names)}
    if len(text) > _LINE_MAX_CHARACTERS:
        return {**result, "error": _TOO_LONG}
    try:
        frame = bytes.fromhex(text)
    except ValueError:
        return {**result, "error": f"not hexadecimal: {_why_not_hex(text)}"}
    try:
        raws = codec.decode_raw(frame)
    except ProtocolError as error:
        return {**result, "error": str(error)}
    values = codec.values_of(raws)._asdict()
    flagged = next(field for field in codec.layout.fields if field.flags)
    word = values[flagged.name]
    is_reply = codec.layout.direction is Direction.REPLY
    return {
        **result,
        "valid": True,
        "raw": codec.raw_by_key(raws),
        "si": {
            field.name: _null_if_nan(values[field.name])
            for field in codec.layout.fields
            if not field.is_integer and not field.is_auxiliary
        },
        "auxiliary": {
            field.name: _null_if_nan(values[field.name])
            for field in codec.layout.fields
            if field.is_auxiliary
        },
        "flags": {flag.name: bool(word >> flag.bit & 1) for flag in flagged.flags},
        "fault": _fault(profile.fault_of(word)) if is_reply else None,
    }


def _why_not_hex(text: str) -> str:
    digits = "".join(text.split())
    strange = next((digit for digit in digits if digit not in string.hexdigits), None)
    return f"{strange!r} is not a digit" if strange else f"{len(digits)} digits, a byte has two"


def _fault(fault: Fault | None) -> dict[str, object] | None:
    if fault is None:
        return None
    return {"code": fault.code, "meaning": fault.meaning, "remedy": fault.remedy}


def _null_if_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_null_if_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _decode(arguments: argparse.Namespace) -> int:
    profile, codec = _codec(arguments.profile, arguments.direction, arguments.framing)
    if arguments.jsonl is None:
        return _show(arguments.hex, profile, codec)
    if arguments.hex:
        say("armature: give frames as arguments or with --jsonl, not both")
        return USAGE

    def to_json(line: str) -> str:
        return msgspec.json.encode(decoded(codec, profile, line)).decode()

    return _each_line(arguments.jsonl, to_json)


def _show(texts: Sequence[str], profile: Profile, codec: FrameCodec[Any]) -> int:
    """Print frames as tables for people; exit 1 when one of them is not valid."""
    from rich.table import Table

    console = make_console()
    exit_code = OK
    lines = (line.strip() for line in _bounded(sys.stdin))
    for text in texts or filter(None, lines):
        result = decoded(codec, profile, text)
        if not result["valid"]:
            say(f"{text[:80]}: {result['error']}")
            exit_code = FAILED
            continue
        table = Table(title=f"{profile.name} {codec.layout.direction.value}")
        for heading in ("byte", "field", "raw", "value", "unit"):
            table.add_column(heading, justify="right" if heading == "byte" else "left")
        values = codec.decode(bytes.fromhex(text))._asdict()
        raws = codec.grouped_raws(codec.decode_raw(bytes.fromhex(text)))
        for (field, offset), raw in zip(codec.layout.offsets(), raws, strict=True):
            unit = "" if field.is_integer else field.unit.si_symbol
            table.add_row(str(offset), field.name, _shown(raw), _shown(values[field.name]), unit)
        console.print(table)
        flags = [name for name, is_set in result["flags"].items() if is_set]
        console.print(f"flags: {' '.join(flags) or 'none'}")
        if result["fault"]:
            fault = result["fault"]
            console.print(f"fault {fault['code']}: {fault['meaning']}. {fault['remedy']}")
    return exit_code


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "  ".join(_shown(part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# --- encode ---------------------------------------------------------------------------------------


def _encode(arguments: argparse.Namespace) -> int:
    _, codec = _codec(arguments.profile, arguments.direction, arguments.framing)
    problems = 0
    number = 0

    def to_hex(line: str) -> str:
        nonlocal problems, number
        number += 1
        try:
            if len(line) > _LINE_MAX_CHARACTERS:
                raise FrameInputError(_TOO_LONG, code="line-too-long")
            return codec.encode_raw(raws_from_json(codec, line)).hex()
        except FrameInputError as error:
            problems += 1
            say(f"armature: line {number}: {error} [{error.code}]")
            # An empty line keeps the others where they are expected.
            return ""

    exit_code = _each_line(arguments.jsonl, to_hex)
    return FAILED if problems else exit_code


# --- table ----------------------------------------------------------------------------------------


def _table(arguments: argparse.Namespace) -> int:
    render = {"text": text_table, "markdown": markdown_section, "c": c_header}[arguments.format]
    sys.stdout.write(render(profile_named(arguments.profile)))
    return OK


def _document(_arguments: argparse.Namespace) -> int:
    sys.stdout.write(protocol_page())
    return OK


# --- lines in, lines out --------------------------------------------------------------------------


def _codec(name: str, direction: str, framing: str) -> tuple[Profile, FrameCodec[Any]]:
    profile = profile_named(name)
    return profile, codec_for(profile, Direction(direction), Framing(framing))


def _each_line(source: str, convert: Callable[[str], str]) -> int:
    with ExitStack() as stack:
        try:
            lines = (
                sys.stdin
                if source == "-"
                else stack.enter_context(open(source, encoding="utf-8", errors="replace"))
            )
            for line in _bounded(lines):
                # Some editors put a byte order mark in front.
                print(convert(line.removeprefix("\ufeff").strip()), flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            say(f"armature: {source}: {error.strerror}")
            return FAILED
    return OK


def _bounded(file: TextIO) -> Iterator[str]:
    """Yield lines, each cut to one character more than is allowed."""
    limit = _LINE_MAX_CHARACTERS + 1
    while line := file.readline(limit):
        yield line
        while len(line) == limit and not line.endswith("\n"):
            line = file.readline(limit)
