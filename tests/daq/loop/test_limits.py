"""Every limit: what is exceeded, after how many replies the safe stop begins, what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import (
    Rig,
    Tamper,
    assert_off_at_once,
    assert_safe_stop,
    corrupt,
    cut_short,
    for_cycles,
    of_other_version,
    silent,
    with_values,
)

from daq.loop.safety import machine
from daq.recording.states import State
from daq.robot import load_robot
from daq.stream import messages as m
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import PROFILES

POSTURE_RAD = (0.2, -1.0, 0.4, 0.6)
LOWER_MAX_S = 8.0 if IS_LONG else 2.0
"""It takes 7 s to lower the arm until it rests: `test_stop_true_motion` looks at that."""
ARM = load_robot("laas4")
SOON_OFF = msgspec.structs.replace(
    ARM, safety=msgspec.structs.replace(ARM.safety, lower_max_s=LOWER_MAX_S)
)


class Limit(NamedTuple):
    """Something wrong in the replies of a board of the arm."""

    replies: int
    """How many of them in a row it takes."""
    tamper: Callable[[Profile], Tamper]
    board: int
    code: str
    texts: tuple[str, ...]
    """What the reason names: who, value, limit."""
    kind: str = "limit"
    also: str = ""
    """What else is told on the way to rest."""
    is_disobeying: bool = False
    """Whether its board does not do what it is told, so that it is switched off at once."""


def motor(number: int, **values: float) -> Callable[[Profile], Tamper]:
    return lambda profile: with_values(profile, number, **values)


def board(**values: float) -> Callable[[Profile], Tamper]:
    return lambda profile: with_values(profile, **values)


# Joint 1 stands at about 0.22 rad with 31 turns to one; joint 4 at 0.62 with 27. The speed limit is
# 5 rad/s, the currents 20, 16, 9 and 16 A, all windings 90 °C, the bus 20 to 28 V.
LIMITS = {
    "position above": Limit(
        1,
        motor(0, motor_position_rad=31 * 6.3),
        0,
        "position-limit",
        ("joint joint1", "6.5", "limit 6.283 rad"),
    ),
    "position below": Limit(
        1,
        motor(1, motor_position_rad=-27 * 7.0),
        1,
        "position-limit",
        ("joint joint4", "-6.3", "limit -6.283 rad"),
    ),
    "velocity": Limit(
        3,
        motor(0, motor_velocity_rad_s=31 * 5.1),
        1,
        "speed-limit",
        ("joint joint3", "5.1 rad/s", "5 rad/s"),
    ),
    "velocity backwards": Limit(
        3,
        motor(1, motor_velocity_rad_s=-27 * 5.1),
        0,
        "speed-limit",
        ("joint joint2", "-5.1 rad/s", "5 rad/s"),
    ),
    "current": Limit(
        5,
        motor(0, iq_a=9.8),
        1,
        "current-limit",
        ("joint joint3", "9.8", "limit 9.7 A"),
        is_disobeying=True,
    ),
    "current backwards": Limit(
        5,
        motor(0, iq_a=-9.8),
        1,
        "current-limit",
        ("joint joint3", "-9.8", "limit 9.7 A"),
        is_disobeying=True,
    ),
    "temperature": Limit(
        10,
        motor(1, winding_temperature_degc=92.0),
        1,
        "temperature-limit",
        ("joint joint4", "92 °C", "limit 90 °C"),
    ),
    "bus voltage low": Limit(
        10,
        board(bus_voltage_v=19.5),
        0,
        "voltage-limit",
        ("board shoulder", "19.5 V", "20 to 28 V"),
    ),
    "bus voltage high": Limit(
        10, board(bus_voltage_v=28.5), 1, "voltage-limit", ("board elbow", "28.5 V", "20 to 28 V")
    ),
    "corrupt": Limit(
        20, lambda _: corrupt, 1, "corrupt", ("board elbow", "mock:elbow", "20 replies"), "fault"
    ),
    "cut short": Limit(
        20,
        lambda _: cut_short,
        0,
        "truncated",
        ("board shoulder", "20 replies"),
        "fault",
        also="reports error 2",  # commands are cut as well
    ),
    "silent": Limit(20, lambda _: silent, 1, "silent", ("board elbow", "20 replies"), "fault"),
    "another version": Limit(
        20, of_other_version, 0, "mismatched", ("board shoulder", "20 replies"), "fault"
    ),
    "stale index": Limit(
        20, board(index=0x5003), 1, "unconfirmed", ("board elbow", "20 replies"), "fault"
    ),
}
CASES = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)


def active_arm() -> Rig:
    """The arm holds a posture against gravity: currents flow."""
    rig = Rig(SOON_OFF, posture_rad=POSTURE_RAD).enable().home_by_truth().hold(110)
    assert abs(rig.axes[1].iq_a) > 1.0
    return rig


def hanging_arm() -> Rig:
    """The arm at rest, which it still is after a stop: it can be calibrated at once."""
    return Rig("laas4").enable().home_by_truth().hold(20)


def strike(rig: Rig, limit: Limit, replies: int) -> None:
    link = rig.links[limit.board]
    link.tamper = for_cycles(replies, limit.tamper(rig.profiles[limit.board]))
    rig.step(replies)


@pytest.mark.acceptance
@CASES
def test_the_safe_stop_begins_with_the_last_reply_that_is_too_much(limit: Limit) -> None:
    rig = active_arm()
    strike(rig, limit, limit.replies)
    assert rig.state is State.STOPPING
    tripped = rig.now - 1
    reason = rig.machine.reason
    rig.end_stop()
    assert rig.state is State.FAULT
    assert_safe_stop(
        rig, tripped, let_go={limit.board: tripped + 1} if limit.is_disobeying else None
    )
    assert rig.machine.trip_code == limit.code
    for text in limit.texts:
        assert text in reason
    assert rig.machine.reason == reason
    told, *more = rig.event_texts(limit.kind)
    assert told == reason
    assert [limit.also in text for text in more] == [True] * bool(limit.also)
    assert rig.event_texts("fault" if limit.kind == "limit" else "limit") == []
    # The reason is said once, in the event of its own.
    assert rig.event_texts("state")[-2:] == ["active → stopping", "stopping → fault"]
    assert rig.machine.is_fault_of_board is (limit.kind == "fault")


def test_one_reply_less_is_forgiven_and_forgotten() -> None:
    rig = active_arm()
    for name, limit in LIMITS.items():
        if name == "cut short":
            continue  # commands are cut as well: the board's own time-out is faster
        for _ in range(3):
            strike(rig, limit, limit.replies - 1)
            rig.step(3)
        rig.step(20)
        assert rig.state is State.ACTIVE, name
        assert rig.event_texts("limit") + rig.event_texts("fault") == [], name


@CASES
def test_it_strikes_again_after_a_reset(limit: Limit) -> None:
    """What is still wrong when the robot is enabled again stops it again, just as fast."""
    rig = hanging_arm()
    link = rig.links[limit.board]
    wrong = link.tamper = limit.tamper(rig.profiles[limit.board])
    rig.until(lambda: rig.state is State.STOPPING)
    link.tamper = None
    rig.end_stop()
    assert rig.state is State.FAULT
    link.tamper = wrong
    if limit.kind == "fault":
        rig.send(m.Reset())
        rig.step(21)
        assert rig.state is State.FAULT, "still wrong while idle"
        return
    link.tamper = None
    rig.step(3)
    rig.send(m.Reset())
    rig.enable().home_by_truth()
    strike(rig, limit, limit.replies)
    assert rig.state is State.STOPPING


HOT_AND_LASTING = ("temperature", "bus voltage low", "bus voltage high")


@pytest.mark.parametrize("name", HOT_AND_LASTING)
def test_what_never_went_back_to_normal_strikes_again(name: str) -> None:
    limit = LIMITS[name]
    rig = hanging_arm()
    rig.links[limit.board].tamper = limit.tamper(rig.profiles[limit.board])
    rig.until(lambda: rig.state is State.FAULT)
    assert len(rig.event_texts("limit")) == 1, "said once"
    rig.send(m.Reset())
    rig.step(3)
    rig.send(m.Enable())
    rig.until(lambda: rig.state is State.READY)
    assert rig.until(lambda: rig.state is State.STOPPING, cycles=30) <= limit.replies


def test_a_position_means_nothing_before_homing() -> None:
    rig = Rig("laas4", posture_rad=POSTURE_RAD).enable()
    strike(rig, LIMITS["position above"], 20)
    assert rig.state is State.READY


def test_a_board_clock_that_stands_still() -> None:
    """10 ms until it counts as standing still, then 20 replies."""
    rig = active_arm()
    stands_ms = rig.replies(1)[-1].timestamp_ms
    rig.links[1].tamper = with_values(rig.profiles[1], timestamp_ms=stands_ms)
    cycles = rig.until(lambda: rig.state is State.STOPPING, cycles=40)
    assert 29 <= cycles <= 32
    tripped = rig.now - 1
    assert rig.machine.trip_code == "unconfirmed"
    assert "board elbow" in rig.machine.reason
    rig.step(400)
    rig.links[1].tamper = None
    rig.end_stop()
    assert rig.state is State.FAULT
    assert_safe_stop(rig, tripped)


@pytest.mark.acceptance
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "tamper", [corrupt, silent, of_other_version], ids=lambda each: each.__name__
)
def test_joints_that_cannot_be_seen_are_braked_for_as_long_as_it_may_take(
    number: int, tamper: Callable[..., Any]
) -> None:
    """Their board may well hear us: a joint that gravity pulls would fall if it were let go."""
    rig = active_arm()
    rig.links[number].tamper = (
        tamper(rig.profiles[number]) if tamper is of_other_version else tamper
    )
    rig.until(lambda: rig.state is State.STOPPING)
    tripped, reason = rig.now - 1, rig.machine.reason
    longest = 300 + 1000 * LOWER_MAX_S
    assert rig.end_stop() == pytest.approx(longest, abs=2)
    off = assert_safe_stop(rig, tripped)
    assert off == pytest.approx(tripped + longest, abs=2)
    lowered_rad_s = np.diff(np.array(rig.joint_rad)[tripped:off, 1]) * 1000.0
    assert np.abs(lowered_rad_s).max() < 0.4, "by the board that hears us"
    assert rig.event_texts("fault") == [reason]
    unseen = ("joint1, joint2", "joint3, joint4")[number]
    assert [text for text in rig.event_texts("stop") if "cannot be seen" in text and unseen in text]


def test_a_board_that_cannot_be_reached_is_not_waited_for() -> None:
    rig = Rig("laas4", faults=["vanish:at=0.6,board=1"]).enable().hold()
    rig.until(lambda: rig.state is State.STOPPING)
    assert rig.end_stop() == pytest.approx(300, abs=2)
    assert rig.event_texts("stop") == []


DEVICE_FAILURES = {"vanish:at=0.6,board=1": "elbow", "io-error:at=0.6,for=5,board=0": "shoulder"}


@pytest.mark.parametrize(("fault", "name"), DEVICE_FAILURES.items(), ids=DEVICE_FAILURES)
def test_a_device_that_fails_stops_the_other_board_too(fault: str, name: str) -> None:
    rig = Rig("laas4", posture_rad=POSTURE_RAD, faults=[fault]).enable().hold()
    rig.until(lambda: rig.state is State.STOPPING)
    tripped = rig.now - 1
    assert rig.script.events[0].time_ns == 1_000_000 * rig.now
    reason = rig.machine.reason
    assert rig.machine.trip_code == "unreachable"
    assert f"board {name}" in reason and f"mock:{name}" in reason
    rig.end_stop()
    assert rig.state is State.FAULT
    if name == "elbow":
        assert_safe_stop(rig, tripped)
    else:  # what its board let fall is nothing to wait for
        assert_safe_stop(rig, tripped, longest_s=0.302, lost=[0])
    assert rig.event_texts("fault") == [reason], "said once"
    assert rig.machine.is_fault_of_board


def test_a_board_that_rebooted_is_no_longer_enabled() -> None:
    fault = "brown-out:at=0.6,for=0.005,board=1"
    rig = Rig("laas4", posture_rad=POSTURE_RAD, faults=[fault]).enable().hold()
    rig.until(lambda: rig.state is State.STOPPING)
    tripped = rig.now - 1
    # Supply back after 5 ms; the first replies of a rebooted board still have to be believed.
    assert 605 <= rig.now <= 610
    assert rig.machine.trip_code == "not-enabled"
    assert "board elbow on mock:elbow" in rig.machine.reason
    rig.end_stop()
    assert rig.state is State.FAULT
    # It would take the next command for one to calibrate.
    assert_safe_stop(rig, tripped, let_go={1: tripped + 1})
    assert len(rig.event_texts("fault")) == 1
    assert rig.machine.is_fault_of_board


def test_a_brown_out_that_lasts_is_silence() -> None:
    """When the board comes back it is let go at once, and not told to calibrate."""
    fault = "brown-out:at=0.6,for=1,board=0"
    rig = Rig("laas4", posture_rad=POSTURE_RAD, faults=[fault]).enable().hold()
    rig.until(lambda: rig.state is State.STOPPING)
    assert rig.now == 599 + 20
    tripped = rig.now - 1
    assert rig.machine.trip_code == "silent"
    assert "board shoulder" in rig.machine.reason
    rig.until(lambda: not rig.cycle.units[0].is_powered)
    assert 1600 <= rig.now <= 1610
    let_go = {0: rig.now}
    rig.end_stop()
    assert rig.machine.trip_code == "silent"
    assert assert_safe_stop(rig, tripped, let_go=let_go) == let_go[0], "the other rests by then"


ERRORS = [
    (profile.name, fault.code, fault.meaning)
    for profile in PROFILES.values()
    for fault in profile.faults.values()
] + [("arm", 12, "unknown")]


@pytest.mark.parametrize(("profile", "code", "meaning"), ERRORS)
@pytest.mark.parametrize("at_s", [0.05, 0.15], ids=["calibrating", "active"])
def test_every_error_of_every_board(profile: str, code: int, meaning: str, at_s: float) -> None:
    rig = Rig("bench1", profile=profile, faults=[f"board-error:at={at_s},code={code}"])
    rig.step(3)
    rig.send(m.Enable())
    rig.until(lambda: rig.state in (State.READY, State.FAULT))
    is_calibrated = rig.state is State.READY
    if is_calibrated:
        rig.hold(20)
        rig.until(lambda: rig.state is State.STOPPING)
    tripped = rig.now - 1
    # The reply in the exchange of the error already says so, or the next one.
    struck = rig.script.events[0].time_ns // 1_000_000
    assert 0 <= rig.now - struck <= 2
    assert rig.machine.trip_code == f"error-{code}"
    assert "board bench on mock:bench" in rig.machine.reason and meaning in rig.machine.reason
    rig.end_stop()
    assert rig.state is State.FAULT
    assert len(rig.event_texts("fault")) == 1
    assert rig.event_texts("limit") == []
    assert rig.machine.is_fault_of_board
    if is_calibrated:
        assert_safe_stop(rig, tripped)
    else:
        assert_off_at_once(rig, tripped)


def test_a_calibration_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CALIBRATION_SLACK_S", -2.5)
    rig = Rig("bench1", calibration_s=4.0)
    rig.step(3)
    rig.send(m.Enable())
    assert rig.until(lambda: rig.state is State.FAULT) == pytest.approx(1500, abs=2)
    assert rig.machine.trip_code == "calibration"
    assert "1.5 s" in rig.machine.reason and "board bench" in rig.machine.reason
    decided = rig.now - 1
    rig.step(3)
    assert_off_at_once(rig, decided)
    changes = ["calibrating → stopping", "stopping → fault"]
    assert rig.event_texts("state")[-2:] == changes


def test_several_things_at_once_are_one_stop() -> None:
    rig = active_arm()
    rig.links[0].tamper = with_values(rig.profiles[0], 0, iq_a=30.0, motor_velocity_rad_s=200.0)
    rig.links[1].tamper = lambda _: b""
    rig.until(lambda: rig.state is State.STOPPING)
    tripped, reason = rig.now - 1, rig.machine.reason
    assert rig.machine.trip_code == "speed-limit"
    rig.end_stop()
    assert rig.state is State.FAULT
    # The current is the fifth that is too much; until then the board was braking.
    assert_safe_stop(rig, tripped, let_go={0: tripped + 3})
    assert rig.machine.reason == reason, "the first cause is the one to tell"
    assert not rig.machine.is_fault_of_board
    codes = [text.partition(":")[0] for text in rig.event_texts("limit")]
    assert codes == ["joint joint1", "joint joint1"], "speed, then current"
    (unreadable,) = rig.event_texts("fault")
    assert "board elbow" in unreadable


@pytest.mark.parametrize("odd_a", [15.0, -15.0])
def test_an_odd_current_has_no_influence_on_a_stop(odd_a: float) -> None:
    rig, other = active_arm(), active_arm()
    rig.links[0].tamper = for_cycles(1, with_values(rig.profiles[0], 0, iq_a=odd_a))
    for each in (rig, other):
        each.step()
        decided = each.now - 1
        each.send(m.Stop())
        each.end_stop()
        assert_safe_stop(each, decided)
    assert [link.sent for link in rig.links] == [link.sent for link in other.links]
