"""Ways in which careless callers have broken a command, each once."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

Run = Callable[..., Any]

TABLE = "armature frames table --profile arm"


@pytest.mark.parametrize("command", [TABLE, "armature mock step --robot bench1"])
def test_a_full_disk(run: Run, command: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")

    result = run("sh", "-c", f"{command} > /dev/full")

    assert result.exit_code == 1
    assert os.strerror(errno.ENOSPC) in result.err


@pytest.mark.parametrize("command", [TABLE, "armature frames decode --profile arm --jsonl -"])
def test_closed_streams(run: Run, command: str) -> None:
    result = run("sh", "-c", f"{command} <&- >&- 2>&-")

    assert (result.exit_code, result.out, result.err) == (0, "", "")


def test_messages_never_end_up_among_the_results(run: Run) -> None:
    result = run("sh", "-c", "armature frames encode --profile arm --jsonl - 2>&-", stdin="{}\n")

    assert (result.exit_code, result.out) == (1, "\n")


@pytest.mark.compiler
def test_a_program_with_a_closed_stdout_keeps_its_devices_to_itself(run: Run) -> None:
    """A socket of ours must not become the stdout of the program."""
    code = "import os, sys; sys.exit(os.readlink('/proc/self/fd/1') != '/dev/null')"

    result = run("sh", "-c", f'armature mock exec --robot bench1 -- python3 -c "{code}" >&-')

    assert (result.exit_code, result.err) == (0, "")


@pytest.mark.parametrize("command", [TABLE, "armature doctor --robot bench1 --link mock"])
def test_a_terminal_without_our_characters(
    run: Run, environment: dict[str, str], command: str
) -> None:
    result = run("sh", "-c", command, env={**environment, "PYTHONIOENCODING": "ascii"})

    assert (result.exit_code, result.err) == (0, "")


@pytest.mark.compiler
def test_temporary_files_have_no_place(
    run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 60) / ("d" * 60)
    deep.mkdir(parents=True)

    result = run(
        *("armature", "mock", "exec", "--robot", "bench1", "--", "true"),
        env={**environment, "TMPDIR": str(deep)},
    )

    assert result.exit_code == 1
    assert str(deep) in result.err


@pytest.mark.compiler
def test_a_mock_inside_a_mock(run: Run) -> None:
    doctor = "armature doctor --robot bench1 --link spi --json"

    result = run(
        *("sh", "-c"),
        f"armature mock exec --robot bench1 --profile uomodri -- "
        f"armature mock exec --robot bench1 -- {doctor}",
    )

    assert (result.exit_code, result.json["can_run"]) == (0, True)


@pytest.mark.compiler
def test_two_mocks_of_one_robot_do_not_exclude_each_other(
    run: Run, start: Callable[..., Any]
) -> None:
    hold = """
import time
from daq.links.spi import SpiLink
from daq.robot.load import load_robot
link = SpiLink(load_robot("bench1").boards[0].spi)
print("held", flush=True)
time.sleep(60)
"""
    mock = ("armature", "mock", "exec", "--robot", "bench1", "--")
    first = start(*mock, "python3", "-c", hold)
    assert first.stdout.readline() == "held\n"

    result = run(*mock, "armature", "doctor", "--robot", "bench1", "--link", "spi", "--json")

    assert result.json["can_run"]
    first.terminate()
    assert first.wait(timeout=30) == 128 + signal.SIGTERM
