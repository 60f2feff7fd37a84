"""`armature import`: measurements from elsewhere become a recording like any other."""

from __future__ import annotations

import argparse
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daq.errors import ConfigError
from daq.recording.text import plain
from daq.robot import parse_robot, robot_text
from estimation.errors import DatasetError, OptionError
from tools.shared.cli import (
    OK,
    Verbs,
    add_json_option,
    add_robot_option,
    add_verb,
    make_console,
    new_file_problems,
    print_json,
    say,
)
from tools.shared.interrupts import interrupted_by_any_signal
from tools.version import __version__

if TYPE_CHECKING:
    from estimation.importing.measurements import ImportOptions

_EXAMPLE = """\
  seq 0 1999 | awk 'BEGIN { print "time,q1,tau1" }
    { print $1 / 1000 "," sin($1 / 100) "," 0.1 * sin($1 / 100) }' > log.csv
  armature import log.csv --robot bench1 --out log.h5
  armature record info log.h5
  # two files, columns by file, seen from the motors, as the public TX40 data are:
  #   armature import pos_read_data.csv curr_data.csv --robot tx40.toml --out tx40.h5 \\
  #     --rate 5000 --side motor --map q_rad=pos_read_data.csv --map tau_nm=curr_data.csv
  # degrees, and columns by number (counted from 1) of a file without names:
  #   armature import run.csv --robot laas4 --out run.h5 --map t_s=1 --map q_rad=2-5 \\
  #     --map tau_nm=6-9 --unit q_rad=deg --unit t_s=ms"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "import", handler=_import, summary=summary, example=_EXAMPLE)
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="CSV (also .csv.gz), NPY, NPZ, MAT or HDF5; several have their columns side by side",
    )
    add_robot_option(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="REC.h5", help="the recording")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="QUANTITY=COLUMNS",
        help="where t_s, q_rad, dq_rad_s, tau_nm, iq_a or q_ref_rad are, if not under a usual name "
        "(t, q1, pos1, dq1, tau1, q_JOINT, …): names, NAME*, FILE, FILE:NAME or FILE:1-6, with "
        "commas; none leaves it out, as t_s=none for times that are wrong",
    )
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        metavar="QUANTITY=UNIT",
        help="deg, deg/s, rpm, rev, ms, us, mNm, mA, …, or a number to multiply by; default SI",
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="HZ",
        help="samples per second, for files without times or with --map t_s=none, and for "
        "--resample",
    )
    parser.add_argument(
        "--side",
        choices=("joint", "motor"),
        default="joint",
        help="which side of the gears the values are of (default joint); currents are the motors'",
    )
    parser.add_argument("--rows", metavar="A:B", help="use rows A to B - 1 only, counted from 0")
    parser.add_argument("--delimiter", metavar="CHARACTER", help="of CSV files (default: found)")
    parser.add_argument(
        "--resample",
        action="store_true",
        help="interpolate linearly to a constant rate (--rate, or as many as there are rows)",
    )
    add_json_option(parser)


def _import(arguments: argparse.Namespace) -> int:
    # HDF5 is not needed to print a help text.
    from estimation.importing.files import read_array_file
    from estimation.importing.measurements import measure
    from estimation.importing.write import Origin, RobotFile, write_import

    options = _options(arguments)
    text = robot_text(arguments.robot)
    robot = parse_robot(text, arguments.robot)
    with _plain_errors():
        files = [read_array_file(path, delimiter=arguments.delimiter) for path in arguments.files]
        measurements = measure(files, robot, options)
    with interrupted_by_any_signal():
        facts = write_import(
            arguments.out,
            measurements,
            files=files,
            robot_file=RobotFile(robot=robot, text=text, source=arguments.robot),
            options=options,
            origin=Origin(host=platform.node(), armature_version=__version__),
        )
    facts = {"file": plain(arguments.out), "robot": robot.name, **facts}
    if arguments.json:
        print_json(facts)
    else:
        _print_facts(facts)
    for note in facts["notes"]:
        say(f"armature: {note}")
    return OK


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Messages name what is in files; those about options are about their use."""
    try:
        yield
    except OptionError as error:
        raise ConfigError("import", [plain(str(error))]) from error
    except DatasetError as error:
        raise DatasetError(plain(str(error)), code=error.code) from error


def _options(arguments: argparse.Namespace) -> ImportOptions:
    """Return what the command line says.

    Raises:
        ConfigError: It cannot be understood.
    """
    from estimation.importing.measurements import ImportOptions

    problems = new_file_problems("--out", arguments.out)
    mapping = _pairs("--map", arguments.map, problems)
    units = _pairs("--unit", arguments.unit, problems)
    rows = _rows(arguments.rows, problems)
    if arguments.rate is not None and not 0.0 < arguments.rate < float("inf"):
        problems.append(f"--rate {arguments.rate:g}: must be above 0")
    delimiter = arguments.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        problems.append(f"--delimiter {delimiter!r}: must be one character, such as ; or a tab")
    names = [path.name for path in arguments.files]
    if twice := [name for name in names if names.count(name) > 1]:
        problems.append(f"two files are named {twice[0]}: rename one of them")
    if problems:
        raise ConfigError("import", problems)
    return ImportOptions(
        mapping=mapping,
        units=units,
        side=arguments.side,
        rate_hz=arguments.rate,
        rows=rows,
        is_resampled=arguments.resample,
    )


def _pairs(option: str, words: Sequence[str], problems: list[str]) -> dict[str, str]:
    from estimation.importing.mapping import QUANTITIES

    pairs: dict[str, str] = {}
    for word in words:
        key, mark, value = word.partition("=")
        if not mark or not value or key not in QUANTITIES:
            problems.append(
                f"{option} {word}: expected NAME=…, NAME one of {', '.join(QUANTITIES)}"
            )
        elif key in pairs:
            problems.append(f"{option} {word}: {key} is given already; join columns with commas")
        pairs[key] = value
    return pairs


def _rows(text: str | None, problems: list[str]) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    words = re.fullmatch(r"(\d{0,12}):(\d{0,12})", text)
    first = int(words[1] or 0) if words else 0
    last = int(words[2]) if words and words[2] else None
    if words is None or (last is not None and last <= first):
        problems.append(f"--rows {text}: expected A:B with 0 ≤ A < B, such as 1000:5000")
    return first, last


def _gaps(facts: dict[str, Any]) -> str:
    if not facts["missing"]:
        return "none missing"
    gaps = f"{facts['holes']} gap{'s' if facts['holes'] > 1 else ''}"
    return f"{facts['missing']} missing ({gaps}, {facts['missing'] / facts['rate_hz']:.3g} s)"


def _print_facts(facts: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("quantity", "taken from", "unit there")
    for key, taken in facts["taken"].items():
        table.add_row(key, escape(taken["source"]), escape(taken["unit"]))
    jitter = (
        f", time stamps off by up to {1e3 * facts['jitter_s']:.2g} ms" if facts["jitter_s"] else ""
    )
    console = make_console()
    console.print(table)
    console.print(
        escape(
            f"{plain(facts['file'])}: {facts['rows']} samples at {facts['rate_hz']:.6g} Hz "
            f"over {facts['span_s']:.1f} s of {facts['robot']}, {facts['side']} side, "
            f"{facts['invalid_rows']} not valid, {_gaps(facts)}{jitter}"
        )
    )
