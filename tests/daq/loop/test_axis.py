"""From the wire to the joint and back, by independent arithmetic; turns are never lost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loop_rig import Rig, changed_joint, for_cycles, refused_for, silent, with_values
from wire_places import WRAP_TURNS, check_references, push, put_on_wire, wire_turns

from daq.errors import ConfigError
from daq.recording.states import State
from daq.robot import load_robot
from daq.robot.description import Robot
from daq.stream.errors import RefusedError
from hw_mocks.plants.effects import PRESETS


def odd_bench() -> Robot:
    """Turned around, with an offset and losses: nothing is 1."""
    drive = {
        "direction": -1,
        "gear_reduction": 27.5,
        "joint_offset_rad": 0.4,
        "gear_efficiency": 0.8,
    }
    return changed_joint(load_robot("bench1"), 0, drive=drive)


def test_joint_side_values() -> None:
    rig = Rig(odd_bench()).enable()
    rig.mode("velocity", 1.5)
    rig.step(700)
    axis, reply = rig.axes[0], rig.replies()[-1]
    assert axis.position_rad == pytest.approx(0.4 - reply.motor_position_rad[0] / 27.5)
    assert axis.velocity_rad_s == pytest.approx(-reply.motor_velocity_rad_s[0] / 27.5)
    assert axis.velocity_rad_s == pytest.approx(1.5, abs=0.05)
    assert reply.motor_velocity_rad_s[0] < -40.0
    status = rig.loop.status().joints[0]
    k_i = 1.5 / math.sqrt(3) * 60 / math.tau / 300.0  # 300 rpm/V
    assert status.torque_nm == pytest.approx(-k_i * reply.iq_a[0] * 27.5 * 0.8)
    assert status.position_rad == axis.position_rad


def test_joint_side_commands() -> None:
    rig = Rig(odd_bench()).enable()
    rig.mode("position", 1.4)
    rig.until(lambda: rig.tracks[0].is_at_rest)
    rig.step()
    # Joint = offset - motor / 27.5.
    assert rig.wire(0, "motor_position_rad")[-1] == pytest.approx((0.4 - 1.4) * 27.5, abs=1e-4)
    rig.mode("torque", 0.2)
    rig.step(120)
    k_i = 1.5 / math.sqrt(3) * 60 / math.tau / 300.0
    expected_a = -0.2 / (k_i * 27.5 * 0.8)
    assert rig.wire(0, "iq_ff_a")[-1] == pytest.approx(expected_a, abs=2**-10)
    rig.mode("current", 0.25)
    rig.step(120)
    assert rig.wire(0, "iq_ff_a")[-1] == pytest.approx(0.25, abs=2**-10), "at the motor"


def coast_to_the_edge(rig: Rig, profile: str, sign: float) -> float:
    """Coast without gains, two motor turns before the wrap; the joint's zero, in the plant."""
    push(rig, sign * 4.0)
    put_on_wire(rig, sign * (WRAP_TURNS[profile] - 2.0))
    rig.until(lambda: not rig.cycle.units[0].missed)
    return rig.mock.plant.joint_position_rad[0] - rig.axes[0].position_rad


@pytest.mark.parametrize(
    ("profile", "sign"), [("arm", 1.0), ("arm", -1.0), ("uomodri", 1.0), ("udriver2", -1.0)]
)
def test_turns_are_counted_over_the_rollover(profile: str, sign: float) -> None:
    """Past the end of the wire's range and back without gains, and held on the other side."""
    rig = Rig(profile=profile, effects=PRESETS["none"]).enable()
    zero_rad = coast_to_the_edge(rig, profile, sign)
    edge_rad = WRAP_TURNS[profile] * math.tau / 31.0

    def is_beyond() -> bool:
        true_rad = rig.mock.plant.joint_position_rad[0] - zero_rad
        # A reply is a cycle old, at udriver2 up to two.
        assert rig.axes[0].position_rad == pytest.approx(true_rad, abs=0.015)
        return abs(true_rad) > edge_rad

    rig.until(is_beyond, cycles=400)
    push(rig, -4.0 * sign)
    rig.until(lambda: not is_beyond(), cycles=400)
    push(rig, 4.0 * sign)
    rig.until(is_beyond, cycles=400)
    rig.step(50)
    inwards_turns = rig.axes[0].wire.wrap_rad / math.tau - abs(wire_turns(rig))
    assert sign * wire_turns(rig) < 0.0 and inwards_turns < 8.0
    rig.mode("current", 0.15 * sign)
    fence_turns = rig.axes[0].wire.fence_rad / math.tau
    rig.until(lambda: abs(wire_turns(rig)) < fence_turns, cycles=2000)
    rig.mode("hold")
    rig.until(lambda: rig.tracks[0].is_at_rest)
    rig.step(300)
    assert is_beyond()
    true_rad = rig.mock.plant.joint_position_rad[0] - zero_rad
    assert rig.axes[0].position_rad == pytest.approx(true_rad, abs=0.006), "zero read at speed"
    assert rig.tracks[0].reference[0] == pytest.approx(true_rad, abs=0.02)
    wire_rad = np.array([reply.motor_position_rad[0] for reply in rig.replies()])
    rollovers = np.flatnonzero(np.abs(np.diff(wire_rad)) > math.tau * WRAP_TURNS[profile])
    assert len(rollovers) == 3
    check_references(rig)


@pytest.mark.parametrize(("gap", "sign"), [(1, 1.0), (5, -1.0), (19, 1.0), (19, -1.0)])
@pytest.mark.parametrize("late", [-1, 0, 1], ids=["before", "across", "after"])
def test_lost_replies_around_the_rollover(gap: int, sign: float, late: int) -> None:
    rig = Rig(effects=PRESETS["none"]).enable()
    zero_rad = coast_to_the_edge(rig, "arm", sign)
    begin_rad = 128 * math.tau / 31.0 - 4e-3 * (gap / 2 - late * gap)
    rig.until(lambda: abs(rig.axes[0].position_rad) >= begin_rad, cycles=700)
    rig.links[0].tamper = for_cycles(gap, silent)
    for cycles in (gap + 2, 50):
        rig.step(cycles)
        true_rad = rig.mock.plant.joint_position_rad[0] - zero_rad
        assert rig.axes[0].position_rad == pytest.approx(true_rad, abs=0.015)


def test_dropped_exchanges_lose_no_turn() -> None:
    """The board gets no command either; 5 % of all exchanges, back and forth over the edge."""
    rig = Rig(effects=PRESETS["none"], faults=["drop:rate=0.05"])
    rig.step(3)
    rig.until(lambda: not rig.cycle.units[0].missed)
    rig.enable()
    zero_rad = coast_to_the_edge(rig, "arm", 1.0)
    for speed in (0.0, -4.0, 4.0) * 2:
        if speed:
            push(rig, speed)
        rig.step(150)
        rig.until(lambda: not rig.cycle.units[0].missed)
        assert rig.state is State.ACTIVE, rig.machine.reason
        true_rad = rig.mock.plant.joint_position_rad[0] - zero_rad
        assert rig.axes[0].position_rad == pytest.approx(true_rad, abs=0.015)
    wire_rad = np.array([reply.motor_position_rad[0] for reply in rig.replies() if reply])
    assert np.count_nonzero(np.abs(np.diff(wire_rad)) > 200.0 * math.tau) >= 3
    assert rig.boards[0].counters.lost_replies > 30


def test_a_velocity_beyond_the_wire_is_clamped() -> None:
    rig = Rig().enable()
    axis = rig.axes[0]
    for sign in (1, -1):
        axis.refer(0.0, sign * 1e9)
        rig.step()
        assert sign * rig.wire(0, "motor_velocity_rad_s")[-1] > 1000.0


@pytest.mark.parametrize(
    ("current_max_a", "isat_a"),
    [(9.0, 9.0), (8.99, 8.875), (0.3, 0.25), (0.125, 0.125)],
)
def test_isat_is_rounded_down(current_max_a: float, isat_a: float) -> None:
    limits = {"current_max_a": current_max_a, "torque_max_nm": 50.0}
    robot = changed_joint(load_robot("bench1"), 0, limits=limits)
    rig = Rig(robot)
    rig.step(3)
    assert rig.wire(0, "isat_a").tolist() == [isat_a] * 3
    rig.enable()
    with pytest.raises(RefusedError, match=f"limit {current_max_a:.4g} A") as refusal:
        rig.mode("current", current_max_a * 1.01)
    assert refusal.value.reason == "current-limit"


@pytest.mark.parametrize(
    ("torque_max_nm", "isat_a"), [(50.0, 9.0), (7.5, 8.75), (1.0, 1.125), (0.2, 0.125)]
)
def test_isat_keeps_to_the_torque_limit(torque_max_nm: float, isat_a: float) -> None:
    """31 · 0.0276 N·m/A at the joint: 6.1 N·m used to be applied where 1 was written."""
    robot = changed_joint(load_robot("bench1"), 0, limits={"torque_max_nm": torque_max_nm})
    rig = Rig(robot)
    rig.step(3)
    nm_per_a = abs(rig.axes[0].nm_per_a)
    assert nm_per_a == pytest.approx(31.0 * 0.02757, rel=1e-3)
    assert rig.wire(0, "isat_a").tolist() == [isat_a] * 3
    assert isat_a * nm_per_a <= torque_max_nm
    assert rig.axes[0].current_max_a == pytest.approx(min(9.0, torque_max_nm / nm_per_a))
    rig.enable()
    for mode, beyond, reason in (
        ("current", 1.01 * rig.axes[0].current_max_a, "current-limit"),
        ("torque", 1.01 * torque_max_nm, "torque-limit"),
    ):
        with refused_for("out-of-limit", reason, "joint1"):
            rig.mode(mode, beyond)
    rig.mode("current", 0.999 * rig.axes[0].current_max_a)
    rig.step(200)
    assert abs(rig.wire(0, "iq_ff_a")[-1]) * nm_per_a <= torque_max_nm


def test_isat_is_never_the_boards_own_limit() -> None:
    robot = changed_joint(load_robot("bench1"), 0, limits={"current_max_a": 0.124})
    with pytest.raises(ConfigError) as caught:
        Rig(robot)
    (problem,) = caught.value.problems
    assert "0.124 A" in problem and "0.125 A" in problem


def test_isat_is_rounded_up_rather_than_to_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody checked the robot file."""
    monkeypatch.setattr("daq.loop.setup.wire_problems", lambda *_, **__: [])
    robot = changed_joint(load_robot("bench1"), 0, limits={"current_max_a": 0.124})
    rig = Rig(robot)
    rig.step(3)
    assert rig.wire(0, "isat_a").tolist() == [0.125] * 3


def test_isat_keeps_to_the_boards_own_limit() -> None:
    limits = {"current_max_a": 15.0, "torque_max_nm": 50.0}
    robot = changed_joint(load_robot("bench1"), 0, limits=limits)
    rig = Rig(robot, profile="uomodri")
    rig.step(3)
    assert rig.wire(0, "isat_a").tolist() == [10.0] * 3
    assert rig.axes[0].current_max_a == 10.0


def test_two_motors_of_a_board_do_not_mix() -> None:
    rig = Rig("laas4", profile="udriver2")
    rig.step(3)
    isat_a = [rig.wire(joint, "isat_a")[-1] for joint in range(4)]
    assert isat_a == [20.0, 16.0, 9.0, 16.0]


def test_the_temperature_of_a_motor_without_a_sensor_is_unknown() -> None:
    rig = Rig()
    rig.links[0].tamper = with_values(rig.profiles[0], 0, winding_temperature_degc=math.nan)
    rig.step(5)
    assert rig.loop.status().joints[0].winding_temperature_degc is None
    rig.links[0].tamper = None
    rig.step(5)
    assert rig.loop.status().joints[0].winding_temperature_degc == pytest.approx(25.0, abs=1.0)
