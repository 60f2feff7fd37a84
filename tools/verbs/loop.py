"""`armature loop`: the 1 kHz loop as a daemon, in real time."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from daq.errors import ConfigError
from tools.running.mock_options import add_board_options, add_mock_robot_options
from tools.running.options import MockOptions, RunOptions, add_run_options
from tools.running.outcome import exit_code, result_json
from tools.running.real_time import run_loop
from tools.shared.cli import (
    Verbs,
    add_json_option,
    add_link_option,
    add_robot_option,
    add_verb,
    print_json,
)


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "loop",
        handler=_loop,
        summary=summary,
        example="  armature loop --robot laas4 --link mock --enable --duration 6 --json",
    )
    add_robot_option(parser)
    add_link_option(parser)
    add_run_options(parser)
    add_board_options(parser)
    add_mock_robot_options(parser)
    parser.add_argument(
        "--record",
        nargs="?",
        const="",
        metavar="NAME",
        help="ask the recorder to record from the first sample on",
    )
    parser.add_argument(
        "--on-fault",
        choices=("stay", "exit"),
        default="stay",
        help="after a fault: stay and wait for `armature send reset` (default), or exit",
    )
    # For `run` and `bench`, which start this verb.
    parser.add_argument("--bench", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--events-to", type=int, help=argparse.SUPPRESS)
    add_json_option(parser)


def _loop(arguments: argparse.Namespace) -> int:
    options = replace(
        RunOptions.from_namespace(arguments),
        bench=arguments.bench,
        recording=arguments.record,
        ends_on_fault=arguments.on_fault == "exit",
    )
    if options.is_on_mock:
        return _loop_on_mock(options, MockOptions.from_namespace(arguments), arguments.json)
    if arguments.fault:
        raise ConfigError("--fault", ["only on --link mock"])
    result, problem = run_loop(options, events_to=arguments.events_to)
    if arguments.json:
        print_json(result_json(result))
    return exit_code(result, problem, has_end=options.has_end)


def _loop_on_mock(options: RunOptions, mock_options: MockOptions, is_json: bool) -> int:
    """Be the robot, for a loop in another process that opens its emulated devices."""
    from tools.running.on_mock import run_on_mock

    return run_on_mock(mock_options, options.on_emulated_devices().to_argv(*["--json"] * is_json))
