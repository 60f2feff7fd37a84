"""Looks for mistakes in the data: signs, order, units and delays of torques, joints at rest.

Much follows from each joint's rows alone: whatever the other joints do, its own friction opposes
it, and its own torque is explained by its own motion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from estimation.identification.estimators.linear import solve
from estimation.identification.estimators.problem import Problem
from estimation.identification.evaluation.traces import Trace
from estimation.identification.result import RecordingSummary
from estimation.types import FloatArray

_BEYOND_DOUBT = 30.0
"""Ordinary standard deviations by which friction must be negative: they are 2 to 6 times too small,
even without what the model lacks."""
_MATTERS = 0.02
"""Least share of a joint's torque that its friction makes up, for its sign to be judged."""
_UNEXPLAINED, _WORSE_TOGETHER = 0.15, 1.5
"""Torques that belong to another motion: share of a joint's torque that the best fit to its rows
alone leaves, and how many times as much the fit to all joints leaves."""
_RANK_TOLERANCE = 1e-8
_LIKE_CAD = 0.7
_OTHER_UNIT = 2.5
_NOTHING_LIKE_CAD = 1.0
_LATE_S, _LATE_CORRELATION = 1e-3, 0.3
_STILL = 5e-3
"""Of the fastest joint's speed: a joint that is slower than this is at rest."""


class VerdictReason(NamedTuple):
    """A reason not to use a result, or to doubt it.

    Attributes:
        code: What was found, in a word for programs.
        text: The same for people.
        joints: Names of the joints it is about; none where it is about all.
        value: The number it is about, in SI or as a ratio; None where there is none.
    """

    code: str
    text: str
    joints: tuple[str, ...] = ()
    value: float | None = None


class DataChecks(NamedTuple):
    """What looks like a mistake.

    Attributes:
        problems: Why the result is not to be used.
        doubts: Why one should look before using it.
    """

    problems: tuple[VerdictReason, ...] = ()
    doubts: tuple[VerdictReason, ...] = ()


def check_data(
    problem: Problem, traces: Sequence[Trace], recordings: Sequence[RecordingSummary] = ()
) -> DataChecks:
    """Look for mistakes that people make.

    The traces are those of the chosen method, identification first.
    """
    names = problem.regressor.parameters.joint_names
    fits = [_own_fit(problem, joint) for joint in range(len(names))]
    turned, strange = _turned(problem, fits), _strange(problem, fits)
    problems = [
        VerdictReason(
            "opposite-sign", f"the torque of {name} seems to have the opposite sign", (name,)
        )
        for name in turned
    ]
    if strange:
        text = (
            f"the torque of {', '.join(strange)} does not belong to its motion: check the order of "
            "the columns"
        )
        problems.append(VerdictReason("other-motion", text, tuple(strange)))
    doubts = list(_cad_doubts(problem))
    doubts += [
        VerdictReason("doubtful-recording", note) for each in recordings for note in each.notes
    ]
    if traces:
        doubts += [
            VerdictReason(
                "still-joint",
                f"{name} hardly moves: its friction and inertia are not known",
                (name,),
            )
            for name in still_joints(traces[0], names)
        ]
        late_s = torque_delay_s(traces[0])
        if late_s is not None:
            side = "later" if late_s > 0.0 else "earlier"
            text = (
                f"torques seem to be measured at least {1e3 * abs(late_s):.2g} ms {side} than "
                "positions, which changes friction"
            )
            doubts.append(VerdictReason("delayed-torque", text, value=late_s))
    return DataChecks(tuple(problems), tuple(doubts))


def still_joints(trace: Trace, joint_names: Sequence[str]) -> tuple[str, ...]:
    """Return the joints that do not move, while others do."""
    fastest = np.abs(trace.dq_rad_s).max(axis=0, initial=0.0)
    return tuple(
        name
        for name, speed in zip(joint_names, fastest, strict=True)
        if speed < _STILL * fastest.max(initial=0.0)
    )


def torque_delay_s(trace: Trace) -> float | None:
    """Return by how much measured torques are late, from the residuals; None if they are not.

    τ(t − d) ≈ τ − d·dτ/dt: the residual looks like the slope of the prediction. Friction hides a
    part of it, so that the true delay is longer.
    """
    delays, correlations = [], []
    for joint in range(trace.measured_nm.shape[1]):
        use = trace.use[:, joint]
        if np.count_nonzero(use) < 3:
            continue
        slope = np.gradient(trace.predicted_nm[:, joint], trace.period_s)[use]
        left = (trace.measured_nm - trace.predicted_nm)[use, joint]
        size, likeness = float(slope @ slope), -float(left @ slope)
        if size > 0.0 and left.any():
            delays.append(likeness / size)
            correlations.append(likeness / np.sqrt(size * float(left @ left)))
    if not delays:
        return None
    delay_s, correlation = float(np.median(delays)), float(np.median(correlations))
    is_clear = abs(correlation) > _LATE_CORRELATION and delay_s * correlation > 0.0
    return delay_s if is_clear and abs(delay_s) > _LATE_S else None


class _OwnFit(NamedTuple):
    """The best fit to one joint's rows alone, which no other joint's torque disturbs.

    Attributes:
        coefficients: Of Φ₁'s columns scaled to length 1, shape (r,); not unique but for friction.
        deviations: Their ordinary standard deviations.
        size: ‖τ‖.
        left: What is left, relative to it.
    """

    coefficients: FloatArray
    deviations: FloatArray
    size: float
    left: float


def _own_fit(problem: Problem, joint: int) -> _OwnFit:
    rank = problem.factors.rank
    factor = problem.factors.of_joints[joint]
    lengths = np.linalg.norm(factor[:, :rank], axis=0)
    columns = factor[:, :rank] / np.where(lengths > 0.0, lengths, 1.0)
    inverse = np.linalg.pinv(columns, rcond=_RANK_TOLERANCE)
    coefficients = inverse @ factor[:, rank]
    left = float(np.linalg.norm(factor[:, rank] - columns @ coefficients))
    rows = max(int(problem.factors.rows[:, joint].sum()) - rank, 1)
    deviations = left / np.sqrt(rows) * np.linalg.norm(inverse, axis=1)
    size = float(np.linalg.norm(factor[:, rank]))
    return _OwnFit(coefficients, deviations, size, left / size if size > 0.0 else 0.0)


def _turned(problem: Problem, fits: Sequence[_OwnFit]) -> list[str]:
    """Return the joints whose Coulomb friction would drive them, beyond doubt."""
    parameters = problem.regressor.parameters
    found = []
    for row, index in enumerate(problem.base.independent.tolist()):
        item = parameters.items[index]
        if item.kind != "coulomb":
            continue
        fit = fits[item.joint]
        is_large = fit.coefficients[row] < -_MATTERS * fit.size
        if is_large and fit.coefficients[row] < -_BEYOND_DOUBT * fit.deviations[row]:
            found.append(parameters.joint_names[item.joint])
    return found


def _strange(problem: Problem, fits: Sequence[_OwnFit]) -> list[str]:
    """Return joints whose torque neither their own motion nor that of all joints explains.

    What a model lacks (a soft gear, say) leaves as large a residual alone as together.
    """
    factors = problem.factors
    norms, sizes = factors.joint_errors(solve(factors.total(), factors.rank))
    return [
        name
        for joint, name in enumerate(problem.regressor.parameters.joint_names)
        if fits[joint].left > _UNEXPLAINED
        and norms[joint] > _WORSE_TOGETHER * fits[joint].left * sizes[joint]
    ]


def _cad_doubts(problem: Problem) -> Iterator[VerdictReason]:
    """Yield what a comparison with CAD says of units, zeros and directions."""
    if problem.cad is None:
        return
    rank = problem.factors.rank
    joints = problem.factors.of_joints
    expected, measured = joints[..., :rank] @ problem.base.of(problem.cad), joints[..., rank]
    both = np.sum(expected * measured, axis=1)
    sizes, others = np.linalg.norm(expected, axis=1), np.linalg.norm(measured, axis=1)
    is_known = (sizes > 0.0) & (others > 0.0)
    likeness = both[is_known] / (sizes[is_known] * others[is_known])
    scales = (both[is_known] / sizes[is_known] ** 2)[likeness > _LIKE_CAD]
    scale = float(np.median(scales)) if len(scales) else 1.0
    if not 1.0 / _OTHER_UNIT < scale < _OTHER_UNIT:
        text = (
            f"torques are {scale:.2g} times what CAD expects: check their unit, the side of the "
            "gear, and whether they are currents"
        )
        yield VerdictReason("other-unit", text, value=scale)
    elif np.linalg.norm(measured - expected) > _NOTHING_LIKE_CAD * np.linalg.norm(measured):
        text = (
            "torques are nothing like what CAD expects: check zeros, directions and order of the "
            "joints, and whether gravity is in the torques"
        )
        yield VerdictReason("unlike-cad", text)
