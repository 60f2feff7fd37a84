"""After a pause of the computer a motion goes on from where it was, by the plant's true motion.

It catches up inside the limits of speed and acceleration. `arm` advances its reference by itself
during the pause; the other boards hold it, and so brake the joint.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import pytest
from acceptance import only
from loop_rig import Rig
from paused_motion import LateClock, Paused, PausedMotion, patient_arm
from stop_cases import POSTURES

from daq.recording.states import State
from daq.stream import messages as m

pytestmark = pytest.mark.chain

STEP_MAX_A = 1.0
"""Of the true current, per millisecond. A reference that jumped by 101 ms asked for 20 A at once;
undisturbed motions take up to 0.25 A."""
ISAT_SHARE = 0.9
"""Only of motions that take less than `USUAL_SHARE` without a pause."""
USUAL_SHARE = 0.75
LATE_MAX_MS = 800
STANDS_RAD = 0.003
"""A joint that stands so near to where it was led is held where it is."""
PAUSES_MS = (5, 9, 30, 60, 90, 101)


@functools.cache
def undisturbed(case: Paused, acceleration_max_rad_s2: float | None = None) -> PausedMotion:
    robot = patient_arm(acceleration_max_rad_s2=acceleration_max_rad_s2)
    return PausedMotion(dataclasses.replace(case, pause_ms=0), robot)


def check(case: Paused, acceleration_max_rad_s2: float | None = None) -> None:
    usual = undisturbed(dataclasses.replace(case, pause_ms=0), acceleration_max_rad_s2)
    robot = patient_arm(acceleration_max_rad_s2=acceleration_max_rad_s2)
    paused = PausedMotion(case, robot)
    rig, limits = paused.rig, robot.joints[case.joint].limits
    assert not [text for text in rig.event_texts() if "stopped" in text]
    assert paused.fastest_rad_s <= limits.velocity_max_rad_s
    assert paused.step_a <= max(STEP_MAX_A, 1.5 * usual.step_a)
    isat_a = rig.axes[case.joint].isat_a
    if usual.highest_a <= USUAL_SHARE * isat_a:
        assert paused.highest_a <= ISAT_SHARE * isat_a
    assert limits.acceleration_max_rad_s2 is not None
    assert paused.acceleration_rad_s2 <= 1.001 * limits.acceleration_max_rad_s2
    assert paused.reference_step_rad <= 1e-4, "a reference that goes on does not jump"
    if case.kind != "velocity":
        assert paused.end_rad == pytest.approx(usual.end_rad, abs=STANDS_RAD)
        assert paused.rests_after_ms <= usual.rests_after_ms + case.pause_ms + LATE_MAX_MS
        assert abs(paused.error_rad) <= abs(usual.error_rad) + 0.005


SHORT = [
    Paused("arm", 0, "play", 1.0, 1000, 101),
    Paused("arm", 1, "position", 1.0, 80, 90),
    Paused("arm", 1, "play", 0.5, 600, 9),
    Paused("uomodri", 0, "play", 1.0, 600, 101),
    Paused("uomodri", 2, "velocity", 1.0, 600, 5),
    Paused("udriver2", 3, "velocity", 0.5, 250, 101),
    Paused("udriver2", 0, "position", 0.5, 80, 9),
]


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_the_joint_goes_on_and_catches_up(case: Paused) -> None:
    check(case)


BEGAN_MS = {"velocity": (80, 250, 600), "position": (80, 250), "play": (80, 250, 600, 1000)}
MOTIONS = [
    (profile, kind, share, began_ms)
    for profile, kind, share in itertools.product(
        ("arm", "uomodri", "udriver2"), BEGAN_MS, (0.5, 1.0)
    )
    for began_ms in BEGAN_MS[kind]
]


def joint_of(motion: int, pause: int, profile: str, share: float) -> int:
    """Each in turn; but swung up, joint 2 takes more than some motors have without any pause."""
    joint = (motion + pause) % 4
    return 0 if joint == 1 and (profile == "uomodri" or share == 1.0) else joint


EVERYTHING = [
    Paused(profile, joint_of(motion, pause, profile, share), kind, share, began_ms, pause_ms)
    for motion, (profile, kind, share, began_ms) in enumerate(MOTIONS)
    for pause, pause_ms in enumerate(PAUSES_MS)
]


@only
@pytest.mark.parametrize("case", EVERYTHING, ids=str)
def test_after_every_pause(case: Paused) -> None:
    check(case)


@pytest.mark.parametrize("profile", ["arm", "uomodri"])
def test_the_acceleration_of_the_file_is_kept(profile: str) -> None:
    check(Paused(profile, 0, "position", 1.0, 250, 60), acceleration_max_rad_s2=6.0)


@pytest.mark.parametrize("profile", ["arm", "uomodri", "udriver2"])
def test_pauses_that_follow_one_another(profile: str) -> None:
    """The second comes while the first is being caught up with."""
    clock = LateClock()
    rig = Rig(patient_arm(), profile=profile, posture_rad=POSTURES["hanging"], clock=clock)
    rig.enable().home_by_truth().hold(200)
    runner = rig.runner()
    rig.mode("position", 1.2, joints=["joint1"])
    target_rad, before_a = 1.2, 0.0
    for cycle in range(3500):
        if cycle in (200, 205, 240, 300, 310):
            clock.pause = 20
        runner._period(rig.cycle.run)
        current_a = rig.outputs[0].iq_a
        assert clock.pause or abs(current_a - before_a) <= 4.0, "also after a whole pause"
        before_a = current_a
    assert rig.state is State.ACTIVE, rig.machine.reason
    assert rig.cycle.control.is_at_rest
    assert rig.tracks[0].reference[0] == pytest.approx(target_rad, abs=STANDS_RAD)
    assert rig.mock.plant.joint_position_rad[0] == pytest.approx(target_rad, abs=0.01)


@pytest.mark.parametrize("profile", ["arm", "uomodri"])
def test_a_joint_that_is_let_go_in_a_pause_is_not_pulled_back(profile: str) -> None:
    """From a speed to a current: while its gains fade, the reference is where the joint is."""
    clock = LateClock()
    rig = Rig(patient_arm(), profile=profile, posture_rad=POSTURES["hanging"], clock=clock)
    rig.enable().home_by_truth().hold(200)
    runner = rig.runner()
    rig.mode("velocity", 2.0, joints=["joint1"])
    for _ in range(400):
        runner._period(rig.cycle.run)
    rig.mode("current", 0.0, joints=["joint1"])
    for cycle in range(100):
        if cycle == 20:
            clock.pause = 60
        before_a = rig.outputs[0].iq_a
        runner._period(rig.cycle.run)
        if cycle > 20:
            assert abs(rig.outputs[0].iq_a - before_a) <= STEP_MAX_A
    assert rig.state is State.ACTIVE, rig.machine.reason
    assert rig.mock.plant.motor_velocity_rad_s[0] >= -0.5


def test_homing_goes_on_after_a_pause() -> None:
    """A search only takes longer; what its board has led on meanwhile is led back smoothly."""
    clock = LateClock()
    rig = Rig(patient_arm(), posture_rad=POSTURES["hanging"], clock=clock).enable()
    rig.hold(100)
    control = rig.cycle.control
    rig.send(m.Home())
    runner = rig.runner()
    cycle = 0
    while control.homing is not None and cycle < 60_000:
        if cycle in (300, 900):
            clock.pause = 90
        before_a = [output.iq_a for output in rig.outputs]
        runner._period(rig.cycle.run)
        if cycle not in (300, 900):
            steps = zip(rig.outputs, before_a, strict=True)
            assert max(abs(output.iq_a - iq_a) for output, iq_a in steps) <= STEP_MAX_A
        cycle += 1
    assert rig.state is State.ACTIVE, rig.machine.reason
    assert all(axis.is_homed for axis in rig.axes)


def homed(pause_at: int) -> tuple[Rig, int, float]:
    """An arm that homes, paused in a cycle; when that was over, and the longest step after it."""
    clock = LateClock()
    posture_rad = (*POSTURES["hanging"][:3], 0.6)
    rig = Rig(patient_arm(), posture_rad=posture_rad, clock=clock).enable()
    rig.hold(100)
    control, runner, track = rig.cycle.control, rig.runner(), rig.tracks[3]
    rig.send(m.Home())
    cycle = 0
    while control.homing is not None and cycle < 60_000:
        clock.pause = 90 if cycle == pause_at else 0
        runner._period(rig.cycle.run)
        cycle += 1
    longest_rad, before_rad = 0.0, track.reference[0]
    for _ in range(500):
        runner._period(rig.cycle.run)
        longest_rad = max(longest_rad, abs(track.reference[0] - before_rad))
        before_rad = track.reference[0]
    assert rig.state is State.ACTIVE, rig.machine.reason
    return rig, cycle, longest_rad


def test_a_zero_that_is_found_while_a_joint_catches_up_moves_nothing() -> None:
    _, end, _ = homed(-1)
    rig, again, longest_rad = homed(end - 50)
    assert again == end
    assert longest_rad <= 1e-4
    assert rig.tracks[3].reference[0] == pytest.approx(rig.axes[3].position_rad, abs=0.005)
