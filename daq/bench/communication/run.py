"""Exchanges commands that switch everything off, at the loop's rate and in its way.

Every command has ES = 0 and time-out 0: no motor is powered, and boards that are left in the middle
of it are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daq.bench.communication.figures import (
    BoardFigures,
    BoardTally,
    Expectation,
    HostFigures,
    HostTally,
)
from daq.boards.board import Board
from daq.boards.outcomes import Counters
from daq.errors import TransportError
from daq.loop.runner import Clock
from daq.recording.states import Outcome
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Fault
from firmware_protocol.profile import ERROR_MASK

_GREETINGS_MAX = 20
"""Commands that go out at most, before and after, until every board has confirmed one."""


class BoardExchanges:
    """The exchanges with one board.

    Attributes:
        fault: The first that it has reported.
        failure: What its device has failed with, the last time.
    """

    def __init__(self, board: Board, *, period_ns: int) -> None:
        self.board = board
        self.fault: Fault | None = None
        self.failure: TransportError | None = None
        framing, behaviour = board.link.framing, board.profile.behaviour
        codec = command_codec(board.profile, framing)
        self._command = list(codec.decode_raw(codec.encode(board.command())))
        self._echo_at = reply_codec(board.profile, framing).place_of("index") or 0
        self._expected = Expectation(
            board.lag_usual, board.lag_max, round(behaviour.reply_age_max_s * 1e9), period_ns
        )
        self._tally = BoardTally(self._expected, Counters())
        self._began_ns = self._ended_ns = 0
        self._has_failed = False

    def begin(self) -> None:
        """Count from here on."""
        self._tally = BoardTally(self._expected, self.board.counters)

    def prepare(self) -> None:
        """Make the next command."""
        self.board.prepare(self._command)

    def transfer(self, now_ns: Callable[[], int]) -> None:
        """Exchange it."""
        self._has_failed = False
        self._began_ns = now_ns()
        try:
            self.board.transfer()
        except TransportError as error:
            self._fail(error)
        self._ended_ns = now_ns()

    def take(self) -> None:
        """Judge what came back, and note it."""
        board, raws = self.board, None
        try:
            raws = None if self._has_failed else board.take(self._began_ns)
        except TransportError as error:
            self._fail(error)
        outcome = Outcome.NO_EXCHANGE if self._has_failed else board.outcome
        echo = None if raws is None else raws[self._echo_at]
        self._tally.note(board.index, echo, outcome, self._began_ns, self._ended_ns)
        if raws is not None and raws[0] & ERROR_MASK and self.fault is None:
            self.fault = board.profile.fault_of(raws[0])

    def figures(self) -> BoardFigures:
        """Return how they went, since `begin`."""
        return self._tally.figures(self.board.counters)

    def _fail(self, error: TransportError) -> None:
        self.failure, self._has_failed = error, True


class CommunicationRun:
    """A measurement on open boards.

    Attributes:
        host: How the computer kept its deadlines, once it is over.
        figures: How the exchanges with each board went.
        exchanges: The same boards, with the faults that they have reported.
    """

    host: HostFigures
    figures: list[BoardFigures]

    def __init__(self, boards: Sequence[Board], clock: Clock, *, period_ns: int) -> None:
        self.exchanges = [BoardExchanges(board, period_ns=period_ns) for board in boards]
        self._clock = clock
        self._period_ns = period_ns
        self._deadline_ns = 0

    def run(
        self,
        periods: int,
        *,
        is_over: Callable[[], bool] = lambda: False,
        each_period: Callable[[int], None] = lambda _period: None,
    ) -> None:
        """Measure for so many periods, unless it is over before; then take leave of the boards."""
        tally = HostTally()
        self._deadline_ns = self._clock.now_ns()
        self._greet()
        for line in self.exchanges:
            line.begin()
        done = 0
        while done < periods and not is_over():
            done += 1 + self._period(tally)
            each_period(done)
        # Before the last commands, which are not part of it.
        self.host, self.figures = tally.figures(), [line.figures() for line in self.exchanges]
        self._greet()

    def _period(self, tally: HostTally | None = None) -> int:
        """Exchange once with every board, at the next deadline; return how many were skipped."""
        clock, period_ns = self._clock, self._period_ns
        self._deadline_ns = deadline_ns = self._deadline_ns + period_ns
        clock.sleep_until_ns(deadline_ns)
        woke_ns = clock.now_ns()
        # As the loop does it: periods that were slept through are left out, not made up for.
        skipped = max(0, (woke_ns - deadline_ns) // period_ns)
        self._deadline_ns += skipped * period_ns
        for line in self.exchanges:
            line.prepare()
        for line in self.exchanges:
            line.transfer(clock.now_ns)
        for line in self.exchanges:
            line.take()
        if tally is not None:
            tally.note(deadline_ns, woke_ns, skipped)
        return skipped

    def _greet(self) -> None:
        """Exchange until every board has confirmed a command of these, if it does so at all."""
        awaited = [(line.board, line.board.index + 1) for line in self.exchanges]
        for _ in range(_GREETINGS_MAX):
            self._period()
            if all(board.has_taken(index) for board, index in awaited):
                return
