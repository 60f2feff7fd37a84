"""Options of a run: from the command line, and back to it for a process of its own."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.errors import ConfigError
from tools.main import make_parser
from tools.running.options import MockOptions, RunOptions

PATHS = st.none() | st.sampled_from([Path("a.h5"), Path("-b"), Path("c d/ü")])
OPTIONS = st.builds(
    RunOptions,
    robot=st.sampled_from(["laas4", "my robot.toml", "--odd"]),
    link=st.sampled_from(["spi", "spy+spi", "serial:///dev/ttyUSB0?baud=2000000"]),
    profile=st.sampled_from([None, "arm", "uomodri"]),
    is_armed=st.booleans(),
    duration_s=st.none() | st.floats(1e-3, 1e7),
    runtime=PATHS,
    faults=PATHS,
    command_timeout_ms=st.none() | st.integers(-5, 300),
    enables=st.booleans(),
    homes=st.booleans(),
    play=PATHS,
    bench=PATHS,
    bind=st.sampled_from([(), ("tcp://a:1",), ("tcp://a:1", "-x")]),
    keys=PATHS,
    plotjuggler_port=st.none() | st.integers(1, 65535),
    recording=st.sampled_from([None, "", "name", "-name"]),
    ends_on_fault=st.booleans(),
)


def parsed(words: list[str]) -> Any:
    return make_parser(words[0]).parse_args(words)


def read(words: list[str]) -> RunOptions:
    """As `armature loop` reads them."""
    arguments = parsed(words)
    return replace(
        RunOptions.from_namespace(arguments),
        bench=arguments.bench,
        recording=arguments.record,
        ends_on_fault=arguments.on_fault == "exit",
    )


@given(options=OPTIONS)
def test_a_command_line_says_it_all(options: RunOptions) -> None:
    assert read(options.to_argv()) == options
    assert parsed(options.to_argv("--json", "--events-to=7")).events_to == 7


def test_nothing_is_left_out() -> None:
    """A field that `to_argv` forgets would be lost on the way to the loop."""
    strange = {
        **dict.fromkeys(("is_armed", "enables", "homes"), True),
        **{"robot": "r", "link": "spi", "profile": "arm", "duration_s": 2.0},
        **{"runtime": Path("rt"), "command_timeout_ms": 7, "play": Path("p"), "bench": Path("b")},
        **{"bind": ("tcp://h:1",), "keys": Path("k"), "plotjuggler_port": 9, "recording": "n"},
        "faults": Path("f"),
        "ends_on_fault": False,
    }
    assert set(strange) == {field.name for field in dataclasses.fields(RunOptions)}
    options = RunOptions(**strange)
    assert read(options.to_argv()) == options


@pytest.mark.parametrize("link", ["mock", "spy+mock"])
def test_a_loop_on_a_mock_is_never_armed(link: str) -> None:
    """Should its devices turn out to be real, nobody has given leave to move them."""
    asked = RunOptions(robot="laas4", link=link, is_armed=True)
    inner = asked.on_emulated_devices()
    assert (inner.link, inner.is_armed) == (link.replace("mock", "spi"), False)
    assert inner.command_timeout_ms == 100
    assert replace(asked, command_timeout_ms=9).on_emulated_devices().command_timeout_ms == 9


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigError):
        _ = RunOptions(robot="laas4", link="usb").is_on_mock


def test_a_mock_by_default_is_what_the_command_line_says_by_default() -> None:
    arguments = parsed(["run", "--robot", "laas4", "--link", "mock"])
    assert MockOptions.from_namespace(arguments) == MockOptions(robot="laas4")
