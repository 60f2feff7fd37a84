"""Every stop takes energy out of the arm: judged by the plant's true motion, every 250 µs."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import Rig, with_values
from stop_bars import LOWERED_MAX_RAD_S, judge, judge_freed
from stop_cases import CAUSES, POSTURES, Case, bring_about, first_step, run_to_the_end, start
from stop_sets import covering, few
from true_motion import TrueMotion

from daq.recording.states import State
from daq.robot import load_robot
from daq.stream import messages as m
from daq.stream.errors import RefusedError

pytestmark = [pytest.mark.chain, pytest.mark.acceptance]

EVERYTHING = list(dict.fromkeys(case for seed in (16, 17) for case in covering(seed=seed)))
"""Every pair of values twice, beside other values."""
TRIED = EVERYTHING if IS_LONG else few(EVERYTHING, 20)
UNDISTURBED_CYCLES = 250
FREED_MS = 25.0
"""20 until the robot stops, and what the next frame and the current itself need."""
LATE_REPLIES = {"udriver2": 1.15}
"""So many times as fast a joint with a dead encoder becomes where replies are three cycles old."""


@pytest.mark.parametrize("case", TRIED, ids=str)
def test_a_stop_slows_down_and_is_short(case: Case) -> None:
    try:
        rig, motion = start(case)
    except RefusedError as refusal:
        assert (refusal.reason, case.profile) == ("torque-limit", "uomodri")
        pytest.skip("10 A do not hold the arm there: no stop could")
    except AssertionError:
        is_heavy = case.posture == "horizontal" or (case.posture != "hanging" and case.joint == 1)
        if case.profile != "uomodri" or not is_heavy:
            raise
        pytest.skip("10 A hold the arm there with little to spare: it follows no motion")
    caused = motion.now
    bring_about(rig, case)
    run_to_the_end(rig, case)

    assert rig.machine.trip_code == CAUSES[case.cause]
    assert not any(unit.is_powered for unit in rig.cycle.units)
    if case.cause == "encoder-frozen":
        check_freed(rig, motion, case, caused)
        return
    verdict = judge(rig, motion, case.joint, first=first_step(motion, case, caused))
    if case.cause == "disable" and case.is_led:
        assert verdict.is_slower_than(1.05 * undisturbed_rad_s(case)), verdict
    else:
        assert verdict.is_slow, verdict
    # `disable` comes to rest along a smooth motion, whose length its planning decides.
    assert verdict.is_short or case.cause == "disable", verdict


def undisturbed_rad_s(case: Case) -> float:
    """How fast a joint becomes that nobody disables: it may have just got its speed.

    It overshoots then, by its gains, and `disable` cannot have it slower at once.
    """
    rig, motion = start(case)
    begun = motion.now - 1
    rig.step(UNDISTURBED_CYCLES)
    return float(np.abs(motion.velocity_rad_s(begun)[:, case.joint]).max())


def check_freed(rig: Rig, motion: TrueMotion, case: Case, died: int) -> None:
    """Its motor has no current any more, soon; the other joints were braked until they rested."""
    freed = judge_freed(motion, case.joint, died=died)
    assert freed.fastest_rad_s <= LATE_REPLIES.get(case.profile, 1.0) * freed.bar_rad_s, freed
    assert freed.freed_ms <= FREED_MS, freed
    others = [joint for joint in range(len(rig.axes)) if joint != case.joint]
    stopping = motion.velocity_rad_s(motion.stop_sent(), motion.stop_over())
    assert np.abs(stopping[:, others]).max() <= LOWERED_MAX_RAD_S
    assert np.abs(stopping[-40:, others]).max() < 0.05


def test_joint1_stops_from_4_rad_s_within_a_tenth_of_a_radian() -> None:
    rig, motion = start(Case("velocity", 0, "hanging", 4.2, "stop", "arm"))
    rig.send(m.Stop())
    rig.step(1000)
    turned_rad = motion.position_rad(motion.stop_sent())[:, 0]

    assert abs(motion.velocity_rad_s()[motion.stop_sent() - 2, 0]) > 3.9
    assert np.abs(turned_rad - turned_rad[0]).max() <= 0.1


RAISED = [
    (posture, profile)
    for posture in ("horizontal", "upright")
    for profile in ("arm", "uomodri", "udriver2")
]


@pytest.mark.parametrize(
    ("posture", "profile"), RAISED if IS_LONG else [("horizontal", "uomodri"), ("upright", "arm")]
)
def test_a_raised_arm_is_lowered_slowly(posture: str, profile: str) -> None:
    rig, motion = start(Case("hold", 1, posture, 0.0, "stop", profile))
    rig.send(m.Stop())
    rig.until(lambda: rig.state is State.IDLE, cycles=25_000)
    rig.step(5000)

    assert np.abs(motion.velocity_rad_s()).max() <= 2.0
    assert np.abs(motion.velocity_rad_s(motion.now - 2000)).max() < 0.05
    assert [event.severity for event in rig.events_of("stop")] == ["warning"]


def test_disable_does_not_push_on_what_a_current_drives() -> None:
    """A bug: while its gains came, the current went on; joint4 went from 3.2 to 4.4 rad/s."""
    rig, motion = start(Case("current", 3, "hanging", 4.4, "disable", "arm"))
    begun = motion.now - 1
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE)
    speed_rad_s = np.abs(motion.velocity_rad_s(begun)[:, 3])

    assert speed_rad_s[0] > 3.0
    assert speed_rad_s.max() <= 1.05 * speed_rad_s[0]


def test_a_current_that_pushes_on_is_zero_in_the_next_frame() -> None:
    rig, _ = start(Case("current", 0, "hanging", 2.5, "stop", "arm"))
    rig.send(m.Stop())
    rig.step()
    last = rig.commands(0)[-1]

    with pytest.raises(RefusedError) as refusal:
        rig.send(m.SetGains(joints=("joint1",), kp_a_per_rad=(1.0,)))
    assert refusal.value.reason == "wrong-state"
    assert rig.commands(0)[-2].iq_ff_a[0] > 1.0
    assert (last.iq_ff_a, last.kp_a_per_rad, last.ki_a_per_rad_s) == ((0.0, 0.0),) * 3
    assert last.motor_velocity_rad_s == (0.0, 0.0)
    rig.step(20)
    assert 0.0 < last.kd_a_s_per_rad[0] < 0.2 * rig.commands(0)[-1].kd_a_s_per_rad[0]


def test_kd_is_there_within_10_ms_and_does_not_oscillate() -> None:
    rig, motion = start(Case("velocity", 3, "hanging", 2.5, "stop", "arm"))
    rig.send(m.Stop())
    first = rig.now
    rig.step(400)
    kd = rig.wire(3, "kd_a_s_per_rad", first)
    after = motion.velocity_rad_s(motion.stop_sent())[:, 3]

    assert (np.diff(kd[:10]) >= 0.0).all()
    assert kd[10] == pytest.approx(kd[:40].max(), rel=0.05)
    # Critically damped: it hardly swings back.
    assert after.min() > -0.05 * after[0]


@pytest.mark.parametrize("slowly", [1, 5])
def test_the_time_of_a_stop_is_the_clocks(slowly: int) -> None:
    """A cycle every 5 ms, as on a serial link: the stop takes no longer."""
    rig, _ = start(Case("velocity", 0, "hanging", 2.5, "stop", "arm"))
    rig.send(m.Stop())
    began_ns = rig.clock.now_ns()
    while rig.state is State.STOPPING:
        rig.clock.sleep_until_ns(rig.clock.now_ns() + (slowly - 1) * 1_000_000)
        rig.step()
    assert 0.3 <= 1e-9 * (rig.clock.now_ns() - began_ns) <= 0.5


def horizontal(**safety: object) -> tuple[Rig, TrueMotion]:
    robot = load_robot("laas4")
    robot = msgspec.structs.replace(robot, safety=msgspec.structs.replace(robot.safety, **safety))
    rig = Rig(robot, posture_rad=POSTURES["hanging"]).enable().home_by_truth().hold(100)
    rig.mode("position", *POSTURES["horizontal"])
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.step(300)
    return rig, TrueMotion(rig)


def test_hold_keeps_the_posture_until_disabled() -> None:
    rig, motion = horizontal(stop="hold")
    rig.send(m.Stop())
    rig.step(5000)
    held_rad = motion.position_rad(0)
    assert rig.state is State.STOPPING
    assert np.abs(held_rad - held_rad[0]).max() < 0.15
    assert np.abs(motion.velocity_rad_s(4 * 1000)).max() < 0.05

    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE, cycles=25_000)
    assert np.abs(motion.velocity_rad_s()).max() <= 2.0


@pytest.mark.parametrize("stop", ["brake", "hold"])
def test_a_joint_that_is_just_turning_round_is_pushed_no_further(stop: str) -> None:
    """What drives it is no measure of what holds it."""
    robot = load_robot("laas4")
    robot = msgspec.structs.replace(robot, safety=msgspec.structs.replace(robot.safety, stop=stop))
    rig = Rig(robot, posture_rad=POSTURES["hanging"]).enable().home_by_truth().hold(100)
    motion, axis = TrueMotion(rig), rig.axes[0]
    rig.mode("current", -12.0, joints=["joint1"])
    rig.until(lambda: axis.velocity_rad_s < -1.0, cycles=2000)
    rig.mode("current", 12.0, joints=["joint1"])
    rig.until(lambda: axis.velocity_rad_s > -0.04, cycles=2000)
    rig.send(m.Stop())
    rig.step(1000)
    stopped = motion.stop_sent()
    turned_rad = motion.position_rad(stopped)[:, 0]

    assert np.abs(turned_rad - turned_rad[0]).max() < 0.003
    # The current takes a millisecond to go.
    assert np.abs(motion.velocity_rad_s(stopped + 8)[:, 0]).max() < 0.2


@pytest.mark.parametrize(
    "case",
    [
        Case("velocity", 0, "hanging", 4.4, "stop", "arm"),
        Case("current", 3, "hanging", 2.5, "speed-limit", "udriver2"),
        Case("position", 1, "bent", 1.0, "stop", "uomodri"),
    ],
    ids=str,
)
def test_a_stop_without_a_model(case: Case) -> None:
    """Kd comes from the rotor and the file's own gains."""
    rig, motion = start(case, has_model=False)
    bring_about(rig, case)
    run_to_the_end(rig, case)
    verdict = judge(rig, motion, case.joint)
    assert verdict.is_slow, verdict
    assert verdict.is_short, verdict


def test_hold_is_lowered_after_its_time() -> None:
    rig, motion = horizontal(stop="hold", hold_max_s=2.0)
    rig.send(m.Stop())
    rig.until(lambda: rig.state is State.IDLE, cycles=25_000)
    rig.step(2000)
    assert np.abs(motion.velocity_rad_s()).max() <= 2.0
    assert [event.text for event in rig.events_of("stop") if "2 s" in event.text]


def test_coast_lets_go_at_once() -> None:
    rig, _ = horizontal(stop="coast")
    rig.send(m.Stop())
    rig.step()
    assert rig.state is State.IDLE
    assert not rig.commands(0)[-1].mode


def test_a_joint_beyond_its_limit_can_be_held_there() -> None:
    rig, _ = horizontal(stop="hold")
    axis = rig.axes[1]
    axis.high_rad = axis.position_rad - 0.1
    rig.until(lambda: rig.state is State.STOPPING, cycles=10)
    rig.step(2000)
    assert rig.machine.is_holding
    assert rig.machine.trip_code == "position-limit"
    rig.axes[0].high_rad = -1.0
    rig.step(3)
    assert not rig.machine.is_holding


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("voltage-limit", {"bus_voltage_v": 10.0}),
        ("temperature-limit", {"motor": 0, "winding_temperature_degc": 150.0}),
        ("temperature-sensor", {"motor": 0, "winding_temperature_degc": math.nan}),
        ("current-limit", {"motor": 0, "iq_a": 22.0}),
    ],
)
def test_what_is_never_held(code: str, reply: dict[str, Any]) -> None:
    rig, _ = horizontal(stop="hold")
    rig.links[0].tamper = with_values(rig.profiles[0], **reply)
    rig.until(lambda: rig.state is State.STOPPING, cycles=200)
    rig.step(3)
    assert rig.machine.trip_code == code
    assert not rig.machine.is_holding


def test_a_signal_does_not_hold() -> None:
    rig, _ = horizontal(stop="hold")
    rig.machine.stop("SIGTERM")
    rig.step(3)
    assert rig.state is State.STOPPING
    assert not rig.machine.is_holding


def test_kd_follows_the_inertia_of_an_arm_that_is_lowered() -> None:
    rig, _ = horizontal()
    rig.send(m.Stop())
    rig.step(100)
    stretched = rig.wire(0, "kd_a_s_per_rad")[-1]
    rig.until(lambda: rig.axes[1].position_rad < -1.2, cycles=25_000)
    assert rig.state is State.STOPPING
    assert rig.wire(0, "kd_a_s_per_rad")[-1] < 0.8 * stretched


def test_a_board_that_does_not_brake_is_switched_off() -> None:
    """Its motor pushes whatever it is told: the wires of two phases are swapped, say."""
    rig, _ = start(Case("velocity", 0, "hanging", 1.0, "stop", "arm"))
    output = rig.outputs[0]
    inner = output.drive_torque_nm
    output.drive_torque_nm = lambda: abs(inner()) + 0.05  # type: ignore[method-assign]
    rig.send(m.Stop())
    rig.until(lambda: not rig.cycle.units[0].is_powered, cycles=2000)

    assert "braked with all the current" in rig.event_texts("fault")[-1]
    assert rig.cycle.units[1].is_powered  # the others are braked to rest first
    rig.until(lambda: rig.state is State.FAULT, cycles=25_000)
