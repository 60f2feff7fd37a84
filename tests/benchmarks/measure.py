"""Timing side by side, and rows of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was measured.
        result: The number for people, with its unit.
        value: The number for programs; None when nothing was measured.
        unit: Of `value`.
        target: What is aimed at, for people; empty for none.
        is_met: Whether it was reached; None without a target or a measurement.
    """

    name: str
    result: str
    value: float | None = None
    unit: str = ""
    target: str = ""
    is_met: bool | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def at_most(name: str, value: float, limit: float, unit: str) -> Row:
    target = f"at most {limit:g} {unit}"
    return Row(name, f"{value:.2f} {unit}", value, unit, target, value <= limit)


def at_least(name: str, ratio: float, limit: float) -> Row:
    return Row(name, f"{ratio:.1f} x", ratio, "x", f"at least {limit:g} x", ratio >= limit)


def side_by_side_s(
    contenders: Mapping[str, Callable[[], object]], *, repeats: int, calls: int
) -> dict[str, float]:
    """Seconds per call of each contender: the minimum of many short repeats, taken in turns.

    The machine is shared: in turns, every contender meets the same neighbours, and only the minimum
    is free of them.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, call in contenders.items():
            started_s = time.perf_counter()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter() - started_s) / calls)
    return best
