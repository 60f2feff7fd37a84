"""Motions that come to hold when the lease ends under which they were asked for."""

from __future__ import annotations

from daq.loop.safety.machine import Machine
from daq.loop.tracks.control import LoopControl
from daq.motion.errors import MotionError
from daq.recording.states import Mode
from daq.stream import messages as m

_STANDING = (Mode.OFF, Mode.HOLD)


class LeasedMotions:
    """Knows which joints move only as long as the present lease lasts."""

    def __init__(self, control: LoopControl, machine: Machine) -> None:
        self._control = control
        self._machine = machine
        self._numbers = {track.axis.joint.name: track.axis.number for track in control.tracks}
        self._leased: set[int] = set()

    def note(self, command: m.AnyCommand) -> None:
        """Note a command that was carried out: which motions it began, or put an end to."""
        if not isinstance(command, m.SetMode | m.PlayStart | m.Home):
            return
        names = command.joints if isinstance(command, m.SetMode) else ()
        numbers = {self._numbers[name] for name in names or self._numbers}
        if isinstance(command, m.Home) or not command.ends_with_lease:
            self._leased -= numbers
        else:
            self._leased |= numbers

    def end(self, reason: str) -> bool:
        """Bring them to hold, as the lease is over; return whether any was going on.

        Where a joint cannot be held any more, as after coasting without gains, it is the safe stop,
        for this reason.
        """
        control = self._control
        moving = [n for n in sorted(self._leased) if control.tracks[n].mode not in _STANDING]
        self._leased.clear()
        try:
            if moving and control.is_playing:
                control.come_to_rest()
            elif moving:
                control.set_mode(Mode.HOLD, moving, (), 0.0)
        except MotionError as error:
            self._machine.stop(f"{reason}: {error}")
        return bool(moving)
