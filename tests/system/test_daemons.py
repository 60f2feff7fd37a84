"""Loop and recorder as daemons, commanded with `armature send`, over local sockets and TCP."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import stat
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zmq
from commands import armature

from daq.recording import open_recording
from daq.robot.load import load_robot
from daq.stream.messages import LoopStatus
from daq.stream.subscriber import Subscriber

pytestmark = pytest.mark.compiler


def free_port(count: int = 1) -> int:
    """The first of some consecutive ports that nobody uses."""
    for _ in range(100):
        with ExitStack() as stack:
            first = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
            port = int(first.getsockname()[1])
            try:
                for more in range(port + 1, port + count):
                    stack.enter_context(closing(socket.create_server(("127.0.0.1", more))))
            except OSError:
                continue
            return port
    pytest.fail("no free ports")


def test_a_session_at_the_robot(lab: Any) -> None:
    """What a person does in an afternoon, in a few seconds."""
    out = lab.path / "out"
    recorder = lab.start("armature", *lab.here("record", "--out", out))
    loop = lab.start(*lab.mock_words(), *lab.loop_words())
    lab.wait_for(lambda: lab.status().recorder is not None)
    status = msgspec.json.decode(lab.ask("status", "--json").out, type=LoopStatus)
    assert (status.state, status.robot) == ("idle", "laas4")
    assert status.link == "mock+spi?seed=0&spread=0.25"
    assert (status.recording, status.lost, status.corrupt) == ("", 0, 0)
    assert [board.device for board in status.boards] == ["/dev/spidev0.0", "/dev/spidev0.1"]

    refused = lab.send("mode", "hold")
    assert refused.exit_code == 1
    assert "(not-now)" in refused.err
    assert lab.accept("record", "start", "first_try")["number"] == 1
    assert lab.accept("enable", "--wait") == {"state": "calibrating"}
    assert lab.accept("mode", "hold")["state"] == "active"
    lab.accept("gains", "--joint", "joint1", "--kp", "0.4", "--kd", "0.01", "--ki", "0.1")
    refused = lab.send("mode", "position", "--joint", "joint1", "--target", "1")
    assert refused.exit_code == 1
    assert "(not-homed)" in refused.err
    lab.accept("mode", "velocity", "--joint", "joint1", "--target", "0.3")
    marked = lab.accept("record", "mark", "it turns")["seq"]
    lab.wait_for_cycles(500)
    table = lab.ask("status").out
    for text in ("active", "first_try", "joint4", "velocity", "/dev/spidev0.1"):
        assert text in table
    lab.accept("record", "stop")
    lab.accept("record", "start", "second")
    lab.accept("disable", "--wait")
    lab.accept("record", "stop")
    lab.wait_for(lambda: (out / "second.h5").exists() and (out / "first_try.h5").exists())
    assert lab.status().state == "idle"

    ended = loop.end()
    assert ended.exit_code == 0
    summary = ended.json
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    # The loop's last words are not the recorder's: it waits for the next loop.
    assert recorder.is_running
    assert recorder.end().exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["first_try.h5", "second.h5"]
    with open_recording(out / "first_try.h5") as first, open_recording(out / "second.h5") as second:
        assert first.gaps == second.gaps == ()
        (mark,) = (event for event in first.events if event.kind == "mark")
        assert (mark.seq, mark.text, mark.severity) == (marked, "it turns", "info")
        assert marked in first["seq"][:]
        turned_rad = first["joint_position_rad"][:, 0]
        assert np.nanmax(turned_rad) - np.nanmin(turned_rad) > 0.05
        # The second begins where the first ended, or a batch or two later.
        assert second["seq"][0] > first["seq"][-1]
        assert first["seq"][0] % 20 == second["seq"][0] % 20 == 0
        stops = [event.text for event in second.events if event.kind == "state"]
        assert stops[-2:] == ["active → stopping: disabled", "stopping → idle"]


def test_a_loop_that_is_started_again(lab: Any) -> None:
    """The recorder follows: one file per session."""
    out = lab.path / "out"
    recorder = lab.start("armature", *lab.here("record", "--out", out))
    cycles = []
    for _ in range(2):
        words = lab.loop_words("--record", "--duration", "0.6")
        result = lab.start(*lab.mock_words(), *words).wait()
        assert result.exit_code == 0
        cycles.append(result.json["cycles"])
    lab.wait_for(lambda: len(list(out.glob("*.h5"))) == 2)
    assert recorder.end().exit_code == 0

    counts = []
    for file in sorted(out.glob("*.h5")):
        with open_recording(file) as recording:
            assert recording.gaps == ()
            counts.append(recording.sample_count)
    assert sorted(counts) == sorted(cycles)
    assert not list(lab.runtime.glob("spool-*"))


def check_no_loop(lab: Any, *words: str) -> None:
    """One sentence."""
    result = lab.ask(*words)
    assert (result.exit_code, result.out) == (1, "")
    (line,) = result.err.splitlines()
    assert str(lab.runtime) in line
    assert line.endswith("[no-loop]")


def test_no_loop_is_said_in_one_sentence(lab: Any) -> None:
    for words in (("status",), ("status", "--json"), ("send", "stop")):
        check_no_loop(lab, *words)


def test_one_loop_and_one_recorder_at_a_time(lab: Any) -> None:
    """Others are refused while they live, and take their place when they are dead."""
    loop = lab.start(*lab.mock_words(), *lab.loop_words())
    before = lab.wait_for_cycles(20)
    second = lab.start(*lab.mock_words(), *lab.loop_words("--duration", "1")).wait()
    assert second.exit_code == 1
    assert f"{lab.runtime}: " in second.err
    assert f"process {lab.process('loop')}" in second.err
    assert lab.wait_for_cycles(20).session == before.session

    recorder = lab.start("armature", *lab.here("record", "--out", lab.path / "out"))
    lab.wait_for(lambda: lab.status().recorder is not None)
    other = lab.do(*lab.here("record", "--out", lab.path / "out"))
    assert other.exit_code == 2
    assert str(lab.runtime) in other.err
    assert f"process {recorder.process.pid}" in other.err
    assert recorder.end().exit_code == 0

    # One that is not kept from trying fails, and leaves the first one its sockets.
    (lab.runtime / "lock").unlink()
    third = lab.start(*lab.mock_words(), *lab.loop_words("--duration", "1")).wait()
    assert third.exit_code == 1
    assert f"{lab.runtime}/" in third.err
    assert lab.status().session == before.session

    # Of a dead loop the sockets are left, and nobody answers.
    os.kill(lab.process("loop"), 9)
    loop.wait()
    assert (lab.runtime / "commands").exists()
    check_no_loop(lab, "status", "--json")
    # The next one takes their place.
    assert lab.start(*lab.mock_words(), *lab.loop_words("--duration", "0.3")).wait().exit_code == 0


def test_a_loop_that_brings_its_own_mock(lab: Any) -> None:
    words = ("--robot", lab.robot, "--link", "mock", "--command-timeout-ms", "250", "--json")
    loop = lab.start("armature", *lab.here("loop", *words))
    status = lab.wait_for_cycles(100)
    assert (status.robot, status.link) == ("laas4", "mock+spi?seed=0&spread=0.25")
    lab.accept("enable")

    result = loop.end()

    assert result.exit_code == 0
    assert (result.json["state"], result.json["reason"]) == ("idle", "SIGTERM")
    assert result.json["cycles"] + result.json["skipped"] == round(result.json["elapsed_s"] * 1000)
    assert lab.processes() == {}


def test_a_run_beside_a_recorder_ends_at_once(lab: Any) -> None:
    """Its own recorder cannot work there, and nothing would be recorded where it was asked for."""
    recorder = lab.start("armature", *lab.here("record", "--out", lab.path / "out"))
    lab.wait_for((lab.runtime / "recorder.lock").exists)

    result = lab.start(*lab.run_words("--record", lab.path / "r.h5")).wait()

    assert result.exit_code == 1
    assert str(lab.runtime) in result.err
    assert not (lab.path / "r.h5").exists()
    assert recorder.end().exit_code == 0


# --- networks -------------------------------------------------------------------------------------


def test_local_listeners(lab: Any) -> None:
    """A script and PlotJuggler, at once; the sockets are not for everyone."""
    port = free_port()
    loop = lab.start(*lab.mock_words(), *lab.loop_words("--plotjuggler", port))
    lab.wait_for_cycles(20)
    assert stat.S_IMODE(lab.runtime.stat().st_mode) == 0o750
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in lab.runtime.iterdir()}
    assert {"commands", "stream"} <= set(modes)
    assert all(not mode & 0o007 for mode in modes.values()), modes

    # The ten lines of the subscriber's documentation.
    with Subscriber(lab.runtime, timeout_s=30.0) as robot:
        batches = [robot.receive() for _ in range(10)]
        assert robot.joint_names == ("joint1", "joint2", "joint3", "joint4")
        assert robot.missed == 0
    seqs = np.concatenate([batch["seq"] for batch in batches])
    assert np.array_equal(np.diff(seqs), np.ones(len(seqs) - 1))

    before = lab.status()
    messages = plotjuggler_messages(port, 200)
    after = lab.status()
    assert loop.end().exit_code == 0
    assert not (lab.runtime / "commands").exists()
    check_plotjuggler(messages)
    # Every tenth cycle has one; a few more were under way when the counting began.
    assert (after.cycles - before.cycles) / 10 >= len(messages) - 100


def plotjuggler_messages(port: int, count: int) -> list[list[bytes]]:
    with zmq.Context() as context, context.socket(zmq.SUB) as reader:
        reader.linger = 0
        reader.subscribe(b"")
        reader.connect(f"tcp://127.0.0.1:{port}")
        messages = [reader.recv_multipart() for _ in range(count) if reader.poll(30_000)]
    assert len(messages) == count
    return messages


def check_plotjuggler(messages: list[list[bytes]]) -> None:
    names = [joint.name for joint in load_robot("laas4").joints]
    stamps = []
    for topic, payload, stamp in messages:
        values = msgspec.msgpack.decode(payload)
        assert topic
        assert all(isinstance(value, int | float | bool) for value in values.values())
        assert {f"{name}/position_rad" for name in names} <= set(values)
        stamps.append(float(stamp))
        assert stamp.decode().replace(".", "", 1).isdigit()
    assert stamps == sorted(stamps)
    # A hundred of them a second.
    assert stamps[-1] - stamps[0] >= (len(messages) - 1) * 0.01 * 0.5


def test_tcp_without_keys_is_refused(lab: Any) -> None:
    address = f"tcp://127.0.0.1:{free_port(2)}"

    result = lab.start(*lab.mock_words(), *lab.loop_words("--bind", address)).wait()

    assert (result.exit_code, result.out) == (2, "")
    assert address in result.err
    assert "--keys" in result.err
    for verb in (("status",), ("send", "stop")):
        refused = armature(*verb, "--connect", address)
        assert refused.exit_code == 2
        assert address in refused.err
        assert "--keys" in refused.err


def test_tcp_with_keys_is_for_those_on_the_list(lab: Any) -> None:
    for name in ("robot", "laptop", "stranger"):
        assert armature("keys", "new", lab.path / f"k_{name}", name).exit_code == 0
    for owner, trusted in (("robot", "laptop"), ("laptop", "robot"), ("stranger", "robot")):
        public = lab.path / f"k_{trusted}" / f"{trusted}.pub"
        assert armature("keys", "allow", lab.path / f"k_{owner}", public).exit_code == 0
    address = f"tcp://127.0.0.1:{free_port(2)}"
    words = lab.loop_words("--bind", address, "--keys", lab.path / "k_robot")
    loop = lab.start(*lab.mock_words(), *words)
    lab.wait_for_cycles(20)

    known = armature("status", "--connect", address, "--keys", lab.path / "k_laptop", "--json")
    unknown = armature("status", "--connect", address, "--keys", lab.path / "k_stranger", "--json")

    assert known.exit_code == 0
    assert known.json["robot"] == "laas4"
    assert (unknown.exit_code, unknown.out) == (1, "")
    assert address in unknown.err
    assert loop.end().exit_code == 0


# --- privileges -----------------------------------------------------------------------------------


def without_privileges(lab: Any) -> tuple[str, ...]:
    """Words in front of a command that take all privileges away, as far as possible."""
    limits = ("prlimit", "--rtprio=0", "--memlock=65536")
    if os.geteuid() != 0:
        return limits
    # Nobody, or where nobody cannot read Python: root without a single capability.
    user = pwd.getpwnam("nobody")
    paths = (Path(sys.executable).resolve(), Path(__file__))
    identity: tuple[str, ...] = ()
    if all(parent.stat().st_mode & stat.S_IXOTH for path in paths for parent in path.parents):
        os.chown(lab.path, user.pw_uid, user.pw_gid)
        identity = ("--reuid", "nobody", "--regid", str(user.pw_gid), "--clear-groups")
        lab.environment["XDG_CACHE_HOME"] = str(lab.path / "cache")
        programs = shutil.copytree(lab.environment["PATH"].split(":")[0], lab.path / "bin")
        programs.chmod(0o755)
        lab.environment["PATH"] = f"{programs}:{lab.environment['PATH']}"
    return ("setpriv", *identity, "--inh-caps=-all", "--bounding-set=-all", *limits)


@pytest.mark.skipif(
    None in map(shutil.which, ("setpriv", "prlimit")), reason="needs setpriv and prlimit"
)
def test_without_privileges_it_says_so_once_and_works(lab: Any) -> None:
    words = lab.loop_words("--duration", "1.5", "--enable")
    loop = lab.start(*without_privileges(lab), *lab.mock_words(), *words)
    told = lab.wait_for_state("calibrating").privileges
    result = loop.wait()

    assert result.exit_code == 0
    assert result.json["cycles"] + result.json["skipped"] >= 1500
    assert len(told) == 2
    assert result.json["privileges"] == list(told)
    for text in told:
        assert result.err.count(text) == 1
