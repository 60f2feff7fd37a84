"""`armature bench analyse`: the result of a bench test from its recording alone."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from daq.recording.whole_files import replace_file
from tools.bench.show import show_result
from tools.shared.cli import FAILED, OK, Verbs, add_json_option, add_verb, print_json, say
from tools.version import __version__

if TYPE_CHECKING:
    from estimation.bench.report.picture import BenchPicture
    from estimation.bench.result import BenchResult


def add_to(actions: Verbs) -> None:
    """Add the action to the command line."""
    parser = add_verb(
        actions,
        "analyse",
        handler=_analyse,
        summary="give the result of a bench test from its recording alone",
        example="  armature bench friction --robot bench1 --joint joint1 --link mock --fast \\\n"
        "      --out b\n"
        "  armature bench analyse b/joint1.h5 --json",
    )
    parser.add_argument("recording", type=Path, metavar="REC.h5", help="of `bench friction`")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write result, figures and page there"
    )
    add_json_option(parser)


def _analyse(arguments: argparse.Namespace) -> int:
    name = arguments.recording.stem
    return report(arguments.recording, arguments.out, name, is_json=arguments.json)


def report(recording: Path, directory: Path | None, name: str, *, is_json: bool) -> int:
    """Analyse a recording, write the result where it is wanted (if anywhere), and print it.

    Returns the exit code: a result that most plateaus do not support is none.
    """
    if find_spec("scipy") is None:
        say(
            f"armature: {recording} is complete; to analyse it here takes SciPy (pip install "
            "'.[estimation,report]'), or `armature bench analyse` on another computer"
        )
        return OK
    # SciPy and Matplotlib take a second: only commands that need them wait for them.
    from estimation.bench.analysis import analyse_bench
    from estimation.bench.result import BenchWarning

    result, picture = analyse_bench(recording, made_by=__version__)
    if directory is not None:
        _write(result, picture, directory, name)
    if is_json:
        print_json(result)
    else:
        show_result(result)
    if result.plateaus_rejected > result.plateaus_used:
        reason = result.warnings[result.warning_kinds.index(BenchWarning.REJECTED)]
        say(f"armature: not to be trusted: {reason}")
        return FAILED
    return OK


def _write(result: BenchResult, picture: BenchPicture, directory: Path, name: str) -> None:
    from estimation.bench.result_file import read_result, write_result

    own = directory / f"{name}.json"
    if own.exists():
        read_result(own)  # what is not ours is not replaced
    directory.mkdir(parents=True, exist_ok=True)
    write_result(own, result)
    if find_spec("matplotlib") is None:
        say(f"armature: {directory / name}.json is written; figures take Matplotlib ('.[report]')")
        return
    from estimation.bench.report.figure import draw_bench
    from estimation.bench.report.page import make_page
    from estimation.reporting.sheet import make_pdf, make_png

    figure = draw_bench(result, picture)
    replace_file(directory / f"{name}.png", make_png(figure))
    replace_file(directory / f"{name}.pdf", make_pdf([figure]))
    replace_file(directory / f"{name}.html", make_page(result, picture).encode())
    say(f"armature: {directory / name}.json, .png, .pdf and .html are written")
