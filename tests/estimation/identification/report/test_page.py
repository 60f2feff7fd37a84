"""The page of an identification: whole without net and script, escaped, shown by a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from acceptance import ONLY, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_report_example import METHODS, make_example, make_payload
from page_browser import Browser, Outline, assert_drawn, open_browser

from estimation.identification.report.figures import draw_figures
from estimation.identification.report.page import make_page
from estimation.identification.report.table import (
    COLUMNS,
    combination_note,
    comparison_rows,
    range_text,
    seconds_text,
)
from estimation.identification.result import FailedMethod, Identification, Verdict

pytestmark = pytest.mark.chain

MADE_AT = "2025-06-12T09:15:02Z"
EVIL = "<script>alert('x')</script>\"&"


@pytest.fixture(scope="module")
def page(made_once: Callable[..., Path]) -> str:
    def fill(directory: Path) -> None:
        figures = draw_figures(*make_example(1, rows=500))  # sooner drawn than those of four joints
        text = make_page(make_example(4)[0], made_at=MADE_AT, figures=figures)
        (directory / "page.html").write_text(text)

    return (made_once("identification-page", fill) / "page.html").read_text()


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def make_words(result: Identification) -> Outline:
    return Outline(make_page(result, made_at=MADE_AT))


def test_the_page_fetches_nothing(page: str, outline: Outline) -> None:
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    for tag, attributes in outline.tags:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form", "script"}
        for name, value in attributes.items():
            if name in {"href", "src", "xlink:href", "action", "data"}:
                assert value and value.startswith("#"), (tag, name, value)
            assert not name.startswith("on"), (tag, name)


def test_ids_are_unique_and_references_lead_somewhere(page: str, outline: Outline) -> None:
    ids = [attributes["id"] for _, attributes in outline.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)


def test_the_page_is_small_and_has_all_figures(page: str, outline: Outline) -> None:
    assert len(page.encode()) < 3_000_000
    assert [tag for tag, _ in outline.tags].count("svg") == 9


def test_the_verdict_comes_first_with_its_scope(outline: Outline) -> None:
    text = outline.text
    assert text.index("Usable.") < text.index("Holds for:") < text.index("Methods compared")
    bad = Verdict(is_usable=False, text="no arm can exist", scope="nothing")
    assert "Not usable. no arm can exist" in make_words(make_example(1, verdict=bad)[0]).text


def test_all_methods_are_compared_beside_the_floor(outline: Outline) -> None:
    rows = {row[0]: row[1:] for row in outline.rows if len(row) == len(COLUMNS)}
    assert rows["cls2 ✓summary of cls2"] == [
        *("3.40", "3.91", "3.57", "4.69", "5.69", "yes", "3.40×10⁻⁶", "yes", "4.20 to 382"),
        "3.20",
    ]
    assert rows["ulssummary of uls"][5:9] == ["no", "−0.00210", "no", "∞"]
    assert rows["cadsummary of cad"][2] == "–"
    assert len(rows) == len(METHODS) + 1
    assert "3.21 % where joints move, 3.85 % over all rows" in outline.text
    assert "tls: the smallest singular value is not single" in outline.text
    assert "slsqp: 5 of 10 starts ended in the same minimum" in outline.text


def test_cells_are_the_same_for_the_terminal() -> None:
    rows = comparison_rows(make_example(2)[0])
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert [row[0] for row in rows if row[0].endswith("✓")] == ["cls2 ✓"]
    assert range_text(4.2, float("inf")) == "4.20 to ∞"


def test_errors_are_told_per_joint(outline: Outline) -> None:
    rows = {tuple(row[:2]): row[2:] for row in outline.rows if len(row) == 6}
    assert rows["cls2", "validation"] == ["2.74", "3.32", "3.91", "4.50"]
    assert rows["validation", "all rows, raw torque (%)"] == ["4.28", "4.99", "5.69", "6.40"]
    assert rows["its links", "least eigenvalue"] == [
        *("3.40×10⁻⁶", "6.80×10⁻⁶", "1.02×10⁻⁵", "1.36×10⁻⁵")
    ]
    assert rows["identification", "rms (N·m)"] == ["0.0476", "0.0578", "0.0680", "0.0782"]


def test_a_payload_is_told_with_intervals_units_and_frame(outline: Outline) -> None:
    assert "Payload" not in outline.text
    shown = make_words(make_example(4, payload=make_payload("no motion tells Ixx"))[0])
    rows = {row[0]: row[1:] for row in shown.rows if len(row) == 3}
    assert rows["Mass"] == ["0.312 [0.301, 0.323]", "kg"]
    assert rows["Centre of mass, z"] == ["−0.0098 [−0.0118, −0.0078]", "m"]
    assert rows["Inertia, xx"] == ["2.10 [1.80, 2.40] ×10⁻⁴", "kg·m²"]
    assert rows["Inertia, yz"] == ["0.0 [−3.0, 3.0] ×10⁻⁵", "kg·m²"]
    for needle in (
        "loaded-20250612.h5",
        "in the frame of the last joint, joint4",
        "about the payload's own centre of mass",
        "Misfit: 1.1 standard deviations",
        "no motion tells Ixx",
    ):
        assert needle in shown.text, needle


def test_times_are_no_powers_of_ten() -> None:
    times = [seconds_text(value) for value in (0.0, 1.82e-5, 0.0123, 3.2, 754.321)]
    assert times == ["< 0.001", "< 0.001", "0.012", "3.20", "754.32"]


def test_what_consistent_means_for_combinations_is_told_beside_others() -> None:
    words = "uls, wls determine combinations of parameters only"
    assert words in make_words(make_example(2)[0]).text
    for methods in (("uls", "wls"), ("cls1", "cls2")):
        assert combination_note(make_example(2, methods=methods)[0]) == ""
    note = combination_note(make_example(2, methods=("uls", "cls2"))[0])
    assert note.startswith("uls determines combinations")


def test_base_parameters_have_intervals_marks_and_truth(outline: Outline) -> None:
    result, _ = make_example(4)
    rows = {row[0]: row[1:] for row in outline.rows if len(row) == 9}
    for base in result.base_parameters:
        assert ("✗" in rows[base.expression][4]) == (base.relative_percent > 30.0)
        assert rows[base.expression][1] == base.unit
        assert base.true is not None
        is_outside = not base.low <= base.true <= base.high
        assert ("outside" in rows[base.expression][7]) == is_outside
    assert "m1 , mcx1 , mcy1" in outline.text


def test_everything_else_is_told(outline: Outline) -> None:
    for needle in (
        "low-pass at 15 Hz, forwards and backwards",
        "before the motion: 1000, a frame was lost: 250",
        "validation-20250612.h5",
        "windows that left the limits were not counted",
        "Torque in the closed loop: 6.20 % off",
        "armature 0.1.0",
        MADE_AT,
        "viscous, coulomb, drive_inertia, offset",
        "812, 47.3 with columns of length 1",
        "Joints move in 93.2 % of the rows",
        "every link could be built",
    ):
        assert needle in outline.text, needle


@pytest.mark.parametrize(
    "options",
    [
        {"joints": 1, "methods": ("uls",)},
        {"joints": 7, "has_validation": False, "has_cad": False, "is_mock": False},
        {"joints": 12},
        {"joints": 2, "parameters": (), "base_parameters": (), "residuals": ()},
        {"joints": 2, "simulation": None, "failed": (), "lost": (), "preparation": ()},
        {"joints": 2, "condition": float("inf"), "condition_scaled": float("nan")},
    ],
    ids=["1 joint", "7 joints alone", "12 joints", "no parameters", "nothing more", "no numbers"],
)
def test_pages_of_odd_results_are_whole(options: dict[str, Any]) -> None:
    outline = make_words(make_example(**options)[0])
    assert "svg" not in dict(outline.tags) and "Methods compared" in outline.text
    assert not re.search(r"\b(None|nan|inf)\b", outline.text)


def test_without_parameters_joints_keep_their_names() -> None:
    result, _ = make_example(2, parameters=())
    rows = make_words(result).rows
    assert ["Method", "ετ (%) on", "joint1", "joint2"] in rows


def with_names(result: Identification, name: str) -> Identification:
    """Everything that comes from outside has this name."""
    replace = msgspec.structs.replace
    first = result.recordings[0]
    return replace(
        result,
        robot=name,
        recordings=(replace(first, file=name, left_out={name: 1}),),
        parameters=tuple(replace(each, joint=name) for each in result.parameters),
        base_parameters=tuple(
            replace(each, expression=name, unit=name) for each in result.base_parameters
        ),
        residuals=tuple(replace(each, joint=name) for each in result.residuals),
        methods=tuple(
            replace(each, summary=name, notes=(name,), name=f"{name}{number}")
            for number, each in enumerate(result.methods)
        ),
        chosen=f"{name}0",
        failed=(FailedMethod(name=name, reason=name),),
        verdict=Verdict(is_usable=True, text=name, scope=name),
        payload=replace(make_payload(name), files=(name,)),
        preparation=(name,),
        lost=(name,),
        terms=(name,),
        armature_version=name,
    )


NAMES = st.text(st.sampled_from("<>&\"'/ab $\\;\x00\n\udcff") | st.characters(), max_size=20)


PLAIN = make_example(1, methods=("cad", "uls"))[0]
PLAIN_TAGS = Outline(make_page(with_names(PLAIN, "a"), made_at="a")).tags


@settings(max_examples=examples(80))
@given(NAMES)
def test_names_from_outside_are_escaped(name: str) -> None:
    page = make_page(with_names(PLAIN, name), made_at=name)
    assert Outline(page).tags == PLAIN_TAGS
    page.encode()


def test_names_in_figures_are_escaped() -> None:
    evil = with_names(PLAIN, EVIL)
    page = make_page(evil, made_at=EVIL, figures=draw_figures(evil, ()))
    tags = [tag for tag, _ in Outline(page).tags]
    assert "script" not in tags and tags.count("svg") == 4


@pytest.mark.system
def test_the_page_is_imported_without_matplotlib_and_figures_without_pyplot() -> None:
    code = "import sys, estimation.identification.report.page; "
    code += "assert 'matplotlib' not in sys.modules; "
    code += "import estimation.identification.report.figures; "
    code += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def browser(processes: None, tmp_path: Path) -> Browser:
    return open_browser(tmp_path)


def test_a_browser_shows_the_numbers_and_complains_of_nothing(browser: Browser, page: str) -> None:
    dom, console = browser.show(page, "--dump-dom")
    assert console == []
    seen = Outline(dom[dom.index("<html") :])
    assert "4.20 to 382" in seen.text and "Usable." in seen.text


def test_the_browser_would_have_complained(browser: Browser, page: str) -> None:
    _, console = browser.show(page.replace("</body>", '<img src="x.png"></body>'), "--dump-dom")
    assert len(console) == 1 and "Content Security Policy" in console[0]


@pytest.mark.parametrize("width", [pytest.param(1000, marks=ONLY), 500])
def test_the_page_is_drawn_and_no_wider_than_the_screen(
    browser: Browser, page: str, width: int
) -> None:
    assert_drawn(browser, page, width, ink_min=0.003)
