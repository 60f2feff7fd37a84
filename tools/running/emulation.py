"""Mock boards behind emulated SPI devices, for a program that this process has started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_robot import MockRobot
from hw_mocks.realtime import take_precedence
from hw_mocks.spi_boards import SpiBoards
from tools.running.mock_options import mark_of


class EmulatedBoards(NamedTuple):
    """Boards that are there, emulated or real.

    Attributes:
        environment: In which a program sees them.
        serve: Simulates the boards until a function says that it is over.
    """

    environment: Mapping[str, str]
    serve: Callable[[Callable[[], bool]], None]


@contextmanager
def emulated_boards(mock: MockRobot, script: FaultScript) -> Iterator[EmulatedBoards]:
    """Put a mock robot's boards behind its SPI devices."""
    # A short path: the name of a socket has at most 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="armature-") as directory,
        closing(SpiBoards(mock, script, Path(directory), mark=mark_of(mock.truth))) as boards,
    ):

        def serve(is_over: Callable[[], bool]) -> None:
            take_precedence()
            boards.run(is_over)

        environment = shim_environment(Path(directory), os.environ)
        yield EmulatedBoards(environment, serve)
