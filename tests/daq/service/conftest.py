"""Helpers of these tests: systemd's own tools, and its sandbox without a running systemd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from daq.links.address import parse_link
from daq.robot.load import load_robot
from daq.service.units import Service

PROJECT = Path(__file__).parents[3]
ARMATURE = str(Path(sys.executable).with_name("armature"))

# Starts a program with a system call filter and no writable code, as systemd would.
ENTER = """
import ctypes, os, struct, sys
LOAD_NUMBER, IS_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # with EPERM
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 22, 38, 65
numbers = [int(word) for word in sys.argv[1].split(",")]
steps = [struct.pack("=HBBI", LOAD_NUMBER, 0, 0, 0)]
for number in numbers:
    steps.append(struct.pack("=HBBI", IS_EQUAL, 0, 1, number))
    steps.append(struct.pack("=HBBI", RETURN, 0, 0, ALLOW))
steps.append(struct.pack("=HBBI", RETURN, 0, 0, REFUSE))
code = ctypes.create_string_buffer(b"".join(steps))
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_MDWE, 1, 0, 0, 0)  # since Linux 6.3; older kernels do without
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def analyze(processes: None) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `systemd-analyze`; in CI it has to be there."""
    if shutil.which("systemd-analyze") is None:
        if os.environ.get("CI"):
            pytest.fail("no systemd-analyze in CI: the units would go unchecked")
        pytest.skip("no systemd-analyze")
    return run_analyze


def run_analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "--no-pager", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def make_service() -> Callable[..., Service]:
    """A service of a shipped robot, as it is installed from here."""

    def make(robot: str = "laas4", link: str = "spi", **changes: object) -> Service:
        usual: dict[str, object] = {"program": (ARMATURE,), "code": (Path(sys.base_prefix),)}
        return Service(
            robot=load_robot(robot),
            robot_argument=robot,
            link=parse_link(link),
            link_argument=link,
            **{**usual, **changes},  # type: ignore[arg-type]
        )

    return make


@cache
def system_call_sets() -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    name = ""
    for line in run_analyze("syscall-filter").stdout.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = []
        elif re.fullmatch(r"\s+@?\w[\w-]*", line) and name:
            sets[name].append(line.strip())
    return sets


def expand(words: str) -> set[str]:
    found: set[str] = set()
    for name in words.split():
        members = system_call_sets().get(name)
        found |= {name} if members is None else expand(" ".join(members))
    return found


def allowed_system_calls(unit: str) -> set[str]:
    """What a unit's `SystemCallFilter=` lines leave, by systemd's own sets."""
    allowed: set[str] = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        if words.startswith("~"):
            allowed -= expand(words[1:])
        else:
            allowed |= expand(words)
    return allowed


@cache
def system_call_numbers() -> dict[str, int]:
    text = subprocess.run(
        ["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", os.devnull],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.MULTILINE)
    return {name: int(number) for name, number in found}


@pytest.fixture
def confined(
    analyze: object, tmp_path: Path
) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Runs Python code under the system call filter of a unit."""

    def run(unit: str, code: str) -> subprocess.CompletedProcess[str]:
        numbers = system_call_numbers()
        allowed = sorted(numbers[name] for name in allowed_system_calls(unit) if name in numbers)
        program = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(
            [sys.executable, "-c", ENTER, ",".join(map(str, allowed)), *program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run
