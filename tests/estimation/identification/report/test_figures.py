"""The figures of an identification: all can be drawn, nothing overlaps, the PDF has all pages."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
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
from estimation.identification.report.figures import draw_figures
from estimation.identification.report.layout import NamedSheet
from estimation.identification.report.parameter_sheets import draw_singular_values, find_friction
from estimation.identification.report.time_sheets import (
    draw_torques,
    longest_part,
    runs,
    thin,
    with_gaps,
)
from estimation.identification.result import Identification
from estimation.reporting.palette import PALETTE
from estimation.reporting.sheet import Sheet, make_pdf

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
    result, traces = make_example(2, terms=("viscous", "coulomb", "stribeck", "asymmetric"))
    base = tuple(
        msgspec.structs.replace(each, value=1e6 * each.value, low=-1e7, high=1e7)
        for each in result.base_parameters
    )
    parameters = tuple(
        msgspec.structs.replace(each, joint="$\\frac{関節" * 9) for each in result.parameters
    )
    changes: dict[str, Any] = {"robot": "\U0001f9be$_{" * 30, "base_parameters": base}
    return msgspec.structs.replace(result, parameters=parameters, **changes), traces


RESULT, TRACES = make_example(
    2, rows=300, terms=("viscous", "coulomb", "offset", "asymmetric", "stribeck")
)
CASES: dict[str, Case] = {
    "2 joints": lambda: (RESULT, TRACES),
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


QUICK = {"2 joints", "no numbers", "wild"}
"""Under `make test`: the usual, nothing to draw, and whatever a terminal or a font may choke on."""


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


@functools.cache
def draw_case(name: str) -> tuple[NamedSheet, ...]:
    before = dict(mpl.rcParams)
    drawn = draw_figures(*CASES[name]())
    assert dict(mpl.rcParams) == before
    return drawn


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else ONLY) for name in CASES]
)
def test_sheets_can_be_read(name: str) -> None:
    """No text lies on another or outside, axes have units, letters a size, and all fits on A4."""
    for figure in draw_case(name):
        FigureCanvasAgg(figure.sheet).draw()
        texts = visible_texts(figure)
        assert min(text.get_fontsize() for text in texts) >= 7.0
        width, height = figure.sheet.get_size_inches()
        assert width <= 8.27 - 0.8 and height <= 11.69 - 0.8
        assert_apart(figure, texts)
        assert_labelled(figure)


def assert_apart(figure: NamedSheet, visible: list[Text]) -> None:
    legends = figure.sheet.findobj(Legend)
    inside = {id(text) for legend in legends for text in legend.get_texts()}
    texts = [*(text for text in visible if id(text) not in inside), *legends]
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


def assert_labelled(figure: NamedSheet) -> None:
    for side in ("x", "y"):
        labels = [getattr(axes, f"get_{side}label")() for axes in figure.sheet.axes]
        if figure.name == "methods" and side == "y":
            continue  # names of methods
        assert any(labels), (figure.name, side)
        for label in labels:
            assert not label or re.search(r"\S \(.+\)$", label), (figure.name, label)


def test_only_the_lowest_panels_of_joints_say_what_they_are_over() -> None:
    """Every panel without a label of its own stands above one that has it."""
    result, traces = make_example(7, rows=100)
    panels = draw_torques(result, traces[0]).axes
    labelled = [bool(axes.get_xlabel()) for axes in panels]
    assert labelled == [False] * 5 + [True] * 2
    assert [bool(axes.get_ylabel()) for axes in panels] == [True, False] * 3 + [True]


@pytest.fixture(scope="module")
def sheets() -> dict[str, Sheet]:
    return {figure.name: figure.sheet for figure in draw_case("2 joints")}


def test_what_is_drawn_when(sheets: dict[str, Sheet]) -> None:
    assert list(sheets) == [
        *("methods", "torques1", "torques2", "residuals1", "residuals2"),
        *("spectra", "friction", "parameters", "singular-values"),
    ]
    result, _ = make_example(1, has_validation=False)
    without = [figure.name for figure in draw_figures(result, ())]
    assert without == ["methods", "friction", "parameters", "singular-values"]


def test_the_pdf_has_all_pages_and_says_what_it_is(sheets: dict[str, Sheet]) -> None:
    data = make_pdf(list(sheets.values()))
    assert data.startswith(b"%PDF-1.") and data.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", data)) == 9
    assert b"Identification of laas4" in data and b"armature 0.1.0" in data
    assert b"/Subtype /Image" not in data and b"CreationDate" not in data
    assert len(data) < 2_000_000


def test_the_same_result_gives_the_same_bytes() -> None:
    one, two = (make_pdf([draw_singular_values(RESULT)]) for _ in range(2))
    assert one == two


def test_the_floor_and_all_methods_are_in_the_comparison(sheets: dict[str, Sheet]) -> None:
    total = sheets["methods"].axes[0]
    labels = [text.get_text() for text in total.get_yticklabels()]
    assert labels == [name + (" ✓" if name == "cls2" else "") for name in METHODS]
    floors = [line for line in total.lines if str(line.get_label()).startswith("floor")]
    assert [line.get_xdata()[0] for line in floors] == [RESULT.floor_percent]
    widths = [bar.get_width() for bar in total.patches]
    assert widths[: len(METHODS)] == list(METHODS.values())


def test_parameters_stand_relative_to_cad(sheets: dict[str, Sheet]) -> None:
    base = next(each for each in RESULT.base_parameters if each.symbol == "fv1")
    panels = [
        (axes, [text.get_text() for text in axes.get_yticklabels()])
        for axes in sheets["parameters"].axes
    ]
    axes, rows = next(panel for panel in panels if "fv1" in panel[1])
    truth = next(line for line in axes.lines if line.get_label() == "truth")
    assert base.true is not None and base.cad
    expected = 100.0 * (base.true - base.cad) / base.cad
    assert truth.get_xdata()[rows.index("fv1")] == pytest.approx(expected)


def test_friction_steps_at_standstill_and_has_all_its_terms(sheets: dict[str, Sheet]) -> None:
    value = {parameter.symbol: parameter.value for parameter in RESULT.parameters}
    lines = {line.get_label(): line for line in sheets["friction"].axes[1].lines}
    speed, torque = lines["identified"].get_data()
    breakaway = value["fc2"] + value["fst2"]
    for row, sign in ((0, -1.0), (len(speed) // 2 - 1, -1.0), (len(speed) // 2 + 1, 1.0)):
        expected = value["fv2"] * speed[row] + value["fc2"] * sign
        expected += value["off2"] + value["fva2"] * abs(speed[row])
        assert torque[row] == pytest.approx(expected)
    at_rest = lines["identified, at standstill"].get_ydata()
    assert at_rest == pytest.approx([value["off2"] - breakaway, value["off2"] + breakaway])


def test_friction_is_known_from_base_parameters_alone() -> None:
    result, _ = make_example(12, parameters=(), has_cad=False, is_mock=False)
    laws = find_friction(result)
    value = {base.symbol: base.value for base in result.base_parameters}
    assert laws[11]["identified"]["coulomb"] == value["fc12"]
    assert laws[0]["identified"]["coulomb"] == value["fc1"]
    assert list(laws[0]) == ["identified"]


def test_torques_are_drawn_in_the_colours_of_their_legend(sheets: dict[str, Sheet]) -> None:
    colors = {line.get_label(): line.get_color() for line in sheets["torques1"].axes[0].lines}
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
