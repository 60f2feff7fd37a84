"""The verdict on how boards and computer talk: a grade, the reasons, what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from daq.bench.communication.figures import BoardFigures, HostFigures
from daq.robot import Safety
from firmware_protocol.fields import Fault

FAILED_SHARE_MAX = 1e-3
"""Of a board's exchanges that may be lost, or late, before it is bad; fewer are marginal."""
TRANSFER_SHARE_MAX = 0.5
"""Of a period that the transfers of all boards may take, by their p99.9; the rest is for the loop's
own work. What does not fit into a whole period is bad."""
_LOSSES: Mapping[str, str] = {
    "commands": "commands that did not arrive",
    "corrupt": "damaged replies",
    "truncated": "replies cut short",
    "silent": "no answer",
    "mismatched": "replies of another protocol version",
    "stale": "old replies",
    "stalled": "a clock that stands still",
    "failed": "errors of the device",
}
"""Kinds of losses, in words."""


class Grade(IntEnum):
    """How good something is; a greater number is worse."""

    GOOD = 0
    MARGINAL = 1
    """It can be used; something should be better."""
    BAD = 2
    """Motors should not be enabled before that is mended."""
    FAULT = 3
    """The board does not answer, or reports a fault."""

    @property
    def word(self) -> str:
        """For people and programs."""
        return self.name.lower()


class Reason(NamedTuple):
    """One thing that is not as it should be.

    Attributes:
        code: What it is, in a word for programs.
        fix: What to do.
    """

    grade: Grade
    code: str
    text: str
    fix: str


class GradedVerdict(NamedTuple):
    """A grade, and why it is not better: the worst reason first."""

    grade: Grade
    reasons: tuple[Reason, ...]

    @classmethod
    def of(cls, reasons: Iterable[Reason]) -> GradedVerdict:
        """Return the verdict that follows from all reasons."""
        ordered = tuple(sorted(reasons, key=lambda reason: -reason.grade))
        return cls(ordered[0].grade if ordered else Grade.GOOD, ordered)


class Judge:
    """Judges by a robot's own limits.

    Args:
        safety: When its loop would stop.
        period_us: The loop's.
        boards: How many share a period.
        is_time_binding: Whether times that are too long are bad. On a mock they are only marginal,
            since its computer is an ordinary one; on a serial port too, which takes what it takes.
    """

    def __init__(
        self, safety: Safety, *, period_us: float, boards: int, is_time_binding: bool
    ) -> None:
        self._safety = safety
        self._share_us = period_us / boards
        self._too_long = Grade.BAD if is_time_binding else Grade.MARGINAL

    def judge_board(
        self, figures: BoardFigures, fault: Fault | None = None, failure: object = None
    ) -> GradedVerdict:
        """Judge a board by its exchanges, the fault it has reported, its device's last failure."""
        return GradedVerdict.of(self._board_reasons(figures, fault, failure))

    def judge_host(self, figures: HostFigures) -> GradedVerdict:
        """Judge the computer."""
        most, limit = figures.skipped_most_per_s, self._safety.skipped_max_per_s
        if not figures.skipped:
            return GradedVerdict(Grade.GOOD, ())
        text = f"{_share(figures.skipped, figures.periods)} of the periods skipped"
        is_beyond = most > limit
        if is_beyond:
            text += f", {most} within a second: the loop allows {limit}"
        reason = Reason(
            self._too_long if is_beyond else Grade.MARGINAL,
            "skipped",
            text,
            "give it real-time priority and a core of its own, and stop what else is running: see "
            "`armature doctor`",
        )
        return GradedVerdict(reason.grade, (reason,))

    def _board_reasons(
        self, figures: BoardFigures, fault: Fault | None, failure: object
    ) -> Iterator[Reason]:
        if fault is not None:
            text = f"reports error {fault.code}: {fault.meaning}"
            yield Reason(Grade.FAULT, f"error-{fault.code}", text, fault.remedy)
        yield from self._silence(figures, failure)
        if figures.restarted:
            text = f"rebooted {_times(figures.restarted)}"
            yield Reason(Grade.BAD, "restarted", text, "check its supply and the plug")
        if figures.lost:
            details = ", ".join(
                f"{count} {_LOSSES[kind]}"
                for kind, count in msgspec.structs.asdict(figures.lost_by_kind).items()
                if count
            )
            yield Reason(
                _failed_grade(figures.lost, figures.exchanges),
                "lost",
                f"{_share(figures.lost, figures.exchanges)} lost: {details}",
                "check cable, plugs and ground, or lower the speed of the link",
            )
        if figures.late:
            yield Reason(
                _failed_grade(figures.late, figures.exchanges),
                "late",
                f"{_share(figures.late, figures.exchanges)} confirmed later than this firmware "
                "should",
                "check the firmware and the profile that the robot file names; a bad wire to the "
                "board looks like that, too",
            )
        yield from self._slowness(figures)

    def _silence(self, figures: BoardFigures, failure: object) -> Iterator[Reason]:
        limit = min(self._safety.unreadable_cycles, self._safety.stale_cycles)
        longest, at_end = figures.unanswered_longest, figures.unanswered_at_end
        if at_end >= min(limit, max(1, figures.exchanges)):
            yield Reason(
                Grade.FAULT,
                "silent",
                f"does not answer: nothing usable came of the last {at_end} exchanges"
                + (f"; {failure}" if failure else ""),
                "check the board's power and its cable, then see `armature doctor`",
            )
        elif longest >= limit:
            yield Reason(
                Grade.BAD,
                "interrupted",
                f"nothing usable came of {longest} exchanges in a row: the loop stops at {limit}",
                "look for a loose plug, or for another program that talks to the board",
            )

    def _slowness(self, figures: BoardFigures) -> Iterator[Reason]:
        p999_us, share_us = figures.transfer_us.p999, self._share_us
        allowed_us = TRANSFER_SHARE_MAX * share_us
        if p999_us > allowed_us:
            yield Reason(
                self._too_long if p999_us > share_us else Grade.MARGINAL,
                "slow",
                f"1 transfer in 1000 takes {p999_us:.0f} µs or more; of a period there are "
                f"{allowed_us:.0f} µs for each board",
                "raise the speed of the link, or see `armature doctor` for the computer's settings",
            )


def _failed_grade(count: int, exchanges: int) -> Grade:
    return Grade.BAD if count > FAILED_SHARE_MAX * exchanges else Grade.MARGINAL


def _share(count: int, total: int) -> str:
    """Return how many of all: `12 of 10000 (0.12 %)`."""
    return f"{count} of {total} ({100.0 * count / max(1, total):.2g} %)"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
