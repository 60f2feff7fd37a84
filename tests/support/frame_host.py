"""A host that sends whatever frames it is told to: what boards do with them is for the test to say.

Unlike `daq.boards` it guards nobody. Time is virtual, the truth is the mock's plant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from daq.robot import load_robot
from daq.robot.description import DrivenRobot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profiles import MODE_BITS, PROFILES, STATUS_BITS
from firmware_protocol.values import ReplyValues
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS

MOTOR_1 = MODE_BITS["ES"] | MODE_BITS["EM1"]
MOTOR_2 = MODE_BITS["ES"] | MODE_BITS["EM2"]
BOTH = MOTOR_1 | MOTOR_2
ERROR = 0xF


def bits(*names: str) -> int:
    """The bits of a status word."""
    return sum(STATUS_BITS[name] for name in names)


def bench_on_output(number: int) -> DrivenRobot:
    """The shipped bench, its motor on output 1 or 2."""
    robot = load_robot("bench1").driven()
    (joint,) = robot.joints
    drive = msgspec.structs.replace(joint.drive, output=number)
    return msgspec.structs.replace(robot, joints=(msgspec.structs.replace(joint, drive=drive),))


class FrameHost:
    """Frames to the first board of a mock robot, without effects that scatter.

    Attributes:
        mock: The robot.
        index: Of the last command.
        reply: The last one, decoded; None if it was not sound.
    """

    def __init__(
        self,
        profile: str,
        *,
        output: int = 1,
        robot: DrivenRobot | None = None,
        faults: Sequence[str] = (),
        calibration_s: float | None = 0.1,
        speed_hz: int = 8_000_000,
        **options: Any,
    ) -> None:
        robot = robot or bench_on_output(output)
        port = msgspec.structs.replace(
            robot.boards[0], spi=msgspec.structs.replace(robot.boards[0].spi, speed_hz=speed_hz)
        )
        robot = msgspec.structs.replace(robot, boards=(port, *robot.boards[1:]))
        effects = options.pop("effects", PRESETS["none"])
        self.profile = PROFILES[profile]
        self.mock = MockRobot(
            robot,
            profile=profile,
            effects=effects,
            spread=0.0,
            calibration_s=calibration_s,
            **options,
        )
        self.board = self.mock.boards[0]
        self.clock = VirtualClock()
        script = FaultScript([parse_fault(text) for text in faults])
        self._link = mock_links(self.mock, self.clock, script)[0]
        self._command, self._reply = command_codec(self.profile), reply_codec(self.profile)
        self.index = 0
        self.reply: ReplyValues | None = None

    @property
    def plant(self) -> Any:
        """What the motors turn: the truth."""
        return self.mock.plant

    @property
    def status(self) -> int:
        """Of the last reply."""
        assert self.reply is not None
        return self.reply.status

    @property
    def code(self) -> int:
        """The error of the last reply."""
        return self.status & ERROR

    def frame(self, mode: int, *, timeout_ms: int = 0, **values: Any) -> bytes:
        """Make the next command."""
        self.index = (self.index + 1) & 0xFFFF
        command = self._command.make(mode=mode, timeout_ms=timeout_ms, index=self.index, **values)
        return self._command.encode(command)

    def send(
        self, mode: int = 0, *, after_ms: float = 1.0, timeout_ms: int = 0, **values: Any
    ) -> ReplyValues | None:
        """Exchange a command for a reply, after a while."""
        return self.exchange(self.frame(mode, timeout_ms=timeout_ms, **values), after_ms=after_ms)

    def exchange(self, frame: bytes, *, after_ms: float = 1.0) -> ReplyValues | None:
        """Exchange any bytes; returns the reply if it is a sound one."""
        self.pause(after_ms)
        received = self._link.exchange(frame)
        is_sound = len(received) == self._reply.size and self._reply.ends_with_crc(received)
        self.reply = self._reply.values_of(self._reply.unpack(received)) if is_sound else None
        return self.reply

    def keep_sending(self, mode: int, duration_ms: int, **values: Any) -> ReplyValues:
        """Send the same command every millisecond; returns the last reply."""
        for _ in range(duration_ms):
            self.send(mode, **values)
        assert self.reply is not None
        return self.reply

    def pause(self, duration_ms: float) -> None:
        """Let time pass, for the robot too."""
        self.clock.advance_ns(round(duration_ms * 1e6))
        self.mock.advance_to(self.clock.now_ns())

    def enable(self, mode: int = MOTOR_1, *, within_ms: int = 5000, **values: Any) -> int:
        """Send until every motor of the mode is ready; returns after how many milliseconds."""
        ready = sum(bits(f"M{n}R") for n in (1, 2) if mode & MODE_BITS[f"EM{n}"])
        for elapsed_ms in range(within_ms):
            self.send(mode, **values)
            if self.reply is not None and self.status & ready == ready:
                return elapsed_ms
        raise AssertionError(f"not ready: {self.reply}")

    def lead_to(
        self, target_rad: float, *, mode: int = MOTOR_1, speed_rad_s: float = 150.0
    ) -> None:
        """Lead a motor upwards to a reported position, and hold it there."""
        assert self.reply is not None
        position_rad = self.reply.motor_position_rad[0]
        gains = {"kp_a_per_rad": (2.0, 2.0), "kd_a_s_per_rad": (0.05, 0.05)}
        while (rest_rad := target_rad - position_rad) > 1e-3:
            now_rad_s = min(speed_rad_s, 1.0 + math.sqrt(600.0 * rest_rad))
            position_rad = min(target_rad, position_rad + 1e-3 * now_rad_s)
            values = {"motor_position_rad": (position_rad,) * 2, **gains}
            self.send(mode, motor_velocity_rad_s=(now_rad_s,) * 2, **values)
        reply = self.keep_sending(mode, 300, motor_position_rad=(target_rad,) * 2, **gains)
        assert abs(reply.motor_position_rad[0] - target_rad) < 0.1
