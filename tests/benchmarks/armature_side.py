"""`python -m tests.benchmarks.armature_side ID.h5 VAL.h5 REPEATS`: what an identification takes.

In a process of its own, with everything imported before the clock starts. Prints JSON: the least
seconds of some repetitions, and the errors of CLS-2.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import cvxpy  # noqa: F401 - estimators import it when they are first used

from estimation.identification.data.gathering import reduce_samples
from estimation.identification.data.samples import Samples, Segments, choose_preparation
from estimation.identification.estimators.bounds import bounds_of
from estimation.identification.estimators.methods import METHODS
from estimation.identification.estimators.problem import Problem
from estimation.identification.pipeline import identify
from estimation.identification.request import BLOCK_S, Overrides, Request
from estimation.model.base import find_base
from estimation.model.parameters import cad_vector, choose_parameters
from estimation.model.regressor import Regressor
from tests.support.datasets import open_dataset
from tests.support.identification_examples import fourier_motion

REGRESSOR_ROWS = 20_000


def estimate_s(path: Path) -> tuple[float, float]:
    """From opening a recording to CLS-2, and CLS-2 alone."""
    began_s = time.perf_counter()
    dataset = open_dataset(path)
    robot = dataset.recording.robot
    regressor = Regressor(robot, choose_parameters(robot))
    base = find_base(regressor)
    segments = Segments([dataset])
    settings, _ = choose_preparation(segments, Overrides())
    samples = Samples(segments, settings, regressor.switching, Overrides())
    data = reduce_samples(regressor, base, samples, block_s=BLOCK_S)
    problem = Problem(
        regressor=regressor,
        base=base,
        factors=data.moving,
        bounds=bounds_of(robot),
        cad=cad_vector(robot, regressor.parameters),
        samples=samples.prepared,
    )
    ready_s = time.perf_counter()
    METHODS["cls2"].estimate(problem)
    now_s = time.perf_counter()
    return now_s - began_s, now_s - ready_s


def regressor_s(path: Path) -> float:
    """Φ of 20,000 samples."""
    regressor = Regressor(open_dataset(path).recording.robot)
    motion = fourier_motion(0, 20.0, rate_hz=1000.0)
    assert len(motion.t_s) == REGRESSOR_ROWS
    began_s = time.perf_counter()
    regressor(motion.q_rad, motion.dq_rad_s, motion.ddq_rad_s2)
    return time.perf_counter() - began_s


def main() -> None:
    recording, validation, repeats = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    best: dict[str, float] = {}
    for _ in range(repeats):
        times = {"regressor_s": regressor_s(recording)}
        times["estimate_s"], times["cls2_s"] = estimate_s(recording)
        began_s = time.perf_counter()
        request = Request(recordings=(recording,), validations=(validation,), methods=("cls2",))
        result = identify(request).result
        times["identify_s"] = time.perf_counter() - began_s
        best = {name: min(value, best.get(name, value)) for name, value in times.items()}
    (method,) = result.methods
    assert method.validation is not None
    errors = {
        "identification": [method.identification.moving, method.identification.all_rows],
        "validation": [method.validation.moving, method.validation.all_rows],
    }
    print(json.dumps({"rows": result.recordings[0].rows_used, "errors": errors, **best}))


if __name__ == "__main__":
    main()
