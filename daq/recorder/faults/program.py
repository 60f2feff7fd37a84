"""`python -m daq.recorder.faults.program`: saves the last fault of a session that nobody records.

The keeper of the loop's gateway starts it (`daq.stream.gateway.errand`): it works outside of the
loop's process, goes on when the loop has ended, and says on stderr what it has done. It exits with
1 if the fault was not saved.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from daq.recorder.converters import InlineConverter
from daq.recorder.faults.folder import FaultFolder, default_folder
from daq.recorder.faults.saving import FaultSaver, latest_note
from daq.recorder.spools import Spools
from daq.service.log_lines import log_to_stderr
from daq.system.runtime_directory import RuntimeDirectory

_NICENESS = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Save the last fault of a session."""
    parser = argparse.ArgumentParser(prog="daq.recorder.faults.program", description="save a fault")
    parser.add_argument("--runtime", type=Path, required=True, help="directory of the loop")
    parser.add_argument("--session", required=True, help="name of the loop's run")
    parser.add_argument("--folder", type=Path, help="where it goes")
    arguments = parser.parse_args(argv)
    # The loop's end and Ctrl-C are no reasons to stop: it is over in a moment.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)
    log_to_stderr("daq.recorder")
    return 0 if _save(arguments.runtime, arguments.session, arguments.folder) else 1


def _save(runtime: Path, session: str, path: Path | None) -> bool:
    spools, converter = Spools(RuntimeDirectory(runtime)), InlineConverter()
    folder = FaultFolder(path or default_folder(), has_parents=path is None)
    spool = spools.open(session)
    if spool is None:
        logging.getLogger(__name__).error("session %s has no spool: nothing is saved", session)
        return False
    with spool:
        saver = FaultSaver(folder, spools, converter)
        saver.take(latest_note(spool))
        saver.save(spool)
    return any(result.file for result in converter.results)


if __name__ == "__main__":
    sys.exit(main())
