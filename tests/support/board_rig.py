"""A mock board driven by bytes alone; its time passes only when a test says so."""

from __future__ import annotations

from typing import Any

import msgspec

from daq.robot.description import Robot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import MODE_BITS, PROFILES, STATUS_BITS
from hw_mocks.mock_robot import STEP_NS, MockRobot
from hw_mocks.plants.effects import PRESETS, Effects

MODE, STATUS = MODE_BITS, STATUS_BITS
ES, EM1, EM2, EPRE = MODE["ES"], MODE["EM1"], MODE["EM2"], MODE["EPRE"]
ON = ES | EM1
MS_NS = 1_000_000
IDLE = Effects()
"""Physics without any effect that the control law does not ask for."""


class Rig:
    """One board of a mock robot, and a host that counts its commands.

    Fields of both motors may be given as one number, for motor 1 alone. Calibration is short and
    begins at once, unless its duration is None: then it is the firmware's own. Replies are whole,
    unless they may be torn as the firmware's.
    """

    def __init__(
        self,
        robot: Robot,
        profile: str,
        *,
        board: int = 0,
        effects: Effects = PRESETS["default"],
        calibration_s: float | None = 0.05,
        is_torn: bool = False,
        **options: Any,
    ) -> None:
        self.robot = MockRobot(
            robot, profile=profile, effects=effects, calibration_s=calibration_s, **options
        )
        self.profile = PROFILES[profile]
        self.board = self.robot.boards[board]
        if not is_torn:
            self.board.replies.torn_share = 0.0
        self.index = 0
        self._commands = {framing: command_codec(self.profile, framing) for framing in Framing}
        self._replies = {framing: reply_codec(self.profile, framing) for framing in Framing}
        self._per_motor = {field.name for field in self.profile.command.fields if field.count == 2}

    def frame(self, framing: Framing = Framing.SPI, **fields: Any) -> bytes:
        """The bytes of the next command."""
        self.index = (self.index + 1) & 0xFFFF
        values = {"timeout_ms": 100, "index": self.index} | {
            name: (value, 0.0) if name in self._per_motor and not _is_pair(value) else value
            for name, value in fields.items()
        }
        codec = self._commands[framing]
        return codec.encode(codec.make(**values))

    def wait(self, ms: float = 1.0) -> None:
        self.robot.advance_to(self.robot.now_ns + round(ms * MS_NS))

    def step(self) -> None:
        self.robot.advance_to(self.robot.now_ns + STEP_NS)

    def decode(self, received: bytes) -> Any:
        return self._replies[Framing.SPI].decode(received)

    def send(self, **fields: Any) -> Any:
        """One SPI window now; what the board said in it."""
        return self.decode(self.board.transfer(self.frame(**fields)))

    def run(self, ms: int, **fields: Any) -> list[Any]:
        """The same command every millisecond; the replies."""
        replies = []
        for _ in range(ms):
            replies.append(self.send(**fields))
            self.wait()
        return replies

    def ask(self, **fields: Any) -> Any:
        """A command on RS-485, sent twice: the second reply tells how things stand with it."""
        for _ in range(2):
            (reply,) = self.board.receive(self.frame(Framing.RS485, **fields))
        return self._replies[Framing.RS485].decode(reply)

    def ask_again(self, **fields: Any) -> Any:
        """What a board on SPI would say now: the reply to an SPI command, without its delay."""
        self.board.transfer(self.frame(**fields))
        return self.look()

    def look(self) -> Any:
        """What the board says in a window that holds no command."""
        return self.decode(self.board.transfer(bytes(self.profile.frame_size)))

    def calibrate(self, mode: int = ON, **fields: Any) -> Any:
        """Enable and keep asking until every motor asked for is ready."""
        ready = STATUS["M1R"] * bool(mode & EM1) | STATUS["M2R"] * bool(mode & EM2)
        for _ in range(10_000):
            reply = self.ask(mode=mode, **fields)
            if reply.status & ready == ready:
                return reply
            assert not reply.status & 0xF, f"error {reply.status & 0xF} while calibrating"
            self.wait()
        raise AssertionError("never ready")


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple)


def hold(robot: Robot, profile: str, **options: Any) -> Rig:
    """A board that has calibrated a motor whose friction holds it."""
    rig = Rig(robot, profile, effects=IDLE, calibration_s=0.3, **options)
    rig.calibrate()
    rig.run(5, mode=ON)
    return rig


def with_friction(robot: Robot, *, coulomb_joint_nm: float, viscous: float = 0.0) -> Robot:
    """The same robot with other friction on all its joints."""
    return msgspec.structs.replace(
        robot,
        joints=tuple(
            msgspec.structs.replace(
                joint,
                drive=msgspec.structs.replace(
                    joint.drive,
                    friction=msgspec.structs.replace(
                        joint.drive.friction,
                        coulomb_joint_nm=coulomb_joint_nm,
                        viscous_motor_nm_s_per_rad=viscous,
                    ),
                ),
            )
            for joint in robot.joints
        ),
    )


def on_output(robot: Robot, output: int) -> Robot:
    """The same bench with its motor on that output."""
    (joint,) = robot.joints
    drive = msgspec.structs.replace(joint.drive, output=output)
    return msgspec.structs.replace(robot, joints=(msgspec.structs.replace(joint, drive=drive),))


def with_coil(robot: Robot, coil_resistance_ohm: float) -> Robot:
    """The same robot with other windings in all its motors."""
    return msgspec.structs.replace(
        robot,
        motors={
            name: msgspec.structs.replace(motor, coil_resistance_ohm=coil_resistance_ohm)
            for name, motor in robot.motors.items()
        },
    )
