"""A transfer of the real spidev extension through the emulated device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from hw_mocks.shim_errors import CompilerMissingError
from hw_mocks.spidev_server import SpidevServer, SpiTransfer
from hw_mocks.spidev_shim import shim_environment
from tests.benchmarks.measure import Row, at_most

TARGET_US = 40.0
BACK_TO_BACK, RHYTHM = "emulated SPI, 38 bytes, back to back", "emulated SPI, 38 bytes, at 1 kHz"
DEVICE = "/dev/spidev0.0"

# Runs with the shim preloaded; prints the medians in µs.
CHILD = """
import json, statistics, sys, time
import spidev

spi = spidev.SpiDev()
spi.open(0, 0)
frame = tuple(range(38))
back_to_back, rhythm = map(int, sys.argv[1:])

def transfer_us():
    started = time.perf_counter()
    received = spi.xfer3(frame)
    elapsed = time.perf_counter() - started
    assert tuple(received) == frame
    return elapsed * 1e6

for _ in range(20):
    transfer_us()
first = statistics.median(transfer_us() for _ in range(back_to_back))
samples, deadline = [], time.monotonic()
for _ in range(rhythm):
    deadline += 1e-3
    time.sleep(max(0.0, deadline - time.monotonic()))
    samples.append(transfer_us())
print(json.dumps([first, statistics.median(samples)]))
"""


def run(*, back_to_back: int = 5000, rhythm: int = 1000) -> Iterator[Row]:
    if find_spec("spidev") is None:
        yield Row(BACK_TO_BACK, "skipped: spidev is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="spi-") as name:
        directory = Path(name)
        try:
            environment = shim_environment(directory, os.environ)
        except CompilerMissingError as error:
            yield Row(BACK_TO_BACK, f"skipped: {error}")
            return
        first_us, rhythm_us = _medians_us(directory, environment, back_to_back, rhythm)
    yield at_most(BACK_TO_BACK, first_us, TARGET_US, "µs")
    yield Row(RHYTHM, f"{rhythm_us:.2f} µs", rhythm_us, "µs")


def _medians_us(
    directory: Path, environment: dict[str, str], back_to_back: int, rhythm: int
) -> tuple[float, float]:
    arguments = [sys.executable, "-c", CHILD, str(back_to_back), str(rhythm)]
    with (
        SpidevServer(directory, [DEVICE], _echo) as server,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as child,
    ):
        while child.poll() is None:
            server.poll(0.01)
        assert child.stdout is not None
        output = child.stdout.read()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, arguments[:2])
    first_us, rhythm_us = json.loads(output)
    return first_us, rhythm_us


def _echo(transfer: SpiTransfer) -> bytes:
    return transfer.tx
