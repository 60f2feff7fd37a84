"""The C header, compiled: a C program reads the codec's frames and says the same."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.c_header import c_header
from firmware_protocol.codec import FrameCodec, codec_for
from firmware_protocol.fields import Direction, Framing
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES

pytestmark = pytest.mark.compiler
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)

PROGRAM = """
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "protocol.h"

static long from_wire(const void *at, size_t size, int is_signed) {{
    uint8_t byte; uint16_t word; uint32_t quad;
    switch (size) {{
    case 1:
        memcpy(&byte, at, 1);
        return is_signed ? (int8_t)byte : (long)byte;
    case 2:
        memcpy(&word, at, 2);
        return is_signed ? (int16_t)ntohs(word) : (long)ntohs(word);
    default:
        memcpy(&quad, at, 4);
        return is_signed ? (int32_t)ntohl(quad) : (long)ntohl(quad);
    }}
}}

static void read_hex(const char *text, uint8_t *to, size_t size) {{
    for (size_t i = 0; i < size; i++) {{
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) return;
        to[i] = (uint8_t)byte;
    }}
}}

int main(int argc, char **argv) {{
    if (argc != 3) return 1;
    struct {name}_command command;
    struct {name}_reply reply;
    read_hex(argv[1], (uint8_t *)&command, sizeof command);
    read_hex(argv[2], (uint8_t *)&reply, sizeof reply);
{prints}
    printf("constants %s %d %d %d %d %d %d\\n", {prefix}_FINGERPRINT, {prefix}_FRAME_SIZE,
           {prefix}_RS485_COMMAND_ADDRESS, {prefix}_RS485_COMMAND_SIZE,
           {prefix}_RS485_REPLY_ADDRESS, {prefix}_RS485_REPLY_SIZE, {prefix}_STATUS_VERSION);
    return 0;
}}
"""


def program_for(profile: Profile) -> str:
    """A C program that prints where each field is, its integers, its step and its bits."""
    prints = []
    for layout in (profile.command, profile.reply):
        way = layout.direction.value
        for field in layout.fields:
            member = f"{way}.{field.name}_raw"
            macro = f"{profile.name.upper()}_{way.upper()}_{field.name.upper()}"
            where = f"offsetof(struct {profile.name}_{way}, {field.name}_raw)"
            lsb = "1.0" if field.is_integer else f"{macro}_LSB"
            prints.append(f'printf("{way}.{field.name} %zu %.17g", {where}, {lsb});')
            for motor in range(field.count):
                element = f"{member}[{motor}]" if field.is_per_motor else member
                sign = f"((__typeof__({element}))-1 < 0)"
                prints.append(f'printf(" %ld", from_wire(&{element}, sizeof {element}, {sign}));')
            prints += [
                f'printf(" {flag.name}=%d", {macro}_{flag.name.upper()});' for flag in field.flags
            ]
            prints += [f'printf(" offset=%g", {macro}_OFFSET);'] if field.offset else []
            if field.absent_raw is not None:
                prints.append(f'printf(" absent=%d", {macro}_NO_SENSOR);')
            prints.append('printf("\\n");')
    lines = "\n".join(f"    {line}" for line in prints)
    return PROGRAM.format(name=profile.name, prefix=profile.name.upper(), prints=lines)


def expected_lines(profile: Profile, frames: dict[Direction, bytes]) -> list[str]:
    """What the program must print, by the codec."""
    lines = []
    for direction, frame in frames.items():
        codec = codec_for(profile, direction)
        # In wire order, as C sees it.
        raws = iter(codec.decode_raw(frame))
        for field, offset in codec.layout.offsets():
            words = [f"{direction.value}.{field.name}", str(offset), f"{float(field.lsb):.17g}"]
            words += [str(next(raws)) for _ in range(field.count)]
            words += [f"{flag.name}={1 << flag.bit}" for flag in field.flags]
            words += [f"offset={field.offset:g}"] if field.offset else []
            words += [] if field.absent_raw is None else [f"absent={field.absent_raw}"]
            lines.append(" ".join(words))
    size, version = profile.frame_size, profile.reply.protocol_version
    constants = (size, 0x42, size + 2, 0xFF, size + 2, version)
    lines.append(f"constants {fingerprint(profile)} {' '.join(map(str, constants))}")
    return lines


def random_frame(codec: FrameCodec[Any], generator: random.Random) -> bytes:
    flat = [field for field in codec.layout.fields for _ in range(field.count)]
    raws = [generator.randint(field.wire.minimum, field.wire.maximum) for field in flat]
    if codec.layout.protocol_version is not None:
        raws[0] = raws[0] & ~0x70 | codec.layout.protocol_version << 4
    return codec.encode_raw(raws)


@pytest.fixture
def compile_header(tmp_path: Path) -> Callable[[Profile, str], Path]:
    """Compile a C text that includes a profile's header, warnings being errors."""

    def compile_text(profile: Profile, text: str) -> Path:
        compiler = next(path for name in ("cc", "gcc", "clang") if (path := shutil.which(name)))
        (tmp_path / "protocol.h").write_text(c_header(profile), encoding="utf-8")
        source, program = tmp_path / "program.c", tmp_path / "program"
        source.write_text(text, encoding="utf-8")
        options = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-type-limits")
        subprocess.run([compiler, *options, source, "-o", program], check=True)
        return program

    return compile_text


@every_profile
def test_a_c_program_reads_the_codecs_frames(
    profile: Profile, compile_header: Callable[[Profile, str], Path]
) -> None:
    program = compile_header(profile, program_for(profile))
    generator = random.Random(7)
    for _ in range(25):
        frames = {
            direction: random_frame(codec_for(profile, direction), generator)
            for direction in (Direction.COMMAND, Direction.REPLY)
        }
        arguments = [frame.hex() for frame in frames.values()]
        result = subprocess.run(
            [program, *arguments], check=True, capture_output=True, text=True, timeout=10
        )
        assert result.stdout.splitlines() == expected_lines(profile, frames)


def test_the_headers_of_all_profiles_go_together(
    compile_header: Callable[[Profile, str], Path], tmp_path: Path
) -> None:
    """Guards, structs, enums and macros do not collide, also when a header comes twice."""
    includes = []
    for name, profile in PROFILES.items():
        (tmp_path / f"{name}.h").write_text(c_header(profile), encoding="utf-8")
        includes += [f'#include "{name}.h"'] * 2
    text = "\n".join([*includes, "int main(void) { return 0; }", ""])
    compile_header(PROFILES["arm"], text)


@every_profile
def test_the_rs485_header_fits_what_the_codec_sends(profile: Profile) -> None:
    text = c_header(profile)
    for direction in Direction:
        address, size = codec_for(profile, direction, Framing.RS485).header
        name = f"{profile.name.upper()}_RS485_{direction.value.upper()}"
        assert f"#define {name}_ADDRESS 0x{address:02X}\n" in text
        assert f"#define {name}_SIZE {size}\n" in text
