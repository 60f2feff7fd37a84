from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daq.errors import DeviceBusyError
from daq.links import device_lock
from daq.links.device_lock import DeviceLock, lock_holder, lock_path, programs_using


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(device_lock, "_LOCK_DIRECTORY", tmp_path)
    node = tmp_path / "spidev7.0"
    node.touch()
    return str(node)


def test_the_second_is_refused_and_told_who_has_it(device: str) -> None:
    lock = DeviceLock(device)
    with pytest.raises(DeviceBusyError, match=rf"process {os.getpid()}"):
        DeviceLock(device)
    assert f"process {os.getpid()}" in (lock_holder(device) or "")
    lock.release()
    assert lock_holder(device) is None
    DeviceLock(device).release()


@pytest.mark.system
def test_a_killed_holder_leaves_no_lock(device: str, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from daq.links import device_lock as d;"
        f"d._LOCK_DIRECTORY = pathlib.Path({str(tmp_path)!r}); d.DeviceLock({device!r});"
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(DeviceBusyError, match=rf"process {holder.pid}"):
        DeviceLock(device)
    holder.kill()
    holder.communicate()
    DeviceLock(device).release()


def test_an_emulated_device_of_the_same_name_has_its_own_lock(device: str, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "spidev7.0").touch()
    assert lock_path(device) != lock_path(str(other / "spidev7.0"))


def test_a_lock_file_that_we_may_only_read_still_excludes(device: str) -> None:
    lock_path(device).touch(mode=0o444)
    lock = DeviceLock(device)
    with pytest.raises(DeviceBusyError):
        DeviceLock(device)
    lock.release()


def test_a_symbolic_link_in_the_lock_s_place_is_not_followed(device: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock_path(device).symlink_to(victim)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)) as caught:
        DeviceLock(device)
    assert caught.value.errno == errno.ELOOP
    assert victim.read_text() == "precious"


@pytest.mark.system
def test_programs_with_the_device_open_are_named(tmp_path: Path) -> None:
    device = tmp_path / "ttyX"
    device.touch()
    assert programs_using(str(device)) == []
    code = f"f = open({str(device)!r}); print('open', flush=True); input()"
    user = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    user.stdout.readline()
    link = tmp_path / "link"
    link.symlink_to(device)
    try:
        for name in (device, link):
            (found,) = programs_using(str(name))
            assert f"(process {user.pid})" in found
        with device.open():
            assert not any(str(os.getpid()) in text for text in programs_using(str(device)))
    finally:
        user.communicate("\n")
