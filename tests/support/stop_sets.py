"""Which stops are tried: every possible pair of values at least once, and a few for every day."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Any

from stop_cases import ANSWERS, CAUSES, MODES, POSTURES, PROFILES, SPEEDS, Case


def covering(*, seed: int) -> list[Case]:
    """A set of cases in which every possible pair of values stands at least once."""
    factors = (MODES, range(4), POSTURES, SPEEDS, CAUSES, PROFILES, ANSWERS)
    chance = random.Random(seed)
    cases = (Case(*values) for values in itertools.product(*factors))
    everything = [case for case in cases if case.is_possible]
    left = {pair for case in everything for pair in _pairs(case)}
    chosen: list[Case] = []
    while left:
        drawn = chance.sample(everything, 200)
        best = max(drawn, key=lambda case: len(left & set(_pairs(case))))
        if not left & set(_pairs(best)):
            pair = min(left)
            best = next(case for case in everything if pair in _pairs(case))
        chosen.append(best)
        left -= set(_pairs(best))
    return chosen


def few(cases: Sequence[Case], count: int) -> list[Case]:
    """Some of them in which every single value stands, and which are soon over.

    Most are of an arm that hangs and of a joint that moves: to raise the arm takes most of the
    time, and a joint that rests shows little.
    """
    left = {value for case in cases for value in _values(case)}
    chosen: list[Case] = []
    while len(chosen) < count:
        rest = [case for case in cases if case not in chosen]
        best = max(rest, key=lambda case: len(left & set(_values(case))) - _cost(case))
        chosen.append(best)
        left -= set(_values(best))
    assert not left, f"nowhere among {count}: {left}"
    return chosen


def _cost(case: Case) -> float:
    """How much less a case is wanted; 0.2 per second of one core, roughly."""
    raised = {"hanging": 0.0, "horizontal": 0.3, "bent": 0.25, "upright": 0.5}
    unheard = 0.6 if case.cause == "silent" else 0.0
    return raised[case.posture] + unheard + (0.4 if case.mode == "hold" else 0.0)


def _values(case: Case) -> list[tuple[int, str]]:
    return [(place, str(value)) for place, value in enumerate(dataclasses.astuple(case))]


def _pairs(case: Case) -> list[tuple[Any, ...]]:
    return list(itertools.combinations(_values(case), 2))
