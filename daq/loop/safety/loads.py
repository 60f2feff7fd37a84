"""What each joint carries where it stands: gravity, how sure that is, and what its torque turns.

Brought up to date 50 times a second. CAD may well be wrong by half, so once a joint has moved, the
current of its last count counts as its weight. So it does where links are not known; where only the
posture is not, the most that any posture takes. On the bench nothing hangs on a joint, and its
friction is what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq.control.braking import (
    greatest_gravities_nm,
    greatest_payloads_nm,
    least_inertias_kg_m2,
)
from daq.control.torque_model import TorqueModel
from daq.loop.io.axis import Axis
from daq.robot import DrivenRobot

BREAKAWAYS = 3.0
"""A joint that is pushed by so many times its friction beyond its weight must move."""
_BLIND_SHARE, _BENCH_SHARE = 0.5, 0.95
"""Of Isat: the same where the weight is not known, and on the bench."""
_MODEL_ERROR = 0.25
"""Of gravity: links are known by CAD at best."""
GOING_ON = 1.5
"""So much more of its friction than in motion no joint takes to go on."""
_SLOW_RAD_S = 0.1
_HELD_RAD_S = 0.02
_WEIGHED_FRICTIONS = 10.0
"""Gravity must be so many times friction, or else friction is what is weighed."""
_SCALE_MAX, _LEARNED = 2.5, 0.1
_INERTIA_MORE = 2.0
"""What a joint turns may be so many times what CAD says."""


@dataclass(slots=True)
class Load:
    """Of one joint, at the joint.

    Attributes:
        gravity_nm: Torque that holds it.
        unsure_nm: By how much that may be wrong.
        gravity_max_nm: The most that gravity takes in any posture, by the model.
        friction_nm: Coulomb friction.
        inertia_kg_m2: What its torque turns, at least,
        inertia_max_kg_m2: and at most.
        is_bounded: Whether the model bounds all that, be it for every posture,
        is_known: or for the joint's own.
    """

    gravity_nm: float
    unsure_nm: float
    friction_nm: float
    inertia_kg_m2: float
    inertia_max_kg_m2: float
    gravity_max_nm: float = 0.0
    is_bounded: bool = False
    is_known: bool = False

    def tells_by_change(self, axis: Axis) -> bool:
        """Whether a change of its current tells that it is pushed.

        Not while something else may still bear it, if what it weighs is known at all, nor on the
        bench, where nobody knows what rubs.
        """
        return not axis.joint.is_on_bench and (axis.is_carried or not self.is_bounded)


class Loads:
    """The loads of all joints, in the robot's order; `check` is called now and then."""

    def __init__(
        self,
        robot: DrivenRobot,
        axes: Sequence[Axis],
        model: TorqueModel | None,
        gravity_scales: list[float] | None = None,
    ) -> None:
        self._model = model
        # Of the plans (`daq.motion.torque_check`): they learn here how heavy the arm is.
        self._scales = gravity_scales
        self._axes = axes
        self._least_kg_m2 = least_inertias_kg_m2(robot, model)
        self.of = [Load(0.0, 0.0, axis.joint.drive.joint_coulomb_nm, 0.0, 0.0) for axis in axes]
        self._greatest_nm: list[float] | None = None
        if model is not None:
            gravities_nm = greatest_gravities_nm(robot, model)
            for load, gravity_nm in zip(self.of, gravities_nm, strict=True):
                load.gravity_max_nm = (1.0 + _MODEL_ERROR) * gravity_nm
            payloads_nm = greatest_payloads_nm(robot, model)
            self._greatest_nm = [
                load.gravity_max_nm + payload_nm
                for load, payload_nm in zip(self.of, payloads_nm, strict=True)
            ]
        for axis in axes:
            axis.slow_rad_s = _SLOW_RAD_S
        self.check()

    def check(self) -> None:
        """Bring them up to date."""
        axes, model = self._axes, self._model
        is_known = model is not None and all(axis.is_homed for axis in axes)
        if model is not None and is_known:
            posture_rad = [axis.position_rad for axis in axes]
            values = zip(
                model.gravity_nm(posture_rad),
                model.payload_nm(posture_rad),
                model.free_inertia_kg_m2(posture_rad),
                strict=True,
            )
            for load, (gravity_nm, payload_nm, inertia_kg_m2) in zip(self.of, values, strict=True):
                load.gravity_nm = gravity_nm
                load.unsure_nm = _MODEL_ERROR * abs(gravity_nm) + payload_nm
                load.inertia_kg_m2 = inertia_kg_m2
                load.inertia_max_kg_m2 = _INERTIA_MORE * inertia_kg_m2
        else:
            blind_nm = [_BLIND_SHARE * axis.current_max_a * abs(axis.nm_per_a) for axis in axes]
            bounds = zip(axes, self._least_kg_m2, self._greatest_nm or blind_nm, strict=True)
            for load, (axis, least_kg_m2, greatest_nm) in zip(self.of, bounds, strict=True):
                load.gravity_nm, load.unsure_nm = 0.0, greatest_nm
                load.inertia_kg_m2, load.inertia_max_kg_m2 = least_kg_m2, axis.inertia_max_kg_m2
        for load, axis in zip(self.of, axes, strict=True):
            load.is_bounded, load.is_known = model is not None, is_known
            self._set_window(axis, load)
            if is_known and self._scales is not None:
                self._weigh(axis, load, self._scales)

    def _weigh(self, axis: Axis, load: Load, scales: list[float]) -> None:
        """Learn from a joint that is held how heavy it is, beside what CAD says."""
        holding_nm = axis.iq_mean_a * axis.nm_per_a
        is_held = axis.iq_mean_a and abs(axis.velocity_rad_s) < _HELD_RAD_S
        if is_held and abs(load.gravity_nm) > _WEIGHED_FRICTIONS * load.friction_nm:
            scale = min(max(holding_nm / load.gravity_nm, 1.0), _SCALE_MAX)
            scales[axis.number] += _LEARNED * (scale - scales[axis.number])

    def _set_window(self, axis: Axis, load: Load) -> None:
        """Set between which currents a joint may well stand still, from that of its last count."""
        if load.tells_by_change(axis):
            axis.push_high_a = GOING_ON * load.friction_nm * abs(axis.amperes_per_nm)
            axis.push_low_a = -axis.push_high_a
            return
        if load.is_bounded and not axis.joint.is_on_bench:
            # Something else may bear it yet, or friction alone.
            bare_nm = (1.0 + _MODEL_ERROR) * load.gravity_nm
            around_nm = BREAKAWAYS * load.friction_nm
            if not load.is_known:
                around_nm += load.gravity_max_nm
            lowest_nm = min(bare_nm, 0.0) - around_nm
            highest_nm = max(bare_nm, 0.0) + around_nm
            ends_a = lowest_nm * axis.amperes_per_nm, highest_nm * axis.amperes_per_nm
        else:
            ends_a = -_BENCH_SHARE * axis.isat_a, _BENCH_SHARE * axis.isat_a
        axis.push_low_a = min(ends_a) - axis.iq_moved_a
        axis.push_high_a = max(ends_a) - axis.iq_moved_a
