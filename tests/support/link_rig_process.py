"""Processes of the link tests: mock boards behind a device, and a program that has it open.

    python rig_process.py boards  spi|serial PROFILE DIRECTORY FAULT…   serves mock boards
    python rig_process.py program spi                                   exchanges what it is told

The second runs under the preload library, where the real spidev extension finds the device; it
reads requests from its stdin and answers on stdout, one JSON object per line.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

from daq.errors import TransportError
from daq.links.failures import transport_error
from daq.links.spi import SpiLink
from daq.robot import load_robot
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_port import SerialPort
from hw_mocks.spi_boards import SpiBoards


def serve_boards(kind: str, profile: str, directory: str, *faults: str) -> None:
    robot = MockRobot(load_robot("bench1"), profile=profile, calibration_s=0.1)
    script = FaultScript([parse_fault(text) for text in faults], seed=1)
    if kind == "spi":
        with closing(SpiBoards(robot, script, Path(directory))) as boards:
            print("ready", flush=True)
            boards.run(lambda: False)
    else:
        port = SerialPort(robot, 0, script)
        print(port.device, flush=True)
        port.run(lambda: False)


def exchange_for_others() -> None:
    link: SpiLink | None = None
    for line in sys.stdin:
        request, argument = json.loads(line)
        answer: object = None
        try:
            if request == "open":
                link = SpiLink(load_robot("bench1").boards[0].spi)
            elif link is not None and request == "exchange":
                answer = link.exchange(bytes.fromhex(argument)).hex()
            elif link is not None and request == "realign":
                link.realign(argument)
            elif link is not None and request == "close":
                link.close()
        except TransportError as error:
            answer = {"type": type(error).__name__, "text": str(error)}
        except OSError as error:
            failure = transport_error("/dev/spidev0.0", error)
            answer = {"type": type(failure).__name__, "text": str(failure)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "boards":
        serve_boards(*sys.argv[2:])
    else:
        exchange_for_others()
