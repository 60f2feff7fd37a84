"""What each joint carries where it stands: gravity, how sure that is, and what its torque turns.

Brought up to date 50 times a second. CAD may well be wrong by half, so once a joint has moved, the
current of its last count counts as its weight. Where posture or links are not known, half of the
current limit stands for the weight; on the bench nothing hangs on a joint, and its friction is what
is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq.control.braking import least_inertias_kg_m2
from daq.control.torque_model import TorqueModel
from daq.loop.io.axis import Axis
from daq.robot import DrivenRobot

BREAKAWAYS = 3.0
"""A joint that is pushed by so many times its friction beyond its weight must move."""
_BLIND_SHARE, _BENCH_SHARE = 0.5, 0.95
"""Of Isat: the same where the weight is not known, and on the bench."""
_MODEL_ERROR = 0.25
"""Of gravity: links are known by CAD at best."""
_MOVED_BREAKAWAYS = 6.0
"""The same for the current with which it last moved, in which there is friction of either sign."""
_SPARE_A = 0.3
"""Beside it, for noise and cogging."""
_SLOW_RAD_S = 0.1
_HELD_RAD_S = 0.02
_WEIGHED_FRICTIONS = 10.0
"""Gravity must be so many times friction, or else friction is what is weighed."""
_SCALE_MAX, _LEARNED = 2.5, 0.1


@dataclass(slots=True)
class Load:
    """Of one joint, at the joint.

    Attributes:
        gravity_nm: Torque that holds it.
        unsure_nm: By how much that may be wrong.
        friction_nm: Coulomb friction.
        inertia_kg_m2: What its torque turns, at least.
        is_known: Whether that is more than a guess.
    """

    gravity_nm: float
    unsure_nm: float
    friction_nm: float
    inertia_kg_m2: float
    is_known: bool = False


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
        self.of = [Load(0.0, 0.0, axis.joint.drive.joint_coulomb_nm, 0.0) for axis in axes]
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
        else:
            for load, axis, inertia in zip(self.of, axes, self._least_kg_m2, strict=True):
                load.gravity_nm, load.inertia_kg_m2 = 0.0, inertia
                load.unsure_nm = _BLIND_SHARE * axis.current_max_a * abs(axis.nm_per_a)
        for load, axis in zip(self.of, axes, strict=True):
            load.is_known = is_known
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
        """Set between which currents a joint may well stand still."""
        if axis.joint.is_on_bench or not load.is_known:
            share = _BENCH_SHARE if axis.joint.is_on_bench else _BLIND_SHARE
            axis.push_high_a = share * axis.isat_a
            axis.push_low_a = -axis.push_high_a
            return
        spare_nm = load.unsure_nm + BREAKAWAYS * load.friction_nm
        ends_a = (
            (load.gravity_nm - spare_nm) * axis.amperes_per_nm,
            (load.gravity_nm + spare_nm) * axis.amperes_per_nm,
        )
        if axis.iq_moved_a:
            moved_a = _SPARE_A + abs(_MOVED_BREAKAWAYS * load.friction_nm * axis.amperes_per_nm)
            ends_a = axis.iq_moved_a - moved_a, axis.iq_moved_a + moved_a
        axis.push_low_a, axis.push_high_a = min(ends_a), max(ends_a)
