"""How small a recording is: against its own datasets uncompressed, and after `h5repack`.

Of a run in virtual time whose joints move, and of one in real time, whose timings are noise.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from tests.benchmarks.measure import Row, at_most
from tests.benchmarks.real_run import ARMATURE, RunFailedError, real_run

PART_MAX_PERCENT = 40.0
REPACK_RATIO_MAX = 1.1


def run(*, duration_s: float = 20.0, motion: str = "--home") -> Iterator[Row]:
    """Size of two recordings.

    Args:
        duration_s: How long they are; homing needs 10 s.
        motion: The option of `armature run` that has the arm do something.
    """
    for make, time_name in ((_in_virtual_time, "virtual"), (_in_real_time, "real")):
        name = f"recording of {duration_s:g} s of {motion[2:]} in {time_name} time"
        try:
            with make(duration_s, motion) as file:
                yield from _rows(name, file)
        except RunFailedError as error:
            yield Row(name, f"skipped: {error}")


def _rows(name: str, file: Path) -> Iterator[Row]:
    size = file.stat().st_size
    part = 100.0 * size / uncompressed_bytes(file)
    yield at_most(f"{name}, against its datasets uncompressed", part, PART_MAX_PERCENT, "%")
    name = f"{name}, against h5repack"
    if shutil.which("h5repack") is None:
        yield Row(name, "skipped: h5repack is not installed (Debian: hdf5-tools)")
        return
    repacked = file.with_suffix(".repacked.h5")
    subprocess.run(["h5repack", file, repacked], check=True)
    yield at_most(name, size / repacked.stat().st_size, REPACK_RATIO_MAX, "x")


def uncompressed_bytes(file: Path) -> int:
    """The sum over all datasets; texts count as little as their references."""
    total = 0

    def add(_name: str, item: h5py.Dataset | h5py.Group) -> None:
        nonlocal total
        if isinstance(item, h5py.Dataset):
            total += item.nbytes

    with h5py.File(file, "r") as opened:
        opened.visititems(add)
    return total


@contextmanager
def _in_virtual_time(duration_s: float, motion: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        file = Path(directory, "run.h5")
        command = [*ARMATURE, "run", "--robot", "laas4", "--link", "mock", "--fast", motion]
        command += ["--duration", f"{duration_s:g}", "--record", str(file), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunFailedError(f"the run failed: {done.stderr.strip()[-200:]}")
        yield file


@contextmanager
def _in_real_time(duration_s: float, motion: str) -> Iterator[Path]:
    with real_run(duration_s, motion) as running:
        running.result()
        yield running.file
