"""A transfer of the real spidev extension through the emulated device.

Against a board that does nothing and is asked by packets, and against the mock arm with its
physics, asked as a control loop asks (both boards, every millisecond) and as fast as it can.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from daq.robot.load import load_robot
from hw_mocks.emulated_spi.server import SpidevServer
from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.errors import CompilerMissingError
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_robot import MockRobot
from hw_mocks.spi_boards import SpiBoards
from tests.benchmarks.measure import Row, at_most

TARGET_US = 40.0
EMPTY = "emulated SPI, empty board, by packets, back to back"
ARM = "emulated SPI, mock arm, both boards at 1 kHz"
ARM_BACK_TO_BACK = "emulated SPI, mock arm, both boards back to back"
DEVICES = ["/dev/spidev0.0", "/dev/spidev0.1"]
Serve = Callable[[Path, Callable[[], bool]], None]

# Runs with the shim preloaded; prints the median in µs.
CHILD = """
import statistics, sys, time
import spidev
from firmware_protocol.codec import command_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import profile_named

boards, cycles, period_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
opened = []
for number in range(boards):
    spi = spidev.SpiDev()
    spi.open(0, number)
    spi.max_speed_hz = 8_000_000
    opened.append(spi)
codec = command_codec(profile_named("arm"), Framing.SPI)
frames = [
    codec.encode(codec.make(mode=0xE0, timeout_ms=255, index=number & 0xFFFF))
    for number in range(cycles + 20)
]
samples_us, deadline = [], time.monotonic()
for frame in frames:
    deadline += period_s
    if period_s:
        time.sleep(max(0.0, deadline - time.monotonic()))
    for spi in opened:
        started = time.perf_counter()
        spi.xfer3(frame)
        samples_us.append((time.perf_counter() - started) * 1e6)
print(statistics.median(samples_us[20 * boards:]))
"""


def run(*, back_to_back: int = 5000, rhythm: int = 2000) -> Iterator[Row]:
    if find_spec("spidev") is None:
        yield Row(EMPTY, "skipped: spidev is not installed")
        return
    try:
        empty_us = _median_us(_serve_empty, boards=1, cycles=back_to_back, period_s=0.0)
    except CompilerMissingError as error:
        yield Row(EMPTY, f"skipped: {error}")
        return
    yield at_most(EMPTY, empty_us, TARGET_US, "µs")
    arm_us = _median_us(_serve_arm, boards=2, cycles=rhythm, period_s=1e-3)
    yield at_most(ARM, arm_us, TARGET_US, "µs")
    arm_us = _median_us(_serve_arm, boards=2, cycles=back_to_back, period_s=0.0)
    yield at_most(ARM_BACK_TO_BACK, arm_us, TARGET_US, "µs")


def _median_us(serve: Serve, *, boards: int, cycles: int, period_s: float) -> float:
    with tempfile.TemporaryDirectory(prefix="spi-") as name:
        environment = shim_environment(Path(name), os.environ)
        arguments = [sys.executable, "-c", CHILD, str(boards), str(cycles), str(period_s)]
        children: list[subprocess.Popen[str]] = []

        def is_over() -> bool:
            # Started only now, when the devices are there.
            if not children:
                children.append(
                    subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)
                )
            return children[0].poll() is not None

        serve(Path(name), is_over)
        output, _ = children[0].communicate()
    if children[0].returncode:
        raise subprocess.CalledProcessError(children[0].returncode, arguments[:2])
    return float(output)


def _serve_empty(directory: Path, is_over: Callable[[], bool]) -> None:
    with SpidevServer(directory, DEVICES, lambda transfer: transfer.tx) as server:
        while not is_over():
            server.poll(0.01)


def _serve_arm(directory: Path, is_over: Callable[[], bool]) -> None:
    robot = MockRobot(load_robot("laas4"))
    with closing(SpiBoards(robot, FaultScript(), directory)) as boards:
        boards.run(is_over)
