"""The layout of the frames for people: a text table, and the committed page `PROTOCOL.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firmware_protocol.fields import CRC_SIZE, Direction, Field, FrameLayout, Framing
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES

_HEADINGS = ("byte", "field", "type", "LSB", "raw key", "meaning")
_PAGE_BEGINNING = """\
# The wire

<!-- Generated from firmware_protocol/profiles.py by `make docs`; do not edit. -->

All integers are big-endian. `[1 2]` means motor 1, then motor 2. One turn is 2π rad, one
krpm is 1000·2π/60 rad/s. CRC-32/MPEG-2: polynomial 0x04C11DB7, initial 0xFFFFFFFF, not
reflected, no final xor; `123456789` gives 0x0376E6E7.

SPI: mode 0, 8-bit words, 8 MHz by default, one frame each way in one chip-select window.

On RS-485 two bytes stand in front of the frame, and the checksum covers them too: the
address (0x42 to the board, 0xFF from it), then `type << 6 | size` with type 0 and the
whole length in bytes.

"""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def lsb_text(field: Field) -> str:
    """Return the least significant bit as the firmware's documentation writes it."""
    if field.lsb_exponent:
        power = "2" + str(field.lsb_exponent).translate(_SUPERSCRIPTS)
    else:
        power = "1" if field.unit.symbol else ""
    text = f"{power} {field.unit.symbol}".strip()
    return f"{text}, raw 0 = {field.offset:g} {field.unit.symbol}" if field.offset else text


def layout_rows(layout: FrameLayout) -> list[tuple[str, ...]]:
    """Return one row per field, checksum included, under the headings of `text_table`."""
    rows: list[tuple[str, ...]] = []
    for field, offset in layout.offsets():
        motors = (" [2 1]" if field.is_motor_2_first else " [1 2]") if field.is_per_motor else ""
        rows.append(
            (
                str(offset),
                field.name + motors,
                field.wire.name,
                lsb_text(field),
                field.raw_key,
                field.summary,
            )
        )
    halves = ", low 16-bit half first" if layout.are_crc_halves_swapped else ""
    meaning = f"CRC-32/MPEG-2 over all bytes before it{halves}."
    rows.append((str(layout.size - CRC_SIZE), "crc", "u32", "", "", meaning))
    return rows


def text_table(profile: Profile) -> str:
    """Return both frames of a profile as plain text."""
    parts = [f"{profile.name}: {profile.summary}", f"fingerprint {fingerprint(profile)}"]
    for layout in (profile.command, profile.reply):
        parts += ["", _frame_title(layout), *_aligned([_HEADINGS, *layout_rows(layout)])]
    return "\n".join(parts) + "\n"


def markdown_section(profile: Profile) -> str:
    """Return a profile's part of the page."""
    lines = [
        f"## Profile `{profile.name}`",
        "",
        f"{profile.summary[0].upper()}{profile.summary[1:]}. Fingerprint `{fingerprint(profile)}`.",
    ]
    for layout in (profile.command, profile.reply):
        lines += ["", f"### {_frame_title(layout)}", ""]
        lines += _markdown_table(_HEADINGS, layout_rows(layout))
        for field in layout.fields:
            if field.flags:
                lines += ["", f"Bits of `{field.name}`:", ""]
                lines += _markdown_table(
                    ("bit", "name", "meaning"),
                    [(str(flag.bit), flag.name, flag.summary) for flag in field.flags],
                )
    lines += ["", "### Error codes", ""]
    lines += _markdown_table(
        ("code", "meaning", "remedy"),
        [
            (str(fault.code), fault.meaning, fault.remedy)
            for fault in sorted(profile.faults.values(), key=lambda fault: fault.code)
        ],
    )
    lines += ["", "### Behaviour", "", *_behaviour(profile)]
    return "\n".join(lines) + "\n"


def protocol_page() -> str:
    """Return the whole of `PROTOCOL.md`."""
    return _PAGE_BEGINNING + "\n".join(markdown_section(p) for p in PROFILES.values())


def _frame_title(layout: FrameLayout) -> str:
    way = "host → board" if layout.direction is Direction.COMMAND else "board → host"
    version = "" if layout.protocol_version is None else f", version {layout.protocol_version}"
    rs485 = layout.header(Framing.RS485)
    return (
        f"{layout.direction.value.title()} ({way}), {layout.size} bytes{version}; "
        f"RS-485 header {rs485.hex(' ')}"
    )


def _behaviour(profile: Profile) -> Iterable[str]:
    b = profile.behaviour
    limit = "no limit" if b.current_max_a is None else f"the board's maximum, {b.current_max_a:g} A"
    reference = "advanced by ωref·t" if b.is_reference_advanced else "held"
    yield f"- Position wraps at ±{b.position_wrap_turns:g} turns."
    yield f"- Isat = 0 means {limit}."
    yield (
        f"- Measured velocities are low-passed at {b.velocity_filter_hz:g} Hz, currents at "
        f"{b.current_filter_hz:g} Hz, both by a filter of first order."
    )
    yield f"- Between frames the position reference is {reference}."
    latest = f" to k+{b.reply_lag_max}" if b.reply_lag_max > 1 else ""
    yield f"- On SPI the reply to command k is in exchange k+1{latest}; on RS-485 it follows it."
    if b.frame_gap_min_s:
        yield f"- At least {b.frame_gap_min_s * 1e3:g} ms between frames."
    yield f"- Without valid commands the motors {b.on_watchdog.value}."
    yield f"- A latched error lasts until {b.errors_clear.value}."
    if b.is_stop_latched:
        yield "- A motor stopped by EMx = 0 stays so until ES drops; its MxR stays 1 meanwhile."
    if b.is_misaligned_by_truncation:
        yield "- A truncated transfer shifts all later frames until the missing bytes are clocked."


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
