"""A run in virtual time: loop, mock and recorder in one process, in lockstep.

All clocks and timings are virtual, so that two runs with one seed give the same recording, byte for
byte in its datasets.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from daq.bench.run import BenchRun
from daq.links.address import LinkAddress, LinkKind
from daq.loop.process.daemon import Result
from daq.loop.process.event_log import Digest
from daq.loop.runner import Runner
from daq.loop.setup import PERIOD_NS, make_loop, make_session
from daq.recorder.conversion import InlineConverter
from daq.recorder.recorder import Recorder
from daq.recorder.spools import Spools
from daq.robot.load import robot_text
from daq.samples.batches import Event, encode_session
from hw_mocks.faults.script import FaultKind
from tools.running.boards import open_boards
from tools.running.mock_options import make_mock, mark_of
from tools.shared.cli import say
from tools.shared.progress import progress_bar
from tools.verbs.loop import (
    agenda_problem,
    exit_code,
    has_end,
    is_ending_when_done,
    make_agenda,
    read_play_file,
    result_json,
    with_command_timeout,
)
from tools.version import __version__, commit


def run_fast(
    arguments: argparse.Namespace, tell: Callable[[str], None] = say
) -> tuple[dict[str, object], int]:
    """Run on the mock in virtual time.

    Args:
        arguments: The options of `armature run`.
        tell: Gets what the loop says, line by line.

    Returns:
        What to print, and the exit code.
    """
    mock, script = make_mock(
        arguments,
        impossible=[FaultKind.UNPLUG],
        robot_as_run=lambda robot: with_command_timeout(robot, arguments.command_timeout_ms),
        load_arm=arguments.load_arm,
    )
    robot = mock.robot
    trajectory = read_play_file(arguments.play, robot)
    address = LinkAddress(LinkKind.MOCK)
    target: Path | None = arguments.record
    converter = InlineConverter()
    with open_boards(robot, address, profile=arguments.profile, mock=mock, script=script) as opened:
        session = make_session(
            robot_text(arguments.robot),
            arguments.robot,
            opened.boards,
            link=arguments.link + mark_of(mock.truth),
            version=__version__,
            commit=commit(),
            start_t_ns=opened.now_ns(),
            start_utc_ns=opened.utc_ns(),
            is_virtual=True,
        )
        recorder = None
        if target is not None:
            recorder = Recorder(
                target.absolute().parent,
                spools=Spools(None),
                converter=converter,
                file_name=target.name,
                sync_after_s=None,
                silence_s=None,
                now_s=lambda: opened.now_ns() * 1e-9,
            )
            recorder.handle_session(encode_session(session))
        loop = make_loop(
            robot,
            opened.boards,
            session,
            [recorder.handle] if recorder else [],
            now_ns=opened.now_ns,
            utc_ns=opened.utc_ns,
            listener=_Teller(tell),
            profile=arguments.profile,
        )
        if recorder:
            loop.cycle.output.start_recording(target.stem if target else "")
        agenda = make_agenda(loop, robot, arguments, trajectory)
        ends_when_done = is_ending_when_done(arguments)
        loop.cycle.chores[4] = loop.handler.step
        if agenda is not None:
            loop.cycle.chores[5] = agenda.step
        with progress_bar("running") as advance:

            def show_progress() -> None:
                if isinstance(agenda, BenchRun):
                    advance(agenda.done, agenda.total)
                else:
                    advance(opened.now_ns() * 1e-9, arguments.duration)

            loop.cycle.chores[10] = show_progress
            runner = Runner(
                loop.cycle,
                opened,
                period_ns=PERIOD_NS,
                duration_ns=None if arguments.duration is None else round(arguments.duration * 1e9),
                ends_on_fault=True,
                is_over=lambda: ends_when_done and agenda is not None and agenda.is_over,
            )
            with _ending_by_signal(runner):
                runner.run()
        if recorder:
            recorder.finish()
    result = Result(loop.status(), runner.elapsed_ns * 1e-9)
    summary = result_json(result)
    problem = agenda_problem(agenda, result) if agenda else ""
    if target is not None:
        made = next((made for made in converter.results if made.file), None)
        if made is None:
            return summary, exit_code(result, problem or f"{target} could not be recorded")
        summary |= {"file": made.file, "samples": made.samples, "missing": made.missing}
    return summary, exit_code(result, problem, has_end=has_end(arguments))


@contextmanager
def _ending_by_signal(runner: Runner) -> Iterator[None]:
    """Ctrl-C ends the run as in real time: with a safe stop and a complete recording."""

    def end(number: int, _frame: object) -> None:
        runner.end(signal.Signals(number).name)

    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Teller:
    """Turns events into lines for somebody."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._digest = Digest(has_priorities=False)

    def __call__(self, events: tuple[Event, ...]) -> None:
        for event in events:
            for line in self._digest.add(event, event.t_ns * 1e-9):
                self._tell(line)
