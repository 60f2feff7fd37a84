"""From recordings to a judged model: the order in which everything is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from daq.robot import parse_robot
from estimation.errors import EstimationError, InfeasibleParametersError
from estimation.identification.bounds import bounds_of
from estimation.identification.extras import find_instruments, find_payload, find_simulation
from estimation.identification.gathering import (
    check_joints,
    common_text,
    reduce_samples,
    summary_of,
)
from estimation.identification.judging import Data, judge
from estimation.identification.methods import METHODS
from estimation.identification.problem import Problem
from estimation.identification.relaxation import relax_bounds
from estimation.identification.request import Outcome, Request
from estimation.identification.result import FailedMethod, Identification, MethodResult
from estimation.identification.samples import Samples, choose_preparation
from estimation.identification.stretches import Stretches
from estimation.identification.tables import base_table, parameter_table, with_coverage
from estimation.identification.traces import Trace, make_trace, residual_tests
from estimation.identification.uncertainty import find_uncertainty
from estimation.identification.verdict import opposite_torques, reach_verdict
from estimation.model.base import condition_numbers, find_base
from estimation.model.parameters import cad_vector, choose_parameters
from estimation.model.regressor import Regressor

__all__ = ["Outcome", "Request", "identify"]

FloatArray = NDArray[np.float64]
PREFERRED = ("cls2", "cls3", "cls2-prior", "slsqp", "sa")
"""Whose parameters are written, in this order, if they are physically consistent."""


def identify(request: Request, progress: Callable[[str], None] = lambda _text: None) -> Outcome:
    """Identify an arm.

    Args:
        request: From what and how.
        progress: Told what is being done.

    Returns:
        The outcome.

    Raises:
        DatasetError: The recordings cannot be used.
        EstimationError: No estimator could be used.
    """
    started_s = time.perf_counter()
    recorded = (*request.recordings, *request.validations, *request.payloads)
    text = request.robot_text or common_text(recorded)
    robot = parse_robot(text, "the robot file")
    check_joints(robot, recorded)
    regressor = Regressor(robot, choose_parameters(robot, request.terms))
    base = find_base(regressor)
    progress("reading")
    stretches = Stretches(request.recordings, all_modes=request.wishes.all_modes)
    settings, notes = choose_preparation(stretches, request.wishes)
    samples = Samples(stretches, settings, regressor.switching, request.wishes)
    training = reduce_samples(regressor, base, samples, block_s=request.block_s)
    if samples.lost_share > 0.0:
        notes = (
            *notes,
            f"{100.0 * samples.lost_share:.2g} % of the samples were lost or late: filters go on "
            "across them, but they and what lies beside them do not count",
        )
    validation, validation_samples = None, None
    paths, wishes = request.validations, replace(request.wishes, rows=(0.0, 1.0), is_averaged=False)
    if request.has_split:
        paths, wishes = request.recordings, replace(request.wishes, is_outside=True)
    if request.validations or request.has_split:
        progress("reading validation")
        validation_samples = Samples(paths, settings, regressor.switching, wishes)
        validation = reduce_samples(regressor, base, validation_samples, block_s=request.block_s)
    problem = Problem(
        regressor=regressor,
        base=base,
        factors=training.moving,
        bounds=bounds_of(robot),
        cad=cad_vector(robot, regressor.parameters),
        samples=samples.prepared,
        instruments=find_instruments(request, regressor, settings),
        seed=request.seed,
        starts=request.starts,
        progress=progress,
    )
    relaxed: tuple[str, ...] = ()
    if request.is_relaxed:
        problem, relaxed = relax_bounds(problem)
    recordings = tuple(summary_of(path, request.wishes) for path in request.recordings)
    notes = (*notes, *relaxed, *(note for known in recordings for note in known.notes))
    floor = METHODS["uls"].estimate(problem)  # says what the data lack, before anything long
    uncertainty = find_uncertainty(problem.factors, seed=request.seed)
    results, failed = _run_methods(request, problem, training, validation, progress)
    chosen = _choose(results)
    beta = np.array(chosen.base)
    progress("judging")
    traces = _traces(problem, beta, samples, validation_samples)
    true_beta = None
    if request.truth is not None:
        theta = cad_vector(request.truth, regressor.parameters)
        if theta is not None:
            true_beta = base.of(theta)
            results = [with_coverage(row, true_beta, uncertainty) for row in results]
    rank = base.rank
    factor = problem.factors.total()[:rank, :rank]
    condition, condition_scaled = condition_numbers(factor)
    total_rows = training.everything.sample_count
    names = regressor.parameters.joint_names
    residuals = residual_tests(traces[-1], names) if traces else ()
    base_parameters = base_table(problem, beta, uncertainty, true_beta)
    result = Identification(
        robot=robot.name,
        recordings=recordings,
        validation_recordings=tuple(summary_of(path, wishes) for path in paths),
        terms=regressor.parameters.terms,
        parameter_count=len(regressor.parameters),
        rank=rank,
        lost=tuple(base.symbols[i] for i in base.lost),
        condition=condition,
        condition_scaled=condition_scaled,
        singular_values=tuple(np.linalg.svd(factor, compute_uv=False).tolist()),
        floor_percent=training.moving.error_percent(floor.beta)[0],
        floor_all_rows_percent=training.everything.error_percent(floor.beta)[0],
        moving_rows_percent=100.0 * training.moving.sample_count / total_rows,
        preparation=notes,
        cutoff_hz=settings.cutoff_hz,
        decimation=settings.decimation,
        methods=tuple(results),
        failed=tuple(failed),
        chosen=chosen.name,
        base_parameters=base_parameters,
        parameters=parameter_table(problem, chosen, uncertainty),
        residuals=residuals,
        simulation=find_simulation(request, problem, chosen, progress),
        payload=find_payload(request, problem, settings, progress),
        verdict=reach_verdict(
            results,
            chosen.name,
            joint_names=names,
            residuals=residuals,
            base=base_parameters,
            opposite=opposite_torques(problem, uncertainty),
            is_relaxed=bool(relaxed),
        ),
        seconds=time.perf_counter() - started_s,
        armature_version=request.version,
        is_mock=request.truth is not None,
        seed=request.seed,
    )
    return Outcome(
        result=result,
        robot=robot,
        robot_text=text,
        problem=problem,
        uncertainty=uncertainty,
        traces=traces,
    )


def _run_methods(
    request: Request,
    problem: Problem,
    training: Data,
    validation: Data | None,
    progress: Callable[[str], None],
) -> tuple[list[MethodResult], list[FailedMethod]]:
    results, failed = [], []
    for name in request.methods:
        progress(name)
        started_s = time.perf_counter()
        try:
            estimate = METHODS[name].estimate(problem)
        except InfeasibleParametersError:
            raise
        except EstimationError as error:
            failed.append(FailedMethod(name=name, reason=str(error)))
            continue
        seconds = time.perf_counter() - started_s
        results.append(judge(problem, estimate, seconds, training, validation))
    if not results:
        reasons = "; ".join(f"{method.name}: {method.reason}" for method in failed)
        raise EstimationError(f"no method could be used: {reasons}")
    return results, failed


def _choose(results: Sequence[MethodResult]) -> MethodResult:
    """The first of those preferred that can exist; else the one with the least error."""
    by_name = {row.name: row for row in results if row.consistent and row.theta is not None}
    for name in PREFERRED:
        if name in by_name:
            return by_name[name]
    estimated = [row for row in results if row.name != "cad"] or list(results)
    return min(estimated, key=lambda row: row.validation_percent or row.identification_percent)


def _traces(
    problem: Problem, beta: FloatArray, samples: Samples, validation: Samples | None
) -> tuple[Trace, ...]:
    made = [make_trace("identification", problem, beta, samples.prepared())]
    if validation is not None:
        made.append(make_trace("validation", problem, beta, validation.prepared()))
    return tuple(trace for trace in made if trace is not None)
