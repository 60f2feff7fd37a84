"""Opens a robot's boards on any link: the one place where mock and host meet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from daq.boards.board import Board
from daq.boards.wire_limits import board_profile
from daq.errors import ConfigError
from daq.links.address import LinkAddress, LinkKind
from daq.links.link import BoardLink
from daq.links.serial import SerialLink
from daq.links.spi import SpiLink
from daq.links.trace import TracingLink
from daq.loop.setup import PERIOD_NS, make_session
from daq.robot import BoardPort, DrivenRobot
from daq.robot.load import robot_text
from daq.samples.batches import Session
from firmware_protocol.codec import reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profile import Profile
from hw_mocks.clock import VirtualClock
from hw_mocks.emulated_spi.introduction import ask_who
from hw_mocks.emulated_spi.shim import announces_emulation
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot
from hw_mocks.serial_presence import is_emulated, is_pseudo_terminal
from tools.running.mock_options import mark_of
from tools.running.options import RunOptions
from tools.shared.cli import say
from tools.version import __version__, commit


@dataclass(frozen=True, slots=True)
class OpenBoards:
    """Boards that are open, and their clock.

    Attributes:
        boards: In the robot file's order.
        sleep_until_ns: Waits; costs nothing on a mock.
        utc_ns: Unix time; on a mock it begins at 0.
        mark: What the mock behind every one of them says of itself; None on real boards. That a
            device is emulated is asked of the opened device: only then may its motors be enabled
            without leave.
    """

    boards: Sequence[Board]
    now_ns: Callable[[], int]
    sleep_until_ns: Callable[[int], None]
    utc_ns: Callable[[], int]
    mark: str | None = None


def make_run_session(
    options: RunOptions, opened: OpenBoards, *, link: str, is_virtual: bool
) -> Session:
    """Return what readers must know of a run that begins now."""
    return make_session(
        robot_text(options.robot),
        options.robot,
        opened.boards,
        link=link,
        version=__version__,
        commit=commit(),
        start_t_ns=opened.now_ns(),
        start_utc_ns=opened.utc_ns(),
        is_virtual=is_virtual,
    )


@contextmanager
def open_boards(
    robot: DrivenRobot,
    address: LinkAddress,
    *,
    profile: str | None = None,
    mock: MockRobot | None = None,
    script: FaultScript | None = None,
) -> Iterator[OpenBoards]:
    """Open every board of a robot, and close them again.

    On a mock link `mock` answers, by default a plain one, and `script` says what goes wrong on its
    wires. `profile` is a wire format in place of the robot file's.

    Raises:
        ConfigError: The robot does not fit the link.
        TransportError: A device cannot be opened.
        NotEmulatedError: The environment announces emulated devices, and one is not.
    """
    if address.kind is LinkKind.MOCK:
        clock = _virtual_clock(script)
        mock = mock or MockRobot(robot, profile=profile)
        links = iter(mock_links(mock, clock, script))
        yield OpenBoards(
            [_board(port, next(links), address, profile, clock.now_ns) for port in robot.boards],
            clock.now_ns,
            clock.sleep_until_ns,
            clock.now_ns,
            mark_of(mock.truth),
        )
        return
    with ExitStack() as stack:
        boards, mark = [], None
        for port in robot.boards:
            link = open_link(robot, port, address, board_profile(port, profile))
            stack.callback(link.close)
            if isinstance(link, SerialLink):
                mark = "" if is_emulated(link.fileno()) else None
            elif isinstance(link, SpiLink) and announces_emulation(os.environ):
                mark = ask_who(link.fileno(), link.name).mark
            boards.append(_board(port, link, address, profile, time.monotonic_ns))
        yield OpenBoards(boards, time.monotonic_ns, _sleep_until_ns, time.time_ns, mark)


def may_be_emulated(address: LinkAddress) -> bool:
    """Return whether the devices may be a mock's: a guess, not a proof."""
    if address.kind is LinkKind.SPI:
        return announces_emulation(os.environ)
    return address.kind is LinkKind.MOCK or is_pseudo_terminal(address.device)


def open_link(
    robot: DrivenRobot, port: BoardPort, address: LinkAddress, profile: Profile
) -> BoardLink:
    """Open the link to one board, on real devices.

    Raises:
        ConfigError: The robot does not fit the link.
        TransportError: The device cannot be opened.
    """
    if address.kind is LinkKind.SPI:
        return SpiLink(port.spi)
    if len(robot.boards) > 1:
        raise ConfigError(
            f"--link serial://{address.device}",
            [f"robot {robot.name} has {len(robot.boards)} boards; a serial port carries one"],
        )
    return SerialLink(
        address.device,
        baud=address.baud or port.rs485_baud,
        reply=reply_codec(profile, Framing.RS485),
    )


def _board(
    port: BoardPort,
    link: BoardLink,
    address: LinkAddress,
    profile: str | None,
    now_ns: Callable[[], int],
) -> Board:
    chosen = board_profile(port, profile)
    traced = TracingLink(link, chosen, say) if address.is_traced else link
    timeout_ms = port.command_timeout_ms
    return Board(port.name, chosen, traced, command_timeout_ms=timeout_ms, now_ns=now_ns)


def _virtual_clock(script: FaultScript | None) -> VirtualClock:
    if script is None or not script.has_skips:
        return VirtualClock()
    return VirtualClock(lambda now_ns: script.oversleep_ns(now_ns, PERIOD_NS))


def _sleep_until_ns(deadline_ns: int) -> None:
    time.sleep(max(0, deadline_ns - time.monotonic_ns()) * 1e-9)
