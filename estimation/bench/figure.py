"""The figure of the friction bench, after Figure 4.4 of seed 003: for A4 paper, PNG, PDF and SVG.

Drawn without pyplot, display or global settings; the same result gives the same bytes. Nothing is
fitted here. A load arm measures the torque constant instead of friction and has its own figure.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from estimation.bench.palette import PALETTE
from estimation.bench.panels import draw_friction, draw_load_arm
from estimation.bench.picture import BenchPicture
from estimation.bench.result import BenchResult
from estimation.bench.result_file import replace_file
from estimation.bench.words import date_text, shorten

_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE: Final = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    **dict.fromkeys(_INKED, PALETTE["ink"]),
    "figure.facecolor": PALETTE["paper"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALETTE["grid"],
    "grid.linewidth": 0.5,
    "axes.linewidth": 0.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.5,
    "hatch.color": PALETTE["muted"],
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-4, 6),
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "armature",
}
_WIDTH_IN, _HEIGHT_IN, _LOAD_HEIGHT_IN = 7.09, 9.9, 6.2  # the text block of an A4 page
_PNG_DPI = 200


class BenchFigure(Figure):
    """A figure that knows what it shows.

    Attributes:
        description: Title, subject and maker for the file's metadata.
    """

    description: dict[str, str]


def _style() -> AbstractContextManager[None]:
    return matplotlib.style.context(_STYLE, after_reset=True)


def draw_bench(result: BenchResult, picture: BenchPicture) -> BenchFigure:
    """Draw everything about one joint on one sheet.

    Args:
        result: What was found.
        picture: The traces and curves behind it.

    Returns:
        The figure: five panels, or torque over current with a load arm.
    """
    has_arm = picture.load_current_a is not None
    with _style():
        height_in = _LOAD_HEIGHT_IN if has_arm else _HEIGHT_IN
        layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, hspace=0.02, wspace=0.03)
        figure = BenchFigure(figsize=(_WIDTH_IN, height_in), layout=layout)
        what = "Torque constant" if has_arm else "Friction"
        heading = f"{what} of {shorten(result.joint, 32)}"
        details = (
            f"{shorten(result.robot, 24)}, {shorten(result.motor, 24)}, {shorten(result.kind, 16)}"
        )
        maker = f"armature {shorten(result.made_by, 24)}"
        source = shorten(Path(result.recording).name, 56)
        figure.description = {"Title": heading, "Subject": source, "Creator": maker}
        figure.suptitle(f"{heading} ({details})", fontsize=12, parse_math=False)
        footer = f"{source}  ·  {shorten(date_text(result.recorded_utc), 32)}  ·  {maker}"
        muted = PALETTE["muted"]
        figure.supxlabel(footer, x=0.99, ha="right", fontsize=7.5, color=muted, parse_math=False)
        if has_arm:
            draw_load_arm(figure, result, picture)
        else:
            draw_friction(figure, result, picture)
    return figure


def save_figure(figure: BenchFigure, path: Path) -> None:
    """Write a figure; the same figure gives the same bytes on any day.

    Args:
        figure: From `draw_bench`.
        path: Ends in .png (200 dpi) or .pdf (vectors, TrueType letters).

    Raises:
        ValueError: The path ends otherwise.
    """
    about: dict[str, Any] = dict(figure.description)
    suffix = path.suffix.lower()
    image = io.BytesIO()
    with _style():
        if suffix == ".png":
            about["Software"] = about.pop("Creator")
            figure.savefig(image, format="png", dpi=_PNG_DPI, metadata=about)
        elif suffix == ".pdf":
            figure.savefig(image, format="pdf", metadata={**about, "CreationDate": None})
        else:
            raise ValueError(f"cannot draw {path.name}: a figure's name ends in .png or .pdf")
    replace_file(path, image.getvalue())


def make_svg(figure: BenchFigure) -> str:
    """A figure as the text of an SVG document, without background.

    Args:
        figure: From `draw_bench`.

    Returns:
        XML; each plateau's mark in panel x is the group `plateau-x-NUMBER`.
    """
    text = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with _style():
        figure.savefig(text, format="svg", metadata=nothing, transparent=True)
    return text.getvalue()
