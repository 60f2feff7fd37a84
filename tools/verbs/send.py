"""`armature send`: give a running loop a command.

What can move a motor needs `--arm`, except on a mock.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from daq.recording.states import MODE_NAMES, SETTABLE_MODES, Mode
from daq.stream.command_client import CommandClient
from daq.stream.command_lease import CommandLease
from daq.stream.errors import CommandRefusedError, StreamError
from daq.stream.messages import (
    AnyCommand,
    Disable,
    Enable,
    Home,
    LoopStatus,
    PlayStart,
    PlayStop,
    RecordMark,
    RecordStart,
    RecordStop,
    RenewLease,
    Reset,
    SetGains,
    SetMode,
    Stop,
)
from tools.shared.cli import FAILED, OK, USAGE, Verbs, add_json_option, add_verb, print_json, say
from tools.shared.progress import progress_bar
from tools.shared.reach import Reach, add_reach_options, find_loop, open_client
from tools.shared.waiting import WAITS, wait_until
from tools.verbs.status import show_status

T = TypeVar("T")

_PATIENCE_S = 10.0
"""How long `--wait` waits for a loop that is being started."""
_EXAMPLE = """\
  armature loop --robot laas4 --link mock --duration 20 &
  sleep 6
  armature send enable --wait
  armature send mode hold
  armature send mode velocity --joint joint4 --target 0.2
  armature send disable --wait
  # on a real robot: armature send enable --arm --wait"""
_MAKERS: dict[str, Callable[[argparse.Namespace], AnyCommand]] = {
    "enable": lambda _: Enable(),
    "disable": lambda _: Disable(),
    "stop": lambda _: Stop(),
    "reset": lambda _: Reset(),
    "mode": lambda options: SetMode(
        mode=options.mode,
        joints=_flat(options.joint),
        target=_flat(options.target),
        duration_s=options.duration,
    ),
    "gains": lambda options: SetGains(
        joints=_flat(options.joint),
        kp_a_per_rad=_flat(options.kp),
        kd_a_s_per_rad=_flat(options.kd),
        ki_a_per_rad_s=_flat(options.ki),
    ),
    "home": lambda options: Home(posture_rad=_flat(options.posture)),
    "play": lambda _: PlayStart(),
    "play-stop": lambda _: PlayStop(),
    "record start": lambda options: RecordStart(name=options.name),
    "record stop": lambda _: RecordStop(),
    "record mark": lambda options: RecordMark(text=options.text),
}
_SUMMARIES = {
    "enable": "switch the boards on; their rotors move back and forth to align (1 to 4 s)",
    "disable": "bring every joint to rest, then switch off",
    "stop": "the safe stop, now, from any state",
    "reset": "leave the fault state",
    "mode": "change what joints do",
    "gains": "change gains of the position law, at the motor",
    "home": "find every joint's zero, gently",
    "play": "hand over a trajectory and play it",
    "play-stop": "leave the trajectory smoothly and hold",
    "record start": "begin a recording",
    "record stop": "end the recording",
    "record mark": "put a remark into the recording",
    "status": "the same as `armature status`",
}
_MOVING = ("enable", "mode", "gains", "home", "play")
_FOR_EVERYBODY = ("disable", "stop", "record mark", "status")
"""What needs no lease."""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "send", handler=None, summary=summary, example=_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    parsers = {name: _add(actions, name) for name in _SUMMARIES if " " not in name}
    record = add_verb(
        actions,
        "record",
        handler=None,
        summary="begin, end or annotate a recording",
        example="  armature send record start first_try",
    )
    recordings = record.add_subparsers(metavar="start|stop|mark", required=True)
    parsers |= {name: _add(recordings, name) for name in _SUMMARIES if " " in name}

    parsers["mode"].add_argument("mode", choices=list(SETTABLE_MODES))
    for name in ("mode", "gains"):
        _add_list(parsers[name], "joint", _words, "NAME", "which joints (default: all)")
    _add_list(parsers["mode"], "target", _numbers, "X", "per joint: rad, rad/s, A or N·m")
    parsers["mode"].add_argument(
        "--duration", type=float, default=0.0, metavar="S", help="of a move to a position"
    )
    for gain, unit in (("kp", "A/rad"), ("kd", "A·s/rad"), ("ki", "A/(rad·s)")):
        _add_list(parsers["gains"], gain, _numbers, "X", f"per joint, in {unit}")
    _add_list(parsers["home"], "posture", _numbers, "X", "about where the joints are now, in rad")
    parsers["play"].add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="HDF5, NPZ or CSV: t_s, q_rad, dq_rad_s, maybe tau_nm",
    )
    parsers["record start"].add_argument("name", nargs="?", default="", metavar="NAME")
    parsers["record mark"].add_argument("text", metavar="TEXT")


def _add(actions: Verbs, action: str) -> argparse.ArgumentParser:
    parser = add_verb(
        actions,
        action.removeprefix("record "),
        handler=show_status if action == "status" else _send,
        summary=_SUMMARIES[action],
        example=_EXAMPLE,
    )
    # "-0.1,0.2" and "-1e-3" are numbers, not options.
    parser._negative_number_matcher = re.compile(r"-\.?[0-9]")  # noqa: SLF001
    parser.set_defaults(action=action, arm=False, wait=False, take=False, duration=0.0, watch=None)
    if action in _MOVING:
        parser.add_argument(
            "--arm", action="store_true", help="yes, move the motors of a real robot"
        )
    if action not in _FOR_EVERYBODY:
        parser.add_argument(
            "--take",
            action="store_true",
            help="take over from whoever commands the robot; `armature status` says who",
        )
    if action in WAITS:
        parser.add_argument(
            "--wait", action="store_true", help=f"until {WAITS[action].purpose}, or a fault"
        )
        parser.add_argument(
            "--timeout", type=float, metavar="S", help="how long to wait (default: long enough)"
        )
    add_json_option(parser)
    add_reach_options(parser)
    return parser


def _add_list(
    parser: argparse.ArgumentParser, name: str, kind: Callable[[str], object], sign: str, text: str
) -> None:
    parser.add_argument(f"--{name}", nargs="+", type=kind, default=[], metavar=sign, help=text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[float, ...]:
    values = tuple(float(word) for word in text.split(","))
    if not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"{text}, expected finite numbers")
    return values


def _flat(groups: list[tuple[T, ...]]) -> tuple[T, ...]:
    """Return the values in one tuple; they may be separated by spaces or commas."""
    return tuple(value for group in groups for value in group)


def _send(arguments: argparse.Namespace) -> int:
    action, is_json, reach = arguments.action, arguments.json, Reach.from_namespace(arguments)
    command = _MAKERS[action](arguments)
    patience_s = 0.0
    if arguments.wait:
        if action == "mode" and MODE_NAMES[arguments.mode] is Mode.VELOCITY:
            say("armature: mode velocity goes on until another mode is sent: leave out --wait")
            return USAGE
        # A loop that is being started is waited for, too.
        patience_s = min(_PATIENCE_S, math.inf if arguments.timeout is None else arguments.timeout)
    with open_client(reach, patience_s) as client, contextlib.ExitStack() as stack:
        status: LoopStatus | None = None
        duration_s = arguments.duration
        try:
            if action in _MOVING:
                status = client.status()
                if not _may_move(action, status, reach, is_armed=arguments.arm):
                    return USAGE
            if _keeps_lease(action, is_long=arguments.wait or arguments.take):
                name = f"armature send {action}"
                stack.enter_context(CommandLease(client, name, takes_over=arguments.take))
            if action == "play" and status is not None:
                duration_s = _upload(client, arguments.file, status)
            result = client.ask(command)
        except CommandRefusedError as error:
            _show_refusal(action, error, is_json=is_json)
            return FAILED
        exit_code, ending = OK, "accepted"
        if arguments.wait:
            exit_code, ending = wait_until(
                client, action, before=status, timeout_s=arguments.timeout, duration_s=duration_s
            )
            _say_if_lease_was_lost(client)
    if action == "record start" and not (result or {}).get("has_recorder", True):
        say("armature: warning: no recorder reports: start `armature record` within 60 s")
    if is_json:
        answer = {"action": action, "ok": exit_code == OK, "ending": ending, "result": result}
        print_json(answer)
    elif exit_code == OK:
        print(f"{action}: {ending}")
    if exit_code != OK:
        say(f"armature: {action}: {ending}")
    return exit_code


def _keeps_lease(action: str, *, is_long: bool) -> bool:
    """Whether others are kept away until the command ends; one request alone cannot be disturbed.

    A trajectory is handed over in many.
    """
    return action not in _FOR_EVERYBODY and (is_long or action == "play")


def _show_refusal(action: str, error: CommandRefusedError, *, is_json: bool) -> None:
    say(f"armature: {action} refused ({error.code}): {error.message}")
    if is_json:
        refusal: dict[str, object] = {"code": error.code, "message": error.message}
        if error.held_by is not None:
            refusal["held_by"] = error.held_by
        print_json({"action": action, "ok": False, "error": refusal})


def _say_if_lease_was_lost(client: CommandClient) -> None:
    """Say that somebody else took over, which may be why something was waited for in vain."""
    if client.lease:
        try:
            client.ask(RenewLease())
        except CommandRefusedError as error:
            say(f"armature: {error.message}")
        except StreamError:
            return  # the wait has said that nobody answers


def _may_move(action: str, status: LoopStatus, reach: Reach, *, is_armed: bool) -> bool:
    """Whether a motor may move; on a real robot its limits are shown first."""
    if status.is_mock:
        return True
    say(f"robot {status.robot} on {status.link} is real; its limits:")
    for line in _limits(reach):
        say(f"  {line}")
    if not is_armed:
        say(f"armature: {action} can move its motors: add --arm if that is safe now")
    return is_armed


def _limits(reach: Reach) -> list[str]:
    """Return the joints' limits, from the robot file that the loop uses."""
    from daq.robot import parse_robot
    from daq.stream.subscriber import Subscriber

    where, keys = find_loop(reach)
    try:
        with Subscriber(where, keys=keys) as subscriber:
            session = subscriber.wait_for_session(3.0)
    except StreamError as error:
        return [f"not known: {error}"]
    robot = parse_robot(session.robot_text, session.robot_source)
    return [
        f"{joint.name}: {joint.limits.position_min_rad:g} to {joint.limits.position_max_rad:g} rad,"
        f" {joint.limits.velocity_max_rad_s:g} rad/s, {joint.limits.torque_max_nm:g} N·m,"
        f" {joint.limits.current_max_a:g} A"
        for joint in robot.joints
    ]


def _upload(client: CommandClient, file: Path, status: LoopStatus) -> float:
    """Hand over a trajectory and return how long it takes."""
    from daq.motion.trajectory_file import read_trajectory

    trajectory = read_trajectory(file, [joint.name for joint in status.joints])
    rows = trajectory.rows
    with progress_bar("sending the trajectory") as advance:
        client.send_trajectory(
            rows, trajectory.has_torque, progress=lambda done: advance(done, len(rows))
        )
    return trajectory.duration_s
