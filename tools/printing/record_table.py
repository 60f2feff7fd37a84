"""Tables of what is in a recording, for people."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.markup import escape
from rich.table import Table

from daq.recording.text import plain
from tools.shared.cli import make_console

_EVENTS_MAX = 40
_IMPORTED = "import"
"""The link of a recording that came from foreign files: no loop ran, and there were no boards."""
_FOR_PROGRAMS = ("import_facts",)
"""Kinds of events whose text is JSON: --json shows them."""
_TIMES = ("p50", "p99", "p999", "max")


def print_summary(facts: dict[str, Any]) -> None:
    """Print what `daq.recording.summarise` found."""
    console = make_console()
    console.print(_facts(facts))
    console.print(_joints(facts["joints"]))
    if facts["boards"]:
        console.print(_boards(facts["boards"]))
    if facts["link"] != _IMPORTED:
        console.print(_timing(facts))
    if facts["gaps"]:
        console.print(_gaps(facts["gaps"]))
    events = [event for event in facts["events"] if event["kind"] not in _FOR_PROGRAMS]
    if events:
        console.print(_events(events))


def _facts(facts: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    size = facts["size_bytes"] * 1e-6
    ratio = facts["compression_ratio"]
    rows = {
        "file": facts["file"],
        "recording": f"{facts['recording']} of session {facts['session']}",
        "robot": f"{facts['robot']}, imported"
        if facts["link"] == _IMPORTED
        else f"{facts['robot']} over {facts['link']}",
        "start": facts["start_utc"],
        "time": "virtual" if facts["is_virtual"] else "real",
        "duration": f"{facts['duration_s']:.3f} s, {facts['samples']} samples",
        "missing": f"{facts['missing']} samples in {len(facts['gaps'])} gaps",
        "skipped": f"{facts['skipped']} periods",
        "size": f"{size:.2f} MB" + (f", {ratio:.0%} of its data" if ratio else ""),
        "made by": f"armature {facts['armature_version']} {facts['commit'][:12]} "
        f"on {facts['host']}, format {facts['version']}",
    }
    for name, text in rows.items():
        table.add_row(name, escape(text))
    return table


def _joints(joints: list[dict[str, Any]]) -> Table:
    table = Table("joint", title="joints", title_justify="left")
    for heading in ("from rad", "to rad", "max rad/s", "max iq A", "valid %"):
        table.add_column(heading, justify="right")
    for joint in joints:
        keys = ("position_min_rad", "position_max_rad", "speed_max_rad_s", "iq_max_a")
        values = [_number(joint[key], 3) for key in keys]
        table.add_row(escape(joint["name"]), *values, _number(joint["valid_percent"], 2))
    return table


def _boards(boards: list[dict[str, Any]]) -> Table:
    table = Table("board", "profile", "device", "replies", title="boards", title_justify="left")
    for board in boards:
        outcomes = ", ".join(f"{count} {name}" for name, count in board["outcomes"].items())
        cells = (board["name"], board["profile"], board["device"], outcomes)
        table.add_row(*map(escape, cells))
    return table


def _timing(facts: dict[str, Any]) -> Table:
    table = Table("µs", title="loop timing", title_justify="left")
    for name in _TIMES:
        table.add_column(name, justify="right")
    for name, key in (("wake", "wake_us"), ("transfer", "transfer_us"), ("work", "work_us")):
        table.add_row(name, *(_number(facts[key].get(time), 1) for time in _TIMES))
    return table


def _gaps(gaps: list[dict[str, int]]) -> Table:
    table = Table("from sample", "missing", title="gaps", title_justify="left")
    for gap in gaps[:_EVENTS_MAX]:
        table.add_row(str(gap["first_seq"]), str(gap["count"]))
    _add_rest(table, len(gaps))
    return table


def _events(events: list[dict[str, Any]]) -> Table:
    table = Table("s", "kind", "severity", "source", "event", title="events", title_justify="left")
    shown = [list(group) for _, group in groupby(enumerate(events), _repetition)]
    for (_, event), *others in shown[:_EVENTS_MAX]:
        text = event["text"]
        if others:
            text += f" (and {len(others)} more until {others[-1][1]['t_s']:.3f} s)"
        cells = (event["kind"], event["severity"], event["source"], text)
        table.add_row(f"{event['t_s']:.3f}", *(escape(plain(cell)) for cell in cells))
    _add_rest(table, len(shown))
    return table


def _repetition(numbered: tuple[int, dict[str, Any]]) -> object:
    """Overruns in a row are one row of the table; any other event has its own."""
    number, event = numbered
    return "overrun" if event["kind"] == "overrun" else number


def _add_rest(table: Table, count: int) -> None:
    if count > _EVENTS_MAX:
        table.add_row("…", f"{count - _EVENTS_MAX} more: --json shows all")


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
