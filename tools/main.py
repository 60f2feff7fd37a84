"""The `armature` command: its verbs, and the command line.

A verb's module is imported only when that verb is used, so that printing a table does not wait for
the simulation.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from tools.shared.cli import open_streams, run_guarded
from tools.version import __version__

VERBS = {
    "bench": "measure the friction of one joint on the bench, or how well boards are reached",
    "demo": "do everything once on the mock robot, and compare with its truth",
    "doctor": "check whether a robot could run here, and say how to fix what is wrong",
    "excite": "find a trajectory that identifies an arm well, inside all of its limits",
    "frames": "decode, encode and document the boards' frames",
    "import": "make a recording of measurements from CSV, NPY, NPZ, MAT or HDF5 files",
    "identify": "find an arm's dynamic parameters in recordings, and judge them",
    "install-service": "make the loop and the recorder services of this computer",
    "keys": "make and allow the keys for commands over a network",
    "loop": "run the 1 kHz loop of a robot",
    "mock": "run programs against mock boards",
    "record": "record what a loop publishes, or show what is in a recording",
    "recover": "turn what a crash left behind into recordings",
    "robot": "show robot files, and make them from URDFs",
    "run": "run loop and recorder together, for a while or until Ctrl-C",
    "send": "send a command to a running loop",
    "status": "show how a running loop is doing",
}
"""A verb is a module of `tools.verbs`, with _ for -; its `add_to` adds the options."""
_ROOMS = {verb: f"tools.{verb}.verb" for verb in ("bench", "demo", "identify", "mock")}
"""Verbs of several files."""
_MODULES = {**_ROOMS, "import": "tools.verbs.import_"}  # Python has the word `import` already


def make_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Return the command line with the options of one verb; the others are only listed."""
    parser = argparse.ArgumentParser(
        prog="armature",
        description="Drive robot arms with SPI motor boards, record them, identify them.",
        epilog="example:\n  armature run --robot laas4 --link mock --duration 5 --record run.h5",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"armature {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, summary in VERBS.items():
        if name == verb:
            module = _MODULES.get(name, f"tools.verbs.{name.replace('-', '_')}")
            importlib.import_module(module).add_to(verbs, summary)
        else:
            verbs.add_parser(name, help=summary)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    # Our matrices are small: threads that share them out wait for each other. Beside one other
    # program on two cores that made an identification 15 times slower. Set before numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    return run_guarded(lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    # The options in front of the verb take no values, so the first word is the verb.
    verb = next((word for word in argv if not word.startswith("-")), None)
    arguments = make_parser(verb).parse_args(argv)
    exit_code: int = arguments.handler(arguments)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
