"""Lays out sheets with one panel per joint and a common legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from estimation.identification.result import Identification
from estimation.reporting.numbers import shorten
from estimation.reporting.sheet import (
    HEIGHT_MAX_IN,
    Sheet,
    drawable,
    make_sheet,
    make_svg,
    settle,
    sheet_style,
    write_heading,
)

_AROUND_IN = 1.0
"""Title, legend, lowest labels and footer."""
_TITLE_IN = 0.27
_LAST = ("truth", "floor")
"""Legends end with these."""


@dataclass(frozen=True, slots=True)
class NamedSheet:
    """A sheet of the report.

    Attributes:
        name: Such as `friction`, for ids.
        title: Above it.
        sheet: The figure.
    """

    name: str
    title: str
    sheet: Sheet

    def svg(self) -> str:
        """Return the figure as the text of an SVG document."""
        return make_svg(self.sheet)


@dataclass(frozen=True, slots=True)
class Cells:
    """How panels are laid out.

    Attributes:
        columns: Panels beside each other.
        height_in: Of a panel, with its labels, unless there are too many for a sheet.
    """

    columns: int
    height_in: float


def start_sheet(
    result: Identification, title: str, height_in: float, *, has_legend: bool = True
) -> Sheet:
    """Return an empty sheet of the report, within `sheet_style`; at most as high as paper.

    With a legend, room for that of `finish_sheet` is left below the title.
    """
    robot = drawable(shorten(result.robot, 32))
    maker = f"armature {drawable(shorten(result.armature_version, 24))}"
    about = {"Title": f"Identification of {robot}", "Subject": title, "Creator": maker}
    sheet = make_sheet(min(height_in, HEIGHT_MAX_IN), about)
    mark = "\n " if has_legend else ""  # an empty line, in which the legend stands
    mock = "  ·  simulated" if result.is_mock else ""
    write_heading(sheet, f"{title}{mark}", f"{robot}{mock}  ·  method {result.chosen}  ·  {maker}")
    return sheet


def joint_panels(
    result: Identification,
    title: str,
    cells: Cells,
    draw: Callable[[Axes, int], None],
    *,
    labels: tuple[str, str],
) -> Sheet:
    """Return a sheet with one panel per joint, all with the same horizontal axis.

    Args:
        result: What was identified.
        title: What the sheet shows.
        cells: How the panels are laid out.
        draw: Draws a joint's panel; the joint counts from 0. What it labels is in the legend.
        labels: Of the horizontal and the vertical axes, with units.
    """
    names = [drawable(shorten(name, 24)) for name in result.joint_names]
    rows = math.ceil(len(names) / cells.columns)
    height_in = min(cells.height_in, (HEIGHT_MAX_IN - _AROUND_IN) / rows)
    with sheet_style():
        sheet = start_sheet(result, title, _AROUND_IN + rows * height_in)
        grid = sheet.add_gridspec(rows, cells.columns)
        panels: list[Axes] = []
        for joint, name in enumerate(names):
            place = grid[joint // cells.columns, joint % cells.columns]
            axes = sheet.add_subplot(place, sharex=panels[0] if panels else None)
            axes.set_title(name, loc="left", parse_math=False)
            draw(axes, joint)
            is_lowest = joint + cells.columns >= len(names)
            axes.tick_params(labelbottom=is_lowest)
            axes.set_xlabel(labels[0] if is_lowest else "")
            axes.set_ylabel(labels[1] if joint % cells.columns == 0 else "")
            panels.append(axes)
        finish_sheet(sheet, panels)
    return sheet


def finish_sheet(sheet: Sheet, panels: Sequence[Axes]) -> None:
    """Add one legend of all labels between the title and the panels, and settle the layout."""
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        labels = sorted(found, key=lambda label: label.startswith(_LAST))
        look: dict[str, Any] = {"columnspacing": 1.4, "handletextpad": 0.5, "borderpad": 0.1}
        look |= {"loc": "upper center", "borderaxespad": 0.0, "ncols": len(labels)}
        below = 1.0 - _TITLE_IN / float(sheet.get_size_inches()[1])
        handles = [found[label] for label in labels]
        sheet.legend(handles, labels, bbox_to_anchor=(0.5, below), **look)
    settle(sheet)
