"""Who commands: at most one holder at a time, until the lease is given back, taken over or lapses.

Pure: time is the loop's monotonic clock and comes with every call. Which commands need the lease
and what its end means for a motion is decided in `daq.loop.lease_keeper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from daq.stream.errors import LeaseError
from daq.stream.messages import LeaseHolder

LAPSES_AFTER_NS = 2_000_000_000
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Holding:
    """One time that somebody has the lease, from `since_ns` on."""

    token: str
    name: str
    since_ns: int


class _Former(NamedTuple):
    """Who lost the lease last, and how, in words."""

    token: str
    how: str


class Lease:
    """The lease.

    Args:
        utc_offset_ns: What the loop's clock lacks to Unix time, for messages.
    """

    def __init__(self, *, utc_offset_ns: int = 0) -> None:
        self._utc_offset_ns = utc_offset_ns
        self._holding: Holding | None = None
        self._expires_ns: int | None = None
        self._former = _Former("", "")

    def take(
        self,
        token: str,
        name: str,
        now_ns: int,
        *,
        takes_over: bool = False,
        never_lapses: bool = False,
    ) -> Holding | None:
        """Take the lease, or renew it; return from whom it was taken over, None for nobody.

        Args:
            token: Proves later that a command comes from the holder.
            name: Who that is, for people.
            now_ns: The loop's clock.
            takes_over: Take it from whoever has it.
            never_lapses: For a holder who cannot die alone: the loop itself.

        Raises:
            LeaseError: Somebody else has it.
        """
        former = self._holding
        if former is not None and former.token == token:
            former = None
        else:
            if former is not None and not takes_over:
                raise self._held(former, now_ns)
            if former is not None:
                how = f"the lease was taken over by {name} at {self._clock_time(now_ns)}"
                self._former = _Former(former.token, how)
            self._holding = Holding(token, name, now_ns)
        self._expires_ns = None if never_lapses else now_ns + LAPSES_AFTER_NS
        return former

    def check(self, token: str, now_ns: int) -> None:
        """Check that a command may be carried out, and renew the lease of its holder.

        Args:
            token: Of the holder; empty for a client who claims no lease, which is enough while
                nobody has it.
            now_ns: The loop's clock.

        Raises:
            LeaseError: Somebody else has it, or the client has lost it and shall know.
        """
        holding = self._holding
        if token:
            if holding is None or holding.token != token:
                raise self._lost(token, now_ns)
            if self._expires_ns is not None:
                self._expires_ns = now_ns + LAPSES_AFTER_NS
        elif holding is not None:
            raise self._held(holding, now_ns)

    def release(self, token: str) -> bool:
        """Give the lease back; return whether it was this holder's."""
        if self._holding is None or self._holding.token != token:
            return False
        self._holding = None
        return True

    def lapse(self, now_ns: int) -> Holding | None:
        """End a lease that was not renewed in time; return whose it was, None if none has ended."""
        holding, expires_ns = self._holding, self._expires_ns
        if holding is None or expires_ns is None or now_ns < expires_ns:
            return None
        self._holding = None
        silence_s = LAPSES_AFTER_NS * 1e-9
        how = f"the lease lapsed at {self._clock_time(now_ns)}: not renewed for {silence_s:g} s"
        self._former = _Former(holding.token, how)
        return holding

    def holder(self, now_ns: int) -> LeaseHolder | None:
        """Return who commands, None for nobody."""
        holding = self._holding
        return None if holding is None else self._describe(holding, now_ns)

    # --- refusals ---------------------------------------------------------------------------------

    def _held(self, holding: Holding, now_ns: int) -> LeaseError:
        since = self._clock_time(holding.since_ns)
        text = f"held by {holding.name} since {since}; --take takes it over"
        return LeaseError("held", text, self._describe(holding, now_ns))

    def _lost(self, token: str, now_ns: int) -> LeaseError:
        how = self._former.how if token == self._former.token else "this lease is over"
        return LeaseError("lease-lost", f"{how}; take it anew to go on", self.holder(now_ns))

    def _describe(self, holding: Holding, now_ns: int) -> LeaseHolder:
        return LeaseHolder(
            name=holding.name,
            since_utc_ns=holding.since_ns + self._utc_offset_ns,
            held_s=(now_ns - holding.since_ns) * 1e-9,
        )

    def _clock_time(self, t_ns: int) -> str:
        """Return a time of day; by hand, for `time.localtime` may look at files."""
        minutes, second = divmod((t_ns + self._utc_offset_ns) // 1_000_000_000 % _DAY_S, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d} UTC"
