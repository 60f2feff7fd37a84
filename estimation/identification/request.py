"""What an identification is asked to do: recordings, methods, and the user's overrides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from daq.robot import Robot
from estimation.signals.settings import Differences, Method, Velocity

DEFAULT_METHODS: Final = ("cad", "uls", "wls", "cls1", "cls2", "cls3")
"""What is compared by default ([RAM 2021], and weights)."""
BLOCK_S = 0.5
"""Length of a block of time: ten times what residuals remember after filters of 15 Hz and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the user decides; None for what follows from the samples.

    Attributes:
        cutoff_hz: Of the low-pass.
        velocity: `measured` or `differentiated`.
        method: `butterworth` or `fft`.
        differences: `sixth` or `second`.
        slow_rad_s: Joints slower than this do not count in a row; 0 uses all rows.
        all_modes: Whether to use rows in which no trajectory was played.
        rows: Part of the time that is used, as shares of the whole.
        is_outside: Whether to use what `rows` leaves out instead.
        is_averaged: Whether to average over the periods of a motion that repeats itself.
    """

    cutoff_hz: float | None = None
    velocity: Velocity | None = None
    method: Method = "butterworth"
    differences: Differences = "sixth"
    slow_rad_s: float | None = None
    all_modes: bool = False
    rows: tuple[float, float] = (0.0, 1.0)
    is_outside: bool = False
    is_averaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an identification is asked to do.

    Attributes:
        recordings: To identify from.
        validations: To validate with; estimators never see them.
        methods: Names of estimators.
        robot_text: A robot file in place of the one inside the recordings.
        terms: Of the model, in place of the robot file's.
        overrides: How samples are prepared.
        block_s: Length of the blocks that are drawn for intervals.
        seed: Of everything random.
        starts: Of searches.
        payloads: Recordings of the same arm with something in its hand.
        is_simulated: Whether to simulate the identified arm, which takes seconds.
        has_split: Whether to validate with the part of the recordings that the overrides leave out.
        is_relaxed: Whether bounds are relaxed where they contradict each other.
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
