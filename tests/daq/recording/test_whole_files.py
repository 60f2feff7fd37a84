"""Files that are written whole or not at all, and text that is harmless in them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from daq.recording import whole_files
from daq.recording.text import plain
from daq.recording.whole_files import create_file, give_name, replace_file


@pytest.fixture(params=[True, False], ids=["hard links", "no hard links"])
def has_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """On a file system with hard links, and on one without, as FAT."""
    if not request.param:

        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(whole_files.os, "link", refuse)
    return bool(request.param)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.usefixtures("has_links")
def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    create_file(tmp_path / "a", b"first")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a", b"second")
    assert content(tmp_path) == {"a": b"first"}


@pytest.mark.usefixtures("has_links")
def test_a_name_that_was_taken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"mine")
    (tmp_path / "a").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        give_name(tmp_path / "part", tmp_path / "a")
    assert content(tmp_path) == {"part": b"mine", "a": b"theirs"}


def test_what_cannot_be_renamed_leaves_no_name_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(whole_files.os, "link", refuse)
    monkeypatch.setattr(whole_files.os, "replace", refuse)
    with pytest.raises(OSError) as caught:
        create_file(tmp_path / "a", b"x")
    assert caught.value.errno == errno.EIO
    assert content(tmp_path) == {}


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o604)
    replace_file(tmp_path / "a", b"new")
    assert content(tmp_path) == {"a": b"new"}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("Größe 1 mm ✓", "Größe 1 mm ✓"),
        ("a\0b\x1b[2J", r"a\x00b\x1b[2J"),
        ("one\ntwo\tthree\u00a0four", "one two three four"),
        ("\udcff.csv", r"\udcff.csv"),
        (Path("a/b"), "a/b"),
    ],
)
def test_text_is_harmless_and_can_be_stored(text: str | Path, harmless: str) -> None:
    assert plain(text) == harmless
    assert plain(text).encode().decode() == harmless
