"""A current limit below half a step must not reach a board as 0, its own maximum."""

from __future__ import annotations

import pytest

from daq.boards.board import Board
from daq.robot import load_robot
from firmware_protocol.codec import command_codec
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot


@pytest.mark.parametrize("profile", PROFILES)
def test_refused_or_rounded_up_and_counted(profile: str) -> None:
    robot, clock = MockRobot(load_robot("bench1"), profile=profile), VirtualClock()
    (link,) = mock_links(robot, clock)
    board = Board("bench", PROFILES[profile], link, now_ns=clock.now_ns)
    command = board.command(timeout_ms=0, isat_a=(0.0624, 5.0))

    with pytest.raises(FieldRangeError) as caught:
        board.exchange(command)
    assert (caught.value.field, caught.value.value) == ("isat_a", 0.0624)
    assert board.counters.exchanges == 0

    board.exchange(command, is_real_time=True)
    assert command_codec(PROFILES[profile]).decode(board.sent).isat_a == (0.125, 5.0)
    assert board.counters.saturated == 1
