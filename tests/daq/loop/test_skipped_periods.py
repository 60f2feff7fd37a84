"""Motions keep to the clock when periods are skipped; a long pause only delays them."""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_rig import Rig

from daq.loop.setup import PERIOD_NS
from daq.recording.states import Mode, State
from daq.robot import Robot, load_robot
from daq.samples.columns import ColumnDecoder
from daq.stream import messages as m
from hw_mocks.clock import VirtualClock

pytestmark = pytest.mark.chain

PERIOD_S = PERIOD_NS * 1e-9
CYCLES = 250
CATCH_UP_MAX = 20
"""Periods; in place of the boards' time-out, which is long here."""
SPEED_RAD_S = 3.0
KINDS = ("velocity", "slower", "back", "position", "hold", "play")
ONE_WAY = ("velocity", "slower", "position", "hold", "play")
"""Motions that only ever go forwards."""

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
    """

    def __init__(self, kind: str, skipped: list[int], *, cycles: int = CYCLES) -> None:
        clock = LateClock()
        self.rig = rig = Rig(BENCH, clock=clock).enable()
        rig.cycle._budget._allowed = 10**9
        assert rig.cycle.control._catch_up_max == BENCH.boards[0].command_timeout_ms
        rig.cycle.control._catch_up_max = CATCH_UP_MAX
        _begin(rig, kind)
        clock.skips = list(skipped)
        began_ns = clock.now_ns()
        references, t_ns = [], []

        def is_over() -> bool:
            references.append(rig.tracks[0].reference[:2])
            t_ns.append(clock.now_ns())
            return len(references) > cycles

        rig.runner(is_over=is_over).run()
        assert rig.state is State.IDLE, rig.machine.reason
        self.began_seq = rig.now - cycles
        self.periods = (np.array(t_ns[1:]) - began_ns) // PERIOD_NS
        steps = np.diff(self.periods, prepend=0)
        self.k = np.cumsum(np.minimum(steps, 1 + CATCH_UP_MAX))
        self.positions_rad, self.speeds_rad_s = np.array(references[1:]).T


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
def undisturbed(kind: str) -> Late:
    """The same motion on a clock that is never late, for as long as any other takes."""
    return Late(kind, [], cycles=CYCLES + 30 * (CATCH_UP_MAX + 1))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(20))
@given(skipped=skips)
@example(skipped=[4] * 30)
@example(skipped=[60] * 20)
@example(skipped=[0, 0, CATCH_UP_MAX + 1, 0, CATCH_UP_MAX])
def test_references_are_where_the_clock_says(kind: str, skipped: list[int]) -> None:
    late, in_time = Late(kind, skipped), undisturbed(kind)
    assert in_time.k.tolist() == list(range(1, len(in_time.k) + 1))
    assert late.positions_rad == pytest.approx(in_time.positions_rad[late.k - 1], abs=1e-9)
    assert late.speeds_rad_s == pytest.approx(in_time.speeds_rad_s[late.k - 1], abs=1e-9)
    if kind in ONE_WAY:
        assert np.diff(late.positions_rad).min() >= 0.0, "a reference went back"
    if max(skipped, default=0) <= CATCH_UP_MAX:
        assert (late.k == late.periods).all(), "nothing is delayed"


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
    late, in_time = Late(kind, [0] * 99 + [pause]), undisturbed(kind)
    assert late.periods[99] == 100 + pause
    delay = pause - CATCH_UP_MAX
    assert late.positions_rad[99:] == pytest.approx(
        in_time.positions_rad[late.periods[99:] - delay - 1], abs=1e-9
    )
    leap_rad = late.positions_rad[99] - late.positions_rad[98]
    assert 0.0 < leap_rad <= SPEED_RAD_S * (CATCH_UP_MAX + 1) * PERIOD_S


def test_samples_tell_the_same() -> None:
    """A sample has the command that went out in it: late, but with the reference of then."""
    late = Late("velocity", [0, 3, 0, 7, 20, 0, 1] * 4)
    decoder = ColumnDecoder(late.rig.session)
    payload = b"".join(payload for _, payload in late.rig.batches)
    columns = decoder.decode(decoder.layout.view(payload))
    begin = int(np.flatnonzero(columns["joint_mode"][:, 0] == Mode.VELOCITY)[0])
    sent_rad = columns["reference_position_rad"][begin + 1 : begin + CYCLES, 0]
    field_rad = math.tau / 2**16 / 31.0
    expected_rad = undisturbed("velocity").positions_rad[late.k[1:CYCLES] - 2]
    assert sent_rad == pytest.approx(expected_rad, abs=field_rad)
    skipped = columns["skipped"][begin : begin + 28]
    assert skipped.tolist() == [0, 3, 0, 7, 20, 0, 1] * 4


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
    """The arm: a skipped period counts for all of them."""
    rig = Rig(patient("laas4")).enable().home_by_truth().hold(300)
    start = np.array([track.reference[0] for track in rig.tracks])
    t_s = np.arange(0.0, 0.5 + PERIOD_S / 2, PERIOD_S)[:, None]
    pace = np.array([0.1, 0.2, 0.3, 0.4])
    q = start + pace * (1.0 - np.cos(math.tau * t_s))
    rows = np.hstack([q, pace * math.tau * np.sin(math.tau * t_s)])
    rig.upload(rows)
    rig.send(m.PlayStart())
    rig.until(lambda: rig.cycle.control._play is not None and rig.cycle.control._play.number == 1)
    row = rig.cycle.control._k - 1 - rig.cycle.control._play._begin
    for skipped in (0, 4, 1, 9, 0, 2):
        deadline_ns = rig.clock.now_ns() + PERIOD_NS
        rig.clock.advance_ns((1 + skipped) * PERIOD_NS)
        rig.cycle.run(deadline_ns, rig.clock.now_ns(), skipped)
        row += 1 + skipped
        references = [track.reference[0] for track in rig.tracks]
        assert references == pytest.approx(rows[row, :4], abs=1e-9)
