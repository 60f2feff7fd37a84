"""The one safe stop: it takes energy out of the arm, and switches the boards off at rest.

The boards' own law brakes: no stiffness, no feed-forward, Kd towards zero speed. That never pushes
a joint on, however late a frame comes. What gravity still moves is lowered against the same Kd
until it rests; a joint that creeps would fall once its board is off. Time is the clock's, not a
count of cycles. When the stop begins and why is decided elsewhere (`daq.loop.safety.machine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

from daq.control.braking import damping_nm_s_per_rad, least_inertias_kg_m2
from daq.control.torque_model import TorqueModel
from daq.loop.events import Events
from daq.loop.io.axis import Axis, Law
from daq.loop.io.loop_board import LoopBoard
from daq.robot import DrivenRobot

BUILD_UP_S = 0.01
"""In this time Kd grows to its full value: a gear does not like blows."""
REST_S = 0.3
REST_RAD_S = 0.005
"""A joint rests that is slower than this on average, by its counts, over `REST_S`."""
LOWERED_MAX_RAD_S = 1.6
"""No joint that obeys is lowered faster."""
_STILL_RAD_S = 0.05
"""A joint slower than this is held where it is; a faster one is braked first."""
_BRAKED_S = 0.12
"""So long a joint is braked before it is held: by then its current is what gravity takes."""
_GROWTH_RAD_S = 0.5
_GROWTH_CYCLES = 5
_UNHEARD_NS = 20_000_000
"""After so long without a reply nobody knows whether a joint rests."""
_RINGING = 3.0
"""Times the hardest damping of a rotor that turns nothing else: it swings, but comes to rest."""
_SUM_SHARE = 0.7
"""Of the current at which some boards' law overflows: so much braking is asked for at most."""
_AGAIN_NS = 20_000_000
"""So often Kd follows the inertia: an arm that is lowered turns less about its upright axis."""
_NO_LAW = Law()


class _Joint:
    """One joint on its way to rest."""

    __slots__ = ("axis", "growing", "heard_ns", "is_free", "is_heard", "is_still", "kd",
                 "replies", "rests_at_rad", "rests_since_ns", "slowest", "unit")  # fmt: skip

    def __init__(self, axis: Axis, unit: LoopBoard) -> None:
        self.axis = axis
        self.unit = unit
        self.kd = 0.0

    def begin(self, kd_a_s_per_rad: float, now_ns: int) -> None:
        self.kd = kd_a_s_per_rad
        self.is_free = False
        # The current of a joint that nothing has led is no measure of what holds it.
        self.is_still = self.axis.is_carried and abs(self.axis.velocity_rad_s) < _STILL_RAD_S
        self.axis.limit_current(self.axis.current_max_a)
        self.watch(now_ns)

    def watch(self, now_ns: int) -> None:
        """Begin to look whether it comes to rest, and does not go faster."""
        self.rests_at_rad, self.rests_since_ns = self.axis.position_rad, now_ns
        self.slowest, self.growing = math.inf, 0
        self.replies, self.heard_ns, self.is_heard = self.unit.replies, now_ns, True

    def look(self, now_ns: int) -> bool:
        """Return whether it has rested for long enough, as far as it can be seen.

        A board whose replies cannot be read may well brake; one that cannot be reached does not.
        """
        position_rad, unit = self.axis.position_rad, self.unit
        if unit.replies is not self.replies or unit.failure is not None:
            self.replies, self.heard_ns = unit.replies, now_ns
        self.is_heard = now_ns - self.heard_ns < _UNHEARD_NS
        # On the bench nothing pulls: whoever hears nothing of it waits no longer than it brakes.
        is_hidden = not (self.is_heard or self.axis.joint.is_on_bench)
        if is_hidden or abs(position_rad - self.rests_at_rad) > REST_RAD_S * REST_S:
            self.rests_at_rad, self.rests_since_ns = position_rad, now_ns
        return now_ns - self.rests_since_ns >= REST_S * 1e9

    def grows(self) -> bool:
        """Return whether its speed grows although it is braked with all there is."""
        speed_rad_s = abs(self.axis.velocity_rad_s)
        self.slowest = min(self.slowest, speed_rad_s)
        is_growing = speed_rad_s > max(self.slowest + _GROWTH_RAD_S, 1.25 * LOWERED_MAX_RAD_S)
        self.growing = self.growing + 1 if is_growing else 0
        return self.growing >= _GROWTH_CYCLES

    def brake(self, share: float) -> None:
        axis, kd = self.axis, share * self.kd
        highest_a = axis.behaviour.current_sum_max_a
        if highest_a is not None:
            motor_rad_s = abs(axis.velocity_rad_s * axis.motor_per_joint)
            kd = min(kd, _SUM_SHARE * highest_a / (motor_rad_s + 1.0))
        axis.refer(axis.position_rad, 0.0)
        axis.obey(Law(kd_a_s_per_rad=kd))

    def hold(self) -> None:
        """Hold it where it is now, with the current that has held it until now."""
        axis, gains = self.axis, self.axis.joint.control.position
        axis.refer(axis.position_rad, 0.0)
        axis.obey(Law(gains.kp_a_per_rad, gains.kd_a_s_per_rad, 0.0, axis.iq_mean_a))

    @property
    def strays(self) -> bool:
        """Whether it has left the place where it is held."""
        axis = self.axis
        return abs(axis.error_rad / axis.motor_per_joint) > axis.error_max_rad


class SafeStop:
    """Brakes, holds or lets go of all joints of a robot.

    Attributes:
        is_holding: Whether the posture is to be held, until somebody says otherwise.
        lowered: Names of the joints that gravity still moved when braking should have been over.
    """

    def __init__(
        self,
        robot: DrivenRobot,
        units: Sequence[LoopBoard],
        events: Events,
        *,
        model: TorqueModel | None,
        now_ns: Callable[[], int],
    ) -> None:
        self._safety = robot.safety
        self._units = units
        self._events = events
        self._model = model
        self._now_ns = now_ns
        joints = [_Joint(axis, unit) for unit in units for axis in unit.axes]
        self._joints = sorted(joints, key=lambda joint: joint.axis.number)
        self._least_kg_m2 = least_inertias_kg_m2(robot, model)
        self._began_ns = self._held_ns = self._gains_ns = 0
        self._held: set[_Joint] = set()
        self.is_holding = False
        self.lowered: list[str] = []

    # --- what is asked of it ----------------------------------------------------------------------

    def begin(self, *, may_hold: bool) -> None:
        """Brake with the next command, or whatever the robot file asks for."""
        now_ns = self._began_ns = self._held_ns = self._gains_ns = self._now_ns()
        self.lowered = []
        self._held = set()
        for joint, kd in zip(self._joints, self._gains(), strict=True):
            joint.begin(kd, now_ns)
        if self._safety.stop == "coast":
            self.switch_off()
            return
        self.is_holding = may_hold and self._safety.stop == "hold"
        self._command(now_ns)

    def lower(self, reason: str) -> None:
        """Hold no longer, if anything is held: brake, and lower what gravity pulls."""
        if self.is_holding:
            self.is_holding = False
            self._held = set()
            self._began_ns = now_ns = self._now_ns()
            for joint in self._joints:
                joint.watch(now_ns)  # what was held has rested, but not by itself
            self._events.add("stop", f"{reason}: the posture is held no longer")

    def free(self, axis: Axis) -> None:
        """Take all current from a motor at once: its encoder is not believed."""
        for joint in self._joints:
            if joint.axis is axis:
                joint.is_free = True
                axis.obey(_NO_LAW)

    def let_go(self, unit: LoopBoard) -> None:
        """Switch a board off at once: it does not obey."""
        unit.disable()
        for axis in unit.axes:
            axis.obey(_NO_LAW)
            axis.forget_home()  # with ES off a board counts from zero again

    def switch_off(self) -> None:
        """Switch every board off with the next command."""
        self.is_holding = False
        for unit in self._units:
            self.let_go(unit)

    # --- every cycle ------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether every board is switched off."""
        return not any(unit.is_powered for unit in self._units)

    def step(self) -> LoopBoard | None:
        """Prepare the next commands; return a board that was switched off as it does not obey."""
        now_ns = self._now_ns()
        if self.is_holding:
            self._look_at_hold(now_ns)
        if now_ns - self._gains_ns > _AGAIN_NS:
            self._gains_ns = now_ns
            for joint, kd in zip(self._joints, self._gains(), strict=True):
                joint.kd = kd
        elapsed_s = (now_ns - self._began_ns) * 1e-9
        watched = [joint for joint in self._joints if joint.unit.is_powered and not joint.is_free]
        rests = [joint.look(now_ns) for joint in watched]
        if not self.is_holding:
            self._note_lowered(elapsed_s, watched, rests)
            longest_s = self._safety.stop_max_s + self._safety.lower_max_s
            if all(rests) or elapsed_s > longest_s:
                self.switch_off()
                return None
        disobeying = None
        if elapsed_s > 2.0 * BUILD_UP_S:
            for joint in watched:
                if joint.grows() and not self._is_too_weak(joint):
                    disobeying = joint.unit
                    self.let_go(disobeying)
        self._command(now_ns)
        return disobeying

    def _look_at_hold(self, now_ns: int) -> None:
        if now_ns - self._held_ns > self._safety.hold_max_s * 1e9:
            self.lower(f"held for {self._safety.hold_max_s:g} s")
        for joint in self._held:
            if self.is_holding and joint.strays:
                self.lower(f"joint {joint.axis.joint.name} is pulled away")

    def _command(self, now_ns: int) -> None:
        elapsed_s = (now_ns - self._began_ns) * 1e-9
        share = min(1.0, (elapsed_s + 0.1 * BUILD_UP_S) / BUILD_UP_S)
        for joint in self._joints:
            if joint.is_free or not joint.unit.is_powered or joint in self._held:
                continue
            if self.is_holding and self._can_be_held(joint, elapsed_s):
                self._held.add(joint)
                joint.hold()
            else:
                joint.brake(share)

    def _can_be_held(self, joint: _Joint, elapsed_s: float) -> bool:
        low_rad, high_rad = joint.axis.fence_rad
        if not low_rad < joint.axis.position_rad < high_rad:
            return False  # a position law would not survive the wrap of the wire
        return joint.is_still or elapsed_s > _BRAKED_S

    def _note_lowered(
        self, elapsed_s: float, watched: Sequence[_Joint], rests: Sequence[bool]
    ) -> None:
        """Say once which joints have not come to rest in time."""
        if self.lowered or elapsed_s < self._safety.stop_max_s + REST_S or all(rests):
            return
        moving = [joint for joint, is_at_rest in zip(watched, rests, strict=True) if not is_at_rest]
        self.lowered = [joint.axis.joint.name for joint in moving]
        unheard = [joint.axis.joint.name for joint in moving if not joint.is_heard]
        seen = [name for name in self.lowered if name not in unheard]
        if seen:
            text = f"{', '.join(seen)}: still moved after braking; lowered until at rest"
            self._events.add("stop", text, severity="warning")
        if unheard:
            text = f"{', '.join(unheard)}: whether it rests cannot be seen; braked for "
            text += f"{self._safety.lower_max_s:g} s unless its board answers again"
            self._events.add("stop", text, severity="warning")

    # --- how hard ---------------------------------------------------------------------------------

    def _gains(self) -> list[float]:
        """Return the Kd of each joint, at its motor."""
        return [
            self._gain(joint.axis, inertia_kg_m2)
            for joint, inertia_kg_m2 in zip(self._joints, self._inertias_kg_m2(), strict=True)
        ]

    def _inertias_kg_m2(self) -> list[float]:
        """Return what each joint turns; the least that it may be where the posture is not known."""
        if self._model is not None and all(joint.axis.is_homed for joint in self._joints):
            # A stop may come because our own code is broken: it brakes all the same.
            with suppress(Exception):
                posture_rad = [joint.axis.position_rad for joint in self._joints]
                return self._model.free_inertia_kg_m2(posture_rad)
        return self._least_kg_m2

    def _gain(self, axis: Axis, inertia_kg_m2: float) -> float:
        damping = damping_nm_s_per_rad(
            axis.joint,
            inertia_kg_m2=inertia_kg_m2,
            filter_hz=axis.behaviour.velocity_filter_hz,
        )
        kd = damping / (axis.nm_per_a * axis.motor_per_joint)
        if self._model is None:
            # The inertia is not known. The robot's own gains are stable; and whatever its current
            # can hold shall not sink faster than it may, unless its rotor would ring for that.
            control, motor_per_joint = axis.joint.control, abs(axis.motor_per_joint)
            slow = axis.current_max_a / (LOWERED_MAX_RAD_S * motor_per_joint)
            rings = _RINGING * damping / (axis.nm_per_a * axis.motor_per_joint)
            kd = max(kd, control.position.kd_a_s_per_rad, control.velocity.kd_a_s_per_rad)
            kd = max(kd, min(slow, rings))
        return min(kd, axis.gains_max["kd_a_s_per_rad"])

    def _is_too_weak(self, joint: _Joint) -> bool:
        """Whether gravity may well be stronger than all the current that the board may drive."""
        if self._model is None or not all(each.axis.is_homed for each in self._joints):
            return False
        with suppress(Exception):
            posture_rad = [each.axis.position_rad for each in self._joints]
            gravity_nm = self._model.gravity_nm(posture_rad)[joint.axis.number]
            return 1.25 * abs(gravity_nm) > abs(joint.axis.nm_per_a) * joint.axis.isat_a
        return False
