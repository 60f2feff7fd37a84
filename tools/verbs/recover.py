"""`armature recover`: makes recordings of what a crash left behind."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from daq.errors import ConfigError
from daq.recorder.conversion import Conversion
from daq.recorder.converters import InlineConverter
from daq.recorder.daemon import only_recorder
from daq.recorder.recorder import Recorder
from daq.recorder.recovery import find_all, recover
from daq.recorder.spools import Spools
from daq.system.runtime_directory import RuntimeDirectory, default_runtime_path, runtime_directory
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_verb,
    make_console,
    print_json,
    say,
)
from tools.shared.progress import progress_bar


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs, "recover", handler=_recover, summary=summary, example="  armature recover ."
    )
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="DIR|JOURNAL",
        help="directories of recordings, or single journals (default: .)",
    )
    parser.add_argument("--runtime", type=Path, metavar="DIR", help="directory of the loop")
    add_json_option(parser)


def _recover(arguments: argparse.Namespace) -> int:
    runtime = _runtime(arguments.runtime)
    spools = Spools(runtime)
    # No bar for programs: `armature run` runs this, perhaps on a terminal.
    with nullcontext(None) if arguments.json else progress_bar("recovering") as advance:
        results = [recover(path, spools, progress=advance) for path in find_all(arguments.paths)]
    directories = [path for path in arguments.paths if path.is_dir()]
    if directories and runtime is not None:
        results += _adopt(directories[0], runtime)
    if arguments.json:
        print_json({"journals": results})
    elif results:
        _print_table(results)
    else:
        print("nothing to recover")
    problems = [result.problem for result in results if result.problem]
    for problem in problems:
        say(f"armature: {problem}")
    return FAILED if problems else OK


def _adopt(directory: Path, runtime: RuntimeDirectory) -> list[Conversion]:
    """Record what loops left in their spools that no recorder has heard of."""
    converter = InlineConverter()
    try:
        with only_recorder(runtime):
            Recorder(directory.absolute(), spools=Spools(runtime), converter=converter).adopt()
    except ConfigError:
        pass  # there is a recorder: it does so itself
    return converter.results


def _runtime(path: Path | None) -> RuntimeDirectory | None:
    """Return where spools may be; None when no loop has made such a directory."""
    if not (path or default_runtime_path()).exists():
        if path is not None:
            say(f"armature: --runtime {path} is not there: nothing can be fetched from a spool")
        return None
    return runtime_directory(path)


def _print_table(results: Sequence[Conversion]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("journal", "recording")
    for heading in ("samples", "from spool", "missing", "damaged bytes"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            escape(Path(result.journal).name),
            escape(result.file),
            str(result.samples),
            str(result.fetched),
            str(result.missing),
            str(result.damaged_bytes + result.torn_bytes),
        )
    console = make_console()
    console.print(table)
    for result in results:
        if result.note:
            console.print(escape(f"{Path(result.journal).name}: {result.note}"))
