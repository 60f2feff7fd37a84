"""What a board profile is: its frames, its faults, and how the firmware behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firmware_protocol.behaviour import Behaviour
from firmware_protocol.fields import Direction, Fault, FaultCause, FrameLayout

VERSION_SHIFT, VERSION_MASK = 4, 0b111
ERROR_MASK = 0b1111


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One firmware's wire format and behaviour."""

    name: str
    summary: str
    command: FrameLayout
    reply: FrameLayout
    faults: Mapping[int, Fault]
    behaviour: Behaviour
    provenance: str = ""
    """How its behaviour is known, a sentence or two."""

    def __post_init__(self) -> None:
        if self.command.size != self.reply.size:
            raise ValueError(
                f"profile {self.name}: command of {self.command.size} bytes, reply of "
                f"{self.reply.size}; both travel in one full-duplex window and must be equal"
            )

    @property
    def frame_size(self) -> int:
        """Bytes exchanged in one window, each way."""
        return self.command.size

    def layout(self, direction: Direction) -> FrameLayout:
        """Return the frame that travels in a direction."""
        return self.command if direction is Direction.COMMAND else self.reply

    def fault_of(self, status: int) -> Fault | None:
        """Return the fault that a status word reports, None when it reports none."""
        code = status & ERROR_MASK
        return self.faults.get(code, _unknown_fault(code)) if code else None

    def code_of(self, cause: FaultCause) -> int | None:
        """Return the code under which this firmware reports an event, None if it does not."""
        return next((fault.code for fault in self.faults.values() if fault.cause is cause), None)


def _unknown_fault(code: int) -> Fault:
    return Fault(
        code,
        "unknown",
        "This profile does not define the code: check that profile and firmware match, "
        "then power the board off and on.",
    )
