"""How much faster than real time the recorder is, without losing a sample; and what it costs at 1×.

From the first batch to the finished file: journal, made safe as often as the daemon does, then
compressed, checked and renamed. Once in this process, and once by `armature record` behind a
publisher that waits for it rather than drop anything.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zmq

from daq.loop.setup import PERIOD_NS
from daq.recorder.converters import InlineConverter
from daq.recorder.recorder import Recorder
from daq.recorder.spools import Spools
from daq.recording import open_recording
from daq.samples.batches import BATCH_TOPIC, SESSION_TOPIC
from daq.system.runtime_directory import runtime_directory
from tests.benchmarks.measure import Row, at_least, at_most
from tests.benchmarks.moving_batches import Stream, moving_stream
from tests.benchmarks.real_run import ARMATURE, RunFailedError, cpu_s, end, real_run

SPEED_TARGET = 100.0
CPU_MAX_PERCENT = 3.0
IN_REAL_TIME = "recorder, at 1×"
_ANSWER_MAX_MS = 60_000


class Pass(NamedTuple):
    """One recording: how long it took, how long this process computed, and what is not in it."""

    wall_s: float
    conversion_s: float
    lost: int


def run(
    *, made_s: float = 10.0, duration_s: float = 300.0, repeats: int = 3, real_s: float = 20.0
) -> Iterator[Row]:
    """Medians of some recordings, and a run in real time.

    Args:
        made_s: How much of the stream is simulated.
        duration_s: How much is recorded each time.
        repeats: How often.
        real_s: How long the run in real time is.
    """
    stream = moving_stream(made_s=made_s, duration_s=duration_s)
    recorded_s = stream.recorded * PERIOD_NS * 1e-9
    ways: dict[str, Callable[[Stream, Path], Pass]] = {
        "in one process": _record_here,
        "`armature record` through ZeroMQ": _record_by_daemon,
    }
    conversion_percent = 0.0
    for way, record in ways.items():
        passes = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                passes.append(record(stream, Path(directory)))
        name = f"recorder, {recorded_s:g} s, {way}"
        speed = recorded_s / statistics.median(one.wall_s for one in passes)
        yield at_least(f"{name}, against real time", speed, SPEED_TARGET)
        lost = max(one.lost for one in passes)
        yield Row(f"{name}, lost", f"{lost} samples", lost, "samples", "0 samples", lost == 0)
        if record is _record_here:
            conversion_s = statistics.median(one.conversion_s for one in passes)
            conversion_percent = 100.0 * conversion_s / recorded_s
    try:
        percent = statistics.median(_percent_of_core(real_s) for _ in range(repeats))
    except RunFailedError as error:
        yield Row(IN_REAL_TIME, f"skipped: {error}")
        return
    yield at_most(f"{IN_REAL_TIME}, of a core", percent, CPU_MAX_PERCENT, "%")
    total = percent + conversion_percent
    yield at_most(f"{IN_REAL_TIME}, of a core, with HDF5 afterwards", total, CPU_MAX_PERCENT, "%")


def _record_here(stream: Stream, directory: Path) -> Pass:
    converter = InlineConverter()
    started_s = time.perf_counter()
    recorder = Recorder(directory, spools=Spools(None), converter=converter, file_name="run.h5")
    recorder.handle_session(stream.session)
    for header, payload in stream.batches[:-1]:
        recorder.handle(header, payload)
    computed_s = time.process_time()
    recorder.finish()
    conversion_s = time.process_time() - computed_s
    wall_s = time.perf_counter() - started_s
    (result,) = converter.results
    return Pass(wall_s, conversion_s, _lost(stream, Path(result.file)))


def _record_by_daemon(stream: Stream, directory: Path) -> Pass:
    runtime = runtime_directory(directory / "runtime", is_made=True)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    # Tells when somebody listens, and can wait where a PUB socket would drop.
    socket = context.socket(zmq.XPUB)
    socket.setsockopt(zmq.XPUB_NODROP, 1)
    socket.rcvtimeo = socket.sndtimeo = _ANSWER_MAX_MS
    socket.bind(runtime.stream)
    command = [*ARMATURE, "record", "--once", "--json", "--file", str(directory / "run.h5")]
    command += ["--runtime", str(runtime.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        for _ in (BATCH_TOPIC, SESSION_TOPIC):
            socket.recv()
        started_s = time.perf_counter()
        socket.send_multipart([SESSION_TOPIC, stream.session])
        for header, payload in stream.batches:
            socket.send_multipart([BATCH_TOPIC, header, payload])
        out, _ = process.communicate()
        wall_s = time.perf_counter() - started_s
    finally:
        context.destroy(linger=0)
        end(process)
    (made,) = json.loads(out)["files"]
    return Pass(wall_s, 0.0, _lost(stream, Path(made["file"])))


def _lost(stream: Stream, file: Path) -> int:
    """Samples that are not in a recording, or not in their place."""
    with open_recording(file) as recording:
        seq = recording["seq"][:]
    found = np.intersect1d(seq, np.arange(stream.recorded), assume_unique=True)
    assert np.all(np.diff(seq.astype(np.int64)) > 0)
    return stream.recorded - len(found)


def _percent_of_core(real_s: float) -> float:
    """What the recorder uses in the middle of a run in real time."""
    with real_run(real_s, "--enable") as running:
        pid = running.recorder_pid()
        running.loop_pid()
        time.sleep(0.25 * real_s)
        before_s, started_s = cpu_s(pid), time.monotonic()
        time.sleep(0.5 * real_s)
        used_s, elapsed_s = cpu_s(pid) - before_s, time.monotonic() - started_s
        running.result()
    return 100.0 * used_s / elapsed_s
