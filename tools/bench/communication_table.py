"""The report of `armature bench communication` as a table for people."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from daq.bench.communication.figures import BoardFigures
from daq.bench.communication.verdict import Grade, GradedVerdict
from daq.stream.messages import Quantiles
from tools.bench.communication_report import CommunicationReport
from tools.shared.cli import make_console

_STYLES = {
    Grade.GOOD: "green",
    Grade.MARGINAL: "yellow",
    Grade.BAD: "bold red",
    Grade.FAULT: "bold red",
}
_TIMES_ORDER = "p50 / p99 / p99.9 / longest"


def show(report: CommunicationReport) -> None:
    """Print it."""
    from rich.markup import escape
    from rich.table import Table

    title = f"Robot {escape(report.robot)} on link {escape(report.link)}"
    has_times = report.host is not None and not report.is_virtual
    table = Table(title=title, caption=f"times: {_TIMES_ORDER}" if has_times else None)
    table.add_column("")
    for board in report.boards:
        table.add_column(f"{escape(board.name)}\n{escape(board.device)}, {board.profile}")
    rows = [
        _rows(board.figures, is_virtual=report.is_virtual)
        for board in report.boards
        if board.figures is not None
    ]
    for name in rows[0] if rows else ():
        table.add_row(name, *(of_board[name] for of_board in rows))
    table.add_row("verdict", *(_coloured(board.verdict) for board in report.boards))
    console = make_console()
    console.print(table)
    for line in _lines(report):
        console.print(line, highlight=False)
    if report.grade is None:
        console.print("interrupted before anything was measured")
        return
    ending = "interrupted; until then " if report.is_interrupted else ""
    console.print(f"{ending}[{_STYLES[report.grade]}]{report.grade.word}[/]")


def _rows(figures: BoardFigures, *, is_virtual: bool) -> dict[str, str]:
    """Return a board's figures; in virtual time there are no times."""
    counts = {
        "exchanges": str(figures.exchanges),
        "success": f"{figures.success} ({_percent(figures.success_share)} %)",
        "late": str(figures.late),
        "lost": _losses(figures),
    }
    times = {
        "overlong": str(figures.overlong),
        "age of data (µs)": _times(figures.age_us),
        "transfer (µs)": _times(figures.transfer_us),
    }
    return counts if is_virtual else counts | times


def _lines(report: CommunicationReport) -> Iterator[str]:
    """Yield what the table does not hold: the computer, and every reason with its remedy."""
    from rich.markup import escape

    if report.host is not None and not report.is_virtual:
        host = report.host
        yield (
            f"computer: {host.skipped} of {host.periods} periods skipped, woken late by "
            f"{_times(host.wake_us)} µs"
        )
        yield from (f"  {escape(text)}" for text in report.privileges)
    verdicts = {"computer": report.host_verdict}
    verdicts |= {f"board {board.name}": board.verdict for board in report.boards}
    for subject, verdict in verdicts.items():
        for reason in verdict.reasons if verdict is not None else ():
            style = _STYLES[reason.grade]
            yield f"[{style}]{reason.grade.word}[/]: {escape(subject)}: {escape(reason.text)}"
            yield f"  → {escape(reason.fix)}"


def _coloured(verdict: GradedVerdict | None) -> str:
    if verdict is None:
        return "not measured"
    return f"[{_STYLES[verdict.grade]}]{verdict.grade.word}[/]"


def _losses(figures: BoardFigures) -> str:
    kinds = msgspec.structs.asdict(figures.lost_by_kind)
    details = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{figures.lost}: {details}" if details else "0"


def _percent(share: float) -> str:
    """Return a share in percent; 100 only where it is."""
    return "100" if share == 1.0 else f"{min(100.0 * share, 99.999):.3f}"


def _times(quantiles: Quantiles | None) -> str:
    if quantiles is None:
        return "none"
    return " / ".join(f"{value:.0f}" for value in msgspec.structs.astuple(quantiles))
