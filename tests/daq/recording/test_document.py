"""The page that is committed, and what the package needs."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import daq.recording
from daq.recording.document import recording_page
from daq.recording.layout import ATTRIBUTES, COLUMNS, TABLES

PAGE = Path(daq.recording.__file__).with_name("RECORDING_FORMAT.md")


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == recording_page(), (
        f"{PAGE.name} is stale: run `make docs`"
    )


@pytest.mark.system
def test_the_module_prints_it() -> None:
    command = [sys.executable, "-X", "utf8", "-m", "daq.recording.document"]
    printed = subprocess.run(command, check=True, capture_output=True).stdout
    assert printed.decode() == recording_page()


def test_the_page_names_everything() -> None:
    page = recording_page()
    for attribute in ATTRIBUTES:
        cells = (attribute.kind, f"1.{attribute.since_minor}", attribute.description)
        assert f"| `{attribute.name}` | {' | '.join(cells)} |" in page
    for dataset in [*COLUMNS.values(), *(d for group in TABLES.values() for d in group)]:
        assert f"| `{dataset.name}` |" in page
        assert dataset.description in page
        for number, name in {**dataset.codes, **dataset.bits}.items():
            assert f"{number} {name}" in page


def test_tables_have_equal_columns() -> None:
    for line, following in pairwise(recording_page().splitlines()):
        if line.startswith("|") and following.startswith("|"):
            assert line.count("|") == following.count("|")


@pytest.mark.system
@pytest.mark.parametrize("foreign", ["firmware_protocol", "zmq", "spidev", "serial", "hw_mocks"])
def test_recordings_are_read_without_the_wire(foreign: str) -> None:
    code = f"import sys, daq.recording; sys.exit({foreign!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
