"""A mock robot behind `daq.boards.board`, on the virtual clock, for homing and moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from daq.boards.board import Board, Outcome
from daq.robot.description import Robot
from firmware_protocol.profiles import MODE_BITS, STATUS_BITS, profile_named
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS

PERIOD_NS = 1_000_000


class Seen(NamedTuple):
    """What a reply says of one joint's motor."""

    position_rad: float
    velocity_rad_s: float
    iq_a: float
    is_index_found: bool
    index_toggle: bool
    is_ready: bool


class VirtualArm:
    """Joints by number; one cycle is one exchange with every board."""

    def __init__(self, robot: Robot, *, effects: str = "default", **options: Any) -> None:
        self.robot = robot
        self.clock = VirtualClock()
        self.mock = MockRobot(robot, effects=PRESETS[effects], calibration_s=0.3, **options)
        self.boards = [
            Board(port.name, profile_named(port.profile), link, now_ns=self.clock.now_ns)
            for port, link in zip(robot.boards, mock_links(self.mock, self.clock), strict=True)
        ]
        self._joints = [
            [None if joint is None else robot.joints.index(joint) for joint in robot.joints_on(p)]
            for p in robot.boards
        ]
        self._enable = [
            board.command(
                mode=MODE_BITS["ES"]
                + sum(
                    MODE_BITS[f"EM{output}"] for output, j in enumerate(joints, 1) if j is not None
                ),
                timeout_ms=10,
            )
            for board, joints in zip(self.boards, self._joints, strict=True)
        ]
        self.seen: list[Seen] = [Seen(0.0, 0.0, 0.0, False, False, False)] * len(robot.joints)

    def cycle(
        self,
        reference: Sequence[tuple[float, float]] = (),
        gains: Sequence[tuple[float, float, float]] = (),
        iq_ff_a: Sequence[float] = (),
    ) -> list[Seen]:
        """Send motor references (position, speed) with gains (kp, kd, ki); what came back."""
        count = len(self.seen)
        reference = reference or [(0.0, 0.0)] * count
        gains = gains or [(0.0, 0.0, 0.0)] * count
        iq_ff_a = iq_ff_a or [0.0] * count
        for board, enable, joints in zip(self.boards, self._enable, self._joints, strict=True):

            def both(values: Sequence[float], joints: Any = joints) -> tuple[float, ...]:
                return tuple(0.0 if j is None else values[j] for j in joints)

            reading = board.exchange(
                enable._replace(
                    motor_position_rad=both([p for p, _ in reference]),
                    motor_velocity_rad_s=both([v for _, v in reference]),
                    kp_a_per_rad=both([kp for kp, _, _ in gains]),
                    kd_a_s_per_rad=both([kd for _, kd, _ in gains]),
                    ki_a_per_rad_s=both([ki for _, _, ki in gains]),
                    iq_ff_a=both(iq_ff_a),
                )
            )
            values = reading.values
            if values is None:
                continue
            assert reading.outcome in (Outcome.OK, Outcome.LATE, Outcome.COMMAND_LOST)
            assert board.profile.fault_of(values.status) is None
            for output, joint in enumerate(joints):
                if joint is not None:
                    self.seen[joint] = Seen(
                        values.motor_position_rad[output],
                        values.motor_velocity_rad_s[output],
                        values.iq_a[output],
                        bool(values.status & STATUS_BITS[f"IDX{output + 1}D"]),
                        bool(values.status & STATUS_BITS[f"IDX{output + 1}T"]),
                        bool(values.status & STATUS_BITS[f"M{output + 1}R"]),
                    )
        self.clock.advance_ns(PERIOD_NS)
        return list(self.seen)

    def calibrate(self) -> list[Seen]:
        """Enable, until every motor is ready."""
        for _ in range(2000):
            if all(seen.is_ready for seen in self.cycle()):
                return list(self.seen)
        raise AssertionError("never ready")
