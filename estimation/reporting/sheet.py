"""Sheets of figures: one look for all of them, and how they become PDF, PNG and SVG.

Drawn without pyplot, display or global settings; the same sheet gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final

import matplotlib.style
from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine

from estimation.reporting.palette import PALETTE

_FONTS: Final = ("STIXGeneral", "DejaVu Sans")
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE: Final = {
    "font.family": list(_FONTS),
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
WIDTH_IN: Final = 7.09
"""Of the text block of an A4 page."""
HEIGHT_MAX_IN: Final = 9.9
PNG_DPI: Final = 200


class Sheet(Figure):
    """A figure that knows what it shows.

    Attributes:
        description: Title, subject and maker for the file's metadata.
    """

    description: dict[str, str]


def sheet_style() -> AbstractContextManager[None]:
    """Our look, instead of the settings of whoever runs this; for drawing and for writing."""
    return matplotlib.style.context(_STYLE, after_reset=True)


def make_sheet(height_in: float, description: dict[str, str]) -> Sheet:
    """Return an empty sheet, to be made and drawn on within `sheet_style`."""
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, hspace=0.02, wspace=0.03)
    sheet = Sheet(figsize=(WIDTH_IN, height_in), layout=layout)
    sheet.description = description
    return sheet


def write_heading(sheet: Sheet, title: str, footer: str) -> None:
    """Title above and origin below; neither is taken for mathematics."""
    sheet.suptitle(title, fontsize=12, parse_math=False)
    look: dict[str, Any] = {"fontsize": 7.5, "color": PALETTE["muted"], "parse_math": False}
    sheet.supxlabel(footer, x=0.99, ha="right", **look)


def settle(sheet: Sheet) -> None:
    """Fix where everything stands, so that writing a sheet twice does not lay it out twice."""
    engine = sheet.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        # Panels that have found their size may have other ticks, whose numbers are longer.
        engine.set(w_pad=0.1)
        engine.execute(sheet)
        sheet.set_layout_engine("none")


def make_png(sheet: Sheet) -> bytes:
    """Return a sheet as a picture of 200 dpi."""
    about = dict(sheet.description)
    about["Software"] = about.pop("Creator")
    image = io.BytesIO()
    with sheet_style():
        sheet.savefig(image, format="png", dpi=PNG_DPI, metadata=about)
    return image.getvalue()


def make_pdf(sheets: Sequence[Sheet]) -> bytes:
    """Sheets as the pages of a document, which the first describes: vectors, TrueType letters."""
    document = io.BytesIO()
    about: dict[str, Any] = {**sheets[0].description, "CreationDate": None}
    with sheet_style(), PdfPages(document, metadata=about) as pages:
        for sheet in sheets:
            # `savefig` would draw everything twice.
            FigureCanvasPdf(sheet).print_pdf(pages)  # type: ignore[no-untyped-call]
    return document.getvalue()


def make_svg(sheet: Sheet) -> str:
    """Return a sheet as SVG, without background; what was drawn with a `gid` is a group."""
    text = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with sheet_style():
        sheet.patch.set_visible(False)
        FigureCanvasSVG(sheet).print_svg(  # type: ignore[no-untyped-call]
            text, metadata=nothing
        )
        sheet.patch.set_visible(True)
    return text.getvalue()


def drawable(text: str) -> str:
    """Return a text from outside of which our fonts have all letters; others are replaced."""
    known = _letters()
    return "".join(letter if ord(letter) in known else "�" for letter in text)


@cache
def _letters() -> frozenset[int]:
    return frozenset().union(*(get_font(findfont(name)).get_charmap() for name in _FONTS))
