"""What a user can get wrong: a sentence, an exit code, no traceback, and nothing left running."""

from __future__ import annotations

import os
from typing import Any

import pytest

RUN = ("run", "--robot", "laas4", "--link", "mock", "--json")
LOOP = ("loop", "--robot", "laas4", "--link", "spi")


def check(lab: Any, exit_code: int, text: str, *words: Any) -> None:
    result = lab.do(*words)

    assert (result.exit_code, result.out) == (exit_code, ""), result
    assert text in result.err
    assert lab.processes() == {}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--duration", "0"), "0 s: must be more than 0"),
        (("--duration", "-1"), "-1 s: must be more than 0"),
        (("--duration", "nan"), "nan s: must be more than 0"),
        (("--duration", "inf"), "inf s: must be more than 0, at most 1e7"),
        (("--duration", "soon"), "--duration: invalid float value: 'soon'"),
        (("--command-timeout-ms", "0", "--duration", "1"), "0: must lie between 1 and 255"),
        (("--command-timeout-ms", "256", "--duration", "1"), "256: must lie between 1 and 255"),
        (("--fault", "explode", "--duration", "1"), "explode"),
        (("--fault", "unplug:at=1", "--duration", "1"), "cannot happen on this kind of device"),
        (("--fault", "drop:rate=0.1,board=7", "--duration", "1"), "has 2 boards, from 0"),
        (("--seed", "-1", "--duration", "1"), "--seed -1: must not be negative"),
        (("--spread", "2", "--duration", "1"), "--spread 2: must lie between 0 and 1"),
        (("--effects", "magic", "--duration", "1"), "magic"),
        (("--profile", "morse", "--duration", "1"), "invalid choice: 'morse'"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_options_of_a_run(lab: Any, words: tuple[str, ...], text: str) -> None:
    check(lab, 2, text, *lab.here(*RUN, *words))
    check(lab, 2, text, *RUN, "--fast", *words)


@pytest.mark.parametrize("fast", [(), ("--fast",)])
def test_a_trajectory_that_is_not_there(lab: Any, fast: tuple[str, ...]) -> None:
    check(lab, 1, "/nowhere/t.h5", *lab.here(*RUN, *fast, "--play", "/nowhere/t.h5"))


def test_virtual_time_needs_an_end(lab: Any) -> None:
    check(lab, 2, "--fast: needs --duration or --play, or it would never end", *RUN, "--fast")


def test_virtual_time_on_a_real_link(lab: Any) -> None:
    words = ("run", "--robot", "laas4", "--link", "spi", "--fast", "--duration", "1")
    check(lab, 2, "--fast: time is real on --link spi; use --link mock", *words)


def test_faults_on_a_real_link(lab: Any) -> None:
    words = ("run", "--robot", "laas4", "--link", "spi", "--fault", "drop:rate=0.1")
    check(lab, 2, "--fault: only on --link mock", *words)


@pytest.mark.parametrize("fast", [(), ("--fast",)])
def test_where_the_recording_goes(lab: Any, fast: tuple[str, ...]) -> None:
    words = (*lab.here(*RUN, *fast, "--duration", "1"), "--record")
    there = lab.path / "there.h5"
    there.write_bytes(b"precious")

    check(lab, 2, "is there already and is not overwritten", *words, there)
    check(lab, 2, f"there is no directory {lab.path}/no", *words, lab.path / "no" / "r.h5")
    check(lab, 2, "expected a name that ends in .h5", *words, lab.path / "r.csv")
    check(lab, 2, "there is no directory", *words, there / "r.h5")
    check(lab, 2, "is there already", *words, lab.path / ".." / lab.path.name / "there.h5")
    assert there.read_bytes() == b"precious"


@pytest.mark.parametrize("verb", [RUN[:1], LOOP[:1]])
def test_unknown_robots_and_links(lab: Any, verb: tuple[str, ...]) -> None:
    rest = lab.here("--duration", "1")
    check(lab, 2, "robby", *verb, "--robot", "robby", "--link", "spi", *rest)
    check(lab, 2, "telepathy", *verb, "--robot", "laas4", "--link", "telepathy", *rest)
    check(lab, 2, "--robot", *verb, "--link", "spi", *rest)
    check(lab, 2, "--link", *verb, "--robot", "laas4", *rest)
    damaged = lab.path / "damaged.toml"
    damaged.write_text("name = [")
    check(lab, 2, "damaged.toml", *verb, "--robot", damaged, "--link", "spi", *rest)


@pytest.mark.skipif(os.path.exists("/dev/spidev0.0"), reason="there is a real SPI device")
def test_a_real_link_without_devices(lab: Any) -> None:
    check(lab, 1, "/dev/spidev0.0", *lab.here(*LOOP, "--duration", "1"))
    result = lab.do(*lab.here("run", *LOOP[1:], "--duration", "1", "--record", lab.path / "r.h5"))
    assert result.exit_code == 1
    assert "/dev/spidev0.0" in result.err
    assert "nothing was recorded" in result.err
    assert not list(lab.path.glob("*.h5*"))
    assert lab.processes() == {}


@pytest.mark.parametrize("option", ["--enable", "--home"])
def test_real_motors_need_to_be_armed(lab: Any, option: str) -> None:
    check(lab, 2, "--enable, --home and --play move real motors", *lab.here(*LOOP, option))
    result = lab.do(*lab.here("run", *LOOP[1:], "--duration", "1", option))
    assert result.exit_code == 2
    assert "move real motors" in result.err


def test_faults_of_a_loop_on_a_real_link(lab: Any) -> None:
    check(lab, 2, "--fault: 1 problem", *lab.here(*LOOP, "--fault", "drop:rate=0.1"))


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o770 | 0o001])
def test_a_runtime_directory_that_is_open_to_others(lab: Any, mode: int) -> None:
    lab.runtime.mkdir()
    lab.runtime.chmod(mode)
    text = f"mode {mode:o} lets others command the robot: chmod 750"

    check(lab, 2, text, *lab.here(*LOOP))
    check(lab, 2, text, *lab.here(*RUN, "--duration", "1"))
    check(lab, 2, text, *lab.here("record", "--out", lab.path))


def test_a_runtime_directory_that_is_none(lab: Any) -> None:
    lab.runtime.write_text("")
    check(lab, 2, "--runtime", *lab.here(*LOOP))
    check(lab, 2, "--runtime", *lab.here("record", "--out", lab.path))
    lab.runtime = lab.path / ("x" * 120)
    check(lab, 2, "at most 107", *lab.here(*LOOP))


def test_options_of_the_recorder(lab: Any) -> None:
    record = lab.here("record")
    gone = lab.path / "no" / "out"
    check(lab, 2, "is its disk mounted?", *record, "--out", gone)
    check(lab, 2, "must lie in --out", *record, "--out", lab.path, "--file", gone / "r.h5")
    check(lab, 2, "--rotate-s nan", *record, "--out", lab.path, "--rotate-s", "nan")
    check(lab, 2, "--rotate-s 0:", *record, "--out", lab.path, "--rotate-s", "0")
    check(lab, 2, "--reserve-mb -1", *record, "--out", lab.path, "--reserve-mb", "-1")
    check(lab, 2, "ACTION", "record", "infos", "r.h5")
    check(lab, 1, "cannot be read", "record", "info", lab.path / "no.h5")
    check(lab, 1, "no HDF5 file", "record", "info", lab.robot)


@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (("send",), 2, "ACTION"),
        (("send", "dance"), 2, "invalid choice: 'dance'"),
        (("send", "mode", "flying"), 2, "invalid choice: 'flying'"),
        (("send", "mode", "position", "--target", "a"), 2, "--target"),
        (("send", "record"), 2, "start|stop|mark"),
        (("send", "play"), 2, "FILE"),
        (("status", "--watch", "1000"), 2, "1000"),
        (("status", "--watch"), 2, "needs a terminal"),
        (("status", "--keys", "k"), 2, "is for --connect"),
        (("status", "--connect", "tcp://nowhere"), 2, "tcp://HOST:PORT"),
        (("status", "--connect", "tcp://127.0.0.1:1", "--keys", "/nowhere"), 2, "/nowhere"),
    ],
)
def test_options_of_send_and_status(
    lab: Any, words: tuple[str, ...], exit_code: int, text: str
) -> None:
    check(lab, exit_code, text, *words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--duration", "nan"), "nan s: must be more than 0"),
        (("--plotjuggler", "99999"), "99999, expected 1 to 65535"),
        (("--plotjuggler", "0"), "0, expected 1 to 65535"),
        (("--bind", "udp://127.0.0.1:5555"), "udp://127.0.0.1:5555: expected tcp"),
        (("--keys", "/nowhere"), "/nowhere"),
        (("--on-fault", "panic"), "invalid choice: 'panic'"),
    ],
)
def test_options_of_a_loop(lab: Any, words: tuple[str, ...], text: str) -> None:
    check(lab, 2, text, *lab.here(*LOOP, *words))


@pytest.mark.compiler
def test_a_loop_for_every_network(lab: Any) -> None:
    words = (*lab.mock_words(), *lab.loop_words("--bind", "tcp://*:5555"))

    result = lab.start(*words).wait()

    assert (result.exit_code, result.out) == (2, "")
    assert "is every network of this computer" in result.err
    assert lab.processes() == {}
