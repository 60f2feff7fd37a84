"""Identifies an arm: from recordings to a judged model, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daq.robot import Robot
from estimation.errors import EstimationError, InfeasibleParametersError
from estimation.identification.data.gathering import Gathered, gather, open_datasets
from estimation.identification.estimators.bounds import bounds_of
from estimation.identification.estimators.methods import METHODS
from estimation.identification.estimators.problem import Problem
from estimation.identification.estimators.relaxation import relax_bounds
from estimation.identification.estimators.uncertainty import find_uncertainty
from estimation.identification.evaluation.data_checks import check_data
from estimation.identification.evaluation.judging import judge
from estimation.identification.evaluation.traces import Trace, make_trace, residual_tests
from estimation.identification.evaluation.verdict import reach_verdict
from estimation.identification.optional_steps import find_instruments, find_payload, find_simulation
from estimation.identification.output.tables import base_table, parameter_table, with_coverage
from estimation.identification.request import Request
from estimation.identification.result import FailedMethod, Identification, MethodResult
from estimation.model.base import condition_numbers
from estimation.model.parameters import cad_vector
from estimation.recordings.dataset import OpenDataset
from estimation.types import FloatArray

__all__ = ["IdentificationOutcome", "Request", "identify"]

PREFERRED = ("cls2", "cls2-wls", "cls3", "cls2-prior", "slsqp", "sa")
"""Methods whose parameters are written, in this order, if they are physically consistent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationOutcome:
    """The result of an identification, and what it was computed from.

    Attributes:
        result: The result.
        robot: The robot that was identified.
        robot_text: Its file.
        problem: What the estimators got.
        traces: Torques over time, of identification and validation.
    """

    result: Identification
    robot: Robot
    robot_text: str
    problem: Problem
    traces: tuple[Trace, ...]


def identify(
    request: Request, progress: Callable[[str], None] = lambda _text: None
) -> IdentificationOutcome:
    """Identify an arm.

    Raises:
        DatasetError: The recordings cannot be used.
        EstimationError: No estimator could be used.
    """
    with open_datasets(request) as datasets:
        return _identify(request, datasets, progress)


def _identify(
    request: Request, datasets: Mapping[Path, OpenDataset], progress: Callable[[str], None]
) -> IdentificationOutcome:
    started_s = time.perf_counter()
    known = gather(request, datasets, progress)
    problem, relaxed = _pose(request, known, progress)
    floor = METHODS["uls"].estimate(problem)  # raises if the data lack something, before long work
    uncertainty = find_uncertainty(problem.factors, seed=request.seed)
    results, failed = _run_methods(request, problem, known, progress)
    true_beta = _true_base(known, problem)
    if true_beta is not None:
        results = [with_coverage(row, true_beta, uncertainty) for row in results]
    chosen = _choose(results)
    beta = np.array(chosen.base)
    progress("judging")
    traces = _traces(problem, beta, known)
    names = problem.regressor.parameters.joint_names
    residuals = residual_tests(traces[-1], names) if traces else ()
    base_parameters = base_table(problem, beta, uncertainty, true_beta)
    training, rank = known.training, known.base.rank
    factor = problem.factors.total()[:rank, :rank]
    condition, condition_scaled = condition_numbers(factor)
    result = Identification(
        robot=known.robot.name,
        joint_names=names,
        recordings=known.recordings,
        validation_recordings=known.validation_recordings,
        terms=problem.regressor.parameters.terms,
        parameter_count=len(problem.regressor.parameters),
        rank=rank,
        lost=tuple(known.base.symbols[i] for i in known.base.lost),
        condition=condition,
        condition_scaled=condition_scaled,
        singular_values=tuple(np.linalg.svd(factor, compute_uv=False).tolist()),
        floor_percent=training.moving.error_percent(floor.beta)[0],
        floor_all_rows_percent=training.everything.error_percent(floor.beta)[0],
        moving_rows_percent=(
            100.0 * training.moving.sample_count / training.everything.sample_count
        ),
        preparation=(*known.notes, *relaxed),
        cutoff_hz=known.settings.cutoff_hz,
        decimation=known.settings.decimation,
        methods=tuple(results),
        failed=tuple(failed),
        chosen=chosen.name,
        base_parameters=base_parameters,
        parameters=parameter_table(problem, chosen, uncertainty),
        residuals=residuals,
        simulation=find_simulation(request, datasets, problem, chosen, progress),
        payload=find_payload(request, datasets, problem, known.settings, progress),
        verdict=reach_verdict(
            results,
            chosen.name,
            joint_names=names,
            residuals=residuals,
            base=base_parameters,
            data_checks=check_data(problem, traces, known.recordings),
            is_relaxed=bool(relaxed),
        ),
        seconds=time.perf_counter() - started_s,
        armature_version=request.version,
        is_mock=known.truth is not None,
        seed=request.seed,
    )
    return IdentificationOutcome(
        result=result,
        robot=known.robot,
        robot_text=known.robot_text,
        problem=problem,
        traces=traces,
    )


def _pose(
    request: Request, known: Gathered, progress: Callable[[str], None]
) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem for the estimators, and notes on bounds that were relaxed."""
    problem = Problem(
        regressor=known.regressor,
        base=known.base,
        factors=known.training.moving,
        bounds=bounds_of(known.robot),
        cad=cad_vector(known.robot, known.regressor.parameters),
        samples=known.samples.prepared,
        instruments=find_instruments(request, known),
        seed=request.seed,
        starts=request.starts,
        progress=progress,
    )
    return relax_bounds(problem) if request.is_relaxed else (problem, ())


def _true_base(known: Gathered, problem: Problem) -> FloatArray | None:
    """Return the true base parameters; on the mock only."""
    if known.truth is None:
        return None
    theta = cad_vector(known.truth, problem.regressor.parameters)
    return None if theta is None else problem.base.of(theta)


def _run_methods(
    request: Request, problem: Problem, known: Gathered, progress: Callable[[str], None]
) -> tuple[list[MethodResult], list[FailedMethod]]:
    results: list[MethodResult] = []
    failed: list[FailedMethod] = []
    infeasible: InfeasibleParametersError | None = None
    for name in request.methods:
        progress(name)
        started_s = time.perf_counter()
        try:
            estimate = METHODS[name].estimate(problem)
        except EstimationError as error:
            failed.append(FailedMethod(name=name, reason=str(error), code=error.code))
            if isinstance(error, InfeasibleParametersError):
                infeasible = infeasible or error
            continue
        seconds = time.perf_counter() - started_s
        results.append(judge(problem, estimate, seconds, known.training, known.validation))
    if infeasible is not None and not any(row.name in PREFERRED for row in results):
        raise infeasible  # physically consistent links were asked for, and there are none
    if not results:
        reasons = "; ".join(f"{method.name}: {method.reason}" for method in failed)
        raise EstimationError(f"no method could be used: {reasons}", code="no-method")
    return results, failed


def _choose(results: Sequence[MethodResult]) -> MethodResult:
    """Choose the first preferred consistent method; else the one with the least error."""
    by_name = {row.name: row for row in results if row.consistent and row.theta is not None}
    for name in PREFERRED:
        if name in by_name:
            return by_name[name]
    estimated = [row for row in results if row.name != "cad"] or list(results)
    return min(estimated, key=lambda row: row.judged.moving)


def _traces(problem: Problem, beta: FloatArray, known: Gathered) -> tuple[Trace, ...]:
    made = [make_trace("identification", problem, beta, known.samples.prepared())]
    if known.validation_samples is not None:
        made.append(make_trace("validation", problem, beta, known.validation_samples.prepared()))
    return tuple(trace for trace in made if trace is not None)
