"""The one state machine and the one safe stop.

idle → calibrating → ready ⇄ active → stopping → idle or fault. Whatever ends a powered state goes
through `stop`: currents ramp to zero from what they were, then ES goes off, exactly `ramp_s` after
it began. That something is wrong is decided elsewhere (`daq.loop.safety.monitor`).
"""

from __future__ import annotations

from collections.abc import Sequence

from daq.loop.events import Events
from daq.loop.io.axis import Axis, Law
from daq.loop.io.loop_board import LoopBoard
from daq.recording.states import State

CALIBRATION_SLACK_S = 6.0
"""How much longer than its firmware says a calibration may take."""
_POWERED = (State.CALIBRATING, State.READY, State.ACTIVE, State.STOPPING)
_NO_LAW = Law()
_OUTLIER_A = 1.0
"""An outlier is further than this from the mean of the last ms, and than three times the mean."""
_CALIBRATING_A, _CALIBRATING_RAD = 0.05, 0.1
"""At the motor: less current and less travel than this is none. A calibrating rotor turns by an
electrical turn, though what drives it need not show in the quadrature current."""


def _present_a(axis: Axis) -> float:
    """Return the current that a stop begins with: as measured, unless that is an outlier."""
    mean_a = axis.iq_mean_a
    is_outlier = abs(axis.iq_a - mean_a) > max(_OUTLIER_A, 3.0 * abs(mean_a))
    present_a = mean_a if is_outlier else axis.iq_a
    return min(max(present_a, -axis.current_max_a), axis.current_max_a)


class Machine:
    """What the robot is doing as a whole.

    Attributes:
        reason: Why it is there, in words.
        trip_code: What was wrong the last time, in a word for programs; empty before.
        is_fault_of_board: Whether the last fault was a board's, its device's or its link's.
    """

    def __init__(
        self, units: Sequence[LoopBoard], events: Events, *, ramp_s: float, period_s: float
    ) -> None:
        self.state = State.IDLE
        self.reason = "started"
        self.trip_code = ""
        self.is_fault_of_board = False
        self._units = units
        self._axes: list[Axis] = [axis for unit in units for axis in unit.axes]
        self._events = events
        self._period_s = period_s
        self._ramp_cycles = max(1, round(ramp_s / period_s))
        calibrations = [unit.board.profile.behaviour.calibration for unit in units]
        self._calibration_max_s = CALIBRATION_SLACK_S + max(
            calibration.late_max_s + calibration.duration_s for calibration in calibrations
        )
        self._calibration_cycles = round(self._calibration_max_s / period_s)
        self._travel_rad: dict[int, float] = {}
        self._alive: set[int] = set()
        self._cycles_in_state = 0
        self._after_stop = State.IDLE
        self._ramp_from_a: list[float] = []

    @property
    def is_powered(self) -> bool:
        """Whether a motor may have current."""
        return self.state in _POWERED

    @property
    def is_tripped(self) -> bool:
        """Whether something is wrong: in fault, or on the way there."""
        is_on_the_way = self.state is State.STOPPING and self._after_stop is State.FAULT
        return is_on_the_way or self.state is State.FAULT

    # --- transitions ------------------------------------------------------------------------------

    def enable(self) -> None:
        """Switch the boards on: idle → calibrating."""
        for unit in self._units:
            for axis in unit.axes:
                axis.forget_home()
                axis.obey(_NO_LAW)
                axis.refer(0.0, 0.0)
            unit.enable()
        self._travel_rad = dict.fromkeys((axis.number for axis in self._axes), 0.0)
        self._alive = set()
        self._enter(State.CALIBRATING, "enabled")

    def activate(self, is_active: bool) -> None:
        """Change between ready and active, as joints are controlled or not."""
        wanted = State.ACTIVE if is_active else State.READY
        if self.state in (State.READY, State.ACTIVE) and self.state is not wanted:
            self._enter(wanted, "a joint is controlled" if is_active else "all joints are off")

    def stop(self, reason: str) -> None:
        """Begin the safe stop, which leads to idle."""
        if self.state in (State.CALIBRATING, State.READY, State.ACTIVE):
            self._begin_stop(State.IDLE, reason)

    def trip(
        self,
        reason: str,
        *,
        code: str,
        kind: str = "fault",
        source: str = "",
        is_of_board: bool = False,
    ) -> None:
        """Begin the safe stop because something is wrong; it leads to fault.

        Only the first trip counts until a reset.

        Args:
            reason: What is wrong, and what to do.
            code: What is wrong, in a word.
            kind: Of the event: `fault` or `limit`.
            source: The joint or board concerned.
            is_of_board: Whether a board, its device or its link is to blame.
        """
        if self.is_tripped:
            return
        self._events.add(kind, reason, severity="error", source=source)
        self.reason = reason
        self.trip_code = code
        self.is_fault_of_board = is_of_board
        if self.state is State.IDLE:
            self._enter(State.FAULT, reason)
        elif self.state is State.STOPPING:
            self._after_stop = State.FAULT
        else:
            self._begin_stop(State.FAULT, reason)

    def reset(self) -> None:
        """Leave the fault: fault → idle."""
        self._enter(State.IDLE, "reset")

    # --- every cycle ------------------------------------------------------------------------------

    def step(self) -> None:
        """Prepare the next commands of a state that changes by itself."""
        if self.state is State.STOPPING:
            self._cycles_in_state += 1
            self._ramp()
        elif self.state is State.CALIBRATING:
            self._cycles_in_state += 1
            self._look_for_life()
            if all(unit.is_ready for unit in self._units):
                self._enter(State.READY, "calibrated")
            elif self._cycles_in_state > self._calibration_cycles:
                self._give_up_calibration()

    def _look_for_life(self) -> None:
        """Note which motors have had current, or turned, since they were enabled."""
        for axis in self._axes:
            number = axis.number
            # By the velocity: some boards report no position before calibration has ended.
            self._travel_rad[number] += axis.velocity_rad_s * axis.motor_per_joint * self._period_s
            if (
                abs(axis.iq_mean_a) > _CALIBRATING_A
                or abs(self._travel_rad[number]) > _CALIBRATING_RAD
            ):
                self._alive.add(number)

    def _give_up_calibration(self) -> None:
        late = [unit for unit in self._units if not unit.is_ready]
        names = ", ".join(unit.port.name for unit in late)
        dead = [
            axis.joint.name
            for unit in late
            for axis in unit.axes
            if axis.number not in self._alive and not unit.knows_position(axis)
        ]
        text = f"calibration did not end within {self._calibration_max_s:g} s on board {names}: "
        if dead:
            text += (
                f"no current flowed in the motor of {', '.join(dead)}, and no error is reported; "
                "likely its gate driver failed to initialise, which some firmwares report as no "
                "code at all. Power the board off and on; if it stays so, check the supply and "
                "the motor's wires, or change the board"
            )
        else:
            text += "is every motor connected, does its rotor turn freely?"
        self.trip(text, code="no-current" if dead else "calibration", is_of_board=True)

    def _begin_stop(self, after: State, reason: str) -> None:
        self._after_stop = after
        self._ramp_from_a = [_present_a(axis) for axis in self._axes]
        self._enter(State.STOPPING, reason)
        self._ramp()

    def _ramp(self) -> None:
        """Command step `_cycles_in_state` + 1 of the ramp; the last one switches ES off."""
        step = self._cycles_in_state + 1
        if step >= self._ramp_cycles:
            for unit in self._units:
                unit.disable()
            for axis in self._axes:
                axis.obey(_NO_LAW)
                axis.forget_home()  # with ES off a board counts from zero again
            self._enter(self._after_stop, self.reason)
            return
        share = 1.0 - step / self._ramp_cycles
        for axis, from_a in zip(self._axes, self._ramp_from_a, strict=True):
            axis.obey(Law(iq_ff_a=share * from_a))

    def _enter(self, state: State, reason: str) -> None:
        change = f"{self.state.name.lower()} → {state.name.lower()}"
        # A log says a reason once.
        self._events.add("state", change if reason == self.reason else f"{change}: {reason}")
        self.state = state
        self.reason = reason
        self._cycles_in_state = 0
        for unit in self._units:
            unit.expect_ready(state in (State.READY, State.ACTIVE))
