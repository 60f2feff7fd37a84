"""States of the loop, modes of joints, outcomes of exchanges; a recording carries their numbers.

This module imports nothing of ours; `daq.recording` has the names for those who read files.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """State of the whole robot."""

    IDLE = 0
    """ES off: no motor is driven."""
    CALIBRATING = 1
    """Boards were enabled and align their encoders: 1 to 4 s, rotors move back and forth."""
    READY = 2
    """Calibrated, no current: all modes are off."""
    ACTIVE = 3
    """At least one joint is controlled."""
    STOPPING = 4
    """The one safe stop: the arm is braked, or held, and lowered; at rest ES goes off."""
    FAULT = 5
    """ES off after a fault; `reset` leads back to idle."""


class Mode(IntEnum):
    """What a joint is commanded to do."""

    OFF = 0
    """No current."""
    HOLD = 1
    """Stay where it is: position control on the board."""
    POSITION = 2
    """Go smoothly to a joint angle and stay: Kp, Kd, Ki and feed-forward on the board."""
    VELOCITY = 3
    """Turn at a constant speed: PI velocity control on the board."""
    CURRENT = 4
    """A current at the motor."""
    TORQUE = 5
    """A torque at the joint, by the motor's torque constant and gear."""
    PLAY = 6
    """Follow a trajectory."""
    HOME = 7
    """Look for the encoder's index."""


MODE_NAMES = {mode.name.lower(): mode for mode in Mode}
SETTABLE_MODES = {name: mode for name, mode in MODE_NAMES.items() if mode < Mode.PLAY}
"""Modes that can be set for one joint; the others lead all joints together."""
DRIVEN_MODES = (Mode.CURRENT, Mode.TORQUE)
"""Modes in which a current drives the joint, and nobody has planned where it goes."""


class Outcome(IntEnum):
    """How an exchange with a board went."""

    OK = 0
    """A fresh reply that confirms the last command in time."""
    LATE = 1
    """A fresh reply that confirms an older command than it could."""
    COMMAND_LOST = 2
    """A fresh reply that does not confirm the command before this one."""
    UNCONFIRMED = 3
    """The first replies of a session, made before the board had taken a command of it."""
    STALE = 4
    """A reply that is not newer than the last one: a repetition, or somebody else's."""
    STALLED = 5
    """The board's clock stands still."""
    CORRUPT = 6
    """The checksum or header is wrong."""
    TRUNCATED = 7
    """Fewer bytes than a frame."""
    SILENT = 8
    """Nobody answered: no bytes, or an idle line."""
    MISMATCHED = 9
    """A sound reply of another protocol version."""
    NO_EXCHANGE = 255
    """None took place."""
