"""Counts and times of exchanges, in constant memory. Pure computation, no I/O.

What became of each exchange is judged and counted by `daq.boards.board`: one failure is counted
once, under its cause. Here those counts are put together, and times are added.

- **late**: a sound reply, but the command that it confirms is older than the profile allows. An
  echo that lags within the profile's `reply_lag_max` is what that firmware does: not late.
- **lost**: a command that the board has not taken although it answers, or an exchange whose reply
  cannot be used: corrupt, truncated, silent, mismatched (of another protocol), stale (not newer
  than the one before), stalled (the board's clock stands still), failed (the device reports an
  error). Where echoes may lag (`udriver2`), single commands that were not taken hide behind that.
- **success**: all other exchanges. Those that merely show a failure counted before are among them.
- **overlong**: an exchange whose transfer took longer than a period, whatever came of it.
- **age of data**: when an exchange has ended, how long ago the newest values that the host has
  were latched on the board, at most. That is the time since the transfer began which brought them,
  plus the profile's `reply_age_max_s`. A reply that confirms an older command than usual may have
  been made when the usual one was due, so its age counts from that transfer. Where an exchange
  brought nothing, the values of the one before are a period older.
- **skipped**: periods in which there was no exchange at all, because the computer was away.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import msgspec

from daq.boards.outcomes import Counters
from daq.loop.process.timing import Histogram
from daq.recording.states import Outcome
from daq.stream.messages import Quantiles

_REMEMBERED = 256
"""Commands whose time is known; a power of two. An echo that lags further counts as so far."""
_NS_PER_S = 1_000_000_000


class LossesByKind(msgspec.Struct, frozen=True, kw_only=True):
    """What was lost, each failure once."""

    commands: int
    corrupt: int
    truncated: int
    silent: int
    mismatched: int
    stale: int
    stalled: int
    failed: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(msgspec.structs.astuple(self))


class BoardFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How the exchanges with one board went; the module says what each word means.

    Attributes:
        restarted: How often the board has rebooted.
        resynchronised: How often it had to be brought back in step.
        unanswered_longest: Exchanges in a row that brought neither values nor a confirmation.
        unanswered_at_end: The same, of those that came last.
        age_us: None where no exchange ever brought values.
    """

    exchanges: int
    success: int
    late: int
    lost: int
    lost_by_kind: LossesByKind
    overlong: int
    restarted: int
    resynchronised: int
    unanswered_longest: int
    unanswered_at_end: int
    age_us: Quantiles | None
    transfer_us: Quantiles

    @property
    def success_share(self) -> float:
        """Of all exchanges."""
        return self.success / max(1, self.exchanges)


class HostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How the computer kept its deadlines.

    Attributes:
        periods: That have passed: those with an exchange and skipped ones.
        skipped_most_per_s: Within the worst of whole seconds.
        wake_us: How late the others began.
    """

    periods: int
    skipped: int
    skipped_most_per_s: int
    wake_us: Quantiles


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is usual for a board on its link.

    Attributes:
        lag_usual: A reply confirms the command that was sent so many before it,
        lag_max: or at the latest the one so many before it.
        reply_age_ns: Values were latched up to this long before the transfer that brings them.
    """

    lag_usual: int
    lag_max: int
    reply_age_ns: int
    period_ns: int


class BoardTally:
    """Notes exchanges with one board, one by one, whose Counters were `before` at the start."""

    def __init__(self, expected: Expectation, before: Counters) -> None:
        self._expected = expected
        self._before = astuple(before)
        self._began_ns = [0] * _REMEMBERED
        self._latched_ns: int | None = None
        self._exchanges = self._failed = self._late_excused = self._overlong = 0
        self._unanswered = self._unanswered_longest = 0
        self._has_just_failed = False
        self._age, self._transfer = Histogram(), Histogram()

    def note(
        self, index: int, echo: int | None, outcome: Outcome, began_ns: int, ended_ns: int
    ) -> None:
        """Note an exchange.

        Args:
            index: Of the command.
            echo: The index that the reply confirms; None where the reply cannot be used.
            outcome: What the board made of it; NO_EXCHANGE if its device failed.
            began_ns: When the transfer began,
            ended_ns: and when it had ended.
        """
        expected, elapsed_ns = self._expected, ended_ns - began_ns
        self._exchanges += 1
        self._began_ns[index % _REMEMBERED] = began_ns
        self._transfer.add(elapsed_ns)
        if elapsed_ns > expected.period_ns:
            self._overlong += 1
        if echo is None or outcome is Outcome.COMMAND_LOST:
            self._unanswered += 1
            self._unanswered_longest = max(self._unanswered_longest, self._unanswered)
            if outcome is Outcome.NO_EXCHANGE:
                self._failed += 1
        else:
            self._unanswered = 0
        if echo is not None:
            lag = (index - echo) & 0xFFFF
            # A command that went down with its device is not counted again as late.
            if outcome is Outcome.LATE and (lag <= expected.lag_max or self._has_just_failed):
                self._late_excused += 1
            extra = min(max(0, lag - expected.lag_usual), _REMEMBERED - 1)
            latched_ns = self._began_ns[(index - extra) % _REMEMBERED] - expected.reply_age_ns
            # Whatever its echo: it is newer than the reply before it, or it could not be used.
            if self._latched_ns is None or latched_ns > self._latched_ns:
                self._latched_ns = latched_ns
        self._has_just_failed = outcome is Outcome.NO_EXCHANGE
        if self._latched_ns is not None:
            self._age.add(ended_ns - self._latched_ns)

    def figures(self, after: Counters) -> BoardFigures:
        """Put together what was noted; `after` is what the board's Counters are by now."""
        counted = Counters(*(a - b for a, b in zip(astuple(after), self._before, strict=True)))
        lost = LossesByKind(
            commands=counted.lost_commands,
            corrupt=counted.corrupt,
            truncated=counted.truncated,
            silent=counted.lost_replies,
            mismatched=counted.mismatched,
            # The first replies of a session are none of ours, and this one has begun before.
            stale=counted.stale + counted.unconfirmed,
            stalled=counted.stalled,
            failed=self._failed,
        )
        late = counted.late - self._late_excused
        return BoardFigures(
            exchanges=self._exchanges,
            success=self._exchanges - late - lost.total,
            late=late,
            lost=lost.total,
            lost_by_kind=lost,
            overlong=self._overlong,
            restarted=counted.restarted,
            resynchronised=counted.resynchronised,
            unanswered_longest=self._unanswered_longest,
            unanswered_at_end=self._unanswered,
            age_us=self._age.quantiles() if self._age.count else None,
            transfer_us=self._transfer.quantiles(),
        )


class HostTally:
    """Notes how periods began, one by one."""

    def __init__(self) -> None:
        self._wake = Histogram()
        self._skipped = 0
        self._second = self._skipped_in_second = self._skipped_most_per_s = 0

    def note(self, deadline_ns: int, woke_ns: int, skipped: int) -> None:
        """Note a period that was due at one time and began at another, after skipped ones."""
        self._wake.add(woke_ns - deadline_ns)
        if not skipped:
            return
        self._skipped += skipped
        second = deadline_ns // _NS_PER_S
        if second != self._second:
            self._second, self._skipped_in_second = second, 0
        self._skipped_in_second += skipped
        self._skipped_most_per_s = max(self._skipped_most_per_s, self._skipped_in_second)

    def figures(self) -> HostFigures:
        """Put together what was noted."""
        return HostFigures(
            periods=self._wake.count + self._skipped,
            skipped=self._skipped,
            skipped_most_per_s=self._skipped_most_per_s,
            wake_us=self._wake.quantiles(),
        )
