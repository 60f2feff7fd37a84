"""`armature run`: loop and recorder together; in real time, or in virtual time on the mock."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

import msgspec

from daq.errors import ConfigError
from daq.recorder.disk import RESERVE_BYTES, Disk
from daq.recorder.journal import journal_of
from tools.running.mock_options import add_board_options, add_mock_robot_options
from tools.running.options import MockOptions, RunOptions, add_run_options, check_duration
from tools.shared.cli import (
    Verbs,
    add_json_option,
    add_link_option,
    add_robot_option,
    add_verb,
    make_console,
    new_file_problems,
    print_json,
)


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "run",
        handler=_run,
        summary=summary,
        example="  armature run --robot laas4 --link mock --duration 5 --record run.h5\n"
        "  armature run --robot laas4 --link mock --fast --home --duration 25 --record home.h5",
    )
    add_robot_option(parser)
    add_link_option(parser)
    add_run_options(parser)
    parser.add_argument("--record", type=Path, metavar="FILE.h5", help="record everything there")
    parser.add_argument(
        "--fast",
        action="store_true",
        help="in virtual time, as fast as the machine allows and exactly repeatable (mock only)",
    )
    add_board_options(parser)
    add_mock_robot_options(parser)
    add_json_option(parser)


def _run(arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="armature: %(message)s")
    options, mock = RunOptions.from_namespace(arguments), MockOptions.from_namespace(arguments)
    _check(options, mock, arguments.record, is_fast=arguments.fast)
    if arguments.fast:
        from tools.running.fast import run_fast

        summary, exit_code = run_fast(options, mock, arguments.record)
    else:
        from tools.running.supervised import run_supervised

        summary, exit_code = run_supervised(options, mock, arguments.record)
    if summary and arguments.json:
        print_json(summary)
    elif summary:
        _show(summary)
    return exit_code


def _check(options: RunOptions, mock: MockOptions, target: Path | None, *, is_fast: bool) -> None:
    """Find contradictions before anything starts.

    Raises:
        ConfigError: Options contradict each other.
    """
    problems = []
    check_duration(options.duration_s)
    if is_fast and not options.is_on_mock:
        problems.append(f"--fast: time is real on --link {options.link}; use --link mock")
    if is_fast and options.duration_s is None and options.play is None:
        problems.append("--fast: needs --duration or --play, or it would never end")
    if not options.is_on_mock and mock.faults:
        problems.append("--fault: only on --link mock")
    if target is not None:
        problems += _target_problems(target)
    if problems:
        raise ConfigError("armature run", problems)


def _target_problems(target: Path) -> list[str]:
    """Return why nothing can be recorded there."""
    problems = new_file_problems("--record", target, ".h5")
    disk = Disk(target.absolute().parent)
    if journal_of(target).exists():
        problems.append(
            f"--record {target}: {journal_of(target).name} is left of a run that was killed; "
            "`armature recover` makes a recording of it"
        )
    elif disk.directory.is_dir() and disk.free_bytes() < RESERVE_BYTES:
        problems.append(
            f"--record {target}: its disk has {disk.free_bytes() >> 20} MB left, recording "
            f"needs more than {RESERVE_BYTES >> 20}"
        )
    return problems


def _show(summary: dict[str, object]) -> None:
    from rich.table import Table

    facts: dict[str, Any] = msgspec.to_builtins(summary)
    table = Table(show_header=False)
    if "robot" in facts:  # else the loop left no summary
        table.title = f"Run of robot {facts['robot']}"
        table.add_row("ended", f"{facts['state']}: {facts['reason']}")
        table.add_row("time", f"{facts['elapsed_s']:.3f} s")
        table.add_row("cycles", f"{facts['cycles']}, {facts['skipped']} periods skipped")
        table.add_row("exchanges", f"{facts['lost']} lost, {facts['corrupt']} corrupt")
        timings = {"wake_us": "woken late by", "work_us": "work per cycle"}
        for key, name in timings.items() if not facts["is_virtual"] else ():
            times = " / ".join(f"{facts[key][part]:.1f}" for part in ("p50", "p99", "p999", "max"))
            table.add_row(name, f"{times} µs (p50 / p99 / p99.9 / longest)")
    if "file" in facts:
        table.add_row("recording", facts["file"])
        table.add_row("", f"{facts['samples']} samples, {facts['missing']} missing")
    make_console().print(table)
