"""Peaks of a quintic from one position and speed to another, without acceleration at its ends.

In s = t/T from 0 to 1, with u = T·speed at either end and Δ the way between them:

    q(s) = q₀ + Δ·(10s³ - 15s⁴ + 6s⁵) + u₀·(s - 6s³ + 8s⁴ - 3s⁵) + u₁·(-4s³ + 7s⁴ - 3s⁵)
    q″(s) = s(1-s)·(a + b·s),  a = 60Δ - 36u₀ - 24u₁,  b = 60(u₀ + u₁ - 2Δ)

so the speed has one turning point at most, and every peak follows in closed form. Nothing here
knows joints or limits.
"""

from __future__ import annotations

import itertools
import math

_BISECTIONS = 40


def travel(way: float, u0: float, u1: float, s: float) -> float:
    """Return how far it has come at s.

    Args:
        way: Way between the ends (rad).
        u0: Duration times speed at the start (rad).
        u1: Duration times speed at the end (rad).
        s: Progress, 0 to 1.
    """
    cubed = s * s * s
    return (
        way * cubed * (10.0 + s * (6.0 * s - 15.0))
        + u0 * (s + cubed * (s * (8.0 - 3.0 * s) - 6.0))
        + u1 * cubed * (s * (7.0 - 3.0 * s) - 4.0)
    )


def speed(way: float, u0: float, u1: float, s: float) -> float:
    """Return the speed at s, times the duration; arguments as for `travel`."""
    squared = s * s
    return (
        30.0 * way * squared * (1.0 - s) * (1.0 - s)
        + u0 * (1.0 + squared * (s * (32.0 - 15.0 * s) - 18.0))
        + u1 * squared * (s * (28.0 - 15.0 * s) - 12.0)
    )


def peak_speed(way: float, u0: float, u1: float) -> float:
    """Return the largest speed on the way, times the duration; arguments as for `travel`."""
    return max(abs(speed(way, u0, u1, s)) for s in _nodes(way, u0, u1))


def peak_acceleration(way: float, u0: float, u1: float) -> float:
    """Return the largest acceleration, times the duration squared; arguments as for `travel`."""
    a, b = _acceleration(way, u0, u1)
    # The derivative of s(1-s)(a + bs) is a + 2(b-a)s - 3bs²; solved without cancellation.
    root = math.copysign(math.sqrt(a * a + a * b + b * b), b - a) + (b - a)
    candidates = (root / (3.0 * b) if b else 0.0, -a / root if root else 0.0)
    return max(abs(s * (1.0 - s) * (a + b * s)) for s in candidates if 0.0 <= s <= 1.0)


def range_of(way: float, u0: float, u1: float) -> tuple[float, float]:
    """Return the lowest and highest `travel`: with speed at its ends it may overshoot."""
    nodes = _nodes(way, u0, u1)
    visited = [0.0, way]
    for begin, end in itertools.pairwise(nodes):
        before = speed(way, u0, u1, begin)
        if before * speed(way, u0, u1, end) < 0.0:
            low, high = begin, end
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                if before * speed(way, u0, u1, middle) > 0.0:
                    low = middle
                else:
                    high = middle
            visited.append(travel(way, u0, u1, low))
    return min(visited), max(visited)


def _acceleration(way: float, u0: float, u1: float) -> tuple[float, float]:
    return 60.0 * way - 36.0 * u0 - 24.0 * u1, 60.0 * (u0 + u1 - 2.0 * way)


def _nodes(way: float, u0: float, u1: float) -> tuple[float, ...]:
    """Return values of s between which the speed only rises or only falls."""
    a, b = _acceleration(way, u0, u1)
    turning = -a / b if b else 0.0
    return (0.0, turning, 1.0) if 0.0 < turning < 1.0 else (0.0, 1.0)
