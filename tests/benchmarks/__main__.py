"""`python -m tests.benchmarks`: what the wire costs. Targets are shown, not asserted."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable, Sequence

from tests.benchmarks import checksum, exchange, spi_transfer, virtual_time
from tests.benchmarks.measure import Row

BENCHMARKS: tuple[Callable[[], Iterable[Row]], ...] = (
    exchange.run,
    checksum.run,
    virtual_time.run,
    spi_transfer.run,
)


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
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    rows = [row for run in BENCHMARKS for row in run()]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    if arguments.json:
        print(json.dumps({"machine": machine, "rows": [row.as_dict() for row in rows]}))
    else:
        print(
            f"{machine}; minimum of many short repeats, contenders in turns; "
            "virtual time: mean; SPI: median\n"
        )
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
