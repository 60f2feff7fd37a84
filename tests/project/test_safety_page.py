"""The page on safety says what the code does: its figures are measured anew, its keys compared."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import stops
from acceptance import ONLY

from daq.robot import Safety
from daq.system.signals import SAFE_STOPS

PAGE = Path(__file__).parents[2] / "docs" / "safety.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?: m?s\b)?")
STALE = "stale: run `make figures`"


def cells(name: str, row: str) -> dict[str, str]:
    """What stands in a row of one of the page's tables, by profile."""
    text = PAGE.read_text("utf-8")
    (table,) = re.findall(rf"<!-- {name}: .*?-->(.*?)<!-- end of {name} -->", text, re.DOTALL)
    head, *rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in table.strip().splitlines()
    ]
    (found,) = (cells for title, *cells in rows if title == row)
    profiles = [title.strip("`") for title in head[1:]]
    return dict(zip(profiles, found, strict=True))


def values(cell: str) -> list[float]:
    """The numbers of a cell, in SI units."""
    found = NUMBER.findall(cell)
    return [float(text.split()[0]) * (1e-3 if text.endswith(" ms") else 1.0) for text in found]


def assert_alike(stated: str, measured: str) -> None:
    assert NUMBER.sub("", stated) == NUMBER.sub("", measured), STALE
    assert values(stated) == pytest.approx(values(measured), rel=0.15, abs=0.003), STALE


@pytest.mark.chain
@pytest.mark.parametrize(
    ("situation", "ending", "profile"),
    [
        ("turning", "brake", "arm"),
        ("turning", "hold", "arm"),
        ("turning", "kill -9", "arm"),
        ("turning", "coast", "udriver2"),
        pytest.param("raised", "brake", "arm", marks=ONLY),
        ("raised", "kill -9", "udriver2"),
        ("lifted", "hold", "arm"),
    ],
)
def test_a_stop_is_as_the_page_says(
    situation: stops.Situation, ending: stops.Ending, profile: str
) -> None:
    stated = cells(f"stops of an arm that is {situation}", stops.title(ending))[profile]
    measured = stops.measure(situation, ending, profile)
    assert_alike(stated, stops.stop_cell(situation, measured))


@pytest.mark.chain
def test_a_dead_encoder_does_what_the_page_says() -> None:
    case: stops.Freeze = "turning at 4 rad/s"
    stated = cells("dead encoders", stops.FREEZES[case][0])["arm"]
    assert_alike(stated, stops.frozen_cell(case, stops.freeze(case, "arm")))


def test_tables_are_complete() -> None:
    for situation in stops.JOINT:
        for ending in stops.ENDINGS:
            name = f"stops of an arm that is {situation}"
            assert list(cells(name, stops.title(ending))) == list(stops.PROFILES)
    for words, _ in stops.FREEZES.values():
        assert list(cells("dead encoders", words)) == list(stops.PROFILES)


def test_every_key_is_there_with_its_default() -> None:
    stated = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE))
    for field in msgspec.structs.fields(Safety):
        default = field.default
        shown = f'`"{default}"`' if isinstance(default, str) else str(default or "none")
        assert stated[field.name] == shown, field.name
    assert {field.name for field in msgspec.structs.fields(Safety)} <= set(stated)


def test_every_signal_that_stops_safely_is_listed() -> None:
    (listed,) = re.findall(r"a signal: ([A-Z0-9 ]+?) \|", PAGE.read_text("utf-8"))
    assert set(listed.split()) == {number.name.removeprefix("SIG") for number in SAFE_STOPS}
