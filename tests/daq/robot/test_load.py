"""Finding and reading robot files, and every way in which that fails."""

import errno
import os
from pathlib import Path

import pytest

from daq.errors import ConfigError
from daq.robot import load_robot, parse_robot, robot_text, shipped_robots
from daq.robot.load import FILE_SIZE_MAX


def problem_of(name_or_path: str | Path, code: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_robot(str(name_or_path))
    assert caught.value.code == code
    assert caught.value.source == ("robot" if code == "no-such-robot" else str(name_or_path))
    (problem,) = caught.value.problems
    return problem


def test_shipped_robots_load_by_name_and_carry_it() -> None:
    assert {"bench1", "laas4"} <= set(shipped_robots())
    assert [load_robot(name).name for name in shipped_robots()] == list(shipped_robots())


def test_a_file_loads_by_path_and_its_text_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = robot_text("laas4").replace("\n", "\r\n") + "# µ"
    path.write_bytes(text.encode())
    assert robot_text(str(path)) == text
    assert load_robot(str(path)) == load_robot("laas4") == parse_robot(text, "text")


@pytest.mark.parametrize("name", ["las4", "", "x" * 1000, "\0", "laas4\n"])
def test_an_unknown_name_lists_the_shipped_robots(name: str) -> None:
    problem = problem_of(name, "no-such-robot")
    assert ", ".join(shipped_robots()) in problem
    assert len(problem) < 300


def test_an_unknown_name_suggests_a_close_one() -> None:
    assert "laas4?" in problem_of("las4", "no-such-robot")


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert os.strerror(errno.ENOENT) in problem_of(path, "unreadable")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert os.strerror(errno.EISDIR) in problem_of(tmp_path, "unreadable")


def test_an_impossible_path() -> None:
    problem_of("a/\0.toml", "unreadable")


def test_not_utf_8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes('schema = 1\n\nname = "µ"\n'.encode("latin-1"))
    problem = problem_of(path, "not-utf-8")
    assert "0xb5" in problem and "line 3" in problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("schema = 1\nname = laas4\n", "line 2, column 8"),
        ("schema = 1\nschema = 2\n", "line 2, column 11"),
        ("schema = 1\njoints = [", "line 2"),
    ],
)
def test_not_toml_names_the_line(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    assert place in problem_of(path, "not-toml")


def test_a_file_too_large_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert f"{FILE_SIZE_MAX} bytes" in problem_of(path, "too-large")


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 100_000,
        "a" + ".a" * 400_000 + " = 1",  # took all memory before it was bounded
        "schema = " + "9" * 5000,
        "schema = 0x" + "f" * 9000,
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_robot(text, "hostile.toml")
    assert len(str(caught.value)) < 1500
