"""Writes the files of an identification: report, figures, parameters, URDF, robot file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from daq.errors import ConfigError
from daq.recording.whole_files import create_file
from daq.robot import parse_robot
from estimation.identification.output.identified_robot import identified_text, joint_friction
from estimation.identification.pipeline import IdentificationOutcome
from estimation.identification.result import Identification
from estimation.urdf import urdf_text
from tools.shared.cli import say


def write_all(
    directory: Path,
    outcome: IdentificationOutcome,
    *,
    has_report: bool,
    progress: Callable[[str], None],
) -> tuple[list[Path], str]:
    """Write everything into a directory, which is made if need be; each file whole or not at all.

    The numbers come first: of two commands that write to one place, the second is refused at its
    first file, and where there is no room for the page the numbers are there.

    Returns the files that were written, the one to look at first, and why not all of them.
    """
    written: list[Path] = []
    path = directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in _numbers(outcome).items():
            path = directory / name
            create_file(path, data)
            written.append(path)
        if has_report:
            progress("report")
            for name, data in _pictures(outcome).items():
                path = directory / name
                create_file(path, data)
                written.insert(0, path)
    except OSError as error:
        return written, f"{path} could not be written: {error.strerror or error}"
    return written, ""


def _numbers(outcome: IdentificationOutcome) -> dict[str, bytes]:
    result = outcome.result
    files = {
        "result.json": msgspec.json.format(msgspec.json.encode(facts_of(result)), indent=1),
        "base_parameters.csv": _csv(result.base_parameters).encode(),
    }
    if result.parameters:
        files["parameters.csv"] = _csv(result.parameters).encode()
    return files | _robot_files(outcome)


def _pictures(outcome: IdentificationOutcome) -> dict[str, bytes]:
    """Return figures and page, the page last; without Matplotlib, a page of numbers."""
    from estimation.identification.report.page import make_page

    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    if find_spec("matplotlib") is None:
        say("armature: no figures without Matplotlib: pip install '.[report]'")
        return {"report.html": make_page(outcome.result, made_at=made_at).encode()}
    from estimation.identification.report.figures import draw_figures
    from estimation.reporting.sheet import make_pdf

    figures = draw_figures(outcome.result, outcome.traces)
    return {
        "figures.pdf": make_pdf([figure.sheet for figure in figures]),
        "report.html": make_page(outcome.result, made_at=made_at, figures=figures).encode(),
    }


def _robot_files(outcome: IdentificationOutcome) -> dict[str, bytes]:
    """Return URDF and robot file with the identified numbers; none without all parameters."""
    chosen = outcome.result.method(outcome.result.chosen)
    if chosen.theta is None or not chosen.consistent:
        reason = (
            "determines combinations of parameters only, not single links"
            if chosen.theta is None
            else "gives links that are not physically consistent, or friction that drives"
        )
        hint = "" if chosen.name == "cls2" else "; use --method cls2"
        say(f"armature: no URDF and no robot file: {chosen.name} {reason}{hint}")
        return {}
    parameters = outcome.problem.regressor.parameters
    try:
        text = identified_text(
            outcome.robot_text,
            outcome.robot,
            parameters,
            chosen.theta,
            source=f"robot {outcome.robot.name}",
        )
    except ConfigError as error:
        say(f"armature: no URDF and no robot file: {error}")
        return {}
    robot = parse_robot(text, outcome.robot.name)
    urdf = urdf_text(robot, joint_friction(parameters, chosen.theta))
    return {f"{robot.name}.toml": text.encode(), f"{robot.name}.urdf": urdf.encode()}


def _csv(rows: tuple[msgspec.Struct, ...]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows[0].__struct_fields__)
    for row in rows:
        values = msgspec.structs.astuple(row)
        writer.writerow(["" if value is None else value for value in values])
    return text.getvalue()


def facts_of(result: Identification) -> dict[str, Any]:
    """Return a result for JSON; infinite numbers, which JSON does not know, as null."""
    facts: dict[str, Any] = msgspec.to_builtins(result)
    facts["methods"] = [_with_headline(row) for row in facts["methods"]]
    return {key: _finite(value) for key, value in facts.items()}


def _with_headline(row: dict[str, Any]) -> dict[str, Any]:
    """Add the errors that are compared, over rows in which joints move, before the details."""
    headline: dict[str, Any] = {"name": row["name"], "summary": row["summary"]}
    for data in ("identification", "validation"):
        errors = row[data]
        headline[f"{data}_percent"] = None if errors is None else errors["moving"]
        headline[f"{data}_percent_per_joint"] = None if errors is None else errors["per_joint"]
    return headline | row


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
