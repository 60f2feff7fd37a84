"""`armature status`: what the loop is doing, as a table or for programs."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from daq.errors import ConfigError
from daq.stream.command_client import CommandClient
from daq.stream.errors import CommandTimeoutError
from daq.stream.messages import LeaseHolder, LoopStatus, Quantiles
from tools.shared.cli import OK, Verbs, add_json_option, add_verb, make_console, print_json
from tools.shared.reach import Reach, add_reach_options, open_client

if TYPE_CHECKING:
    from rich.console import RenderableType

_DEFAULT_HZ = 2.0
_STATE_STYLES = {"active": "bold green", "ready": "green", "fault": "bold red"}


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "status",
        handler=show_status,
        summary=summary,
        example="  armature loop --robot laas4 --link mock --duration 12 &\n  sleep 6\n"
        "  armature status",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_rate,
        const=_DEFAULT_HZ,
        metavar="HZ",
        help=f"refresh the table so often (default {_DEFAULT_HZ:g} Hz) until interrupted",
    )
    add_json_option(parser)
    add_reach_options(parser)


def _rate(text: str) -> float:
    rate_hz = float(text)
    if not 0.1 <= rate_hz <= 20.0:
        raise argparse.ArgumentTypeError(f"{text} Hz, expected 0.1 to 20")
    return rate_hz


def show_status(arguments: argparse.Namespace) -> int:
    """Show the status as the options of this verb ask for it."""
    if arguments.watch is not None and (arguments.json or not sys.stdout.isatty()):
        raise ConfigError("--watch", ["needs a terminal; ask repeatedly with --json instead"])
    with open_client(Reach.from_namespace(arguments)) as client:
        status = client.status()
        if arguments.json:
            print_json(status)
        elif arguments.watch is None:
            make_console().print(make_table(status))
        else:
            _watch(client, status, 1.0 / arguments.watch)
    return OK


def _watch(client: CommandClient, status: LoopStatus, period_s: float) -> None:
    from rich.live import Live

    with Live(make_table(status), console=make_console(), auto_refresh=False) as live:
        while True:
            time.sleep(period_s)
            try:
                shown: RenderableType = make_table(client.status())
            except CommandTimeoutError as error:
                shown = str(error)  # it may come back
            live.update(shown, refresh=True)


def make_table(status: LoopStatus) -> RenderableType:
    """Return the status for people."""
    from rich.console import Group

    return Group(_summary(status), _joints(status), _boards(status), *_events(status))


def _summary(status: LoopStatus) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    style = _STATE_STYLES.get(status.state, "yellow")
    rows: list[tuple[str, str | Text]] = [
        ("state", Text.assemble((status.state, style), f"  {status.reason}")),
        ("robot", f"{status.robot} on {status.link}{', virtual time' * status.is_virtual}"),
        ("commanded by", _holder(status.held_by)),
        ("running", f"{status.uptime_s:.1f} s, session {status.session}"),
        (
            "cycles",
            f"{status.cycles}, skipped {status.skipped}, lost {status.lost}, corrupt "
            f"{status.corrupt}, subscribers overrun {status.publish_dropped}",
        ),
        ("wake-up", _quantiles(status.wake_us)),
        ("work", _quantiles(status.work_us)),
        ("recording", status.recording or "off"),
        ("recorder", _recorder(status)),
        *(("could not get", text) for text in status.privileges),
    ]
    for name, value in rows:
        # As text: square brackets in a name or reason are not markup.
        table.add_row(Text(name, style="dim"), value if isinstance(value, Text) else Text(value))
    return table


def _quantiles(times: Quantiles) -> str:
    return (
        f"p50 {times.p50:.1f}  p99 {times.p99:.1f}  p99.9 {times.p999:.1f}  max {times.max:.1f} µs"
    )


def _holder(holder: LeaseHolder | None) -> str:
    if holder is None:
        return "whoever sends a command"
    since = time.strftime("%H:%M:%S UTC", time.gmtime(holder.since_utc_ns // 1_000_000_000))
    return f"{holder.name} since {since}, for {holder.held_s:.0f} s"


def _recorder(status: LoopStatus) -> str:
    report, age_s = status.recorder, status.recorder_age_s
    if report is None or age_s is None:
        return "never heard of"
    parts = [report.state, f"heard of {age_s:.1f} s ago"]
    if report.file and report.written:
        parts.append(f"{report.written} samples in {report.file}, missing {report.missing}")
    elif report.file:
        parts.append(f"the last file was {report.file}")
    if report.fault_file:
        parts.append(f"the last fault is in {report.fault_file}")
    if report.pending:
        parts.append(f"{report.pending} to be finished")
    if report.problem:
        parts.append(report.problem)
    return "; ".join(parts)


def _joints(status: LoopStatus) -> RenderableType:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table("joint", "mode", "homed", box=SIMPLE)
    for title in ("position\nrad", "velocity\nrad/s", "torque\nN·m", "iq\nA", "winding\n°C"):
        table.add_column(title, justify="right")
    for joint in status.joints:
        values = (
            (joint.position_rad, ".4f"),
            (joint.velocity_rad_s, ".3f"),
            (joint.torque_nm, ".3f"),
            (joint.iq_a, ".3f"),
            (joint.winding_temperature_degc, ".1f"),
        )
        texts = ("–" if value is None else format(value, spec) for value, spec in values)
        homed = "yes" if joint.is_homed else "no"
        table.add_row(Text(joint.name), joint.mode, homed, *texts)
    return table


def _boards(status: LoopStatus) -> RenderableType:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    titles = ("board", "device", "profile", "bus\nV", "last\nreply", "fault", "counted")
    table = Table(*titles, box=SIMPLE)
    for board in status.boards:
        bus = "–" if board.bus_voltage_v is None else f"{board.bus_voltage_v:.1f}"
        counters = {name: count for name, count in board.counters.items() if count}
        counters.pop("exchanges", None)  # the sum of the others
        counted = ", ".join(f"{name} {count}" for name, count in counters.items())
        cells = (board.name, board.device, board.profile, bus, board.outcome, board.fault, counted)
        table.add_row(*map(Text, cells))
    return table


def _events(status: LoopStatus) -> list[RenderableType]:
    from rich.text import Text

    return [Text(event, style="dim") for event in status.events]
