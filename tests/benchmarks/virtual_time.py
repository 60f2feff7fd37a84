"""How much faster than real time the whole mock arm runs on the virtual clock."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from daq.boards.board import Board, Outcome
from daq.robot.load import load_robot
from firmware_protocol.profiles import profile_named
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS
from tests.benchmarks.measure import Row, at_least

TARGET_RATIO = 3.0
PERIOD_NS = 1_000_000
MODE = 0xE0  # ES, EM1, EM2
READY = 1 << 13 | 1 << 11
SWING_RAD, SWING_HZ = 3.0, 0.5  # at the motors
KP_A_PER_RAD, KD_A_S_PER_RAD, ISAT_A = 0.5, 0.01, 8.0


class Arm:
    """The laas4 arm, its boards and a 1 kHz position control."""

    def __init__(self, *, effects: str, calibration_s: float) -> None:
        robot = load_robot("laas4")
        self.clock = VirtualClock()
        mock = MockRobot(robot, effects=PRESETS[effects], calibration_s=calibration_s)
        links = mock_links(mock, self.clock)
        self.boards = [
            Board(port.name, profile_named(port.profile), link, now_ns=self.clock.now_ns)
            for port, link in zip(robot.boards, links, strict=True)
        ]
        self.enable = [
            board.command(mode=MODE, timeout_ms=port.command_timeout_ms)
            for board, port in zip(self.boards, robot.boards, strict=True)
        ]

    def calibrate(self, *, cycles_max: int = 10_000) -> None:
        """Enable, until every motor is ready."""
        for _ in range(cycles_max):
            readings = [b.exchange(c) for b, c in zip(self.boards, self.enable, strict=True)]
            self.clock.advance_ns(PERIOD_NS)
            if all(r.values and r.values.status & READY == READY for r in readings):
                self.home = [r.values.motor_position_rad for r in readings if r.values]
                self.started_ns = self.clock.now_ns()
                return
        raise TimeoutError(f"the motors are not ready after {cycles_max} cycles")

    def swing(self, cycles: int) -> None:
        """Follow a sine with every motor."""
        for _ in range(cycles):
            elapsed_s = (self.clock.now_ns() - self.started_ns) * 1e-9
            swing_rad = SWING_RAD * math.sin(2.0 * math.pi * SWING_HZ * elapsed_s)
            for board, enable, home in zip(self.boards, self.enable, self.home, strict=True):
                reading = board.exchange(
                    enable._replace(
                        motor_position_rad=(home[0] + swing_rad, home[1] + swing_rad),
                        kp_a_per_rad=(KP_A_PER_RAD, KP_A_PER_RAD),
                        kd_a_s_per_rad=(KD_A_S_PER_RAD, KD_A_S_PER_RAD),
                        isat_a=(ISAT_A, ISAT_A),
                    ),
                    is_real_time=True,
                )
                assert reading.outcome is Outcome.OK
                assert board.profile.fault_of(reading.values.status) is None
            self.clock.advance_ns(PERIOD_NS)


def run(*, slices: int = 20, cycles: int = 250, calibration_s: float = 3.0) -> Iterator[Row]:
    for effects in ("default", "troubles"):
        arm = Arm(effects=effects, calibration_s=calibration_s)
        arm.calibrate()
        # The whole run, not its best part: what counts is how long a test has to wait.
        started_s = time.perf_counter()
        for _ in range(slices):
            arm.swing(cycles)
        ratio = slices * cycles * PERIOD_NS * 1e-9 / (time.perf_counter() - started_s)
        name = f"virtual time, laas4 at 1 kHz, effects {effects}, against real time"
        yield at_least(name, ratio, TARGET_RATIO)
