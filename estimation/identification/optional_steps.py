"""Optional steps of an identification: instruments, simulation, payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from daq.recording.text import plain
from estimation.identification.data.gathering import Gathered, reduce_samples
from estimation.identification.data.samples import Samples, Segments
from estimation.identification.estimators.instruments import make_instruments
from estimation.identification.estimators.problem import Instruments, Problem
from estimation.identification.evaluation.simulation_check import simulate_recording
from estimation.identification.output.payload import identify_payload
from estimation.identification.request import Request
from estimation.identification.result import (
    MethodResult,
    PayloadResult,
    SimulationCheck,
)
from estimation.recordings.dataset import OpenDataset
from estimation.signals.preparation import PreparationSettings


def find_instruments(request: Request, known: Gathered) -> Instruments | None:
    """Return the recordings' instruments, if they are requested and available."""
    if "iv" not in request.methods:
        return None
    return make_instruments(known.regressor, known.settings, known.segments)


def find_simulation(
    request: Request,
    datasets: Mapping[Path, OpenDataset],
    problem: Problem,
    chosen: MethodResult,
    progress: Callable[[str], None],
) -> SimulationCheck | None:
    """Simulate the identified arm, if that is requested."""
    if not request.is_simulated or chosen.theta is None or not chosen.inertia_matrix_positive:
        return None
    progress("simulating")
    path = (*request.validations, *request.recordings)[0]
    return simulate_recording(problem, chosen.theta, datasets[path])


def find_payload(
    request: Request,
    datasets: Mapping[Path, OpenDataset],
    problem: Problem,
    settings: PreparationSettings,
    progress: Callable[[str], None],
) -> PayloadResult | None:
    """Identify what the arm carries in other recordings, if there are any."""
    if not request.payloads:
        return None
    progress("payload")
    segments = Segments([datasets[path] for path in request.payloads])
    samples = Samples(segments, settings, problem.regressor.switching, request.overrides)
    data = reduce_samples(problem.regressor, problem.base, samples, block_s=request.block_s)
    loaded = replace(problem, factors=data.moving, samples=samples.prepared)
    files = tuple(plain(path.name) for path in request.payloads)
    return identify_payload(problem, loaded, files=files)
