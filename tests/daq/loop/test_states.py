"""Every command in every situation: it does its work, or is refused and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_rig import (
    ES,
    Rig,
    assert_off_at_once,
    assert_safe_stop,
    corrupt,
    refused_for,
    silent,
)

from daq.recording.states import Mode, State
from daq.samples.columns import ColumnDecoder
from daq.stream import messages as m
from daq.stream.errors import RefusedError

# --- situations -----------------------------------------------------------------------------------


def idle() -> Rig:
    rig = Rig()
    rig.step(3)
    return rig


def calibrating() -> Rig:
    rig = idle()
    rig.send(m.Enable())
    rig.step(10)
    return rig


def ready() -> Rig:
    return Rig().enable()


def active() -> Rig:
    return ready().hold(50)


def playing() -> Rig:
    rig = upload(ready().hold(100))
    rig.send(m.PlayStart())
    rig.step(100)
    assert rig.cycle.control.is_playing
    return rig


def homing() -> Rig:
    rig = Rig("laas4").enable().hold(100)
    rig.send(m.Home())
    rig.step(50)
    return rig


def disabling() -> Rig:
    rig = ready()
    rig.mode("velocity", 2.0)
    rig.step(300)
    rig.send(m.Disable())
    rig.step(20)
    return rig


def stopping() -> Rig:
    rig = active()
    rig.send(m.Stop())
    rig.step(10)
    return rig


def fault() -> Rig:
    rig = active()
    rig.machine.trip("for a test", code="test")
    rig.end_stop()
    return rig


SITUATIONS: dict[str, tuple[Callable[[], Rig], State]] = {
    "idle": (idle, State.IDLE),
    "calibrating": (calibrating, State.CALIBRATING),
    "ready": (ready, State.READY),
    "active": (active, State.ACTIVE),
    "playing": (playing, State.ACTIVE),
    "homing": (homing, State.ACTIVE),
    "disabling": (disabling, State.ACTIVE),
    "stopping": (stopping, State.STOPPING),
    "fault": (fault, State.FAULT),
}

# --- commands: in which situations they are carried out, and the state right after ----------------

SAME = {name: state for name, (_, state) in SITUATIONS.items()}
UNLESS_STOPPING = {k: v for k, v in SAME.items() if k != "stopping"}
CONTROLLED = dict.fromkeys(("ready", "active"), State.ACTIVE)
COMMANDS: dict[str, tuple[m.AnyCommand, dict[str, State]]] = {
    "status": (m.Status(), SAME),
    "enable": (m.Enable(), {"idle": State.CALIBRATING}),
    "disable": (
        m.Disable(),
        SAME
        | {
            "calibrating": State.IDLE,  # there is nothing to brake with
            "ready": State.STOPPING,
            **dict.fromkeys(("active", "playing", "homing", "disabling"), State.ACTIVE),
        },
    ),
    "stop": (
        m.Stop(),
        {
            name: state if state in (State.IDLE, State.FAULT) else State.STOPPING
            for name, state in SAME.items()
        }
        | {"calibrating": State.IDLE},
    ),
    "reset": (m.Reset(), {"fault": State.IDLE}),
    "mode off": (
        m.SetMode(mode="off"),
        dict.fromkeys(("ready", "active", "playing", "homing"), State.READY),
    ),
    "mode hold": (
        m.SetMode(mode="hold"),
        dict.fromkeys(("ready", "active", "playing", "homing"), State.ACTIVE),
    ),
    "mode position": (m.SetMode(mode="position", target=(0.5,)), CONTROLLED),
    "mode velocity": (m.SetMode(mode="velocity", target=(0.5,)), CONTROLLED),
    "mode current": (m.SetMode(mode="current", target=(0.1,)), CONTROLLED),
    "mode torque": (m.SetMode(mode="torque", target=(0.1,)), CONTROLLED),
    "gains": (m.SetGains(kp_a_per_rad=(1.0,)), UNLESS_STOPPING),
    "home": (m.Home(), CONTROLLED),
    "play-begin": (
        m.PlayBegin(rows=2),
        {k: v for k, v in UNLESS_STOPPING.items() if k != "playing"},
    ),
    "play-rows": (m.PlayRows(first=0), {}),
    "play-start": (m.PlayStart(), {}),
    "play-stop": (m.PlayStop(), dict.fromkeys(("playing", "homing"), State.ACTIVE)),
    "record-start": (m.RecordStart(name="take"), SAME),
    "record-stop": (m.RecordStop(), {}),
    "record-mark": (m.RecordMark(text="here"), SAME),
    "report": (m.Report(report=m.RecorderReport(state="idle")), SAME),
}


def fitted(command: m.AnyCommand, rig: Rig) -> m.AnyCommand:
    """One value for each joint of this robot."""
    joints = len(rig.robot.joints)
    if isinstance(command, m.SetMode) and command.target:
        return m.SetMode(mode=command.mode, target=command.target * joints)
    if isinstance(command, m.SetGains):
        return m.SetGains(kp_a_per_rad=command.kp_a_per_rad * joints)
    return command


def upload(rig: Rig, seconds: float = 1.0, amplitude_rad: float = 0.3) -> Rig:
    t = np.arange(0.0, seconds, 1e-3)[:, None]
    w = math.tau / seconds
    start = np.array([[axis.position_rad for axis in rig.axes]])
    q = start + amplitude_rad * (1.0 - np.cos(w * t))
    dq = amplitude_rad * w * np.sin(w * t) * np.ones_like(start)
    return rig.upload(np.hstack([q, dq]))


HARMLESS = ("status", "gains", "play-begin", "record-mark", "report", "record-start")
"""What changes neither the state nor what is refused, so that all can be sent to one loop."""


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_refused_changes_nothing(situation: str) -> None:
    make, state = SITUATIONS[situation]
    rig, twin = make(), make()
    assert rig.state is state
    before = everything(rig)
    for name, (template, carried_out) in COMMANDS.items():
        if situation not in carried_out:
            with pytest.raises(RefusedError) as refusal:
                rig.send(fitted(template, rig))
            assert refusal.value.code in ("not-now", "malformed"), name
            assert everything(rig) == before, name
    for each in (rig, twin):
        each.step(30)
    assert [link.sent for link in rig.links] == [link.sent for link in twin.links]
    assert everything(rig) == everything(twin)
    for name in HARMLESS:
        template, carried_out = COMMANDS[name]
        if situation in carried_out:
            rig, now = twin, twin.state
            rig.send(fitted(template, rig))
            assert rig.state is now, name
            rig.step()


CARRIED_OUT = [
    (situation, name)
    for name, (_, carried_out) in COMMANDS.items()
    for situation in carried_out
    if name not in HARMLESS
]


@pytest.mark.parametrize(("situation", "name"), CARRIED_OUT)
def test_what_is_carried_out_changes_the_state(situation: str, name: str) -> None:
    rig = SITUATIONS[situation][0]()
    template, carried_out = COMMANDS[name]
    rig.send(fitted(template, rig))
    assert rig.state is carried_out[situation]
    rig.step(30)


def everything(rig: Rig) -> tuple[Any, ...]:
    """What can be seen of a loop from outside, and its next commands."""
    next_commands = [tuple(unit.command) for unit in rig.cycle.units]
    return rig.loop.status(), next_commands, list(rig.event_texts()), rig.loop.recorder.report


def test_play_start_needs_ready_or_active_and_all_rows() -> None:
    for make, is_allowed in ((idle, False), (ready, True), (active, True), (fault, False)):
        rig = upload(make())
        if is_allowed:
            rig.send(m.PlayStart())
            assert rig.state is State.ACTIVE
            assert rig.tracks[0].mode is Mode.PLAY
        else:
            with refused_for("not-now", "wrong-state"):
                rig.send(m.PlayStart())


# --- enabling -------------------------------------------------------------------------------------


def test_enable_is_refused_without_arm() -> None:
    rig = Rig(is_armed=False)
    rig.step(5)
    with refused_for("not-now", "not-armed", "--arm"):
        rig.send(m.Enable())
    rig.step(50)
    assert rig.state is State.IDLE
    assert not any(command.mode & ES for command in rig.commands())


def test_enable_is_refused_before_the_first_reply() -> None:
    with refused_for("not-now", "no-answer", "board bench on mock:bench"):
        Rig().send(m.Enable())


@pytest.mark.parametrize("tamper", [silent, corrupt], ids=["silent", "corrupt"])
def test_enable_is_refused_while_a_board_is_silent(tamper: Callable[[bytes], bytes]) -> None:
    rig = Rig("laas4")
    rig.step(5)
    rig.links[1].tamper = tamper
    rig.step(3)
    with refused_for("not-now", "no-answer", "board elbow on mock:elbow"):
        rig.send(m.Enable())
    assert rig.state is State.IDLE


def test_enable_is_refused_while_a_board_reports_a_fault() -> None:
    rig = Rig("laas4", profile="uomodri")  # whose errors last until it is switched off
    rig.mock.boards[1].latch(7)
    rig.step(5)
    fault = rig.profiles[1].faults[7]
    with pytest.raises(RefusedError, match=f"board elbow .*{fault.meaning}") as refusal:
        rig.send(m.Enable())
    assert (refusal.value.code, refusal.value.reason) == ("not-now", "board-error")
    rig.step(50)
    assert rig.state is State.IDLE


def test_a_fault_is_left_by_reset_and_the_robot_can_be_enabled_again() -> None:
    rig = fault()
    rig.send(m.Reset())
    assert rig.state is State.IDLE
    rig.step(60)
    rig.enable().hold()
    assert rig.state is State.ACTIVE


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("situation", ["calibrating", "ready", "active", "playing", "homing"])
def test_stop_is_the_safe_stop_from_anywhere(situation: str) -> None:
    rig = SITUATIONS[situation][0]()
    rig.send(m.Stop())
    decided = rig.now - 1
    rig.end_stop()
    assert rig.state is State.IDLE
    assert rig.machine.trip_code == ""
    if situation == "calibrating":
        assert_off_at_once(rig, decided)
    else:
        assert_safe_stop(rig, decided, longest_s=0.6)
    assert all(track.mode is Mode.OFF for track in rig.tracks)


@pytest.mark.parametrize(
    ("mode", "target"), [("velocity", 5.0), ("position", 8.0), ("current", 0.6), ("torque", 0.5)]
)
def test_disable_brings_joints_to_rest_first(mode: str, target: float) -> None:
    rig = ready()
    rig.mode(mode, target)
    rig.until(lambda: abs(rig.axes[0].velocity_rad_s) > 2.0, cycles=2000)
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.STOPPING, cycles=1500)
    assert abs(rig.axes[0].velocity_rad_s) < 0.1
    decided = rig.now - 1
    rig.end_stop()
    assert rig.state is State.IDLE
    assert_safe_stop(rig, decided, longest_s=0.4)


def test_a_fault_while_stopping_ends_in_fault() -> None:
    rig = stopping()
    decided = rig.now - 11
    rig.machine.trip("worse", code="test")
    rig.end_stop()
    assert rig.state is State.FAULT
    assert rig.machine.reason == "worse"
    assert_safe_stop(rig, decided, longest_s=0.4)
    assert rig.event_texts("state")[-2:] == [
        "active → stopping: stop was commanded",
        "stopping → fault",
    ]


def test_a_second_stop_while_stopping_changes_nothing() -> None:
    rig, other = stopping(), stopping()
    rig.send(m.Stop())
    for each in (rig, other):
        each.end_stop()
    assert [link.sent for link in rig.links] == [link.sent for link in other.links]
    assert rig.event_texts() == other.event_texts()


def test_without_current_nothing_is_known_of_positions() -> None:
    """With ES off a board forgets its encoder's zero: samples must not claim to be homed."""
    rig = Rig("laas4").enable().home_by_truth().hold()
    assert all(axis.is_homed for axis in rig.axes)
    rig.send(m.Stop())
    rig.end_stop()
    assert not any(axis.is_homed for axis in rig.axes)


def test_a_board_that_is_let_go_alone_forgets_its_positions_at_once() -> None:
    rig = Rig("laas4", posture_rad=(0.2, -1.0, 0.4, 0.6)).enable().home_by_truth().hold()
    rig.send(m.Stop())
    rig.step(50)
    rig.machine.trip("for a test", code="test", disobeying=rig.cycle.units[1])
    let_go = rig.now
    assert [axis.is_homed for axis in rig.axes] == [True, True, False, False]
    rig.end_stop()
    rig.step(20)
    decoder = ColumnDecoder(rig.session)
    homed = decoder.decode(decoder.layout.view(b"".join(payload for _, payload in rig.batches)))
    assert homed["joint_is_homed"][let_go + 1, :].tolist() == [True, True, False, False]


# --- malformed ------------------------------------------------------------------------------------

LIMIT = "out-of-limit"
WRONG: dict[str, tuple[m.AnyCommand, str, str, str]] = {
    "unknown mode": (m.SetMode(mode="dance"), "unknown", "unknown-mode", "'dance'"),
    "mode of others": (m.SetMode(mode="play"), "unknown", "unknown-mode", "'play'"),
    "unknown joint": (
        m.SetMode(mode="hold", joints=("nose",)),
        "unknown",
        "unknown-joint",
        "nose",
    ),
    "joint twice": (
        m.SetMode(mode="hold", joints=("joint1",) * 2),
        "malformed",
        "named-twice",
        "joint1",
    ),
    "target for hold": (
        m.SetMode(mode="hold", target=(1.0,)),
        "malformed",
        "needless-target",
        "mode hold",
    ),
    "no target": (m.SetMode(mode="current"), "malformed", "no-target", "mode current"),
    "too many": (
        m.SetMode(mode="current", target=(1.0, 2.0)),
        "malformed",
        "wrong-count",
        "2 values for 1",
    ),
    "NaN": (m.SetMode(mode="current", target=(math.nan,)), "malformed", "not-finite", "target"),
    "infinity": (
        m.SetMode(mode="position", target=(math.inf,)),
        "malformed",
        "not-finite",
        "target",
    ),
    "current": (
        m.SetMode(mode="current", target=(9.1,)),
        LIMIT,
        "current-limit",
        "9.1 A, limit 8.776 A",
    ),
    "torque": (m.SetMode(mode="torque", target=(-7.6,)), LIMIT, "torque-limit", "limit 7.5 N·m"),
    "speed": (m.SetMode(mode="velocity", target=(6.1,)), LIMIT, "speed-limit", "at most 5.4 rad/s"),
    "position": (
        m.SetMode(mode="position", target=(1e5,)),
        LIMIT,
        "position-limit",
        "limit 1e+04 rad",
    ),
    "too fast": (
        m.SetMode(mode="position", target=(5.0,), duration_s=0.5),
        LIMIT,
        "too-short",
        "joint1",
    ),
    "no gains": (m.SetGains(), "malformed", "no-gains", "kp_a_per_rad"),
    "negative gain": (m.SetGains(kp_a_per_rad=(-1.0,)), LIMIT, "gain-limit", "kp_a_per_rad = -1"),
    "high gain": (m.SetGains(kd_a_s_per_rad=(9.0,)), LIMIT, "gain-limit", "kd_a_s_per_rad = 9"),
    "NaN gain": (m.SetGains(kp_a_per_rad=(math.nan,)), "malformed", "not-finite", "kp_a_per_rad"),
    "gains for two": (
        m.SetGains(kp_a_per_rad=(1.0, 2.0)),
        "malformed",
        "wrong-count",
        "kp_a_per_rad: 2 ",
    ),
    "posture for two": (
        m.Home(posture_rad=(1.0, 2.0)),
        "malformed",
        "wrong-count",
        "posture_rad: 2 ",
    ),
    "posture NaN": (m.Home(posture_rad=(math.nan,)), "malformed", "not-finite", "posture_rad"),
}


def test_what_is_wrong_is_refused_and_named() -> None:
    rig = active()
    before = everything(rig)
    for name, (command, code, reason, named) in WRONG.items():
        with refused_for(code, reason, named):
            rig.send(command)
        assert everything(rig) == before, name


def test_a_refusal_for_one_joint_leaves_all_as_they_were() -> None:
    rig = Rig("laas4").enable().home_by_truth().hold()
    before = everything(rig)
    with refused_for(LIMIT, "current-limit", "joint4"):
        rig.mode("current", 0.1, 0.1, 0.1, 99.0)
    with refused_for(LIMIT, "position-limit", "joint4"):
        rig.mode("position", 0.1, -1.5, 0.1, 7.0)
    with refused_for(LIMIT, "gain-limit", "joint4"):
        rig.send(m.SetGains(kp_a_per_rad=(1.0, 1.0, 1.0, 99.0)))
    assert everything(rig) == before


def test_gains_without_an_integrator() -> None:
    """The robot file's Ki is ignored by boards that have none, and does not stand in the way."""
    rig = Rig(profile="uomodri").enable().hold()
    with pytest.raises(RefusedError, match="ki_a_per_rad_s = 1") as refusal:
        rig.send(m.SetGains(ki_a_per_rad_s=(1.0,)))
    assert refusal.value.reason == "gain-limit"
    rig.send(m.SetGains(kp_a_per_rad=(1.0,)))
    rig.step(150)
    assert rig.wire(0, "kp_a_per_rad")[-1] == pytest.approx(1.0, abs=1e-3)
