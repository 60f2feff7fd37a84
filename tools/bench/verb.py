"""`armature bench`: the friction bench, one joint at a time; and how well boards are reached."""

from __future__ import annotations

from tools.bench import analyse as bench_analyse
from tools.bench import communication as bench_communication
from tools.bench import friction as bench_friction
from tools.bench import table as bench_table
from tools.shared.cli import Verbs, add_verb

_EXAMPLE = """\
  armature bench friction --robot laas4 --joint joint3 --link mock --fast --out bench
  armature bench analyse bench/joint3.h5
  armature bench table bench
  armature bench communication --robot laas4 --link mock --duration 2"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "bench", handler=None, summary=summary, example=_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    bench_friction.add_to(actions)
    bench_analyse.add_to(actions)
    bench_table.add_to(actions)
    bench_communication.add_to(actions)
