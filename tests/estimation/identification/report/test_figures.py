"""The figures of an identification: all can be drawn, nothing overlaps, the PDF has all pages."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import msgspec
import numpy as np
import pytest
from acceptance import ONLY
from identification_report_example import METHODS, make_example, make_trace
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.text import Text

from estimation.identification.evaluation.traces import Trace
from estimation.identification.report.figures import draw_figures, write_figures
from estimation.identification.report.friction_law import find_friction
from estimation.identification.report.layout import NamedSheet
from estimation.identification.report.thinning import longest_part, runs, thin, with_gaps
from estimation.identification.result import Identification
from estimation.reporting.palette import PALETTE

pytestmark = pytest.mark.chain

Case = Callable[[], tuple[Identification, tuple[Trace, ...]]]


def make_hollow() -> tuple[Identification, tuple[Trace, ...]]:
    """Numbers that are none, traces of nothing but them, and a joint that was never used."""
    result, traces = make_example(2, methods=("uls",), rows=200)
    method = msgspec.structs.replace(
        result.methods[0],
        identification=msgspec.structs.replace(
            result.methods[0].identification, moving=math.nan, per_joint=(math.nan, 1e9)
        ),
        validation=msgspec.structs.replace(result.methods[0].identification, moving=math.inf),
        min_pseudo_inertia_eigenvalue=-math.inf,
        seconds=math.nan,
    )
    base = tuple(
        msgspec.structs.replace(
            each, sigma=math.inf, low=-math.inf, high=math.inf, relative_percent=math.inf, cad=0.0
        )
        for each in result.base_parameters
    )
    nothing = np.full_like(traces[0].measured_nm, math.nan)
    first, second = traces
    result = msgspec.structs.replace(
        result,
        methods=(method,),
        base_parameters=base,
        parameters=(),
        residuals=(),
        simulation=None,
        condition=math.inf,
        condition_scaled=math.inf,
        singular_values=(10.0, 0.0, math.nan),
        floor_percent=math.nan,
        floor_all_rows_percent=math.nan,
        cutoff_hz=math.nan,
    )
    empty = {name: getattr(second, name)[:0] for name in ("t_s", "use", "dq_rad_s")}
    empty |= dict.fromkeys(("measured_nm", "raw_nm", "predicted_nm"), nothing[:0])
    hollow = Trace(
        title=first.title,
        file=first.file,
        period_s=first.period_s,
        t_s=first.t_s,
        dq_rad_s=np.zeros_like(first.dq_rad_s),
        measured_nm=nothing,
        raw_nm=nothing,
        predicted_nm=nothing,
        use=np.zeros_like(first.use),
    )
    none = Trace(title="validation", file="none.h5", period_s=0.01, **empty)
    return result, (hollow, none)


def make_wild() -> tuple[Identification, tuple[Trace, ...]]:
    """Names that nobody should give, and estimates far from CAD."""
    result, traces = make_example(3, terms=("viscous", "coulomb", "stribeck", "asymmetric"))
    base = tuple(
        msgspec.structs.replace(each, value=1e6 * each.value, low=-1e7, high=1e7)
        for each in result.base_parameters
    )
    parameters = tuple(
        msgspec.structs.replace(each, joint="$\\frac{関節" * 9) for each in result.parameters
    )
    changes: dict[str, Any] = {"robot": "\U0001f9be$_{" * 30, "base_parameters": base}
    return msgspec.structs.replace(result, parameters=parameters, **changes), traces


CASES: dict[str, Case] = {
    "4 joints": make_example,
    "1 joint, 1 method": lambda: make_example(1, methods=("uls",)),
    "7 joints, no CAD, no validation": lambda: make_example(
        7, has_validation=False, has_cad=False, is_mock=False
    ),
    "12 joints": lambda: make_example(12, rows=2000),
    "no trace": lambda: (make_example(2)[0], ()),
    "no parameters": lambda: make_example(2, base_parameters=(), parameters=()),
    "no numbers": make_hollow,
    "wild": make_wild,
}


QUICK = {"4 joints", "no numbers", "wild"}
"""Under `make test`: the usual, nothing to draw, and whatever a terminal or a font may choke on."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(case, id=name, marks=() if name in QUICK else ONLY)
        for name, case in CASES.items()
    ],
)
def figures(request: pytest.FixtureRequest) -> tuple[NamedSheet, ...]:
    drawn = draw_figures(*request.param())
    for figure in drawn:
        FigureCanvasAgg(figure.sheet).draw()
    return drawn


def visible_texts(figure: NamedSheet) -> list[Text]:
    hidden = set()
    for axes in figure.sheet.axes:
        for axis in (axes.xaxis, axes.yaxis):
            shown = {id(text) for text in axis.get_ticklabels(which="both")}
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in (*axis.majorTicks, *axis.minorTicks):
                is_in = low - slack <= tick.get_loc() <= high + slack
                for text in (tick.label1, tick.label2):
                    if id(text) not in shown or not is_in:
                        hidden.add(id(text))
    return [
        text
        for text in figure.sheet.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def test_no_text_lies_on_another_or_outside_the_sheet(figures: tuple[NamedSheet, ...]) -> None:
    for figure in figures:
        legends = figure.sheet.findobj(Legend)
        inside = {id(text) for legend in legends for text in legend.get_texts()}
        texts = [*(t for t in visible_texts(figure) if id(t) not in inside), *legends]
        boxes = [_ink(text) for text in texts]
        size = figure.sheet.bbox
        for text, box in zip(texts, boxes, strict=True):
            assert box.x0 >= -1 and box.y0 >= -1, (figure.name, text)
            assert box.x1 <= size.width + 1 and box.y1 <= size.height + 1, (figure.name, text)
        pairs = itertools.combinations(zip(texts, boxes, strict=True), 2)
        for (one, first), (two, second) in pairs:
            overlap = first.padded(-1.0).overlaps(second.padded(-1.0))
            assert not overlap, (figure.name, one, two)


def _ink(text: Any) -> Any:
    """The title keeps an empty line for the legend, which is no ink."""
    box = text.get_window_extent()
    if isinstance(text, Text) and text.get_text().endswith("\n "):
        box = type(box).from_extents(box.x0, (box.y0 + box.y1) / 2.0, box.x1, box.y1)
    return box


def test_every_axis_says_what_it_shows_in_which_unit(figures: tuple[NamedSheet, ...]) -> None:
    for figure in figures:
        panels = figure.sheet.axes
        for side in ("x", "y"):
            labels = [getattr(axes, f"get_{side}label")() for axes in panels]
            if figure.name == "methods" and side == "y":
                continue  # names of methods
            assert any(labels), (figure.name, side)
            for label in labels:
                assert not label or re.search(r"\S \(.+\)$", label), (figure.name, label)


def test_only_the_lowest_panels_of_joints_say_what_they_are_over() -> None:
    """Every panel without a label of its own stands above one that has it."""
    figures = {figure.name: figure.sheet for figure in draw_figures(*make_example(7, rows=500))}
    panels = figures["torques1"].axes
    labelled = [bool(axes.get_xlabel()) for axes in panels]
    assert labelled == [False] * 5 + [True] * 2
    assert [bool(axes.get_ylabel()) for axes in panels] == [True, False] * 3 + [True]


def test_texts_can_be_read_and_sheets_fit_on_a4(figures: tuple[NamedSheet, ...]) -> None:
    for figure in figures:
        assert min(text.get_fontsize() for text in visible_texts(figure)) >= 7.0
        width, height = figure.sheet.get_size_inches()
        assert width <= 8.27 - 0.8 and height <= 11.69 - 0.8


def test_what_is_drawn_when() -> None:
    def names(joints: int, **options: Any) -> list[str]:
        return [figure.name for figure in draw_figures(*make_example(joints, rows=300, **options))]

    assert names(2) == [
        *("methods", "torques1", "torques2", "residuals1", "residuals2"),
        *("spectra", "friction", "parameters", "singular-values"),
    ]
    assert "torques2" not in names(1, has_validation=False)


def test_the_pdf_has_all_pages_and_says_what_it_is(tmp_path: Path) -> None:
    result, traces = make_example(4)
    path = tmp_path / "figures.pdf"
    path.write_text("what was there")
    write_figures(path, result, traces)
    data = path.read_bytes()
    assert data.startswith(b"%PDF-1.") and data.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", data)) == 9
    assert b"Identification of laas4" in data and b"armature 0.1.0" in data
    assert b"/Subtype /Image" not in data and b"CreationDate" not in data
    assert len(data) < 2_000_000
    assert [entry.name for entry in tmp_path.iterdir()] == ["figures.pdf"]


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    result, traces = make_example(1, rows=500)
    for name in ("one.pdf", "two.pdf"):
        write_figures(tmp_path / name, result, traces)
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    result, traces = make_example(1, rows=100)
    with pytest.raises(OSError):
        write_figures(tmp_path / "missing" / "figures.pdf", result, traces)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
def test_drawing_leaves_global_settings_alone() -> None:
    before = dict(mpl.rcParams)
    draw_figures(*make_example(1, rows=100))
    assert dict(mpl.rcParams) == before
    code = "import sys, estimation.identification.report.figures; "
    code += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_floor_and_all_methods_are_in_the_comparison() -> None:
    result, _ = make_example(2)
    sheet = draw_figures(result, ())[0].sheet
    total = sheet.axes[0]
    labels = [text.get_text() for text in total.get_yticklabels()]
    assert labels == [name + (" ✓" if name == "cls2" else "") for name in METHODS]
    floors = [line for line in total.lines if str(line.get_label()).startswith("floor")]
    assert [line.get_xdata()[0] for line in floors] == [result.floor_percent]
    widths = [bar.get_width() for bar in total.patches]
    assert widths[: len(METHODS)] == list(METHODS.values())


def test_parameters_stand_relative_to_cad() -> None:
    result, _ = make_example(2)
    figures = {figure.name: figure.sheet for figure in draw_figures(result, ())}
    base = next(each for each in result.base_parameters if each.symbol == "fv1")
    panels = [
        (axes, [text.get_text() for text in axes.get_yticklabels()])
        for axes in figures["parameters"].axes
    ]
    axes, rows = next(panel for panel in panels if "fv1" in panel[1])
    truth = next(line for line in axes.lines if line.get_label() == "truth")
    assert base.true is not None and base.cad
    expected = 100.0 * (base.true - base.cad) / base.cad
    assert truth.get_xdata()[rows.index("fv1")] == pytest.approx(expected)


def test_friction_steps_at_standstill_and_has_all_its_terms() -> None:
    terms = ("viscous", "coulomb", "offset", "asymmetric", "stribeck")
    result, _ = make_example(2, terms=terms)
    value = {parameter.symbol: parameter.value for parameter in result.parameters}
    law = find_friction(result)[1].identified
    assert law is not None
    speeds = np.array([-2.0, 2.0])
    expected = (
        value["fv2"] * speeds
        + value["fc2"] * np.sign(speeds)
        + value["off2"]
        + value["fva2"] * np.abs(speeds)
    )
    assert law.torque_nm(speeds) == pytest.approx(expected)
    assert law.breakaway_nm[1] == pytest.approx(value["off2"] + value["fc2"] + value["fst2"])


def test_friction_is_known_from_base_parameters_alone() -> None:
    result, _ = make_example(12, parameters=(), has_cad=False, is_mock=False)
    laws = find_friction(result)
    value = {base.symbol: base.value for base in result.base_parameters}
    assert laws[11].identified and laws[11].identified.coulomb_nm == value["fc12"]
    assert laws[0].identified and laws[0].identified.coulomb_nm == value["fc1"]
    assert laws[0].cad is None and laws[0].true is None


def test_torques_are_drawn_in_the_colours_of_their_legend() -> None:
    figures = {figure.name: figure.sheet for figure in draw_figures(*make_example(1))}
    colors = {line.get_label(): line.get_color() for line in figures["torques1"].axes[0].lines}
    assert colors["measured, filtered"] == PALETTE["forward"]
    assert colors["predicted"] == PALETTE["backward"]


def test_thinning_keeps_peaks_order_and_gaps() -> None:
    t_s = np.arange(20_000) * 0.01
    values = np.sin(t_s)
    values[12_345], values[777] = 9.0, -9.0
    values[5000:5100] = np.nan
    times, shown = thin(t_s, values, 1000)
    assert len(times) <= 1010
    assert np.nanmax(shown) == 9.0 and np.nanmin(shown) == -9.0
    assert (np.diff(times) > 0.0).all()
    assert np.isnan(shown[(times >= 50.0) & (times < 51.0)]).all()
    assert thin(t_s[:10], values[:10], 1000)[0] is not None


def test_gaps_break_lines_and_spectra() -> None:
    trace = make_trace("identification", 1, rows=101)
    t_s, values = with_gaps(trace.t_s, trace.measured_nm[:, 0], trace.period_s)
    assert np.flatnonzero(np.isnan(values)).tolist() == [50]
    assert len(t_s) == 102
    assert longest_part(trace.t_s, trace.period_s) == slice(50, 101)
    assert longest_part(trace.t_s[:0], 0.01) == slice(0, 0)


def test_runs_are_found_at_both_ends() -> None:
    flags = np.array([True, False, True, True, False, True])
    assert runs(flags) == [(0, 1), (2, 4), (5, 6)]
    assert runs(np.zeros(3, bool)) == []
