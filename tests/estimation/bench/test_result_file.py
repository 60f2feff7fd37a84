"""Bench results survive a file exactly, and files that are none are refused in words."""

import json
import math
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench_examples import make_result
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from daq.recording.whole_files import replace_file
from estimation.bench.result import EstimatedQuantity
from estimation.bench.result_file import FILE_SIZE_MAX, read_result, write_result
from estimation.errors import DatasetError, EstimationError

PLATEAU = msgspec.structs.replace(make_result().plateaus[0], turns=7)
RESULT = make_result(plateaus=(PLATEAU,), warnings=("a wärning",))
PLAIN = msgspec.to_builtins(RESULT)


def problem_of(path: Path, content: bytes | str | dict[str, Any], code: str) -> str:
    """What is wrong with a file of that content, without its name."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with refused(DatasetError, code) as caught:
        read_result(path)
    start, _, problem = str(caught.value).partition(": ")
    assert start == str(path)
    assert len(problem) < 200
    return problem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "joint3.json"


def test_a_result_survives_and_replaces_an_older_one(path: Path) -> None:
    path.write_text("older")
    path.chmod(0o640)

    write_result(path, RESULT)

    assert read_result(path) == read_result(str(path)) == RESULT
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == [path.name]
    assert json.loads(path.read_text())["warnings"] == ["a wärning"]


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    text=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_numbers_and_texts_survive_exactly(
    tmp_path_factory: pytest.TempPathFactory, value: float, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    result = msgspec.structs.replace(RESULT, f_nm=EstimatedQuantity(value=value), joint=text)
    write_result(path, result)
    assert read_result(path) == result


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_say_is_not_written(path: Path, value: float) -> None:
    plateau = msgspec.structs.replace(PLATEAU, window_s=(0.0, value))
    result = msgspec.structs.replace(RESULT, plateaus=(PLATEAU, plateau))
    with refused(EstimationError, "not-finite", path, "plateaus[1].window_s[1]", value):
        write_result(path, result)
    assert not path.exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none" / "joint3.json", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "\0.json", "embedded null byte"),
    ):
        with refused(DatasetError, "cannot-be-written", path, reason):
            write_result(path, RESULT)
    assert os.listdir(tmp_path) == []
    assert not list(tmp_path.parent.glob(".*.part"))


def test_a_file_is_replaced_whole_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("older")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError) as caught:
        replace_file(path, b"newer")
    assert caught.value.errno == 28
    assert path.read_text() == "older"
    assert os.listdir(path.parent) == [path.name]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path, code, reason in (
        (tmp_path / "none.json", "unreadable", "No such file or directory"),
        (tmp_path, "not-a-file", ""),
        (tmp_path / "pipe.json", "not-a-file", ""),
        (tmp_path / "\0.json", "unreadable", "embedded null byte"),
    ):
        with refused(DatasetError, code, path, reason):
            read_result(path)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe{", "schema = 1", '{"format"', "\ufeff{}", '{"a": ' + "[" * 100_000]
)
def test_what_is_no_json(path: Path, content: bytes | str) -> None:
    assert problem_of(path, content, "not-json")


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        "1",
        '"armature bench result"',
        {"format": "something else", "version": 1},
        {"format": 3},
        {**PLAIN, "version": 0},
        {**PLAIN, "version": "1"},
        {**PLAIN, "version": 10**400},
    ],
)
def test_other_json(path: Path, content: str | dict[str, Any]) -> None:
    assert "'armature bench result'" in problem_of(path, content, "not-a-bench-result")


def test_a_newer_version(path: Path) -> None:
    newer = {"format": PLAIN["format"], "version": 2, "joint": {"name": "joint3"}}
    problem = problem_of(path, newer, "newer-version")
    assert " 2," in problem
    assert " 1:" in problem


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"joint": None}, "`$.joint`"),
        ({"b_eq_nms": 2.42e-6}, "`$.b_eq_nms`"),
        ({"f_nm": {"low": 1.0}}, "`$.f_nm`"),
        ({"plateaus": [{}]}, "`$.plateaus[0]`"),
    ],
)
def test_a_damaged_result(path: Path, change: dict[str, Any], place: str) -> None:
    assert place in problem_of(path, PLAIN | change, "not-a-bench-result")


def test_a_missing_key_is_named(path: Path) -> None:
    content = {key: PLAIN[key] for key in PLAIN if key != "rate_hz"}
    assert "`rate_hz`" in problem_of(path, content, "not-a-bench-result")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none(path: Path, number: str) -> None:
    text = json.dumps(PLAIN).replace("31.0", number)
    assert number.lstrip("-") in problem_of(path, text, "not-finite")


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
def test_numbers_too_large(path: Path, number: str) -> None:
    text = json.dumps(PLAIN).replace('"gear_reduction": 31.0', f'"gear_reduction": {number}')
    assert problem_of(path, text, "not-a-bench-result")


def test_an_integer_of_thousands_of_digits(path: Path) -> None:
    text = json.dumps(PLAIN).replace('"turns": 7', f'"turns": {"9" * 9000}')
    assert problem_of(path, text, "not-a-bench-result")


def test_a_file_too_large_is_not_read_whole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with refused(DatasetError, "too-large", FILE_SIZE_MAX):
        read_result(path)
