"""The limits of one joint: what trips the robot after so many cycles in a row.

Called only for replies about which there is something to notice. Before a limit of motion trips,
`daq.loop.safety.motion_guard` has tried to hold the joint; whether an encoder is believed decides
`daq.loop.safety.standstill`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from daq.loop.io.axis import Axis
from daq.loop.io.loop_board import LoopBoard
from daq.loop.safety.machine import Machine
from daq.loop.safety.motion_guard import MotionGuard
from daq.loop.safety.standstill import StandstillGuard
from daq.loop.wording import beyond
from daq.recording.states import State
from daq.robot import Safety

_OF_MOTION = ("position-limit", "speed-limit")


class Strikes:
    """Counts the cycles in a row beyond limits, one count per limit exceeded the last time."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, limit: str, allowed: int) -> bool:
        """Count one more; return whether that is as many as it takes, and begin anew then."""
        count = self.counts.pop(limit, 0) + 1
        if count < allowed:
            self.counts[limit] = count
        return count >= allowed

    def keep(self, limits: Sequence[str]) -> None:
        """Forget all others: they were within their limits this time."""
        self.counts = {name: n for name, n in self.counts.items() if name in limits}


class AxisGuard:
    """The limits of one joint."""

    def __init__(
        self,
        axis: Axis,
        unit: LoopBoard,
        safety: Safety,
        machine: Machine,
        *,
        motion: MotionGuard,
        standstill: StandstillGuard,
    ) -> None:
        self._axis = axis
        self._unit = unit
        self._safety = safety
        self._machine = machine
        self._motion = motion
        self._standstill = standstill
        self._strikes = Strikes()

    @property
    def is_alert(self) -> bool:
        """Whether the next reply must be looked at even if it is plain."""
        return bool(self._strikes.counts or self._standstill.is_alert)

    def check_standing(self) -> bool:
        """Return whether its next reply must be looked at; called 50 times a second."""
        return self._standstill.check()

    def restrain(self) -> None:
        """Drive the joint on no longer: nobody hears how fast it is."""
        self._motion.restrain(self._axis)

    def go_on(self) -> None:
        """Drive it again, if it was restrained."""
        self._motion.go_on(self._axis)

    def check(self, raws: tuple[int, ...]) -> None:
        """Look at position, speed, current and temperature, at the reference and the counts."""
        axis, safety, limits = self._axis, self._safety, self._axis.joint.limits
        position_rad, velocity_rad_s, iq_a = axis.position_rad, axis.velocity_rad_s, axis.iq_a
        nearer_rad = axis.low_rad if position_rad < axis.low_rad else axis.high_rad
        degc = axis.temperature_degc(raws)
        judged = (
            # code, whether it is exceeded, cycles, what, value, limit, unit, remedy
            ("position-limit", not axis.low_rad <= position_rad <= axis.high_rad,
             safety.position_cycles, "position", position_rad, nearer_rad, "rad",
             "move it back by hand"),
            ("speed-limit", abs(velocity_rad_s) > axis.speed_max_rad_s, safety.velocity_cycles,
             "velocity", velocity_rad_s, axis.speed_max_rad_s, "rad/s",
             "command slower motions or lower the gains"),
            ("current-limit", abs(iq_a) > axis.current_alarm_a, safety.current_cycles,
             "current", iq_a, axis.current_alarm_a, "A",
             "the board does not keep its current limit: check its firmware"),
            ("temperature-limit", degc > limits.winding_temperature_max_degc,
             safety.temperature_cycles, "winding temperature", degc,
             limits.winding_temperature_max_degc, "°C",
             "let it cool and command less current"),
        )  # fmt: skip
        is_sensor_lost = bool(axis.coldest_raw) and math.isnan(degc)
        exceeded = [code for code, is_exceeded, *_ in judged if is_exceeded]
        self._strikes.keep([*exceeded, "temperature-sensor"] if is_sensor_lost else exceeded)
        for code, is_exceeded, cycles, what, value, limit, unit, remedy in judged:
            if is_exceeded and self._strikes.add(code, cycles):
                text = f"joint {axis.joint.name}: {what} {beyond(value, limit, unit)}"
                self._trip(f"{text}; {remedy}", code)
        if is_sensor_lost and self._strikes.add("temperature-sensor", safety.temperature_cycles):
            self._trip(
                f"joint {axis.joint.name}: its winding's temperature sensor is gone, so nothing "
                f"keeps its limit of {limits.winding_temperature_max_degc:g} °C; check the "
                "sensor's wires",
                "temperature-sensor",
            )
        if self._machine.state is State.ACTIVE:
            self._motion.look(axis)
            self._standstill.look()

    def _trip(self, text: str, code: str) -> None:
        self._machine.trip(
            text,
            code=code,
            kind="limit",
            source=self._axis.joint.name,
            is_of_motion=code in _OF_MOTION,
            disobeying=self._unit if code == "current-limit" else None,
        )
