"""The steps that a run takes by itself: enable, home, play a trajectory, drive a bench test."""

from __future__ import annotations

from pathlib import Path

from daq.bench.plan import read_plan
from daq.bench.run import BenchRun
from daq.loop.agenda import Agenda
from daq.loop.process.daemon import Result
from daq.loop.runner import Ending
from daq.loop.setup import Loop
from daq.motion.errors import MotionError
from daq.motion.limits import RowChecker
from daq.motion.trajectory_file import Trajectory, read_trajectory
from daq.robot.description import DrivenRobot
from tools.running.options import RunOptions


def read_play_file(path: Path | None, robot: DrivenRobot) -> Trajectory | None:
    """Return the trajectory to play, None for none; checked before anything is opened.

    Raises:
        MotionError: It cannot be read, or not be played within the robot's limits.
    """
    if path is None:
        return None
    trajectory = read_trajectory(path, [joint.name for joint in robot.joints])
    try:
        RowChecker(robot).check(trajectory.rows)
    except MotionError as error:
        raise MotionError(f"{path}: {error}", code=error.code) from error
    return trajectory


def make_agenda(
    loop: Loop, robot: DrivenRobot, options: RunOptions, trajectory: Trajectory | None
) -> Agenda | BenchRun | None:
    """Return what the options ask the loop to do by itself, None for nothing."""
    if options.bench is not None:
        limit_rad = robot.safety.following_error_max_rad
        return BenchRun(loop, read_plan(options.bench), following_error_max_rad=limit_rad)
    if not options.moves:
        return None
    flags = {"--enable": options.enables, "--home": options.homes, "--play": options.play}
    given = ", ".join(option for option, is_given in flags.items() if is_given)
    agenda = Agenda(loop, f"the loop itself ({given})")
    agenda.enable()
    agenda.hold()
    if options.homes or trajectory is not None:
        agenda.home()
    if trajectory is not None:
        agenda.play(trajectory.rows, has_torque=trajectory.has_torque)
    return agenda


def agenda_problem(agenda: Agenda | BenchRun | None, result: Result) -> str:
    """Return why a run has not done what it was asked for; empty if it has."""
    if agenda is None or (agenda.was_stopped and result.ending is Ending.INTERRUPTED):
        return ""  # Ctrl-C speaks for itself
    if agenda.problem or not agenda.unfinished or result.ending is Ending.INTERRUPTED:
        return agenda.problem
    if result.ending is Ending.TIME_IS_OVER:
        return f"the time was over before {agenda.unfinished} was: give a longer --duration"
    return f"{agenda.unfinished} was stopped before its end: {result.status.reason}"
