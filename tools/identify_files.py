"""The files that an identification leaves: report, figures, parameters, URDF, robot file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from daq.errors import ConfigError
from daq.robot import parse_robot
from estimation.identification.identified_robot import identified_text, joint_friction
from estimation.identification.pipeline import Outcome
from estimation.urdf import urdf_text
from tools.cli import say
from tools.identify_json import facts_of


def write_all(
    directory: Path, outcome: Outcome, *, has_report: bool, progress: Callable[[str], None]
) -> list[Path]:
    """Write everything into a directory, which is made if need be.

    Args:
        directory: Empty, or not there yet.
        outcome: What was found.
        has_report: Whether to draw figures and write the page.
        progress: Told what is being done.

    Returns:
        The files, the one to look at first.
    """
    directory.mkdir(parents=True, exist_ok=True)
    result = outcome.result
    files = {
        "result.json": msgspec.json.format(msgspec.json.encode(facts_of(result)), indent=1),
        "base_parameters.csv": _csv(result.base_parameters).encode(),
    }
    if result.parameters:
        files["parameters.csv"] = _csv(result.parameters).encode()
    files |= _robot_files(outcome)
    written = []
    if has_report:
        progress("report")
        from estimation.identification.report.figures import (  # noqa: PLC0415 - matplotlib
            draw_figures,
            write_figures,
        )
        from estimation.identification.report.page import write_page  # noqa: PLC0415

        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        traces, page = outcome.traces, directory / "report.html"
        figures = draw_figures(result, traces)
        write_page(page, result, traces, made_at=made_at, figures=figures)
        write_figures(directory / "figures.pdf", result, traces, figures=figures)
        written += [directory / "report.html", directory / "figures.pdf"]
    for name, data in files.items():
        (directory / name).write_bytes(data)
        written.append(directory / name)
    return written


def _robot_files(outcome: Outcome) -> dict[str, bytes]:
    """URDF and robot file with the identified numbers; none without a full set of parameters."""
    chosen = outcome.result.method(outcome.result.chosen)
    if chosen.theta is None or not chosen.consistent:
        say(
            f"armature: no URDF and no robot file: {chosen.name} gives no links that can exist; "
            "use --method cls2"
        )
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
