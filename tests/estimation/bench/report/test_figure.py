"""The figure of the bench: every run can be drawn, nothing overlaps, and bytes repeat."""

from __future__ import annotations

import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import msgspec
import numpy as np
import pytest
from acceptance import ONLY
from bench_examples import (
    B_NMS,
    COULOMB,
    F_NM,
    GEAR,
    make_bare_result,
    make_load_picture,
    make_load_result,
    make_picture,
    make_result,
)
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from estimation.bench.report.figure import draw_bench
from estimation.bench.report.picture import BenchPicture, true_curve
from estimation.bench.result import BenchResult, EstimatedQuantity
from estimation.reporting.palette import PALETTE
from estimation.reporting.sheet import Sheet, make_pdf, make_png, make_svg

pytestmark = pytest.mark.chain

A4_IN = (8.27, 11.69)
Case = Callable[[], tuple[BenchResult, BenchPicture]]


def _all_rejected() -> tuple[BenchResult, BenchPicture]:
    plateaus = tuple(
        msgspec.structs.replace(plateau, is_used=False, reason="of no use")
        for plateau in make_result().plateaus
    )
    return make_bare_result(plateaus=plateaus), BenchPicture()


def _one_plateau() -> tuple[BenchResult, BenchPicture]:
    whole = make_result()
    return make_result(plateaus=whole.plateaus[:1], drift_percent=float("nan")), make_picture()


def _scaled(factor: float) -> tuple[BenchResult, BenchPicture]:
    """All torques, currents and speeds times a factor."""
    result, picture = make_result(), make_picture()

    def times(value: Any) -> Any:
        if isinstance(value, EstimatedQuantity):
            return msgspec.structs.replace(value, value=value.value * factor, low=None, high=None)
        return None if value is None else value * factor

    fields = ("joint_velocity_rad_s", "motor_velocity_rad_s", "iq_a", "iq_sigma_a")
    plateaus = tuple(
        msgspec.structs.replace(
            plateau,
            **{name: times(getattr(plateau, name)) for name in (*fields, "motor_torque_nm")},
        )
        for plateau in result.plateaus
    )
    arrays = {
        name: getattr(picture, name) * factor
        for name in picture.__dataclass_fields__
        if isinstance(getattr(picture, name), np.ndarray) and name not in {"t_s", "angle_rad"}
    }
    curves = {name: curve * factor for name, curve in picture.model_curves.items()}
    scaled = BenchPicture(
        t_s=picture.t_s, angle_rad=picture.angle_rad, model_curves=curves, **arrays
    )
    values = {name: times(getattr(result, name)) for name in ("b_eq_nms", "f_nm", "f_motor_nm")}
    return msgspec.structs.replace(result, plateaus=plateaus, **values), scaled


def _long_names() -> tuple[BenchResult, BenchPicture]:
    return make_result(
        joint="$\\frac{joint" * 20,
        robot="a robot with quite a name " * 9,
        motor="motor\n$_{",
        recording="/data/" + "très_long_µ_" * 40 + "\udcff.h5",
        made_by="0.1.0+g0123456789ab.dirty",
        model="some_model_of_tomorrow",
    ), make_picture()


def _driven_backwards() -> tuple[BenchResult, BenchPicture]:
    """A motor whose current counts the other way round: the curve lies in the other quadrants."""
    result, picture = _scaled(1.0)
    plateaus = tuple(
        msgspec.structs.replace(plateau, motor_torque_nm=-(plateau.motor_torque_nm or 0.0))
        for plateau in result.plateaus
    )
    names = ("fit_nm", "band_low_nm", "band_high_nm")
    turned = {name: -getattr(picture, name) for name in names}
    grid = picture.band_motor_velocity_rad_s
    return (
        msgspec.structs.replace(result, plateaus=plateaus),
        BenchPicture(band_motor_velocity_rad_s=grid, **turned),
    )


CASES: dict[str, Case] = {
    "whole run": lambda: (make_result(), make_picture()),
    "load arm": lambda: (make_load_result(), make_load_picture()),
    "load arm without anything": lambda: (
        make_bare_result(),
        BenchPicture(load_current_a=np.empty(0)),
    ),
    "load arm with points alone": lambda: (
        make_load_result(),
        BenchPicture(load_current_a=np.ones(1), load_torque_motor_nm=np.ones(1)),
    ),
    "nothing known": lambda: (make_bare_result(), BenchPicture()),
    "no plateau": lambda: (make_bare_result(plateaus=()), BenchPicture()),
    "all rejected": _all_rejected,
    "one plateau": _one_plateau,
    "huge": lambda: _scaled(1e9),
    "beyond all prefixes": lambda: _scaled(1e17),
    "tiny": lambda: _scaled(1e-9),
    "long names": _long_names,
    "driven backwards": _driven_backwards,
}


RARE = ("huge", "no plateau")
"""What a case beside them shows just as well."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=ONLY if name in RARE else ())
        for name, case in CASES.items()
    ],
)
def test_every_sheet_can_be_read(case: Case) -> None:
    figure = draw_bench(*case())
    FigureCanvasAgg(figure).draw()
    check_that_no_text_lies_on_another_or_outside_the_sheet(figure)
    check_that_words_in_panel_a_keep_clear_of_the_plateaus(figure)
    check_that_every_axis_says_what_it_shows_in_which_unit(figure)
    check_that_texts_are_large_and_the_sheet_fits_on_a4(figure)


@pytest.fixture(scope="module")
def whole_run() -> Sheet:
    return draw_bench(make_result(), make_picture())


def _visible_texts(figure: Figure) -> list[Text]:
    return [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and not _is_hidden_tick(figure, text)
    ]


def _is_hidden_tick(figure: Figure, text: Text) -> bool:
    """Whether it is the label of a tick that is not drawn: outside the limits, or switched off."""
    for axes in _all_axes(figure):
        for axis in (axes.xaxis, axes.yaxis):
            for tick in (*axis.majorTicks, *axis.minorTicks):
                if text in {tick.label1, tick.label2}:
                    return text not in axis.get_ticklabels(which="both") or not _in_view(axis, tick)
    return False


def _all_axes(figure: Figure) -> list[Any]:
    return [each for axes in figure.axes for each in (axes, *axes.child_axes)]


def _in_view(axis: Any, tick: Any) -> bool:
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    return bool(low - slack <= tick.get_loc() <= high + slack)


def check_that_no_text_lies_on_another_or_outside_the_sheet(figure: Figure) -> None:
    legends = figure.findobj(Legend)
    inside = {text for legend in legends for text in legend.get_texts()}
    texts = [*(text for text in _visible_texts(figure) if text not in inside), *legends]
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 >= 0 and box.y0 >= 0, text
        assert box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height, text
    for (one, first), (two, second) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not first.padded(-0.5).overlaps(second.padded(-0.5)), (one, two)


def check_that_words_in_panel_a_keep_clear_of_the_plateaus(figure: Figure) -> None:
    axes = figure.axes[0]
    frames = [text.get_bbox_patch() for text in axes.texts if text.get_bbox_patch()]
    legends = [child for child in axes.get_children() if isinstance(child, Legend)]
    areas = [each.get_window_extent() for each in (*frames, *legends) if each]
    assert not any(first.overlaps(second) for first, second in itertools.combinations(areas, 2))
    marks = [line for line in axes.lines if str(line.get_gid()).startswith("plateau")]
    for line in marks:
        x, y = axes.transData.transform((line.get_xdata()[0], line.get_ydata()[0]))
        hollow = line.get_marker() in {"X", "^", "v"}
        assert hollow or not any(area.contains(x, y) for area in areas), line.get_gid()


def check_that_every_axis_says_what_it_shows_in_which_unit(figure: Figure) -> None:
    for axes in _all_axes(figure):
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [text for text in axis.get_ticklabels() if text.get_visible()]
            if axis.get_visible() and any(text.get_text() for text in ticks):
                assert re.search(r"\S \(.+\)$", axis.get_label_text()), axes


def check_that_texts_are_large_and_the_sheet_fits_on_a4(figure: Figure) -> None:
    assert min(text.get_fontsize() for text in _visible_texts(figure)) >= 7.0
    width, height = figure.get_size_inches()
    assert width <= A4_IN[0] - 0.8 and height <= A4_IN[1] - 0.8


def _gids(figure: Figure, panel: str) -> dict[int, Any]:
    lines = {str(line.get_gid()): line for axes in figure.axes for line in axes.lines}
    start = f"plateau-{panel}-"
    return {int(gid.removeprefix(start)): x for gid, x in lines.items() if gid.startswith(start)}


def test_plateaus_stand_where_they_were_measured(whole_run: Sheet) -> None:
    result = make_result()
    marks = _gids(whole_run, "a")
    measured = [plateau for plateau in result.plateaus if plateau.motor_torque_nm is not None]
    assert set(marks) == {plateau.number for plateau in measured}
    for plateau in measured:
        line = marks[plateau.number]
        assert line.get_xdata()[0] == plateau.motor_velocity_rad_s
        if not plateau.is_used:
            assert line.get_markerfacecolor() == PALETTE["paper"]
            continue
        assert line.get_ydata()[0] == plateau.motor_torque_nm
        is_forward = plateau.joint_velocity_rad_s > 0.0
        assert line.get_color() == PALETTE["forward" if is_forward else "backward"]
        assert line.get_marker() == ("o" if is_forward else "s")


def test_what_is_off_scale_is_an_arrow_at_the_edge(whole_run: Sheet) -> None:
    arrow = _gids(whole_run, "a")[41]
    high = whole_run.axes[0].get_ylim()[1]
    assert arrow.get_marker() == "^"
    assert 0.9 * high < arrow.get_ydata()[0] < high
    assert high < 1.4 * F_NM / GEAR


def test_residuals_and_drift_are_relative_to_the_fit_of_their_direction() -> None:
    picture = make_picture()
    grid = picture.band_motor_velocity_rad_s
    flat = np.where(grid > 0.0, 4e-3, -4e-3)
    fit_up = BenchPicture(
        band_motor_velocity_rad_s=grid, fit_nm=flat, band_low_nm=flat, band_high_nm=flat
    )
    result = make_result()
    figure = draw_bench(result, fit_up)
    plateau = result.plateaus[3]
    assert plateau.motor_torque_nm and result.f_motor_nm
    residual = plateau.motor_torque_nm + 4e-3
    assert _gids(figure, "b")[4].get_ydata()[0] == pytest.approx(residual)
    percent = -100.0 * residual / result.f_motor_nm.value
    assert _gids(figure, "e")[4].get_ydata()[0] == pytest.approx(percent)


def test_the_truth_is_drawn_where_it_is_known(whole_run: Sheet) -> None:
    unknown = make_result(f_motor_nm=EstimatedQuantity(value=F_NM / GEAR))
    for figure, is_drawn in ((whole_run, True), (draw_bench(unknown, make_picture()), False)):
        _, labels = figure.axes[0].get_legend_handles_labels()
        assert ("truth" in labels) == is_drawn


def test_the_truth_knows_the_losses_of_the_gear() -> None:
    """A bug: the load's friction was divided by the reduction alone."""
    result = make_result(f_motor_nm=COULOMB.times(1.0 / GEAR / 0.7))
    forward, rest, backward = true_curve(result, np.array([10.0, 0.0, -10.0]))
    assert forward == -backward == pytest.approx(10.0 * B_NMS + F_NM / GEAR / 0.7)
    assert np.isnan(rest)


def test_second_axes_show_the_load_side(whole_run: Sheet) -> None:
    axes = whole_run.axes[0]
    FigureCanvasAgg(whole_run).draw()
    top, right = axes.child_axes
    assert np.array(top.get_xlim()) * GEAR == pytest.approx(axes.get_xlim())
    assert np.array(right.get_ylim()) / GEAR == pytest.approx(axes.get_ylim())


def _luminance(color: str) -> float:
    channels = np.array([int(color[start : start + 2], 16) / 255.0 for start in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_directions_differ_on_grey_paper() -> None:
    dark, light = sorted(_luminance(PALETTE[name]) for name in ("forward", "backward"))
    assert (light + 0.05) / (dark + 0.05) > 3.0


SAID = (b"Friction of joint3", b"20250612T091502-joint3.h5", b"armature 0.1.0")


def test_png_has_200_dpi_and_says_what_it_is(whole_run: Sheet) -> None:
    data = make_png(whole_run)
    height, width, _ = matplotlib.image.imread(io.BytesIO(data)).shape
    assert (width, height) == tuple((whole_run.get_size_inches() * 200).astype(int))
    assert all(needle in data for needle in SAID)


def test_pdf_is_vectors_with_letters_and_says_what_it_is(whole_run: Sheet) -> None:
    data = make_pdf([whole_run])
    assert data.startswith(b"%PDF-1.") and data.rstrip().endswith(b"%%EOF")
    assert all(needle in data for needle in SAID)
    assert b"/FontFile2" in data and b"/Type3" not in data
    assert b"/Subtype /Image" not in data
    assert b"CreationDate" not in data
    sizes = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
    assert sizes and float(sizes[1]) < 595 and float(sizes[2]) < 842


MAKE = """
import sys
from pathlib import Path
from test_figure import write_all

write_all(Path(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
"""


def write_all(directory: Path) -> None:
    figure = draw_bench(make_result(), make_picture())
    (directory / "figure.png").write_bytes(make_png(figure))
    (directory / "figure.pdf").write_bytes(make_pdf([figure]))
    (directory / "figure.svg").write_text(make_svg(figure))


@pytest.mark.system
def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    write_all(ours)
    # Settings of whoever runs it must not show.
    (theirs / "matplotlibrc").write_text("axes.labelsize: 20\n")
    environment = {**os.environ, "PYTHONHASHSEED": "2", "MATPLOTLIBRC": str(theirs)}
    support = Path(__file__).parents[3] / "support"
    environment["PYTHONPATH"] = os.pathsep.join([str(support), str(Path(__file__).parent)])
    command = [sys.executable, "-W", "error", "-c", MAKE, str(theirs)]
    subprocess.run(command, check=True, env=environment)
    for name in ("figure.png", "figure.pdf", "figure.svg"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_drawing_leaves_global_settings_alone() -> None:
    before = dict(matplotlib.rcParams)
    make_svg(draw_bench(make_load_result(), make_load_picture()))
    assert dict(matplotlib.rcParams) == before


@pytest.mark.system
def test_results_are_read_without_matplotlib() -> None:
    code = "import sys, estimation.bench.result, estimation.bench.report.picture; "
    code += "assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
