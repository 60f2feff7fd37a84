"""Clocks of boards that overflow are warned of; boards found out of step are mentioned."""

from __future__ import annotations

import numpy as np
import pytest
from loop_rig import Rig

from daq.loop.safety.board_watch import WARNING_S, BoardWatch
from daq.loop.schedule import Chore
from daq.recording.states import State
from daq.stream import messages as m
from firmware_protocol.profiles import PROFILES

OVERFLOWING = [name for name, p in PROFILES.items() if p.behaviour.clock_overflow_s is not None]
OTHERS = [name for name in PROFILES if name not in OVERFLOWING]


DOUBT = "its replies do not tell"


class Watched:
    """A rig whose watch lives in another time, which passes as a test wants it."""

    def __init__(self, profile: str) -> None:
        self.rig = Rig("bench1", profile=profile)
        self.overflow_s = self.rig.profiles[0].behaviour.clock_overflow_s or 1000.0
        self.later_s = 0.0
        cycle = self.rig.cycle
        self.watch = BoardWatch(cycle.units, cycle.events, now_ns=self.now_ns)
        cycle.schedule[Chore.BOARDS] = self.watch.check
        self.rig.loop.handler._boards = self.watch
        self.rig.step(40)

    def now_ns(self) -> int:
        return self.rig.clock.now_ns() + round(self.later_s * 1e9)

    def warnings(self) -> list[str]:
        """All of them, without the one that says how little is known."""
        return [text for text in uptime_texts(self.rig) if DOUBT not in text]


def uptime_texts(rig: Rig) -> list[str]:
    events = rig.events_of("uptime")
    assert all((event.severity, event.source) == ("warning", "bench") for event in events)
    return [event.text for event in events]


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_a_warning_two_minutes_before(profile: str) -> None:
    watched = Watched(profile)
    watched.later_s = watched.overflow_s - WARNING_S - 1.0
    watched.rig.step(40)
    assert watched.warnings() == []
    watched.later_s += 1.0
    watched.rig.step(100)
    (text,) = watched.warnings()
    assert "17.9 min" in text and "error 2" in text


@pytest.mark.parametrize("profile", OVERFLOWING)
@pytest.mark.parametrize("left_s", [60.0, -60.0])
def test_enabling_says_so(profile: str, left_s: float) -> None:
    watched = Watched(profile)
    watched.later_s = watched.overflow_s - left_s
    watched.rig.send(m.Enable())
    assert watched.rig.state is State.CALIBRATING
    (text,) = watched.warnings()
    assert text.startswith("enabling")


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_a_trajectory_that_would_cross_it_says_so(profile: str) -> None:
    watched = Watched(profile)
    rig = watched.rig.enable().hold(50)
    rig.upload(np.tile([rig.axes[0].position_rad, 0.0], (400_000, 1)))
    watched.later_s = watched.overflow_s - 300.0
    rig.send(m.PlayStart())
    (text,) = watched.warnings()
    assert text.startswith("the trajectory")


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_a_reboot_begins_it_anew(profile: str) -> None:
    watched = Watched(profile)
    watched.later_s = watched.overflow_s - 1.0
    board = watched.rig.mock.boards[0]
    watched.rig.clock.advance_ns(100_000_000)
    board.power_off()
    board.power_on()
    watched.rig.step(40)
    before = watched.warnings()
    watched.later_s += WARNING_S
    watched.rig.step(40)
    assert watched.warnings() == before


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_a_board_of_unknown_age_is_mentioned_once_before_current_flows(profile: str) -> None:
    """Its time stamp wraps after 65 s: one that has been on for 17 minutes looks like a new one."""
    rig = Rig("bench1", profile=profile)
    (board,) = rig.mock.boards
    board.power_on(uptime_s=(board.profile.behaviour.clock_overflow_s or 0.0) - 10.0)
    rig.step(4)  # a bench test does not wait any longer
    assert uptime_texts(rig) == []
    rig.send(m.Enable())
    (text,) = uptime_texts(rig)
    assert "17.9 min" in text and DOUBT in text
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE)
    rig.step(20)
    rig.send(m.Enable())
    assert len(uptime_texts(rig)) == 1


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_a_board_that_was_seen_to_boot_has_a_known_age(profile: str) -> None:
    rig = Rig("bench1", profile=profile)
    rig.step(200)
    (board,) = rig.mock.boards
    board.power_off()
    board.power_on()
    rig.step(60)
    rig.send(m.Enable())
    assert uptime_texts(rig) == []


@pytest.mark.parametrize("profile", OTHERS)
def test_other_boards_are_not_warned_of(profile: str) -> None:
    watched = Watched(profile)
    watched.later_s = 1e6
    watched.rig.step(40)
    watched.rig.send(m.Enable())
    assert uptime_texts(watched.rig) == []


@pytest.mark.parametrize("profile", OVERFLOWING)
def test_error_2_may_be_the_overflow(profile: str) -> None:
    assert "17.9 min" in PROFILES[profile].faults[2].remedy


def test_a_board_that_was_out_of_step_is_mentioned() -> None:
    rig = Rig("bench1", profile="uomodri").enable().hold(50)
    rig.links[0]._inner.exchange(bytes(20))
    rig.step(60)
    assert rig.state is State.ACTIVE
    (event,) = rig.events_of("out-of-step")
    assert (event.severity, event.source) == ("warning", "bench")
