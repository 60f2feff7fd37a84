"""`armature bench communication`: how well the boards are reached, without any motor.

Everything that is sent has ES = 0 and time-out 0, so that no leave (`--arm`) is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Self

from daq.bench.communication.run import CommunicationRun
from daq.boards.board import Board
from daq.boards.probe import find_obstacle
from daq.errors import ConfigError
from daq.links.address import LinkKind, parse_link
from daq.loop.runner import Clock
from daq.loop.setup import PERIOD_NS
from daq.robot import DrivenRobot
from daq.robot.load import load_robot
from daq.system.findings import Finding
from daq.system.realtime import MonotonicClock, acquire_privileges, release_privileges
from daq.system.signals import SAFE_STOPS, handled
from firmware_protocol.profiles import PROFILES
from hw_mocks.faults.script import FaultKind
from tools.bench.communication_report import CommunicationReport, measured, unmeasured
from tools.running.boards import OpenBoards, open_boards
from tools.running.mock_options import add_board_options, add_mock_robot_options, make_mock
from tools.running.options import MockOptions, check_duration
from tools.shared.cli import (
    Verbs,
    add_json_option,
    add_link_option,
    add_robot_option,
    add_verb,
    print_json,
)
from tools.shared.progress import progress_bar, progress_of_time

_EXAMPLE = """\
  armature bench communication --robot laas4 --link mock --duration 2
  armature bench communication --robot laas4 --link mock --fast --fault flip:rate=0.0005"""
_WORDS = """\

Frames with ES = 0 and time-out 0 go to every board at 1 kHz: no motor is powered.

success   exchanges with a sound reply which confirms our commands in time
late      a sound reply, but the command that it confirms is older than the
          profile allows
lost      commands that a board has not taken although it answers, and replies
          that cannot be used: corrupt, truncated, silent, mismatched (of
          another protocol), stale (not newer than the one before), stalled
          (the board's clock stands still), failed (an error of the device)
overlong  exchanges that took longer than a period
skipped   periods without any exchange, because the computer was away
age       when an exchange has ended, how long ago the newest values at hand
          were latched on the board, at most: since the transfer began that
          brought them, plus the profile's reply age, plus a period for each
          command by which the echo is later than usual
transfer  how long one exchange with the board takes

verdict   good
          marginal  something is lost or late; the 99.9 % quantile of transfers
                    is more than half a period, shared among all boards;
                    periods are skipped
          bad       more than 0.1 % lost or late; transfers do not fit into a
                    period; more periods skipped, or more exchanges in a row
                    without use, than the robot file's [safety] allows; a board
                    has rebooted. Times are marginal at most on a mock or a
                    serial port
          fault     a board does not answer, or reports a fault

exit code 0 good or marginal, 1 bad, 3 fault, 130 interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationOptions:
    """What is measured, and where."""

    robot: str
    link: str
    profile: str | None
    duration_s: float
    is_fast: bool
    is_json: bool

    @classmethod
    def from_namespace(cls, arguments: argparse.Namespace) -> Self:
        """Return the options of `add_to`."""
        return cls(
            robot=arguments.robot,
            link=arguments.link,
            profile=arguments.profile,
            duration_s=arguments.duration,
            is_fast=arguments.fast,
            is_json=arguments.json,
        )

    @property
    def is_on_mock(self) -> bool:
        """Whether a mock robot was asked for."""
        return parse_link(self.link).kind is LinkKind.MOCK

    @property
    def periods(self) -> int:
        """How many there are in the duration, at least one."""
        return max(1, round(self.duration_s * 1e9 / PERIOD_NS))

    def on_emulated_devices(self) -> Self:
        """Return the same on a mock's emulated SPI devices."""
        return replace(self, link=self.link.replace(LinkKind.MOCK.value, LinkKind.SPI.value))

    def to_argv(self) -> list[str]:
        """Return the words of `armature bench communication` with these options."""
        words = ["bench", "communication", f"--robot={self.robot}", f"--link={self.link}"]
        words += [f"--duration={self.duration_s}", *["--json"] * self.is_json]
        return words if self.profile is None else [*words, f"--profile={self.profile}"]


def add_to(actions: Verbs) -> None:
    """Add the action to the command line."""
    parser = add_verb(
        actions,
        "communication",
        handler=_communication,
        summary="measure how well the boards are reached, without any motor",
        example=_EXAMPLE,
    )
    parser.description = f"{parser.description}\n{_WORDS}"
    add_robot_option(parser)
    add_link_option(parser)
    parser.add_argument(
        "--duration", type=float, default=10.0, metavar="S", help="seconds (default 10)"
    )
    parser.add_argument(
        "--fast", action="store_true", help="in virtual time, as fast as possible (mock only)"
    )
    add_board_options(parser)
    add_mock_robot_options(parser)
    add_json_option(parser)


def _communication(arguments: argparse.Namespace) -> int:
    options = CommunicationOptions.from_namespace(arguments)
    mock = MockOptions.from_namespace(arguments)
    _check(options, mock)
    if options.is_fast:
        report = _measure_in_virtual_time(options, mock)
    elif options.is_on_mock:
        from tools.running.on_mock import run_on_mock

        return run_on_mock(mock, options.on_emulated_devices().to_argv())
    else:
        report = _measure_in_real_time(options)
    if options.is_json:
        print_json(report.as_dict())
    else:
        from tools.bench.communication_table import show

        show(report)
    return report.exit_code


def _check(options: CommunicationOptions, mock: MockOptions) -> None:
    """Find contradictions before anything is opened.

    Raises:
        ConfigError: Options contradict each other.
    """
    check_duration(options.duration_s)
    problems = []
    if options.is_fast and not options.is_on_mock:
        problems.append(f"--fast: time is real on --link {options.link}; use --link mock")
    if mock.faults and not options.is_on_mock:
        problems.append("--fault: only on --link mock")
    if problems:
        raise ConfigError("armature bench communication", problems)


def _measure_in_virtual_time(
    options: CommunicationOptions, mock: MockOptions
) -> CommunicationReport:
    robot, script = make_mock(mock, impossible=[FaultKind.UNPLUG])
    address = parse_link(options.link)
    with (
        open_boards(
            robot.robot, address, profile=options.profile, mock=robot, script=script
        ) as opened,
        progress_bar("exchanging") as advance,
    ):
        measurement = _Measurement(robot.robot, options, opened, is_virtual=True)
        return measurement.run(each_period=lambda done: advance(done, options.periods))


def _measure_in_real_time(options: CommunicationOptions) -> CommunicationReport:
    robot = load_robot(options.robot, profiles=PROFILES).driven()
    address = parse_link(options.link)
    with open_boards(robot, address, profile=options.profile) as opened:
        return _Measurement(robot, options, opened, is_virtual=False).run()


class _Measurement:
    """One measurement on open boards, from the first look to the last command."""

    def __init__(
        self,
        robot: DrivenRobot,
        options: CommunicationOptions,
        opened: OpenBoards,
        *,
        is_virtual: bool,
    ) -> None:
        self._robot = robot
        self._options = options
        self._opened = opened
        self._is_virtual = is_virtual
        self._signals: list[int] = []

    def run(self, each_period: Callable[[int], None] = lambda _done: None) -> CommunicationReport:
        """Measure, where nothing is in the way."""
        # Signals are only noted: boards are left between two exchanges, never within one.
        with handled(SAFE_STOPS, lambda number, _: self._signals.append(number)):
            boards = self._opened.boards
            obstacles = [self._obstacle(board) for board in boards if not self._signals]
            if not self._signals and not any(obstacles):
                return self._exchange(each_period)
        # Whoever interrupts the first look does not want to know what it found.
        found = [] if self._signals else obstacles
        return unmeasured(self._robot, self._link, boards, found, is_virtual=self._is_virtual)

    def _obstacle(self, board: Board) -> Finding | None:
        return find_obstacle(
            board.name,
            board.profile,
            board.link,
            now_ns=self._opened.now_ns,
            sleep_until_ns=self._opened.sleep_until_ns,
        )

    def _exchange(self, each_period: Callable[[int], None]) -> CommunicationReport:
        opened, timing = self._opened, self._robot.timing
        privileges: tuple[str, ...] = ()
        clock: Clock = opened
        if not self._is_virtual:
            clock = MonotonicClock(spin_ns=round(timing.spin_us * 1e3))
        run = CommunicationRun(opened.boards, clock, period_ns=PERIOD_NS)
        with ExitStack() as stack:
            if not self._is_virtual:
                stack.enter_context(progress_of_time("exchanging", self._options.duration_s))
                privileges = acquire_privileges(timing)
                stack.callback(release_privileges)
            run.run(
                self._options.periods,
                is_over=lambda: bool(self._signals),
                each_period=each_period,
            )
        return measured(
            self._robot,
            self._link,
            run,
            privileges=privileges,
            is_virtual=self._is_virtual,
            is_mock=opened.mark is not None,
            is_interrupted=bool(self._signals),
        )

    @property
    def _link(self) -> str:
        """The link as recordings state it."""
        if self._opened.mark is None:
            return self._options.link
        prefix = "" if self._is_virtual else "mock+"
        return f"{prefix}{self._options.link}{self._opened.mark}"
