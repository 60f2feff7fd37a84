"""The friction bench in virtual time: how long somebody waits for a joint, and for its analysis."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from daq.recording import open_recording
from tests.benchmarks.measure import Row, at_least, at_most
from tools.main import main

WHOLE_MAX_S = 20.0


def run(*, words: Sequence[str] = ()) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        where = ("--robot", "laas4", "--joint", "joint3", "--link", "mock", "--out", directory)
        began_s = time.perf_counter()
        _quietly("bench", "friction", *where, "--fast", *words)
        whole_s = time.perf_counter() - began_s
        path = Path(directory, "joint3.h5")
        began_s = time.perf_counter()
        _quietly("bench", "analyse", str(path))
        analysis_s = time.perf_counter() - began_s
        with open_recording(path) as recording:
            robot_s = recording.duration_s
            began_s = time.perf_counter()
            for column in recording.values():
                column[...]
            reading_s = time.perf_counter() - began_s
    yield at_most("friction bench of a joint with --fast, whole command", whole_s, WHOLE_MAX_S, "s")
    yield at_least("friction bench with --fast, against real time", robot_s / whole_s, 8.0)
    yield at_most("analysis, against reading the recording", analysis_s / reading_s, 10.0, "x")


def _quietly(*words: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        exit_code = main(words)
    if exit_code:
        raise SystemExit(f"armature {' '.join(words)}: exit code {exit_code}")
