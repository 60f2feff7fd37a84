from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.profiles import PROFILES

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("profile", PROFILES)
def test_text_and_markdown_show_every_field(armature: Callable[..., Any], profile: str) -> None:
    for options in ((), ("--format", "text"), ("--format", "markdown")):
        result = armature("frames", "table", "--profile", profile, *options)

        assert (result.exit_code, result.err) == (0, "")
        for layout in (PROFILES[profile].command, PROFILES[profile].reply):
            for field in layout.fields:
                assert field.name in result.out


@pytest.mark.compiler
@pytest.mark.parametrize("profile", PROFILES)
def test_c_header_compiles_on_its_own(
    armature: Callable[..., Any], run: Callable[..., Any], tmp_path: Path, profile: str
) -> None:
    header = tmp_path / "protocol.h"
    header.write_text(armature("frames", "table", "--profile", profile, "--format", "c").out)
    compiler = next(path for name in ("cc", "gcc", "clang") if (path := shutil.which(name)))

    flags = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-x", "c", "-fsyntax-only")
    result = run(compiler, *flags, header)

    assert (result.exit_code, result.err) == (0, "")


def test_the_committed_page_is_what_the_command_prints(armature: Callable[..., Any]) -> None:
    page = PROJECT / "firmware_protocol" / "PROTOCOL.md"

    result = armature("frames", "document")

    assert result.out == page.read_text(encoding="utf-8")
