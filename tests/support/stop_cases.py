"""Stops of a moving arm: how it is made to move, what stops it, and what the stop then does."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from loop_rig import Rig, Tamper, corrupt, for_cycles, silent, with_values
from true_motion import STEPS_PER_CYCLE, TrueMotion

from daq.loop.io.axis import Axis
from daq.loop.setup import PERIOD_NS
from daq.recording.states import State
from daq.robot import Robot, load_robot
from daq.stream import messages as m
from firmware_protocol.codec import reply_codec
from firmware_protocol.profiles import STATUS_BITS

POSTURES = {
    "hanging": (0.0, -math.pi / 2, 0.0, 0.0),
    "horizontal": (0.0, 0.0, 0.0, 0.0),
    "upright": (0.0, math.pi / 2 - math.radians(5.0), 0.0, 0.0),
    "bent": (0.5, -0.8, 0.7, 0.6),
}
MODES = ("position", "velocity", "current", "torque", "play", "hold")
SPEEDS = (1.0, 2.5, 4.4)
CAUSES = {
    "stop": "",
    "disable": "",
    "signal": "",
    "position-limit": "position-limit",
    "speed-limit": "speed-limit",
    "following-error": "following-error",
    "temperature-limit": "temperature-limit",
    "voltage-limit": "voltage-limit",
    "skipped-periods": "skipped-periods",
    "other-board": "error-7",
    "silent": "silent",
    "corrupt": "corrupt",
    "unreachable": "unreachable",
    "stall": "stall",
    "encoder-frozen": "encoder-frozen",
    "exception": "internal-error",
}
"""What stops the arm, and the code of the trip; none where nothing is wrong."""
ANSWERS = ("brake", "hold")
"""Of `[safety] stop`. `coast` brakes nothing: bars of a brake mean nothing for it."""
_HELD = ("stop", "position-limit", "speed-limit", "following-error")
"""Only after these is anything held."""
PROFILES = ("arm", "uomodri", "udriver2")
_FASTEST_RAD_S = {"position": 2.2, "current": 3.2, "torque": 3.2}
"""Moves to a position take half of the highest speed."""
_HOT = {"winding_temperature_degc": 150.0}
_SKIPPED_MAX = 20
_SKIPPED = 4
"""Periods that each cycle of a busy computer leaves out: a board waits for longer."""
_STILL_BUSY_CYCLES = 20
_UNREADABLE_CYCLES = 400
"""So long a board's replies are corrupt: until the arm has been braked."""
_HELD_CYCLES = 1500
_HELD_RAD = 0.01


@dataclasses.dataclass(frozen=True)
class Case:
    """One stop."""

    mode: str
    joint: int
    posture: str
    speed_rad_s: float
    cause: str
    profile: str
    answer: str = "brake"

    def __str__(self) -> str:
        return "-".join(map(str, dataclasses.astuple(self)))

    @property
    def wanted_rad_s(self) -> float:
        """How fast the joint is when it is stopped: a guard holds what is pushed any faster."""
        return 0.95 * min(self.speed_rad_s, _FASTEST_RAD_S.get(self.mode, math.inf))

    @property
    def is_led(self) -> bool:
        """Whether a reference leads it, and not its current alone."""
        return self.mode not in ("current", "torque")

    @property
    def is_possible(self) -> bool:
        """Whether the cause can stop what moves so, on such boards, and the answer is given to it.

        34-byte boards measure neither temperature nor bus voltage. What rests is not fast, and its
        counts cannot stop. What is pushed by its current alone follows nothing. A joint that is
        blocked while it moves looks like a frozen encoder: it stalls only where it stands.
        """
        impossible = {
            "speed-limit": self.mode == "hold",
            "encoder-frozen": self.mode == "hold",
            "following-error": not self.is_led,
            "stall": self.mode != "hold",
            "temperature-limit": self.profile != "arm",
            "voltage-limit": self.profile != "arm",
        }
        is_answered_so = self.answer == "brake" or self.cause in _HELD
        return is_answered_so and not impossible.get(self.cause, False)

    @property
    def robot(self) -> Robot:
        """The arm, with the answer in its file; and a deadline budget that is soon used up."""
        robot = load_robot("laas4")
        safety = msgspec.structs.replace(robot.safety, stop=self.answer)
        if self.cause == "skipped-periods":
            safety = msgspec.structs.replace(safety, skipped_max_per_s=_SKIPPED_MAX)
        return msgspec.structs.replace(robot, safety=safety)


# --- what moves, and what stops it ----------------------------------------------------------------


def start(case: Case, **options: Any) -> tuple[Rig, TrueMotion]:
    """An arm that moves as the case says, or holds still."""
    # An arm that gravity pulls cannot be calibrated: it is driven to its posture.
    rig = Rig(case.robot, posture_rad=POSTURES["hanging"], profile=case.profile, **options)
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
    profile, other = rig.profiles[board], 1 - board
    replies: dict[str, tuple[int, Callable[[], Tamper]]] = {
        "temperature-limit": (board, lambda: with_values(profile, motor, **_HOT)),
        "voltage-limit": (board, lambda: with_values(profile, bus_voltage_v=10.0)),
        "other-board": (other, lambda: _with_error(rig, other)),
        "silent": (board, lambda: silent),
        "corrupt": (board, lambda: for_cycles(_UNREADABLE_CYCLES, corrupt)),
    }
    if case.cause in replies:
        changed, tamper = replies[case.cause]
        rig.links[changed].tamper = tamper()
    elif case.cause == "stop":
        rig.send(m.Stop())
    elif case.cause == "disable":
        rig.send(m.Disable())
    elif case.cause == "position-limit":
        axis.low_rad, axis.high_rad = axis.position_rad + 1.0, axis.position_rad + 2.0
    elif case.cause == "speed-limit":
        axis.speed_max_rad_s = axis.speed_near_rad_s = 0.01
    elif case.cause == "following-error":
        _exceed_following(rig, axis)
    elif case.cause == "skipped-periods":
        _be_busy(rig)
    elif case.cause == "unreachable":
        rig.links[other].is_gone = True
    elif case.cause == "stall":
        _stall(rig, case.joint)
    elif case.cause == "encoder-frozen":
        rig.outputs[case.joint].encoder.is_frozen = True


def _exceed_following(rig: Rig, axis: Axis) -> None:
    """Allow no error until the robot stops for it: what is held then has the usual limit."""
    allowed_rad, axis.following_max_rad = axis.following_max_rad, -1.0
    inner = rig.machine.trip

    def trip(*what: Any, **details: Any) -> None:
        axis.following_max_rad = allowed_rad
        inner(*what, **details)

    rig.machine.trip = trip  # type: ignore[method-assign]


def _be_busy(rig: Rig) -> None:
    """Leave out periods until the robot stops for it, and for some time afterwards."""
    cycles_left = _STILL_BUSY_CYCLES
    while cycles_left:
        cycles_left -= rig.state is not State.ACTIVE
        deadline_ns = rig.clock.now_ns() + PERIOD_NS
        rig.clock.sleep_until_ns(deadline_ns + _SKIPPED * PERIOD_NS)
        rig.cycle.run(deadline_ns, rig.clock.now_ns(), _SKIPPED)


def _stall(rig: Rig, joint: int) -> None:
    """Block a joint and push it until the robot stops for it; what blocks it gives way then."""
    plant, axis = rig.mock.plant, rig.axes[joint]
    data, inner = plant.data, plant.step
    blocked_rad = float(data.qpos[joint])

    def step(torques_nm: Sequence[float]) -> None:
        inner(torques_nm)
        data.qpos[joint], data.qvel[joint] = blocked_rad, 0.0

    plant.step = step  # type: ignore[method-assign]
    rig.mode("current", 0.8 * axis.current_max_a, joints=[axis.joint.name])
    rig.until(lambda: rig.state is not State.ACTIVE, cycles=3000)
    plant.step = inner  # type: ignore[method-assign]


def _with_error(rig: Rig, board: int) -> Callable[[bytes], bytes]:
    codec = reply_codec(rig.profiles[board])
    mask = sum(STATUS_BITS[name] for name in ("M1R", "M2R"))

    def tamper(frame: bytes) -> bytes:
        raws = list(codec.decode_raw(frame))
        raws[0] = raws[0] & ~mask & ~0xF | 7
        return codec.encode_raw(raws)

    return tamper


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
        if case.answer == "hold":
            _hold(rig, case)
            rig.send(m.Disable())
        rig.until(lambda: rig.state in (State.IDLE, State.FAULT), cycles=cycles)
    end_ns = rig.clock.now_ns()
    while rig.clock.now_ns() < end_ns + 2_000_000_000:
        rig.step(50)


def _hold(rig: Rig, case: Case) -> None:
    """Go on until all joints have stood still for a while, held.

    Joint2 of a raised arm that falls is not braked by 10 A in time: then it is lowered.
    """
    rig.until(lambda: rig.state is State.STOPPING, cycles=50)
    rig.step(_HELD_CYCLES)
    if case.profile == "uomodri" and case.joint == 1 and not rig.machine.is_holding:
        assert "joint joint2 is pulled away" in rig.event_texts("stop")[0]
        return
    assert rig.machine.is_holding, rig.event_texts("stop")
    stood_rad = np.array(rig.joint_rad[-_HELD_CYCLES // 3 :])
    assert np.ptp(stood_rad, axis=0).max() < _HELD_RAD


def first_step(motion: TrueMotion, case: Case, caused: int) -> int:
    """Number of the step from which on a stop is judged that was caused at a step.

    `disable` stops from when it is said. The first frame of a computer that is busy is late.
    """
    if case.cause == "disable":
        return caused
    late = _SKIPPED * STEPS_PER_CYCLE if case.cause == "skipped-periods" else 0
    return motion.stop_sent() + late


def _raise() -> None:
    raise ZeroDivisionError("by a test")
