"""An in-process link to a mock board: for tests, and for the virtual clock.

It satisfies the host's link seam by its shape (`exchange`, `realign`, `close`), not by inheritance.
Each exchange first lets the simulation catch up with the clock, so host and robot run in lockstep.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from firmware_protocol.fields import Framing
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript
from hw_mocks.faults.wire import FaultyWire
from hw_mocks.mock_robot import MockRobot


class MockLink:
    """SPI exchanges with one board of a mock robot, without any device."""

    framing = Framing.SPI
    resynchronised = 0  # foreign bytes exist only on serial lines

    def __init__(self, robot: MockRobot, wire: FaultyWire, clock: VirtualClock) -> None:
        self.name = f"mock:{wire.board.name}"
        self.clock_hz = wire.board.clock_hz
        self._robot = robot
        self._wire = wire
        self._clock = clock

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame; returns the bytes received in the same window.

        Raises:
            OSError: A fault of the script made the device fail.
        """
        now_ns = self._clock.now_ns()
        self._robot.advance_to(now_ns)
        received = self._wire.transfer(frame, now_ns)
        if isinstance(received, int):
            raise OSError(received, os.strerror(received), self.name)
        return received

    def realign(self, missing: int) -> None:
        """Clock the bytes that a truncated window left out."""
        self._robot.advance_to(self._clock.now_ns())
        self._wire.board.transfer(b"\x55" * missing)

    def close(self) -> None:
        """Do nothing: there is no device to give back."""


def mock_links(
    robot: MockRobot, clock: VirtualClock, script: FaultScript | None = None
) -> Sequence[MockLink]:
    """Return one link per board of a mock robot, in the robot file's order."""
    faults = script or FaultScript()
    return [
        MockLink(robot, FaultyWire(board, number, faults), clock)
        for number, board in enumerate(robot.boards)
    ]
