"""Three ways to reach the same mock board: in process, by the real spidev, by the real pyserial."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import Any
from unittest import mock

import link_rig_process

import daq.errors
from daq.boards.board import Board
from daq.links.link import BoardLink
from daq.links.serial import SerialLink
from daq.robot import load_robot
from firmware_protocol.codec import reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.errors import CompilerMissingError
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot

# This machine is now and then away for tens of milliseconds.
REPLY_TIMEOUT_S = 0.5


class Rig:
    """A board under test, and how its time passes."""

    def __init__(
        self,
        kind: str,
        board: Board,
        sleep_ms: Callable[[float], None],
        open_again: Callable[[], BoardLink] | None,
    ) -> None:
        self.kind = kind
        self.board = board
        self.sleep_ms = sleep_ms
        self.open_again = open_again


@contextlib.contextmanager
def open_rig(kind: str, profile: str = "arm", *faults: str) -> Iterator[Rig]:
    opener = {"mock": _mock_rig, "spidev": _spidev_rig, "serial": _serial_rig}[kind]
    with opener(profile, faults) as rig:
        yield rig


@contextlib.contextmanager
def _mock_rig(profile: str, faults: tuple[str, ...]) -> Iterator[Rig]:
    robot = MockRobot(load_robot("bench1"), profile=profile, calibration_s=0.1)
    clock = VirtualClock()
    script = FaultScript([parse_fault(text) for text in faults], seed=1)
    link = mock_links(robot, clock, script)[0]
    board = Board("bench", PROFILES[profile], link, command_timeout_ms=255, now_ns=clock.now_ns)
    yield Rig("mock", board, lambda ms: clock.advance_ns(round(ms * 1e6)), None)


@contextlib.contextmanager
def _serial_rig(profile: str, faults: tuple[str, ...]) -> Iterator[Rig]:
    with _process(link_rig_process.serve_serial, profile, faults) as boards:
        device = boards.recv()

        def open_link() -> SerialLink:
            reply = reply_codec(PROFILES[profile], Framing.RS485)
            return SerialLink(device, baud=1_000_000, reply=reply, reply_timeout_s=timeout_s)

        # With faults, silence is part of the test and must not last; late replies are 30 ms late.
        is_late = any(fault.startswith("delay") for fault in faults)
        timeout_s = 0.02 if is_late else 0.1 if faults else REPLY_TIMEOUT_S
        link = open_link()
        with contextlib.closing(link):
            board = Board("bench", PROFILES[profile], link, command_timeout_ms=255)
            yield Rig("serial", board, _sleep_ms, open_link)


@contextlib.contextmanager
def _spidev_rig(profile: str, faults: tuple[str, ...]) -> Iterator[Rig]:
    with contextlib.ExitStack() as stack:
        serve = link_rig_process.serve_spi
        boards = stack.enter_context(_process(serve, profile, faults, _forks().directory))
        boards.recv()

        def open_link() -> RemoteSpiLink:
            program = stack.enter_context(_process(link_rig_process.exchange_for_others))
            return RemoteSpiLink(program)

        link = open_link()
        stack.callback(link.close)
        board = Board("bench", PROFILES[profile], link, command_timeout_ms=255)
        yield Rig("spidev", board, _sleep_ms, open_link)


class RemoteSpiLink:
    """The SPI link of a process that runs under the preload library."""

    framing = Framing.SPI
    resynchronised = 0
    clock_hz = 8e6
    name = "/dev/spidev0.0"

    def __init__(self, program: Connection) -> None:
        self._program = program
        self._ask("open")

    def exchange(self, frame: bytes) -> bytes:
        return bytes(self._ask("exchange", frame))

    def realign(self, missing: int) -> None:
        self._ask("realign", missing)

    def close(self) -> None:
        self._ask("close")

    def _ask(self, request: str, argument: object = None) -> Any:
        self._program.send((request, argument))
        answer = self._program.recv()
        if isinstance(answer, link_rig_process.Failure):
            device, _, text = answer.text.partition(": ")
            raise getattr(daq.errors, answer.kind)(device, text)
        return answer


class _Forks:
    """Makes processes by forking one that has imported everything, under the preload library."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rig"))
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["daq.links.spi", "hw_mocks.serial_port"])
        environment: dict[str, str] = {}
        with contextlib.suppress(CompilerMissingError):  # a serial port needs none
            environment = shim_environment(self.directory, os.environ)
        with mock.patch.dict(os.environ, environment):
            ensure_running()


_forks = functools.cache(_Forks)


@contextlib.contextmanager
def _process(target: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    context = _forks().context
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        with ours:
            yield ours
    finally:
        process.kill()
        process.join()


def _sleep_ms(ms: float) -> None:
    time.sleep(ms * 1e-3)
