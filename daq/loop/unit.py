"""A board in the loop: its command in the making, its last reply, and the joints on it."""

from __future__ import annotations

from daq.board import Board, Outcome
from daq.errors import TransportError
from daq.loop.axis import Axis
from daq.robot.description import BoardPort, Robot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Fault, Field
from firmware_protocol.profile import ERROR_MASK
from firmware_protocol.profiles import MODE_FLAGS, STATUS_FLAGS

MODE = {flag.name: 1 << flag.bit for flag in MODE_FLAGS}
STATUS = {flag.name: 1 << flag.bit for flag in STATUS_FLAGS}
OUTCOME_CODES = {outcome: code for code, outcome in enumerate(Outcome)}
NO_EXCHANGE = 255
"""Stands in a sample for the outcome of an exchange that did not take place."""


class Unit:
    """A board and what the loop keeps about it.

    Args:
        port: Its description.
        board: The open board.
        robot: For the joints on it.
        period_s: Time between two cycles.

    Attributes:
        axes: The joints on it.
        command: Integers of the next command, in wire order.
        status: The last sound reply's status word.
        replies: The last sound reply's integers; None before there is one.
        missed: Cycles without a sound reply, up to now.
        failure: Why the device could not be used in the last exchange.
        outcome_code: How the last exchange went, as samples say it.
        outcome_byte: The same, packed.
        ready_bits: What a status word is masked with, and is then, when all is well.
        last_frames: Command and reply of the last exchange, the reply padded to its full size.
    """

    def __init__(self, port: BoardPort, board: Board, robot: Robot, *, period_s: float) -> None:
        self.port = port
        self.board = board
        framing, profile = board.link.framing, board.profile
        self.command_codec = command_codec(profile, framing)
        self.reply_codec = reply_codec(profile, framing)
        self.frame_size = self.command_codec.size
        wire = self.command_codec.decode_raw(self.command_codec.encode(board.command()))
        self.command: list[int] = list(wire)
        joints = robot.joints_on(port)
        self.axes = tuple(
            Axis(
                robot.joints.index(joint),
                joint,
                robot.motor_of(joint),
                command=self.command_codec,
                reply=self.reply_codec,
                behaviour=profile.behaviour,
                command_raws=self.command,
                period_s=period_s,
            )
            for joint in joints
            if joint is not None
        )
        outputs = [axis.joint.drive.output for axis in self.axes]
        self._mode_when_enabled = MODE["ES"] | sum(MODE[f"EM{output}"] for output in outputs)
        when_ready = STATUS["SE"] | sum(
            STATUS[f"M{output}E"] | STATUS[f"M{output}R"] for output in outputs
        )
        self.ready_bits = when_ready | ERROR_MASK, when_ready
        self.status = 0
        self.replies: tuple[int, ...] | None = None
        self.missed = 0
        self.failure: TransportError | None = None
        self._note_outcome(NO_EXCHANGE, None)
        self.last_frames = bytes(self.frame_size), bytes(self.frame_size)

    # --- what it is told --------------------------------------------------------------------------

    def enable(self) -> None:
        """Switch the system and every connected motor on with the next command."""
        self.command[0] = self._mode_when_enabled

    def disable(self) -> None:
        """Switch everything off with the next command."""
        self.command[0] = 0

    def exchange(self) -> tuple[int, ...] | None:
        """Send the command, take in the reply.

        Returns:
            The reply's integers, None when there was none to be used.
        """
        board = self.board
        try:
            raws = board.exchange_raws(self.command)
        except TransportError as error:
            self.failure = error
            self._note_outcome(NO_EXCHANGE, None)
            self.missed += 1
            self.last_frames = board.sent, bytes(self.frame_size)
            return None
        self.failure = None
        received = board.received
        if raws is not None:
            outcome = board.outcome
            if outcome is not self._last_outcome:
                self._note_outcome(OUTCOME_CODES[outcome], outcome)
            self.last_frames = board.sent, received
            self.replies = raws
            self.status = raws[0]
            if self.missed:
                for axis in self.axes:
                    axis.bridge(raws, self.missed)
                self.missed = 0
            else:
                for axis in self.axes:
                    axis.read(raws)
            return raws
        self._note_outcome(OUTCOME_CODES[board.outcome], board.outcome)
        size = self.frame_size
        self.last_frames = board.sent, received[:size].ljust(size, b"\0")
        self.missed += 1
        return None

    def _note_outcome(self, code: int, outcome: Outcome | None) -> None:
        self.outcome_code = code
        self.outcome_byte = bytes([code])
        self._last_outcome = outcome

    # --- what it says -----------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether every connected motor is enabled and calibrated, and no error is reported."""
        mask, ready = self.ready_bits
        return self.status & mask == ready

    def reply_field(self, name: str) -> Field | None:
        """A field of the board's replies, None when they have no such field."""
        return next((f for f in self.reply_codec.layout.fields if f.name == name), None)

    @property
    def fault(self) -> Fault | None:
        """What the board reports as wrong."""
        return self.board.profile.fault_of(self.status)

    def index_bits(self, axis: Axis) -> tuple[bool, bool]:
        """Whether a joint's encoder index was found, and the bit that toggles when it passes."""
        output = axis.joint.drive.output
        found = bool(self.status & STATUS[f"IDX{output}D"])
        return found, bool(self.status & STATUS[f"IDX{output}T"])
