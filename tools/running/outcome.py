"""The summary and the exit code of a run that is over."""

from __future__ import annotations

from daq.loop.process.daemon import Result
from daq.loop.runner import Ending
from tools.shared.cli import BOARD_FAULT, FAILED, INTERRUPTED, OK, say


def result_json(result: Result) -> dict[str, object]:
    """Return what `--json` prints of a run."""
    status = result.status
    return {
        "robot": status.robot,
        "session": status.session,
        "state": status.state,
        "reason": status.reason,
        "trip_code": status.trip_code,
        "pause_ms": status.pause_ms,
        "ending": result.ending.name.lower().replace("_", "-"),
        "is_virtual": status.is_virtual,
        "elapsed_s": result.elapsed_s,
        "cycles": status.cycles,
        "skipped": status.skipped,
        "lost": status.lost,
        "corrupt": status.corrupt,
        "wake_us": status.wake_us,
        "work_us": status.work_us,
        "boards": status.boards,
        "privileges": status.privileges,
    }


def exit_code(result: Result, problem: str, *, has_end: bool = False) -> int:
    """Return how the command ends; say why when it is not a success.

    `problem` is why its agenda could not be followed, `has_end` whether it should have lasted
    longer when somebody interrupted it.
    """
    status = result.status
    if status.state == "fault":
        say(f"armature: stopped: {status.reason}")
        return BOARD_FAULT if status.is_fault_of_board else FAILED
    if problem:
        say(f"armature: {problem}")
        return FAILED
    return INTERRUPTED if has_end and result.ending is Ending.INTERRUPTED else OK
