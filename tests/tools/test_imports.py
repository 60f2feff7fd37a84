"""What a command or a package loads at start-up, seen in fresh processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

HEAVY = {"mujoco", "numpy", "rich", "spidev", "serial", "pinocchio", "matplotlib", "scipy"}
HEAVY |= {"h5py", "zmq", "cvxpy", "sympy"}


def loaded(run: Callable[..., Any], code: str) -> set[str]:
    shown = "print('loaded', *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    result = run("python3", "-c", f"import sys\n{code}\n{shown}")
    assert result.exit_code == 0
    word, *names = result.err.split()
    assert word == "loaded"
    return set(names)


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["frames", "--help"], ["frames", "table", "--profile", "arm"]],
    ids=" ".join,
)
def test_light_commands(run: Callable[..., Any], words: list[str]) -> None:
    names = loaded(run, f"import tools.main; tools.main.main({words})")

    assert "firmware_protocol" in names
    assert names & HEAVY == set()


def test_json_needs_no_table_printer(run: Callable[..., Any]) -> None:
    words = ["doctor", "--robot", "bench1", "--link", "mock", "--json"]

    names = loaded(run, f"import tools.main; tools.main.main({words})")

    assert names & (HEAVY - {"numpy"}) == set()


def test_daq_loads_no_mathematics(run: Callable[..., Any]) -> None:
    code = """
import importlib, pkgutil, daq
for module in pkgutil.walk_packages(daq.__path__, "daq."):
    if module.name != "daq.robot.rigid_body":  # it is imported only when asked for
        importlib.import_module(module.name)
"""
    names = loaded(run, code)

    unwanted = {"scipy", "matplotlib", "pinocchio", "mujoco", "cvxpy", "spidev", "serial"}
    assert names & unwanted == set()
    assert names & {"hw_mocks", "estimation", "tools"} == set()
