"""What an identification is asked to do, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from daq.robot import Robot
from estimation.identification.data.reduction import BLOCK_S
from estimation.identification.data.samples import Overrides
from estimation.identification.estimators.methods import DEFAULT_METHODS
from estimation.identification.estimators.problem import Problem
from estimation.identification.evaluation.traces import Trace
from estimation.identification.evaluation.uncertainty import Uncertainty
from estimation.identification.result import Identification


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be done.

    Attributes:
        recordings: To identify from.
        validations: To judge by; estimators never see them.
        methods: Names of estimators.
        robot_text: A robot file in place of the one inside the recordings.
        terms: In place of the robot file's.
        overrides: How samples are prepared.
        block_s: Length of the blocks that are drawn for intervals.
        seed: Of everything random.
        starts: Of searches.
        payloads: Recordings of the same arm with something in its hand.
        is_simulated: Whether to simulate the identified arm, which takes seconds.
        has_split: Whether to validate with the part of the recordings that the overrides leave out.
        is_relaxed: Whether bounds give way where they contradict each other.
        truth_of: From a recording's link and robot to a robot whose links, rotors and friction are
            the true ones; None where they are not known, as they are on the mock only.
        version: Of this software.
    """

    recordings: tuple[Path, ...]
    validations: tuple[Path, ...] = ()
    methods: tuple[str, ...] = DEFAULT_METHODS
    robot_text: str | None = None
    terms: tuple[str, ...] | None = None
    overrides: Overrides = field(default_factory=Overrides)
    block_s: float = BLOCK_S
    seed: int = 0
    starts: int = 10
    payloads: tuple[Path, ...] = ()
    is_simulated: bool = False
    has_split: bool = False
    is_relaxed: bool = False
    truth_of: Callable[[str, Robot], Robot | None] = lambda _link, _robot: None
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationOutcome:
    """What came out.

    Attributes:
        result: Everything that is said.
        robot: That was identified.
        robot_text: Its file.
        problem: What the estimators got.
        uncertainty: Of base parameters.
        traces: Torques over time, of identification and validation.
    """

    result: Identification
    robot: Robot
    robot_text: str
    problem: Problem
    uncertainty: Uncertainty
    traces: tuple[Trace, ...]
