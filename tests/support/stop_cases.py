"""Stops of a moving arm: how it is made to move, what stops it, bars for its true motion."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import random
import signal
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np
from loop_rig import Rig, with_values
from true_motion import TrueMotion

from daq.recording.states import State
from daq.stream import messages as m
from firmware_protocol.codec import reply_codec
from firmware_protocol.profiles import STATUS_BITS
from hw_mocks.plants.arm_plant import ArmPlant

POSTURES = {
    "hanging": (0.0, -math.pi / 2, 0.0, 0.0),
    "horizontal": (0.0, 0.0, 0.0, 0.0),
    "upright": (0.0, math.pi / 2 - math.radians(5.0), 0.0, 0.0),
    "bent": (0.5, -0.8, 0.7, 0.6),
}
MODES = ("position", "velocity", "current", "torque", "play", "hold")
SPEEDS = (1.0, 2.5, 4.4)
CAUSES = (
    "stop",
    "signal",
    "position-limit",
    "speed-limit",
    "temperature-limit",
    "voltage-limit",
    "other-board",
    "exception",
)
PROFILES = ("arm", "uomodri", "udriver2")
_FASTEST_RAD_S = {"position": 2.2, "current": 3.2, "torque": 3.2}
"""Moves to a position take half of the highest speed."""
LOWERED_MAX_RAD_S = 1.6


@dataclasses.dataclass(frozen=True)
class Case:
    """One stop."""

    mode: str
    joint: int
    posture: str
    speed_rad_s: float
    cause: str
    profile: str

    def __str__(self) -> str:
        return "-".join(map(str, dataclasses.astuple(self)))

    @property
    def wanted_rad_s(self) -> float:
        """How fast the joint is when it is stopped: a guard holds what is pushed any faster."""
        return 0.95 * min(self.speed_rad_s, _FASTEST_RAD_S.get(self.mode, math.inf))

    @property
    def is_possible(self) -> bool:
        """34-byte boards measure neither temperature nor bus voltage; what rests is not fast."""
        if self.mode == "hold" and self.cause == "speed-limit":
            return False
        measured = ("temperature-limit", "voltage-limit")
        return self.profile == "arm" or self.cause not in measured


def covering(*, seed: int) -> list[Case]:
    """A set of cases in which every possible pair of values stands at least once."""
    factors: tuple[Sequence[Any], ...] = (
        MODES, range(4), tuple(POSTURES), SPEEDS, CAUSES, PROFILES,
    )  # fmt: skip
    chance = random.Random(seed)
    cases = (Case(*values) for values in itertools.product(*factors))
    everything = [case for case in cases if case.is_possible]
    left = {pair for case in everything for pair in _pairs(case)}
    chosen: list[Case] = []
    while left:
        drawn = chance.sample(everything, 200)
        best = max(drawn, key=lambda case: len(left & set(_pairs(case))))
        if not left & set(_pairs(best)):
            pair = min(left)
            best = next(case for case in everything if pair in _pairs(case))
        chosen.append(best)
        left -= set(_pairs(best))
    return chosen


def _pairs(case: Case) -> list[tuple[Any, ...]]:
    values = [(place, str(value)) for place, value in enumerate(dataclasses.astuple(case))]
    return list(itertools.combinations(values, 2))


# --- what moves, and what stops it ----------------------------------------------------------------


def start(case: Case, **options: Any) -> tuple[Rig, TrueMotion]:
    """An arm that moves as the case says, or holds still."""
    # An arm that gravity pulls cannot be calibrated: it is driven to its posture.
    rig = Rig("laas4", posture_rad=POSTURES["hanging"], profile=case.profile, **options)
    rig.enable().home_by_truth().hold(100)
    if case.posture != "hanging":
        rig.mode("position", *POSTURES[case.posture])
        rig.until(lambda: rig.cycle.control.is_at_rest)
        rig.step(400)
    motion = TrueMotion(rig)
    axis = rig.axes[case.joint]
    move(rig, case)
    rig.step(5)
    if case.mode != "hold":
        for _ in range(3000):
            if abs(axis.velocity_rad_s) >= case.wanted_rad_s or rig.state is not State.ACTIVE:
                break
            rig.step()
        # A weak motor comes to its limit before.
        assert abs(axis.velocity_rad_s) > 0.5 * case.wanted_rad_s, f"{axis.velocity_rad_s} rad/s"
    assert rig.state is State.ACTIVE, rig.machine.reason
    return rig, motion


def move(rig: Rig, case: Case) -> None:
    name, speed = rig.robot.joints[case.joint].name, case.speed_rad_s
    axis = rig.axes[case.joint]
    # From the upright posture down on the side it leans to: away from it the arm would pass it.
    way = -1.0 if axis.position_rad > 0.5 else 1.0
    if case.mode == "position":
        rig.mode("position", axis.position_rad + way * 3.0, joints=[name])
    elif case.mode == "velocity":
        rig.mode("velocity", way * speed, joints=[name])
    elif case.mode == "current":
        rig.mode("current", way * 0.8 * axis.current_max_a, joints=[name])
    elif case.mode == "torque":
        torque_nm = 0.8 * axis.current_max_a * abs(axis.nm_per_a)
        rig.mode("torque", way * torque_nm, joints=[name])
    elif case.mode == "play":
        rig.upload(_swing(rig, case.joint, way * speed)).send(m.PlayStart())


def _swing(rig: Rig, joint: int, speed_rad_s: float) -> np.ndarray:
    """A trajectory that takes one joint smoothly to a speed and back to rest."""
    t = np.arange(0.0, 1.2, 1e-3)
    here = np.array([axis.position_rad for axis in rig.axes])
    rows = np.zeros((len(t), 8))
    rows[:, :4] = here
    omega = 2.0 * math.pi / 1.2
    rows[:, joint] += 0.5 * speed_rad_s * (t - np.sin(omega * t) / omega)
    rows[:, 4 + joint] = 0.5 * speed_rad_s * (1.0 - np.cos(omega * t))
    return rows


def bring_about(rig: Rig, case: Case) -> None:
    """Bring about what stops the arm; `run_to_the_end` does so for a signal and an exception."""
    axis = rig.axes[case.joint]
    board, motor = rig.place_of(case.joint)
    if case.cause == "stop":
        rig.send(m.Stop())
    elif case.cause == "position-limit":
        axis.low_rad, axis.high_rad = axis.position_rad + 1.0, axis.position_rad + 2.0
    elif case.cause == "speed-limit":
        axis.speed_max_rad_s = axis.speed_near_rad_s = 0.01
    elif case.cause == "temperature-limit":
        rig.links[board].tamper = with_values(
            rig.profiles[board], motor, winding_temperature_degc=150.0
        )
    elif case.cause == "voltage-limit":
        rig.links[board].tamper = with_values(rig.profiles[board], bus_voltage_v=10.0)
    elif case.cause == "other-board":
        other = 1 - board
        rig.links[other].tamper = _with_error(rig, other)


def _with_error(rig: Rig, board: int) -> Callable[[bytes], bytes]:
    codec = reply_codec(rig.profiles[board])
    mask = sum(STATUS_BITS[name] for name in ("M1R", "M2R"))

    def tamper(frame: bytes) -> bytes:
        raws = list(codec.decode_raw(frame))
        raws[0] = raws[0] & ~mask & ~0xF | 7
        return codec.encode_raw(raws)

    return tamper


# --- the bars -------------------------------------------------------------------------------------


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
    """How a stop went, beside its bars."""

    at_trip_rad_s: float
    fastest_rad_s: float
    lowered_rad_s: float
    travel_rad: float
    travel_max_rad: float

    @property
    def is_slow(self) -> bool:
        return self.fastest_rad_s <= max(
            1.05 * self.at_trip_rad_s, 1.2 * self.lowered_rad_s, NOISE_RAD_S
        )

    @property
    def is_short(self) -> bool:
        return self.travel_rad <= self.travel_max_rad + NOISE_RAD


NOISE_RAD_S = 0.02
NOISE_RAD = 0.001
"""A joint that was held without motion: less than this is none."""


def judge(rig: Rig, motion: TrueMotion, joint: int) -> Verdict:
    """Judge a joint's stop by its true motion since the first frame of it went out."""
    tripped = motion.stop_sent()
    axis, physics = rig.axes[joint], Physics(rig)
    q = motion.position_rad(tripped - 1)
    v = motion.velocity_rad_s(tripped - 1)[:, joint]
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


def run_to_the_end(rig: Rig, case: Case, *, cycles: int = 25_000) -> None:
    """Let the stop go on until the boards are off, and what is left of motion die away."""
    if case.cause == "signal":
        runner = rig.runner()
        runner.end(signal.SIGTERM)
        runner.run()
    elif case.cause == "exception":
        rig.cycle.control.step = _raise
        rig.cycle.control.is_busy = True
        with contextlib.suppress(ZeroDivisionError):
            rig.runner().run()
    else:
        rig.until(lambda: rig.state in (State.IDLE, State.FAULT), cycles=cycles)
    end_ns = rig.clock.now_ns()
    while rig.clock.now_ns() < end_ns + 2_000_000_000:
        rig.step(50)


def _raise() -> None:
    raise ZeroDivisionError("by a test")
