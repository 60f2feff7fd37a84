"""The page of the bench: whole without script and net, escaped, and shown by a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from acceptance import ONLY
from bench_examples import (
    make_bare_result,
    make_load_picture,
    make_load_result,
    make_picture,
    make_result,
)
from page_browser import Browser, Outline, assert_drawn, open_browser

from estimation.bench.report import page as report_page
from estimation.bench.report.page import make_page
from estimation.bench.report.picture import BenchPicture
from estimation.bench.report.words import quantity_text
from estimation.bench.result import BenchResult, EstimatedQuantity
from estimation.reporting.numbers import number_text

pytestmark = pytest.mark.chain

EVIL = "<script>alert('x')</script>\"&"


@pytest.fixture(scope="module")
def page(made_once: Callable[..., Path]) -> str:
    def fill(directory: Path) -> None:
        text = make_page(make_result(), make_picture())
        (directory / "page.html").write_text(text)

    return (made_once("bench-page", fill) / "page.html").read_text()


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_the_page_fetches_nothing(page: str, outline: Outline) -> None:
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    for tag, attributes in outline.tags:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form"}
        for name, value in attributes.items():
            if name in {"href", "src", "xlink:href", "action", "data"}:
                assert value and value.startswith("#"), (tag, name, value)
            assert not name.startswith("on"), (tag, name)


def test_the_browser_is_told_to_fetch_nothing(outline: Outline) -> None:
    policies = [
        attributes.get("content")
        for tag, attributes in outline.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'"
    ]


def test_the_page_is_small_and_repeats(page: str) -> None:
    assert len(page.encode()) < 1_500_000
    assert make_page(make_result(), make_picture()) == page


def test_ids_are_unique_and_references_lead_somewhere(page: str, outline: Outline) -> None:
    ids = [attributes["id"] for _, attributes in outline.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)


def test_the_summary_has_both_sides_of_the_gear(outline: Outline) -> None:
    rows = {row[0]: row[1:] for row in outline.rows if row}
    assert rows["Quantity"] == ["At the motor", "At the load"]
    motor, load = rows["Viscous friction beq"]
    assert motor.startswith("2.40 [2.34, 2.47] ×10⁻⁶ N·m·s/rad")
    assert "truth 2.420×10⁻⁶, in the interval" in motor
    assert load.startswith("0.00231 [0.00224, 0.00238] N·m·s/rad")
    motor, load = rows["Coulomb friction f"]
    assert motor.startswith("0.003929 [0.003924, 0.003935] N·m")
    assert load.startswith("0.12181 [0.12165, 0.12197] N·m")
    assert "truth 0.1220, outside the interval" in load
    assert rows["Breakaway torque"][1].startswith("0.139 [0.135, 0.143] N·m")
    assert rows["Inertia Jeq"][0].startswith("3.35 [3.29, 3.41] ×10⁻⁵ kg·m²")
    assert rows["Torque constant Ki"] == ["0.02757 N·m/A", "–"]


def test_models_are_compared(outline: Outline) -> None:
    rows = {row[0]: row[1:] for row in outline.rows if row}
    assert rows["Coulomb + viscous ✓"][1:] == ["17.1", "17.6"]
    assert rows["Stribeck"][0].endswith("stribeck_velocity_rad_s 1.900 rad/s")


def test_every_plateau_is_in_the_table_with_its_reason(outline: Outline) -> None:
    rows = {row[0]: row[1:] for row in outline.rows if row}
    for plateau in make_result().plateaus:
        used, repetition, start = rows[str(plateau.number)][:3]
        assert used == ("yes" if plateau.is_used else f"no: {plateau.reason}")
        assert repetition == str(plateau.repetition)
        assert float(start) == plateau.start_s
    assert rows["24"][6:10] == ["1", "−145.53", "0.60", "−0.021"]


def test_marks_tell_their_numbers_without_a_script(page: str) -> None:
    marks = re.findall(r'<g id="plateau-a-24" data-plateau="24"><title>([^<]*)</title>', page)
    assert marks == [
        "Plateau 24, pass 2\njoint −0.08000 rad/s, motor −2.480 rad/s\nwhole turns 1\n"
        "current −145.5 ± 0.60 mA\nmotor torque −4.012 mN·m\nwinding 27.3 °C\n"
        "rejected: current drifted by 3.2 σ within the window"
    ]


def test_warnings_conditions_and_origin_are_told(outline: Outline) -> None:
    for needle in (
        "friction fell by 0.38 % while the winding warmed up by 5.0 °C",
        "24.2 to 29.2 °C",
        "23.98 to 24.05 V",
        "161.3 J",
        "/data/bench/20250612T091502-joint3.h5",
        "armature 0.1.0",
        "2025-06-12T09:15:02Z",
        "laas4",
        "Wire format arm",
        "Link serial:///dev/ttyUSB0?baud=2000000",
    ):
        assert needle in outline.text


def test_names_from_outside_are_escaped() -> None:
    base = make_result()
    plateaus = tuple(
        msgspec.structs.replace(plateau, reason=EVIL if plateau.reason else "")
        for plateau in base.plateaus
    )
    model = msgspec.structs.replace(
        base.models[0], name=EVIL, parameters={EVIL: EstimatedQuantity(value=1)}
    )
    names = ("joint", "robot", "motor", "kind", "profile", "link", "made_by", "recorded_utc")
    evil = make_result(
        **dict.fromkeys(names, EVIL),
        recording=f"/data/\udcff\x00.h5{EVIL}",
        plateaus=plateaus,
        models=(model,),
        warnings=(EVIL,),
    )
    page = make_page(evil, make_picture())
    outline = Outline(page)
    assert [tag for tag, _ in outline.tags].count("script") == 1
    assert "alert(" not in page.replace("&lt;script&gt;alert(", "")
    assert outline.text.count(EVIL) > len(names)
    assert "/data/��.h5" in outline.text  # what no file can hold
    page.encode()


@pytest.fixture
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn of these results, `test_figure` looks at."""
    monkeypatch.setattr(report_page, "draw_bench", lambda *_: None)
    monkeypatch.setattr(report_page, "make_svg", lambda _: '<svg viewBox="0 0 1 1"></svg>')


@pytest.mark.usefixtures("no_drawing")
@pytest.mark.parametrize(
    ("result", "picture"),
    [
        (make_bare_result(), BenchPicture()),
        (make_bare_result(plateaus=()), BenchPicture()),
        (make_load_result(), make_load_picture()),
        (make_result(drift_percent=float("nan"), rate_hz=float("inf")), BenchPicture()),
    ],
    ids=["nothing known", "no plateau", "load arm", "no numbers"],
)
def test_pages_of_odd_results_are_whole(result: BenchResult, picture: BenchPicture) -> None:
    outline = Outline(make_page(result, picture))
    assert "None" not in outline.text and "nan" not in outline.text
    assert "svg" in dict(outline.tags)


@pytest.mark.usefixtures("no_drawing")
def test_a_load_arm_shows_the_torque_constant() -> None:
    rows = {
        row[0]: row[1] for row in Outline(make_page(make_load_result(), make_load_picture())).rows
    }
    assert rows["Torque constant Ki"].startswith("0.02731 [0.02722, 0.02740] N·m/A")
    assert rows["The same by equation 4.3"] == "0.02757 N·m/A"
    assert rows["Its loss at 9.00 A"].startswith("6.2 [5.5, 6.9] %")


@pytest.fixture
def browser(processes: None, tmp_path: Path) -> Browser:
    return open_browser(tmp_path)


def test_a_browser_shows_the_numbers_and_complains_of_what_is_wrong_alone(
    browser: Browser, page: str
) -> None:
    page = page.replace("</body>", '<img src="x.png"></body>')
    dom, console = browser.show(page, "--dump-dom")
    assert len(console) == 1 and "Content Security Policy" in console[0]
    seen = Outline(dom[dom.index("<html") :])
    assert "0.12181 [0.12165, 0.12197] N·m" in seen.text
    assert "no: 2.1 % of the samples were lost" in seen.text
    assert ("div", {"id": "tip", "hidden": "", "role": "status"}) in seen.tags


POINT = """<script>
const mark = document.querySelector("#plateau-b-24").getBoundingClientRect();
document.querySelector("svg").dispatchEvent(new PointerEvent("pointermove", {
  clientX: mark.x + mark.width / 2 + 2, clientY: mark.y + mark.height / 2 }));
</script></body>"""


def test_pointing_at_a_plateau_shows_its_numbers_without_complaint(
    browser: Browser, page: str
) -> None:
    dom, console = browser.show(page.replace("</body>", POINT), "--dump-dom")
    assert console == []
    tip = re.search(r'<div id="tip"[^>]*>([^<]*)</div>', dom)
    assert tip and "hidden" not in tip[0]
    assert tip[1].startswith("Plateau 24, pass 2\n")
    assert set(re.findall(r'<(\w+)[^>]*data-plateau="(\d+)"[^>]*class="[^"]*hit"', dom)) == {
        ("g", "24"),
        ("tr", "24"),
    }


@pytest.mark.parametrize("width", [pytest.param(1000, marks=ONLY), 500])
def test_the_page_is_drawn_and_no_wider_than_the_screen(
    browser: Browser, page: str, width: int
) -> None:
    assert_drawn(browser, page, width, ink_min=0.005)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (0.0, "0"),
        (5e-324, "0"),
        (-0.04, "−0.04000"),
        (31.0, "31.00"),
        (99999.0, "99999"),
        (1.5e5, "1.500×10⁵"),
        (-2.42e-6, "−2.420×10⁻⁶"),
    ],
)
def test_numbers_are_written_to_be_read(value: float | None, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.12181, 0.12165, 0.12197, "0.12181 [0.12165, 0.12197]"),
        (0.02731, 0.02722, 0.0274, "0.02731 [0.02722, 0.02740]"),
        (2.404e-6, 2.336e-6, 2.472e-6, "2.40 [2.34, 2.47] ×10⁻⁶"),
        (1e-9, -2e-3, 2e-3, "0.0000 [−0.0020, 0.0020]"),
        (1234.0, 1000.0, 1468.0, "1234 [1000, 1468]"),
        (1.0, 1.0, 1.0, "1.000 [1.000, 1.000]"),
        (1.0, None, 2.0, "1.000"),
        (1.0, 0.5, float("inf"), "1.000"),
        (float("nan"), 0.5, 1.0, "–"),
    ],
)
def test_intervals_say_how_many_digits_count(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert quantity_text(EstimatedQuantity(value=value, low=low, high=high)) == text
