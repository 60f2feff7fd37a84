"""Processes of the link tests: mock boards behind a device, and a program that has it open.

The program runs under the preload library, where the real spidev extension finds the device; it
answers one request after the other.
"""

from __future__ import annotations

from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from daq.links.failures import transport_error
from daq.links.spi import SpiLink
from daq.robot import load_robot
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_port import SerialPort
from hw_mocks.spi_boards import SpiBoards


class Failure(NamedTuple):
    """A `TransportError` on its way to another process."""

    kind: str
    text: str


def make_mock(profile: str, faults: tuple[str, ...]) -> tuple[MockRobot, FaultScript]:
    robot = MockRobot(load_robot("bench1"), profile=profile, calibration_s=0.1)
    parsed = [parse_fault(text) for text in faults]
    return robot, FaultScript(parsed, seed=1, is_from_first_exchange=True)


def serve_spi(parent: Connection, profile: str, faults: tuple[str, ...], directory: Path) -> None:
    with closing(SpiBoards(*make_mock(profile, faults), directory)) as boards:
        parent.send("ready")
        boards.run(lambda: False)


def serve_serial(parent: Connection, profile: str, faults: tuple[str, ...]) -> None:
    robot, script = make_mock(profile, faults)
    port = SerialPort(robot, 0, script)
    parent.send(port.device)
    port.run(lambda: False)


def exchange_for_others(parent: Connection) -> None:
    link: SpiLink | None = None
    while True:
        request, argument = parent.recv()
        answer: object = None
        try:
            if request == "open":
                link = SpiLink(load_robot("bench1").boards[0].spi)
            elif link is not None and request == "exchange":
                answer = link.exchange(argument)
            elif link is not None and request == "realign":
                link.realign(argument)
            elif link is not None and request == "close":
                link.close()
        except OSError as error:
            failure = transport_error("/dev/spidev0.0", error)
            answer = Failure(type(failure).__name__, str(failure))
        parent.send(answer)
