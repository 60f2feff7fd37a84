"""The table of bench results as text, CSV, LaTeX and JSON.

Nothing is computed here but roundings.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from daq.recording.text import plain
from estimation.bench.report.words import model_title, unit_suffix
from estimation.bench.result import BenchResult, EstimatedQuantity
from tools.bench.rows import Row

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("text", "csv", "latex", "json")
_WIDTH = 100
_QUANTITIES = tuple(
    field.name
    for field in msgspec.structs.fields(BenchResult)
    if field.type in (EstimatedQuantity, EstimatedQuantity | None)
)
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def format_table(table_format: str, rows: Sequence[Row], applied: Mapping[str, Any] | None) -> str:
    """Return the table as it is written to a file; JSON also has what was applied."""
    match table_format:
        case "csv":
            return _csv(rows)
        case "latex":
            return _latex(rows)
        case "json":
            facts = {"joints": [_facts(row) for row in rows]}
            whole = facts if applied is None else {**facts, "applied": applied}
            return msgspec.json.encode(whole).decode() + "\n"
    from rich.console import Console

    text = io.StringIO()
    print_table(Console(file=text, width=_WIDTH), rows)
    return text.getvalue()


def _facts(row: Row) -> dict[str, Any]:
    """Everything about a joint; the torque constant is the load arm's where there is one."""
    main = row.main.result
    loaded = row.load_arm.result if row.load_arm else main
    quantities = {
        name: getattr(loaded if name.startswith("torque") else main, name) for name in _QUANTITIES
    }
    return {
        "joint": main.joint,
        "robot": main.robot,
        "motor": main.motor,
        "kind": main.kind,
        "gear": row.gear,
        "gear_reduction": main.gear_reduction,
        "profile": main.profile,
        "model": main.model or None,
        "plateaus_used": main.plateaus_used if row.has_friction else None,
        "plateaus_rejected": main.plateaus_rejected if row.has_friction else None,
        **quantities,
        "torque_constant_is_measured": row.load_arm is not None,
        "torque_constant_current_a": loaded.torque_constant_current_a,
        "drift_percent": main.drift_percent if row.has_friction else None,
        "recorded_utc": main.recorded_utc,
        "recording": main.recording,
        "file": str(row.main.path) if row.has_friction else None,
        "load_arm_file": str(row.load_arm.path) if row.load_arm else None,
        "warnings": [text for each in row.sources for text in each.result.warnings],
    }


def _csv(rows: Sequence[Row]) -> str:
    flat = []
    for row in rows:
        cells: dict[str, object] = {}
        for name, value in _facts(row).items():
            match value:
                case list():
                    cells[name] = _harmless("; ".join(value))
                case str():
                    cells[name] = _harmless(value)
                case bool():
                    cells[name] = str(value).lower()
                case _ if name in _QUANTITIES:
                    cells[name] = getattr(value, "value", None)
                    unit = unit_suffix(name)
                    for part in ("low", "high", "truth"):
                        cells[f"{name.removesuffix(unit)}_{part}{unit}"] = getattr(
                            value, part, None
                        )
                case _:
                    cells[name] = value
        flat.append(cells)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _latex(rows: Sequence[Row]) -> str:
    lines = [
        r"% Needs \usepackage{booktabs}. \pm is half of the 95 % interval.",
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"motor & joint type & $b_{\mathrm{eq}}$ [N\,m\,s] & $f$ [N\,m] \\",
        r"\midrule",
    ]
    for row in rows:
        main = row.main.result
        cells = [_latex_text(main.motor), _latex_text(main.kind)]
        cells += [latex_number(main.b_eq_nms), latex_number(main.f_nm)]
        lines.append(rf"{' & '.join(cells)} \\ % {plain(main.joint)}")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in plain(text))


def latex_number(quantity: EstimatedQuantity | None) -> str:
    """Return a quantity as the LaTeX table shows it."""
    if quantity is None:
        return "--"
    half = quantity.half_width
    size = max(abs(quantity.value), half or 0.0)
    power = max(-300, math.floor(math.log10(size))) if size else 0
    if -3 < power < 4:
        power = 0
    scale = 10.0**power
    value, error = _rounded(quantity.value / scale, half / scale if half else None)
    number = f"{value} \\pm {error}" if error else value
    if not power:
        return f"${number}$"
    return f"${f'({number})' if error else number}\\times10^{{{power}}}$"


def print_table(console: Console, rows: Sequence[Row]) -> None:
    """Print the table for people."""
    from rich.markup import escape
    from rich.table import Table

    facts = [_facts(row) for row in rows]
    has_robots = len({row["robot"] for row in facts}) > 1
    first = ("robot", "joint") if has_robots else ("joint",)
    friction = Table(*first, "motor", title="friction", title_justify="left")
    others = Table(*first, title="breakaway, inertia, torque constant", title_justify="left")
    for heading in ("b_eq µN·m·s/rad", "f N·m"):
        friction.add_column(heading, justify="right", no_wrap=True)
    friction.add_column("model")
    friction.add_column("used", justify="right")
    for heading in ("breakaway N·m", "J_eq µkg·m²", "K_i mN·m/A", "its drop %"):
        others.add_column(heading, justify="right")
    for row in facts:
        names = [escape(plain(row[key])) for key in first]
        used, rejected = row["plateaus_used"], row["plateaus_rejected"]
        friction.add_row(
            *names,
            f"{escape(plain(row['motor']))}, {escape(plain(row['kind']))}",
            text_cell(row["b_eq_nms"], 1e6),
            text_cell(row["f_nm"]),
            escape(model_title(plain(row["model"] or "–"))),
            "–" if used is None else f"{used}/{used + rejected}",
        )
        drop = text_cell(row["torque_constant_drop"], 100.0)
        if row["torque_constant_current_a"] is not None:
            drop += f"\nat {row['torque_constant_current_a']:.3g} A"
        origin = "measured" if row["torque_constant_is_measured"] else "from K_v"
        others.add_row(
            *names,
            text_cell(row["breakaway_nm"]),
            text_cell(row["inertia_kg_m2"], 1e6),
            f"{text_cell(row['torque_constant_nm_per_a'], 1e3)}\n{origin}",
            drop,
        )
    friction.caption = "b_eq at the motor, f at the load; ± is half of the 95 % interval"
    friction.caption_justify = "left"
    if any(row["torque_constant_is_measured"] for row in facts):
        others.caption = "b_eq and f are computed with K_i from K_v; a measured one scales them"
        others.caption_justify = "left"
    console.print(friction)
    console.print(others)


def text_cell(quantity: EstimatedQuantity | None, scale: float = 1.0) -> str:
    """Return a quantity as the text table shows it: with its interval, and the truth below."""
    if quantity is None:
        return "–"
    shown = quantity.times(scale)
    value, error = _rounded(shown.value, shown.half_width)
    text = f"{value} ± {error}" if error else value
    if shown.truth is not None:
        text += f"\ntruth {_rounded(shown.truth, shown.half_width)[0]}"
    return text


def _rounded(value: float, half: float | None) -> tuple[str, str | None]:
    """Return a value with the digits that its uncertainty leaves, and that with one or two."""
    if half is None or not 0 < half < math.inf:
        return f"{value:.4g}", None
    power = math.floor(math.log10(half))
    decimals = max(0, (1 if half < 2.95 * 10.0**power else 0) - power)
    if decimals > 9 or max(abs(value), half) >= 1e7:
        return f"{value:.4g}", f"{half:.1g}"
    return f"{value:z.{decimals}f}", f"{half:.{decimals}f}"
