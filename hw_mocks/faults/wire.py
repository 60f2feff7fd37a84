"""SPI transfers between a host and a mock board, with the faults of a script.

What carries the bytes (an in-process link, the emulated device) asks here; without faults the
window goes straight to the board.
"""

from __future__ import annotations

import errno

from hw_mocks.boards.board import MockBoard
from hw_mocks.faults.script import FaultKind, FaultScript, ScriptedFault


class FaultyWire:
    """The SPI side of one board, by its number in the robot file."""

    def __init__(self, board: MockBoard, number: int, script: FaultScript) -> None:
        self.board = board
        self.number = number
        self._script = script
        self._last_reply = b""

    def transfer(self, sent: bytes, now_ns: int) -> bytes | int:
        """Make one chip-select window; an int is the errno that the driver fails with."""
        received = self.shift(sent, now_ns)
        self.board.settle()
        return received

    def shift(self, sent: bytes, now_ns: int, prepared: bytes | None = None) -> bytes | int:
        """Make the same window, but let the board act on it only at its `settle`.

        A reply that was prepared is what the host has got already; then no fault strikes.
        """
        self.board.line_ns = now_ns
        if self._script.is_empty or not sent:
            return self.board.shift(sent, prepared)
        held = hold_board(self.board, self._script, self.number, now_ns)
        if FaultKind.VANISH in held:
            return errno.ENODEV
        if FaultKind.IO_ERROR in held:
            return errno.EIO
        fault = self._script.strike(self.number, now_ns)
        received = self._struck(fault, sent, now_ns) if fault else self._window(sent, prepared)
        if FaultKind.STUCK_LOW in held:
            received = bytes(len(sent))
        if FaultKind.STUCK_HIGH in held:
            received = b"\xff" * len(sent)
        return received

    def _window(self, sent: bytes, prepared: bytes | None = None) -> bytes:
        """Return an exchange as it should be; what the board sends is remembered for `repeat`."""
        received = self.board.shift(sent, prepared)
        self.board.settle()
        if len(sent) == self.board.profile.frame_size:
            self._last_reply = received
        return received

    def _struck(self, fault: ScriptedFault, sent: bytes, now_ns: int) -> bytes:
        board, detail = self.board, ""
        generator = self._script.generator_of(self.number)
        if fault.kind is FaultKind.FLIP:
            bit = int(generator.integers(8 * len(sent)))
            direction = fault.direction or str(generator.choice(["command", "reply"]))
            detail = f"{direction} bit {bit}"
            if direction == "command":
                received = self._window(flip_bit(sent, bit))
            else:
                received = flip_bit(self._window(sent), bit)
        elif fault.kind is FaultKind.DROP:
            received = bytes(len(sent))
        elif fault.kind is FaultKind.REPEAT:
            fresh = board.transfer(sent)
            received = (self._last_reply or fresh)[: len(sent)].ljust(len(sent), b"\x00")
        elif fault.kind is FaultKind.TRUNCATE:
            # The boards' SPI works in 16-bit words.
            words = int(generator.integers(1, max(2, len(sent) // 2)))
            detail = f"{2 * words} of {len(sent)} bytes"
            received = board.transfer(sent[: 2 * words])
        elif fault.kind is FaultKind.DELAY:
            board.hold_commands(2)
            received = self._window(sent)
        else:
            latch_error(board, fault)
            detail = f"code {fault.code}"
            received = self._window(sent)
        self._script.log(self.number, now_ns, fault, detail)
        return received


def hold_board(board: MockBoard, script: FaultScript, number: int, now_ns: int) -> set[FaultKind]:
    """Apply the lasting faults that concern the board itself; returns all that last now."""
    kinds = {fault.kind for fault in script.lasting(number, now_ns)}
    board.is_index_frozen = FaultKind.STALE_INDEX in kinds
    board.freeze_encoders(FaultKind.ENCODER_GAP in kinds)
    if FaultKind.BROWN_OUT in kinds and board.is_powered:
        board.power_off()
    elif FaultKind.BROWN_OUT not in kinds and not board.is_powered:
        board.power_on()
    return kinds


def latch_error(board: MockBoard, fault: ScriptedFault) -> None:
    """Make a board latch the error of a script, of one motor or as a whole."""
    board.latch(fault.code, None if fault.motor is None else fault.motor - 1)


def flip_bit(data: bytes, bit: int) -> bytes:
    """Return the bytes with one bit inverted; bit 0 is the most significant one of the first."""
    changed = bytearray(data)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return bytes(changed)
