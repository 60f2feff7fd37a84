"""`python -m daq.recorder.convert JOURNAL`: what the recorder runs for each finished journal.

One that was not finished, as a crash leaves it, is completed from its session's spool first. Prints
one `daq.recorder.conversion.Conversion` as JSON; exits with 1 if the journal stays.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from daq.recorder.recovery import recover
from daq.recorder.spools import Spools
from daq.system.runtime_directory import RuntimeDirectory


def main(argv: Sequence[str] | None = None) -> int:
    """Convert a journal and say what became of it."""
    parser = argparse.ArgumentParser(prog="daq.recorder.convert", description="convert a journal")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--runtime", type=Path, help="directory of the loop, where its spool is")
    arguments = parser.parse_args(argv)
    runtime = RuntimeDirectory(arguments.runtime) if arguments.runtime else None
    result = recover(arguments.journal, Spools(runtime))
    # A recorder that was killed reads nothing any more; the work is done all the same.
    with contextlib.suppress(BrokenPipeError), open(1, "wb", closefd=False) as out:
        out.write(msgspec.json.encode(result))
    return 1 if result.problem else 0


if __name__ == "__main__":
    sys.exit(main())
