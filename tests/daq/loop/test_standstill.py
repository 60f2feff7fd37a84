"""An encoder that freezes, in motion and at rest; a joint that is blocked; by true motion."""

from __future__ import annotations

import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import Rig
from stop_cases import Case, start
from true_motion import TrueMotion

from daq.recording.states import Mode, State

pytestmark = [pytest.mark.chain, pytest.mark.acceptance]

PROFILES = ("arm", "uomodri", "udriver2")


def until_no_current(rig: Rig, joint: int, cycles: int = 3000) -> int:
    """Go on until the robot has stopped and the motor has no current; when it stopped."""
    stopped = None
    for cycle in range(cycles):
        rig.step()
        if stopped is None and rig.state is not State.ACTIVE:
            stopped = cycle + 1
        if stopped is not None and max(abs(i[joint]) for i in rig.iq_a[-3:]) < 0.05:
            break
    assert stopped is not None
    return stopped


def speeds(motion: TrueMotion, joint: int, first: int) -> np.ndarray:
    return np.abs(motion.velocity_rad_s(first)[:, joint])


@pytest.mark.parametrize("is_for_good", [True, False])
def test_after_a_pause_counts_that_are_late_are_waited_for(is_for_good: bool) -> None:
    rig, _ = start(Case("velocity", 0, "hanging", 1.0, "stop", "arm"))
    rig.step(100)
    rig.clock.advance_ns(5_000_000)
    now_ns = rig.clock.now_ns()
    rig.cycle.run(now_ns, now_ns, 5)
    rig.step(60)
    rig.outputs[0].encoder.is_frozen = True
    rig.step(7)
    assert rig.state is State.ACTIVE
    rig.outputs[0].encoder.is_frozen = is_for_good
    rig.step(13)

    assert rig.machine.trip_code == ("encoder-frozen" if is_for_good else "")


@pytest.mark.parametrize("taken_ns", [4_500_000, 5_900_000])
def test_a_reply_is_as_old_as_its_exchange_and_not_as_its_cycle(taken_ns: int) -> None:
    """A link that took its time brought the last count at its end: few are owed since."""
    rig, _ = start(Case("velocity", 0, "hanging", 0.3, "stop", "arm"))
    rig.step(100)
    runner, link = rig.runner(), rig.links[0]._inner
    inner, encoder = link.exchange, rig.outputs[0].encoder

    def exchange(frame: bytes) -> bytes:
        rig.clock.advance_ns(taken_ns)
        return inner(frame)

    link.exchange = exchange  # type: ignore[method-assign]
    runner._period(rig.cycle.run)
    link.exchange = inner  # type: ignore[method-assign]
    encoder.is_frozen = True
    for _ in range(2):
        runner._period(rig.cycle.run)
    encoder.is_frozen = False
    for _ in range(50):
        runner._period(rig.cycle.run)

    assert rig.cycle.skipped == taken_ns // 1_000_000 - 1
    assert rig.state is State.ACTIVE, rig.machine.reason


@pytest.mark.parametrize("joint", range(4))
@pytest.mark.parametrize("profile", PROFILES if IS_LONG else PROFILES[:1])
@pytest.mark.parametrize("posture", ["hanging", "bent"] if IS_LONG else ["hanging"])
def test_an_encoder_that_froze_at_rest(profile: str, joint: int, posture: str) -> None:
    rig, motion = start(Case("hold", joint, posture, 0.0, "stop", profile))
    rig.outputs[joint].encoder.is_frozen = True
    frozen = motion.now
    rig.mode("velocity", 1.0, joints=[f"joint{joint + 1}"])
    until_no_current(rig, joint)

    assert rig.machine.trip_code == "stall"
    (warning,) = rig.events_of("stall")
    (stopping,) = (event for event in rig.events_of("state") if "stopping" in event.text)
    assert 1e-9 * (stopping.t_ns - warning.t_ns) == pytest.approx(1.0, abs=0.002)
    assert (warning.severity, warning.source) == ("warning", f"joint{joint + 1}")
    assert speeds(motion, joint, frozen).max() <= 2.0


def test_counts_release_a_joint_that_gave_way() -> None:
    """Something blocks the joint, and is taken away again."""
    rig, _ = start(Case("hold", 0, "hanging", 0.0, "stop", "arm"))
    data, inner = rig.mock.plant.data, rig.mock.step
    blocked_rad = float(data.qpos[0])

    def step() -> None:
        inner()
        data.qpos[0], data.qvel[0] = blocked_rad, 0.0

    rig.mock.step = step  # type: ignore[method-assign]
    rig.mode("velocity", 0.3, joints=["joint1"])
    axis = rig.axes[0]
    rig.until(lambda: not axis.push_low_a <= axis.iq_mean_a <= axis.push_high_a, cycles=2000)
    rig.until(lambda: bool(rig.events_of("stall")), cycles=60)
    rig.step(100)
    assert abs(axis.iq_a) < 1.0
    rig.mock.step = inner  # type: ignore[method-assign]
    data.qvel[0] = 0.2  # a hand moves it a little
    rig.step(800)

    assert rig.state is State.ACTIVE, rig.machine.reason
    assert rig.tracks[0].mode is Mode.HOLD
    assert [event.severity for event in rig.events_of("stall")] == ["warning", "info"]
    assert abs(axis.velocity_rad_s) < 0.02


def test_a_push_on_the_bench_is_taken_back_after_30_ms() -> None:
    """What rubs there is not known: nearly all the current must push, for as long as that."""
    rig = Rig("bench1").enable().hold()
    axis = rig.axes[0]
    rig.mock.plant.step = lambda _torques_nm: None  # type: ignore[method-assign]
    rig.mode("current", axis.current_max_a)
    rig.until(lambda: axis.iq_a > axis.push_high_a, cycles=150)
    assert axis.push_high_a == 0.95 * axis.isat_a
    waited = rig.until(lambda: bool(rig.events_of("stall")), cycles=60)

    assert 28 <= waited <= 40
    rig.step(2)
    assert abs(rig.commands(0)[-1].iq_ff_a[0]) <= 0.25 * axis.current_max_a


def test_an_encoder_that_freezes_frees_its_motor_and_the_others_brake() -> None:
    rig, motion = start(Case("velocity", 0, "hanging", 2.0, "stop", "arm"))
    rig.mode("velocity", 2.0, joints=["joint3"])
    rig.step(300)
    rig.outputs[0].encoder.is_frozen = True
    rig.until(lambda: rig.state is State.STOPPING, cycles=20)
    rig.step(30)
    last = rig.commands(0)[-1]
    assert (last.kp_a_per_rad[0], last.kd_a_s_per_rad[0], last.iq_ff_a[0]) == (0.0, 0.0, 0.0)
    assert last.kd_a_s_per_rad[1] > 0.0
    assert rig.commands(1)[-1].kd_a_s_per_rad[0] > 0.0
    rig.until(lambda: rig.state is State.FAULT, cycles=25_000)
    assert np.abs(motion.velocity_rad_s(motion.now - 40)[:, 2]).max() < 0.05
