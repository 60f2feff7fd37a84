"""The `armature` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tools import demo, doctor, frames, mock
from tools.cli import run_handler
from tools.version import __version__


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="armature",
        description="Drive robot arms with SPI motor boards, record them, identify them.",
        epilog="example:\n  armature demo --robot laas4",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"armature {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for module in (demo, doctor, frames, mock):
        module.add_to(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    arguments = make_parser().parse_args(argv)
    return run_handler(arguments.handler, arguments)


if __name__ == "__main__":
    sys.exit(main())
