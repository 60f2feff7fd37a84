"""`armature record`: runs the recorder as a daemon, and shows what is in a recording."""

from __future__ import annotations

import argparse
import os
import signal
from contextlib import closing
from pathlib import Path

from daq.errors import ConfigError
from daq.recorder.converters import ProcessConverter, conversion_command
from daq.recorder.daemon import only_recorder, record
from daq.recorder.disk import RESERVE_BYTES
from daq.recorder.faults.folder import FOLDER, FaultFolder
from daq.recorder.recorder import Recorder
from daq.recorder.spools import Spools, unattended
from daq.service.log_lines import log_to_stderr
from daq.service.notify import Notifier
from daq.stream.command_client import CommandClient
from daq.stream.messages import Report
from daq.system.runtime_directory import runtime_directory
from daq.system.signals import ENDINGS, handled
from tools.shared.cli import FAILED, OK, Verbs, add_json_option, add_verb, print_json, say

_EXAMPLE = """\
  armature run --robot laas4 --link mock --duration 3 --record run.h5
  armature record info run.h5
  # as a daemon, beside a loop: armature record --out recordings"""
_MEGABYTE = 1 << 20


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "record", handler=_record, summary=summary, example=_EXAMPLE)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where recordings go (default: .)")
    parser.add_argument("--file", type=Path, metavar="FILE", help="the first recording's file")
    parser.add_argument(
        "--rotate-s", type=float, metavar="S", help="begin a new file when one is that long"
    )
    parser.add_argument("--runtime", type=Path, metavar="DIR", help="directory of the loop")
    parser.add_argument(
        "--once", action="store_true", help="end when the first recording is complete"
    )
    parser.add_argument(
        "--since-ns",
        type=int,
        default=0,
        metavar="NS",
        help="leave alone what loops started before this Unix time have left behind",
    )
    parser.add_argument(
        "--reserve-mb",
        type=float,
        default=RESERVE_BYTES / _MEGABYTE,
        metavar="MB",
        help="stop writing when the disk has no more room than that (default %(default)g)",
    )
    add_json_option(parser)
    actions = parser.add_subparsers(metavar="ACTION")
    info = add_verb(
        actions,
        "info",
        handler=_info,
        summary="show what is in a recording",
        example="  armature record info recordings/run.h5 --json",
    )
    info.add_argument("recording", type=Path, metavar="FILE")
    add_json_option(info)


def _record(arguments: argparse.Namespace) -> int:
    file: Path | None = arguments.file
    out: Path = arguments.out or (file.parent if file else Path())
    problems = [
        *_place_problems(out, file),
        *_number_problems(arguments.rotate_s, arguments.reserve_mb),
    ]
    if problems:
        raise ConfigError("record", problems)
    out = out.absolute()
    runtime = runtime_directory(arguments.runtime, is_made=True)
    spools = Spools(runtime)
    converter = ProcessConverter(conversion_command(runtime))
    log_to_stderr("daq.recorder")
    ended: list[int] = []
    heard = [number for number in ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    with (
        only_recorder(runtime),
        closing(CommandClient(runtime.commands)) as loop,
        handled(heard, lambda number, _: ended.append(number)),
    ):
        recorder = Recorder(
            out,
            spools=spools,
            converter=converter,
            report=lambda report: loop.tell(Report(report=report)),
            file_name=file.name if file else "",
            rotate_s=arguments.rotate_s,
            is_once=arguments.once,
            reserve_bytes=round(arguments.reserve_mb * _MEGABYTE),
            since_utc_ns=arguments.since_ns,
        )
        recorder.adopt()
        for journal in (*unattended(out, spools), *FaultFolder(out / FOLDER).journals()):
            if not arguments.since_ns or journal.stat().st_mtime_ns >= arguments.since_ns:
                converter.start(journal)
        if file is None:
            say(f"armature: recorder of {runtime.path}: recordings go to {out}")
        parent = os.getppid()
        record(
            runtime.stream,
            recorder,
            converter,
            # Whoever supervises both was killed: the loop is stopping, and that is worth recording.
            is_over=lambda: bool(ended) and not (os.getppid() != parent and recorder.is_loop_alive),
            notifier=Notifier.from_environment(os.environ),
            is_once=arguments.once,
        )
    if arguments.json:
        results = [result for result in converter.results if result.file or result.problem]
        print_json({"files": results, "problem": recorder.status().problem})
    is_well = not any(result.problem for result in converter.results)
    return OK if is_well and not recorder.status().problem else FAILED


def _place_problems(out: Path, file: Path | None) -> list[str]:
    """Make the directory of the recordings, and return why it or the file cannot be used."""
    problems = []
    if file is not None and file.parent.absolute() != out.absolute():
        problems.append(f"--file {file}: must lie in --out {out}")
    if file is not None and file.is_dir():
        problems.append(f"--file {file}: is a directory")
    try:
        # Not its parents: a disk that is not mounted must not be replaced by a directory.
        out.mkdir(mode=0o750, exist_ok=True)
    except FileNotFoundError:
        problems.append(f"--out {out}: {out.absolute().parent} is not there: is its disk mounted?")
    except OSError as error:
        problems.append(f"--out {out}: cannot be used: {error.strerror}")
    return problems


def _number_problems(rotate_s: float | None, reserve_mb: float) -> list[str]:
    problems = []
    if rotate_s is not None and not 0.1 <= rotate_s <= 1e7:
        problems.append(f"--rotate-s {rotate_s:g}: must lie between 0.1 and 1e7")
    if not 0 <= reserve_mb <= 1e9:
        problems.append(f"--reserve-mb {reserve_mb:g}: must lie between 0 and 1e9")
    return problems


# --- info -----------------------------------------------------------------------------------------


def _info(arguments: argparse.Namespace) -> int:
    from daq.recording import open_recording, summarise

    with open_recording(arguments.recording) as recording:
        facts = summarise(recording)
    if arguments.json:
        print_json(facts)
    else:
        from tools.printing.record_table import print_summary

        print_summary(facts)
    return OK
