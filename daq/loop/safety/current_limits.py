"""The current that each motor may have now: less before it is homed, and near its heat limit.

The less a winding has left to its temperature limit, the less current: smoothly, so that a motor
that works too hard becomes weaker before it trips. Never less than what holds the joint: there the
limit itself trips, and the joint is lowered. A stop has all the current there is.
"""

from __future__ import annotations

from collections.abc import Sequence

from daq.loop.events import Events
from daq.loop.io.axis import Axis
from daq.loop.io.loop_board import LoopBoard
from daq.loop.safety.loads import BREAKAWAYS, Load
from daq.loop.safety.machine import Machine
from daq.recording.states import State
from daq.robot import Safety

DERATING_DEGC = 10.0
"""Over the last so many degrees below its limit the current falls to nothing."""
_HOLDING_SHARE = 1.15
"""Of what holds a joint: so much it keeps."""
_RESTING_RAD_S = 0.02


class CurrentLimits:
    """Writes Isat; `check` is called 50 times a second."""

    def __init__(
        self,
        units: Sequence[LoopBoard],
        loads: Sequence[Load],
        machine: Machine,
        events: Events,
        safety: Safety,
    ) -> None:
        self._units = units
        self._loads = loads
        self._machine = machine
        self._events = events
        self._unhomed_a = safety.unhomed_current_max_a
        self._hot: set[int] = set()

    def check(self) -> None:
        """Set what every motor may have until the next time."""
        if self._machine.state not in (State.READY, State.ACTIVE):
            return
        for unit in self._units:
            raws = unit.replies
            if raws is None or unit.missed:
                continue
            for axis in unit.axes:
                axis.expect_sensor(raws)
                allowed_a = min(self._homing_a(axis), self._by_heat_a(axis, raws))
                axis.limit_current(allowed_a)

    def _homing_a(self, axis: Axis) -> float:
        if axis.is_homed or self._unhomed_a is None:
            return axis.current_max_a
        return min(self._unhomed_a, axis.current_max_a)

    def _by_heat_a(self, axis: Axis, raws: tuple[int, ...]) -> float:
        highest_degc = axis.joint.limits.winding_temperature_max_degc
        left_degc = highest_degc - axis.temperature_degc(raws)
        if not left_degc < DERATING_DEGC:  # also where there is no sensor
            self._hot.discard(axis.number)
            return axis.current_max_a
        warm_a = axis.current_max_a * max(left_degc, 0.0) / DERATING_DEGC
        allowed_a = max(warm_a, _HOLDING_SHARE * self._holding_a(axis))
        if axis.number not in self._hot:
            self._hot.add(axis.number)
            name = axis.joint.name
            text = f"joint {name}: {left_degc:.0f} °C below its winding's limit of "
            text += f"{highest_degc:g} °C; its current is limited to {allowed_a:.3g} A and falling"
            self._events.add("heat", text, severity="warning", source=name)
        return min(allowed_a, axis.current_max_a)

    def _holding_a(self, axis: Axis) -> float:
        """Return the current that holds a joint where it is."""
        load = self._loads[axis.number]
        weight_nm = abs(load.gravity_nm) + BREAKAWAYS * load.friction_nm
        resting_a = abs(axis.iq_mean_a) if abs(axis.velocity_rad_s) < _RESTING_RAD_S else 0.0
        # A joint that is pushed against something is not held by that.
        resting_a = min(resting_a, abs(axis.iq_moved_a))
        return max(weight_nm * abs(axis.amperes_per_nm), resting_a)
