"""The layout of the frames for people: a text table, and the committed page `PROTOCOL.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firmware_protocol.behaviour import Behaviour
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
whole length in bytes. Boards listen to address 0x00, too. The first valid SPI frame disables
RS-485 until reset.

All boards: a command with a wrong checksum is ignored silently, which only the echoed index
shows; an absent board reads as all 0x00 or all 0xFF, which both fail the checksum. Ready is MxE
and MxR without an error: SE proves nothing. An error may come with code 0 (a gate driver that
failed to initialise): then MxR never comes. With EIxOC the position jumps when the index is
found, while it goes on wrapping about the calibration's zero.

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
    if profile.provenance:
        yield from (profile.provenance, "")
    for lines in (_law, _measuring, _framing, _guarding, _enabling):
        yield from (f"- {line}" for line in lines(profile.behaviour))
    has_coil = any(field.name == "coil_resistance_ohm" for field in profile.reply.fields)
    if has_coil and not profile.behaviour.is_coil_measured:
        yield "- Coil resistances read 0."


def _law(b: Behaviour) -> Iterable[str]:
    yield (
        f"Position wraps at ±{b.position_wrap_turns:g} turns. The position error does not: it is a "
        "plain difference, so no reference with Kp or Ki may cross the wrap."
    )
    if b.position_difference_wraps_turns is not None:
        yield (
            f"That difference is kept in an integer of {b.position_difference_wraps_turns:g} turns."
        )
    if b.current_sum_max_a is not None:
        yield f"The law's sum changes its sign at {b.current_sum_max_a:g} A and above."
    reference = "advanced by ωref·t" if b.is_reference_advanced else "held"
    yield f"Between frames the position reference is {reference}."
    if b.idle_integrals:
        readings = ", ".join(reading.value for reading in b.idle_integrals)
        yield f"While Ki = 0 the integral may be (not known): {readings}."
    limit = "no limit" if b.current_max_a is None else f"the board's maximum, {b.current_max_a:g} A"
    yield f"Isat = 0 means {limit}."


def _measuring(b: Behaviour) -> Iterable[str]:
    yield (
        f"Measured velocities are low-passed at {b.velocity_filter_hz:g} Hz, currents at "
        f"{b.current_filter_hz:g} Hz, both by a filter of first order."
    )
    yield (
        f"Values are latched up to {b.reply_age_max_s * 1e6:g} µs before a window, and a command "
        f"acts at the first tick of {b.law_period_s * 1e6:g} µs after it."
    )
    yield f"Values are {'cut toward zero' if b.is_truncated else 'rounded'} on the wire."


def _framing(b: Behaviour) -> Iterable[str]:
    latest = f" to k+{b.reply_lag_max}" if b.reply_lag_max > 1 else ""
    yield f"On SPI the reply to command k is in exchange k+1{latest}; its values are fresh."
    yield f"On RS-485 the reply to command k follows command k+{b.rs485_lag}."
    if b.is_rs485_blank_first:
        yield "The very first reply on RS-485 is zeros with a zero header: unreadable."
    if b.is_blank_before_commands:
        yield "Before the first valid frame replies are zeros, the time stamp too."
    if b.frame_gap_min_s:
        yield f"At least {b.frame_gap_min_s * 1e3:g} ms between frames."
    if b.torn_share:
        yield (
            f"About {b.torn_share:.0%} of replies are sent while they are rewritten: where motor "
            "2's position passes a 1/256 turn meanwhile, it is torn by that (2 to 4 % of replies "
            "at 0.5 turn/s)."
        )
    if b.is_receiver_shifted:
        yield (
            "A window of another length shifts all later commands, while replies stay sound with "
            "a frozen index, until single 16-bit words have filled the frame."
        )
    yield f"A count of the time stamp lasts {b.timestamp_step_s * 1e3:g} ms."
    if b.clock_overflow_s is not None:
        yield (
            f"The clock overflows {b.clock_overflow_s / 60.0:.1f} min after power-up: error 2 "
            "while current flows."
        )


def _guarding(b: Behaviour) -> Iterable[str]:
    yield (
        f"The watchdog counts {b.watchdog.value}; it strikes up to "
        f"{b.watchdog_slack_s * 1e3:g} ms late. Every frame with ES = 0 says time-out 0."
    )
    yield f"A latched error lasts until {b.errors_clear.value}."
    yield f"Idle, stopped and after an error the motors {b.unpowered.value}."
    if b.are_faults_per_motor:
        yield "A fault of one motor stops only that motor: the host must stop the robot."
    if b.is_stop_latched:
        yield "A motor stopped by EMx = 0 stays so until ES drops; MxE and MxR say 1 meanwhile."


def _enabling(b: Behaviour) -> Iterable[str]:
    ready = 1 if b.is_ready_after_error else 0
    yield f"SE is {b.system_bit.value}; MxE echoes the command; MxR is {ready} after an error."
    calibration = b.calibration
    how = "once per power-up" if calibration.is_kept else "each time ES is raised"
    before = "live" if calibration.is_position_live_before else "0"
    late_s = calibration.late_max_s
    late = f", begins up to {late_s:g} s late" if late_s else ""
    yield (
        f"Calibration: {how}, about {calibration.duration_s:g} s{late}; positions read {before} "
        "before it ends."
    )
    if calibration.travel_electrical_turns:
        yield (
            f"It turns rotors back by {calibration.travel_electrical_turns:g} electrical turn and "
            f"forth again, the two motors up to {calibration.apart_max_s * 1e3:g} ms apart."
        )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
