"""`python -m tests.benchmarks`: what things cost. Targets are shown, not asserted."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence

from tests.benchmarks import (
    checksum,
    exchange,
    friction_bench,
    identification,
    loop_work,
    recorder_speed,
    recording_size,
    spi_transfer,
    virtual_time,
    wakeup,
)
from tests.benchmarks.measure import Row

BENCHMARKS: dict[str, Callable[[], Iterable[Row]]] = {
    "exchange": exchange.run,
    "checksum": checksum.run,
    "virtual_time": virtual_time.run,
    "friction_bench": friction_bench.run,
    "identification": identification.run,
    "spi_transfer": spi_transfer.run,
    "wakeup": wakeup.run,
    "loop_work": loop_work.run,
    "flooded": loop_work.flooded,
    "recorder_speed": recorder_speed.run,
    "recording_size": recording_size.run,
    "soak": loop_work.soak,
}


def table(rows: Sequence[Row]) -> str:
    words = {True: "pass", False: "MISS", None: ""}
    cells = [("what", "measured", "target", "")]
    cells += [(row.name, row.result, row.target, words[row.is_met]) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        epilog="There are "
        + ", ".join(BENCHMARKS)
        + ". All of them take 20 minutes, soak alone ten minutes.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, in this order")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    load = os.getloadavg()[0]
    rows: list[Row] = []
    exit_code = 0
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows.extend(BENCHMARKS[name]())
        except Exception as error:
            # The others' figures, for which somebody waited, are not lost with it.
            rows.append(Row(name, f"broken: {type(error).__name__}: {error}"))
            exit_code = 1
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    if arguments.json:
        report = {"machine": machine, "load": load, "rows": [row.as_dict() for row in rows]}
        print(json.dumps(report))
    else:
        print(
            f"{machine}, load {load:.2f} at the start; exchange, checksum and identification: "
            "minimum of repeats, contenders in turns; virtual time: mean; the rest: medians\n"
        )
        print(table(rows))
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
