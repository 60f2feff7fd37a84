"""What a cycle of the loop costs without its transfers, with two boards; and whether that lasts.

Real processes: the loop, the recorder, and the mock behind emulated SPI devices. The figures are
the loop's own.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from daq.recording import open_recording
from tests.benchmarks.measure import Row, at_most
from tests.benchmarks.real_run import RealRun, RunFailedError, real_run, resident_kib

TARGETS_US = {"p50": 25.0, "p999": 200.0}
WORK = "work of a cycle, two boards"
FLOODED = f"{WORK}, flooded by peers against not"
_PEER = Path(__file__).parents[1] / "system" / "peer_process.py"
GROWTH_MAX_KIB = 256
"""What an allocator may still settle; 10 bytes per cycle would be 5 MiB."""
SLOWDOWN_MAX = 1.1


def run(*, duration_s: float = 20.0, repeats: int = 3) -> Iterator[Row]:
    """Medians of some runs that hold the arm."""
    try:
        runs = [_work_us(duration_s) for _ in range(repeats)]
    except RunFailedError as error:
        yield Row(WORK, f"skipped: {error}")
        return
    for key, target_us in TARGETS_US.items():
        quantile = key.replace("p999", "p99.9")
        value_us = statistics.median(work_us[key] for work_us in runs)
        yield at_most(f"{WORK}, {quantile}", value_us, target_us, "µs")


def _work_us(duration_s: float, *, peers: Sequence[str] = ()) -> dict[str, float]:
    with real_run(duration_s, "--enable") as running, ExitStack() as stack:
        running.recorder_pid()
        for kind in peers:
            command = [sys.executable, str(_PEER), kind, str(running.runtime)]
            peer = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(peer.kill)
        work_us: dict[str, float] = running.result()["work_us"]
        return work_us


def flooded(*, duration_s: float = 15.0, repeats: int = 3) -> Iterator[Row]:
    """The same while a peer subscribes, unsubscribes and asks as fast as it can."""
    quiet_us, flooded_us = [], []
    try:
        for _ in range(repeats):
            quiet_us.append(_work_us(duration_s))
            flooded_us.append(_work_us(duration_s, peers=("subscribing", "silent")))
    except RunFailedError as error:
        yield Row(FLOODED, f"skipped: {error}")
        return
    for key, quantile in (("p999", "p99.9"), ("max", "maximum")):
        quiet, flood = (
            statistics.median(work_us[key] for work_us in runs) for runs in (quiet_us, flooded_us)
        )
        yield Row(
            f"{FLOODED}, {quantile}",
            f"{flood / quiet:.2f} x ({flood:.0f} µs against {quiet:.0f})",
            flood / quiet,
            "x",
        )


def soak(
    *,
    duration_s: float = 600.0,
    window_s: float = 20.0,
    warm_up_s: float = 75.0,
    sample_every_s: float = 5.0,
) -> Iterator[Row]:
    """One long run that holds the arm.

    Args:
        duration_s: How long.
        window_s: What is compared: so much at a time.
        warm_up_s: When memory counts; before that, the spool's minute fills up.
        sample_every_s: How often memory is looked at.
    """
    name = f"over {duration_s:g} s"
    try:
        with real_run(duration_s, "--enable") as running:
            memory_kib = _watch_memory(running, duration_s, warm_up_s, sample_every_s)
            running.result()
            with open_recording(running.file) as recording:
                t_s = recording.t_s
                work_ns, transfer_ns = recording["work_ns"][:], recording["transfer_ns"][:]
    except RunFailedError as error:
        yield Row(f"{name}, loop", f"skipped: {error}")
        return
    count = max(1, round(window_s / sample_every_s))
    for process, samples in memory_kib.items():
        first, last = statistics.median(samples[:count]), statistics.median(samples[-count:])
        yield Row(
            f"{name}, growth of memory, {process}",
            f"{last - first:+.0f} KiB (to {last / 1024:.1f} MiB)",
            last - first,
            "KiB",
            f"at most {GROWTH_MAX_KIB} KiB",
            last - first <= GROWTH_MAX_KIB,
        )
    # The machine is slow for minutes at a time, and then transfers are, too: measured by them, work
    # that grew shows, and slow minutes do not.
    edges = np.searchsorted(t_s, np.arange(window_s, t_s[-1], window_s))
    windows = zip(np.split(work_ns, edges), np.split(transfer_ns, edges), strict=True)
    medians = [(np.median(work), np.median(transfer)) for work, transfer in windows if len(work)]
    in_transfers = [float(work / transfer) for work, transfer in medians]
    half = len(medians) // 2
    first, last = statistics.median(in_transfers[:half]), statistics.median(in_transfers[half:])
    works_us = [float(work) / 1e3 for work, _ in medians]
    ratio = last / first
    yield Row(
        f"{name}, work of a cycle against a transfer, p50, second half against first",
        f"{ratio:.2f} x ({last:.2f} against {first:.2f}; work {min(works_us):.1f} to "
        f"{max(works_us):.1f} µs)",
        ratio,
        "x",
        f"at most {SLOWDOWN_MAX:g} x",
        ratio <= SLOWDOWN_MAX,
    )


def _watch_memory(
    running: RealRun, duration_s: float, warm_up_s: float, every_s: float
) -> dict[str, list[int]]:
    """Memory of both processes now and then, from the warm-up to shortly before the end.

    Raises:
        RunFailedError: One of them has gone.
    """
    pids = {"loop": running.loop_pid(), "recorder": running.recorder_pid()}
    started_s = time.monotonic()
    samples: dict[str, list[int]] = {name: [] for name in pids}
    at_s = warm_up_s
    while at_s < duration_s - 0.5 * every_s:
        time.sleep(max(0.0, started_s + at_s - time.monotonic()))
        try:
            for name, pid in pids.items():
                samples[name].append(resident_kib(pid))
        except (FileNotFoundError, ProcessLookupError):
            running.result()  # says why, if it was no success
            raise RunFailedError(f"the {name} ended after {at_s:g} s") from None
        at_s += every_s
    return samples
