"""Keeps the lease for the handler: who may give which command, and what the end of a lease does."""

from __future__ import annotations

from daq.loop.cycle import Cycle
from daq.loop.lease import Lease
from daq.loop.leased_motions import LeasedMotions
from daq.samples.batches import Session
from daq.stream import messages as m
from daq.stream.errors import RefusedError

FOR_EVERYBODY = (m.Status, m.Stop, m.Disable, m.RecordMark, m.Report, m.TakeLease, m.ReleaseLease)
"""What needs no lease: to look, to note, and whatever brings the robot to rest and off."""


class LeaseKeeper:
    """The lease of a loop, in its time."""

    def __init__(self, cycle: Cycle, session: Session) -> None:
        self._events = cycle.events
        self._start_ns = session.start_t_ns
        self._lease = Lease(utc_offset_ns=session.start_utc_ns - session.start_t_ns)
        self._motions = LeasedMotions(cycle.control, cycle.machine)

    @property
    def holder(self) -> m.LeaseHolder | None:
        """Who commands; None for nobody."""
        return self._lease.holder(self._now_ns)

    def admit(self, command: m.AnyCommand) -> None:
        """Refuse a command that its sender may not give now.

        Raises:
            LeaseError: Somebody else commands, or the sender does not any more.
            RefusedError: It asks for a lease to end with, and comes without one.
        """
        self.step()
        if isinstance(command, FOR_EVERYBODY):
            return
        self._lease.check(command.lease, self._now_ns)
        is_leased = isinstance(command, m.SetMode | m.PlayStart) and command.ends_with_lease
        if is_leased and not command.lease:
            text = "ends_with_lease: take a lease first, and give the command under its token"
            raise RefusedError("malformed", text, reason="no-lease")

    def note(self, command: m.AnyCommand) -> None:
        """Note a command that was carried out."""
        self._motions.note(command)

    def step(self) -> None:
        """Let a lease lapse that was not renewed; called now and then."""
        lapsed = self._lease.lapse(self._now_ns)
        if lapsed is not None:
            self._end_of_lease(f"the lease of {lapsed.name} has lapsed", is_told=True)

    def take(self, command: m.TakeLease, *, never_lapses: bool = False) -> object:
        """Give the lease to who asks for it.

        Raises:
            LeaseError: Somebody else has it.
            RefusedError: There is no token.
        """
        _require_token(command)
        former = self._lease.take(
            command.lease,
            command.name,
            self._now_ns,
            takes_over=command.takes_over,
            never_lapses=never_lapses,
        )
        if former is not None:
            self._end_of_lease(f"{command.name} took over from {former.name}", is_told=True)
        return {}

    def renew(self, command: m.RenewLease) -> object:
        """Confirm a renewal: `admit` has renewed the lease, or refused.

        Raises:
            RefusedError: There is no token.
        """
        _require_token(command)
        return {}

    def release(self, command: m.ReleaseLease) -> object:
        """Take the lease back from its holder; from anybody else there is nothing to take."""
        if self._lease.release(command.lease):
            self._end_of_lease("the lease was given back", is_told=False)
        return {}

    def _end_of_lease(self, what: str, *, is_told: bool) -> None:
        """End what was to end with the lease; every short one is not worth an event."""
        was_moving = self._motions.end(what)
        then = ": the motion that was to end with it comes to hold" if was_moving else ""
        if is_told or was_moving:
            self._events.add("lease", f"{what}{then}", severity="warning")

    @property
    def _now_ns(self) -> int:
        # Before its first cycle the loop has no time yet.
        return max(self._events.t_ns, self._start_ns)


def _require_token(command: m.TakeLease | m.RenewLease) -> None:
    if not command.lease:
        text = "a lease needs a token of your own, in the field `lease`"
        raise RefusedError("malformed", text, reason="no-token")
