"""`python -m tests.support.identification_memory REC.h5`: what an identification takes.

Prints one JSON object. Memory is counted from where everything is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import cvxpy  # noqa: F401 - what estimators load when they are first used counts as imported
import scipy.signal  # noqa: F401

from estimation.identification.pipeline import identify
from estimation.identification.request import Request

PROJECT = Path(__file__).parents[2]


class Taken(NamedTuple):
    """What an identification took.

    Attributes:
        rows: Samples it used.
        floor_percent: Of the torque, what least squares leave.
        seconds: How long it took.
        extra_mb: Peak of its memory, less that of the same process with everything imported.
    """

    rows: int
    floor_percent: float
    seconds: float
    extra_mb: float


def identify_elsewhere(path: Path) -> Taken:
    """Identify from a recording in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.identification_memory", str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    return Taken(**json.loads(done.stdout))


def _peak_mb() -> float:
    # Of this program alone: getrusage also counts the one that started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    (kb,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kb) / 1024.0


def _identify_here(path: Path) -> Taken:
    before_mb, started_s = _peak_mb(), time.perf_counter()
    result = identify(Request(recordings=(path,), methods=("cad", "uls", "wls", "cls2"))).result
    return Taken(
        rows=sum(recording.rows_used for recording in result.recordings),
        floor_percent=result.floor_percent,
        seconds=time.perf_counter() - started_s,
        extra_mb=_peak_mb() - before_mb,
    )


if __name__ == "__main__":
    print(json.dumps(_identify_here(Path(sys.argv[1]))._asdict()))
