"""The bench test on the loop, in virtual time: what it drives, how it ends, and that it stops."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import loop_rig
import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import ES, Rig, refused_for, with_friction

from daq.bench import plan as plan_module
from daq.bench import run as run_module
from daq.bench.plan import (
    PART_BEGINS,
    BenchPlan,
    PlannedPlateau,
    SweepOverrides,
    make_plan,
    run_up_rad,
)
from daq.bench.run import BenchRun
from daq.loop.schedule import Chore
from daq.loop.tracks import homing
from daq.loop.tracks.track import Track
from daq.motion import planning
from daq.recording.bench_events import PLATEAU_DATA, BenchHeader, LoadArm, PlateauData
from daq.recording.states import Mode, State
from daq.robot import parse_robot, robot_text
from daq.robot.editing.edit import bench_text, with_velocity_gains
from daq.samples.columns import ColumnDecoder
from daq.stream import messages as m
from hw_mocks.boards.motor_output import MotorState
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import parse_effects
from hw_mocks.plants.load_arm import MockLoadArm

pytestmark = pytest.mark.chain

JOINT = "joint3"
FRICTION_A = 0.122 / 31.0 / (1.5 / math.sqrt(3.0) * 60.0 / math.tau / 300.0)
"""Of that joint, as the robot file and the mock have it."""
LIMITS = "torque_max_nm = 50.0\ncurrent_max_a = 9.0\n"
QUICK: dict[str, Any] = {
    "speeds": 2,
    "repetitions": 1,
    "dwell_s": 0.2,
    "speed_min_rad_s": 1.0,
}
ORDER = {
    "bench-plateau": ("bench-settled", "bench-unsettled"),
    "bench-settled": ("bench-plateau-end",),
    "bench-ramp": ("bench-ramp-end",),
    "bench-step": ("bench-step-end",),
    "bench-swing": ("bench-swing-end",),
}
"""What must follow."""


class Bench:
    """A bench test on a rig, run to its end.

    Attributes:
        speeds_rad_s: Of the joint, as measured, in every cycle.
        positions_rad: Where the mock's joints really were.
        lines: What a log would show.
    """

    def __init__(
        self,
        directory: Path,
        *,
        changes: dict[str, str] | None = None,
        wishes: dict[str, Any] | None = None,
        edit: Callable[[BenchPlan], BenchPlan] = lambda plan: plan,
        kind: str = "free",
        friction: float = 1.0,
        **options: Any,
    ) -> None:
        text = robot_text("laas4")
        for old, new in (changes or {}).items():
            assert old in text
            text = text.replace(old, new)
        robot = parse_robot(text, "laas4")
        self.joint = next(joint for joint in robot.joints if joint.name == JOINT)
        asked = SweepOverrides(**(QUICK | (wishes or {})))
        plan = make_plan(
            robot,
            self.joint,
            asked,
            seed=1,
            is_mounted=kind == "mounted",
            is_reference_held=options.get("profile", "arm") != "arm",
            load_arm=LoadArm(mass_kg=1.0, length_m=0.2) if kind == "load_arm" else None,
        )
        if kind == "free":
            plan = msgspec.structs.replace(plan, breakaways=2, steps=2)
        self.plan = plan = edit(plan)
        if kind == "mounted":
            text = with_velocity_gains(text, JOINT, plan.gains)
        else:
            text = bench_text(text, JOINT, gains=plan.gains if kind == "free" else None)
        path = directory / "bench.toml"
        path.write_text(text)
        if friction != 1.0:
            truly = with_friction(parse_robot(text, "laas4"), friction)
            profile = options.get("profile")
            options["mock"] = MockRobot(truly, profile=profile, calibration_s=0.1)
        self.rig = Rig(str(path), **options)
        limit_rad = robot.safety.following_error_max_rad
        self.run = BenchRun(self.rig.loop, plan, following_error_max_rad=limit_rad)
        self.rig.cycle.schedule[Chore.AGENDA] = self.run.step
        self.number = [joint.name for joint in self.rig.robot.joints].index(JOINT)

    def drive(self, *, seconds: float = 60.0) -> Bench:
        """To its end, as the daemon does it."""
        rig, axis = self.rig, self.rig.axes[self.number]
        speeds: list[float] = []
        positions: list[float] = []

        def is_over() -> bool:
            speeds.append(axis.velocity_rad_s)
            positions.append(rig.mock.plant.joint_position_rad[self.number])
            return self.run.is_over

        rig.runner(ends_on_fault=True, is_over=is_over, duration_ns=round(seconds * 1e9)).run()
        self.speeds_rad_s, self.positions_rad = np.array(speeds), np.array(positions)
        self.check_stopped()
        return self

    def check_stopped(self) -> None:
        """Whatever happened, no motor is driven, and the boards were told so."""
        assert self.run.is_over
        assert self.rig.state in (State.IDLE, State.FAULT)
        assert all(track.mode is Mode.OFF for track in self.rig.tracks)
        for board in range(len(self.rig.boards)):
            assert all(command.mode & ES == 0 for command in self.rig.commands(board)[-2:])
        self.rig.step(20)  # the boards' own time-out, where a wire was cut
        driven = (MotorState.CALIBRATING, MotorState.RUNNING)
        assert not any(output.state in driven for output in self.rig.outputs)

    @property
    def kinds(self) -> list[str]:
        """Of the test's own events, in their order."""
        kinds = [event.kind for event in self.rig.events if event.kind.startswith("bench-")]
        return [kind for kind in kinds if kind != PLATEAU_DATA]

    @property
    def data(self) -> list[PlateauData]:
        """What the recording says of the plateaus, for programs."""
        return [msgspec.json.decode(text, type=PlateauData) for text in self.texts(PLATEAU_DATA)]

    def texts(self, kind: str) -> list[str]:
        return [event.text for event in self.rig.events if event.kind == kind]


def check_order(kinds: list[str]) -> None:
    """Every part that begins ends before another one begins."""
    for number, kind in enumerate(kinds[:-1]):
        if kind in ORDER and kinds[number + 1] != "bench-problem":
            assert kinds[number + 1] in ORDER[kind], kinds[number:]


# --- a whole test ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("whole")).drive()


@pytest.mark.acceptance
@pytest.mark.parametrize("profile", ["arm", "uomodri", "udriver2"] if IS_LONG else ["arm"])
def test_twice_the_friction_of_the_file_is_nothing_to_stop_for(
    tmp_path: Path, profile: str
) -> None:
    """The whole bench as it is by default; in short its fewest speeds, ramps and steps."""
    everything: dict[str, Any] = dict.fromkeys(QUICK) if IS_LONG else {}
    bench = Bench(tmp_path, wishes=everything, friction=2.0, profile=profile)
    bench.drive(seconds=300.0 if IS_LONG else 60.0)

    assert bench.run.problem == ""
    assert bench.run.done == bench.run.total
    assert not bench.rig.events_of("stall")
    assert [plateau.cause for plateau in bench.data] == [""] * len(bench.plan.plateaus)


def test_a_slow_ramp_is_no_reason_to_give_a_plateau_up(tmp_path: Path) -> None:
    """From one way to the other takes longer here than a plateau may take to settle."""
    slow = {"acceleration_max_rad_s2 = 40.0": "acceleration_max_rad_s2 = 2.0"}
    bench = Bench(tmp_path, changes=slow).drive(seconds=120.0)

    fastest_rad_s = max(planned.joint_velocity_rad_s for planned in bench.plan.plateaus)
    assert 2.0 * fastest_rad_s / 2.0 > bench.plan.settle_max_s
    assert [plateau.cause for plateau in bench.data] == [""] * len(bench.plan.plateaus)


def test_everything_happens_once_and_in_order(whole: Bench) -> None:
    assert whole.run.problem == whole.run.unfinished == ""
    assert whole.run.done == whole.run.total == whole.plan.parts == 8
    check_order(whole.kinds)
    assert whole.kinds[0] == "bench-plan"
    assert Counter(whole.kinds) == {
        "bench-plan": 1,
        "bench-plateau": 4,
        "bench-settled": 4,
        "bench-plateau-end": 4,
        "bench-ramp": 2,
        "bench-ramp-end": 2,
        "bench-step": 2,
        "bench-step-end": 2,
    }
    assert whole.rig.state is State.IDLE
    assert whole.rig.machine.trip_code == ""
    assert whole.data == [
        PlateauData(joint_velocity_rad_s=planned.joint_velocity_rad_s)
        for planned in whole.plan.plateaus
    ]
    (header,) = whole.texts("bench-plan")
    assert msgspec.json.decode(header, type=BenchHeader) == whole.plan.header
    assert {event.source for event in whole.rig.events if event.kind.startswith("bench")} == {JOINT}


def test_plateaus_are_driven_as_planned(whole: Bench) -> None:
    events = [event for event in whole.rig.events if event.kind.startswith("bench-")]
    settled = [event.seq for event in events if event.kind == "bench-settled"]
    over = [event.seq for event in events if event.kind == "bench-plateau-end"]
    for planned, first, last in zip(whole.plan.plateaus, settled, over, strict=True):
        assert (last - first) * 1e-3 >= planned.dwell_s
        turned_rad = whole.positions_rad[last] - whole.positions_rad[first]
        assert abs(turned_rad) * 31.0 >= math.tau
        mean_rad_s = turned_rad / (last - first) * 1e3
        assert mean_rad_s == pytest.approx(planned.joint_velocity_rad_s, rel=0.01)


def test_a_log_tells_how_far_it_is(whole: Bench) -> None:
    """One line for each part that begins, and for nothing else."""
    begun = ("bench-plateau", "bench-ramp", "bench-step")
    parts = [event for event in whole.rig.events if event.kind in PART_BEGINS]
    assert len(parts) == whole.plan.parts
    assert {event.kind for event in parts} == set(begun)
    texts = [text for kind in begun for text in whole.texts(kind)]
    assert [text.partition(":")[0] for text in texts] == [
        *(f"plateau {number} of 4" for number in (1, 2, 3, 4)),
        *(f"current ramp {number} of 2" for number in (1, 2)),
        *(f"current step {number} of 2" for number in (1, 2)),
    ]
    shown = [event.severity for event in whole.rig.events if event.kind in begun]
    assert set(shown) == {"info"}


def columns_of(bench: Bench) -> dict[str, Any]:
    decoder = ColumnDecoder(bench.rig.session)
    payload = b"".join(payload for _, payload in bench.rig.batches)
    return decoder.decode(decoder.layout.view(payload))


def driven_rad_s2(columns: dict[str, Any]) -> float:
    """The highest acceleration of a reference that leads, over 20 ms: the wire is coarse."""
    speeds = columns["reference_velocity_rad_s"][:, 0]
    is_led = np.isin(columns["joint_mode"][:, 0], (Mode.VELOCITY, Mode.POSITION))
    window = np.lib.stride_tricks.sliding_window_view(is_led, 21).all(axis=1)
    changes = np.abs(speeds[20:] - speeds[:-20])[window] / 0.02
    return float(np.nanmax(changes))


def test_samples_keep_every_limit(whole: Bench) -> None:
    columns = columns_of(whole)
    limits = whole.joint.limits
    assert np.nanmax(np.abs(columns["joint_velocity_rad_s"])) <= limits.velocity_max_rad_s
    assert np.nanmax(np.abs(columns["iq_a"])) <= limits.current_max_a
    assert np.nanmax(np.abs(columns["reference_velocity_rad_s"])) <= 4.25 * (1.0 + 1e-3)
    assert driven_rad_s2(columns) <= 1.02 * limits.velocity_max_rad_s / 0.25


def test_ramps_begin_at_rest_and_end_when_it_moves(whole: Bench) -> None:
    events = [event for event in whole.rig.events if "-ramp" in event.kind]
    for begin, end in zip(events[::2], events[1::2], strict=True):
        before = whole.positions_rad[begin.seq - 100 : begin.seq]
        assert np.ptp(before) < 1e-3 / 31.0
        moved_rad = abs(whole.positions_rad[end.seq] - before[-1])
        assert 12 * math.tau / 4096 / 31.0 * 0.8 < moved_rad < 0.2


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", [9, 10, 99999999999999999999999] if IS_LONG else [9])
def test_current_steps_leave_room_for_a_lighter_rotor(tmp_path: Path, seed: int) -> None:
    """Friction was once taken from the lag, which at high speed is more than friction: the step
    became twice as strong, and the joint too fast."""
    wishes = {"speed_min_rad_s": 4.0, "speed_max_rad_s": 4.5}
    bench = Bench(tmp_path, seed=seed, wishes=wishes).drive()
    assert bench.run.problem == ""
    assert np.abs(bench.speeds_rad_s).max() < 4.95
    for text in bench.texts("bench-step"):
        current_a = abs(float(text.split()[-2]))
        assert 1.7 * FRICTION_A < current_a < 2.3 * FRICTION_A


@pytest.mark.parametrize("profile", ["uomodri", "udriver2"])
def test_boards_that_hold_their_reference(tmp_path: Path, profile: str) -> None:
    bench = Bench(tmp_path, profile=profile).drive()
    assert bench.run.problem == ""
    assert Counter(bench.kinds)["bench-settled"] == 4
    assert np.abs(bench.speeds_rad_s).max() < 5.0


class SlowClock(VirtualClock):
    """Every cycle begins so late, as behind a slow serial port."""

    late_ns = 3_300_000

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        self.advance_ns(self.late_ns)


@pytest.mark.parametrize("options", [{}, {"profile": "uomodri"}], ids=["advanced", "held"])
def test_behind_a_slow_serial_port(tmp_path: Path, options: dict[str, Any]) -> None:
    """250 cycles a second: no plateau used to settle, and steps were too strong."""
    changes = {"command_timeout_ms = 10": "command_timeout_ms = 50"}
    bench = Bench(tmp_path, changes=changes, clock=SlowClock(), seed=1, **options)
    bench.rig.cycle._budget._allowed = 10**9
    bench.drive()
    assert bench.run.problem == ""
    assert Counter(bench.kinds)["bench-settled"] == 4
    assert np.abs(bench.speeds_rad_s).max() < 5.0
    check_order(bench.kinds)


# --- other kinds of test --------------------------------------------------------------------------


def test_a_load_arm_swings_to_both_sides_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = functools.partial(MockRobot, load_arm=MockLoadArm(1.0, 0.2))
    monkeypatch.setattr(loop_rig, "MockRobot", hanging)
    monkeypatch.setattr(plan_module, "SWING_RAD_S", 2.4)  # slowly takes two minutes
    for module in (plan_module, run_module):
        monkeypatch.setattr(module, "SWINGS", 1)
    bench = Bench(tmp_path, kind="load_arm").drive()
    assert bench.run.problem == ""
    assert bench.run.done == bench.run.total == 2
    assert bench.kinds == [
        "bench-plan",
        *("bench-swing", "bench-swing-end") * 2,
    ]
    assert bench.texts("bench-swing") == ["swing 1 of 2", "swing 2 of 2"]
    assert sum(kind in PART_BEGINS for kind in bench.kinds) == bench.run.total
    start_rad = bench.positions_rad[0]
    at_rest = [event.seq for event in bench.rig.events if event.kind == "bench-swing-end"]
    reached = bench.positions_rad[at_rest] - start_rad
    assert reached == pytest.approx([math.pi / 2, -math.pi / 2], abs=0.05)
    assert np.abs(bench.positions_rad - start_rad).max() < math.pi / 2 + 0.05
    off = next(event.seq for event in bench.rig.events if "→ stopping" in event.text)
    assert bench.positions_rad[off] == pytest.approx(start_rad, abs=0.05)
    assert np.abs(bench.speeds_rad_s).max() < 3.0


def one_speed(speed_rad_s: float, dwell_s: float = 0.2) -> Callable[[BenchPlan], BenchPlan]:
    def edit(plan: BenchPlan) -> BenchPlan:
        plateaus = tuple(
            PlannedPlateau(joint_velocity_rad_s=sign * speed_rad_s, dwell_s=dwell_s)
            for sign in (1.0, -1.0)
        )
        header = msgspec.structs.replace(plan.header, plateaus=len(plateaus))
        return msgspec.structs.replace(plan, header=header, plateaus=plateaus)

    return edit


def test_a_mounted_joint_keeps_to_its_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homing, "SPEED_RAD_S", 8.0)  # homing is not what is looked at
    speed_rad_s = 1.5
    bench = Bench(tmp_path, kind="mounted", edit=one_speed(speed_rad_s), calibration_s=0.1)
    posture_rad = list(bench.rig.mock.plant.joint_position_rad)
    bench.drive()
    assert bench.run.problem == ""
    assert bench.run.done == bench.run.total == 2
    assert Counter(bench.kinds) == {
        "bench-plan": 1,
        "bench-plateau": 2,
        "bench-settled": 2,
        "bench-plateau-end": 2,
    }
    low, high = bench.plan.header.window_rad or (0.0, 0.0)
    way_rad = run_up_rad(speed_rad_s) + 0.05
    driven = bench.positions_rad
    assert low - way_rad < driven.min() < low
    assert high < driven.max() < high + way_rad
    limits = bench.joint.limits
    assert limits.position_min_rad < driven.min() < driven.max() < limits.position_max_rad
    # It has settled in front of the window, and is measured all the way through it.
    by_kind = {
        kind: [event.seq for event in bench.rig.events if event.kind == kind]
        for kind in ("bench-settled", "bench-plateau-end")
    }
    for sign, first, last in zip((1, -1), *by_kind.values(), strict=True):
        inside = sign * (driven[[first, last]] - 0.5 * (low + high)) / (0.5 * (high - low))
        assert inside == pytest.approx([-1.0, 1.0], abs=0.15)
    others = np.delete(np.array(bench.rig.mock.plant.joint_position_rad), bench.number)
    assert np.array(posture_rad)[[0, 1, 3]] == pytest.approx(others, abs=0.6), "they only hold"


# --- every way out --------------------------------------------------------------------------------


@pytest.mark.parametrize("end_stop_rad", [1.0, 0.02])
def test_a_joint_that_runs_into_something_fast(tmp_path: Path, end_stop_rad: float) -> None:
    """It stands at once, as if its encoder had frozen: the motor gets no more current."""
    effects = parse_effects(f"default,end_stop_rad={end_stop_rad}")
    bench = Bench(tmp_path, effects=effects).drive()
    assert bench.run.problem_code == "encoder-frozen"
    assert "has hit something" in bench.run.problem
    assert bench.run.problem in bench.texts("fault")
    assert bench.texts("bench-problem") == [bench.run.problem]
    assert bench.rig.state is State.FAULT
    trip = next(event.seq for event in bench.rig.events if event.kind == "fault")
    hit = int(np.argmax(np.abs(bench.positions_rad) > end_stop_rad - 1e-3))
    assert trip - hit <= 20
    check_order(bench.kinds)


@pytest.mark.parametrize(
    ("end_stop_rad", "code", "place"), [(0.1, "hit", r"\+0.1"), (0.02, "never-moved", r"\+0.0")]
)
def test_a_joint_that_runs_into_something_slowly(
    tmp_path: Path, end_stop_rad: float, code: str, place: str
) -> None:
    effects = parse_effects(f"default,end_stop_rad={end_stop_rad}")
    bench = Bench(tmp_path, effects=effects, edit=one_speed(0.05, 5.0)).drive()
    assert bench.run.problem_code == code
    assert re.search(rf"{place}\d+ rad .*\d A", bench.run.problem)
    assert bench.rig.state is State.IDLE, "in time, before the loop had to stop it"
    assert bench.texts("bench-problem") == [bench.run.problem]
    check_order(bench.kinds)


FAULTS = {
    "vanish:at=0.8": "unreachable",
    "io-error:at=0.8": "unreachable",
    "stuck-low:at=0.8": "silent",
    "brown-out:at=0.8": "silent",
    "board-error:at=0.8": "error-7",
    "encoder-gap:at=0.8": "encoder-frozen",
    "vanish:at=0.05": "unreachable",
    "board-error:at=0.06": "error-7",
}


@pytest.mark.parametrize(("fault", "code"), FAULTS.items(), ids=FAULTS)
def test_faults_end_the_test(tmp_path: Path, fault: str, code: str) -> None:
    bench = Bench(tmp_path, faults=[fault]).drive()
    assert bench.run.problem_code == code
    assert bench.rig.state is State.FAULT
    assert bench.run.unfinished
    assert bench.run.done < bench.run.total
    (event,) = (event for event in bench.rig.events if event.kind == "bench-problem")
    assert event.text == bench.run.problem
    # The log says it once: as the fault that it is, or in better words.
    is_the_fault = bench.run.problem in bench.texts("fault")
    assert event.severity == ("debug" if is_the_fault else "error")


def test_a_fault_at_the_very_end_is_no_success(tmp_path: Path) -> None:
    """While the last plateau comes to rest, and while the motors are being switched off."""

    def plateaus_only(plan: BenchPlan) -> BenchPlan:
        return msgspec.structs.replace(one_speed(2.0)(plan), breakaways=0, steps=0)

    sound = Bench(tmp_path, edit=plateaus_only).drive()
    off = next(event.seq for event in sound.rig.events if "→ stopping: disabled" in event.text)
    for before_end_s in (0.06, 0.0):
        fault = f"vanish:at={1e-3 * off - before_end_s + 0.01}"
        bench = Bench(tmp_path, edit=plateaus_only, faults=[fault]).drive()
        assert bench.run.done >= bench.run.total - 1
        assert bench.run.problem_code == "unreachable"
        assert bench.run.unfinished


def test_a_current_limit_below_friction(tmp_path: Path) -> None:
    weak = {LIMITS: LIMITS.replace("9.0", "0.125")}
    bench = Bench(tmp_path, changes=weak).drive()
    assert bench.run.problem_code == "never-moved"
    assert " 0.12" in bench.run.problem
    assert "0.125 A" in bench.run.problem
    assert "current_max_a" in bench.run.problem


def test_a_winding_that_is_too_hot(tmp_path: Path) -> None:
    hot = {LIMITS: f"{LIMITS}winding_temperature_max_degc = 20\n"}
    bench = Bench(tmp_path, changes=hot).drive()
    assert bench.run.problem_code == "temperature-limit"
    assert "25 °C, limit 20 °C" in bench.run.problem
    assert "bench-plateau" not in bench.kinds


def test_gains_that_overshoot_are_told_with_better_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the joint swings more than can be foreseen: its file may be wrong about its inertia."""
    monkeypatch.setattr(Track, "overshoot_rad_s", lambda _track, _acceleration: 0.0)
    monkeypatch.setattr(planning, "SPEED_UP_S", 0.125)
    wishes = {"kd_a_s_per_rad": 0.0005, "speed_max_rad_s": 4.5}
    bench = Bench(tmp_path, wishes=wishes).drive()
    assert bench.run.problem_code == "speed-limit"
    assert "limit 5 rad/s" in bench.run.problem and "--kp 0.44 --kd 0.044" in bench.run.problem


@pytest.mark.parametrize("speed_max_rad_s", [None, 4.5])
def test_gains_that_overshoot_trip_nothing(tmp_path: Path, speed_max_rad_s: float | None) -> None:
    """Speeds change so gently that they stay below the limit, even at what may be asked for."""
    wishes = {"kd_a_s_per_rad": 0.0005, "speed_max_rad_s": speed_max_rad_s}
    bench = Bench(tmp_path, wishes=wishes).drive()
    assert bench.run.problem == ""
    assert Counter(bench.kinds)["bench-settled"] == 4
    assert np.abs(bench.speeds_rad_s).max() < 5.0


def test_a_strict_acceleration_in_the_robot_file_is_kept(tmp_path: Path) -> None:
    """It used not to be read."""
    file = {"acceleration_max_rad_s2 = 40.0": "acceleration_max_rad_s2 = 6.0"}
    bench = Bench(tmp_path, changes=file).drive()
    assert bench.run.problem == ""
    assert Counter(bench.kinds)["bench-settled"] == 4
    assert 0.9 * 6.0 < driven_rad_s2(columns_of(bench)) <= 1.02 * 6.0


def test_a_loop_that_is_not_armed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, is_armed=False).drive()
    assert bench.run.problem_code == "not-armed"
    assert bench.kinds == ["bench-plan", "bench-problem"]


def test_a_command_that_is_refused_ends_the_test_with_its_text(tmp_path: Path) -> None:
    def edit(plan: BenchPlan) -> BenchPlan:
        too_fast = PlannedPlateau(joint_velocity_rad_s=5.5, dwell_s=0.2)
        return msgspec.structs.replace(plan, plateaus=(plan.plateaus[0], too_fast))

    bench = Bench(tmp_path, edit=edit).drive()
    assert bench.run.problem_code == "speed-limit"
    assert "5.5 rad/s was asked for, at most 4.5 rad/s" in bench.run.problem
    assert bench.run.done == 1
    assert bench.rig.state is State.IDLE


def test_somebody_else_stops_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    step = bench.run.step

    def stop_after_a_while() -> None:
        step()
        if bench.rig.now > 1500:
            bench.rig.send(m.Stop())

    bench.rig.cycle.schedule[Chore.AGENDA] = stop_after_a_while
    bench.drive()
    assert bench.run.was_stopped and bench.run.unfinished
    assert bench.run.problem_code == "stopped"


def test_somebody_else_commands_only_by_taking_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    step = bench.run.step

    def interfere() -> None:
        step()
        if bench.rig.now > 1500 and not bench.run.is_over:
            with refused_for("held", "held", f"the bench test of {JOINT}"):
                bench.rig.mode("hold")
            bench.rig.send(m.TakeLease(lease="b", name="Ben", takes_over=True))

    bench.rig.cycle.schedule[Chore.AGENDA] = interfere
    bench.drive()
    assert (bench.run.problem_code, bench.run.was_stopped) == ("lease-lost", False)
    assert "Ben" in bench.run.problem


def test_plateaus_after_one_that_saturated(tmp_path: Path) -> None:
    """A fast one takes more current than there is; the slow ones before and after do not."""
    changes = {
        LIMITS: LIMITS.replace("9.0", "0.25"),
        "viscous_motor_nm_s_per_rad = 2.42e-6": "viscous_motor_nm_s_per_rad = 2.5e-5",
    }

    def edit(plan: BenchPlan) -> BenchPlan:
        speeds = (0.5, 4.5, -0.5, -4.5, 0.5)
        plateaus = tuple(PlannedPlateau(joint_velocity_rad_s=v, dwell_s=0.3) for v in speeds)
        header = msgspec.structs.replace(plan.header, plateaus=5)
        return msgspec.structs.replace(plan, header=header, plateaus=plateaus)

    bench = Bench(tmp_path, changes=changes, edit=edit).drive()
    assert bench.run.problem == ""
    assert bench.run.done == bench.run.total == 9
    check_order(bench.kinds)
    driven = [kind for kind in bench.kinds if kind in ("bench-settled", "bench-unsettled")]
    assert [kind == "bench-settled" for kind in driven] == [True, False, True, False, True]
    given_up = [data for data in bench.data if data.cause]
    assert [(d.joint_velocity_rad_s, d.cause) for d in given_up] == [
        (4.5, "saturated"),
        (-4.5, "saturated"),
    ]
    for number, text in zip((2, 4), bench.texts("bench-unsettled"), strict=True):
        assert text.startswith(f"plateau {number} at ")
        assert "0.25 A" in text
