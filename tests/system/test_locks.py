"""Locks on files: who holds them, and that nobody else can."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from daq.system.locks import FileLock, Holder, LockHeldError, hold, holder_of, is_held


def test_the_second_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert holder_of(path) is None
    with FileLock(path, program="first"):
        with pytest.raises(LockHeldError) as caught:
            FileLock(path)
        assert caught.value.holder == holder_of(path) == Holder(str(os.getpid()), "first")
    assert holder_of(path) is None
    FileLock(path).release()


@pytest.mark.parametrize("content", [b"", b"someone", b"\xff\xfe"])
def test_a_holder_that_does_not_say_who_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    path.write_bytes(content)
    assert holder_of(path) == Holder("unknown", "")
    lock.release()


def test_a_released_lock_is_free_although_a_child_has_the_file(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    lock.release()
    FileLock(tmp_path / "lock").release()
    os.close(theirs)
    os.waitpid(child, 0)


def test_looking_takes_nothing(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert not is_held(second)
    assert hold(first)
    assert is_held(second)
    assert not hold(second)
    os.close(first)
    assert not is_held(second)
    os.close(second)


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    for is_public in (False, True):
        with pytest.raises(OSError, match=os.strerror(errno.ELOOP)) as caught:
            FileLock(tmp_path / "lock", is_public=is_public)
        assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "victim").read_text() == "precious"
