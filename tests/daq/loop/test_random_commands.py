"""A minute of whatever three clients can think of: limits and timing stay as they are."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import ES, Rig

from daq.recording.states import MODE_NAMES, Mode, State
from daq.stream import messages as m
from daq.stream.errors import RefusedError

pytestmark = pytest.mark.chain

EVERY = 12
"""Cycles between two commands: about 80 per second, from all clients together."""
ODD = (0.0, -1.0, 1e9, -1e9, math.nan, math.inf, 1e-300, 6.3, -6.3, 5.01, 200.0)
CODES = {"malformed", "unknown", "out-of-limit", "not-now", "not-homed"}


class Client:
    """Asks for anything, half of the time for something sensible."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.random = random.Random(seed)
        self.names = [joint.name for joint in rig.robot.joints]

    def command(self) -> tuple[m.AnyCommand, bytes]:
        choose = self.random.choice
        sensible = {
            State.IDLE: (m.Enable(),),
            State.FAULT: (m.Reset(),),
            State.READY: (m.SetMode(mode="hold"), m.Home()),
        }.get(self.rig.state, ())
        if sensible and self.random.random() < 0.6:
            return choose(sensible), b""
        if self.random.random() < 0.2:
            return self.rows()
        return choose((self.mode, self.mode, self.mode, self.gains, self.other))(), b""

    def value(self, highest: float) -> float:
        if self.random.random() < 0.1:
            return self.random.choice(ODD)
        return self.random.uniform(-1.1, 1.1) * highest

    def joints(self) -> tuple[str, ...]:
        if self.random.random() < 0.5:
            return ()
        names = self.random.sample(self.names, self.random.randint(1, len(self.names)))
        return (*names, "nose") if self.random.random() < 0.05 else tuple(names)

    def per_joint(self, joints: tuple[str, ...], highest: float) -> tuple[float, ...]:
        count = len(joints) or len(self.names)
        count += self.random.random() < 0.05
        return tuple(self.value(highest) for _ in range(count))

    def mode(self) -> m.AnyCommand:
        mode = self.random.choice([*MODE_NAMES, "hold", "position", "position", "dance"])
        highest = {"position": 1.5, "velocity": 1.5, "current": 2.0, "torque": 1.0}.get(mode, 1.0)
        if self.random.random() < 0.1:
            highest *= 10.0
        joints = self.joints()
        target = () if mode in ("off", "hold") else self.per_joint(joints, highest)
        duration_s = self.random.choice((0.0, 0.0, 0.3, 2.0))
        return m.SetMode(mode=mode, joints=joints, target=target, duration_s=duration_s)

    def gains(self) -> m.AnyCommand:
        joints = self.joints()
        given = {
            name: tuple(abs(value) for value in self.per_joint(joints, highest))
            for name, highest in (
                ("kp_a_per_rad", 5.0),
                ("kd_a_s_per_rad", 0.2),
                ("ki_a_per_rad_s", 5.0),
            )
            if self.random.random() < 0.6
        }
        return m.SetGains(joints=joints, **given)

    def other(self) -> m.AnyCommand:
        rare = (m.Stop(), m.Disable(), m.Reset(), m.Enable())
        usual = (
            m.Status(),
            m.Home(),
            m.Home(posture_rad=self.per_joint((), 1.0)),
            m.PlayStart(),
            m.PlayStop(),
            m.RecordStart(name="take"),
            m.RecordStop(),
            m.RecordMark(text="x"),
            m.Report(report=m.RecorderReport(state="idle")),
        )
        return self.random.choice(rare if self.random.random() < 0.1 else usual)

    def rows(self) -> tuple[m.AnyCommand, bytes]:
        """A part of an upload; a whole one at once now and then, or there would never be any."""
        count, handler = len(self.names), self.rig.loop.handler
        rows = np.zeros((60, 2 * count))
        rows[:, :count] = [track.reference[0] for track in self.rig.tracks]
        if self.random.random() < 0.3:
            rows[self.random.randrange(60), self.random.randrange(2 * count)] = self.value(9.0)
        if self.random.random() < 0.7 and not self.rig.cycle.control.is_playing:
            handler(m.PlayBegin(rows=60))
            handler(m.PlayRows(first=0), rows.tobytes())
            return m.PlayStart(), b""
        size = self.random.randrange(rows.nbytes)
        parts = (m.PlayBegin(rows=self.random.randint(2, 100)), m.PlayRows(first=0))
        return self.random.choice(parts), rows.tobytes()[:size]


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("robot", "seconds"),
    [("bench1", 60 if IS_LONG else 10), ("laas4", 20)],
    ids=["bench1", "laas4"],
)
def test_a_minute_of_anything(robot: str, seconds: int) -> None:
    faults = [f"board-error:at={at_s},code=7" for at_s in range(3, seconds, 4)]
    rig = Rig(robot, calibration_s=0.15, faults=faults)
    clients = [Client(rig, seed) for seed in (31, 32, 33)]
    outcomes: Counter[str] = Counter()
    visited: Counter[State] = Counter()
    modes: Counter[Mode] = Counter()

    def one_cycle() -> bool:
        visited[rig.state] += 1
        for track in rig.tracks:
            modes[track.mode] += 1
            limits = track.axis.joint.limits
            is_led = track.mode in (Mode.POSITION, Mode.PLAY) and track.is_busy
            if is_led and rig.state is State.ACTIVE:
                low, high = limits.position_min_rad - 1e-9, limits.position_max_rad + 1e-9
                assert low <= track.reference[0] <= high
        if rig.state is State.READY and not rig.cycle.control.is_active:
            rig.home_by_truth()  # what is asked at random would never let homing end
        if rig.now % EVERY == 3:
            try:
                rig.send(*clients[rig.now // EVERY % 3].command())
                outcomes["done"] += 1
            except RefusedError as refusal:
                outcomes[refusal.code] += 1
        return False

    runner = rig.runner(duration_ns=seconds * 1_000_000_000)
    runner._is_over = one_cycle
    runner.run()

    assert rig.now * 1_000_000 == runner.elapsed_ns
    assert rig.loop.status().skipped == 0
    assert set(outcomes) <= CODES | {"done"}
    assert outcomes["done"] > 10 * seconds
    assert sum(outcomes.values()) > 80 * seconds
    assert set(visited) == set(State), "every state was visited"
    assert set(modes) >= set(Mode) - {Mode.HOME, Mode.PLAY}
    assert_wire_is_within_limits(rig)


def assert_wire_is_within_limits(rig: Rig) -> None:
    for board in range(len(rig.boards)):
        commands = rig.commands(board)
        timeouts = {(bool(command.mode & ES), command.timeout_ms) for command in commands}
        assert timeouts == {(True, 10), (False, 0)}
        assert any(command.mode & ES for command in commands)
    for number, joint in enumerate(rig.robot.joints):
        limits = joint.limits
        assert np.abs(rig.wire(number, "iq_ff_a")).max() <= limits.current_max_a + 2**-11
        isat_a = rig.wire(number, "isat_a")
        assert isat_a.min() > 0.0
        assert isat_a.max() <= limits.current_max_a
        motor_rad_s = limits.velocity_max_rad_s * joint.drive.gear_reduction
        assert np.abs(rig.wire(number, "motor_velocity_rad_s")).max() <= 1.5 * motor_rad_s
        for name, highest in rig.axes[number].gains_max.items():
            gains = rig.wire(number, name)
            assert 0.0 <= gains.min() <= gains.max() <= highest
    assert np.abs(rig.iq_a or [[0.0]]).max() <= max(
        j.limits.current_max_a for j in rig.robot.joints
    )
