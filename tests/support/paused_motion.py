"""A motion of one joint during which the computer pauses, and what that truly does to the arm."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
from loop_rig import Rig
from stop_cases import POSTURES
from true_motion import TrueMotion

from daq.loop.setup import PERIOD_NS
from daq.recording.states import State
from daq.robot import Robot, load_robot
from daq.stream import messages as m
from hw_mocks.clock import VirtualClock

STEPS_PER_MS = 4
FOUND_MS = 42
"""So long a joint is led by its current, after a board that held its reference has braked it."""
PLAYED_S = 1.6
REST_MAX = 4000
"""Cycles within which every motion must have come to rest."""


class LateClock(VirtualClock):
    """Wakes up too late once, by whole periods and a little more."""

    def __init__(self) -> None:
        super().__init__()
        self.pause = 0

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        if self.pause:
            pause, self.pause = self.pause, 0
            self.advance_ns(pause * PERIOD_NS + 123_456)


@dataclasses.dataclass(frozen=True)
class Paused:
    """A motion and a pause in it.

    Attributes:
        kind: `velocity`, `position` or `play`.
        share: Of the highest speed that may be commanded.
        began_ms: When the pause begins, after the motion did.
        pause_ms: How long it is; 0 for none.
    """

    profile: str
    joint: int
    kind: str
    share: float
    began_ms: int
    pause_ms: int

    def __str__(self) -> str:
        return "-".join(map(str, dataclasses.astuple(self)))


def patient_arm(*, acceleration_max_rad_s2: float | None = None) -> Robot:
    """The arm with boards that bear long pauses, and perhaps another limit of acceleration."""
    robot = load_robot("laas4")
    boards = tuple(msgspec.structs.replace(port, command_timeout_ms=255) for port in robot.boards)
    joints = robot.joints
    if acceleration_max_rad_s2 is not None:
        joints = tuple(
            msgspec.structs.replace(
                joint,
                limits=msgspec.structs.replace(
                    joint.limits, acceleration_max_rad_s2=acceleration_max_rad_s2
                ),
            )
            for joint in joints
        )
    return msgspec.structs.replace(robot, boards=boards, joints=joints)


class PausedMotion:
    """How it went.

    Attributes:
        rig: The arm, at rest again.
        fastest_rad_s: The joint's true speed from the pause on.
        step_a: Largest change of its true current within a millisecond, after the pause.
        highest_a: Its largest true current, once it is led on.
        acceleration_rad_s2: Largest change of the reference's speed, once it is led on.
        reference_step_rad: Largest change of the reference within a period beyond its speed.
        rests_after_ms: When every reference stood still, since the motion began.
        end_rad: Where the reference ended, from where it began.
        error_rad: How far the true joint is from it.
    """

    def __init__(self, case: Paused, robot: Robot | None = None) -> None:
        clock = LateClock()
        self.case = case
        self.rig = rig = Rig(
            robot or patient_arm(),
            profile=case.profile,
            posture_rad=POSTURES["hanging"],
            clock=clock,
        )
        rig.enable().home_by_truth().hold(300)
        self._runner = rig.runner()
        self._motion = motion = TrueMotion(rig)
        self._references: list[tuple[float, float]] = []
        start_rad = rig.tracks[case.joint].reference[0]
        self._begin()
        self._go(case.began_ms)
        clock.pause = case.pause_ms
        paused, row = motion.now, len(self._references)
        self._go(1)
        resumed = motion.now - STEPS_PER_MS  # what the board drove until the next frame
        self._go(400)
        if case.kind == "velocity":
            rig.mode("hold", joints=[rig.robot.joints[case.joint].name])
        for _ in range(REST_MAX):
            if rig.cycle.control.is_at_rest:
                break
            self._go(1)
        self.rests_after_ms = len(self._references) + case.pause_ms
        self._rested = len(self._references)
        self._go(1500)
        assert rig.state is State.ACTIVE, rig.machine.reason
        self._judge(start_rad, paused, row, resumed)

    def _begin(self) -> None:
        rig, case = self.rig, self.case
        name, limits = rig.robot.joints[case.joint].name, rig.robot.joints[case.joint].limits
        speed_rad_s = case.share * 0.9 * limits.velocity_max_rad_s
        here_rad = rig.tracks[case.joint].reference[0]
        if case.kind == "velocity":
            rig.mode("velocity", speed_rad_s, joints=[name])
        elif case.kind == "position":
            # Moves take half of the highest speed, if they are long enough.
            rig.mode("position", here_rad + 0.8 * case.share, joints=[name])
        else:
            rig.upload(_swing(rig, case.joint, speed_rad_s)).send(m.PlayStart())

    def _go(self, cycles: int) -> None:
        track = self.rig.tracks[self.case.joint]
        for _ in range(cycles):
            self._runner._period(self.rig.cycle.run)
            self._references.append(track.reference[:2])

    def _judge(self, start_rad: float, paused: int, row: int, resumed: int) -> None:
        case, motion = self.case, self._motion
        joint = case.joint
        self.fastest_rad_s = float(np.abs(motion.velocity_rad_s(paused)[:, joint]).max())
        current_a = motion.current_a(resumed)[:, joint]
        whole = len(current_a) // STEPS_PER_MS * STEPS_PER_MS
        per_ms_a = current_a[:whole].reshape(-1, STEPS_PER_MS).mean(axis=1)
        self.step_a = float(np.abs(np.diff(per_ms_a)).max())
        led_on_ms = 0 if self.rig.axes[joint].behaviour.is_reference_advanced else FOUND_MS
        self.highest_a = float(np.abs(current_a[led_on_ms * STEPS_PER_MS :]).max())
        positions, speeds = np.array(self._references).T
        # The row of the late cycle itself was decided after its reply.
        row += led_on_ms
        after = speeds[row : self._rested]
        self.acceleration_rad_s2 = float(np.abs(np.diff(after)).max()) * 1e3
        surprise = np.diff(positions[row : self._rested]) - 0.5e-3 * (after[1:] + after[:-1])
        self.reference_step_rad = float(np.abs(surprise).max())
        self.end_rad = float(positions[-1]) - start_rad
        self.error_rad = float(motion.position_rad(motion.now - 1)[0, joint] - positions[-1])


def _swing(rig: Rig, joint: int, speed_rad_s: float) -> np.ndarray:
    """A trajectory that takes a joint smoothly to a speed and back to rest."""
    t = np.arange(0.0, PLAYED_S, 1e-3)
    rows = np.zeros((len(t), 2 * len(rig.axes)))
    rows[:, : len(rig.axes)] = [track.reference[0] for track in rig.tracks]
    omega = math.tau / PLAYED_S
    rows[:, joint] += 0.5 * speed_rad_s * (t - np.sin(omega * t) / omega)
    rows[:, len(rig.axes) + joint] = 0.5 * speed_rad_s * (1.0 - np.cos(omega * t))
    return rows
