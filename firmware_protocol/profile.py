"""What a board profile is: its frames, its faults, and how the firmware behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from firmware_protocol.fields import Direction, Fault, FaultCause, FrameLayout

VERSION_SHIFT, VERSION_MASK = 4, 0b111
ERROR_MASK = 0b1111


class OnWatchdog(Enum):
    """What the motors do once the board has had no valid command for too long."""

    BRAKE = "brake"
    COAST = "coast"


class ErrorsClear(Enum):
    """What ends a latched error."""

    POWER_CYCLE = "the board is powered off and on"
    SYSTEM_DISABLED_ONE_FRAME = "a frame comes with ES = 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a firmware does that its frames do not show.

    Attributes:
        position_wrap_turns: Reported positions wrap at plus and minus this.
        current_max_a: The board's own limit, also meant by Isat = 0; None for no limit.
        velocity_filter_hz: Corner of the first-order low-pass on measured velocities.
        current_filter_hz: Of the one on measured currents.
        is_reference_advanced: Whether θref moves on by ωref·t between frames; else it is held.
        reply_lag_max: The reply to command k is in exchange k+1, or as late as k + this.
        frame_gap_min_s: Shortest time between two frames.
        on_watchdog: What the motors do after a command timeout.
        errors_clear: What ends a latched error.
        is_stop_latched: Whether a motor stopped by EMx = 0 waits for ES to drop, MxR staying 1.
        is_misaligned_by_truncation: Whether a short transfer shifts all that follow.
    """

    position_wrap_turns: float
    current_max_a: float | None
    velocity_filter_hz: float
    current_filter_hz: float
    is_reference_advanced: bool
    reply_lag_max: int
    frame_gap_min_s: float
    on_watchdog: OnWatchdog
    errors_clear: ErrorsClear
    is_stop_latched: bool
    is_misaligned_by_truncation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One firmware's wire format and behaviour."""

    name: str
    summary: str
    command: FrameLayout
    reply: FrameLayout
    faults: Mapping[int, Fault]
    behaviour: Behaviour

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
