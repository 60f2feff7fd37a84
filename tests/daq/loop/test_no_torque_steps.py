"""Whatever is asked of a moving joint: no step in torque, on the wire or in the true current."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from loop_rig import GAINS, Rig

from daq.recording.states import State
from daq.stream import messages as m
from hw_mocks.plants.effects import PRESETS

MODES = ("off", "hold", "position", "velocity", "current", "torque", "play")
SMOOTH = PRESETS["none"]
JUMP_MAX_A = 0.065
"""Between two samples 1 ms apart, without noise and encoder steps. Currents are up to 0.7 A here.

A reference that stood still for a single cycle would already make 5 A/rad · 62 rad/s · 1 ms =
0.3 A, a feed-forward switched off at once 0.45 A.
"""
BLEND_CYCLES = 100
REFERENCE_TOLERANCE_RAD = 2e-3


def moving(**options: object) -> Rig:
    """The bench at 2 rad/s, 62 rad/s at the motor."""
    rig = Rig(effects=SMOOTH, **options).enable()
    rig.mode("velocity", 2.0)
    rig.step(500)
    return rig


def ask(rig: Rig, mode: str) -> None:
    here_rad = rig.tracks[0].reference[0] if mode != "off" else 0.0
    push = -1.0 if rig.axes[0].velocity_rad_s > 3.0 else 1.0  # not beyond the speed limit
    targets = {
        "position": (here_rad + 2.0,),
        "velocity": (3.0,),
        "current": (push * 0.45,),
        "torque": (push * 0.35,),
    }
    if rig.cycle.control.is_playing and mode not in ("off", "hold"):
        rig.send(m.PlayStop())
        rig.step()
    if mode == "play":
        play(rig)
    else:
        rig.mode(mode, *targets.get(mode, ()))


def play(rig: Rig, amplitude_rad: float = 0.3, torque_nm: float | None = None) -> None:
    """A slow swing of every joint from where it is."""
    t = np.arange(0.0, 1.0, 1e-3)[:, None]
    here = np.array([[axis.position_rad for axis in rig.axes]])
    q = here + amplitude_rad * (1.0 - np.cos(math.tau * t))
    dq = amplitude_rad * math.tau * np.sin(math.tau * t) * np.ones_like(here)
    parts = [q, dq]
    if torque_nm is not None:
        parts.append(np.full_like(q, torque_nm))
    rig.upload(np.hstack(parts), has_torque=torque_nm is not None)
    rig.send(m.PlayStart())


def assert_no_step(rig: Rig, since: int, *, jump_max_a: float = JUMP_MAX_A) -> None:
    assert rig.state in (State.READY, State.ACTIVE), rig.machine.reason
    jumps_a = np.abs(np.diff(np.array(rig.iq_a)[since:], axis=0))
    assert jumps_a.max() <= jump_max_a, f"{jumps_a.max():.3f} A in cycle {since + jumps_a.argmax()}"
    for joint in range(len(rig.robot.joints)):
        assert_wire_is_continuous(rig, joint, since)


def assert_wire_is_continuous(rig: Rig, joint: int, since: int) -> None:
    """References go on as their speed says while there are gains; gains slew."""
    gains = {name: rig.wire(joint, name, since) for name in GAINS}
    is_led = gains["kp_a_per_rad"] > 0
    position, speed = (
        rig.wire(joint, name, since) for name in ("motor_position_rad", "motor_velocity_rad_s")
    )
    surprise = np.diff(position) - 0.5e-3 * (speed[1:] + speed[:-1])
    assert np.abs(surprise[is_led[1:] & is_led[:-1]]).max(initial=0.0) < REFERENCE_TOLERANCE_RAD
    highest = {"kp_a_per_rad": 5.0, "kd_a_s_per_rad": 0.3, "ki_a_per_rad_s": 5.0}
    for name, values in gains.items():
        lsb = rig.axes[joint].gains_max[name] / 65535
        assert np.abs(np.diff(values)).max() <= highest[name] / BLEND_CYCLES + 1.5 * lsb


WALK = [
    mode
    for number, first in enumerate(MODES)
    for pair in ((first,), *((first, second) for second in MODES[number + 1 :]))
    for mode in pair
] + [MODES[0]]
"""From every mode to every other, and to itself, once each (a de Bruijn sequence)."""


@pytest.mark.parametrize("cycles", [120, 23, 7], ids=["arrived", "in the middle", "hardly begun"])
def test_from_every_mode_to_every_other(cycles: int) -> None:
    """Also before the gains have arrived anywhere."""
    assert set(itertools.pairwise(WALK)) == set(itertools.product(MODES, MODES))
    rig = moving()
    start, began_rad = rig.now - 2, rig.axes[0].position_rad
    for mode in WALK:
        ask(rig, mode)
        rig.step(cycles)
    rig.step(120)
    assert_no_step(rig, start)
    mean_rad_s = (rig.axes[0].position_rad - began_rad) / ((rig.now - start) * 1e-3)
    assert mean_rad_s > 0.5, "it was moving"


def test_two_changes_between_two_cycles() -> None:
    """A motion that never began leads nowhere: the next one starts where the joint is."""
    rig = Rig(effects=SMOOTH).enable()
    rig.mode("current", 0.4)
    rig.step(300)
    rig.mode("off")
    rig.step(200)
    start = rig.now - 2
    rig.mode("hold")
    rig.mode("position", rig.axes[0].position_rad + 1.0)
    rig.step(1500)
    assert_no_step(rig, start)
    assert rig.axes[0].velocity_rad_s == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("mode", ["hold", "position", "velocity", "play"])
def test_gains_while_moving(mode: str) -> None:
    rig = moving()
    ask(rig, mode)
    rig.step(150)
    start = rig.now - 2
    rig.send(m.SetGains(kp_a_per_rad=(1.0,), kd_a_s_per_rad=(0.02,), ki_a_per_rad_s=(0.0,)))
    rig.step(50)
    halfway = rig.wire(0, "kp_a_per_rad")[-1]
    rig.step(100)
    position_law = mode != "velocity"
    if position_law:
        assert 1.0 < halfway < 5.0
        assert rig.wire(0, "kp_a_per_rad")[-1] == pytest.approx(1.0, abs=1e-3)
        assert rig.wire(0, "kd_a_s_per_rad")[-1] == pytest.approx(0.02, abs=1e-3)
        assert rig.wire(0, "ki_a_per_rad_s")[-1] == 0.0
    rig.send(m.SetGains(kp_a_per_rad=(4.0,)))
    rig.step(150)
    assert_no_step(rig, start)
    if mode == "play":
        assert rig.wire(0, "kp_a_per_rad")[-1] == pytest.approx(4.0, abs=1e-3)


def test_gains_slew_in_a_hundred_equal_parts() -> None:
    rig = Rig().enable().hold()
    before = rig.now
    rig.send(m.SetGains(kp_a_per_rad=(1.0,)))
    rig.step(120)
    kp = rig.wire(0, "kp_a_per_rad", before)
    lsb = rig.axes[0].gains_max["kp_a_per_rad"] / 65535
    expected = np.interp(np.arange(120), [0, 100, 120], [5.0, 1.0, 1.0])
    assert np.abs(kp - expected).max() <= lsb


def test_gains_are_kept_for_the_next_modes() -> None:
    rig = Rig().enable()
    rig.send(m.SetGains(kp_a_per_rad=(1.5,)))
    rig.step(20)
    assert rig.wire(0, "kp_a_per_rad")[-1] == 0.0, "no gains before there is a mode"
    rig.hold()
    assert rig.wire(0, "kp_a_per_rad")[-1] == pytest.approx(1.5, abs=1e-3)


@pytest.mark.parametrize("after", ["off", "hold", "position", "velocity", "current", "torque"])
@pytest.mark.parametrize("later", [1, 60], ids=["at once", "while it fades"])
def test_a_feed_forward_torque_is_left_smoothly(after: str, later: int) -> None:
    """Out of a trajectory with 3 N·m: 3.5 A that must not vanish at once."""
    rig = Rig(effects=SMOOTH).enable().hold(50)
    play(rig, amplitude_rad=0.2, torque_nm=3.0)
    rig.step(600)
    ff_a = rig.wire(0, "iq_ff_a")[-1]
    assert ff_a == pytest.approx(3.0 * rig.axes[0].amperes_per_nm, abs=1e-3)
    start = rig.now - 2
    rig.send(m.PlayStop())
    rig.step(later)
    ask(rig, after)
    rig.step(150)
    steps_a = np.abs(np.diff(rig.wire(0, "iq_ff_a", start)))
    assert steps_a.max() <= (ff_a + 0.5) / BLEND_CYCLES + 2e-3
    if after in ("hold", "position"):  # their motions take the torque along, and fade it out
        rig.until(lambda: rig.tracks[0].is_at_rest)
        rig.step()
    left_a = rig.wire(0, "iq_ff_a")[-1]
    if after == "velocity":  # it is kept: it may be what holds the joint
        assert -0.02 < left_a < ff_a
        rig.step(1000)
        assert rig.wire(0, "iq_ff_a")[-1] == left_a
        assert rig.axes[0].velocity_rad_s == pytest.approx(3.0, rel=0.01)
        return
    wanted_a = {"current": 0.45, "torque": 0.35 * rig.axes[0].amperes_per_nm}.get(after, 0.0)
    assert left_a == pytest.approx(wanted_a, abs=2e-3)


def test_the_arm_under_gravity() -> None:
    """Four joints and 7 A against gravity, with all that a real robot adds."""
    rig = Rig("laas4", posture_rad=(0.2, -1.0, 0.4, 0.6)).enable().home_by_truth().hold(600)
    start = rig.now - 2
    rig.mode("position", -0.9, joints=["joint2"])
    rig.step(300)
    rig.mode("hold")
    rig.step(300)
    rig.send(m.SetGains(joints=("joint2",), kp_a_per_rad=(4.0,)))
    rig.step(300)
    rig.mode("velocity", 0.2, -0.2, 0.2, -0.2)
    rig.step(300)
    rig.mode("hold")
    rig.step(300)
    assert_no_step(rig, start, jump_max_a=0.5)
