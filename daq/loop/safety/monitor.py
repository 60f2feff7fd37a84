"""Checks every board in every cycle, skipped periods too, and trips the state machine.

A limit trips after as many cycles in a row beyond it as the robot file's `[safety]` says. Limits of
joints (`daq.loop.safety.axis_guard`) count while the motors are on and calibrated, in a stop as
well; a board's fault while they are on; replies that cannot be read, always.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from daq.boards.board import Outcome
from daq.loop.events import Events
from daq.loop.io.loop_board import LoopBoard
from daq.loop.safety.axis_guard import AxisGuard, Strikes
from daq.loop.safety.machine import Machine
from daq.recording.states import State
from daq.robot import Bus, Safety
from firmware_protocol.profile import ERROR_MASK

_STALE = (Outcome.STALE, Outcome.STALLED, Outcome.COMMAND_LOST, Outcome.UNCONFIRMED)
_LIKELY_CAUSE = {
    Outcome.CORRUPT: "wrong checksums: long or unshielded wires, a clock too fast, a bad ground",
    Outcome.TRUNCATED: "replies cut short: the wrong frame size or a loose chip-select wire",
    Outcome.SILENT: "an idle line: no power on the board, MISO not connected, wrong chip select",
    Outcome.MISMATCHED: "another protocol version: not the robot file's profile",
}
_BATCHES_PER_S = 50
_UNHEARD_CYCLES = 2
"""After so many replies that are missing in a row no current drives a joint on."""


class BoardGuard:
    """The limits of one board and of the joints on it.

    Attributes:
        is_alert: Whether something was wrong the last time, so that the next reply must be looked
            at even if it is plain.
    """

    def __init__(
        self,
        unit: LoopBoard,
        axes: Sequence[AxisGuard],
        bus: Bus,
        safety: Safety,
        machine: Machine,
    ) -> None:
        self._unit = unit
        self._bus = bus
        self._safety = safety
        self._machine = machine
        self._axes = axes
        self._strikes = Strikes()
        self.is_alert = False
        self._unreadable = 0
        self._stale = 0
        self._is_restrained = False

    def check(self) -> None:
        """Check the last exchange; only needed when it, or the one before, was not plain."""
        unit = self._unit
        raws = None if unit.missed else unit.replies
        if raws is None:
            self._restrain()
            self._check_missing()
        else:
            self._go_on()
            self._check_reply(raws)
        self.is_alert = bool(
            self._unreadable
            or self._stale
            or self._strikes.counts
            or any(guard.is_alert for guard in self._axes)
        )

    def _restrain(self) -> None:
        is_unheard = self._unit.missed >= _UNHEARD_CYCLES
        if is_unheard and self._machine.state is State.ACTIVE:
            self._is_restrained = True
            for guard in self._axes:
                guard.restrain()

    def _go_on(self) -> None:
        if self._is_restrained and self._machine.state is State.ACTIVE:
            for guard in self._axes:
                guard.go_on()
        self._is_restrained = False

    def check_standing(self) -> None:
        """Look whether a joint stands that should move; called 50 times a second."""
        for guard in self._axes:
            if guard.check_standing():
                self.is_alert = True

    def _check_reply(self, raws: tuple[int, ...]) -> None:
        unit = self._unit
        self._unreadable = 0
        self._check_stale()
        state = self._machine.state
        if state is State.ACTIVE or state is State.READY:
            if not unit.is_ready:
                self._report_fault()
            self._check_limits(raws)
        elif state is State.STOPPING and unit.is_powered:
            if raws[0] & ERROR_MASK:
                self._report_fault()
            self._check_limits(raws)
        elif state is State.CALIBRATING and raws[0] & ERROR_MASK:
            self._report_fault()

    def _check_limits(self, raws: tuple[int, ...]) -> None:
        unit = self._unit
        for guard in self._axes:
            guard.check(raws)
        if unit.lowest_raw <= raws[unit.voltage_at] <= unit.highest_raw:
            self._strikes.keep(())
        else:
            self._strike()

    # --- the board --------------------------------------------------------------------------------

    def _check_missing(self) -> None:
        unit = self._unit
        if unit.failure is not None:
            text = f"board {unit.port.name} cannot be reached: {unit.failure}"
            self._trip_board(text, "unreachable")
            return
        outcome = unit.board.outcome
        if outcome in _STALE:
            self._check_stale()
            return
        self._unreadable += 1
        if self._unreadable >= self._safety.unreadable_cycles:
            self._trip_board(
                f"{unit.title}: {self._unreadable} replies in a row could not be read; likely "
                f"{_LIKELY_CAUSE[outcome]}. See `armature doctor`",
                outcome.name.lower(),
            )
            self._unreadable = 0

    def _check_stale(self) -> None:
        if self._unit.board.outcome not in _STALE:
            self._stale = 0
            return
        self._stale += 1
        if self._stale >= self._safety.stale_cycles:
            self._trip_board(
                f"{self._unit.title}: {self._stale} replies in a row did not confirm our commands "
                "(its index or clock stands still); likely the board hangs, hears nothing, or "
                "another program talks to it: see `armature doctor`",
                "unconfirmed",
            )
            self._stale = 0

    def _report_fault(self) -> None:
        unit, fault = self._unit, self._unit.fault
        if fault is not None:
            text = f"{unit.title} reports error {fault.code}, {fault.meaning}. {fault.remedy}"
            self._trip_board(f"{text} (`armature send reset`)", f"error-{fault.code}")
        elif unit.is_enabled and not unit.has_restarted:
            self._trip_board(
                f"{unit.title} says that a motor is enabled but not ready, without an error's code;"
                " likely its gate driver has failed: check the supply and the motor's wires, then "
                "power the board off and on",
                "not-ready",
            )
        else:
            text = (
                f"{unit.title} is no longer ready, without reporting a fault; likely it has lost "
            )
            self._trip_board(f"{text}its supply and rebooted", "not-enabled")

    def _strike(self) -> None:
        if self._strikes.add("bus", self._safety.bus_voltage_cycles):
            bus, name = self._bus, self._unit.port.name
            self._machine.trip(
                f"board {name}: bus voltage {self._unit.bus_voltage_v:.4g} V, limits {bus.min_v:g} "
                f"to {bus.max_v:g} V; check the supply and its wires",
                code="voltage-limit",
                kind="limit",
                source=name,
            )

    def _trip_board(self, text: str, code: str) -> None:
        self._machine.trip(text, code=code, source=self._unit.port.name, is_of_board=True)


class DeadlineBudget:
    """How many periods may be skipped within a second."""

    def __init__(
        self, allowed_per_s: int, machine: Machine, events: Events, *, period_ns: int
    ) -> None:
        # If every period may be skipped, there is no limit.
        self._allowed = math.inf if allowed_per_s * period_ns >= 1_000_000_000 else allowed_per_s
        self._machine = machine
        self._events = events
        self._period_ns = period_ns
        self._recent: deque[int] = deque([0] * _BATCHES_PER_S, maxlen=_BATCHES_PER_S)
        self._total = 0
        self._skipped = 0
        self._worst = (0, "")

    def note(self, skipped: int, *, wake_ns: int, transfer_ns: int, work_ns: int) -> None:
        """Count the periods skipped before a cycle, and stop when they are too many.

        Args:
            skipped: How many.
            wake_ns: How late the cycle began.
            transfer_ns: How long the links took in the cycle before it.
            work_ns: How long its work took.
        """
        self._skipped += skipped
        if skipped > self._worst[0]:
            if transfer_ns + work_ns < self._period_ns:
                cause = f"the loop was woken {wake_ns * 1e-6:.1f} ms late"
            elif transfer_ns > work_ns:
                cause = f"the links took {transfer_ns * 1e-6:.1f} ms"
            else:
                cause = f"a cycle's work took {work_ns * 1e-6:.1f} ms"
            self._worst = skipped, cause
        total = self._total - self._recent[0] + self._skipped
        machine = self._machine
        if total > self._allowed and machine.is_powered:
            text = (
                f"{total} periods skipped within a second, limit {self._allowed}; lately "
                f"{self._worst[1]}. See `armature doctor`"
            )
            machine.trip(text, code="skipped-periods", kind="limit", source="loop")

    def check(self) -> None:
        """Report what was skipped in a batch; called once per batch."""
        skipped, (_, cause) = self._skipped, self._worst
        self._total += skipped - self._recent[0]
        self._recent.append(skipped)
        if not skipped:
            return
        self._skipped, self._worst = 0, (0, "")
        noun = "period" if skipped == 1 else "periods"
        self._events.add("overrun", f"{skipped} {noun} skipped: {cause}", severity="warning")
