"""Distributions of times, in constant memory and next to no time."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np

from daq.stream.messages import Quantiles

_BUCKETS = 4096


class Histogram:
    """Counts durations in buckets of 1.024 µs up to 4 ms; longer ones fall into the last.

    Attributes:
        longest_ns: Exactly.
        count: How many.
    """

    __slots__ = ("_counts", "count", "longest_ns")

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * (_BUCKETS + 1)))
        self.longest_ns = 0
        self.count = 0

    def add(self, duration_ns: int) -> None:
        """Count one."""
        bucket = duration_ns >> 10
        self._counts[bucket if bucket < _BUCKETS else _BUCKETS] += 1
        self.count += 1
        if duration_ns > self.longest_ns:  # noqa: PLR1730 - faster than max()
            self.longest_ns = duration_ns

    def quantiles(self) -> Quantiles:
        """p50, p99, p99.9 and the longest, in µs."""
        reached = np.frombuffer(self._counts, np.uint64).cumsum()
        p50, p99, p999 = (self._quantile_us(reached, share) for share in (0.5, 0.99, 0.999))
        return Quantiles(p50=p50, p99=p99, p999=p999, max=self.longest_ns * 1e-3)

    def _quantile_us(self, reached: np.ndarray[Any, Any], share: float) -> float:
        """The upper edge of the bucket in which the share is reached; never beyond the longest."""
        bucket = int(reached.searchsorted(max(1, math.ceil(share * self.count))))
        edge_us = (bucket + 1) * 1.024
        return (
            self.longest_ns * 1e-3 if bucket >= _BUCKETS else min(edge_us, self.longest_ns * 1e-3)
        )
