"""The words that start `daq.recorder.faults.program`, without all that it imports."""

from __future__ import annotations

import sys
from pathlib import Path

from daq.system.runtime_directory import RuntimeDirectory


def saver_command(runtime: RuntimeDirectory, session: str, folder: Path | None) -> tuple[str, ...]:
    """Return what saves the last fault of a session; with no folder, in the user's default one.

    With -P, because a folder called `daq` where we happen to be is not ours.
    """
    words = (sys.executable, "-P", "-m", "daq.recorder.faults.program")
    place = () if folder is None else ("--folder", str(folder.absolute()))
    return (*words, "--runtime", str(runtime.path), "--session", session, *place)
