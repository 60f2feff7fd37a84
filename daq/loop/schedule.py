"""The schedule of chores: which of the 20 cycles of a batch does which one."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from daq.samples.batches import SAMPLES_PER_BATCH


class Chore(Enum):
    """What can wait, and in which cycles of a batch, counted from 1, it is done."""

    HAND_ON = (1,)
    """Give the complete batch to all sinks."""
    COMMANDS = (2, 7, 12, 17)
    """Carry out what came in by the socket; four times, so that none waits for long."""
    PROMISES = (4,)
    """Bring to its end what a command has begun."""
    AGENDA = (5,)
    """Go on with what the loop does by itself."""
    PLOT = (6, 16)
    """Publish for PlotJuggler, at 100 Hz."""
    HOUSEKEEPING = (10,)
    """Look after watchdog, session, recorder and gateway; in virtual time, show progress."""
    FOLLOWING = (13,)
    """Check that the joints follow their references."""
    BOARDS = (15,)
    """Look after what boards do slowly."""
    CLOSE_BATCH = (SAMPLES_PER_BATCH,)
    """Check the deadline budget and complete the batch."""


class Schedule:
    """Who does each chore; those that nobody has taken are left out.

    Attributes:
        at: What to do in each cycle of a batch, from 1 on; None for nothing.
    """

    def __init__(self) -> None:
        self.at: list[Callable[[], object] | None] = [None] * (SAMPLES_PER_BATCH + 1)

    def __setitem__(self, chore: Chore, do: Callable[[], object]) -> None:
        """Set what does a chore, in place of what did it before."""
        for phase in chore.value:
            self.at[phase] = do
