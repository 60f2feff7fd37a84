"""The messages that matter, word for word: what a user reads after the most frequent mistakes.

Other tests assert codes, names and numbers. The words stand in one table, `messages.txt`: to change
them, run this file with `ARMATURE_WRITE_MESSAGES=1`, in one process, and read the difference.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import h5py
import msgspec
import numpy as np
import pytest
from commands import armature
from identification_examples import example
from loop_rig import Rig
from recording_maker import make_recording

import tools.verbs.send
from daq.links.device_lock import DeviceLock
from daq.links.failures import transport_error
from daq.motion.trajectory_file import write_trajectory
from daq.recorder.journal import journal_of
from daq.robot import robot_text
from daq.stream.errors import CommandRefusedError, RefusedError
from daq.stream.messages import AnyCommand, LoopStatus
from estimation.identification.estimators.constrained import estimate_cls2
from hw_mocks.emulated_spi.introduction import ask_who
from tools.shared.cli import run_guarded

TABLE = Path(__file__).with_name("messages.txt")
FAST = ("run", "--robot", "laas4", "--link", "mock", "--fast")
LOOP = ("loop", "--robot", "far.toml", "--link", "spi", "--runtime", "rt")
IMPORT = ("import", "data.csv", "--robot", "bench1", "--out", "data.h5")
BOTH = "--map", "q_rad=q1", "--map", "tau_nm=tau1"

EVENT = re.compile(r"armature: (error: |the loop ends|\w+ → )")
"""Lines that a loop writes while it runs."""
VARYING = {
    r"in use by \S+ \(process \d+\)": "in use by PROGRAM (process N)",
    r"\S+\.lock\b": "LOCK",
    r"\(Unable to .*\)\)": "(WORDS OF HDF5)",
    r"to relax .*, by": "to relax BOUND, by",  # which one is up to the solver
}

Make = Callable[[], Any]
COMMANDS: dict[str, tuple[str, ...]] = {
    "no such robot": ("loop", "--robot", "robby", "--link", "spi"),
    "no such robot file": ("loop", "--robot", "no/arm.toml", "--link", "spi"),
    "an unknown key in a robot file": ("loop", "--robot", "wrong.toml", "--link", "spi"),
    "no such link": ("loop", "--robot", "laas4", "--link", "pigeon"),
    "real motors without --arm": (*LOOP, "--enable"),
    "no such device": LOOP,
    "no loop is running": ("status", "--runtime", "rt"),
    "TCP without keys": ("status", "--connect", "tcp://robot:5555"),
    "a runtime directory open to others": ("record", "--runtime", "open"),
    "no such recording": ("identify", "no.h5"),
    "not a recording": ("identify", "text.h5"),
    "a damaged recording": ("record", "info", "damaged.h5"),
    "a recording of a newer version": ("record", "info", "newer.h5"),
    "a file that exists": (*FAST, "--duration", "1", "--record", "text.h5"),
    "a journal that was left behind": (*FAST, "--duration", "1", "--record", "left.h5"),
    "virtual time without an end": FAST,
    "no time for what was asked": (*FAST, "--home", "--duration", "0.1"),
    "a trajectory beyond a limit": (*FAST, "--play", "fast.h5"),
    "a board that reports a fault": (
        *(*FAST, "--enable", "--duration", "1", "--fault", "board-error:at=0.1,code=7,board=1"),
    ),
    "a board that does not answer": (
        *(*FAST, "--enable", "--duration", "1", "--fault", "stuck-high:at=0.1,for=1,board=1"),
    ),
    "an unknown column on import": (*IMPORT, *BOTH, "--map", "iq_a=current"),
    "too few samples on import": (*IMPORT, *BOTH),
    "an unknown fault of the mock": (*FAST, "--duration", "1", "--fault", "flop:at=1"),
}


def fail(error: Exception) -> None:
    raise error


def lock_twice() -> None:
    first = DeviceLock("text.h5")
    try:
        DeviceLock("text.h5")
    finally:
        first.release()


def ask_a_file() -> None:
    with Path("text.h5").open("rb") as file:
        ask_who(file.fileno(), "/dev/spidev0.0")


def contradict() -> None:
    problem = example()
    estimate_cls2(replace(problem, bounds=replace(problem.bounds, total_mass_kg=(0.0, 0.5))))


CALLS: dict[str, Make] = {
    "a device that may not be opened": lambda: fail(
        transport_error("/dev/spidev0.0", OSError(errno.EACCES, ""))
    ),
    "a device that another program holds": lock_twice,
    "emulation announced but not proved": ask_a_file,
    "bounds that contradict each other": contradict,
}
ON_LOOP: dict[str, tuple[str, ...]] = {
    "a command before enable": ("mode", "hold"),
    "a command before homing": ("mode", "position", "--joint", "joint1", "--target", "1"),
    "a command beyond a limit": ("gains", "--joint", "joint1", "--kp", "50"),
    "a joint that does not exist": ("mode", "hold", "--joint", "joint9"),
}


class Client:
    """A connection to a loop in this process."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def status(self) -> LoopStatus:
        return msgspec.structs.replace(self._rig.loop.status(), is_mock=True)

    def ask(self, command: AnyCommand) -> Any:
        try:
            return self._rig.send(command)
        except RefusedError as error:
            raise CommandRefusedError(error.code, error.message) from error


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    Path("open").mkdir()
    Path("open").chmod(0o777)
    far = robot_text("laas4").replace("/dev/spidev0.", "/dev/spidev97.")
    Path("far.toml").write_text(far)
    Path("wrong.toml").write_text(robot_text("bench1").replace("nominal_v", "nominal_volts"))
    Path("text.h5").write_text("text")
    journal_of(Path("left.h5")).touch()
    Path("data.csv").write_text("t,q1,tau1\n" + "".join(f"{n},0,0\n" for n in range(4)))


def make_recordings() -> None:
    make_recording(Path("newer.h5"), {"iq_a": np.zeros((50, 4))})
    whole = Path("newer.h5").read_bytes()
    Path("damaged.h5").write_bytes(whole[: len(whole) // 2])
    with h5py.File("newer.h5", "r+") as file:
        file.attrs.modify("version_major", 9)


def make_trajectory() -> None:
    t_s = np.arange(0.0, 2.0, 1e-3)
    rad_s = 0.8 * np.pi
    sine, cosine = np.sin(rad_s * t_s), np.cos(rad_s * t_s)
    hanging = np.array([0.0, -1.57, 0.0, 0.0])
    q_rad, dq_rad_s = 5.0 * (1.0 - cosine)[:, None] + hanging, 5.0 * rad_s * sine[:, None]
    write_trajectory(Path("fast.h5"), t_s=t_s, q_rad=q_rad, dq_rad_s=dq_rad_s * np.ones((1, 4)))


def row(name: str, exit_code: int, err: str) -> str:
    """A row of the table; what differs from run to run is replaced."""
    lines = [line for line in err.splitlines() if not EVENT.match(line)]
    text = "\n".join(f"    {line}" for line in lines).replace(os.getcwd(), "DIR")
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    return f"{name} (exit code {exit_code})\n{text}\n"


def check(name: str, exit_code: int, err: str) -> None:
    rows = TABLE.read_text().split("\n\n") if TABLE.exists() else []
    table = {each.partition(" (exit")[0]: each.rstrip("\n") + "\n" for each in rows}
    found = row(name, exit_code, err)
    if os.environ.get("ARMATURE_WRITE_MESSAGES"):
        table[name] = found
        order = [*COMMANDS, *CALLS, *ON_LOOP]
        TABLE.write_text("\n".join(table[each] for each in order if each in table))
    assert found == table.get(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    words = COMMANDS[name]
    if words[0] == "record":
        make_recordings()
    if "--play" in words:
        make_trajectory()
    result = armature(*words)
    assert result.exit_code != 0
    check(name, result.exit_code, result.err)


@pytest.mark.parametrize("name", CALLS)
def test_what_the_command_says_of_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        CALLS[name]()
        return 0

    exit_code = run_guarded(run)
    check(name, exit_code, capsys.readouterr().err)


@pytest.mark.parametrize("name", ON_LOOP)
def test_what_a_loop_refuses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig("laas4")
    if name != "a command before enable":
        rig.enable()
        rig.hold()
    monkeypatch.setattr(tools.verbs.send, "open_client", lambda *_: Client(rig))
    result = armature("send", *ON_LOOP[name])
    check(name, result.exit_code, result.err)


def test_the_table_has_nothing_else() -> None:
    names = [row.partition(" (exit")[0] for row in TABLE.read_text().split("\n\n")]
    assert names == [*COMMANDS, *CALLS, *ON_LOOP]
