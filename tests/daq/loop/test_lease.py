"""Who commands: the lease by itself, and what it means for the commands of a loop."""

from __future__ import annotations

import numpy as np
import pytest
from loop_rig import Mode, Rig, refused_for

from daq.loop.agenda import Agenda
from daq.loop.lease import LAPSES_AFTER_NS, Lease
from daq.motion.errors import MotionError
from daq.recording.states import State
from daq.stream import messages as m
from daq.stream.errors import LeaseError

LAPSE_CYCLES = LAPSES_AFTER_NS // 1_000_000 + 20
S = 1_000_000_000
NEEDING = [
    m.Enable(),
    m.Reset(),
    m.SetMode(mode="hold"),
    m.SetGains(kp_a_per_rad=(0.1,)),
    m.Home(),
    m.PlayBegin(rows=2),
    m.PlayRows(first=0),
    m.PlayStart(),
    m.PlayStop(),
    m.RecordStart(),
    m.RecordStop(),
]
FREE = [
    m.Status(),
    m.RecordMark(text="here"),
    m.Report(report=m.RecorderReport(state="idle")),
    m.Disable(),
    m.Stop(),
]


def take(rig: Rig, token: str = "a", *, takes_over: bool = False) -> None:
    rig.send(m.TakeLease(lease=token, name=f"script {token}", takes_over=takes_over))


def move(rig: Rig, token: str = "a", *, ends_with_lease: bool = True) -> None:
    command = m.SetMode(
        mode="velocity", target=(0.5,), lease=token, ends_with_lease=ends_with_lease
    )
    rig.send(command)


# --- the lease by itself --------------------------------------------------------------------------


def test_one_holder_at_a_time() -> None:
    lease = Lease(utc_offset_ns=(3600 + 120 + 3) * S)
    lease.take("a", "Ann", 0)

    with pytest.raises(LeaseError) as refusal:
        lease.take("b", "Ben", 5 * S)

    assert (refusal.value.code, refusal.value.reason) == ("held", "held")
    assert "held by Ann since 01:02:03 UTC; --take" in refusal.value.message
    held_by = m.LeaseHolder(name="Ann", since_utc_ns=(3600 + 120 + 3) * S, held_s=5.0)
    assert refusal.value.held_by == held_by == lease.holder(5 * S)


def test_to_take_it_again_renews_it() -> None:
    lease = Lease()
    lease.take("a", "Ann", 0)

    assert lease.take("a", "Ann", S) is None
    assert lease.lapse(LAPSES_AFTER_NS) is None
    holder = lease.holder(S)
    assert holder is not None and holder.held_s == 1.0


def test_it_lapses_unless_a_command_renews_it() -> None:
    lease = Lease()
    lease.take("a", "Ann", 0)
    lease.check("a", S)

    assert lease.lapse(S + LAPSES_AFTER_NS - 1) is None
    lapsed = lease.lapse(S + LAPSES_AFTER_NS)
    assert lapsed is not None and lapsed.name == "Ann"
    assert lease.holder(4 * S) is None
    lease.check("", 4 * S)
    with pytest.raises(LeaseError) as refusal:
        lease.check("a", 4 * S)
    assert (refusal.value.code, refusal.value.held_by) == ("lease-lost", None)
    assert "lapsed" in refusal.value.message and "2 s" in refusal.value.message


def test_who_lost_it_is_told_even_after_it_was_given_back() -> None:
    lease = Lease()
    lease.take("a", "Ann", 0)
    former = lease.take("b", "Ben", S, takes_over=True)
    assert former is not None and former.name == "Ann"
    assert lease.release("b")

    with pytest.raises(LeaseError) as refusal:
        lease.check("a", 2 * S)

    assert refusal.value.code == "lease-lost"
    assert "taken over by Ben at 00:00:01" in refusal.value.message


def test_only_its_holder_gives_it_back() -> None:
    lease = Lease()
    lease.take("a", "Ann", 0)

    assert not lease.release("b")
    assert not lease.release("")
    assert lease.release("a")
    assert lease.holder(0) is None


# --- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", NEEDING, ids=lambda command: type(command).__name__)
def test_commands_that_need_it(command: m.AnyCommand) -> None:
    rig = Rig()
    rig.step(3)
    take(rig)

    with refused_for("held", "held", "script a"):
        rig.send(command)
    assert rig.state is State.IDLE


@pytest.mark.parametrize("command", FREE, ids=lambda command: type(command).__name__)
def test_commands_for_everybody(command: m.AnyCommand) -> None:
    rig = Rig().enable().hold()
    take(rig)

    rig.send(command)


def test_every_command_is_one_or_the_other() -> None:
    from typing import get_args

    of_lease = {m.TakeLease, m.RenewLease, m.ReleaseLease}
    known = {type(command) for command in (*NEEDING, *FREE)}
    assert known | of_lease == set(get_args(m.AnyCommand))


def test_its_holder_commands() -> None:
    rig = Rig()
    rig.step(3)
    take(rig)

    rig.send(m.Enable(lease="a"))

    assert rig.state is State.CALIBRATING


def test_without_a_holder_anybody_commands() -> None:
    rig = Rig()
    rig.step(3)
    take(rig)
    rig.send(m.ReleaseLease(lease="a"))

    rig.send(m.Enable())


def test_status_says_who_commands() -> None:
    rig = Rig()
    rig.step(3)
    assert rig.loop.status().held_by is None
    take(rig)
    rig.step(500)

    held_by = rig.loop.status().held_by

    assert held_by is not None
    assert (held_by.name, held_by.held_s) == ("script a", pytest.approx(0.5))


def test_renewals_keep_it() -> None:
    rig = Rig()
    rig.step(3)
    take(rig)
    for _ in range(6):
        rig.step(500)
        rig.send(m.RenewLease(lease="a"))

    assert rig.loop.status().held_by is not None
    assert rig.event_texts("lease") == []


def test_taking_over_is_an_event_and_refuses_the_former_holder() -> None:
    rig = Rig()
    rig.step(3)
    take(rig)
    with refused_for("held", "held", "script a"):
        take(rig, "b")
    take(rig, "b", takes_over=True)

    (text,) = rig.event_texts("lease")
    assert "script b took over from script a" in text
    for command in (m.Enable(lease="a"), m.RenewLease(lease="a")):
        with refused_for("lease-lost", "lease-lost", "script b"):
            rig.send(command)


def test_short_leases_are_no_events() -> None:
    rig = Rig()
    rig.step(3)
    take(rig)
    rig.send(m.ReleaseLease(lease="a"))
    rig.send(m.ReleaseLease(lease="a"))

    assert rig.event_texts("lease") == []


@pytest.mark.parametrize("command", [m.TakeLease(name="x"), m.RenewLease()])
def test_a_lease_needs_a_token(command: m.AnyCommand) -> None:
    with refused_for("malformed", "no-token"):
        Rig().send(command)


# --- motions --------------------------------------------------------------------------------------


def test_a_lapse_stops_nothing() -> None:
    rig = Rig().enable()
    take(rig)
    move(rig, ends_with_lease=False)
    rig.step(LAPSE_CYCLES)

    assert rig.tracks[0].mode is Mode.VELOCITY
    (event,) = rig.events_of("lease")
    assert (event.text, event.severity) == ("the lease of script a has lapsed", "warning")


@pytest.mark.parametrize("end", ["lapse", "release", "take over"])
def test_a_motion_ends_with_the_lease(end: str) -> None:
    rig = Rig().enable()
    take(rig)
    move(rig)
    rig.step(300)
    assert abs(rig.tracks[0].reference[1]) == pytest.approx(0.5)
    if end == "lapse":
        rig.step(LAPSE_CYCLES - 300)
    elif end == "release":
        rig.send(m.ReleaseLease(lease="a"))
    else:
        take(rig, "b", takes_over=True)

    assert rig.tracks[0].mode is Mode.HOLD
    rig.until(lambda: rig.cycle.control.is_at_rest, cycles=3000)
    assert rig.state is State.ACTIVE
    (text,) = rig.event_texts("lease")
    assert "comes to hold" in text


def test_a_later_motion_that_did_not_ask_goes_on() -> None:
    rig = Rig().enable()
    take(rig)
    move(rig)
    move(rig, ends_with_lease=False)
    rig.step(LAPSE_CYCLES)

    assert rig.tracks[0].mode is Mode.VELOCITY


def test_only_the_joints_that_asked_come_to_hold() -> None:
    rig = Rig("laas4").enable().hold()
    take(rig)
    for joint, is_leased in (("joint1", True), ("joint4", False)):
        rig.send(
            m.SetMode(
                mode="velocity",
                joints=(joint,),
                target=(0.1,),
                lease="a",
                ends_with_lease=is_leased,
            )
        )
    rig.send(m.ReleaseLease(lease="a"))

    modes = [track.mode for track in rig.tracks]
    assert modes == [Mode.HOLD, Mode.HOLD, Mode.HOLD, Mode.VELOCITY]


@pytest.mark.parametrize("is_leased", [True, False])
def test_a_trajectory_ends_with_the_lease(is_leased: bool) -> None:
    rig = Rig().enable().home_by_truth().hold()
    rig.upload(np.column_stack([np.full(4000, rig.tracks[0].reference[0]), np.zeros(4000)]))
    take(rig)
    rig.send(m.PlayStart(lease="a", ends_with_lease=is_leased))
    rig.step(100)
    assert rig.cycle.control.is_playing
    rig.step(LAPSE_CYCLES)

    assert rig.cycle.control.is_playing is not is_leased
    assert rig.cycle.control.trajectories == 0


def test_a_joint_that_cannot_be_held_any_more_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig().enable()
    take(rig)
    move(rig)
    rig.step(100)

    def refuse(*_arguments: object) -> None:
        raise MotionError("beyond its range", code="wrap")

    monkeypatch.setattr(rig.cycle.control, "set_mode", refuse)
    rig.send(m.ReleaseLease(lease="a"))

    assert rig.state is State.STOPPING
    assert "beyond its range" in rig.machine.reason


def test_a_motion_cannot_end_with_no_lease() -> None:
    rig = Rig().enable()

    with refused_for("malformed", "no-lease"):
        move(rig, "")
    assert rig.tracks[0].mode is Mode.OFF


# --- what the loop does by itself -----------------------------------------------------------------


def started(rig: Rig) -> Agenda:
    from daq.loop.schedule import Chore

    agenda = Agenda(rig.loop, "the loop itself (--enable)")
    agenda.enable()
    agenda.hold()
    rig.cycle.schedule[Chore.AGENDA] = agenda.step
    return agenda


def test_nobody_interferes_with_an_agenda_and_all_may_command_after_it() -> None:
    rig = Rig()
    agenda = started(rig)
    rig.until(lambda: rig.state is State.CALIBRATING)
    with refused_for("held", "held", "the loop itself (--enable)"):
        rig.mode("off")
    rig.until(lambda: agenda.is_over)
    rig.step(20)

    rig.mode("off")

    assert (agenda.problem, rig.loop.status().held_by) == ("", None)
    assert rig.event_texts("lease") == []


def test_an_agenda_that_somebody_took_over_from_says_so() -> None:
    rig = Rig()
    agenda = started(rig)
    rig.until(lambda: rig.state is State.CALIBRATING)
    take(rig, "b", takes_over=True)
    rig.until(lambda: agenda.is_over)

    assert "script b" in agenda.problem
    assert agenda.unfinished == ""
    rig.step(40)
    holder = rig.loop.status().held_by
    assert holder is not None and holder.name == "script b"
