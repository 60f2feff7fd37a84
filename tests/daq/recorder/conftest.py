from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fake_loop
import numpy as np
import pytest
from commands import PROJECT, PYTHON

from daq.recorder.converters import InlineConverter
from daq.recorder.recorder import Recorder
from daq.recorder.spools import Spools
from daq.recording import open_recording
from daq.samples.batches import KIND_BATCH, KIND_SESSION, encode_session, frame_record
from daq.samples.spool import SpoolWriter
from daq.system.runtime_directory import RuntimeDirectory, runtime_directory

FAKE_LOOP = Path(fake_loop.__file__)


class Place(NamedTuple):
    """Where a test's processes meet, and where recordings go."""

    runtime: RuntimeDirectory
    out: Path

    @property
    def journals(self) -> list[Path]:
        return sorted(self.out.glob("*.journal"))

    @property
    def recordings(self) -> list[Path]:
        return sorted(self.out.glob("*.h5"))

    def samples(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The numbers of all samples in all recordings; every file opens."""
        numbers = []
        for path in self.recordings:
            with open_recording(path) as recording:
                numbers.append(recording["seq"][:])
        return np.sort(np.concatenate(numbers)) if numbers else np.empty(0, np.uint64)

    def missing(self) -> list[int]:
        """The numbers that the recordings say are missing."""
        numbers: list[int] = []
        for path in self.recordings:
            with open_recording(path) as recording:
                for gap in recording.gaps:
                    numbers += range(gap.first_seq, gap.first_seq + gap.count)
        return sorted(numbers)


@pytest.fixture
def place() -> Iterator[Place]:
    # A short path: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        runtime = runtime_directory(Path(directory) / "run", is_made=True)
        out = Path(directory) / "out"
        out.mkdir()
        yield Place(runtime, out)


@pytest.fixture
def start(processes: None, place: Place) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []

    def begin(*command: str | Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, err = process.communicate()
        print(f"process {process.args} ended with {process.returncode}: {err}")


@pytest.fixture
def start_loop(place: Place, start: Callable[..., Any]) -> Callable[..., subprocess.Popen[str]]:
    """Starts a fake loop; it is ready."""

    def begin(**plan: Any) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = start(
            *PYTHON, FAKE_LOOP, place.runtime.path, json.dumps(plan)
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    return begin


@pytest.fixture
def start_recorder(place: Place, start: Callable[..., Any]) -> Callable[..., Any]:
    """Starts `armature record`."""

    def begin(*options: str) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = start(
            *(*PYTHON, "-m", "tools.main", "record", "--json", "--reserve-mb", "0"),
            *("--out", place.out, "--runtime", place.runtime.path, *options),
        )
        return process

    return begin


@pytest.fixture
def finish() -> Callable[[subprocess.Popen[str]], Any]:
    """Ends a recorder as systemd does, and returns what it printed."""

    def end(process: subprocess.Popen[str]) -> Any:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=1000)
        assert "Traceback" not in err, err
        return json.loads(out)

    return end


@pytest.fixture
def wait_until() -> Callable[[Callable[[], Any]], None]:
    def wait(condition: Callable[[], Any], timeout_s: float = 60.0) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline_s, "this never happened"
            time.sleep(0.02)

    return wait


class Rig:
    """A recorder in this process, fed by hand, with its own clock."""

    def __init__(self, place: Place, **plan: Any) -> None:
        self.place = place
        self.plan = fake_loop.Plan(**{"samples": 2000, **plan})
        self.source = fake_loop.Samples(self.plan)
        self.session_data = encode_session(self.source.session)
        self.batches: list[tuple[bytes, bytes]] = list(self.source.batches())
        self.now_s = 0.0
        self.reports: list[Any] = []
        self.spool: SpoolWriter | None = None

    def make_spool(self, batches: int = 3000) -> SpoolWriter:
        self.spool = SpoolWriter(
            self.place.runtime.spool(self.plan.session),
            frame_record(KIND_SESSION, self.session_data),
            payload_max=self.plan.count * self.source.layout.size,
            batches=batches,
        )
        return self.spool

    def make_recorder(self, **options: Any) -> Recorder:
        return Recorder(
            self.place.out,
            **{
                "spools": Spools(self.place.runtime),
                "converter": InlineConverter(),
                "report": self.reports.append,
                "reserve_bytes": 0,
                "now_s": lambda: self.now_s,
                **options,
            },
        )

    def feed(self, recorder: Recorder, first: int, last: int, *, is_heard: bool = True) -> None:
        """Batches by number, into the spool if there is one, and to the recorder."""
        for header, payload in self.batches[first:last]:
            if self.spool is not None:
                self.spool.write(frame_record(KIND_BATCH, header, payload))
            if is_heard:
                recorder.handle(header, payload)
                self.now_s += 0.02
                recorder.tick()

    def tick(self, recorder: Recorder, seconds: float) -> None:
        for _ in range(round(seconds / 0.05)):
            self.now_s += 0.05
            recorder.tick()


@pytest.fixture
def make_rig(place: Place) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(**plan: Any) -> Rig:
        rigs.append(Rig(place, **plan))
        return rigs[-1]

    yield make
    for rig in rigs:
        if rig.spool is not None:
            rig.spool.close(unlink=False)
