"""Every injected fault is counted once, under its cause, and never lets a wrong value through."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict

import pytest

from daq.board import Board, Counters, Outcome, Reading
from daq.robot import load_robot
from firmware_protocol.profiles import PROFILES, Profile
from hw_mocks.clock import VirtualClock
from hw_mocks.faults import FaultEvent, FaultKind, FaultScript, parse_fault
from hw_mocks.mock_link import MockLink, mock_links
from hw_mocks.mock_robot import MockRobot

VIRTUAL_S = 60
PERIOD_NS = 1_000_000
RATE = 0.01
FAULTS = [f"{kind}:rate={RATE}" for kind in ("flip", "drop", "repeat", "truncate")]


class WatchedLink:
    """Remembers what the board really sent, next to what the host received."""

    def __init__(self, link: MockLink, robot: MockRobot) -> None:
        self.genuine: list[bytes] = []
        self._link = link
        self.name, self.framing, self.resynchronised = link.name, link.framing, 0
        self.realign, self.close, self.exchange = link.realign, link.close, link.exchange
        board = robot.boards[0]
        transfer = board.transfer

        def watched(sent: bytes) -> bytes:
            received = transfer(sent)
            self.genuine = [*self.genuine[-3:], received]
            return received

        board.transfer = watched  # type: ignore[method-assign]


def run(
    profile: Profile, *, apart: int, seed: int, virtual_s: int = VIRTUAL_S
) -> tuple[Counters, list[FaultEvent], list[Reading]]:
    robot = MockRobot(load_robot("bench1"), profile=profile.name, seed=seed, calibration_s=0.1)
    clock = VirtualClock()
    script = FaultScript([parse_fault(text) for text in FAULTS], seed=seed, apart=apart)
    link = WatchedLink(mock_links(robot, clock, script)[0], robot)
    board = Board("bench", profile, link, now_ns=clock.now_ns)
    readings = []
    for cycle in range(virtual_s * 1000):
        clock.advance_ns(PERIOD_NS)
        command = board.command(
            mode=0xC0,
            timeout_ms=20,
            motor_velocity_rad_s=(50.0 if cycle % 4000 < 2000 else -50.0, 0.0),
            kd_a_s_per_rad=(0.01, 0.0),
        )
        reading = board.exchange(command, is_real_time=True)
        readings.append(reading)
        # A value handed on as valid is one that the board sent just now, to the last bit.
        assert reading.values is None or reading.frame in link.genuine[-2:], cycle
    return board.counters, script.events, readings


def expected_causes(events: list[FaultEvent], profile: Profile) -> Counter[str]:
    """The counter that each fault must raise, by what a host can know of it."""
    # A board that may answer one exchange later than usual hides a lost command behind that.
    lost_command = "lost_commands" if profile.behaviour.reply_lag_max == 1 else "late"
    counter_of = {
        FaultKind.DROP: "lost_replies",
        FaultKind.REPEAT: "stale",
        FaultKind.TRUNCATE: "truncated",
    }
    return Counter(
        counter_of.get(event.kind)
        or ("corrupt" if event.detail.startswith("reply") else lost_command)
        for event in events
    )


SEEDS = range(10) if os.environ.get("ARMATURE_ACCEPTANCE") else range(1)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["arm", "uomodri"])
def test_each_fault_is_counted_once_under_its_cause(name: str, seed: int) -> None:
    profile = PROFILES[name]
    counters, events, readings = run(profile, apart=4, seed=seed)
    kinds = Counter(event.kind for event in events)
    # Faults that are kept apart strike a little less often than their rate.
    assert all(kinds[kind] > 0.7 * RATE * len(readings) for kind in list(FaultKind)[:4])
    counted = asdict(counters)
    for cause, count in expected_causes(events, profile).items():
        assert counted[cause] == count, cause
    # Nothing else was counted as a cause of its own.
    assert counted["late"] == counted["stalled"] == counted["mismatched"] == 0
    assert counters.exchanges == len(readings) == VIRTUAL_S * 1000
    # The link recovers: the second exchange after a fault is clean again.
    for event in events:
        if event.exchange + 2 < len(readings):
            assert readings[event.exchange + 2].outcome is Outcome.OK, event
    if profile.behaviour.is_misaligned_by_truncation:
        assert counters.resynchronised == kinds[FaultKind.TRUNCATE]


def test_a_board_that_answers_late_hides_lost_commands_among_late_ones() -> None:
    profile = PROFILES["udriver2"]
    counters, events, readings = run(profile, apart=4, seed=0)
    expected = expected_causes(events, profile)
    counted = asdict(counters)
    for cause in ("corrupt", "lost_replies", "stale", "truncated"):
        assert counted[cause] == expected[cause], cause
    # A lost command that meets a late echo is seen as lost; the late echoes that this firmware has
    # by itself come on top.
    assert counters.lost_commands <= expected["late"] <= counters.late + counters.lost_commands
    assert all(readings[event.exchange + 3].values for event in events[:-3])


@pytest.mark.parametrize("name", list(PROFILES))
def test_faults_in_a_row_are_one_streak_and_never_pass_a_wrong_value(name: str) -> None:
    counters, events, readings = run(PROFILES[name], apart=0, seed=3, virtual_s=20)
    failures = [reading for reading in readings if reading.values is None]
    causes = sum(
        asdict(counters)[name]
        for name in (
            "corrupt",
            "lost_replies",
            "stale",
            "truncated",
            "lost_commands",
            "stalled",
            "mismatched",
        )
    )
    assert len(events) > 0.03 * len(readings)
    # Two faults without a clean exchange between them are one cause and its consequences.
    assert causes <= len(events)
    assert causes + counters.consequent >= len(failures)
    assert readings[-1].values or readings[-2].values or readings[-3].values


def test_a_board_left_out_of_step_unnoticed_is_found_and_brought_back() -> None:
    """A window cut short by somebody else: the host sees only wrong checksums."""
    profile = PROFILES["uomodri"]
    robot = MockRobot(load_robot("bench1"), profile="uomodri", calibration_s=0.1)
    clock = VirtualClock()
    board = Board("bench", profile, mock_links(robot, clock)[0], now_ns=clock.now_ns)

    def cycle() -> Reading:
        clock.advance_ns(PERIOD_NS)
        return board.exchange(board.command())

    for cut in range(1, profile.frame_size):
        assert [cycle().outcome for _ in range(3)][-1] is Outcome.OK
        robot.boards[0].transfer(bytes(cut))
        outcomes = [cycle().outcome for _ in range(6)]
        assert Outcome.CORRUPT in outcomes, cut
        assert outcomes[-1] is Outcome.OK, cut
    assert board.counters.resynchronised == profile.frame_size - 1
    assert board.counters.corrupt == profile.frame_size - 1
