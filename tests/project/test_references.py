"""What is cited stands in `docs/references.md`, where a reader can look it up."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FOLDERS = ("firmware_protocol", "daq", "estimation", "hw_mocks", "tools", "tests")
FILES = [PROJECT / "README.md"] + [
    path
    for folder in FOLDERS
    for path in sorted((PROJECT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".toml"}
]
REFERENCES = PROJECT / "docs" / "references.md"
KEY = re.compile(r"\[([A-Z][\w -]* \d{4})\]")


def test_every_citation_is_listed() -> None:
    cited = {key for path in FILES for key in KEY.findall(path.read_text("utf-8"))}
    listed = KEY.findall(REFERENCES.read_text("utf-8"))
    assert cited
    assert cited <= set(listed)


def test_nothing_is_cited_by_a_number_of_our_own() -> None:
    pattern = re.compile(r"seed[s ]*0\d\d", re.IGNORECASE)
    assert [path.name for path in FILES if pattern.search(path.read_text("utf-8"))] == []
