"""`armature demo`: does everything once on the mock robot, from boards to a judged model.

Every step is a command that could have been typed; it is shown before it runs. What comes out is
compared with the mock's truth, which no step before the last ones knows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from daq.errors import ConfigError
from daq.system.signals import SAFE_STOPS, handled
from tools.demo.checks import Check, checks_of
from tools.running.processes import Process
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_verb,
    print_json,
    say,
    seed_problems,
)
from tools.shared.progress import progress_steps

_TRIES = 3
"""Of a step that a pause of the computer has ended: boards stop when nobody talks to them."""
_MEASURED_AGAIN = ("run", "validation_run", "identification")
"""Steps whose results suffer from late samples."""
_BUSY = 500
"""From this many skipped periods on, a result may be off for that reason alone."""
JOINT = "joint3"
"""The joint whose friction is measured."""
_ENDING_S = 20.0
"""What a step may take to switch its motors off and end, once it is asked to."""


class Step(NamedTuple):
    """One command.

    Attributes:
        name: What it is called in the result.
        purpose: For people.
        words: The verb and its options.
        writes: Files that it makes, and would not write over.
    """

    name: str
    purpose: str
    words: tuple[str, ...]
    writes: tuple[str, ...] = ()


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "demo",
        handler=_demo,
        summary=summary,
        example="  armature demo --fast --seed 1 --out demo",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="in virtual time, in less than a minute; otherwise the robot runs in real time",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="which mock robot, and what is random (default 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("armature-demo"),
        metavar="DIR",
        help="where everything goes (default armature-demo)",
    )
    add_json_option(parser)


def _demo(arguments: argparse.Namespace) -> int:
    directory: Path = arguments.out
    if problems := seed_problems(arguments.seed):
        raise ConfigError("armature demo", problems)
    if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError("--out", [f"{directory}: is there already; remove it or name another"])
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{directory}: cannot be made ({error.strerror}); name another directory"
        raise ConfigError("--out", [problem]) from error
    demo = _Demo(_steps(directory, seed=arguments.seed, is_fast=arguments.fast))
    started_s = time.perf_counter()
    is_ok = demo.measure(demo.steps)
    if not is_ok and demo.is_spoilt:
        say(f"armature: {demo.skipped} periods were skipped, this computer was busy: once more")
        shutil.rmtree(directory / "identified", ignore_errors=True)
        is_ok = demo.measure([step for step in demo.steps if step.name in _MEASURED_AGAIN])
    elapsed_s = time.perf_counter() - started_s
    if arguments.json:
        print_json(
            {
                "ok": is_ok,
                "seed": arguments.seed,
                "is_fast": arguments.fast,
                "seconds": elapsed_s,
                "steps": demo.done,
                "checks": [check.as_dict() for check in demo.checks],
                "directory": str(directory),
                "report": str(directory / "identified" / "report.html"),
            }
        )
    elif demo.checks:
        _show(demo.checks, directory, elapsed_s)
    if not is_ok and demo.is_spoilt:
        skipped = demo.skipped
        say(f"armature: this computer was busy elsewhere ({skipped} periods skipped): try --fast")
    return OK if is_ok else FAILED


class _Demo:
    """The commands, and what has come of them.

    Attributes:
        steps: All of them, in order.
        done: What was run and how it ended, with what was repeated.
        checks: Of the results, if there are all.
    """

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.done: list[dict[str, object]] = []
        self.checks: list[Check] = []
        self._facts: dict[str, Any] = {}

    def measure(self, wanted: list[Step]) -> bool:
        """Run commands, and judge all results; return whether everything is as it should be."""
        self.checks = checks_of(self._facts) if self._run(wanted) else []
        return bool(self.checks) and all(check.is_ok for check in self.checks)

    def _run(self, wanted: list[Step]) -> bool:
        for step in wanted:
            number = self.steps.index(step) + 1
            say(f"{number}/{len(self.steps)} {step.purpose}\n    armature {' '.join(step.words)}")
            _remove(step.writes)
            seconds, exit_code, self._facts[step.name] = _run_patiently(step)
            self.done.append({"name": step.name, "seconds": seconds, "exit_code": exit_code})
            if exit_code != OK:
                say(f"armature: step {number} ended with exit code {exit_code}")
                return False
        return True

    @property
    def is_spoilt(self) -> bool:
        """Whether late samples may be why a result is off, or why there is none at all."""
        return self.done[-1]["name"] == _MEASURED_AGAIN[-1] and self.skipped > _BUSY

    @property
    def skipped(self) -> int:
        """How many periods the runs have skipped."""
        runs = ("run", "validation_run")
        return sum(self._facts.get(name, {}).get("skipped", 0) for name in runs)


def _remove(written: tuple[str, ...]) -> None:
    for path in written:
        Path(path).unlink(missing_ok=True)


def _run_patiently(step: Step) -> tuple[float, int, dict[str, Any]]:
    """Run a command; again if the computer's own pauses have ended it."""
    for tries_left in reversed(range(_TRIES)):
        with handled(SAFE_STOPS, signal.default_int_handler):
            seconds, exit_code, facts = _run(step)
        is_of_computer = facts.get("pause_ms") or facts.get("trip_code") == "skipped-periods"
        if exit_code == OK or not is_of_computer or not tries_left:
            break
        say(f"    this computer paused for {facts['pause_ms']} ms: the step is repeated")
        _remove(step.writes)
    return seconds, exit_code, facts


def _steps(directory: Path, *, seed: int, is_fast: bool) -> list[Step]:
    """Return the commands, in order."""
    robot, mock = ("--robot", "laas4"), ("--link", "mock")
    draw = ("--seed", str(seed))
    pace = ("--fast",) if is_fast else ()
    path = {name: str(directory / name) for name in _FILES}

    def play(trajectory: str, recording: str) -> tuple[str, ...]:
        words = ("run", *robot, *mock, *pace, *draw, "--play", path[trajectory])
        return (*words, "--record", path[recording])

    bench = ("bench", "friction", *robot, "--joint", JOINT, *mock, "--fast", *draw)
    excite = ("excite", *robot, *draw, "--evaluations", "1500")
    return [
        Step("boards", "Are the boards there, and could the robot run?", ("doctor", *robot, *mock)),
        Step(
            "friction",
            f"Friction of {JOINT}, alone on the bench (virtual time)",
            (*bench, "--speeds", "5", "--out", path["bench"]),
        ),
        Step(
            "excitation",
            "A trajectory that determines the parameters well, inside all limits",
            (*excite, "--out", path["excitation.h5"]),
        ),
        Step(
            "validation_excitation",
            "Another one, to validate with",
            ("excite", *robot, *draw, "--validation", "--out", path["validation_excitation.h5"]),
        ),
        Step(
            "run",
            "The robot finds its zero and follows the trajectory at 1 kHz; all is recorded",
            play("excitation.h5", "identification.h5"),
            (path["identification.h5"],),
        ),
        Step(
            "validation_run",
            "And the other one",
            play("validation_excitation.h5", "validation.h5"),
            (path["validation.h5"],),
        ),
        Step(
            "identification",
            "Dynamic parameters, judged by the recording that no estimator has seen",
            (
                "identify",
                path["identification.h5"],
                "--validate",
                path["validation.h5"],
                "--out",
                path["identified"],
            ),
        ),
    ]


_FILES = (
    "bench",
    "excitation.h5",
    "validation_excitation.h5",
    "identification.h5",
    "validation.h5",
    "identified",
)


def _run(step: Step) -> tuple[float, int, dict[str, Any]]:
    """Run a command; returns how long it took, its exit code and what it said."""
    started_s = time.perf_counter()
    process = Process((*step.words, "--json"), os.environ, keeps_errors=True)
    try:
        with progress_steps(step.name):
            out = process.output()
    except KeyboardInterrupt:
        # Motors may be on: wait until they are off.
        process.end(signal.SIGINT)
        process.output(_ENDING_S)
        raise
    finally:
        process.kill()
    seconds, exit_code = time.perf_counter() - started_s, process.exit_code or OK
    if exit_code != OK:
        say(process.errors.rstrip("\n"))
    facts: dict[str, Any] = msgspec.json.decode(out) if out.strip() else {}
    say(f"    done in {seconds:.1f} s")
    return seconds, exit_code, facts


def _show(checks: list[Check], directory: Path, elapsed_s: float) -> None:
    from rich.table import Table

    from tools.shared.cli import make_console

    table = Table(title="What came out, compared with the mock's truth")
    for heading in ("what", "found", "expected", ""):
        table.add_column(heading)
    for check in checks:
        table.add_row(check.what, check.found, check.expected, "✓" if check.is_ok else "✗")
    console = make_console()
    console.print(table)
    console.print(f"{elapsed_s:.0f} s in all; look at {directory / 'identified' / 'report.html'}")
