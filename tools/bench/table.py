"""`armature bench table`: the bench's results of several joints as one table, or as priors.

Reads options and puts the parts together: `rows`, `formats`, `apply`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from daq.errors import ConfigError
from daq.recording.text import plain
from daq.recording.whole_files import replace_file
from daq.robot import parse_robot, robot_text, shipped_robots
from tools.bench.apply import apply_friction, describe
from tools.bench.formats import FORMATS, format_table, print_table
from tools.bench.rows import find_results, make_rows
from tools.shared.cli import (
    OK,
    Verbs,
    add_json_option,
    add_verb,
    make_console,
    new_file_problems,
    say,
)

_EXAMPLE = """\
  armature bench table results
  armature bench table results --format latex --out friction.tex
  armature bench table results --robot laas4 --apply --to my_robot.toml"""


def add_to(actions: Verbs) -> None:
    """Add the action to the verb `bench`."""
    parser = add_verb(
        actions,
        "table",
        handler=_table,
        summary="put the results of several joints into one table, or into a robot file",
        example=_EXAMPLE,
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="DIR", help="holds results; or a result's file"
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="text (default), one CSV row per joint, LaTeX or JSON"
    )
    add_json_option(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument(
        "--robot", metavar="NAME|FILE", help="the joints' robot: for their order, and for --apply"
    )
    parser.add_argument(
        "--apply", action="store_true", help="write b_eq and f into the robot file, as priors"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="with --apply: the file to write; by default the robot's own, after a copy FILE.bak",
    )


def _table(arguments: argparse.Namespace) -> int:
    table_format = _checked_format(arguments)
    robot_file = robot_text(arguments.robot) if arguments.robot else ""
    robot = parse_robot(robot_file, arguments.robot) if arguments.robot else None
    found = find_results(arguments.paths)
    rows = make_rows(found, robot)
    for row in rows:
        for each in row.sources:
            for warning in each.result.warnings:
                say(f"{plain(each.result.joint)}: {plain(warning)}")
    applied = None
    if arguments.apply and robot is not None:
        results = [row.main.result for row in rows if row.has_friction]
        target = arguments.to or Path(arguments.robot)
        applied = apply_friction(results, robot, robot_file, source=arguments.robot, target=target)
    if table_format == "text" and arguments.out is None:
        print_table(make_console(), rows)
    else:
        text = format_table(table_format, rows, applied)
        if arguments.out is None:
            sys.stdout.write(text)
        else:
            replace_file(arguments.out, text.encode())
            say(f"{arguments.out}: {len(rows)} joint{'s' if len(rows) != 1 else ''}")
    if applied is not None:
        tell = print if table_format == "text" or arguments.out else say
        for line in describe(applied):
            tell(line)
    return OK


def _checked_format(arguments: argparse.Namespace) -> str:
    """Return the table's format; refuse options that do not fit together."""
    problems = []
    if arguments.json and arguments.format not in (None, "json"):
        problems.append(f"--json and --format {arguments.format}: choose one")
    if arguments.apply and not arguments.robot:
        problems.append("--apply: needs --robot FILE, the robot file to change")
    if arguments.to and not arguments.apply:
        problems.append("--to: only with --apply")
    if arguments.apply and arguments.robot in shipped_robots() and not arguments.to:
        problems.append(
            f"--robot {arguments.robot}: a shipped robot is never changed; name a file for your "
            "own with --to FILE"
        )
    if arguments.out is not None:
        problems += new_file_problems("--out", arguments.out)
    if arguments.to is not None and not arguments.to.is_file():  # one that is there is changed
        problems += new_file_problems("--to", arguments.to)
    if arguments.to is not None and arguments.to.suffix != ".toml":
        problems.append(f"--to {arguments.to}: expected a name that ends in .toml")
    if problems:
        raise ConfigError("armature bench table", problems)
    return "json" if arguments.json else arguments.format or "text"
