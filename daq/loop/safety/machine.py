"""The one state machine: what the robot is doing as a whole, and why.

idle → calibrating → ready ⇄ active → stopping → idle or fault. Whatever ends a powered state goes
through the one stop (`daq.loop.safety.stop`). That something is wrong is decided elsewhere
(`daq.loop.safety.monitor` and the guards beside it).
"""

from __future__ import annotations

from collections.abc import Sequence

from daq.loop.events import Events
from daq.loop.io.axis import Axis, Law
from daq.loop.io.loop_board import LoopBoard
from daq.loop.safety.stop import SafeStop
from daq.recording.states import State

CALIBRATION_SLACK_S = 6.0
"""How much longer than its firmware says a calibration may take."""
_PAUSE_MIN = 5
"""Periods: a shorter pause has no consequences."""
_PAUSE_COUNTS_NS = 500_000_000
"""What goes wrong within this time after a pause likely comes from it."""
_POWERED = (State.CALIBRATING, State.READY, State.ACTIVE, State.STOPPING)
_NO_LAW = Law()
_CALIBRATING_A, _CALIBRATING_RAD = 0.05, 0.1
"""At the motor: less current and less travel than this is none. A calibrating rotor turns by an
electrical turn, though what drives it need not show in the quadrature current."""


class Machine:
    """What the robot is doing as a whole.

    Attributes:
        reason: Why it is there, in words.
        trip_code: What was wrong the last time, in a word for programs; empty before.
        is_fault_of_board: Whether the last fault was a board's, its device's or its link's.
        pause_ms: How long the computer had paused just before the last trip; 0 if it had not.
    """

    def __init__(
        self, units: Sequence[LoopBoard], events: Events, stop: SafeStop, *, period_s: float
    ) -> None:
        self.state = State.IDLE
        self.reason = "started"
        self.trip_code = ""
        self.is_fault_of_board = False
        self.pause_ms = 0
        self._pause = (0, -_PAUSE_COUNTS_NS)
        self._units = units
        self._axes: list[Axis] = [axis for unit in units for axis in unit.axes]
        self._events = events
        self._period_s = period_s
        self._stop = stop
        self._told: set[tuple[str, str]] = set()
        calibrations = [unit.board.profile.behaviour.calibration for unit in units]
        self._calibration_max_s = CALIBRATION_SLACK_S + max(
            calibration.late_max_s + calibration.duration_s for calibration in calibrations
        )
        self._calibration_cycles = round(self._calibration_max_s / period_s)
        self._travel_rad: dict[int, float] = {}
        self._alive: set[int] = set()
        self._cycles_in_state = 0
        self._after_stop = State.IDLE

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
                axis.forget_sensor()
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

    @property
    def is_holding(self) -> bool:
        """Whether a stop holds the posture until somebody ends it."""
        return self.state is State.STOPPING and self._stop.is_holding

    def stop(self, reason: str, *, may_hold: bool = False) -> None:
        """Begin the safe stop, which leads to idle; one that holds the posture lowers it now."""
        if self.state in (State.CALIBRATING, State.READY, State.ACTIVE):
            self._begin_stop(State.IDLE, reason, may_hold=may_hold)
        elif self.state is State.STOPPING:
            self._stop.lower(reason)

    def note_pause(self, periods: int, now_ns: int) -> None:
        """Note that the computer has left out periods, just before a moment."""
        if periods >= _PAUSE_MIN:
            self._pause = periods, now_ns

    @property
    def pause_ended_ns(self) -> int:
        """When the computer's last pause was over."""
        return self._pause[1]

    @property
    def is_after_pause(self) -> bool:
        """Whether the computer has paused lately."""
        return self._events.t_ns - self._pause[1] < _PAUSE_COUNTS_NS

    def trip(
        self,
        reason: str,
        *,
        code: str,
        kind: str = "fault",
        source: str = "",
        is_of_board: bool = False,
        is_of_motion: bool = False,
        disobeying: LoopBoard | None = None,
        blind: Axis | None = None,
    ) -> None:
        """Begin the safe stop because something is wrong; it leads to fault.

        Only the first trip is the reason until a reset; what else goes wrong in a stop is told,
        and taken into account.

        Args:
            reason: What is wrong, and what to do.
            code: What is wrong, in a word.
            kind: Of the event: `fault` or `limit`.
            source: The joint or board concerned.
            is_of_board: Whether a board, its device or its link is to blame.
            is_of_motion: Whether a joint only went too far or too fast: then it may be held.
            disobeying: A board that does not do what it is told: it is switched off at once.
            blind: A joint whose encoder is not believed: its motor gets no more current.
        """
        if self.state is State.FAULT:
            return
        periods, paused_ns = self._pause
        pause_ms = round(periods * self._period_s * 1e3) if self.is_after_pause else 0
        if pause_ms:
            ago_ms = (self._events.t_ns - paused_ns) * 1e-6
            reason = (
                f"the computer paused for {pause_ms} ms, until {ago_ms:.0f} ms ago; likely because "
                f"of that: {reason}"
            )
        is_new = (code, source) not in self._told
        if is_new:
            self._told.add((code, source))
            self._events.add(kind, reason, severity="error", source=source)
        if not self.is_tripped:
            self.pause_ms = pause_ms
            self.reason, self.trip_code, self.is_fault_of_board = reason, code, is_of_board
        if self.state is State.IDLE:
            self._enter(State.FAULT, reason)
            return
        if self.state is State.STOPPING:
            self._after_stop = State.FAULT
            if is_new:  # a joint may well be held beyond the very limit that it passed
                self._stop.lower(code)
        else:
            self._begin_stop(State.FAULT, reason, may_hold=is_of_motion)
        if blind is not None:
            self._stop.free(blind)
        if disobeying is not None:
            self._stop.let_go(disobeying)

    def reset(self) -> None:
        """Leave the fault: fault → idle. A stop that holds lowers the arm, and ends in idle."""
        if self.is_holding:
            self._after_stop = State.IDLE
            self.stop("reset")
        else:
            self._enter(State.IDLE, "reset")

    # --- every cycle ------------------------------------------------------------------------------

    def step(self) -> None:
        """Prepare the next commands of a state that changes by itself."""
        if self.state is State.STOPPING:
            self._step_stop()
        elif self.state is State.CALIBRATING:
            self._cycles_in_state += 1
            self._look_for_life()
            if all(unit.is_ready for unit in self._units):
                for axis in self._axes:
                    axis.enabled_at_rad = axis.position_rad
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

    def _begin_stop(self, after: State, reason: str, *, may_hold: bool) -> None:
        self._after_stop = after
        was_calibrating = self.state is State.CALIBRATING
        self._enter(State.STOPPING, reason)
        if was_calibrating:
            # There is no law to brake with yet, and no arm that anything holds.
            self._stop.switch_off()
        else:
            self._stop.begin(may_hold=may_hold)
            self._let_go_restarted()
        if self._stop.is_over:
            self._enter(self._after_stop, self.reason)

    def _let_go_restarted(self) -> None:
        for unit in self._units:
            if unit.is_powered and unit.has_restarted:
                # It would take the next command for one to calibrate.
                self._stop.let_go(unit)

    def _step_stop(self) -> None:
        self._let_go_restarted()
        disobeying = self._stop.step()
        if disobeying is not None and disobeying.fault is not None:
            text = f"{disobeying.title}: a joint goes faster, as it does not brake with its error; "
            text += "the board was switched off at once"
            self._events.add("stop", text, severity="warning", source=disobeying.port.name)
        elif disobeying is not None:
            text = f"{disobeying.title}: a joint goes faster although it is braked with all the "
            text += "current there is; the board was switched off at once. Check the motor's "
            self.trip(
                f"{text}wires, the encoder and the direction in the robot file",
                code="not-braking",
                source=disobeying.port.name,
                is_of_board=True,
            )
        if self._stop.is_over:
            self._enter(self._after_stop, self.reason)

    def _enter(self, state: State, reason: str) -> None:
        change = f"{self.state.name.lower()} → {state.name.lower()}"
        # A log says a reason once.
        self._events.add("state", change if reason == self.reason else f"{change}: {reason}")
        self.state = state
        self.reason = reason
        self._cycles_in_state = 0
        if state is not State.STOPPING:
            self._told.clear()
        for unit in self._units:
            unit.expect_ready(state in (State.READY, State.ACTIVE))
