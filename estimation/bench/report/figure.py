"""The friction bench's figure, after [De Facci 2024], Figure 4.4: for A4 paper, PNG, PDF and SVG.

Nothing is fitted here. A load arm measures the torque constant instead of friction and has its own
figure.
"""

from __future__ import annotations

from pathlib import Path

from estimation.bench.report.panels import draw_friction, draw_load_arm
from estimation.bench.report.picture import BenchPicture
from estimation.bench.report.words import date_text
from estimation.bench.result import BenchResult
from estimation.reporting.numbers import shorten
from estimation.reporting.sheet import HEIGHT_MAX_IN, Sheet, make_sheet, sheet_style, write_heading

_LOAD_HEIGHT_IN = 6.2


def draw_bench(result: BenchResult, picture: BenchPicture) -> Sheet:
    """Draw one joint on one sheet: five panels, or torque over current with a load arm."""
    has_arm = picture.load_current_a is not None
    what = "Torque constant" if has_arm else "Friction"
    heading = f"{what} of {shorten(result.joint, 32)}"
    details = (
        f"{shorten(result.robot, 24)}, {shorten(result.motor, 24)}, {shorten(result.kind, 16)}"
    )
    maker = f"armature {shorten(result.made_by, 24)}"
    source = shorten(Path(result.recording).name, 56)
    footer = f"{source}  ·  {shorten(date_text(result.recorded_utc), 32)}  ·  {maker}"
    with sheet_style():
        sheet = make_sheet(
            _LOAD_HEIGHT_IN if has_arm else HEIGHT_MAX_IN,
            {"Title": heading, "Subject": source, "Creator": maker},
        )
        write_heading(sheet, f"{heading} ({details})", footer)
        (draw_load_arm if has_arm else draw_friction)(sheet, result, picture)
    return sheet
