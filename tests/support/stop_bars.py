"""Bars for the true motion of an arm that is stopped."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import mujoco
import numpy as np
from loop_rig import Rig
from true_motion import STEP_S, TrueMotion

from hw_mocks.plants.arm_plant import ArmPlant

LOWERED_MAX_RAD_S = 1.6
NOISE_RAD_S = 0.02
HARDLY_RAD_S, SHAKEN_RAD_S = 0.1, 0.03
"""A joint that hardly moves is shaken by the others, which are braked and lowered."""
NOISE_RAD = 0.001
"""A joint that was held without motion: less than this is none."""


class Physics:
    """What the simulated arm weighs, by MuJoCo: the truth, which the loop does not know."""

    def __init__(self, rig: Rig) -> None:
        plant = rig.mock.plant
        assert isinstance(plant, ArmPlant)
        self._model, self._data = plant.model, mujoco.MjData(plant.model)

    def gravity_nm(self, q_rad: Sequence[float]) -> np.ndarray:
        """The torques that hold the arm."""
        data = self._data
        data.qpos[: len(q_rad)], data.qvel[:] = q_rad, 0.0
        mujoco.mj_forward(self._model, data)
        return np.array(data.qfrc_bias)

    def inertia_kg_m2(self, q_rad: Sequence[float]) -> np.ndarray:
        """The mass matrix's diagonal."""
        self.gravity_nm(q_rad)
        mobility = np.zeros((self._model.nv, self._model.nv))
        mujoco.mj_solveM(self._model, self._data, mobility, np.eye(self._model.nv))
        return np.linalg.inv(mobility).diagonal()


@dataclasses.dataclass
class Verdict:
    """How a stop went, beside its bars.

    Attributes:
        at_trip_rad_s: True speed of the joint when it began.
        fastest_rad_s: The highest since then, to the very end.
        lowered_rad_s: At which Kd lowers it where gravity pulls hardest.
        travel_rad: Until it first rested or was lowered.
        travel_max_rad: The bar for that.
    """

    at_trip_rad_s: float
    fastest_rad_s: float
    lowered_rad_s: float
    travel_rad: float
    travel_max_rad: float

    @property
    def is_slow(self) -> bool:
        return self.is_slower_than(1.05 * self.at_trip_rad_s)

    def is_slower_than(self, allowed_rad_s: float) -> bool:
        """Whether it never became faster than that, unless it was lowered."""
        if self.at_trip_rad_s < HARDLY_RAD_S:
            allowed_rad_s += SHAKEN_RAD_S
        return self.fastest_rad_s <= max(allowed_rad_s, 1.2 * self.lowered_rad_s, NOISE_RAD_S)

    @property
    def is_short(self) -> bool:
        return self.travel_rad <= self.travel_max_rad + NOISE_RAD


def judge(
    rig: Rig, motion: TrueMotion, joint: int, *, first: int | None = None, last: int | None = None
) -> Verdict:
    """Judge a joint's stop by its true motion.

    Args:
        rig: After the stop.
        motion: Of its plant.
        joint: Number of the joint.
        first: Number of the step from which on it is judged; that before the first frame of the
            stop if not given.
        last: Before which step that ends; with the motion if not given.
    """
    tripped = motion.stop_sent() if first is None else first
    axis, physics = rig.axes[joint], Physics(rig)
    q = motion.position_rad(tripped - 1, last)
    v = motion.velocity_rad_s(tripped - 1, last)[:, joint]
    drive = rig.robot.joints[joint].drive
    friction_nm = drive.joint_coulomb_nm
    damping = rig.wire(joint, "kd_a_s_per_rad").max() * axis.nm_per_a * axis.motor_per_joint
    pulls_nm = np.array([abs(physics.gravity_nm(row)[joint]) for row in q[::40]])
    lowered_rad_s = max(0.0, float(pulls_nm.max()) - friction_nm) / damping
    assert lowered_rad_s <= LOWERED_MAX_RAD_S
    at_trip = float(v[0])
    slow = np.flatnonzero(np.abs(v) <= max(1.2 * lowered_rad_s, 0.005))
    end = int(slow[0]) if len(slow) else len(v)
    # The heaviest that it becomes on its way.
    way = math.copysign(1.0, at_trip)
    pull_nm = max(-way * float(physics.gravity_nm(row)[joint]) for row in q[: end + 1 : 40])
    torque_nm = axis.isat_a * abs(axis.nm_per_a)
    assert torque_nm > pull_nm, "no stop can hold it"
    slowing = (torque_nm - pull_nm + friction_nm) / float(physics.inertia_kg_m2(q[0])[joint])
    return Verdict(
        at_trip_rad_s=abs(at_trip),
        fastest_rad_s=float(np.abs(v).max()),
        lowered_rad_s=lowered_rad_s,
        travel_rad=float(np.abs(q[: end + 1, joint] - q[0, joint]).max()),
        travel_max_rad=1.25 * at_trip**2 / (2.0 * slowing) + 0.025 * abs(at_trip),
    )


@dataclasses.dataclass
class Freed:
    """How a motor lost its current whose encoder had died in motion.

    Attributes:
        before_rad_s: True speed of its joint when it died.
        fastest_rad_s: The highest until there was no current.
        freed_ms: How long that took, for good until the boards were off.
    """

    before_rad_s: float
    fastest_rad_s: float
    freed_ms: float

    @property
    def bar_rad_s(self) -> float:
        """How fast it may become, on boards whose replies are not late."""
        return max(1.5 * self.before_rad_s, self.before_rad_s + 0.5)


_NO_CURRENT_A = 0.05


def judge_freed(motion: TrueMotion, joint: int, *, died: int) -> Freed:
    """Judge what became of a joint whose encoder died at a step, until the boards were off."""
    current_a = np.abs(motion.current_a(died, motion.stop_over())[:, joint])
    flowing = np.flatnonzero(current_a >= _NO_CURRENT_A)
    freed = int(flowing[-1]) + 1 if len(flowing) else 0
    v = np.abs(motion.velocity_rad_s(died - 1, died + max(freed, 1))[:, joint])
    return Freed(float(v[0]), float(v.max()), 1e3 * STEP_S * freed)
