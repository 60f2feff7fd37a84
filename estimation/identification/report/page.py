"""An identification as one HTML page, without scripts or other files.

Whatever comes from outside, such as the names of files, robots and joints, is escaped. Without
figures the page has all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimation.identification.report.page_tables import (
    base_table,
    chosen_table,
    comparison_table,
    joints_table,
    notes_list,
    parameters_table,
    payload_table,
    recordings_table,
    residuals_table,
    simulation_table,
)
from estimation.identification.report.page_words import STYLE, TERMS
from estimation.identification.report.table import (
    combination_note,
    condition_text,
    floor_text,
    percent_text,
)
from estimation.identification.result import Identification
from estimation.reporting.html import as_text, compact_svg, make_document, make_figure, make_list
from estimation.reporting.numbers import number_text
from estimation.reporting.style import style_sheet

if TYPE_CHECKING:  # Matplotlib is only for those who want figures
    from estimation.identification.report.layout import NamedSheet


def make_page(result: Identification, *, made_at: str, figures: Sequence[NamedSheet] = ()) -> str:
    """Return the page as text, with the figures of `draw_figures`.

    The same result gives the same text.
    """
    drawn = _Figures(figures)
    sections = (
        ("methods", "Methods compared", _methods(result, drawn)),
        ("torques", "Torques", drawn.show("torques1", "torques2")),
        ("residuals-section", "Residuals", _residuals(result, drawn)),
        ("friction-section", "Friction", _friction(result, drawn)),
        ("base-section", "Base parameters", _base(result, drawn)),
        ("all-section", "All parameters", _parameters(result)),
        ("simulation-section", "Simulation", simulation_table(result)),
        ("payload-section", "Payload", _payload(result)),
        ("data", "Recordings", _data(result)),
        ("terms", "What the terms mean", make_list(TERMS)),
        ("origin", "How this was made", _origin(result, made_at)),
    )
    shown = [section for section in sections if section[2]]
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in shown)
    body = "".join(f'<h2 id="{name}">{title}</h2>\n{text}\n' for name, title, text in shown)
    mock = ", simulated" if result.is_mock else ""
    lead = f'<p class="muted">{as_text(made_at)}{mock}</p>\n{_verdict(result)}'
    contents = f'<p class="screen muted contents">{links}</p>\n'
    title = as_text(f"Identification of {result.robot}")
    return make_document(title, style_sheet(STYLE), f"{lead}{contents}{body}")


class _Figures:
    """The sheets by name, as HTML."""

    def __init__(self, sheets: Sequence[NamedSheet]) -> None:
        self._sheets = {sheet.name: sheet for sheet in sheets}

    def show(self, *names: str) -> str:
        """Return the sheets of these names that exist, one below the other."""
        found = [self._sheets[name] for name in names if name in self._sheets]
        return "\n".join(map(_figure, found))


def _figure(figure: NamedSheet) -> str:
    return make_figure(compact_svg(figure.svg()), f"Figure: {figure.title}", f"{figure.name}-")


def _method_notes(result: Identification) -> list[str]:
    """Return each note once, after the names of all methods that have it."""
    names: dict[str, list[str]] = {}
    for method in result.methods:
        for text in method.notes:
            names.setdefault(text, []).append(method.name)
    return [f"{', '.join(methods)}: {text}" for text, methods in names.items()]


def _verdict(result: Identification) -> str:
    verdict = result.verdict
    word = "Usable with doubts" if verdict.doubts else "Usable"
    word, look = (word, "verdict") if verdict.is_usable else ("Not usable", "verdict bad")
    return (
        f'<div class="{look}" role="note"><p><b>{word}.</b> {as_text(verdict.text)}.</p>'
        f'<p class="muted">Holds for: {as_text(verdict.scope)}.</p></div>\n'
    )


def _methods(result: Identification, figures: _Figures) -> str:
    note = "✓: the method whose parameters are written. "
    if any(method.validation for method in result.methods):
        note += "All rows and raw: on validation. "
    covered = result.method(result.chosen).base_parameters_in_interval
    if covered is not None:
        note += f"{100.0 * covered:.0f} % of its true base parameters are in their intervals. "
    combined = combination_note(result)
    if combined:
        note += f"Consistent: {as_text(combined)} "
    parts = [
        comparison_table(result),
        f"<p>{as_text(floor_text(result))}</p>",
        f'<p class="muted">{note}Terms are explained <a href="#terms">below</a>.</p>',
        notes_list(_method_notes(result)),
    ]
    if result.failed:
        failed = notes_list(f"{method.name}: {method.reason}" for method in result.failed)
        parts.append(f"<h3>Methods that could not be used</h3>\n{failed}")
    parts += [
        figures.show("methods"),
        f"<h3>Errors per joint</h3>\n{joints_table(result)}",
        f"<h3>{as_text(result.chosen)}, more per joint</h3>\n{chosen_table(result)}",
    ]
    return "\n".join(part for part in parts if part)


def _residuals(result: Identification, figures: _Figures) -> str:
    parts = [figures.show("residuals1", "residuals2")]
    if result.residuals:
        parts.append(residuals_table(result))
        parts.append(
            '<p class="muted">Noise has mean 0, no memory, kurtosis 0 and no correlation: what '
            "differs is something that the model does not know.</p>"
        )
    parts.append(figures.show("spectra"))
    return "\n".join(part for part in parts if part)


def _friction(result: Identification, figures: _Figures) -> str:
    shown = figures.show("friction")
    kinds = ("motor_viscous", "motor_coulomb")
    if shown and any(base.kind in kinds for base in result.base_parameters):
        shown += (
            '\n<p class="muted">Friction of coupled motors is at their own speeds, and only in the '
            "tables.</p>"
        )
    return shown


def _base(result: Identification, figures: _Figures) -> str:
    lost = ", ".join(f"<code>{as_text(symbol)}</code>" for symbol in result.lost) or "none"
    unidentifiable = sum(not base.relative_percent <= 30.0 for base in result.base_parameters)
    return "\n".join(
        (
            f"<p>{result.rank} base parameters of {result.parameter_count} parameters; "
            f"{unidentifiable} of them are not identifiable from the data (30 % rule, ✗). "
            f"Condition of the regressor: {condition_text(result.condition)}, "
            f"{condition_text(result.condition_scaled)} with columns of length 1.</p>",
            figures.show("parameters"),
            base_table(result.base_parameters),
            f"<p>Lost, as no torque depends on them: {lost}.</p>",
            figures.show("singular-values"),
        )
    )


def _parameters(result: Identification) -> str:
    if not result.parameters:
        return (
            f"<p>{as_text(result.chosen)} determines base parameters only: there is no list of all."
            "</p>"
        )
    return (
        "<p>In the frames of the joints, inertia about their origins. Only parameters that the "
        "data determine by themselves have a σ: the rest is one arm of many that move alike.</p>\n"
        + parameters_table(result)
    )


def _payload(result: Identification) -> str:
    payload = result.payload
    if payload is None:
        return ""
    last = as_text(result.joint_names[-1])
    files = ", ".join(f"<code>{as_text(name)}</code>" for name in payload.files)
    source = f" Recordings with payload: {files}." if files else ""
    return "\n".join(
        (
            f"<p>What the arm carries: the change of the last link between the recordings without "
            f"and with it.{source} The centre of mass is in the frame of the last joint, {last} "
            "(z is its axis); inertia is about the payload's own centre of mass, its axes parallel "
            "to that frame's.</p>",
            payload_table(payload),
            f"<p>Misfit: {number_text(payload.misfit, 2)} standard deviations. That is how far the "
            "measured change of base parameters is from that of any rigid body on the last link: "
            "about 1 or less where a payload is all that has changed, far above 1 where something "
            "else has. Friction and drives are not compared.</p>",
            notes_list(payload.notes),
        )
    )


def _data(result: Identification) -> str:
    moving = percent_text(result.moving_rows_percent)
    return "\n".join(
        (
            recordings_table(result),
            f"<p>Joints move in {moving} % of the rows: those are fitted.</p>",
            "<h3>Preparation</h3>",
            notes_list(result.preparation) or "<p>Nothing was done.</p>",
        )
    )


def _origin(result: Identification, made_at: str) -> str:
    def files(names: Sequence[str]) -> str:
        return ", ".join(f"<code>{as_text(name)}</code>" for name in names) or "none"

    return make_list(
        (
            ("Made at", as_text(made_at)),
            ("Made by", f"armature {as_text(result.armature_version)}"),
            ("Robot", as_text(result.robot) + (", simulated" if result.is_mock else "")),
            ("Identification", files([recording.file for recording in result.recordings])),
            ("Validation", files([recording.file for recording in result.validation_recordings])),
            ("Terms", as_text(", ".join(result.terms)) or "rigid links only"),
            ("Cut-off", f"{number_text(result.cutoff_hz, 3)} Hz"),
            ("Rows kept", f"1 of {result.decimation}"),
            ("Seed", str(result.seed)),
            ("Computed in", f"{number_text(result.seconds, 3)} s"),
        )
    )
