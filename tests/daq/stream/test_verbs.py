"""`armature send`, `status` and `keys` against a loop that only pretends."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daq.stream.errors import LeaseError, RefusedError
from daq.stream.messages import (
    AnyCommand,
    Disable,
    Enable,
    Home,
    LeaseHolder,
    PlayBegin,
    PlayRows,
    PlayStart,
    PlayStop,
    RecordMark,
    RecordStart,
    RecordStop,
    ReleaseLease,
    Reset,
    SetGains,
    SetMode,
    Status,
    Stop,
    TakeLease,
)
from daq.system.runtime_directory import RuntimeDirectory

OK, FAILED, USAGE, BOARD_FAULT = 0, 1, 2, 3
pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def send(armature: Callable[..., Any], runtime: RuntimeDirectory) -> Callable[..., Any]:
    return lambda *words: armature("send", *words, "--runtime", runtime.path)


def joints(loop: Any, **changes: Any) -> dict[str, Any]:
    return {
        "joints": tuple(msgspec.structs.replace(joint, **changes) for joint in loop.status.joints)
    }


COMMANDS: dict[str, AnyCommand] = {
    "enable": Enable(),
    "disable": Disable(),
    "stop": Stop(),
    "reset": Reset(),
    "mode hold": SetMode(mode="hold"),
    "mode position --joint J1 J2 --target -0.5 -1e-3 --duration 2": SetMode(
        mode="position", joints=("J1", "J2"), target=(-0.5, -0.001), duration_s=2.0
    ),
    "gains --joint J1,J2 --kp 0.1 0.2 --kd 0.01,0.02": SetGains(
        joints=("J1", "J2"), kp_a_per_rad=(0.1, 0.2), kd_a_s_per_rad=(0.01, 0.02)
    ),
    "home": Home(),
    "home --posture -0.1,0.2": Home(posture_rad=(-0.1, 0.2)),
    "play-stop": PlayStop(),
    "record start": RecordStart(),
    "record start first_try": RecordStart(name="first_try"),
    "record stop": RecordStop(),
    "record mark here": RecordMark(text="here"),
}


@pytest.mark.parametrize(("words", "command"), COMMANDS.items(), ids=COMMANDS)
def test_commands(send: Any, loop: Any, words: str, command: AnyCommand) -> None:
    result = send(*words.split())

    (told,) = (said for said in loop.commands if not isinstance(said, Status))
    assert msgspec.structs.replace(told, id=0, expires_ns=0) == command
    assert (result.exit_code, result.err) == (OK, "")
    assert result.out.endswith(": accepted\n")


def test_json(send: Any) -> None:
    assert send("stop", "--json").json == {
        "action": "stop",
        "ok": True,
        "ending": "accepted",
        "result": None,
    }


def test_refusal(send: Any, loop: Any) -> None:
    loop.refusal = RefusedError("not-now", "state is idle: enable first")

    result = send("mode", "hold", "--json")

    assert result.exit_code == FAILED
    assert "(not-now)" in result.err and "state is idle: enable first" in result.err
    assert result.json["error"]["code"] == "not-now"


# --- who commands ---------------------------------------------------------------------------------


def test_held_by_somebody_else(send: Any, loop: Any) -> None:
    held_by = LeaseHolder(name="Ann", since_utc_ns=5, held_s=1.5)
    loop.refusal = LeaseError("held", "held by Ann since 00:00:00 UTC; --take", held_by)

    result = send("mode", "hold", "--json")

    assert result.exit_code == FAILED
    assert "(held): held by Ann since" in result.err and "--take" in result.err
    assert result.json["error"]["held_by"] == {"name": "Ann", "since_utc_ns": 5, "held_s": 1.5}


@pytest.mark.parametrize(
    ("action", "words", "takes_over"),
    [
        ("enable", "--wait", False),
        ("mode", "hold --take", True),
        ("record stop", "--take", True),
    ],
)
def test_what_takes_time_or_is_taken_over_is_leased(
    send: Any, loop: Any, action: str, words: str, takes_over: bool
) -> None:
    loop.will_be({"state": "ready"})

    assert send(*action.split(), *words.split()).exit_code == OK

    taken, command, *_, released = (said for said in loop.commands if type(said) is not Status)
    assert (type(taken), type(released)) == (TakeLease, ReleaseLease)
    assert taken.name.startswith(f"armature send {action} (")
    assert taken.takes_over is takes_over
    assert taken.lease == command.lease == released.lease != ""


@pytest.mark.parametrize("words", ["disable --wait", "stop --wait", "record mark here"])
def test_what_everybody_may_do_takes_no_lease(send: Any, loop: Any, words: str) -> None:
    assert send(*words.split()).exit_code == OK
    assert not loop.told(TakeLease)
    assert send(*words.split(), "--take").exit_code == USAGE


def test_who_lost_the_lease_while_waiting_is_told(send: Any, loop: Any) -> None:
    loop.will_be({}, {"state": "calibrating"}, {"reason": "stop was commanded"})
    loop.lost = LeaseError("lease-lost", "the lease was taken over by Ann", None)

    result = send("enable", "--wait")

    assert result.exit_code == FAILED
    assert "taken over by Ann" in result.err and "stop was commanded" in result.err


def test_status_shows_who_commands(armature: Any, loop: Any, runtime: RuntimeDirectory) -> None:
    assert "whoever sends a command" in armature("status", "--runtime", runtime.path).out
    held_by = LeaseHolder(name="Ann [pid 3]", since_utc_ns=3_723_000_000_000, held_s=7.2)
    loop.will_be({"held_by": held_by})

    table = armature("status", "--runtime", runtime.path)
    answer = armature("status", "--json", "--runtime", runtime.path)

    assert "Ann [pid 3] since 01:02:03 UTC, for 7 s" in table.out
    assert answer.json["held_by"]["name"] == "Ann [pid 3]"


# --- real robots ----------------------------------------------------------------------------------

MOVING = [words for words in COMMANDS if words.split()[0] in ("enable", "mode", "gains", "home")]


@pytest.mark.parametrize("words", MOVING)
def test_real_robot_needs_arm(send: Any, loop: Any, words: str) -> None:
    loop.will_be({"link": "spi", "is_mock": False})

    result = send(*words.split())

    assert result.exit_code == USAGE
    assert all(word in result.err for word in ("--arm", "laas4", "spi"))
    # Every joint's limits are shown.
    assert result.err.count("rad/s, ") == len(loop.status.joints)
    assert not [command for command in loop.commands if not isinstance(command, Status)]


def test_armed(send: Any, loop: Any) -> None:
    loop.will_be({"link": "spi", "is_mock": False})

    result = send("enable", "--arm")

    assert result.exit_code == OK
    assert result.err.count("rad/s, ") == len(loop.status.joints)  # each joint's limits
    assert loop.told(Enable)


def test_limits_are_not_known(send: Any, loop: Any, server: Any) -> None:
    server.is_publishing = False
    loop.will_be({"link": "serial:///dev/ttyUSB0", "is_mock": False})

    result = send("enable")

    assert (result.exit_code, loop.told(Enable)) == (USAGE, [])
    assert "--arm" in result.err and "rad/s" not in result.err


@pytest.mark.parametrize("words", ["stop", "disable", "reset", "play-stop", "record stop"])
def test_what_cannot_move_needs_no_arm(send: Any, loop: Any, words: str) -> None:
    loop.will_be({"link": "spi", "is_mock": False})

    assert send(*words.split()).exit_code == OK


def test_a_mock_needs_no_arm(send: Any, loop: Any) -> None:
    loop.will_be({"is_mock": True})

    assert send("enable").exit_code == OK


def test_the_name_of_a_link_makes_no_mock(send: Any, loop: Any) -> None:
    loop.will_be({"link": "mock", "is_mock": False})

    assert (send("enable").exit_code, loop.told(Enable)) == (USAGE, [])


# --- waiting --------------------------------------------------------------------------------------


def test_wait_for_ready(send: Any, loop: Any) -> None:
    loop.will_be({}, {"state": "calibrating"}, {"state": "calibrating"}, {"state": "ready"})

    result = send("enable", "--wait")

    assert (result.exit_code, result.out) == (OK, "enable: the robot is ready\n")
    assert loop.status.state == "ready"


def test_wait_for_homed(send: Any, loop: Any) -> None:
    busy = {"state": "active", **joints(loop, mode="home")}
    loop.will_be({"state": "ready"}, busy, busy, {**joints(loop, is_homed=True), "state": "ready"})

    assert send("home", "--wait").exit_code == OK


def test_homing_in_vain(send: Any, loop: Any) -> None:
    busy = {"state": "active", **joints(loop, mode="home")}
    loop.will_be({"state": "ready"}, busy, {"state": "ready", "reason": "no index found"})

    result = send("home", "--wait")

    assert result.exit_code == FAILED
    assert "no index found" in result.err


@pytest.mark.parametrize("action", ["disable", "stop"])
def test_wait_for_idle(send: Any, loop: Any, action: str) -> None:
    loop.will_be({"state": "active"}, {"state": "stopping"}, {"state": "idle"})

    assert send(action, "--wait").exit_code == OK


@pytest.mark.parametrize(("is_of_board", "exit_code"), [(True, BOARD_FAULT), (False, FAILED)])
def test_fault_while_waiting(send: Any, loop: Any, is_of_board: bool, exit_code: int) -> None:
    fault = {"state": "fault", "reason": "board lower: crc", "is_fault_of_board": is_of_board}
    loop.will_be({}, {"state": "calibrating"}, {"state": "stopping"}, fault)

    result = send("enable", "--wait", "--json")

    assert result.exit_code == exit_code
    assert "board lower: crc" in result.err
    assert result.json["ok"] is False


def test_wait_outlasts_a_silence(send: Any, loop: Any) -> None:
    """Who watches a motion does not leave because the answer to one question got lost."""
    loop.will_be({}, {"state": "calibrating"}, {"state": "ready"})
    loop.later[2:2] = [RefusedError("not-now", "the loop does not answer")] * 3

    assert send("enable", "--wait").exit_code == OK


def test_silence_that_lasts(send: Any, loop: Any) -> None:
    loop.will_be({})
    loop.later += [RefusedError("not-now", "the loop does not answer")] * 1000

    result = send("enable", "--wait", "--timeout", "0.5")

    assert result.exit_code == FAILED
    assert "the loop does not answer" in result.err


def test_wait_is_over(send: Any, loop: Any) -> None:
    loop.will_be({}, {"state": "calibrating"})

    result = send("enable", "--wait", "--timeout", "0.2")

    assert result.exit_code == FAILED
    assert "0.2 s" in result.err and "calibrating" in result.err


# --- trajectories ---------------------------------------------------------------------------------


@pytest.fixture
def trajectory(tmp_path: Path, loop: Any) -> Path:
    import numpy as np

    from daq.motion.trajectory_file import write_trajectory

    t_s = np.arange(1001) * 1e-3
    phase = 2.0 * np.pi * t_s[:, np.newaxis] * np.ones(len(loop.status.joints))
    path = tmp_path / "sine.h5"
    write_trajectory(
        path,
        t_s=t_s,
        q_rad=0.1 * np.sin(phase),
        dq_rad_s=0.2 * np.pi * np.cos(phase),
        joint_names=[joint.name for joint in loop.status.joints],
    )
    return path


def test_play(send: Any, loop: Any, trajectory: Path) -> None:
    busy = {"state": "active", **joints(loop, mode="play")}
    over = {"state": "active", "trajectories": 1, **joints(loop, mode="hold")}
    loop.will_be({"state": "ready"}, busy, over)

    result = send("play", trajectory, "--wait")

    assert (result.exit_code, result.err) == (OK, "")
    kinds = [type(command) for command in loop.commands]
    assert kinds.index(PlayBegin) < kinds.index(PlayRows) < kinds.index(PlayStart)
    assert sum(map(len, loop.payloads)) == 1001 * 8 * 2 * len(loop.status.joints)


def test_play_that_somebody_ends_early(send: Any, loop: Any, trajectory: Path) -> None:
    busy = {"state": "active", **joints(loop, mode="play")}
    loop.will_be({"state": "ready"}, busy, {"state": "active", **joints(loop, mode="hold")})

    result = send("play", trajectory, "--wait", "--json")

    assert result.exit_code == FAILED
    assert result.json["ok"] is False
    assert result.err.startswith("armature: play")


def test_wait_for_a_move(send: Any, loop: Any) -> None:
    moving = {"state": "active", "is_at_rest": False}
    loop.will_be({"state": "ready"}, moving, moving, {"state": "active", "is_at_rest": True})

    result = send("mode", "position", "--target", "0.1", "--wait")

    assert (result.exit_code, result.out) == (OK, "mode: the joints are at rest\n")


def test_no_wait_for_what_has_no_end(send: Any, loop: Any) -> None:
    result = send("mode", "velocity", "--target", "0.1", "--wait")

    assert result.exit_code == USAGE
    assert "--wait" in result.err
    assert loop.commands == []


@pytest.mark.parametrize("has_recorder", [True, False])
def test_record_start_without_a_recorder(send: Any, loop: Any, has_recorder: bool) -> None:
    loop.result = {"has_recorder": has_recorder}

    result = send("record", "start")

    assert result.exit_code == OK
    assert bool(result.err) is not has_recorder


def test_play_nothing(send: Any, loop: Any, tmp_path: Path) -> None:
    result = send("play", tmp_path / "none.h5")

    assert result.exit_code == FAILED
    assert "none.h5" in result.err
    assert not loop.told(PlayBegin, PlayStart)


def test_stopped_by_somebody_else(send: Any, loop: Any, trajectory: Path) -> None:
    busy = {"state": "active", **joints(loop, mode="play")}
    stopped = {"reason": "stop commanded"}
    loop.will_be({"state": "ready"}, busy, {"state": "stopping"}, {"state": "idle", **stopped})

    result = send("play", trajectory, "--wait")

    assert result.exit_code == FAILED
    assert "idle" in result.err and "stop commanded" in result.err


# --- status ---------------------------------------------------------------------------------------


def test_status_table(armature: Any, runtime: RuntimeDirectory) -> None:
    result = armature("status", "--runtime", runtime.path)

    assert result.exit_code == OK
    for text in ("idle", "just [started]", "p99.9 80.0", "-0.2500", "lower", "disk full"):
        assert text in result.out
    assert "12.0 s: [red]something" in result.out
    assert "SCHED_FIFO" in result.out


def test_send_status_is_the_same(armature: Any, send: Any, runtime: RuntimeDirectory) -> None:
    assert send("status").out == armature("status", "--runtime", runtime.path).out
    assert send("status", "--json").json["state"] == "idle"


def test_status_json(armature: Any, runtime: RuntimeDirectory, loop: Any) -> None:
    result = armature("status", "--runtime", runtime.path, "--json")

    assert msgspec.convert(result.json, type(loop.status)) == loop.status


@pytest.mark.parametrize("words", [["--watch"], ["--watch", "5", "--json"], ["--watch", "1000"]])
def test_watch_needs_a_terminal(armature: Any, runtime: RuntimeDirectory, words: list[str]) -> None:
    assert armature("status", "--runtime", runtime.path, *words).exit_code == USAGE


WATCH = """
import sys
from tools.main import main
sys.exit(main(["status", "--watch", "20", "--runtime", sys.argv[1]]))
"""


def test_watch_on_a_terminal(start: Any, runtime: RuntimeDirectory, loop: Any) -> None:
    ours, theirs = os.openpty()
    process = start(WATCH, runtime.path, stdout=theirs)
    os.close(theirs)

    def read_until(word: bytes) -> None:
        text = b""
        while word not in text:
            text += os.read(ours, 4096)

    read_until(b"idle")
    loop.will_be({"state": "calibrating"})
    read_until(b"calibrating")
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # how a terminal ends
        while os.read(ours, 4096):
            pass
    os.close(ours)

    assert process.wait(30) == 130
    assert process.stderr.read() == ""


@pytest.mark.parametrize("verb", [["status"], ["send", "stop"]], ids=" ".join)
def test_no_loop(armature: Any, tmp_path: Path, verb: list[str]) -> None:
    for path in (tmp_path, tmp_path / "none"):
        result = armature(*verb, "--runtime", path)

        assert (result.exit_code, result.out) == (FAILED, "")
        assert str(path) in result.err and "`armature loop`" in result.err


def test_loop_that_was_killed(armature: Any, tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "commands"))
    result = armature("status", "--runtime", tmp_path)

    assert result.exit_code == FAILED
    assert str(tmp_path) in result.err and "`armature loop`" in result.err


# --- keys and TCP ---------------------------------------------------------------------------------


def test_keys_by_hand_then_over_tcp(
    armature: Any, serve: Any, loop: Any, address: str, tmp_path: Path
) -> None:
    from daq.stream.endpoints import robot_endpoints
    from daq.stream.keys import load_keys

    robot, laptop = tmp_path / "robot_keys", tmp_path / "laptop_keys"
    assert "secret" in armature("keys", "new", robot, "robot").out
    assert armature("keys", "new", laptop, "laptop").exit_code == OK
    assert armature("keys", "new", laptop, "laptop").exit_code == USAGE
    assert "laptop is allowed" in armature("keys", "allow", robot, laptop / "laptop.pub").out
    assert armature("keys", "allow", laptop, robot / "robot.pub").exit_code == OK
    assert list(armature("keys", "list", robot, "--json").json["allowed"]) == ["laptop"]
    assert "laptop" in armature("keys", "list", robot).out
    serve(robot_endpoints(address), loop, load_keys(robot))

    result = armature("send", "stop", "--connect", address, "--keys", laptop)

    assert (result.exit_code, result.err) == (OK, "")
    assert loop.told(Stop)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--connect", "tcp://127.0.0.1:5555"], "--keys"),
        (["--connect", "localhost"], "--connect localhost"),
        (["--keys", "x"], "--keys"),
        (["--connect", "tcp://127.0.0.1:1", "--runtime", "x"], "--runtime"),
    ],
)
def test_contradictions(armature: Any, options: list[str], problem: str) -> None:
    result = armature("status", *options)

    assert result.exit_code == USAGE
    assert problem in result.err
