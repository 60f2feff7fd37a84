"""What is said of an estimate: errors, physical consistency, tables, residuals, the verdict."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identification_examples import (
    example,
    fourier_motion,
    make_problem,
    model_of,
    simulated,
    true_theta,
)

from estimation.identification.data.factors import ReducedSamples
from estimation.identification.estimators.constrained import estimate_cls2
from estimation.identification.estimators.linear import estimate_uls
from estimation.identification.estimators.methods import METHODS, estimate_cad
from estimation.identification.estimators.problem import Estimate, Problem
from estimation.identification.estimators.uncertainty import Uncertainty, find_uncertainty
from estimation.identification.evaluation.data_checks import DataChecks, VerdictReason
from estimation.identification.evaluation.judging import judge
from estimation.identification.evaluation.traces import ROWS_MAX, Trace, make_trace, residual_tests
from estimation.identification.evaluation.verdict import reach_verdict
from estimation.identification.output.tables import base_table, parameter_table, with_coverage
from estimation.identification.request import DEFAULT_METHODS
from estimation.identification.result import (
    ErrorsPercent,
    MethodResult,
    ResidualTest,
    Verdict,
)

JOINTS = ("joint1", "joint2", "joint3", "joint4")


def data_of(problem: Problem) -> ReducedSamples:
    return ReducedSamples(problem.factors, problem.factors)


def judged(estimate: Estimate, problem: Problem | None = None) -> MethodResult:
    problem = example() if problem is None else problem
    return judge(problem, estimate, 0.5, data_of(problem), None)


def of_theta(theta: np.ndarray, method: str = "cls2") -> Estimate:
    return Estimate(method=method, beta=model_of()[1].of(theta), theta=theta)


# --- one row of the comparison -------------------------------------------------------------------


def test_errors_on_known_and_unknown_data() -> None:
    problem = example()
    other = make_problem(simulated(true_theta(), fourier_motion(7), noise_nm=0.05, seed=7))
    estimate = estimate_cls2(problem)
    row = judge(problem, estimate, 0.5, data_of(problem), data_of(other))
    assert (row.name, row.seconds) == ("cls2", 0.5)
    total, per_joint = problem.factors.error_percent(estimate.beta)
    assert (row.identification.moving, row.identification.per_joint) == (total, per_joint)
    total, per_joint = other.factors.error_percent(estimate.beta)
    assert row.validation is not None
    assert (row.validation.moving, row.validation.per_joint) == (total, per_joint)
    assert row.identification.all_rows == row.identification.moving
    raw, raw_per_joint = problem.factors.error_percent(estimate.beta, is_raw=True)
    assert (row.identification.raw, row.identification.raw_per_joint) == (raw, raw_per_joint)
    assert row.identification.rms_nm == pytest.approx((0.05,) * 4, rel=0.1)
    assert judged(estimate).validation is None


def test_an_arm_that_can_exist() -> None:
    row = judged(of_theta(true_theta()))
    assert row.consistent
    assert row.min_pseudo_inertia_eigenvalue > 0.0
    least = row.pseudo_inertia_eigenvalues
    assert (len(least), min(least)) == (4, row.min_pseudo_inertia_eigenvalue)
    assert row.inertia_matrix_positive
    low, high = row.inertia_matrix_condition
    assert 1.0 <= low <= high < 1000.0


def test_base_parameters_of_an_arm_that_can_exist() -> None:
    beta = model_of()[1].of(true_theta())
    row = judged(Estimate(method="uls", beta=beta))
    assert (row.consistent, row.theta, row.inertia_matrix_positive) == (True, None, True)
    row = judged(Estimate(method="uls", beta=-beta))
    assert (row.consistent, row.inertia_matrix_positive) == (False, False)
    assert row.min_pseudo_inertia_eigenvalue < 0.0
    assert row.inertia_matrix_condition == (math.inf, math.inf)


def test_a_link_that_cannot_exist() -> None:
    theta = true_theta()
    theta[30] *= -1.0
    row = judged(of_theta(theta))
    assert not row.consistent
    assert [value > 0.0 for value in row.pseudo_inertia_eigenvalues] == [True, True, True, False]


@pytest.mark.parametrize("kind", ["viscous", "coulomb", "drive_inertia"])
def test_friction_that_drives_cannot_exist(kind: str) -> None:
    theta = true_theta()
    theta[model_of()[0].parameters.of_kind(kind)[2]] = -1e-3
    row = judged(of_theta(theta))
    assert not row.consistent
    assert row.min_pseudo_inertia_eigenvalue > 0.0


def test_held_out_data_are_predicted_a_little_worse() -> None:
    row = judged(estimate_uls(example()))
    assert row.cross_validation_percent is not None
    assert row.identification.moving < row.cross_validation_percent
    assert row.cross_validation_percent < 1.2 * row.identification.moving
    assert judged(estimate_cad(example())).cross_validation_percent is None


def test_methods_are_called_by_their_names() -> None:
    assert all(name == method.name for name, method in METHODS.items())
    assert set(DEFAULT_METHODS) <= set(METHODS)
    for name in DEFAULT_METHODS:
        estimate = METHODS[name].estimate(example())
        assert estimate.method == name
        assert estimate.beta.shape == (32,)


# --- tables --------------------------------------------------------------------------------------


def test_base_parameters_with_intervals() -> None:
    problem = example()
    estimate = estimate_cls2(problem)
    uncertainty = find_uncertainty(problem.factors, seed=0)
    true_beta = problem.base.of(true_theta())
    table = base_table(problem, estimate.beta, uncertainty, true_beta)
    assert [row.value for row in table] == estimate.beta.tolist()
    assert [row.true for row in table] == true_beta.tolist()
    assert problem.cad is not None
    assert [row.cad for row in table] == problem.base.of(problem.cad).tolist()
    for row in table:
        assert row.low < row.value < row.high
        assert row.expression.startswith(row.symbol) or row.symbol in row.expression
        assert row.relative_percent == pytest.approx(100.0 * row.sigma / abs(row.value))
    assert any(row.essential for row in table)
    no_cad = base_table(dataclasses.replace(problem, cad=None), estimate.beta, uncertainty, None)
    assert {(row.cad, row.true) for row in no_cad} == {(None, None)}


def test_only_what_is_told_alone_has_a_standard_deviation() -> None:
    problem = example()
    uncertainty = find_uncertainty(problem.factors, seed=0)
    row = judged(estimate_cls2(problem))
    table = parameter_table(problem, row, uncertainty)
    assert tuple(item.value for item in table) == row.theta
    assert {item.symbol for item in table if item.is_identifiable} >= {"fv1", "fc4", "Ia3", "mcy4"}
    assert not next(item for item in table if item.symbol == "m2").is_identifiable
    assert all((item.sigma is None) != item.is_identifiable for item in table)
    assert {item.joint for item in table} == set(JOINTS)
    assert parameter_table(problem, judged(estimate_uls(problem)), uncertainty) == ()


@given(inside=st.lists(st.booleans(), min_size=32, max_size=32))
def test_the_share_of_the_truth_inside_the_intervals(inside: list[bool]) -> None:
    problem = example()
    uncertainty = find_uncertainty_once()
    row = judged_uls()
    off = np.where(inside, 0.9, 1.1) * uncertainty.half_width
    found = with_coverage(row, np.array(row.base) + off, uncertainty)
    assert found.base_parameters_in_interval == pytest.approx(np.mean(inside))
    assert len(row.base) == problem.base.rank


@cache
def find_uncertainty_once() -> Uncertainty:
    return find_uncertainty(example().factors, seed=0)


@cache
def judged_uls() -> MethodResult:
    return judged(estimate_uls(example()))


# --- residuals -----------------------------------------------------------------------------------


def test_a_trace_is_the_first_recording_as_predicted() -> None:
    theta = true_theta()
    first = simulated(theta, fourier_motion(), noise_nm=0.05)
    second = dataclasses.replace(first, source=Path("other.h5"))
    problem = example()
    trace = make_trace("validation", problem, problem.base.of(theta), [first, first, second])
    assert trace is not None
    assert (trace.title, trace.file, trace.period_s) == ("validation", "synthetic.h5", 0.01)
    assert len(trace.t_s) == 2 * len(first)
    left = trace.measured_nm - trace.predicted_nm
    assert left.std() == pytest.approx(0.05, rel=0.05)
    assert make_trace("identification", problem, problem.base.of(theta), []) is None


def test_a_long_recording_is_shown_by_its_beginning() -> None:
    part = simulated(true_theta(), fourier_motion())
    count = ROWS_MAX // len(part) + 2
    trace = make_trace("x", example(), example().base.of(true_theta()), [part] * count)
    assert trace is not None
    for field in dataclasses.fields(Trace)[3:]:
        assert len(getattr(trace, field.name)) == ROWS_MAX


def left_over(left_nm: np.ndarray, speed_rad_s: np.ndarray | None = None) -> Trace:
    """A trace with these residuals at two joints; the second never counts."""
    speed = np.sin(np.arange(len(left_nm)) / 30.0) if speed_rad_s is None else speed_rad_s
    both = np.stack([left_nm, left_nm], axis=1)
    return Trace(
        title="x",
        file="x.h5",
        period_s=0.01,
        t_s=0.01 * np.arange(len(left_nm)),
        dq_rad_s=np.stack([speed, speed], axis=1),
        measured_nm=both + 1.0,
        raw_nm=both + 1.0,
        predicted_nm=np.ones_like(both),
        use=np.stack([np.ones(len(left_nm), bool), np.zeros(len(left_nm), bool)], axis=1),
    )


def test_residuals_that_are_noise() -> None:
    noise = np.random.default_rng(0).standard_normal(20_000)
    (test,) = residual_tests(left_over(0.1 * noise), ("a", "b"))
    assert (test.joint, test.memory_s) == ("a", 0.01)
    assert test.rms_nm == pytest.approx(0.1, rel=0.02)
    assert abs(test.mean_nm) < 0.003
    assert abs(test.kurtosis) < 0.15
    assert abs(test.velocity_correlation) < 0.03


def test_residuals_that_are_no_noise() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(20_000)
    slow = np.convolve(noise, np.ones(100) / 10.0, "same")
    speed = np.sin(np.arange(20_000) / 30.0)
    outliers = np.where(np.arange(20_000) % 500 == 0, 2.0, noise)
    tests = [
        residual_tests(left_over(left), ("a", "b"))[0]
        for left in (slow, noise + np.sign(speed), outliers, noise + 3.0)
    ]
    assert 0.4 < tests[0].memory_s < 0.9  # (1 − t/1 s) falls to 1/e at 0.63 s
    assert tests[1].velocity_correlation > 0.98
    assert tests[2].kurtosis > 10.0
    assert tests[3].mean_nm == pytest.approx(3.0, abs=0.01)


def test_residuals_of_one_direction_or_of_nothing() -> None:
    noise = np.random.default_rng(0).standard_normal(100)
    (test,) = residual_tests(left_over(noise, np.ones(100)), ("a", "b"))
    assert test.velocity_correlation == 0.0
    assert residual_tests(left_over(np.zeros(100)), ("a", "b")) == ()
    assert residual_tests(left_over(noise[:5]), ("a", "b")) == ()


# --- the verdict ---------------------------------------------------------------------------------


def errors(percent: float) -> ErrorsPercent:
    return ErrorsPercent(
        moving=percent,
        per_joint=(percent, 2.0 * percent),
        all_rows=1.5 * percent,
        all_rows_per_joint=(percent, percent),
        raw=2.0 * percent,
        raw_per_joint=(2.0 * percent, 3.0 * percent),
        rms_nm=(0.1, 0.1),
    )


def a_row(name: str, known: float, unknown: float | None, **changes: object) -> MethodResult:
    row = MethodResult(
        name=name,
        summary="",
        identification=errors(known),
        validation=None if unknown is None else errors(unknown),
        cross_validation_percent=None,
        consistent=True,
        min_pseudo_inertia_eigenvalue=1e-6,
        pseudo_inertia_eigenvalues=(1e-6, 2e-6),
        inertia_matrix_positive=True,
        inertia_matrix_condition=(10.0, 20.0),
        seconds=0.1,
        base=(1.0,),
        theta=(1.0,),
    )
    return msgspec.structs.replace(row, **changes)


CAD, FLOOR = a_row("cad", 9.0, 9.0), a_row("uls", 1.0, 1.4)


def verdict_on(row: MethodResult, *others: MethodResult) -> Verdict:
    return reach_verdict((*others, row), row.name, joint_names=("a", "b"))


def test_a_model_that_can_be_used() -> None:
    verdict = verdict_on(a_row("cls2", 1.01, 1.5), CAD, FLOOR)
    assert verdict.is_usable
    assert verdict.text == (
        "cls2 leaves 1.50 % of the torque where joints move and 2.25 % over all rows; most at b, "
        "3.0 %. Its error is 1.010 times that of unconstrained least squares, the floor"
    )
    assert verdict.doubts == ()
    assert verdict.codes == ()
    assert "--validate" not in verdict.scope


@pytest.mark.parametrize(
    ("row", "code", "number"),
    [
        (a_row("cls1", 1.0, 1.5, consistent=False), "inconsistent", ""),
        (a_row("cls1", 1.0, 1.5, inertia_matrix_positive=False), "indefinite-inertia-matrix", ""),
        (a_row("cls2", 8.0, 10.5), "large-error", "10.5 %"),
        (a_row("cls2", 8.0, 9.0), "no-better-than-cad", "9.00 %"),
        (a_row("cls2", 1.0, 3.1), "overfitted", ""),
    ],
)
def test_a_model_that_cannot(row: MethodResult, code: str, number: str) -> None:
    verdict = verdict_on(row, CAD, FLOOR)
    assert not verdict.is_usable
    assert code in verdict.codes
    assert number in verdict.text


def test_what_looks_like_a_mistake_and_a_joint_that_is_not_predicted_are_no_use() -> None:
    row = a_row("cls2", 1.0, 1.5)
    turned, still = (
        VerdictReason("turned", "b is turned round"),
        VerdictReason("still", "a is at rest"),
    )
    found = DataChecks(problems=(turned,), doubts=(still,))
    verdict = reach_verdict((row,), "cls2", joint_names=("a", "b"), data_checks=found)
    assert not verdict.is_usable
    assert "b is turned round" in verdict.text
    assert verdict.doubts == ("a is at rest",)
    assert verdict.codes == ("turned", "still")
    hidden = msgspec.structs.replace(errors(4.0), per_joint=(1.0, 96.0))
    verdict = verdict_on(msgspec.structs.replace(row, validation=hidden))
    assert not verdict.is_usable
    assert "unpredicted-joint" in verdict.codes
    assert "b (96 %)" in verdict.text


def a_test(joint: str, memory_s: float) -> ResidualTest:
    return ResidualTest(
        joint=joint,
        mean_nm=0.0,
        rms_nm=0.1,
        memory_s=memory_s,
        kurtosis=0.0,
        velocity_correlation=0.0,
    )


@pytest.mark.parametrize(
    ("row", "more", "code"),
    [
        (a_row("cls2", 1.2, 1.2), {}, "same-data"),
        (a_row("cls2", 2.0, 2.1), {}, "disagreeing-constraints"),
        (a_row("cls2", 1.0, 1.5, active_bounds=("mass",)), {}, "active-bounds"),
        (
            a_row("cls2", 1.0, 1.5),
            {"residuals": (a_test("b", 0.4), a_test("a", 0.03))},
            "lasting-residuals",
        ),
        (a_row("cls2", 1.0, 1.5), {"is_relaxed": True}, "relaxed-bounds"),
    ],
)
def test_reasons_to_doubt_a_model_are_named(
    row: MethodResult, more: dict[str, Any], code: str
) -> None:
    verdict = reach_verdict((FLOOR, row), row.name, joint_names=("a", "b"), **more)
    assert verdict.is_usable
    assert verdict.codes == (code,)
    (doubt,) = verdict.doubts
    assert doubt in verdict.text
    assert ("b (0.4 s)" in doubt) == (code == "lasting-residuals")


def test_constraints_that_the_data_contradict_are_no_use() -> None:
    verdict = verdict_on(a_row("cls2", 3.1, 3.2), FLOOR)
    assert not verdict.is_usable
    assert "contradicting-constraints" in verdict.codes


def test_without_validation_that_is_said() -> None:
    verdict = verdict_on(a_row("cls2", 1.0, None))
    assert verdict.is_usable
    assert "--validate" in verdict.scope
    assert "floor" not in verdict.text


def test_cad_alone_is_not_compared_with_itself() -> None:
    assert verdict_on(a_row("cad", 3.0, 3.0)).is_usable
