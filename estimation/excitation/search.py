"""Search for a Fourier trajectory that determines an arm's parameters best, within its limits.

Candidates are judged on one period and a coarse grid, by the Gram matrix of the base regressor Φ₁.
The number of candidates, not time, ends the search: one seed gives one result. The best is then
sampled at 1 kHz over its whole duration, checked against every limit, and made a little smaller
until it keeps them all.

References: [Swevers 1997].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daq.robot import Robot
from estimation.errors import ExcitationError
from estimation.excitation.candidates import CandidateSpace
from estimation.excitation.coverage import Coverage, find_coverage
from estimation.excitation.evolution import Evolution
from estimation.excitation.fourier import FourierTrajectory, SampledMotion
from estimation.excitation.limits import CLEARANCE_M, ArmLimits, Limit
from estimation.excitation.settings import ExcitationSettings, Objective
from estimation.model.base import BaseParameters, find_base
from estimation.model.parameters import Parameters
from estimation.model.regressor import Regressor
from estimation.types import FloatArray

Progress = Callable[[float, float], None]
"""Gets how many candidates have been tried, and how many will be."""

CONDITION_MAX = 1e6
"""Beyond it, noise of a millionth of the torques is as large as what a parameter does."""
_TINY = 1e-12
# The coarse grid misses a little of every peak.
_LOAD_MAX = 0.98
_CLEARANCE_M = CLEARANCE_M + 0.005
# Costs are logarithms of condition numbers: 10 % too much torque weighs like a factor of e.
_LOAD_WEIGHT, _CLEARANCE_WEIGHT, _EXCESS_WEIGHT = 10.0, 100.0, 0.01
_SIGMA = 0.4
_CONVERGED = 2e-3
_SHRINK, _SMALLEST = 0.98, 0.2
_SHRINK_GROWTH = 1.3
"""A little at first, then faster: each look at a whole trajectory takes a tenth of a second."""
_CHUNK = 4096
_APPROACH_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class Excitation:
    """A trajectory, and what is known of it.

    Attributes:
        trajectory: The series.
        motion: At 1 kHz, as it is played.
        condition: Of Φ₁, its rows those of `motion`.
        condition_scaled: The same with Φ₁'s columns scaled to length 1.
        rank: How many base parameters there are.
        parameters: How many parameters the model has.
        limits: What it reaches of every limit; all are kept.
        unchecked: Joints whose links overlap in every posture: nothing keeps them apart.
        coverage: What it visits.
        evaluations: Candidates tried.
        settings: What was asked for.
    """

    trajectory: FourierTrajectory
    motion: SampledMotion
    condition: float
    condition_scaled: float
    rank: int
    parameters: int
    limits: tuple[Limit, ...]
    unchecked: tuple[tuple[str, str], ...]
    coverage: Coverage
    evaluations: int
    settings: ExcitationSettings


def find_excitation(
    robot: Robot,
    settings: ExcitationSettings,
    *,
    parameters: Parameters | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """Search an excitation, and return the best trajectory found; it keeps every limit.

    Args:
        robot: The arm.
        settings: What to look for.
        parameters: What is to be identified; by default as the robot file says.
        progress: Called now and then with how far the search is.

    Raises:
        ExcitationError: The settings cannot be used, no trajectory keeps every limit, or those that
            do not determine the parameters.
        EstimationError: There are no links, or the model's rank is not certain.
    """
    if problems := list(settings.problems()):
        raise ExcitationError("; ".join(problems), code="bad-settings")
    regressor = Regressor(robot, parameters)
    base = find_base(regressor)
    limits = ArmLimits(regressor)
    space = CandidateSpace(
        limits,
        f0_hz=settings.own_f0_hz,
        harmonics=settings.harmonics,
        duration_s=settings.duration_s,
    )
    judge = _Judge(regressor, base, limits, space, settings.objective)
    evaluations = settings.evaluations or settings.default_evaluations(len(robot.joints))
    generator = np.random.default_rng([settings.seed, int(settings.is_validation)])
    numbers = _search(judge, space, evaluations, generator, progress)
    trajectory, motion, reached = _fit(space.trajectory(numbers), limits, settings)
    condition, scaled = _conditions(regressor, base, motion)
    names = [joint.name for joint in robot.joints]
    if not condition <= CONDITION_MAX:
        raise ExcitationError(_standstill(condition, motion, reached, names), code="no-information")
    return Excitation(
        trajectory=trajectory,
        motion=motion,
        condition=condition,
        condition_scaled=scaled,
        rank=base.rank,
        parameters=len(regressor.parameters),
        limits=reached,
        unchecked=tuple((names[first], names[second]) for first, second in limits.capsules.joined),
        coverage=find_coverage(robot, limits.capsules, motion.q_rad),
        evaluations=evaluations,
        settings=settings,
    )


class _Judge:
    """Gives candidates their costs."""

    def __init__(
        self,
        regressor: Regressor,
        base: BaseParameters,
        limits: ArmLimits,
        space: CandidateSpace,
        objective: Objective,
    ) -> None:
        self._regressor, self._base, self._limits = regressor, base, limits
        self._space, self._objective = space, objective
        self._has_clearance = bool(limits.capsules.pairs) or limits.capsules.ground_z_m is not None

    def __call__(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Costs, and what of them stands for limits that are not kept; both (n_candidates,)."""
        candidates = self._space.make(numbers)
        count, _, joints = candidates.q_rad.shape
        phi = self._regressor(*(part.reshape(-1, joints) for part in candidates[:3]))
        load = self._limits.loads(phi).reshape(count, -1).max(axis=1)
        penalty = _LOAD_WEIGHT * np.maximum(load / _LOAD_MAX - 1.0, 0.0)
        if self._has_clearance:
            nearest = self._nearest(candidates.q_rad)
            penalty += _CLEARANCE_WEIGHT * np.maximum(_CLEARANCE_M - nearest, 0.0)
        rows = self._base.columns(phi).reshape(count, -1, self._base.rank)
        values = np.linalg.eigvalsh(np.swapaxes(rows, 1, 2) @ rows / rows.shape[1])
        values = np.maximum(values, 1e-20 * np.maximum(values[:, -1:], 1e-100))
        if self._objective == "cond":
            aim = 0.5 * np.log(values[:, -1] / values[:, 0])
        else:
            aim = -np.log(values).mean(axis=1)
        return aim + penalty + _EXCESS_WEIGHT * candidates.excess, penalty

    def _nearest(self, q: FloatArray) -> FloatArray:
        """Least clearance of each candidate and of the way to it."""
        count, _, joints = q.shape
        way = self._limits.approach(q[:, 0], _APPROACH_SAMPLES)
        postures = np.concatenate([q, way], axis=1).reshape(-1, joints)
        clearances = np.hstack(self._limits.capsules.clearances(postures))
        nearest: FloatArray = clearances.reshape(count, -1).min(axis=1)
        return nearest


def _search(
    judge: _Judge,
    space: CandidateSpace,
    evaluations: int,
    generator: np.random.Generator,
    progress: Progress | None,
) -> FloatArray:
    """Return the numbers of the best candidate; one that keeps the limits, if there was any."""
    population = 2 * (4 + int(3.0 * np.log(space.dimension)))
    draws = 10 * population
    best: tuple[float, float, FloatArray] | None = None
    evolution: Evolution | None = None
    drawn: list[tuple[float, FloatArray]] = []
    done = 0
    while done < evaluations:
        room = min(population, evaluations - done)
        if evolution is None:
            numbers = np.array([space.draw(generator) for _ in range(room)])
        else:
            numbers = evolution.ask()[:room]
        costs, penalties = judge(numbers)
        done += room
        for cost, penalty, candidate in zip(costs, penalties, numbers, strict=True):
            # Any that keeps the limits is better than all that do not.
            if best is None or (penalty, cost) < best[:2]:
                best = float(penalty), float(cost), candidate
        if evolution is None:
            drawn += zip(costs.tolist(), numbers, strict=True)
            # A few evaluations are better spent on drawing than on a search that hardly begins.
            if len(drawn) >= min(draws, evaluations // 4):
                start = min(drawn, key=lambda pair: pair[0])[1]
                evolution = Evolution(start, _SIGMA, population, generator)
        elif room == population:
            evolution.tell(costs)
            if evolution.spread < _CONVERGED:  # begin anew elsewhere
                evolution, drawn = None, []
        if progress is not None:
            progress(done, evaluations)
    if best is None:
        raise ExcitationError(
            "no trajectory was tried: give at least 1 evaluation", code="no-evaluations"
        )
    return best[2]


def _fit(
    trajectory: FourierTrajectory, limits: ArmLimits, settings: ExcitationSettings
) -> tuple[FourierTrajectory, SampledMotion, tuple[Limit, ...]]:
    """Make it smaller until it keeps every limit at 1 kHz.

    Raises:
        ExcitationError: It never does; names the limits that stand in the way.
    """
    factor, shrink = 1.0, _SHRINK
    while True:
        tried = trajectory.scaled(factor)
        motion = tried.sampled(settings.duration_s)
        reached = limits.check(motion)
        broken = [limit for limit in reached if not limit.is_kept]
        if not broken:
            return tried, motion, reached
        factor *= shrink
        shrink **= _SHRINK_GROWTH
        if factor < _SMALLEST:
            raise ExcitationError(
                "no trajectory was found that keeps every limit, even a small one does not: "
                + "; ".join(map(str, broken))
                + " (with margins). Try another seed, more evaluations or a lower f0, or look "
                "whether the robot file's limits leave any room",
                code="no-trajectory",
            )


def _standstill(
    condition: float, motion: SampledMotion, reached: tuple[Limit, ...], names: list[str]
) -> str:
    """Return what to say of a motion that determines nothing: which joint hardly moves, and why."""
    moved_rad = np.ptp(motion.q_rad, axis=0)
    joint = names[int(moved_rad.argmin())]
    of_joint = [limit for limit in reached if limit.joint == joint]
    tightest = min(of_joint, key=lambda limit: -limit.excess / max(abs(limit.limit), _TINY))
    return (
        f"the best trajectory does not determine some parameters: its condition number is "
        f"{condition:.3g}, limit {CONDITION_MAX:g}. {joint} moves least, by "
        f"{float(moved_rad.min()):.3g} rad; nearest to its limit is {tightest}. Widen that, or try "
        "another f0 or more evaluations"
    )


def _conditions(
    regressor: Regressor, base: BaseParameters, motion: SampledMotion
) -> tuple[float, float]:
    """Condition of Φ₁ as it is and with columns of length 1, from its Gram matrix."""
    gram = np.zeros((base.rank, base.rank))
    _, q, dq, ddq = motion
    for first in range(0, len(q), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows = base.columns(regressor(q[part], dq[part], ddq[part])).reshape(-1, base.rank)
        gram += rows.T @ rows
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return float("inf"), float("inf")
    both = np.linalg.eigvalsh(np.stack([gram, gram / np.outer(norms, norms)]))
    with np.errstate(divide="ignore"):
        raw, scaled = np.sqrt(both[:, -1] / np.maximum(both[:, 0], 0.0))
    return float(raw), float(scaled)
