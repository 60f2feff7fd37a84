"""Identification side by side with FIGAROH, on one recording of the mock; and its memory.

Ours: from opening the recording (HDF5, which rows are usable, choice of filter, base parameters,
QR) to CLS-2, whose links are physically consistent. FIGAROH's: from samples in memory (its filters,
gradients, regressor, thinning out by 10, QR, weighted least squares) to its `physical_fit`, whose
links are so as well. Imports are outside of both; each in its own process, in turns, the least of
each. FIGAROH may use as many threads as it likes, or one: whichever is faster counts.

Errors are in percent of the filtered torque, over the same rows for both. FIGAROH's prediction is
worked out at the full rate from its own filtered motion and then filtered like the torque.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq.recording import open_recording
from estimation.identification.data.samples import Samples, choose_preparation
from estimation.identification.request import Overrides
from estimation.model.regressor import Regressor
from estimation.signals.filters import low_pass
from estimation.signals.preparation import PreparationSettings
from tests.benchmarks.measure import Row, at_least, at_most
from tests.benchmarks.real_run import ARMATURE, RunFailedError
from tests.support.datasets import open_segments, read_segments
from tests.support.identification_memory import identify_elsewhere
from tests.support.long_recording import make_long_recording

PROJECT = Path(__file__).parents[2]
FIGAROH = "figaroh==1.0.2"
"""Steps of its `solve` are called one by one, which another version may not have."""
ENVIRONMENT = PROJECT / "build" / "figaroh-venv"
ESTIMATE_MAX_S, CLS2_MAX_S, REGRESSOR_MAX_S = 1.5, 0.2, 0.15
FASTER_MIN = 4.0
MEMORY_MAX_MB = 250.0
CALLS = "3"
"""In each process: what is only imported when it is first used must not count."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
NAMES = ("identification", "validation")


def record_on_mock(folder: Path) -> tuple[Path, Path]:
    """Two recordings of the same arm: to identify from, and to validate with."""
    made = []
    for name, option in zip(NAMES, ((), ("--validation",)), strict=True):
        trajectory, path = str(folder / f"{name}_trajectory.h5"), folder / f"{name}.h5"
        _run(
            *ARMATURE, "excite", "--robot=laas4", "--evaluations=400", *option, "--out", trajectory
        )
        where = ("--robot=laas4", "--link=mock", "--fast", "--home", "--seed=1")
        _run(*ARMATURE, "run", *where, "--play", trajectory, "--record", str(path))
        made.append(path)
    return made[0], made[1]


def make_known(folder: Path) -> tuple[Path, Path]:
    """The same by arithmetic, quickly, for tests."""
    paths = [make_long_recording(folder / f"{n}.h5", 20_000, seed=i) for i, n in enumerate(NAMES)]
    return paths[0], paths[1]


def run(
    *,
    make: Callable[[Path], tuple[Path, Path]] = record_on_mock,
    repeats: int = 3,
    environment: Path | None = ENVIRONMENT,
    long_samples: int = 600_000,
) -> Iterator[Row]:
    """Times, errors and memory.

    Args:
        make: Makes the recordings in a folder.
        repeats: How often each side has its turn.
        environment: Of FIGAROH, made if need be; None for ours alone.
        long_samples: Of the recording whose identification is weighed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        paths = make(folder)
        turn = _prepare_figaroh(environment, paths, folder) if environment else None
        ours, theirs = [], []
        for _ in range(repeats):
            words = ("-m", "tests.benchmarks.armature_side", str(paths[0]), str(paths[1]), CALLS)
            ours.append(json.loads(_run(sys.executable, *words, extra=ONE_THREAD)))
            if isinstance(turn, str) or turn is None:
                continue
            theirs += [json.loads(_run(*turn, extra=extra)) for extra in ({}, ONE_THREAD)]
        mine = {key: min(one[key] for one in ours) for key in ours[0] if key.endswith("_s")}
        rows = ours[0]["rows"]
        title = f"identification, {rows} samples"
        yield at_most(f"{title}: opening to CLS-2", mine["estimate_s"], ESTIMATE_MAX_S, "s")
        yield at_most(f"{title}: CLS-2 alone", mine["cls2_s"], CLS2_MAX_S, "s")
        yield _seconds(f"{title}: all of it, with validation and intervals", mine["identify_s"])
        yield at_most("regressor of 20000 samples", mine["regressor_s"], REGRESSOR_MAX_S, "s")
        if isinstance(turn, str):
            yield Row("identification, FIGAROH", f"skipped: {turn}")
        elif theirs:
            other = {
                key: min(one[key] for one in theirs) for key in theirs[0] if key.endswith("_s")
            }
            yield from _compare(mine, other, theirs[0])
        errors = {"armature, CLS-2": ours[0]["errors"]}
        if theirs:
            errors |= _figaroh_errors(paths, folder)
        yield from _error_rows(errors)
        taken = identify_elsewhere(make_long_recording(folder / "long.h5", long_samples))
        title = f"identification of {taken.rows} samples"
        yield at_most(f"{title}: memory beyond imports", taken.extra_mb, MEMORY_MAX_MB, "MB")
        yield _seconds(f"{title}: time", taken.seconds)


def _compare(
    mine: dict[str, float], other: dict[str, float], facts: dict[str, Any]
) -> Iterator[Row]:
    name = f"FIGAROH {facts['version']}"
    yield _seconds(f"{name}: its workflow to physically consistent links", other["physical_s"])
    yield _seconds(f"{name}: its workflow to weighted least squares", other["wls_s"])
    yield _seconds(f"{name}: the same without its report and statistics", other["steps_s"])
    yield _seconds(f"{name}: its regressor of all samples", other["regressor_s"])
    ours_s = mine["estimate_s"]
    yield at_least(
        "opening to CLS-2, against FIGAROH to physically consistent links",
        other["physical_s"] / ours_s,
        FASTER_MIN,
    )
    for what, key in (("weighted least squares", "wls_s"), ("bare least squares", "steps_s")):
        ratio = other[key] / ours_s
        yield Row(f"opening to CLS-2, against FIGAROH to {what}", f"{ratio:.1f} x", ratio, "x")


def _error_rows(errors: dict[str, dict[str, list[float]]]) -> Iterator[Row]:
    for name in NAMES:
        for place, rows in enumerate(("moving rows", "all rows")):
            others = [of[name][place] for who, of in errors.items() if not who.startswith("arm")]
            for who, of in errors.items():
                value, title = of[name][place], f"{name} error, {rows}, {who}"
                if others and name == "validation" and who.startswith("armature"):
                    best = min(others)
                    met = value <= best
                    yield Row(title, f"{value:.3f} %", value, "%", f"at most {best:.3f} %", met)
                else:
                    yield Row(title, f"{value:.3f} %", value, "%")


def _prepare_figaroh(
    environment: Path, paths: tuple[Path, Path], folder: Path
) -> tuple[str, ...] | str:
    """The command of one turn; or why there is none."""
    python = environment / "bin" / "python"
    try:
        if not python.exists():
            _run(sys.executable, "-m", "venv", str(environment))
        _run(str(python), "-m", "pip", "install", "--quiet", FIGAROH)
    except (RunFailedError, OSError) as error:
        return f"{FIGAROH} cannot be installed into {environment}: {error}"
    settings, _ = choose_preparation(open_segments(paths[:1]), Overrides())
    with open_recording(paths[0]) as recording:
        robot = recording.robot
    data: dict[str, Any] = {
        "terms": Regressor(robot).parameters.terms,
        "joint_names": [joint.name for joint in robot.joints],
        "cutoff_hz": settings.cutoff_hz,
    }
    for name, path in zip(NAMES, paths, strict=True):
        (segment,) = read_segments(path)
        data |= {"rate_hz": segment.rate_hz, f"{name}_t_s": segment.t_s}
        data |= {f"{name}_q_rad": segment.q_rad, f"{name}_tau_nm": segment.tau_nm}
    np.savez(folder / "data.npz", **data)
    _run(*ARMATURE, "robot", "to-urdf", "laas4", "--out", str(folder / "arm.urdf"))
    files = (str(folder / name) for name in ("data.npz", "arm.urdf", "predicted.npz"))
    return str(python), str(Path(__file__).with_name("figaroh_side.py")), *files, CALLS


def _figaroh_errors(paths: tuple[Path, Path], folder: Path) -> dict[str, dict[str, list[float]]]:
    settings, _ = choose_preparation(open_segments(paths[:1]), Overrides())
    predicted = np.load(folder / "predicted.npz")
    return {
        f"FIGAROH, {title}": {
            name: _percent(path, settings, predicted[f"{key}_{name}"])
            for name, path in zip(NAMES, paths, strict=True)
        }
        for key, title in (("physical", "physical fit"), ("wls", "weighted least squares"))
    }


def _percent(
    path: Path, settings: PreparationSettings, predicted_nm: NDArray[np.float64]
) -> list[float]:
    """Of moving rows and of all rows, as `Factors.error_percent` counts them."""
    with open_recording(path) as recording:
        switching = Regressor(recording.robot).switching
    ((_, rows),) = Samples(open_segments([path]), settings, switching, Overrides())
    (segment,) = read_segments(path)
    smooth = low_pass(
        predicted_nm, order=settings.order, cutoff_hz=settings.cutoff_hz, rate_hz=segment.rate_hz
    )
    left = rows.tau_nm - smooth[np.searchsorted(segment.t_s, rows.t_s)]
    everything = np.ones_like(rows.use)
    return [
        100.0 * float(np.linalg.norm(left[use]) / np.linalg.norm(rows.tau_nm[use]))
        for use in (rows.use, everything)
    ]


def _seconds(name: str, value: float) -> Row:
    return Row(name, f"{value:.2f} s", value, "s")


def _run(*command: str, extra: dict[str, str] | None = None) -> str:
    """Runs a program; returns what it prints. Without `extra`, threads are as they come."""
    environment = {key: value for key, value in os.environ.items() if key not in ONE_THREAD}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**environment, **(extra or {})},
    )
    if done.returncode:
        raise RunFailedError(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-300:]}")
    return done.stdout
