"""A loop in real time, in this process, on devices."""

from __future__ import annotations

from daq.errors import ConfigError
from daq.links.address import LinkKind
from daq.loop.process.daemon import Daemon, Options, Result
from daq.recorder.faults.command import saver_command
from daq.robot.load import load_robot
from daq.stream.keys import load_keys
from daq.system.runtime_directory import runtime_directory
from firmware_protocol.profiles import PROFILES
from tools.running.agenda import agenda_problem, make_agenda, read_play_file
from tools.running.boards import make_run_session, may_be_emulated, open_boards
from tools.running.options import RunOptions, check_duration
from tools.running.robot_as_run import (
    warn_of_timeout,
    with_command_timeout,
    without_deadline_budget,
)
from tools.shared.cli import say


def run_loop(options: RunOptions, *, events_to: int | None = None) -> tuple[Result, str]:
    """Run the loop and return how it went, and why its agenda could not be followed (or nothing).

    Motors may be enabled without leave, and deadlines missed, only where every opened device has
    proved to be emulated (`tools.running.boards`): what the environment announces is not enough for
    that. Events go to the pipe `events_to`, in place of a log on stderr.

    Raises:
        ConfigError: Options contradict each other, or motors would move without leave.
        NotEmulatedError: Emulated devices are announced, and one is not.
    """
    address = options.address
    robot = load_robot(options.robot, profiles=PROFILES).driven()
    robot = with_command_timeout(robot, options.command_timeout_ms)
    if not may_be_emulated(address):
        _refuse_to_move(options)
    others = [address for address in options.bind if not address.startswith("tcp://")]
    if others:
        raise ConfigError("--bind", [f"{address}: expected tcp://HOST:PORT" for address in others])
    check_duration(options.duration_s)
    trajectory = read_play_file(options.play, robot)
    runtime = runtime_directory(options.runtime, is_made=True)
    keys = None if options.keys is None else load_keys(options.keys)
    with open_boards(robot, address, profile=options.profile) as opened:
        is_mock = opened.mark is not None
        if not is_mock:
            _refuse_to_move(options)
            warn_of_timeout(robot)
        if is_mock or (options.bench is not None and address.kind is LinkKind.SERIAL):
            # A serial port takes what time it takes; the test goes on at whatever rate that is.
            robot = without_deadline_budget(robot)
        link = f"mock+{options.link}{opened.mark}" if is_mock else options.link
        session = make_run_session(options, opened, link=link, is_virtual=False)
        daemon = Daemon(
            robot,
            opened.boards,
            session,
            Options(
                runtime=runtime,
                bind=options.bind,
                keys=keys,
                plotjuggler_port=options.plotjuggler_port,
                recording=options.recording,
                duration_s=options.duration_s,
                ends_on_fault=options.ends_on_fault,
                profile=options.profile,
                is_armed=options.is_armed or is_mock,
                is_mock=is_mock,
                events_to=events_to,
                fault_saver=saver_command(runtime, session.session, options.faults),
            ),
        )
        say(f"armature: loop {session.session} of robot {robot.name} in {runtime.path}")
        agenda = make_agenda(daemon.loop, robot, options, trajectory)
        if agenda is None:
            return daemon.run(), ""
        ends_when_done = options.ends_when_done
        result = daemon.run(agenda=agenda.step, is_over=lambda: ends_when_done and agenda.is_over)
        return result, agenda_problem(agenda, result)


def _refuse_to_move(options: RunOptions) -> None:
    """Refuse to move real motors without --arm."""
    if options.moves and not options.is_armed:
        raise ConfigError("--arm", ["missing: --enable, --home and --play move real motors"])
