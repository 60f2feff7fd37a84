"""Real disks that are full or read-only. They are small file systems in memory."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daq.recorder.disk import explain
from daq.recording import open_recording

pytestmark = pytest.mark.system

MakeRig = Callable[..., Any]


def sentence(directory: Path, number: int) -> str:
    """What is said of a directory that cannot be written for this reason."""
    return explain(directory, OSError(number, os.strerror(number)))


def mount(*options: str | Path) -> bool:
    return not subprocess.run(["mount", *options], capture_output=True, check=False).returncode


@pytest.fixture
def small(place: Any) -> Iterator[Path]:
    """The directory of the recordings is a disk of 1 MB."""
    if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", place.out):
        pytest.skip("may not mount a file system")
    yield place.out
    subprocess.run(["umount", "-l", place.out], check=True)


def test_a_full_disk_costs_nothing_when_room_is_made_in_time(
    place: Any, small: Path, make_rig: MakeRig
) -> None:
    (small / "ballast").write_bytes(bytes(900_000))
    rig = make_rig()
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 100)
    report = rig.reports[-1]
    assert (report.state, report.free_bytes < 20_000) == ("waiting", True)
    assert report.problem.startswith(sentence(small, errno.ENOSPC))
    assert 0 < report.written < 2000
    (small / "ballast").unlink()
    rig.tick(recorder, 2.0)
    assert rig.reports[-1].state == "recording"
    recorder.finish()
    assert place.samples().tolist() == list(range(2000))
    assert not place.missing()


def test_no_room_for_the_conversion_leaves_the_journal(
    place: Any, small: Path, make_rig: MakeRig
) -> None:
    (small / "ballast").write_bytes(bytes(700_000))
    rig = make_rig(samples=1000)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 50)
    with (small / "more").open("wb") as file:
        free = recorder.status().free_bytes
        file.write(bytes(free - 8192))
    recorder.finish()
    (result,) = recorder._converter.results
    assert result.code == "not-writable"
    assert os.strerror(errno.ENOSPC) in result.problem
    assert [path.name for path in place.journals] == ["run.h5.journal"]
    (small / "ballast").unlink()
    recorder._converter.start(place.journals[0])
    assert place.samples().tolist() == list(range(1000))
    assert sorted(path.name for path in small.iterdir()) == ["more", "run.h5"]


def test_a_read_only_disk_is_waited_for(place: Any, small: Path, make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.make_spool()
    recorder = rig.make_recorder()
    assert mount("-o", "remount,ro", small)
    rig.feed(recorder, 0, 50)
    report = rig.reports[-1]
    assert report.state == "waiting"
    assert report.problem == sentence(small, errno.EROFS)
    assert mount("-o", "remount,rw", small)
    rig.feed(recorder, 50, 100)
    rig.tick(recorder, 1.0)
    recorder.finish()
    with open_recording(place.out / "run.h5") as recording:
        assert recording["seq"][:].tolist() == list(range(2000))


def test_a_disk_that_is_unmounted_and_mounted_again_goes_on(
    place: Any, small: Path, make_rig: MakeRig
) -> None:
    """The mount point is there, but it is not the disk that was recorded on."""
    rig = make_rig()
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 30)
    image = place.out.parent / "image"
    image.mkdir()
    assert mount("--bind", small, image)
    subprocess.run(["umount", "-l", small], check=True)
    rig.feed(recorder, 30, 60)
    assert mount("--bind", image, small)
    rig.feed(recorder, 60, 100)
    recorder.finish()
    subprocess.run(["umount", "-l", image], check=True)
    assert place.samples().tolist() == list(range(2000))
