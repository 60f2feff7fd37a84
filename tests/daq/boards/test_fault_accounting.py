"""Every injected fault is counted once, under its cause, and never lets a wrong value through."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import pytest
from acceptance import IS_LONG

from daq.boards.board import Board, Counters, Outcome, Reading
from daq.robot import load_robot
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultEvent, FaultKind, FaultScript, parse_fault
from hw_mocks.mock_link import MockLink, mock_links
from hw_mocks.mock_robot import MockRobot

pytestmark = pytest.mark.chain

VIRTUAL_S = 60 if IS_LONG else 10
PERIOD_NS = 1_000_000
RATE = 0.01
FAULTS = [f"{kind}:rate={RATE}" for kind in ("flip", "drop", "repeat", "truncate")]


class WatchedLink:
    """Remembers what the board really sent, next to what the host received."""

    def __init__(self, link: MockLink, robot: MockRobot) -> None:
        self.genuine: list[bytes] = []
        self._link = link
        self.name, self.framing, self.resynchronised = link.name, link.framing, 0
        self.clock_hz = link.clock_hz
        self.realign, self.close, self.exchange = link.realign, link.close, link.exchange
        board = robot.boards[0]
        shift = board.shift

        def watched(sent: bytes, prepared: bytes | None = None) -> bytes:
            received = shift(sent, prepared)
            self.genuine = [*self.genuine[-3:], received]
            return received

        board.shift = watched  # type: ignore[method-assign]


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


def expected_counts(events: list[FaultEvent], profile: Profile) -> Counter[str]:
    """What a host can know of each fault, worked out from the faults alone."""
    struck = {event.exchange: event for event in events}
    # A board that may answer one exchange later than usual hides a lost command behind that.
    lost_command = "lost_commands" if profile.behaviour.reply_lag_max == 1 else "late"
    counts: Counter[str] = Counter()
    for event in events:
        before, after = struck.get(event.exchange - 1), struck.get(event.exchange + 1)
        is_reply_damaged = event.kind is FaultKind.FLIP and event.detail.startswith("reply")
        if event.kind is FaultKind.DROP:
            counts["lost_replies"] += 1
        elif event.kind is FaultKind.TRUNCATE:
            counts["truncated"] += 1
        elif event.kind is FaultKind.REPEAT:
            # The reply before it, if it was damaged, is only now seen whole: old, but not known.
            counts["late" if before and _damages_reply(before) else "stale"] += 1
        elif is_reply_damaged:
            counts["corrupt"] += 1
        elif after is None or (after.kind is FaultKind.FLIP and not _damages_reply(after)):
            counts[lost_command] += 1
        else:
            # Only the next reply could have told that this command was not taken.
            counts["never seen"] += 1
    return counts


def _damages_reply(event: FaultEvent) -> bool:
    return event.kind is FaultKind.FLIP and event.detail.startswith("reply")


SEEDS = range(10) if IS_LONG else range(1)


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
    for cause, count in expected_counts(events, profile).items():
        assert counted[cause] == count, cause
    # Nothing else was counted as a cause of its own.
    assert counted["late"] == counted["stalled"] == counted["mismatched"] == 0
    assert counters.exchanges == len(readings) == VIRTUAL_S * 1000
    # The link recovers: the second exchange after a fault is clean again.
    for event in events:
        if event.exchange + 2 < len(readings):
            assert readings[event.exchange + 2].outcome is Outcome.OK, event
    if profile.behaviour.is_receiver_shifted:
        assert counters.resynchronised == kinds[FaultKind.TRUNCATE]


def test_a_board_that_answers_late_hides_lost_commands_among_late_ones() -> None:
    profile = PROFILES["udriver2"]
    counters, events, readings = run(profile, apart=4, seed=0)
    expected = expected_counts(events, profile)
    counted = asdict(counters)
    for cause in ("corrupt", "lost_replies", "truncated"):
        assert counted[cause] == expected[cause], cause
    # A torn reply with a late echo may be the one before, to the last bit.
    assert expected["stale"] <= counters.stale <= expected["stale"] + 1e-4 * len(readings)
    # A lost command that meets a late echo is seen as lost; the late echoes that this firmware has
    # by itself come on top.
    assert counters.lost_commands <= expected["late"] <= counters.late + counters.lost_commands
    assert all(readings[event.exchange + 3].values for event in events[:-3])


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["arm", "uomodri"])
def test_faults_that_strike_as_they_please_are_counted_too(name: str, seed: int) -> None:
    """Independent faults: some follow each other directly, and a few hide one another."""
    profile = PROFILES[name]
    counters, events, readings = run(profile, apart=0, seed=seed)
    expected = expected_counts(events, profile)
    counted = asdict(counters)
    assert len(events) == pytest.approx(0.04 * len(readings), rel=0.1)
    assert expected["never seen"] < 0.01 * len(events)
    for cause in ("corrupt", "lost_replies", "stale", "truncated"):
        assert counted[cause] == expected[cause], cause
    # A lost command next to a repeated or lost reply may be seen as late, or not at all.
    lost = expected["lost_commands"]
    assert 0.95 * lost <= counters.lost_commands <= lost
    assert counters.late <= expected["late"] + 0.02 * len(events)
    assert counters.stalled == counters.mismatched == counters.restarted == 0
    assert readings[-1].values or readings[-2].values or readings[-3].values
