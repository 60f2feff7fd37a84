"""What a run does by itself, one thing after the other: enable, home, play, disable.

For `armature run`, so that a demonstration or a test needs nobody to send commands. Each step goes
through the same handler as a command from the socket, and others command when all are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daq.loop.own_commands import OwnCommands
from daq.loop.setup import Loop
from daq.recording.states import State
from daq.stream import messages as m
from daq.stream.errors import RefusedError

_ROWS_AT_ONCE = 300


class AgendaStep(NamedTuple):
    """One thing to do, and how to see that it is done."""

    begin: Callable[[], object]
    is_done: Callable[[], bool]


class Agenda:
    """Steps in their order.

    Args:
        loop: What they are for; it has not begun to take commands.
        name: Who commands meanwhile, for people.

    Attributes:
        problem: Why it could not go on; empty while it can.
    """

    was_stopped = False  # stopping the loop stops nothing else

    def __init__(self, loop: Loop, name: str = "the loop itself") -> None:
        self._command = OwnCommands(loop, name)
        self._units = loop.cycle.units
        self._machine = loop.cycle.machine
        self._control = loop.cycle.control
        self._steps: list[AgendaStep] = []
        self._current: AgendaStep | None = None
        self._aim = ""
        self._is_given_up = False
        self.problem = ""

    @property
    def is_over(self) -> bool:
        """Whether everything is done, or cannot be."""
        return not self._steps and self._current is None

    @property
    def unfinished(self) -> str:
        """What it was about and has not come to its end; empty if it has."""
        return self._aim if self._is_given_up or not self.is_over else ""

    def enable(self) -> None:
        """Enable and calibrate, once every board has answered."""
        answered = AgendaStep(
            lambda: None, lambda: all(unit.replies is not None for unit in self._units)
        )
        self._steps.append(answered)
        self._add(m.Enable(), lambda: self._machine.state is State.READY)

    def hold(self) -> None:
        """Hold every joint where it is."""
        self._add(m.SetMode(mode="hold"), lambda: self._control.is_at_rest)

    def home(self) -> None:
        """Find every joint's zero."""
        self._aim = "homing"
        self._add(m.Home(), lambda: self._control.homing is None)
        self._steps.append(AgendaStep(self._check_homed, lambda: True))

    def _check_homed(self) -> None:
        lost = [t.axis.joint.name for t in self._control.tracks if not t.axis.is_homed]
        if lost:
            text = f"{', '.join(lost)}: homing failed, see the events before this"
            raise RefusedError("not-homed", text, reason="homing-failed")

    def play(self, rows: np.ndarray[Any, np.dtype[np.float64]], *, has_torque: bool) -> None:
        """Play a trajectory: per cycle a row of q, dq and perhaps torque, each of all joints."""
        self._aim = "the trajectory"
        data = np.ascontiguousarray(rows, "<f8")
        self._add(m.PlayBegin(rows=len(data), has_torque=has_torque), lambda: True)
        for first in range(0, len(data), _ROWS_AT_ONCE):
            chunk = data[first : first + _ROWS_AT_ONCE].tobytes()
            self._add(m.PlayRows(first=first), lambda: True, chunk)
        self._add(m.PlayStart(), lambda: not self._control.is_playing)

    def disable(self) -> None:
        """Bring everything to rest and switch it off."""
        self._add(m.Disable(), lambda: self._machine.state is State.IDLE)

    def step(self) -> None:
        """Go on, if what was begun is done. Called now and then by the loop."""
        if self.is_over:
            self._command.release()
        else:
            self._go_on()

    def _go_on(self) -> None:
        if self._machine.state in (State.STOPPING, State.FAULT):
            self._give_up("")
        elif lost := self._command.why_lost():
            self._give_up(str(lost))
        if self._current is not None and not self._current.is_done():
            return
        self._current = None
        if self._steps:
            self._current = self._steps.pop(0)
            try:
                self._current.begin()
            except RefusedError as error:
                if error.reason == "board-error":
                    # It can not begin before somebody has seen to that board: not worth waiting.
                    self._machine.trip(str(error), code=error.reason, is_of_board=True)
                self._give_up(str(error))

    def _give_up(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._is_given_up = self._is_given_up or not self.is_over
        self._steps.clear()
        self._current = None

    def _add(
        self, command: m.AnyCommand, is_done: Callable[[], bool], payload: bytes = b""
    ) -> None:
        self._steps.append(AgendaStep(lambda: self._command(command, payload), is_done))
