"""How late the loop's clock wakes it, against `cyclictest` at the same time on the other core.

Same period, same priority; the two change cores halfway through each repetition, so that neither
has the better one. A shared machine is stolen from both for milliseconds now and then: what is
compared is ratios, and a single p99.9 of a shared machine says little.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import NamedTuple

from tests.benchmarks.measure import Row

PRIORITY = 80
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
QUANTILE_RATIO_MAX, EVENTS_RATIO_MAX = 2.0, 1.5
LATE_US = 1000
HISTOGRAM_US = 50_000
CYCLICTEST = shutil.which("cyclictest", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

# Waits for a line, then prints one latency in µs per cycle. As the loop does, an overrun skips
# whole periods; so does cyclictest.
CHILD = """
import sys
from array import array
from daq.system.realtime import MonotonicClock, acquire_privileges, release_privileges
from daq.robot import Timing

priority, core, cycles, spin_us = map(int, sys.argv[1:])
clock = MonotonicClock(spin_ns=1000 * spin_us)
late_ns = array("q", bytes(8 * cycles))
print(*acquire_privileges(Timing(priority=priority, core=core)), sep="; ", flush=True)
sys.stdin.readline()
deadline_ns = clock.now_ns()
for cycle in range(cycles):
    deadline_ns += 1_000_000
    clock.sleep_until_ns(deadline_ns)
    now_ns = clock.now_ns()
    late_ns[cycle] = now_ns - deadline_ns
    if now_ns - deadline_ns > 1_000_000:
        deadline_ns += (now_ns - deadline_ns) // 1_000_000 * 1_000_000
release_privileges()
print(*(late // 1000 for late in late_ns))
"""
# Ends by itself, in case we cannot end it.
LOAD = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
end_s = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end_s:
    pass
"""


class Latencies(NamedTuple):
    """What one run came to: whole µs at `QUANTILES`, and how many cycles were late by over 1 ms."""

    quantiles_us: tuple[int, ...]
    events: int


class UnmeasurableError(Exception):
    """Why there is nothing to compare here."""


def run(*, cycles: int = 20_000, repeats: int = 3, spin_us: int = 0) -> Iterator[Row]:
    for condition in ("idle", "under load"):
        name = f"wake-up at 1 kHz, {condition}"
        try:
            pairs = [
                _repetition(cycles, spin_us, is_loaded=condition != "idle") for _ in range(repeats)
            ]
        except UnmeasurableError as reason:
            yield Row(name, f"skipped: {reason}")
            return
        ours, theirs = zip(*pairs, strict=True)
        yield from _rows(name, ours, theirs)


def _repetition(cycles: int, spin_us: int, *, is_loaded: bool) -> tuple[Latencies, Latencies]:
    """Ours and cyclictest's, each for half of the cycles on either core.

    Raises:
        UnmeasurableError: Something that it takes is missing.
    """
    halves = [
        _side_by_side(cycles // 2, spin_us, is_swapped=is_swapped, is_loaded=is_loaded)
        for is_swapped in (False, True)
    ]
    ours, theirs = (sorted(chain(*side)) for side in zip(*halves, strict=True))
    return summarise(ours), summarise(theirs)


def _rows(name: str, ours: Sequence[Latencies], theirs: Sequence[Latencies]) -> Iterator[Row]:
    for index, quantile in enumerate(QUANTILES):
        our_us, their_us = (
            statistics.median(one.quantiles_us[index] for one in side) for side in (ours, theirs)
        )
        ratio = our_us / max(their_us, 1.0)
        yield Row(
            f"{name}, {quantile} against cyclictest",
            f"{ratio:.2f} x ({our_us:.0f} µs against {their_us:.0f})",
            ratio,
            "x",
            f"at most {QUANTILE_RATIO_MAX:g} x",
            ratio <= QUANTILE_RATIO_MAX,
        )
    # Rare: all repetitions together.
    our_events, their_events = (sum(one.events for one in side) for side in (ours, theirs))
    yield Row(
        f"{name}, later than 1 ms",
        f"{our_events} times against cyclictest's {their_events}",
        float(our_events),
        "times",
        f"at most {EVENTS_RATIO_MAX:g} x",
        our_events <= EVENTS_RATIO_MAX * their_events,
    )


def _side_by_side(
    cycles: int, spin_us: int, *, is_swapped: bool, is_loaded: bool
) -> tuple[list[int], list[int]]:
    """Our latencies in µs and cyclictest's, measured at the same time.

    Raises:
        UnmeasurableError: Something that it takes is missing.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    if CYCLICTEST is None:
        raise UnmeasurableError("cyclictest is not installed (Debian: rt-tests)")
    if len(cores) < 2:
        raise UnmeasurableError("it takes two cores")
    our_core, their_core = reversed(cores) if is_swapped else cores
    words = [PRIORITY, our_core, cycles, spin_us]
    cyclictest = [CYCLICTEST, "-m", "-q", "-t1", f"-p{PRIORITY}", f"-a{their_core}", "-i1000"]
    with ExitStack() as stack:
        ours = _start(stack, [sys.executable, "-c", CHILD, *map(str, words)])
        assert ours.stdin and ours.stdout
        refusals = ours.stdout.readline().strip()
        if refusals:
            raise UnmeasurableError(refusals)
        for core in cores if is_loaded else []:
            limit_s = 10.0 + cycles * 2e-3
            _start(stack, [sys.executable, "-c", LOAD, str(core), str(limit_s)])
        theirs = _start(stack, [*cyclictest, f"-l{cycles}", f"-h{HISTOGRAM_US}"])
        our_text, _ = ours.communicate("begin\n")
        their_text, their_error = theirs.communicate()
    if ours.returncode or theirs.returncode:
        raise UnmeasurableError(f"the measurement failed: {their_error.strip()[:200]}")
    return [int(word) for word in our_text.split()], parse_histogram(their_text)


def _start(stack: ExitStack, command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a process that is gone when the stack is left."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    stack.enter_context(process)
    # Runs before the context of the process, which waits for its end.
    stack.callback(process.kill)
    return process


def parse_histogram(text: str) -> list[int]:
    """The latencies in cyclictest's histogram, sorted; overflows count as its largest."""
    found = re.findall(r"^(\d{6}) (\d+)$", text, re.MULTILINE)
    latencies = [int(us) for us, count in found for _ in range(int(count))]
    overflows, largest = (
        int(re.search(rf"^# {words}: (\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
        for words in ("Histogram Overflows", "Max Latencies")
    )
    return latencies + [largest] * overflows


def summarise(latencies_us: Sequence[int]) -> Latencies:
    """Quantiles and late cycles of sorted latencies."""
    last = len(latencies_us) - 1
    quantiles_us = tuple(latencies_us[round(part * last)] for part in QUANTILES.values())
    return Latencies(quantiles_us, sum(late > LATE_US for late in latencies_us))
