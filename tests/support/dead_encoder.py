"""Joints whose encoder dies: where, while they do what, and how fast they truly become."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from loop_rig import Rig
from stop_cases import POSTURES, Case, move
from true_motion import TrueMotion

from daq.recording.states import State
from daq.stream import messages as m

Doing = Literal["velocity", "play", "at rest", "jog", "homing"]
SLOW_RAD_S = 0.1
LATER = 1.15
"""So many times the bars where replies are up to three cycles old, as those of `udriver2` are, or
where nobody knows what a joint turns."""
_SWUNG = (0.3, -1.3, 0.3, 0.6)


@dataclasses.dataclass(frozen=True)
class Dies:
    """One encoder that dies.

    Attributes:
        doing: What its joint does then; `at rest`, what it is told afterwards stands in `then`.
        speed_rad_s: How fast.
        then: Mode and target; nothing by default.
        after_ms: So long after it has got its speed, or has come to its place, or has begun.
    """

    profile: str
    joint: int
    posture: str
    doing: Doing
    speed_rad_s: float = 0.0
    then: tuple[str, float] | None = None
    after_ms: int = 100
    has_model: bool = True

    def __str__(self) -> str:
        what = self.doing if self.then is None else f"{self.doing}-{self.then[0]}-{self.then[1]}"
        model = "" if self.has_model else "-no model"
        return (
            f"{self.profile}-joint{self.joint + 1}-{self.posture}-{what}-{self.speed_rad_s}-"
            f"{self.after_ms}{model}"
        )


@dataclasses.dataclass(frozen=True)
class Fate:
    """What became of it.

    Attributes:
        before_rad_s: Its true speed before.
        fastest_rad_s: The highest until its motor had no more current, or nothing more happened.
        stopped_ms: When the robot stopped; None if it did not.
    """

    before_rad_s: float
    fastest_rad_s: float
    stopped_ms: int | None
    code: str

    def bar_rad_s(self, case: Dies) -> float:
        """The highest speed that is allowed."""
        at_rest_rad_s = 2.0 if self.before_rad_s < SLOW_RAD_S else 0.0
        moving_rad_s = max(1.5 * self.before_rad_s, self.before_rad_s + 0.5)
        is_later = case.profile == "udriver2" or not case.has_model
        return (LATER if is_later else 1.0) * max(moving_rad_s, at_rest_rad_s)


def fate(case: Dies, *, seed: int = 0, watched_ms: int = 4000) -> Fate:
    rig = _prepared(case, seed)
    motion = TrueMotion(rig)
    name = rig.robot.joints[case.joint].name
    if case.doing in ("velocity", "play"):
        _get_going(rig, case)
    elif case.doing == "jog":
        rig.mode("velocity", case.speed_rad_s, joints=[name])
    elif case.doing == "homing":
        rig.send(m.Home())
    rig.step(case.after_ms)
    assert rig.state is State.ACTIVE, rig.machine.reason
    died = motion.now
    before_rad_s = 0.0
    if motion.now > 10 and case.doing != "at rest":
        before_rad_s = float(np.abs(motion.velocity_rad_s(died - 10)[:, case.joint]).mean())
    rig.outputs[case.joint].encoder.is_frozen = True
    if case.then is not None:
        mode, target = case.then
        here_rad = rig.axes[case.joint].position_rad if mode == "position" else 0.0
        rig.mode(mode, here_rad + target, joints=[name])
    stopped_ms = None
    for ms in range(1, watched_ms + 1):
        rig.step()
        if stopped_ms is None and rig.state is not State.ACTIVE:
            stopped_ms = ms
        if stopped_ms is not None and max(abs(i[case.joint]) for i in rig.iq_a[-3:]) < 0.05:
            break
    fastest = np.abs(motion.velocity_rad_s(died)[:, case.joint])
    return Fate(before_rad_s, float(fastest.max()), stopped_ms, rig.machine.trip_code)


def _prepared(case: Dies, seed: int) -> Rig:
    is_homing = case.doing == "homing"
    rig = Rig(
        "laas4",
        posture_rad=_SWUNG if is_homing else POSTURES["hanging"],
        profile=case.profile,
        has_model=case.has_model,
        seed=seed,
    ).enable()
    if is_homing or case.doing == "jog":
        return rig.hold(1000 if is_homing else 100)  # an arm that is not held well swings
    rig.home_by_truth().hold(100)
    if case.posture != "hanging":
        rig.mode("position", *POSTURES[case.posture])
        rig.until(lambda: rig.cycle.control.is_at_rest)
        if case.doing != "at rest":
            rig.step(400)
    return rig


def _get_going(rig: Rig, case: Dies) -> None:
    axis = rig.axes[case.joint]
    if case.doing == "velocity":
        rig.mode("velocity", case.speed_rad_s, joints=[axis.joint.name])
    else:
        move(rig, Case("play", case.joint, case.posture, case.speed_rad_s, "stop", case.profile))
    rig.step(5)
    for _ in range(2000):  # a weak motor comes to its limit before
        if abs(axis.velocity_rad_s) >= 0.95 * abs(case.speed_rad_s):
            break
        rig.step()
