"""The boards of a mock robot behind emulated SPI devices, in real time."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from hw_mocks.emulated_spi.server import SpidevServer, SpiTransfer
from hw_mocks.faults.script import FaultKind, FaultScript
from hw_mocks.faults.wire import FaultyWire, hold_board
from hw_mocks.mock_robot import MockRobot
from hw_mocks.realtime import RealTime

_CLOCK_MAX_HZ = 20_000_000
# How long a reply stays open before it is asked again whether a fault is due, and how long before
# the end of that: far longer than a step, should this process lose the processor.
_SPARED_NS = 100_000_000
_RENEWED_NS = 50_000_000
_REMADE_NS = 200_000
"""A reply is made anew, at every step, once so long has passed since the last window."""


class SpiBoards:
    """Serves every board of a mock robot on its SPI device, in a private directory.

    The mark is what the devices say of the robot behind them.
    """

    def __init__(
        self, robot: MockRobot, script: FaultScript, directory: Path, *, mark: str = ""
    ) -> None:
        self._robot = robot
        self._script = script
        self._wires = {
            port.spi.device: FaultyWire(board, number, script)
            for number, (port, board) in enumerate(
                zip(robot.robot.boards, robot.boards, strict=True)
            )
        }
        self._spared_until_ns = dict.fromkeys(self._wires, 0)
        self._made_ns = dict.fromkeys(self._wires, 0)
        self._server = SpidevServer(
            directory,
            list(self._wires),
            self._answer,
            prepare=self._prepare,
            speed_max_hz=_CLOCK_MAX_HZ,
            mark=mark,
        )
        self._real_time = RealTime(robot, self._serve)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Serve until told to end."""
        self._real_time.run(is_over)

    def close(self) -> None:
        """Remove the devices."""
        self._server.close()

    def _serve(self, timeout_s: float) -> None:
        self._server.poll(timeout_s)
        now_ns = self._robot.now_ns
        for device, wire in self._wires.items():
            if self._made_ns[device] < now_ns and now_ns - wire.board.line_ns > _REMADE_NS:
                self._server.prepare_again(device)
        if not self._script.is_empty:
            self._show_and_hide()

    def _prepare(self, device: str) -> bytes | None:
        """Let the board act on what it got; its next reply, unless a fault may change it.

        It is as fresh as the simulation: boards make theirs anew until a window begins.
        """
        wire = self._wires[device]
        self._robot.advance_to(wire.board.line_ns)
        wire.board.settle()
        self._made_ns[device] = self._robot.now_ns
        if not self._script.is_empty:
            now_ns = self._real_time.now_ns
            if not self._script.spares_next(wire.number, now_ns, now_ns + _SPARED_NS):
                self._spared_until_ns[device] = now_ns
                return None
            self._spared_until_ns[device] = now_ns + _SPARED_NS
        return wire.board.prepared_reply()

    def _show_and_hide(self) -> None:
        now_ns = self._real_time.now_ns
        for device, wire in self._wires.items():
            if FaultKind.VANISH in hold_board(wire.board, self._script, wire.number, now_ns):
                self._server.remove(device)
                continue
            self._server.restore(device)
            if self._spared_until_ns[device] < now_ns + _RENEWED_NS:
                self._server.prepare_again(device)

    def _answer(self, transfer: SpiTransfer) -> bytes | int:
        wire = self._wires[transfer.device]
        now_ns = self._real_time.simulated_ns(transfer.started_ns)
        is_understood = (
            transfer.mode == 0
            and transfer.bits_per_word == 8
            and 0 < transfer.speed_hz <= _CLOCK_MAX_HZ
        )
        if is_understood:
            wire.board.clock_hz = transfer.speed_hz
            received = wire.shift(transfer.tx, now_ns, transfer.reply)
            if received == errno.ENODEV:
                self._server.remove(transfer.device)  # before the program can look for it
            return received
        # Sampled on the wrong edge or too fast: both ends see every bit one place late.
        received = wire.transfer(_late_by_one_bit(transfer.tx), now_ns)
        return received if isinstance(received, int) else _late_by_one_bit(received)


def _late_by_one_bit(data: bytes) -> bytes:
    return (int.from_bytes(data, "big") >> 1).to_bytes(len(data), "big")
