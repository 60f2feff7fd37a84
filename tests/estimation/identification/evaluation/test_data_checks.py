"""Mistakes that people make are named, and what is right is not suspected."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from identification_examples import example, fourier_motion, make_problem, simulated, true_theta

from estimation.identification.estimators.linear import estimate_uls
from estimation.identification.estimators.problem import Problem
from estimation.identification.evaluation.data_checks import (
    DataChecks,
    check_data,
    still_joints,
    torque_delay_s,
)
from estimation.identification.evaluation.traces import Trace, make_trace
from estimation.signals.preparation import Prepared

NAMES = ("joint1", "joint2", "joint3", "joint4")


def made(change: Callable[[Prepared], Prepared] = lambda part: part, *, seed: int = 1) -> Problem:
    part = simulated(true_theta(seed), fourier_motion(seed), noise_nm=0.005, seed=seed)
    return make_problem(change(part))


def with_torque(change: Callable[[np.ndarray], np.ndarray]) -> Problem:
    return made(lambda part: dataclasses.replace(part, tau_nm=change(part.tau_nm)))


def trace_of(problem: Problem) -> Trace:
    beta = estimate_uls(problem).beta
    trace = make_trace("identification", problem, beta, problem.samples())
    assert trace is not None
    return trace


def checks_of(problem: Problem) -> DataChecks:
    return check_data(problem, (trace_of(problem),))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_suspected_of_what_is_right(seed: int) -> None:
    assert checks_of(made(seed=seed)) == DataChecks()
    assert check_data(example(), ()) == DataChecks()


@pytest.mark.parametrize("joints", [(0,), (1,), (2,), (3,), (0, 3), (0, 1, 2, 3)])
def test_torques_that_are_turned_round_are_found(joints: tuple[int, ...]) -> None:
    signs = np.ones(4)
    signs[list(joints)] = -1.0
    problems = checks_of(with_torque(lambda tau: tau * signs)).problems
    found = [(problem.code, problem.joints) for problem in problems[: len(joints)]]
    assert found == [("opposite-sign", (NAMES[joint],)) for joint in joints]


def test_columns_in_another_order_are_found() -> None:
    problems = checks_of(with_torque(lambda tau: tau[:, [2, 1, 0, 3]])).problems
    assert "other-motion" in {problem.code for problem in problems}


@pytest.mark.parametrize("factor", [0.1, 1000.0])
def test_another_unit_is_found(factor: float) -> None:
    (doubt,) = checks_of(with_torque(lambda tau: factor * tau)).doubts
    assert doubt.code == "other-unit"
    assert doubt.value == pytest.approx(factor, rel=0.4)


def test_torques_that_have_nothing_to_do_with_cad_are_found() -> None:
    problem = dataclasses.replace(example(), cad=-1.0 * true_theta())
    doubts = check_data(problem, ()).doubts
    assert [doubt.code for doubt in doubts] == ["unlike-cad"]
    assert check_data(dataclasses.replace(problem, cad=None), ()).doubts == ()


@pytest.mark.parametrize("rows", [2, -2])
def test_late_torques_are_found(rows: int) -> None:
    problem = with_torque(lambda tau: np.roll(tau, rows, axis=0))
    trace = trace_of(problem)
    found_s = torque_delay_s(trace)
    assert found_s is not None
    # Friction and inertia take a part of it.
    assert 0.05 < found_s / (rows * trace.period_s) <= 1.0
    (doubt,) = (each for each in checks_of(problem).doubts if each.code == "delayed-torque")
    assert doubt.value == found_s


def test_a_joint_that_does_not_move_is_found() -> None:
    trace = trace_of(example())
    speeds = trace.dq_rad_s * [1.0, 1.0, 1e-3, 1.0]
    assert still_joints(dataclasses.replace(trace, dq_rad_s=speeds), NAMES) == ("joint3",)
    assert still_joints(trace, NAMES) == ()


def test_a_trace_of_nothing_tells_nothing() -> None:
    trace = trace_of(example())
    nothing = np.zeros_like(trace.use)
    assert torque_delay_s(dataclasses.replace(trace, use=nothing)) is None
