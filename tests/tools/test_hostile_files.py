"""Files that are damaged, endless, no files at all, or cannot be written: always a sentence."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daq.motion.trajectory_file import write_trajectory
from daq.recording import RecordingFormatError, open_recording
from daq.recording.tables.errors import TableError
from daq.recording.tables.text import read_text
from estimation.errors import DatasetError
from estimation.importing.files import read_array_file

Armature = Callable[..., Any]


@contextmanager
def no_room(size: int = 0) -> Iterator[None]:
    """No file may become larger than this, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_pipe_is_no_recording(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    with pytest.raises(RecordingFormatError) as caught:
        open_recording(tmp_path / "pipe.h5")
    assert caught.value.path == tmp_path / "pipe.h5"


def test_a_pipe_is_no_urdf(armature: Armature, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.urdf")
    out = tmp_path / "arm.toml"
    result = armature("robot", "from-urdf", str(tmp_path / "pipe.urdf"), "--out", str(out))
    assert result.exit_code == 2
    assert "pipe.urdf" in result.err


def test_no_half_urdf_on_a_full_disk(armature: Armature, tmp_path: Path) -> None:
    out = tmp_path / "arm.urdf"
    with no_room():
        result = armature("robot", "to-urdf", "laas4", "--out", str(out))
    assert result.exit_code == 1
    assert f"{out}: " in result.err
    assert os.strerror(errno.EFBIG) in result.err
    assert list(tmp_path.iterdir()) == []


def test_no_half_trajectory_on_a_full_disk(tmp_path: Path) -> None:
    rows = np.arange(1000.0)
    path = tmp_path / "traj.h5"
    with no_room(), pytest.raises(OSError, match=f"{path}: .*{os.strerror(errno.EFBIG)}$"):
        write_trajectory(path, t_s=rows, q_rad=rows[:, None], dq_rad_s=rows[:, None])
    assert list(tmp_path.iterdir()) == []


def test_too_many_arrays(tmp_path: Path) -> None:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(10_001):
            file.create_group(f"g{number}", track_order=False)
    with pytest.raises(DatasetError, match=f"{path}.* 10000 "):
        read_array_file(path)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1," * 600_000, ["1000000"]),
        ("1," * 2000 + "\n", ["2001", "1000"]),
        ("1 " * 2000 + "\n", ["2000", "1000"]),
        ("t,q\n" + "1," * 600_000, ["1000000"]),
    ],
)
def test_endless_lines(tmp_path: Path, text: str, numbers: list[str]) -> None:
    path = tmp_path / "long.csv"
    path.write_text(text)
    with pytest.raises(TableError) as caught:
        read_text(path)
    assert re.findall(r"[0-9]+", caught.value.problem) == numbers


def test_many_comments(tmp_path: Path) -> None:
    path = tmp_path / "talk.csv"
    path.write_text("# talk\n" * 100_000 + "t,q1\n\n# more\ns,deg\n1,2\n3,4\n")
    values, names = read_text(path)
    assert names == ("t [s]", "q1 [deg]")
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_long_doubles_may_overflow(tmp_path: Path) -> None:
    path = tmp_path / "long.npz"
    np.savez(path, q=np.array([np.longdouble("1e4000"), 1, 2]))
    assert read_array_file(path).fields["q"].ravel().tolist() == [np.inf, 1.0, 2.0]


@pytest.mark.parametrize("name", ["f.h5", "f.mat"])
def test_chunks_that_declare_too_much(tmp_path: Path, name: str) -> None:
    def written(chunk: int, count: int = 1) -> Path:
        with h5py.File(tmp_path / name, "w") as file:
            for number in range(count):
                file.create_dataset(f"q{number}", (2000,), "f4", maxshape=(None,), chunks=(chunk,))
        return tmp_path / name

    with pytest.raises(DatasetError, match=rf"{name}.* [0-9]+ .* 536870912\b"):
        read_array_file(written(64 << 18, count=5))


def test_large_chunks_of_honest_files(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=200_000)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, more in {"q": {}, "p": {"shuffle": True, "fletcher32": True}}.items():
            file.create_dataset(name, data=values, chunks=(150_000,), compression="gzip", **more)
    for array in read_array_file(tmp_path / "f.h5").fields.values():
        np.testing.assert_array_equal(array[:, 0], values)


@pytest.mark.parametrize("seed", ["-1", str(1 << 63), "9" * 30])
@pytest.mark.parametrize(
    "words",
    [
        ("excite", "--robot", "laas4", "--out", "x.h5"),
        ("demo", "--out", "demo"),
        ("mock", "truth", "--robot", "laas4"),
        ("identify", "x.h5"),
    ],
)
def test_seeds_that_no_file_can_hold(armature: Armature, words: tuple[str, ...], seed: str) -> None:
    result = armature(*words, "--seed", seed)
    assert result.exit_code == 2
    assert f"--seed {seed}: " in result.err
    assert "9223372036854775807" in result.err


def test_import_needs_a_name(armature: Armature) -> None:
    result = armature("import", "a.csv", "--robot", "bench1", "--out", "")
    assert result.exit_code == 2
    assert "--out" in result.err
