"""Histograms of durations, in constant memory and at little cost."""

from __future__ import annotations

import math
from array import array

import numpy as np

from daq.stream.messages import Quantiles

_BUCKETS = 4096
_USUAL = 512
"""Of them: where nearly all times are, and what is looked at first."""


class Histogram:
    """Counts durations in buckets of 1.024 µs up to 4 ms; longer ones fall into the last.

    Attributes:
        longest_ns: Exactly.
    """

    __slots__ = ("_counts", "count", "longest_ns")

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * (_BUCKETS + 1)))
        self.longest_ns = 0
        self.count = 0

    def add(self, duration_ns: int) -> None:
        """Count one duration."""
        bucket = duration_ns >> 10
        self._counts[bucket if bucket < _BUCKETS else _BUCKETS] += 1
        self.count += 1
        if duration_ns > self.longest_ns:  # noqa: PLR1730 - faster than max()
            self.longest_ns = duration_ns

    def quantiles(self) -> Quantiles:
        """Return p50, p99, p99.9 and the longest, in µs."""
        counts, longest_us = np.frombuffer(self._counts, np.uint64), self.longest_ns * 1e-3
        wanted = [max(1, math.ceil(share * self.count)) for share in (0.5, 0.99, 0.999)]
        reached = counts[:_USUAL].cumsum()
        if reached[-1] < wanted[-1]:
            reached = counts.cumsum()
        p50, p99, p999 = (
            # The upper edge of the bucket in which it is reached.
            longest_us if bucket >= _BUCKETS else min((bucket + 1) * 1.024, longest_us)
            for bucket in reached.searchsorted(wanted).tolist()
        )
        return Quantiles(p50=p50, p99=p99, p999=p999, max=longest_us)
