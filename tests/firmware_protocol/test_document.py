"""The tables for people, and the page that is committed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import firmware_protocol
from firmware_protocol.document import markdown_section, protocol_page, text_table
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES

PAGE = Path(firmware_protocol.__file__).with_name("PROTOCOL.md")
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == protocol_page(), (
        f"{PAGE.name} is stale: run `make docs`"
    )


@every_profile
def test_both_tables_name_every_field_with_its_byte(profile: Profile) -> None:
    text, page = text_table(profile), markdown_section(profile)
    for layout in (profile.command, profile.reply):
        for field, offset in layout.offsets():
            (line,) = [
                line
                for line in text.splitlines()
                if line.split()[:2] == [str(offset), field.name] and field.summary in line
            ]
            assert field.wire.name in line.split()
            assert f"| {offset} | {field.name}" in page
    assert fingerprint(profile) in text
    assert fingerprint(profile) in page


@every_profile
def test_the_page_lists_every_bit_and_error_code(profile: Profile) -> None:
    page = markdown_section(profile)
    for layout in (profile.command, profile.reply):
        for field in layout.fields:
            for flag in field.flags:
                assert f"| {flag.bit} | {flag.name} | {flag.summary} |" in page
    for fault in profile.faults.values():
        assert f"| {fault.code} | {fault.meaning} | {fault.remedy} |" in page


def test_scales_read_as_the_firmwares_documentation_writes_them() -> None:
    page = protocol_page()
    for text in ("2⁻²⁴ turn", "2⁻¹¹ krpm", "2⁻¹⁰ A/krpm", "1 °C, raw 0 = -40 °C", "1 ms"):
        assert text in page
    assert "| 26 | isat_a [2 1] |" in page
    assert "| 26 | isat_a [1 2] |" in page


@every_profile
def test_tables_of_markdown_have_equal_columns(profile: Profile) -> None:
    lines = markdown_section(profile).splitlines()
    for line, following in pairwise(lines):
        if line.startswith("|") and following.startswith("|"):
            assert line.count("|") == following.count("|")
