"""Joints that stick and are led slowly are knocked at, and nobody feels it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import Rig, changed_joint, with_friction
from stop_cases import POSTURES
from true_motion import TrueMotion

from daq.loop.safety.knock import Knock
from daq.recording.states import State
from daq.robot import load_robot
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS, Effects

pytestmark = [pytest.mark.chain, pytest.mark.acceptance]

FELT_RAD_S = 0.15
"""Twice what the fastest of them is led by; sticking alone makes 0.11."""
RUBS = {
    "as the file says": (1.0, PRESETS["default"]),
    "twice as much": (2.0, PRESETS["default"]),
    "twice to break away": (1.0, replace(PRESETS["default"], stribeck=1.0)),
    "hardly": (0.4, PRESETS["default"]),
}
CASES = list(itertools.product(RUBS, ("arm", "uomodri", "udriver2")))


def knocked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the joints that are knocked at from now on."""
    joints: list[int] = []
    watch = Knock.watch

    def watched(self: Knock, *what: Any) -> bool:
        is_knocked = watch(self, *what)
        if is_knocked:
            joints.append(self._axis.number)
        return is_knocked

    monkeypatch.setattr(Knock, "watch", watched)
    return joints


def bent(profile: str, friction: float, effects: Effects) -> Rig:
    mock = MockRobot(
        with_friction(load_robot("laas4"), friction),
        profile=profile,
        calibration_s=0.3,
        posture_rad=POSTURES["hanging"],
        effects=effects,
    )
    rig = Rig("laas4", profile=profile, mock=mock).enable().home_by_truth().hold(100)
    rig.mode("position", *POSTURES["bent"])
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.step(1500)
    return rig


def in_a_knock(monkeypatch: pytest.MonkeyPatch) -> tuple[Rig, int]:
    """A bent arm, and the joint that is being knocked at."""
    rig = bent("arm", 1.0, RUBS["twice to break away"][1])
    joints = knocked(monkeypatch)
    rig.mode("velocity", 0.01, 0.01, 0.01, 0.01)
    rig.until(lambda: bool(joints), cycles=4000)
    rig.until(lambda: rig.wire(joints[0], "iq_ff_a")[-1] != 0.0, cycles=10)
    return rig, joints[0]


@pytest.mark.parametrize(
    ("rubs", "profile"), CASES if IS_LONG else [("twice to break away", "arm")]
)
def test_a_living_joint_is_hardly_moved(
    rubs: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = bent(profile, *RUBS[rubs])
    joints, motion = knocked(monkeypatch), TrueMotion(rig)
    for speed in (0.003, 0.01, 0.03, 0.06) if IS_LONG else (0.01, 0.06):
        for way in (1.0, -1.0, -1.0, 1.0) if IS_LONG else (1.0, -1.0):
            rig.mode("velocity", *[way * speed] * 4)
            rig.step(1500)
    assert rig.state is State.ACTIVE, rig.machine.reason
    assert len(set(joints)) >= (1 if rubs == "hardly" else 2)  # so that it proves something
    assert not rig.events_of("stall")
    assert np.abs(motion.velocity_rad_s()).max() < FELT_RAD_S


def test_nothing_is_knocked_at_on_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rubs is what is measured there."""
    rig = Rig("bench1", effects=replace(PRESETS["default"], stribeck=1.0)).enable().hold(100)
    joints = knocked(monkeypatch)
    for speed in (0.01, -0.01, 0.01):
        rig.mode("velocity", speed)
        rig.step(1500)
    assert not joints


def test_a_stop_ends_a_knock_with_the_next_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, joint = in_a_knock(monkeypatch)
    rig.machine.stop("by a test")
    rig.step()
    assert not rig.wire(joint, "iq_ff_a")[-1]


def test_whoever_takes_the_joint_over_is_not_knocked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, joint = in_a_knock(monkeypatch)
    name = rig.robot.joints[joint].name
    rig.mode("current", 0.05, joints=[name])
    rig.step(200)
    assert rig.wire(joint, "iq_ff_a")[-1] == pytest.approx(0.05, abs=0.01)


def test_inertias_that_nobody_knows_break_nothing() -> None:
    """A robot file may say 0 of a rotor, and nothing of links."""
    robot = load_robot("laas4")
    for number in range(4):
        robot = changed_joint(robot, number, drive={"rotor_inertia_kg_m2": 0.0})
    mock = MockRobot(load_robot("laas4"), calibration_s=0.3, posture_rad=POSTURES["hanging"])
    rig = Rig(robot, has_model=False, mock=mock).enable().home_by_truth().hold(100)
    motion = TrueMotion(rig)
    rig.mode("velocity", 0.02, 0.02, 0.02, 0.02)
    rig.step(1500)

    assert rig.state is State.ACTIVE, rig.machine.reason
    assert np.abs(motion.position_rad()[-1] - motion.position_rad()[0]).min() > 0.01
    assert np.abs(motion.velocity_rad_s()).max() < 0.3


def test_nothing_is_left_of_a_knock_when_its_joint_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bug: the knock went on, and a joint with a dead encoder became 27 rad/s fast."""
    rig, joint = in_a_knock(monkeypatch)
    rig.mode("off")
    rig.step(200)
    assert rig.state is State.READY
    assert not rig.wire(joint, "iq_ff_a")[-1]
    rig.hold(200)
    assert not rig.wire(joint, "iq_ff_a")[-1]


@pytest.mark.parametrize(("speeds", "every"), [((0.01, 0.01), 20), ((0.01, 0.09), 60)])
def test_whoever_says_it_again_does_not_push_a_dead_encoder_on(
    speeds: tuple[float, float], every: int
) -> None:
    """A bug: each time it was led anew, and joint1 became 14 rad/s fast."""
    rig = bent("arm", 1.0, PRESETS["default"])
    motion = TrueMotion(rig)
    rig.outputs[3].encoder.is_frozen = True
    for k in range(2500 // every):
        if rig.state is not State.ACTIVE:
            break
        rig.mode("velocity", speeds[k % 2], joints=["joint4"])
        rig.step(every)
    rig.step(3)
    assert rig.machine.trip_code == "stall"
    assert np.abs(motion.velocity_rad_s()[:, 3]).max() < 2.5


def test_a_motor_that_is_too_weak_for_a_knock_is_not_pushed_for_ever() -> None:
    """A bug: the knock was given up, nothing followed, and joint4 became 35 rad/s fast."""
    robot = changed_joint(load_robot("laas4"), 3, limits={"current_max_a": 1.0})
    rig = Rig(robot, posture_rad=POSTURES["hanging"]).enable().home_by_truth().hold(300)
    motion = TrueMotion(rig)
    rig.outputs[3].encoder.is_frozen = True
    rig.mode("velocity", 0.01, joints=["joint4"])
    rig.until(lambda: rig.state is not State.ACTIVE, cycles=4000)
    assert rig.machine.trip_code == "stall"
    assert np.abs(motion.velocity_rad_s()[:, 3]).max() < 2.0
