"""The last word to a board: everything off, no time-out, and confirmed; so it can be used again."""

from __future__ import annotations

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_rig import ES, Rig, corrupt, silent

from daq.boards.probe import diagnose_board
from daq.loop.agenda import Agenda
from daq.loop.runner import FAREWELL_MAX, Ending
from daq.loop.schedule import Chore
from daq.recording.states import State
from daq.stream import messages as m
from daq.system.findings import Finding, Level
from firmware_protocol.codec import command_codec
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import MockRobot

MS, S = 1_000_000, 1_000_000_000
SILENCE_NS = S
every_profile = pytest.mark.parametrize("profile", PROFILES)


def wait(rig: Rig, duration_ns: int) -> None:
    rig.clock.advance_ns(duration_ns)
    rig.mock.advance_to(rig.clock.now_ns())


def assert_left_well(rig: Rig) -> None:
    """No error, however long nobody talks to the boards."""
    wait(rig, SILENCE_NS)
    assert [board.error for board in rig.mock.boards] == [0] * len(rig.boards)


# --- sessions, one after the other ----------------------------------------------------------------


def diagnose(mock: MockRobot, profile: str, clock: VirtualClock) -> list[Finding]:
    findings = []
    for port, link in zip(mock.robot.boards, mock_links(mock, clock), strict=True):
        findings += diagnose_board(
            port.name,
            PROFILES[profile],
            link,
            now_ns=clock.now_ns,
            sleep_until_ns=clock.sleep_until_ns,
        )
    return findings


def run(mock: MockRobot, profile: str, clock: VirtualClock) -> Rig:
    """Enable, hold for a moment, disable: `armature run`, in one process."""
    rig = Rig("bench1", mock=mock, profile=profile, clock=clock)
    agenda = Agenda(rig.loop)
    agenda.enable()
    agenda.hold()
    agenda.disable()
    rig.cycle.schedule[Chore.AGENDA] = agenda.step
    ending = rig.runner(is_over=lambda: agenda.is_over, ends_on_fault=True).run()
    assert (ending, agenda.problem) == (Ending.DONE, ""), rig.machine.reason
    return rig


@every_profile
def test_doctor_doctor_run_run_with_a_second_of_silence_between(profile: str) -> None:
    rig = Rig("bench1", profile=profile)
    clock, mock = rig.clock, rig.mock
    for _ in range(2):
        findings = diagnose(mock, profile, clock)
        assert {finding.level for finding in findings} <= {Level.OK, Level.NOTE}
        assert_left_well(rig)
    for _ in range(2):
        session = run(mock, profile, clock)
        assert session.events_of("farewell") == []
        assert_left_well(rig)
    assert diagnose(mock, profile, clock)[-1].level is Level.OK


@every_profile
def test_an_idle_loop_that_is_held_up(profile: str) -> None:
    rig = Rig("bench1", profile=profile)
    rig.step(20)
    for _ in range(3):
        wait(rig, 50 * MS)
        rig.step(20)
    assert rig.state is State.IDLE
    assert_left_well(rig)


@every_profile
def test_every_frame_without_es_says_time_out_0_and_every_other_one_does_not(profile: str) -> None:
    rig = run_to_a_fault(profile)
    assert {command.timeout_ms for command in rig.commands() if not command.mode & ES} == {0}
    assert {command.timeout_ms for command in rig.commands() if command.mode & ES} == {10}


def run_to_a_fault(profile: str) -> Rig:
    rig = Rig("bench1", profile=profile).enable().hold(20)
    rig.machine.trip("for a test", code="test")
    rig.runner(ends_on_fault=True).run()
    rig.send(m.Reset())
    rig.step(20)
    return rig


# --- when the good-bye is hit ---------------------------------------------------------------------

# Fewer than a board's time-out has milliseconds: after more its own watchdog strikes, rightly.
HITS = st.lists(st.sampled_from(["", "flip", "drop", "truncate"]), max_size=8)


class HitLink:
    """A link on which the commands from some moment on are hit, one after the other."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._exchange = rig.links[0]._inner.exchange
        self.hits: list[str] = []
        rig.links[0]._inner.exchange = self.exchange  # type: ignore[method-assign]
        self.is_off = command_codec(rig.profiles[0])

    def exchange(self, frame: bytes) -> bytes:
        is_farewell = self.is_off.is_sound(frame) and not self.is_off.decode(frame).mode & ES
        hit = self.hits.pop(0) if self.hits and is_farewell else ""
        if hit == "drop":
            return bytes(len(frame))
        if hit == "flip":
            return self._exchange(corrupt(frame))
        if hit == "truncate":
            return self._exchange(frame[: len(frame) // 4 * 2])
        return self._exchange(frame)


@pytest.mark.acceptance
@every_profile
@settings(max_examples=examples(60))
@given(hits=HITS, is_broken=st.booleans())
def test_the_good_bye_is_repeated_until_it_is_confirmed(
    profile: str, hits: list[str], is_broken: bool
) -> None:
    rig = Rig("bench1", profile=profile).enable()
    rig.mode("velocity", 2.0)
    rig.step(50)
    HitLink(rig).hits = hits
    if is_broken:

        def fail() -> None:
            raise ArithmeticError("by a test")

        rig.cycle.schedule[Chore.AGENDA] = fail
        with pytest.raises(ArithmeticError):
            rig.runner().run()
    else:
        rig.runner(duration_ns=20 * MS).run()
    assert_left_well(rig)
    assert rig.events_of("farewell") == []


@pytest.mark.parametrize("tamper", [silent, corrupt], ids=["silent", "corrupt"])
def test_a_good_bye_that_is_never_confirmed_is_said(tamper: object) -> None:
    rig = Rig("laas4")
    rig.step(5)
    rig.links[1].tamper = tamper  # type: ignore[assignment]
    before = rig.now
    rig.runner(duration_ns=MS).run()
    assert rig.now - before == 1 + FAREWELL_MAX
    (event,) = rig.events_of("farewell")
    assert (event.severity, event.source) == ("error", "elbow")


def test_a_stop_that_breaks_switches_the_boards_off_all_the_same() -> None:
    rig = Rig("bench1", profile="uomodri").enable().hold(50)

    def fail() -> None:
        raise ArithmeticError("by a test")

    rig.machine.step = fail  # type: ignore[method-assign]
    rig.cycle.schedule[Chore.COMMANDS] = lambda: rig.send(m.Stop())
    with pytest.raises(ArithmeticError):
        rig.runner().run()
    assert not rig.commands()[-1].mode & ES
    assert_left_well(rig)


@every_profile
def test_four_in_a_hundred_exchanges_lost_are_no_silence(profile: str) -> None:
    """At the start of a session, and to doctor."""
    fault = parse_fault("drop:rate=0.04")
    for seed in range(8):
        rig = Rig("bench1", profile=profile)
        script = FaultScript([fault], seed=seed)
        (link,) = mock_links(rig.mock, rig.clock, script)
        rig.links[0]._inner = link
        agenda = Agenda(rig.loop)
        agenda.enable()
        rig.cycle.schedule[Chore.AGENDA] = agenda.step
        rig.until(lambda rig=rig: rig.state is State.CALIBRATING, cycles=100)  # type: ignore[misc]
        assert agenda.problem == ""

        clock = VirtualClock()
        mock = MockRobot(rig.robot, profile=profile)
        (link,) = mock_links(mock, clock, FaultScript([fault], seed=seed))
        findings = list(
            diagnose_board(
                "bench",
                PROFILES[profile],
                link,
                now_ns=clock.now_ns,
                sleep_until_ns=clock.sleep_until_ns,
            )
        )
        assert {finding.level for finding in findings} <= {Level.OK, Level.NOTE, Level.WARNING}
