"""What `armature bench communication` has to say, for people and programs alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from daq.bench.communication.figures import BoardFigures, HostFigures
from daq.bench.communication.run import CommunicationRun
from daq.bench.communication.verdict import Grade, GradedVerdict, Judge, Reason
from daq.boards.board import Board
from daq.loop.setup import PERIOD_NS
from daq.robot import DrivenRobot
from daq.system.findings import Finding
from firmware_protocol.fields import Framing
from tools.shared.cli import BOARD_FAULT, FAILED, INTERRUPTED, OK

_EXIT_CODES = {
    Grade.GOOD: OK,
    Grade.MARGINAL: OK,
    Grade.BAD: FAILED,
    Grade.FAULT: BOARD_FAULT,
}


@dataclass(frozen=True, slots=True)
class BoardReport:
    """One board; without figures, and perhaps without a verdict, where nothing was measured."""

    name: str
    device: str
    profile: str
    figures: BoardFigures | None
    verdict: GradedVerdict | None

    def as_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        facts: dict[str, object] = {
            "name": self.name,
            "device": self.device,
            "profile": self.profile,
        }
        if self.figures is not None:
            facts |= msgspec.structs.asdict(self.figures)
            facts["success_share"] = self.figures.success_share
        return facts | _verdict_dict(self.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationReport:
    """The whole measurement; without the computer's figures where nothing was measured.

    Attributes:
        is_virtual: Whether times are virtual, and so say nothing of this computer.
        privileges: What of the real-time settings could not be had, a sentence each.
    """

    robot: str
    link: str
    is_virtual: bool = False
    is_interrupted: bool = False
    privileges: Sequence[str] = ()
    host: HostFigures | None = None
    host_verdict: GradedVerdict | None = None
    boards: Sequence[BoardReport]

    @property
    def grade(self) -> Grade | None:
        """The worst of all; None where it was interrupted before there was any."""
        verdicts = [self.host_verdict, *(board.verdict for board in self.boards)]
        return max((verdict.grade for verdict in verdicts if verdict is not None), default=None)

    @property
    def exit_code(self) -> int:
        """How the command ends."""
        if self.is_interrupted or self.grade is None:
            return INTERRUPTED
        return _EXIT_CODES[self.grade]

    def as_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        facts: dict[str, object] = {
            "robot": self.robot,
            "link": self.link,
            "verdict": None if self.grade is None else self.grade.word,
            "is_virtual": self.is_virtual,
            "is_interrupted": self.is_interrupted,
        }
        if self.host is not None:
            host = msgspec.structs.asdict(self.host)
            facts["period_s"] = PERIOD_NS * 1e-9
            facts["elapsed_s"] = self.host.periods * PERIOD_NS * 1e-9
            facts["host"] = {
                **host,
                "privileges": list(self.privileges),
                **_verdict_dict(self.host_verdict),
            }
        return facts | {"boards": [board.as_dict() for board in self.boards]}


def measured(
    robot: DrivenRobot,
    link: str,
    run: CommunicationRun,
    *,
    privileges: Sequence[str],
    is_virtual: bool,
    is_mock: bool,
    is_interrupted: bool,
) -> CommunicationReport:
    """Return the report of a run that is over."""
    if not run.host.periods:
        return unmeasured(
            robot, link, [line.board for line in run.exchanges], is_virtual=is_virtual
        )
    is_serial = any(line.board.link.framing is Framing.RS485 for line in run.exchanges)
    judge = Judge(
        robot.safety,
        period_us=PERIOD_NS * 1e-3,
        boards=len(run.exchanges),
        is_time_binding=not (is_mock or is_serial),
    )
    boards = [
        _board_report(line.board, figures, judge.judge_board(figures, line.fault, line.failure))
        for line, figures in zip(run.exchanges, run.figures, strict=True)
    ]
    return CommunicationReport(
        robot=robot.name,
        link=link,
        is_virtual=is_virtual,
        is_interrupted=is_interrupted,
        privileges=privileges,
        host=run.host,
        host_verdict=judge.judge_host(run.host),
        boards=boards,
    )


def unmeasured(
    robot: DrivenRobot,
    link: str,
    boards: Sequence[Board],
    obstacles: Sequence[Finding | None] = (),
    *,
    is_virtual: bool,
) -> CommunicationReport:
    """Return the report where nothing was measured.

    Because of obstacles, one or None per board; without any it was interrupted before it began.
    """
    reports = []
    for board, obstacle in zip_longest(boards, obstacles):
        verdict = None
        if obstacle is not None:
            reason = Reason(Grade.FAULT, obstacle.code, obstacle.text, obstacle.fix)
            verdict = GradedVerdict.of([reason])
        reports.append(_board_report(board, None, verdict))
    return CommunicationReport(
        robot=robot.name,
        link=link,
        is_virtual=is_virtual,
        is_interrupted=not any(obstacles),
        boards=reports,
    )


def _board_report(
    board: Board, figures: BoardFigures | None, verdict: GradedVerdict | None
) -> BoardReport:
    return BoardReport(board.name, board.link.name, board.profile.name, figures, verdict)


def _verdict_dict(verdict: GradedVerdict | None) -> dict[str, object]:
    if verdict is None:
        return {"verdict": None, "reasons": []}
    reasons = [{**reason._asdict(), "grade": reason.grade.word} for reason in verdict.reasons]
    return {"verdict": verdict.grade.word, "reasons": reasons}
