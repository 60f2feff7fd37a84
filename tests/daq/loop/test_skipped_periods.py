"""Motions keep to the clock when periods are skipped; a long pause only delays them."""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG, examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_rig import Rig, changed_joint

from daq.loop.setup import PERIOD_NS
from daq.recording.states import Mode, State
from daq.robot import Robot, load_robot
from daq.samples.columns import ColumnDecoder
from daq.stream import messages as m
from hw_mocks.clock import VirtualClock

pytestmark = pytest.mark.chain

PERIOD_S = PERIOD_NS * 1e-9
CYCLES, LONG = 250, 1600
CATCH_UP_MAX = 20
"""Periods; in place of the boards' time-out, which is long here."""
SLOW_PERIODS = 5
"""A loop that leaves out so few again and again keeps to the clock."""
ARRIVED_RAD, ARRIVED_RAD_S = 1e-5, 1e-3
"""Nearer than this to its motion a reference has caught up."""
STEP_MAX_A = 0.5
"""Of 9 A."""
SPEED_RAD_S = 3.0
KINDS = ("velocity", "slower", "back", "position", "hold", "play")

skips = st.lists(
    st.one_of(
        st.just(0),
        st.integers(1, 4),
        st.sampled_from([CATCH_UP_MAX - 1, CATCH_UP_MAX, CATCH_UP_MAX + 1]),
        st.integers(CATCH_UP_MAX + 1, 60),
    ),
    max_size=30,
)
"""Periods that are left out before each cycle."""


class LateClock(VirtualClock):
    """Wakes up too late, by whole periods and a little more; in time once they are used up."""

    def __init__(self) -> None:
        super().__init__()
        self.skips: list[int] = []

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        if self.skips:
            self.advance_ns(self.skips.pop(0) * PERIOD_NS + 123_456)


def patient(name: str) -> Robot:
    """A robot whose boards bear long pauses."""
    robot = load_robot(name)
    boards = tuple(msgspec.structs.replace(port, command_timeout_ms=255) for port in robot.boards)
    return msgspec.structs.replace(robot, boards=boards)


BENCH = patient("bench1")


class Late:
    """A loop on a clock that is late for some cycles.

    Attributes:
        rig: The loop, at the end.
        periods: How many had passed after each cycle.
        k: The same, but of each pause only as much as is caught up with.
        positions_rad: The reference of the first joint, after each cycle.
        speeds_rad_s: Its speed.
        is_advanced: Whether the board moves the reference on between commands.
        acceleration_rad_s2: What no reference exceeds.
        missed: Periods that were left out before each cycle but the first.
        gains: Kp and Kd that belong to the reference.
    """

    def __init__(
        self,
        kind: str,
        skipped: list[int],
        *,
        cycles: int = CYCLES,
        profile: str | None = None,
        acceleration_max_rad_s2: float | None = None,
    ) -> None:
        clock = LateClock()
        limits = {"acceleration_max_rad_s2": acceleration_max_rad_s2}
        robot = changed_joint(BENCH, 0, limits=limits)
        self.rig = rig = Rig(robot, clock=clock, profile=profile).enable()
        self.is_advanced = rig.axes[0].behaviour.is_reference_advanced
        # 24 rad/s² in any motion, at most twice as much after a pause, never more than in the file.
        self.acceleration_rad_s2 = min(48.0, acceleration_max_rad_s2 or math.inf)
        rig.cycle._budget._allowed = 10**9
        assert rig.cycle.control._catch_up_max == BENCH.boards[0].command_timeout_ms
        rig.cycle.control._catch_up_max = CATCH_UP_MAX
        _begin(rig, kind)
        clock.skips = list(skipped)
        began_ns = clock.now_ns()
        references, gains, t_ns = [], [], []

        def is_over() -> bool:
            law = rig.tracks[0]._law
            references.append(rig.tracks[0].reference[:2])
            gains.append((law.kp_a_per_rad, law.kd_a_s_per_rad))
            t_ns.append(clock.now_ns())
            return len(references) > cycles

        rig.runner(is_over=is_over).run()
        assert rig.state is State.IDLE, rig.machine.reason
        self.began_seq = rig.now - cycles
        self.periods = (np.array(t_ns[1:]) - began_ns) // PERIOD_NS
        steps = np.diff(self.periods, prepend=0)
        self.k = np.cumsum(np.minimum(steps, 1 + CATCH_UP_MAX))
        self.positions_rad, self.speeds_rad_s = np.array(references[1:]).T
        self.missed, self.gains = steps[1:] - 1, np.array(gains[1:])


def _begin(rig: Rig, kind: str) -> None:
    """Something that moves, and has just begun to."""
    if kind == "play":
        rig.hold()
        upload(rig)
        rig.send(m.PlayStart())
        return
    if kind == "position":
        rig.hold()
        rig.mode("position", rig.tracks[0].reference[0] + 1.5, duration_s=1.0)
        return
    if kind == "velocity":
        rig.mode("velocity", SPEED_RAD_S)
        return
    rig.mode("velocity", SPEED_RAD_S)
    rig.step(400)
    later: dict[str, tuple[Any, ...]] = {
        "slower": ("velocity", 1.0),
        "back": ("velocity", -SPEED_RAD_S),
        "hold": ("hold",),
        "current": ("current", 0.0),
    }
    rig.mode(*later[kind])


def upload(rig: Rig) -> None:
    """A second of a trajectory that goes one way, from a little ahead of where the joint is."""
    t_s = np.arange(0.0, 1.0 + PERIOD_S / 2, PERIOD_S)
    q = rig.tracks[0].reference[0] + 0.2 + 0.3 * (1.0 - np.cos(math.pi * t_s))
    rows = np.stack([q, 0.3 * math.pi * np.sin(math.pi * t_s)], axis=1)
    rig.upload(rows)


@functools.cache
def undisturbed(kind: str, **options: Any) -> Late:
    """The same motion on a clock that is never late, for as long as any other takes."""
    return Late(kind, [], cycles=LONG + 30 * (CATCH_UP_MAX + 1), **options)


def assert_no_step(late: Late) -> None:
    """References go on as the board has them, and their speed changes no faster than it may.

    A board that has held its reference has braked the joint: there the reference takes the speed
    that is left, and what the board's law makes of position and speed together does not step.
    """
    missed, speeds, way_rad = late.missed, late.speeds_rad_s, np.diff(late.positions_rad)
    # A loop that is slow all the time keeps to the clock: so much later it is so much faster.
    periods = np.where(missed <= SLOW_PERIODS, 1 + missed, 1)
    changes_rad_s = np.diff(speeds)
    assert np.abs(speeds).max() <= 0.97 * BENCH.joints[0].limits.velocity_max_rad_s
    if late.is_advanced:
        most_rad_s = late.acceleration_rad_s2 * periods * PERIOD_S * 1.001 + ARRIVED_RAD_S
        assert (np.abs(changes_rad_s) <= most_rad_s).all()
        # The whole pause at the old speed, then a cycle.
        surprise_rad = way_rad - speeds[:-1] * (1 + missed) * PERIOD_S
        most_rad = late.acceleration_rad_s2 * (periods * PERIOD_S) ** 2 + ARRIVED_RAD
        assert (np.abs(surprise_rad) <= most_rad).all()
    else:
        surprise_rad = way_rad - speeds[:-1] * PERIOD_S
        kp, kd = late.gains[1:].T
        steps_a = 31.0 * np.abs(kp * surprise_rad + kd * changes_rad_s)
        # What a slow loop adds in its cycles is what held references cost there, too.
        most_a = STEP_MAX_A + 31.0 * kp * np.where(missed <= SLOW_PERIODS, missed, 0) * 6.0e-3
        assert (steps_a <= most_a).all()


BOARDS: dict[str, dict[str, Any]] = {
    "advanced": {},
    "held": {"profile": "uomodri"},
    "strict": {"acceleration_max_rad_s2": 10.0},
}


COMING_BACK = (
    [0] * 40 + [CATCH_UP_MAX],
    [5, 0, 0, 12] + [0] * 30 + [15],
    [0] * 60 + [3],
)


@pytest.mark.parametrize("options", BOARDS.values(), ids=BOARDS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(8))
@given(skipped=skips)
@example(skipped=[4] * 30)
@example(skipped=[60] * 20)
@example(skipped=[0, 0, CATCH_UP_MAX + 1, 0, CATCH_UP_MAX])
def test_no_pause_makes_a_reference_step(
    kind: str, options: dict[str, Any], skipped: list[int]
) -> None:
    """101 ms used to put it 0.31 rad ahead within a cycle: 20 A."""
    late = Late(kind, skipped, **options)
    assert_no_step(late)
    if max(skipped, default=0) <= CATCH_UP_MAX:
        assert (late.k == late.periods).all(), "nothing is delayed"


@pytest.mark.acceptance
@pytest.mark.parametrize("options", BOARDS.values(), ids=BOARDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skipped", COMING_BACK if IS_LONG else COMING_BACK[:2])
def test_references_come_back_to_where_the_clock_says(
    kind: str, options: dict[str, Any], skipped: list[int]
) -> None:
    late, in_time = Late(kind, skipped, cycles=LONG, **options), undisturbed(kind, **options)
    assert in_time.k.tolist() == list(range(1, len(in_time.k) + 1))
    assert_no_step(late)
    first = next(number for number, each in enumerate(skipped) if each)
    behind_rad = np.abs(late.positions_rad - in_time.positions_rad[late.k - 1])
    behind_rad_s = np.abs(late.speeds_rad_s - in_time.speeds_rad_s[late.k - 1])
    for difference in (behind_rad, behind_rad_s):
        assert difference[:first].max(initial=0.0) < 1e-9
        assert difference[-100:].max() < 1e-9
    assert behind_rad.max() <= 0.15


@given(skipped=st.lists(st.integers(0, CATCH_UP_MAX), max_size=20))
@settings(max_examples=examples(20))
def test_a_constant_speed_is_kept_over_every_gap(skipped: list[int]) -> None:
    """By arithmetic: what is travelled is the speed times the time that has passed."""
    late = Late("slower", [0] * 150 + skipped)
    elapsed_s = np.diff(late.periods[150:]) * PERIOD_S
    assert np.diff(late.positions_rad[150:]) == pytest.approx(1.0 * elapsed_s, abs=1e-9)
    assert (late.speeds_rad_s[150:] == 1.0).all()


@pytest.mark.parametrize(
    ("kind", "pause"), [("velocity", CATCH_UP_MAX + 1), ("velocity", 60), ("play", 35)]
)
def test_a_long_pause_only_delays(kind: str, pause: int) -> None:
    """Boards have usually stopped by themselves by then: nobody expects a leap."""
    late, in_time = Late(kind, [0] * 99 + [pause], cycles=LONG), undisturbed(kind)
    assert late.periods[99] == 100 + pause
    delay = pause - CATCH_UP_MAX
    assert (late.k[99:] == late.periods[99:] - delay).all()
    assert_no_step(late)
    assert late.positions_rad[-100:] == pytest.approx(
        in_time.positions_rad[late.k[-100:] - 1], abs=1e-9
    )
    # The board itself has gone on meanwhile, at the speed that it was told.
    leap_rad = late.positions_rad[99] - late.positions_rad[98]
    assert leap_rad == pytest.approx(late.speeds_rad_s[98] * (1 + pause) * PERIOD_S, abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"profile": "uomodri"}], ids=["advanced", "held"])
def test_samples_tell_the_same(options: dict[str, Any]) -> None:
    """A sample has the command that went out in it: late, but with the reference of then."""
    pauses = [0, 3, 0, 7, 20, 0, 1] * 4
    late = Late("velocity", pauses, **options)
    decoder = ColumnDecoder(late.rig.session)
    payload = b"".join(payload for _, payload in late.rig.batches)
    columns = decoder.decode(decoder.layout.view(payload))
    begin = int(np.flatnonzero(columns["joint_mode"][:, 0] == Mode.VELOCITY)[0])
    sent_rad = columns["reference_position_rad"][begin + 1 : begin + CYCLES, 0]
    sent_rad_s = columns["reference_velocity_rad_s"][begin + 1 : begin + CYCLES, 0]
    axis = late.rig.axes[0]
    field_rad, field_rad_s = math.tau / 2**16 / 31.0, 1e-3
    # What was going to be sent, and is where the board has it by now if it was held up.
    left_out = late.missed[: CYCLES - 1]
    before_rad, before_rad_s = late.positions_rad[: CYCLES - 1], late.speeds_rad_s[: CYCLES - 1]
    is_exact = (left_out == 0) | (left_out > SLOW_PERIODS)
    on_s = left_out * PERIOD_S if axis.behaviour.is_reference_advanced else 0.0 * left_out
    expected_rad = before_rad + before_rad_s * on_s
    assert sent_rad[is_exact] == pytest.approx(expected_rad[is_exact], abs=field_rad)
    assert sent_rad_s[is_exact] == pytest.approx(before_rad_s[is_exact], abs=field_rad_s)
    # A slow loop keeps to the clock.
    within_rad = SLOW_PERIODS * PERIOD_S * SPEED_RAD_S + field_rad
    assert np.abs(sent_rad - expected_rad).max() <= within_rad
    skipped = columns["skipped"][begin : begin + 28]
    assert skipped.tolist() == pauses


@settings(max_examples=examples(20))
@given(skipped=st.lists(st.integers(0, CATCH_UP_MAX), max_size=20))
@example(skipped=[5, 5, 5])
def test_a_reference_that_is_let_go_keeps_to_the_clock_too(skipped: list[int]) -> None:
    """From a speed to a current its gains fade within 100 cycles; until then it must not drag."""
    late = Late("current", skipped, cycles=99)
    began_rad = undisturbed("current").positions_rad[0] - SPEED_RAD_S * PERIOD_S
    expected_rad = began_rad + SPEED_RAD_S * PERIOD_S * late.periods
    assert late.positions_rad == pytest.approx(expected_rad, abs=1e-9)


def test_a_joint_that_holds_is_left_alone() -> None:
    rig = Rig(BENCH, clock=LateClock()).enable().hold()
    rig.mode("velocity", 1.0)
    rig.step(300)
    rig.mode("hold")
    rig.until(lambda: rig.cycle.control.is_at_rest)
    before = rig.tracks[0].reference
    rig.cycle.control.skip(15)
    rig.step(5)
    assert rig.tracks[0].reference == before


def test_all_joints_of_a_trajectory_stay_together() -> None:
    """The arm: a skipped period counts for all of them, and all come back to the same row."""
    rig = Rig(patient("laas4")).enable().home_by_truth().hold(300)
    start = np.array([track.reference[0] for track in rig.tracks])
    t_s = np.arange(0.0, 2.0 + PERIOD_S / 2, PERIOD_S)[:, None]
    pace = np.array([0.1, 0.2, 0.3, 0.4])
    q = start + pace * (1.0 - np.cos(math.pi * t_s))
    rows = np.hstack([q, pace * math.pi * np.sin(math.pi * t_s)])
    rig.upload(rows)
    rig.send(m.PlayStart())
    rig.until(lambda: rig.cycle.control._play is not None and rig.cycle.control._play.number == 1)
    row = rig.cycle.control._k - 1 - rig.cycle.control._play._begin
    for skipped in (0, 4, 1, 9, 0, 2, *(0,) * 30, 50, *(0,) * 1500):
        before = np.array([track.reference[:2] for track in rig.tracks])
        deadline_ns = rig.clock.now_ns() + PERIOD_NS
        rig.clock.advance_ns((1 + skipped) * PERIOD_NS)
        rig.cycle.run(deadline_ns, rig.clock.now_ns(), skipped)
        row += 1 + skipped
        assert row == rig.cycle.control._k - 1 - rig.cycle.control._play._begin
        now = np.array([track.reference[:2] for track in rig.tracks])
        elapsed_s = (1 + skipped) * PERIOD_S
        surprise_rad = np.abs(now[:, 0] - before[:, 0] - before[:, 1] * elapsed_s)
        assert surprise_rad.max() <= 40.0 * elapsed_s**2, "no step"
        steps = 1 + skipped if skipped <= SLOW_PERIODS else 1
        assert np.abs(now[:, 1] - before[:, 1]).max() <= 40.0 * steps * PERIOD_S * 1.001
    assert now[:, 0] == pytest.approx(rows[row, :4], abs=1e-9)
    assert now[:, 1] == pytest.approx(rows[row, 4:], abs=1e-9)
