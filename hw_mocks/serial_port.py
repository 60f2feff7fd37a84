"""A mock board behind a serial port: RS-485 framing on a pseudo-terminal, in real time."""

from __future__ import annotations

import contextlib
import os
import select
import tty
from collections.abc import Callable

from hw_mocks.boards.board import MockBoard
from hw_mocks.faults.script import FaultKind, FaultScript, ScriptedFault
from hw_mocks.faults.wire import flip_bit, hold_board, latch_error
from hw_mocks.mock_robot import MockRobot
from hw_mocks.realtime import RealTime
from hw_mocks.serial_presence import show_presence

_READ_MAX_BYTES = 4096
_DELAY_NS = 30_000_000
_STUCK = {FaultKind.STUCK_LOW: b"\x00", FaultKind.STUCK_HIGH: b"\xff"}


class SerialPort:
    """One board of a mock robot on a pseudo-terminal, whose `device` is the port to open."""

    def __init__(self, robot: MockRobot, number: int, script: FaultScript) -> None:
        self._robot = robot
        self._board: MockBoard = robot.boards[number]
        self._number = number
        self._script = script
        self._host, self._slave = os.openpty()
        tty.setraw(self._host)
        # The slave stays open here: otherwise the terminal hangs up whenever a program closes it.
        tty.setraw(self._slave)
        os.set_blocking(self._host, False)
        self.device = os.ttyname(self._slave)
        self._presence = show_presence(self._slave)
        self._is_plugged = True
        self._stuck_at: bytes | None = None
        self._last_reply = b""
        self._delayed: list[tuple[int, bytes]] = []

    def run(self, is_over: Callable[[], bool]) -> None:
        """Serve until told to end, then close the port."""
        try:
            RealTime(self._robot, self._serve).run(is_over)
        finally:
            self._unplug()

    def _serve(self, timeout_s: float) -> None:
        held = hold_board(self._board, self._script, self._number, self._robot.now_ns)
        if held & {FaultKind.UNPLUG, FaultKind.VANISH}:
            self._unplug()
        self._stuck_at = next((level for kind, level in _STUCK.items() if kind in held), None)
        if not self._is_plugged:
            select.select((), (), (), timeout_s)
            return
        self._send_delayed()
        if not select.select((self._host,), (), (), timeout_s)[0]:
            return
        data = os.read(self._host, _READ_MAX_BYTES)
        fault = self._script.strike(self._number, self._robot.now_ns)
        if fault is None:
            self._answer(data)
        else:
            self._answer_struck(fault, data)

    def _answer(self, data: bytes) -> None:
        for reply in self._board.receive(data):
            self._last_reply = reply
            self._send(reply)

    def _answer_struck(self, fault: ScriptedFault, data: bytes) -> None:
        generator, detail = self._script.generator_of(self._number), ""
        if fault.kind is FaultKind.FLIP:
            direction = fault.direction or str(generator.choice(["command", "reply"]))
            detail = direction
            if direction == "command":
                self._answer(flip_bit(data, int(generator.integers(8 * len(data)))))
            else:
                for reply in self._board.receive(data):
                    self._send(flip_bit(reply, int(generator.integers(8 * len(reply)))))
        elif fault.kind is FaultKind.REPEAT:
            self._board.receive(data)
            self._send(self._last_reply)
        elif fault.kind is FaultKind.TRUNCATE:
            for reply in self._board.receive(data):
                self._send(reply[: int(generator.integers(1, len(reply)))])
        elif fault.kind is FaultKind.DELAY:
            due_ns = self._robot.now_ns + _DELAY_NS
            self._delayed += [(due_ns, reply) for reply in self._board.receive(data)]
        elif fault.kind is FaultKind.BOARD_ERROR:
            latch_error(self._board, fault)
            self._answer(data)
        # A dropped exchange never reaches the board.
        self._script.log(self._number, self._robot.now_ns, fault, detail)

    def _send_delayed(self) -> None:
        while self._delayed and self._delayed[0][0] <= self._robot.now_ns:
            self._send(self._delayed.pop(0)[1])

    def _send(self, data: bytes) -> None:
        if self._stuck_at is not None:
            data = self._stuck_at * len(data)
        # A host that never reads fills the terminal's buffer; a real line would lose bytes too.
        with contextlib.suppress(BlockingIOError):
            os.write(self._host, data)

    def _unplug(self) -> None:
        if self._is_plugged:
            self._presence.close()
            os.close(self._slave)
            os.close(self._host)
        self._is_plugged = False
