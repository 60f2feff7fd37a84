"""Near the wrap of the wire: refused, stopped in time or brought back; never a runaway.

Boards take the plain difference of reference and position, so a reference that wraps before the
rotor does makes the motor run away. Judged by what the plant really does.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
import pytest
from acceptance import IS_LONG, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_rig import Rig, assert_safe_stop, changed_joint, refused_for
from wire_places import WRAP_TURNS, check_references, push, put_on_wire, true_rad_s, wire_turns

from daq.boards.wire_range import wire_range
from daq.loop.io.axis import Law
from daq.loop.schedule import Chore
from daq.loop.tracks import homing
from daq.recording.states import Mode, State
from daq.robot import load_robot
from daq.stream import messages as m
from daq.stream.errors import RefusedError
from firmware_protocol.profiles import PROFILES
from hw_mocks.clock import VirtualClock

BENCH = load_robot("bench1")
GEAR = BENCH.joints[0].drive.gear_reduction
LIMIT_RAD_S = BENCH.joints[0].limits.velocity_max_rad_s
STARTS = 500 if IS_LONG else 50
profiles = pytest.mark.parametrize("profile", PROFILES)


def at(profile: str, turns: float, **options: object) -> Rig:
    """A rig whose motor reads so many turns before the positive wrap, or the negative one."""
    rig = Rig(profile=profile, **options).enable()
    put_on_wire(rig, math.copysign(WRAP_TURNS[profile] - abs(turns), turns))
    return rig


# --- random starts --------------------------------------------------------------------------------


class Start(NamedTuple):
    """A start from which the wrap would be crossed within a second."""

    profile: str
    mode: str
    sign: float
    speed_rad_s: float
    coasting_rad_s: float
    turns: float

    @classmethod
    def draw(cls, number: int) -> Start:
        chance = random.Random(number)
        speed_rad_s = chance.uniform(0.2, 0.9) * LIMIT_RAD_S
        coasting_rad_s = chance.choice([0.0, 0.0, chance.uniform(0.5, 4.0)])
        modes = ["velocity", "velocity", "position"]
        if coasting_rad_s:
            modes.append("hold")  # at rest nothing would be crossed
        mode = chance.choice(modes)
        way_turns = (coasting_rad_s if mode == "hold" else speed_rad_s) * GEAR / math.tau
        return cls(
            list(PROFILES)[number % len(PROFILES)],
            mode,
            chance.choice([1.0, -1.0]),
            speed_rad_s,
            coasting_rad_s,
            chance.uniform(0.02, way_turns),
        )


def drive(start: Start) -> str:
    """Try it for a second; how it ended."""
    rig = Rig(profile=start.profile, seed=int(start.turns * 1e6))
    rig.step(10)
    rig.enable()
    if start.coasting_rad_s:
        push(rig, start.sign * start.coasting_rad_s)
        rig.step(110)
    put_on_wire(rig, start.sign * (WRAP_TURNS[start.profile] - start.turns))
    began, before_rad_s = rig.now, abs(true_rad_s(rig))
    axis, target = (
        rig.axes[0],
        {
            "velocity": start.sign * start.speed_rad_s,
            "position": rig.axes[0].position_rad
            + start.sign * (start.turns + 1.0) * math.tau / GEAR,
            "hold": None,
        }[start.mode],
    )
    ending = "held"
    try:
        rig.mode(start.mode, *(() if target is None else (target,)))
    except RefusedError as error:
        assert (error.code, error.reason) == ("out-of-limit", "wrap"), error
        ending = "refused"
    fastest_rad_s = 0.0
    for _ in range(1000):
        rig.step()
        fastest_rad_s = max(fastest_rad_s, abs(true_rad_s(rig)))
    commanded_rad_s = np.abs(rig.wire(0, "motor_velocity_rad_s", began)).max() / GEAR
    assert fastest_rad_s <= max(commanded_rad_s, before_rad_s) + 0.05 * LIMIT_RAD_S
    check_references(rig)
    if ending == "refused":
        assert rig.machine.trip_code == ""
        return ending
    assert rig.state is State.ACTIVE, rig.machine.reason
    if start.mode == "velocity":
        assert rig.tracks[0].mode is Mode.HOLD
        assert [event.source for event in rig.events_of("wrap")] == ["joint1"]
        ending = "stopped"
    # Friction may hold the rotor a little beyond its reference.
    assert abs(wire_turns(rig)) * math.tau < axis.wire.fence_rad + 0.1
    assert start.sign * wire_turns(rig) > 0.0
    return ending


@pytest.mark.acceptance
@profiles
def test_random_starts_that_would_cross_within_a_second(profile: str) -> None:
    starts = [Start.draw(number) for number in range(STARTS)]
    endings = {drive(start) for start in starts if start.profile == profile}
    assert endings >= {"refused", "stopped"}
    assert endings <= {"refused", "stopped", "held"}


# --- each kind of motion --------------------------------------------------------------------------


@profiles
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_constant_speed_stops_before_its_range_ends(profile: str, sign: float) -> None:
    rig = at(profile, 30.0 * sign)
    rig.mode("velocity", 5.0 * sign)
    rig.until(lambda: rig.tracks[0].mode is Mode.HOLD, cycles=3000)
    rig.until(lambda: rig.tracks[0].is_at_rest)
    rig.step(200)
    assert rig.state is State.ACTIVE
    assert abs(wire_turns(rig)) * math.tau <= rig.axes[0].wire.reach_rad
    (event,) = rig.events_of("wrap")
    assert (event.severity, event.source) == ("info", "joint1")
    with refused_for("out-of-limit", "wrap", "joint1"):
        rig.mode("velocity", 5.0 * sign)
    rig.mode("velocity", -5.0 * sign)
    rig.step(2000)
    assert rig.tracks[0].mode is Mode.VELOCITY, "back is always free"
    check_references(rig)


@profiles
def test_beyond_the_fence_nothing_is_held_and_current_leads_back(profile: str) -> None:
    rig = at(profile, 0.5)
    for mode in ("hold", "velocity", "position"):
        with refused_for("out-of-limit", "wrap", "joint1"):
            rig.mode(mode, *(() if mode == "hold" else (0.1,)))
    assert rig.state is State.READY
    push(rig, -3.0)
    rig.until(lambda: abs(wire_turns(rig)) * math.tau < rig.axes[0].wire.fence_rad, cycles=2000)
    rig.mode("hold")
    rig.step(500)
    assert rig.state is State.ACTIVE and abs(true_rad_s(rig)) < 0.01
    check_references(rig)


def test_a_joint_that_coasts_beyond_the_fence_can_still_be_disabled() -> None:
    rig = at("arm", 30.0)
    push(rig, 3.0)
    put_on_wire(rig, 127.5)
    rig.send(m.Disable())
    assert rig.state is State.STOPPING, "at once"
    decided = rig.now - 1
    rig.end_stop()
    assert rig.state is State.IDLE
    assert rig.machine.trip_code == ""
    assert_safe_stop(rig, decided, longest_s=0.6)
    check_references(rig)


def far_arm(turns: float) -> Rig:
    """The arm, homed, whose first motor reads so many turns more than it should."""
    rig = Rig("laas4").enable()
    put_on_wire(rig, turns)
    return rig.home_by_truth()


def test_a_trajectory_that_would_wrap_is_refused_before_it_begins() -> None:
    rig = far_arm(105.0)
    rows = np.zeros((2001, 8))
    t = np.linspace(0.0, 1.0, 2001)
    rows[:, 0] = 4.0 * t**3 * (10.0 + t * (6.0 * t - 15.0))
    rows[:, 4] = 2.0 * 30.0 * t**2 * (1.0 - t) ** 2
    rows[:, :4] += [track.axis.position_rad for track in rig.tracks]
    rig.upload(rows)
    with refused_for("out-of-limit", "wrap", "joint1"):
        rig.send(m.PlayStart())
    assert not rig.cycle.control.is_playing and rig.state is State.READY
    other = far_arm(0.0)
    other.upload(rows)
    other.send(m.PlayStart())
    assert other.cycle.control.is_playing


def test_homing_needs_room_on_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homing, "SPEED_RAD_S", 8.0)  # how fast is not what is looked at
    rig = Rig("laas4").enable()
    reach_turns = rig.axes[0].wire.reach_rad / math.tau
    put_on_wire(rig, reach_turns - 0.5)
    with refused_for("out-of-limit", "wrap", "joint1"):
        rig.send(m.Home())
    put_on_wire(rig, reach_turns - 1.5)
    rig.send(m.Home())
    rig.until(lambda: rig.cycle.control.homing is None)
    assert all(axis.is_homed for axis in rig.axes)
    check_references(rig)


def test_a_move_back_from_the_margin_is_free() -> None:
    rig = at("uomodri", 30.0)
    wire = rig.axes[0].wire
    put_on_wire(rig, 0.5 * (wire.reach_rad + wire.fence_rad) / math.tau)
    here_rad = rig.axes[0].position_rad
    with refused_for("out-of-limit", "wrap", "joint1"):
        rig.mode("position", here_rad + 0.05)
    rig.mode("position", here_rad - 1.0)
    rig.until(lambda: rig.tracks[0].is_at_rest)
    rig.step(300)
    assert rig.axes[0].position_rad == pytest.approx(here_rad - 1.0, abs=0.02)
    check_references(rig)


class LateClock(VirtualClock):
    """Skips up to eight periods now and then, or in every cycle for a while."""

    chance: random.Random | None = None
    has_burst = False

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        if self.chance is not None:
            if self.chance.random() < 0.02:
                self.has_burst = not self.has_burst
            self.advance_ns(self.chance.randint(0, 8) * self.has_burst * 1_000_000)


@profiles
@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(10 if IS_LONG else 2))
def test_skipped_periods_do_not_carry_a_speed_over_the_wrap(profile: str, seed: int) -> None:
    """It stops in time, or at the fence if a burst came at the wrong moment."""
    clock = LateClock()
    rig = at(profile, 35.0, clock=clock)
    rig.cycle._budget._allowed = 10**9
    rig.mode("velocity", 5.0)
    clock.chance = random.Random(seed)
    seen: list[tuple[float, float]] = []

    def is_over() -> bool:
        seen.append((abs(true_rad_s(rig)), wire_turns(rig)))
        return rig.tracks[0].mode is not Mode.VELOCITY and rig.tracks[0].is_at_rest

    rig.runner(is_over=is_over, duration_ns=4 * 10**9).run()
    speeds, turns = zip(*seen, strict=True)
    assert max(speeds) < LIMIT_RAD_S, "references that come in jumps make it overshoot, no more"
    assert rig.machine.trip_code in ("", "wrap")
    assert rig.cycle.skipped > 50 and max(turns) > WRAP_TURNS[profile] - 25.0
    assert min(turns) > 0.0
    check_references(rig)


# --- the last fence -------------------------------------------------------------------------------


@profiles
def test_a_reference_that_nobody_checked_ends_without_stiffness(profile: str) -> None:
    """Whatever plans wrongly: no stiffness beyond the fence, then a safe stop."""
    rig = at(profile, 30.0)
    rig.mode("velocity", 5.0)
    rig.step(400)
    wire, fastest_rad_s = rig.axes[0].wire, 0.0
    rig.cycle.schedule[Chore.FOLLOWING] = lambda: None  # nobody looks ahead
    rig.until(lambda: rig.axes[0].is_fenced, cycles=3000)
    for _ in range(300):
        rig.step()
        fastest_rad_s = max(fastest_rad_s, abs(true_rad_s(rig)))
    assert abs(wire_turns(rig)) > wire.fence_rad / math.tau or wire_turns(rig) < 0.0
    assert fastest_rad_s < 5.0 + 0.05 * LIMIT_RAD_S
    check_references(rig)


def test_the_fence_stops_the_robot() -> None:
    rig = at("arm", 30.0)
    put_on_wire(rig, rig.axes[0].wire.fence_rad / math.tau - 0.1)
    rig.hold()
    rig.tracks[0].lead(rig.axes[0].fence_rad[1] + 0.01, 2.0, 0.0)
    assert rig.axes[0].is_fenced
    rig.until(lambda: rig.state is State.STOPPING, cycles=25)
    assert rig.machine.trip_code == "wrap"
    tripped = rig.now - 1
    rig.end_stop()
    assert rig.state is State.FAULT
    assert_safe_stop(rig, tripped, longest_s=0.6)
    rig.send(m.Reset())
    rig.step(20)
    rig.enable()
    assert not rig.axes[0].is_fenced
    check_references(rig)


def test_a_rotor_that_is_pushed_over_the_wrap_loses_its_stiffness_at_once() -> None:
    rig = at("uomodri", 30.0)
    rig.hold()
    begun = rig.now
    encoder = rig.outputs[0].encoder
    for turns in (127.9, 128.1):
        encoder._zero_rad = encoder.angle_rad - turns * math.tau
        encoder._place_origin()
        rig.step(2)
    rig.step()
    gains = rig.wire(0, "kp_a_per_rad", begun)
    assert gains[0] > 0.0 and gains[-1] == 0.0
    rig.until(lambda: rig.state is State.STOPPING, cycles=20)
    check_references(rig)


RIGS = {name: Rig(profile=name) for name in PROFILES}
laws = st.builds(
    Law,
    st.sampled_from([0.0, 1e-4, 2.0, 5.0]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 3.0]),
    st.floats(-9.0, 9.0),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("refer"), st.floats(-500.0, 500.0)),
        st.tuples(st.just("obey"), laws),
        st.tuples(st.just("wrap"), st.sampled_from([-1, 1])),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=examples(200))
@given(profile=st.sampled_from(list(PROFILES)), steps=steps)
def test_no_order_of_writing_makes_a_stiff_reference_beyond_the_fence(
    profile: str, steps: list[tuple[str, object]]
) -> None:
    """References are what they should be modulo the wire's range, and stiff only inside."""
    axis = RIGS[profile].axes[0]
    raws, span_rad = axis._raws, 2.0 * axis.wire.wrap_rad
    axis.forget_home()
    axis.obey(Law())
    for what, value in steps:
        if what == "refer":
            axis.refer(value, 0.0)
            wanted_rad = value * axis.motor_per_joint - axis.motor_offset_rad
            written_rad = raws[axis._reference_at] * axis._lsb_rad
            assert -axis.wire.wrap_rad <= written_rad < axis.wire.wrap_rad
            if profile != "udriver2":
                ranges = (written_rad - wanted_rad) / span_rad
                assert ranges == pytest.approx(round(ranges), abs=1e-6)
        elif what == "obey":
            was_stiff = value.kp_a_per_rad or (axis.has_integrator and value.ki_a_per_rad_s)
            axis.is_fenced = False
            axis.obey(value)
            is_inside = abs(raws[axis._reference_at]) <= axis._fence_raw
            assert axis.is_fenced is bool(was_stiff and not is_inside)
        else:
            axis._unwrap(value * axis._span_raw)
        is_stiff = raws[axis._kp_at] or (axis.has_integrator and raws[axis._ki_at])
        assert not is_stiff or abs(raws[axis._reference_at]) <= axis._fence_raw


def test_the_margin_covers_what_can_happen() -> None:
    robot = changed_joint(BENCH, 0, limits={"velocity_max_rad_s": 4.0})
    for name, profile in PROFILES.items():
        wire = wire_range(robot, robot.joints[0], profile.behaviour)
        motor_rad_s = 4.0 * GEAR
        assert wire.wrap_rad == pytest.approx(WRAP_TURNS[name] * math.tau)
        strays_rad = robot.safety.following_error_max_rad * GEAR + 0.06 * motor_rad_s
        assert wire.wrap_rad - wire.fence_rad == pytest.approx(strays_rad)
        timeout_s = 1e-3 * robot.boards[0].command_timeout_ms
        assert wire.fence_rad - wire.reach_rad == pytest.approx((0.1 + timeout_s) * motor_rad_s)
