"""A board in the loop: its command in the making, its last reply, and the joints on it."""

from __future__ import annotations

import math
from collections.abc import Callable

from daq.boards.board import Board, Outcome
from daq.boards.wire_range import wire_range
from daq.errors import TransportError
from daq.loop.io.axis import NEVER, Axis
from daq.loop.io.special_axes import make_axis
from daq.robot import BoardPort, DrivenRobot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Fault
from firmware_protocol.profile import ERROR_MASK
from firmware_protocol.profiles import MODE_BITS, STATUS_BITS

_MOTORS_ENABLED = STATUS_BITS["M1E"] | STATUS_BITS["M2E"]
_MISSED_MAX = 3
"""Cycles in a row without a sound reply from which on a board counts as one that does not answer:
now and then an exchange is lost."""


class LoopBoard:
    """A board and what the loop keeps about it.

    Attributes:
        command: Integers of the next command, in wire order.
        replies: The last sound reply's integers; None before there is one.
        missed: Cycles without a sound reply, up to now.
        failure: Why the device could not be used in the last exchange.
        outcome: How the last exchange went.
        outcome_byte: The same, packed.
        ready_bits: What a status word is masked with, and is then, when all is well: every motor in
            use enabled and calibrated, no error. The bit SE of some boards says nothing of that.
        reply_frame: What came back in the last exchange, padded to its full size.
        expected_mask: What a reply's status word is masked with while it is as it should be,
        expected_status: and is then.
        voltage_at: Where the bus voltage stands, and the limits within which it should be:
        lowest_raw: the lower,
        highest_raw: and the upper one.
    """

    def __init__(
        self, port: BoardPort, board: Board, robot: DrivenRobot, *, period_s: float
    ) -> None:
        self.port = port
        self.board = board
        self.title = f"board {port.name} on {board.link.name}"
        framing, profile = board.link.framing, board.profile
        self.command_codec = command_codec(profile, framing)
        self.reply_codec = reply_codec(profile, framing)
        self.frame_size = self.command_codec.size
        wire = self.command_codec.decode_raw(self.command_codec.encode(board.command()))
        self.command: list[int] = list(wire)
        self.axes = tuple(
            make_axis(
                robot.joints.index(joint),
                joint,
                nm_per_a=robot.nm_per_a(joint),
                command=self.command_codec,
                reply=self.reply_codec,
                behaviour=profile.behaviour,
                wire=wire_range(robot, joint, profile.behaviour),
                command_raws=self.command,
                period_s=period_s,
            )
            for joint in robot.joints_on(port)
            if joint is not None
        )
        outputs = [axis.joint.drive.output for axis in self.axes]
        for output in {1, 2}.difference(outputs):
            place = self.command_codec.place_of("isat_a", output)
            if place is not None:
                self.command[place] = 1  # 0 would mean the board's own limit
        self._mode_at, self._timeout_at = self._place("mode"), self._place("timeout_ms")
        self._timestamp_at = self.reply_codec.place_of("timestamp_ms") or 0
        self._timestamp_step_ns = profile.behaviour.timestamp_step_s * 1e9
        self._mode_when_enabled = MODE_BITS["ES"] | sum(
            MODE_BITS[f"EM{output}"] for output in outputs
        )
        when_ready = sum(
            STATUS_BITS[f"M{output}E"] | STATUS_BITS[f"M{output}R"] for output in outputs
        )
        self.ready_bits = when_ready | ERROR_MASK, when_ready
        self.expect_ready(False)
        self.voltage_at, self.lowest_raw, self.highest_raw = 0, -1, NEVER
        self._volts_per_raw = math.nan
        voltage_at = self.reply_codec.place_of("bus_voltage_v")
        if voltage_at is not None:
            fields = {field.name: field for field in self.reply_codec.layout.fields}
            self.voltage_at, self._volts_per_raw = voltage_at, fields["bus_voltage_v"].lsb
            self.lowest_raw = math.ceil(robot.bus.min_v / self._volts_per_raw)
            self.highest_raw = math.floor(robot.bus.max_v / self._volts_per_raw)
        self._restarts = 0
        self.replies: tuple[int, ...] | None = None
        self.missed = 0
        self.failure: TransportError | None = None
        self._note_outcome(Outcome.NO_EXCHANGE)
        self.reply_frame = bytes(self.frame_size)

    # --- commands ---------------------------------------------------------------------------------

    def enable(self) -> None:
        """Switch the system, every connected motor and the watchdog on with the next command."""
        self._restarts = self.board.counters.restarted
        self._command(self._mode_when_enabled, self.board.command_timeout_ms)

    def disable(self) -> None:
        """Switch everything off with the next command."""
        self._command(0, 0)

    def _command(self, mode: int, timeout_ms: int) -> None:
        """Set both together: one without the other stops a board for good, or never."""
        self.command[self._mode_at], self.command[self._timeout_at] = mode, timeout_ms

    @property
    def is_powered(self) -> bool:
        """Whether the next command lets it drive its motors."""
        return bool(self.command[self._mode_at])

    def expect_ready(self, is_expected: bool) -> None:
        """Set whether every motor should be enabled, calibrated and without error from now on."""
        # An error is never as it should be; whether it matters, others decide.
        expected = self.ready_bits if is_expected else (ERROR_MASK, 0)
        self.expected_mask, self.expected_status = expected

    # --- an exchange ------------------------------------------------------------------------------

    def transfer(self) -> None:
        """Exchange it."""
        self.failure = None
        try:
            self.board.transfer()
        except TransportError as error:
            self.failure = error

    def read(self, began_ns: int) -> bool:
        """Take in the reply.

        Returns:
            Whether nothing about it needs a closer look: it is usual, the status is what it should
            be, and everything is within its limits.
        """
        board = self.board
        try:
            raws = None if self.failure is not None else board.take(began_ns)
        except TransportError as error:
            self.failure, raws = error, None
        if raws is None:
            self._miss()
            return False
        outcome = board.outcome
        if outcome is not self.outcome:
            self._note_outcome(outcome)
        self.reply_frame = board.received
        self.replies = raws
        is_plain = (
            outcome is Outcome.OK
            and raws[0] & self.expected_mask == self.expected_status
            and self.lowest_raw <= raws[self.voltage_at] <= self.highest_raw
        )
        if self.missed:
            for axis in self.axes:
                axis.bridge(raws, self.missed)
            self.missed = 0
            return False
        for axis in self.axes:
            if not axis.read(raws):
                is_plain = False
        return is_plain

    def exchange(self, now_ns: Callable[[], int]) -> None:
        """Prepare, exchange and take in at once, for when there is nothing else to do."""
        self.board.prepare(self.command)
        began_ns = now_ns()
        self.transfer()
        self.read(began_ns)

    def _place(self, name: str) -> int:
        place = self.command_codec.place_of(name)
        if place is None:
            raise ValueError(f"every command has a field {name}")
        return place

    def _miss(self) -> None:
        size = self.frame_size
        self.missed += 1
        if self.failure is not None:
            self._note_outcome(Outcome.NO_EXCHANGE)
            self.reply_frame = bytes(size)
        else:
            self._note_outcome(self.board.outcome)
            self.reply_frame = self.board.received[:size].ljust(size, b"\0")

    def _note_outcome(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.outcome_byte = bytes([outcome])

    # --- what it says -----------------------------------------------------------------------------

    @property
    def status(self) -> int:
        """The last sound reply's status word."""
        return 0 if self.replies is None else self.replies[0]

    @property
    def is_answering(self) -> bool:
        """Whether sound replies come, but for one or two that were lost just now."""
        return self.replies is not None and self.missed < _MISSED_MAX

    @property
    def is_enabled(self) -> bool:
        """Whether the board says that a motor is enabled."""
        return bool(self.status & _MOTORS_ENABLED)

    @property
    def has_restarted(self) -> bool:
        """Whether the board's clock has begun anew since it was enabled."""
        return self.board.counters.restarted > self._restarts

    @property
    def uptime_min_ns(self) -> int:
        """How long the board has been on, at least: its time stamp wraps."""
        if self.replies is None:
            return 0
        return round(self.replies[self._timestamp_at] * self._timestamp_step_ns)

    @property
    def bus_voltage_v(self) -> float:
        """As in the last sound reply; NaN where the board does not measure it."""
        return (
            math.nan
            if self.replies is None
            else self.replies[self.voltage_at] * self._volts_per_raw
        )

    @property
    def is_ready(self) -> bool:
        """Whether every connected motor is enabled and calibrated, and no error is reported."""
        mask, ready = self.ready_bits
        return self.status & mask == ready

    @property
    def fault(self) -> Fault | None:
        """What the board reports as wrong."""
        return self.board.profile.fault_of(self.status)

    def knows_position(self, axis: Axis) -> bool:
        """Whether a joint's motor is calibrated; its position reads zero otherwise."""
        return bool(self.status & STATUS_BITS[f"M{axis.joint.drive.output}R"])

    def index_bits(self, axis: Axis) -> tuple[bool, bool]:
        """Whether a joint's encoder index was found, and the bit that toggles when it passes."""
        output = axis.joint.drive.output
        found = bool(self.status & STATUS_BITS[f"IDX{output}D"])
        return found, bool(self.status & STATUS_BITS[f"IDX{output}T"])
