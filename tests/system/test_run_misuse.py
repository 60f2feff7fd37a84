"""What a user can get wrong: a sentence, an exit code, no traceback, and nothing was started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import armature

from daq.robot import robot_text

RUN = ("run", "--robot", "laas4", "--link", "mock", "--json")
LOOP = ("loop", "--robot", "laas4", "--link", "spi")


class Place:
    """A robot's directories."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runtime = path / "rt"

    def here(self, *words: str | Path) -> tuple[str | Path, ...]:
        """The words of a verb that takes a runtime directory."""
        return (*words, "--runtime", self.runtime)


@pytest.fixture
def place() -> Iterator[Place]:
    # Short: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ar") as directory:
        yield Place(Path(directory))


def check(exit_code: int, text: str, *words: str | Path) -> None:
    """No unit test starts a process: see the conftest."""
    result = armature(*words)

    assert (result.exit_code, result.out) == (exit_code, ""), result
    assert text in result.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--duration", "0"), "0 s: "),
        (("--duration", "-1"), "-1 s: "),
        (("--duration", "nan"), "nan s: "),
        (("--duration", "inf"), "inf s: "),
        (("--duration", "soon"), "'soon'"),
        (("--fault", "explode", "--duration", "1"), "explode"),
        (("--fault", "unplug:at=1", "--duration", "1"), "'unplug:at=1'"),
        (("--fault", "drop:rate=0.1,board=7", "--duration", "1"), "'drop:rate=0.1,board=7'"),
        (("--seed", "-1", "--duration", "1"), "--seed -1: "),
        (("--spread", "2", "--duration", "1"), "--spread 2: "),
        (("--effects", "magic", "--duration", "1"), "magic"),
        (("--profile", "morse", "--duration", "1"), "'morse'"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_options_of_a_run(place: Place, words: tuple[str, ...], text: str) -> None:
    check(2, text, *place.here(*RUN, *words))
    check(2, text, *RUN, "--fast", *words)


def test_periods_are_skipped_in_virtual_time_only(place: Place) -> None:
    words = ("--fault", "skip:rate=0.1", "--duration", "1")
    check(2, "'skip:rate=0.1'", *place.here(*RUN, *words))
    assert armature(*RUN, "--fast", *words).exit_code == 0


NOWHERE = ("--play", "/nowhere/t.h5")


@pytest.mark.parametrize("ms", ["0", "256"])
def test_how_long_a_board_waits(place: Place, ms: str) -> None:
    words = ("--command-timeout-ms", ms, "--duration", "1")
    for verb in ((*RUN, "--fast"), LOOP):
        check(2, f"--command-timeout-ms: 1 problem\n  {ms}: ", *place.here(*verb, *words))


def test_a_trajectory_that_is_not_there(place: Place) -> None:
    check(1, "/nowhere/t.h5", *place.here(*RUN, "--fast", *NOWHERE))


@pytest.mark.system
@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (("--command-timeout-ms", "0", "--link", "mock"), 2, "--command-timeout-ms: "),
        ((*NOWHERE, "--link", "mock"), 1, "/nowhere/t.h5"),
        (("--robot", "robby", "--link", "spi"), 2, "robby"),
        (("--enable", "--link", "spi"), 2, "--arm: "),
    ],
)
def test_what_the_loop_of_a_run_refuses(
    lab: Any, words: tuple[str, ...], exit_code: int, text: str
) -> None:
    """A run leaves some checks to its loop, a process of its own, and passes on what it says."""
    result = lab.do(*lab.here("run", "--robot", "laas4", "--duration", "1", *words))

    assert (result.exit_code, result.out) == (exit_code, ""), result
    assert text in result.err
    assert lab.processes() == {}


def test_virtual_time_needs_an_end() -> None:
    check(2, "  --fast: ", *RUN, "--fast")


def test_virtual_time_on_a_real_link() -> None:
    words = ("run", "--robot", "laas4", "--link", "spi", "--fast", "--duration", "1")
    check(2, "  --fast: ", *words)


def test_faults_on_a_real_link() -> None:
    words = ("run", "--robot", "laas4", "--link", "spi", "--fault", "drop:rate=0.1")
    check(2, "  --fault: ", *words)


@pytest.mark.parametrize("fast", [(), ("--fast",)])
def test_where_the_recording_goes(place: Place, fast: tuple[str, ...]) -> None:
    words = (*place.here(*RUN, *fast, "--duration", "1"), "--record")
    there = place.path / "there.h5"
    there.write_bytes(b"precious")

    check(2, f"--record {there}: ", *words, there)
    check(2, f" {place.path}/no\n", *words, place.path / "no" / "r.h5")
    check(2, f"--record {place.path / 'r.csv'}: ", *words, place.path / "r.csv")
    check(2, f" {there}\n", *words, there / "r.h5")
    again = place.path / ".." / place.path.name / "there.h5"
    check(2, f"--record {again}: ", *words, again)
    assert there.read_bytes() == b"precious"


@pytest.mark.parametrize(("verb", "link"), [(("run", "--fast"), "mock"), (("loop",), "spi")])
def test_unknown_robots_and_links(place: Place, verb: tuple[str, ...], link: str) -> None:
    rest = place.here("--duration", "1")
    check(2, "robby", *verb, "--robot", "robby", "--link", link, *rest)
    check(2, "telepathy", *verb, "--robot", "laas4", "--link", "telepathy", *rest)
    check(2, "--robot", *verb, "--link", link, *rest)
    check(2, "--link", *verb, "--robot", "laas4", *rest)
    damaged = place.path / "damaged.toml"
    damaged.write_text("name = [")
    check(2, "damaged.toml", *verb, "--robot", damaged, "--link", link, *rest)


@pytest.mark.system
@pytest.mark.skipif(os.path.exists("/dev/spidev0.0"), reason="there is a real SPI device")
def test_a_real_link_without_devices(lab: Any) -> None:
    alone = lab.do(*lab.here(*LOOP, "--duration", "1"))
    result = lab.do(*lab.here("run", *LOOP[1:], "--duration", "1", "--record", lab.path / "r.h5"))

    assert (alone.exit_code, alone.out, result.exit_code) == (1, "", 1)
    assert "/dev/spidev0.0" in alone.err
    assert "/dev/spidev0.0" in result.err
    assert not list(lab.path.glob("*.h5*"))
    assert lab.processes() == {}


@pytest.mark.parametrize("option", ["--enable", "--home"])
def test_real_motors_need_to_be_armed(place: Place, option: str) -> None:
    check(2, "--arm: ", *place.here(*LOOP, option))


def test_faults_of_a_loop_on_a_real_link(place: Place) -> None:
    check(2, "--fault: ", *place.here(*LOOP, "--fault", "drop:rate=0.1"))


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o770 | 0o001])
def test_a_runtime_directory_that_is_open_to_others(place: Place, mode: int) -> None:
    place.runtime.mkdir()
    place.runtime.chmod(mode)
    text = f"mode {mode:o} "

    check(2, text, *place.here(*LOOP))
    check(2, text, *place.here(*RUN, "--duration", "1"))
    check(2, text, *place.here("record", "--out", place.path))


def test_a_runtime_directory_that_is_none(place: Place) -> None:
    place.runtime.write_text("")
    check(2, "--runtime", *place.here(*LOOP))
    check(2, "--runtime", *place.here("record", "--out", place.path))
    place.runtime = place.path / ("x" * 120)
    check(2, " 107", *place.here(*LOOP))


def test_options_of_the_recorder(place: Place) -> None:
    record = place.here("record")
    gone = place.path / "no" / "out"
    check(2, f"--out {gone}: ", *record, "--out", gone)
    check(2, f"--file {gone / 'r.h5'}: ", *record, "--out", place.path, "--file", gone / "r.h5")
    check(2, "--rotate-s nan: ", *record, "--out", place.path, "--rotate-s", "nan")
    check(2, "--rotate-s 0:", *record, "--out", place.path, "--rotate-s", "0")
    check(2, "--reserve-mb -1: ", *record, "--out", place.path, "--reserve-mb", "-1")
    check(2, "ACTION", "record", "infos", "r.h5")
    check(1, f"{place.path / 'no.h5'}: ", "record", "info", place.path / "no.h5")
    robot = place.path / "laas4.toml"
    robot.write_text(robot_text("laas4"))
    check(1, f"{robot}: ", "record", "info", robot)


@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (("send",), 2, "ACTION"),
        (("send", "dance"), 2, "'dance'"),
        (("send", "mode", "flying"), 2, "'flying'"),
        (("send", "mode", "position", "--target", "a"), 2, "--target"),
        (("send", "record"), 2, "start|stop|mark"),
        (("send", "play"), 2, "FILE"),
        (("status", "--watch", "1000"), 2, "1000"),
        (("status", "--watch"), 2, "--watch: "),
        (("status", "--keys", "k"), 2, "--keys: "),
        (("status", "--connect", "tcp://nowhere"), 2, "tcp://nowhere"),
        (("status", "--connect", "tcp://127.0.0.1:1", "--keys", "/nowhere"), 2, "/nowhere"),
    ],
)
def test_options_of_send_and_status(words: tuple[str, ...], exit_code: int, text: str) -> None:
    check(exit_code, text, *words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--duration", "nan"), "nan s: "),
        (("--plotjuggler", "99999"), "99999,"),
        (("--plotjuggler", "0"), "--plotjuggler"),
        (("--bind", "udp://127.0.0.1:5555"), "udp://127.0.0.1:5555: "),
        (("--keys", "/nowhere"), "/nowhere"),
        (("--on-fault", "panic"), "'panic'"),
    ],
)
def test_options_of_a_loop(place: Place, words: tuple[str, ...], text: str) -> None:
    check(2, text, *place.here(*LOOP, *words))


@pytest.mark.system
@pytest.mark.compiler
def test_a_loop_for_every_network(lab: Any) -> None:
    words = (*lab.mock_words(), *lab.loop_words("--bind", "tcp://*:5555"))

    result = lab.start(*words).wait()

    assert (result.exit_code, result.out) == (2, "")
    assert "tcp://*:5555" in result.err
    assert lab.processes() == {}
