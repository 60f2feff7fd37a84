"""An arm that is held against gravity, and what changes of gains and modes do to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from loop_rig import Rig
from stop_bars import Physics
from stop_cases import POSTURES
from true_motion import TrueMotion

from daq.recording.states import State
from daq.robot import load_robot
from daq.stream import messages as m
from daq.stream.errors import RefusedError
from firmware_protocol.behaviour import IdleIntegral
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS

GAINS = {"kp": "kp_a_per_rad", "kd": "kd_a_s_per_rad", "ki": "ki_a_per_rad_s"}
LOADED = {
    "horizontal": POSTURES["horizontal"],
    "raised": (0.0, -0.6, 0.0, 0.0),
    "bent": POSTURES["bent"],
}
"""Horizontal the arm takes 10.3 A of its 16 A; `uomodri` gives 10 A, so there it is raised less."""
SETTLED = 1500
"""Cycles until a change is over."""
WAYS_OUT = ("at most", "at least", "less than", "disable it", "`mode ", "move it", "takes 0 to")
Change = Callable[[Rig], object]


def held_arm(
    profile: str,
    posture: str,
    reading: IdleIntegral = IdleIntegral.CLEARED,
    *,
    effects: str = "default",
    cycles: int = 5000,
) -> Rig:
    """The arm, driven to a posture in which gravity pulls it, and held there."""
    robot = load_robot("laas4")
    mock = MockRobot(
        robot,
        profile=profile,
        calibration_s=0.3,
        posture_rad=POSTURES["hanging"],  # where it can be calibrated
        idle_integral=reading,
        effects=PRESETS[effects],
    )
    rig = Rig("laas4", profile=profile, mock=mock)
    rig.enable().home_by_truth().hold(100)
    rig.mode("position", *LOADED[posture])
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.mode("hold")
    rig.step(cycles)
    assert rig.state is State.ACTIVE, rig.machine.reason
    return rig


class LoadedArm:
    """What changes do to a held arm.

    Attributes:
        rig: The arm.
        refused: What was not accepted, in words, by name.
        moved_rad: How far any joint truly went from where it stood, by name.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.refused: dict[str, str] = {}
        self.moved_rad: dict[str, float] = {}
        self._motion = TrueMotion(rig)
        rig.step(1)

    def change(self, name: str, *changes: Change, after: int = 40, settled: int = SETTLED) -> bool:
        """Make changes, one soon after the other; returns whether all were accepted."""
        rig, motion = self.rig, self._motion
        began = motion.now
        is_accepted = True
        for number, change in enumerate(changes):
            is_accepted &= self._try(name, change)
            rig.step(settled if number == len(changes) - 1 else after)
        way_rad = motion.position_rad(began - 1)
        self.moved_rad[name] = float(np.abs(way_rad - way_rad[0]).max())
        assert rig.state is State.ACTIVE, f"{name}: {rig.machine.reason}"
        return is_accepted

    def _try(self, name: str, change: Change) -> bool:
        before = _everything(self.rig)
        try:
            change(self.rig)
        except RefusedError as refusal:
            assert _everything(self.rig) == before, f"{name}: refused, and changed something"
            assert any(way in refusal.message for way in WAYS_OUT), refusal.message
            self.refused[name] = refusal.message
            return False
        return True


def _everything(rig: Rig) -> list[Any]:
    commands = [tuple(unit.command) for unit in rig.cycle.units]
    tracks = [
        (track.mode, track.reference, track.position_gains, str(track._law), str(track._goal))
        for track in rig.tracks
    ]
    return [commands, tracks]


# --- what is changed ------------------------------------------------------------------------------


def gains(joint: int, **factors: float) -> Change:
    """Some gains of a joint by factors; ones that the wire does not carry as high as it does."""

    def change(rig: Rig) -> None:
        before, axis = rig.tracks[joint].position_gains, rig.axes[joint]
        chosen = {
            GAINS[name]: (min(getattr(before, GAINS[name]) * factor, axis.gains_max[GAINS[name]]),)
            for name, factor in factors.items()
        }
        rig.send(m.SetGains(joints=(rig.robot.joints[joint].name,), **chosen))

    return change


def file_gains(joint: int) -> Change:
    """The robot file's own gains again."""

    def change(rig: Rig) -> None:
        own, axis = rig.robot.joints[joint].control.position, rig.axes[joint]
        chosen = {name: (getattr(own, name),) for name in GAINS.values() if axis.gains_max[name]}
        rig.send(m.SetGains(joints=(rig.robot.joints[joint].name,), **chosen))

    return change


def hold(joint: int) -> Change:
    return lambda rig: rig.mode("hold", joints=[rig.robot.joints[joint].name])


def stand(joint: int) -> Change:
    return lambda rig: rig.mode("velocity", 0.0, joints=[rig.robot.joints[joint].name])


def torque(joint: int) -> Change:
    """The torque that holds it, without friction's share."""

    def change(rig: Rig) -> None:
        held_nm = Physics(rig).gravity_nm(rig.mock.plant.joint_position_rad)[joint]
        rig.mode("torque", float(held_nm), joints=[rig.robot.joints[joint].name])

    return change


def position(joint: int) -> Change:
    """To where it is."""

    def change(rig: Rig) -> None:
        axis = rig.axes[joint]
        rig.mode("position", axis.position_rad, joints=[axis.joint.name])

    return change


def play(_joint: int) -> Change:
    """A trajectory that stays where the arm is."""

    def change(rig: Rig) -> None:
        rows = np.zeros((300, 2 * len(rig.axes)))
        rows[:, : len(rig.axes)] = [axis.position_rad for axis in rig.axes]
        rig.upload(rows).send(m.PlayStart())

    return change


SWITCHES: dict[str, tuple[Callable[[int], Change], ...]] = {
    "position": (position,),
    "play": (play,),
    "velocity, hold": (stand, hold),
    "velocity, position": (stand, position),
    "torque, hold": (torque, hold),
    "velocity, torque, hold": (stand, torque, hold),
}
