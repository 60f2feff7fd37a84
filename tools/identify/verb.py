"""`armature identify`: from recordings to a judged model, with report, URDF and robot file."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from daq.errors import ConfigError
from daq.robot.load import robot_text
from tools.running.mock_options import true_robot
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_verb,
    print_json,
    say,
    seed_problems,
)
from tools.shared.progress import progress_steps
from tools.version import __version__

if TYPE_CHECKING:
    from estimation.identification.pipeline import IdentificationOutcome
    from estimation.identification.request import Request

_NAMES = (
    "cad, uls, wls, irls, tls, iv, cls1, cls2, cls3, cls2-prior, cls2-wls, slsqp, sa, or all;"
    " default: cad uls wls cls1 cls2 cls3"
)


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "identify",
        handler=_identify,
        summary=summary,
        example="  armature excite --robot laas4 --evaluations 200 --out id.h5\n"
        "  armature run --robot laas4 --link mock --fast --home --play id.h5 --record rec.h5\n"
        "  armature identify rec.h5 --out result",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="REC.h5")
    parser.add_argument(
        "--validate",
        nargs="+",
        type=Path,
        default=[],
        metavar="REC.h5",
        help="recordings to validate with, which no estimator sees",
    )
    parser.add_argument(
        "--payload",
        nargs="+",
        type=Path,
        default=[],
        metavar="REC.h5",
        help="recordings of the arm with a payload: identify the payload",
    )
    parser.add_argument("--method", nargs="+", default=[], metavar="NAME", help=_NAMES)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write report and parameters there")
    parser.add_argument(
        "--robot", metavar="NAME|FILE", help="in place of the robot inside the recordings"
    )
    parser.add_argument(
        "--terms",
        metavar="A,B,…",
        help="beside rigid links: viscous, coulomb, drive_inertia, offset, asymmetric, stribeck;"
        " default: as the robot file says",
    )
    _add_preparation(parser)
    parser.add_argument(
        "--relax",
        action="store_true",
        help="relax bounds that contradict each other, as little as possible",
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument(
        "--starts", type=int, default=10, metavar="N", help="of slsqp and sa (default 10)"
    )
    parser.add_argument("--no-report", action="store_true", help="no page and no figures")
    add_json_option(parser)


def _add_preparation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how samples are prepared")
    group.add_argument(
        "--cutoff", type=float, metavar="HZ", help="of the low-pass; default: from the spectrum"
    )
    group.add_argument(
        "--velocity",
        choices=["measured", "differentiated"],
        help="default: whichever carries less noise",
    )
    group.add_argument(
        "--filter",
        choices=["butterworth", "fft"],
        default="butterworth",
        help="zero-phase Butterworth (default), or the rectangular window of [De Facci 2024]",
    )
    group.add_argument(
        "--differences",
        choices=["sixth", "second"],
        default="sixth",
        help="order of the differences after Butterworth: sixth (default), or second as in"
        " [De Facci 2024]; fft differentiates in the frequency domain",
    )
    group.add_argument(
        "--slow",
        type=float,
        metavar="RAD/S",
        help="a joint slower than this does not count in the fit; 0 uses all rows; default: 3 %% of"
        " its highest speed",
    )
    group.add_argument(
        "--all-modes",
        action="store_true",
        help="also use rows in which no trajectory was played",
    )
    group.add_argument(
        "--average",
        action="store_true",
        help="average over the periods of a motion that repeats itself",
    )
    group.add_argument(
        "--rows",
        metavar="A:B",
        default="0:1",
        help="use only this part of the recordings' time, such as 0:0.6; validation uses all of its"
        " recordings, or with --split the rest",
    )
    group.add_argument(
        "--split",
        action="store_true",
        help="validate with the part of the recordings that --rows leaves out",
    )


def _identify(arguments: argparse.Namespace) -> int:
    if None in map(find_spec, ("pinocchio", "scipy", "cvxpy", "clarabel")):
        say(
            "armature: this takes Pinocchio, SciPy, CVXPY and Clarabel: pip install '.[estimation]'"
        )
        return FAILED
    request = _request(arguments)
    if arguments.out is not None:
        _check_out(arguments.out)
    from estimation.identification.pipeline import identify

    with progress_steps("identifying") as step:
        outcome = identify(request, step)
    try:
        if not arguments.json:
            from tools.identify.table import show

            show(outcome.result)  # before anything is written: a full disk does not lose it
    finally:
        # Nor does whoever reads the table and leaves (`armature identify … | head`) lose the files.
        written, problem = _written(arguments, outcome)
    if arguments.json:
        from daq.recording.text import plain
        from tools.identify.files import facts_of

        print_json({**facts_of(outcome.result), "files": [plain(path) for path in written]})
    else:
        for path in written:
            say(f"wrote {path}")
    if problem:
        say(f"armature: --out {arguments.out}: {problem}")
        return FAILED
    return OK


def _written(
    arguments: argparse.Namespace, outcome: IdentificationOutcome
) -> tuple[list[Path], str]:
    """Return the files that were written, and why not all of them."""
    if arguments.out is None:
        return [], ""
    from tools.identify.files import write_all

    has_report = not arguments.no_report
    with progress_steps("writing") as step:
        return write_all(arguments.out, outcome, has_report=has_report, progress=step)


def _request(arguments: argparse.Namespace) -> Request:
    from estimation.identification.estimators.methods import METHODS
    from estimation.identification.request import DEFAULT_METHODS, Overrides, Request

    problems = []
    names = list(dict.fromkeys(n for word in arguments.method for n in word.split(",") if n))
    problems += [
        f"--method {name}: unknown, expected {', '.join(METHODS)} or all"
        for name in names
        if name not in METHODS and name != "all"
    ]
    if arguments.method and not names:
        problems.append("--method: expected at least one name")
    if "all" in names:
        names = list(METHODS)
    first, last = _share(arguments.rows, problems)
    if arguments.split and (first, last) == (0.0, 1.0):
        problems.append("--split: needs --rows, such as --rows 0:0.6")
    if arguments.split and arguments.validate:
        problems.append("--split: not together with --validate")
    for option in ("cutoff", "slow"):
        value = getattr(arguments, option)
        if value is not None and not 0.0 <= value < 1e6:
            problems.append(f"--{option} {value:g}: must be a number from 0 to 1e6")
    if not 1 <= arguments.starts <= 1000:
        problems.append(f"--starts {arguments.starts}: must lie between 1 and 1000")
    problems += seed_problems(arguments.seed)
    problems += _repeated(arguments)
    if problems:
        raise ConfigError("armature identify", problems)
    terms = None if arguments.terms is None else tuple(arguments.terms.replace(",", " ").split())
    overrides = Overrides(
        cutoff_hz=arguments.cutoff,
        velocity=arguments.velocity,
        method=arguments.filter,
        differences=arguments.differences,
        slow_rad_s=arguments.slow,
        all_modes=arguments.all_modes,
        rows=(first, last),
        is_averaged=arguments.average,
    )
    return Request(
        recordings=tuple(arguments.recordings),
        validations=tuple(arguments.validate),
        methods=tuple(name for name in METHODS if name in names) if names else DEFAULT_METHODS,
        robot_text=None if arguments.robot is None else robot_text(arguments.robot),
        terms=terms,
        overrides=overrides,
        payloads=tuple(arguments.payload),
        is_simulated=arguments.out is not None and not arguments.no_report,
        has_split=arguments.split,
        seed=arguments.seed,
        starts=arguments.starts,
        is_relaxed=arguments.relax,
        truth_of=true_robot,
        version=__version__,
    )


def _repeated(arguments: argparse.Namespace) -> list[str]:
    """Return a problem for each recording that is given twice or for two purposes."""
    problems = []
    seen: set[str] = set()
    for path in arguments.recordings:
        if os.path.realpath(path) in seen:
            problems.append(f"{path}: is given twice")
        seen.add(os.path.realpath(path))
    for option in ("validate", "payload"):
        paths: list[Path] = getattr(arguments, option)
        problems += [
            f"--{option} {path}: is also among the recordings to identify from"
            for path in paths
            if os.path.realpath(path) in seen
        ]
    return problems


def _share(text: str, problems: list[str]) -> tuple[float, float]:
    first, _, last = text.partition(":")
    try:
        begin, end = float(first), float(last)
    except ValueError:
        begin, end = 1.0, 0.0
    if not 0.0 <= begin < end <= 1.0:
        problems.append(f"--rows {text}: expected two shares such as 0:0.6")
    return begin, end


def _check_out(path: Path) -> None:
    if os.path.lexists(path) and not path.is_dir():
        raise ConfigError("--out", [f"{path}: exists and is not a directory"])
    parent = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError("--out", [f"{path}: {parent} cannot be written to"])
    if path.is_dir() and any(path.iterdir()):
        raise ConfigError("--out", [f"{path}: is not empty; name another directory"])
