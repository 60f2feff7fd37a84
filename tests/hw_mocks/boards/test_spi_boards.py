"""Mock boards behind emulated devices: what they lay open is as fresh as the simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from daq.robot.description import Robot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profiles import PROFILES
from hw_mocks.boards.motor_output import MotorState
from hw_mocks.emulated_spi.server import SpiTransfer
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_robot import STEP_NS, MockRobot
from hw_mocks.spi_boards import SpiBoards

pytestmark = pytest.mark.compiler

PROFILE = PROFILES["uomodri"]
COMMANDS, REPLIES = command_codec(PROFILE), reply_codec(PROFILE)
SPEED_RAD_S = 60.0
COUNT_RAD = math.tau / 4096
OLDEST_S = 1.2 * STEP_NS * 1e-9
"""Of what a window gets: a step, and the firmware's own 37 µs."""


class Rig:
    """One turning motor; windows come when a test says so."""

    def __init__(self, robot: Robot, directory: Path) -> None:
        self.mock = MockRobot(robot, profile=PROFILE.name, calibration_s=0.1)
        self.boards = SpiBoards(self.mock, FaultScript(), directory)
        (self.device,) = self.boards._server._devices.values()
        self.output = self.mock.boards[0].outputs[0]
        self._indices = itertools.count(1)

    def window(self) -> float:
        """Exchange a frame that keeps the motor turning; returns how old the position was (s)."""
        reply = self.device.reply
        values = COMMANDS.make(
            mode=0xC0,
            timeout_ms=255,
            index=next(self._indices),
            motor_velocity_rad_s=(SPEED_RAD_S, 0.0),
            kd_a_s_per_rad=(0.05, 0.0),
            isat_a=(9.0, 9.0),
        )
        started_ns = self.boards._real_time._started_ns + self.mock.now_ns
        true_rad = self.output.encoder.position_rad
        self.boards._server._withdraw(self.device)  # as if a program had just taken it
        self.boards._answer(
            SpiTransfer(
                self.device.name, COMMANDS.encode(values), 0, 8, 8_000_000, started_ns, reply
            )
        )
        self.device.is_at_work = True
        if self.output.state is not MotorState.RUNNING:
            return 0.0
        assert reply is not None
        seen_rad = REPLIES.decode(reply).motor_position_rad[0]
        return (true_rad - seen_rad) / self.mock.plant.motor_velocity_rad_s[0]

    def pause(self, steps: int) -> None:
        for _ in range(steps):
            self.mock.step()
            self.boards._serve(0.0)
            self.boards._serve(0.0)


@pytest.fixture
def rig(bench: Robot, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(bench, tmp_path / "devices")
    try:
        yield made
    finally:
        made.boards.close()


def test_what_a_window_gets_is_fresh_however_long_the_pauses_were(rig: Rig) -> None:
    """A bug: foreseen from one long pause, the replies after it were a period old."""
    for _ in range(400):
        rig.window()
        rig.pause(4)
    assert rig.mock.plant.motor_velocity_rad_s[0] == pytest.approx(SPEED_RAD_S, rel=0.3)
    ages_s = []
    for steps in (4, 4, 4, 12, 4, 4, 40, 4, 4, 5, 3, 4, 8, 4, 4, 100, 4, 4):
        rig.pause(steps)
        ages_s.append(rig.window())
    slack_s = COUNT_RAD / SPEED_RAD_S
    assert max(ages_s) < OLDEST_S + slack_s
    assert min(ages_s) > -OLDEST_S - slack_s  # foreseen for the end of the coming step
