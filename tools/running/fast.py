"""A run in virtual time: loop, mock and recorder in one process, in lockstep.

All clocks and timings are virtual, so that two runs with one seed give the same recording, byte for
byte in its datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daq.bench.run import BenchRun
from daq.control.torque_model import load_torque_model
from daq.links.address import LinkAddress, LinkKind
from daq.loop.process.daemon import Result
from daq.loop.runner import Runner
from daq.loop.schedule import Chore
from daq.loop.setup import PERIOD_NS, make_loop
from daq.recorder.converters import InlineConverter
from daq.recorder.recorder import Recorder
from daq.recorder.spools import Spools
from daq.samples.batches import Event, encode_session
from daq.system.signals import SAFE_STOPS, handled
from hw_mocks.faults.script import FaultKind
from tools.running.agenda import agenda_problem, make_agenda, read_play_file
from tools.running.boards import make_run_session, open_boards
from tools.running.events import Listener, Teller
from tools.running.mock_options import make_mock
from tools.running.options import MockOptions, RunOptions
from tools.running.outcome import exit_code, result_json
from tools.running.robot_as_run import with_command_timeout
from tools.shared.progress import progress_bar


def run_fast(
    options: RunOptions,
    mock_options: MockOptions,
    target: Path | None,
    listener: Listener | None = None,
) -> tuple[dict[str, object], int]:
    """Run on the mock in virtual time and return what to print, and the exit code.

    Everything is recorded in `target`, if there is one. The loop's events go to `listener`, by
    default to stderr as lines.
    """
    mock, script = make_mock(
        mock_options,
        impossible=[FaultKind.UNPLUG],
        robot_as_run=lambda robot: with_command_timeout(robot, options.command_timeout_ms),
    )
    robot = mock.robot
    trajectory = read_play_file(options.play, robot)
    address = LinkAddress(LinkKind.MOCK)
    converter = InlineConverter()
    with open_boards(robot, address, profile=options.profile, mock=mock, script=script) as opened:
        link = f"{options.link}{opened.mark}"
        session = make_run_session(options, opened, link=link, is_virtual=True)
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
            listener=_one_by_one(listener or Teller()),
            profile=options.profile,
            is_mock=True,
            model=load_torque_model(robot),
        )
        if recorder:
            loop.cycle.output.start_recording(target.stem if target else "")
        agenda = make_agenda(loop, robot, options, trajectory)
        if agenda is not None:
            loop.cycle.schedule[Chore.AGENDA] = agenda.step
        with progress_bar("running") as advance:

            def show_progress() -> None:
                if isinstance(agenda, BenchRun):
                    advance(agenda.done, agenda.total)
                else:
                    advance(opened.now_ns() * 1e-9, options.duration_s)

            loop.cycle.schedule[Chore.HOUSEKEEPING] = show_progress
            runner = Runner(
                loop.cycle,
                opened,
                period_ns=PERIOD_NS,
                duration_ns=None if options.duration_s is None else round(options.duration_s * 1e9),
                ends_on_fault=True,
                is_over=lambda: options.ends_when_done and agenda is not None and agenda.is_over,
            )
            # Ctrl-C ends it as in real time: with a safe stop and a complete recording.
            with handled(SAFE_STOPS, lambda number, _: runner.end(number)):
                ending = runner.run()
        if recorder:
            recorder.finish()
    result = Result(loop.status(), runner.elapsed_ns * 1e-9, ending)
    summary = result_json(result)
    problem = agenda_problem(agenda, result)
    if target is not None:
        made = next((made for made in converter.results if made.file), None)
        if made is None:
            return summary, exit_code(result, problem or f"{target} could not be recorded")
        summary |= {"file": made.file, "samples": made.samples, "missing": made.missing}
    return summary, exit_code(result, problem, has_end=options.has_end)


def _one_by_one(listener: Listener) -> Callable[[tuple[Event, ...]], None]:
    def listen(events: tuple[Event, ...]) -> None:
        for event in events:
            listener(event)

    return listen
