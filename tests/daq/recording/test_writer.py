"""How a file comes to be: whole or not at all, and always the same."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import msgspec
import numpy as np
import pytest

from daq.recording import (
    RecordingExistsError,
    RecordingFormatError,
    RecordingIncompleteError,
    RecordingWriteError,
    RecordingWriter,
    open_recording,
)
from daq.recording.datasets import CHUNK_ROWS
from daq.samples.columns import ColumnDecoder

Array = np.ndarray[Any, np.dtype[Any]]


def datasets(path: Path) -> dict[str, Any]:
    """Every dataset of a file: its type, shape and values."""
    found: dict[str, Any] = {}

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype != object:
            found[name] = (item.dtype, item.shape, item[()].tobytes())

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def test_the_same_samples_make_the_same_file_however_they_come(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array, write: Callable[..., Path]
) -> None:
    one = write(tmp_path / "one.h5", decoder, samples)
    again = write(tmp_path / "again.h5", decoder, samples)
    assert one.read_bytes() == again.read_bytes()
    many = write(tmp_path / "many.h5", decoder, samples, block=20)
    assert datasets(one) == datasets(many)
    assert len(datasets(one)) > 30


def test_more_samples_than_a_chunk(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array, write: Callable[..., Path]
) -> None:
    long = np.concatenate([samples] * 8)
    long["seq"] = np.arange(len(long)) + 10**12
    assert len(long) > 2 * CHUNK_ROWS
    expected = decoder.decode(long)
    with open_recording(write(tmp_path / "run.h5", decoder, long, block=7001)) as recording:
        for name in ("seq", "t_ns", "board_status", "joint_valid"):
            assert np.array_equal(recording[name][:], expected[name])
        found, values = recording["iq_a"][:], expected["iq_a"]
        assert np.array_equal(found, values.astype(np.float32), equal_nan=True)


def test_nothing_is_ever_overwritten(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array
) -> None:
    path = tmp_path / "run.h5"
    path.write_text("precious")
    with pytest.raises(RecordingExistsError) as refused:
        RecordingWriter(path, decoder.recording_info("x"))
    assert (refused.value.path, refused.value.code) == (path, "exists")
    path.unlink()
    writer = RecordingWriter(path, decoder.recording_info("x"))
    writer.append(decoder.decode(samples))
    path.write_text("precious")  # somebody else was faster
    with pytest.raises(RecordingExistsError):
        writer.close()
    assert path.read_text() == "precious"
    with open_recording(writer.part) as recording:  # nothing is lost either
        assert recording.sample_count == 5000


def test_a_link_that_leads_nowhere_is_a_file_too(tmp_path: Path, decoder: ColumnDecoder) -> None:
    path = tmp_path / "run.h5"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RecordingExistsError):
        RecordingWriter(path, decoder.recording_info("x"))


def test_without_hard_links_it_is_renamed_all_the_same(
    tmp_path: Path,
    decoder: ColumnDecoder,
    samples: Array,
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links on FAT")

    monkeypatch.setattr(os, "link", refuse)
    path = write(tmp_path / "run.h5", decoder, samples)
    assert os.listdir(tmp_path) == ["run.h5"]
    open_recording(path).close()
    writer = RecordingWriter(tmp_path / "other.h5", decoder.recording_info("x"))
    (tmp_path / "other.h5").touch()
    with pytest.raises(RecordingExistsError):
        writer.close()


def test_only_the_part_exists_until_it_is_closed(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array
) -> None:
    path = tmp_path / "run.h5"
    writer = RecordingWriter(path, decoder.recording_info("x"))
    writer.append(decoder.decode(samples))
    assert os.listdir(tmp_path) == ["run.h5.part"]
    writer.close()
    assert os.listdir(tmp_path) == ["run.h5"]
    writer.abandon()
    assert os.listdir(tmp_path) == ["run.h5"]


def test_an_abandoned_one_leaves_nothing(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array
) -> None:
    writer = RecordingWriter(tmp_path / "run.h5", decoder.recording_info("x"))
    writer.append(decoder.decode(samples))
    writer.abandon()
    writer.abandon()
    assert os.listdir(tmp_path) == []


def test_numbers_must_increase(tmp_path: Path, decoder: ColumnDecoder, samples: Array) -> None:
    for parts in ((samples[::-1],), (samples[:100], samples[99:200]), (samples[[5, 5]],)):
        writer = RecordingWriter(tmp_path / "run.h5", decoder.recording_info("x"))
        with pytest.raises(RecordingFormatError) as refused:
            for part in parts:
                writer.append(decoder.decode(part))
        assert refused.value.code == "not-increasing"
        writer.abandon()


def test_a_directory_that_is_not_there(tmp_path: Path, decoder: ColumnDecoder) -> None:
    with pytest.raises(RecordingWriteError) as caught:
        RecordingWriter(tmp_path / "gone" / "run.h5", decoder.recording_info("x"))
    assert caught.value.errno == errno.ENOENT


def test_a_file_that_reads_back_differently_is_not_published(
    tmp_path: Path, decoder: ColumnDecoder, samples: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RecordingWriter(tmp_path / "run.h5", decoder.recording_info("x"))
    writer.append(decoder.decode(samples))
    pwrite = os.pwrite

    def forget(descriptor: int, data: Any, offset: int) -> int:
        """A disk that loses what it was given."""
        return pwrite(descriptor, bytes(len(data)) if len(data) > 4000 else data, offset)

    monkeypatch.setattr(os, "pwrite", forget)
    with pytest.raises(RecordingFormatError) as refused:
        writer.close()
    assert refused.value.path == writer.part
    assert os.listdir(tmp_path) == ["run.h5.part"]


# --- in a process of its own ----------------------------------------------------------------------

PROLOGUE = """
    import os, resource, sys
    from pathlib import Path
    import numpy as np
    from daq.samples.batches import decode_session
    from daq.samples.columns import ColumnDecoder
    from daq.recording import *

    path = Path(sys.argv[1])
    decoder = ColumnDecoder(decode_session(Path(sys.argv[2]).read_bytes()))
    samples = np.load(sys.argv[3])
    columns = decoder.decode(samples)

    def write():
        writer = RecordingWriter(path, decoder.recording_info("x"))
        try:
            for turn in range(8):
                writer.append({**columns, "seq": columns["seq"] + turn * len(samples)})
            writer.close()
        except BaseException:
            writer.abandon()
            raise
"""


@pytest.fixture
def run(
    processes: None, tmp_path: Path, decoder: ColumnDecoder, samples: Array
) -> Callable[..., Any]:
    (tmp_path / "session").write_bytes(msgspec.json.encode(decoder.session))
    np.save(tmp_path / "samples.npy", samples)
    (tmp_path / "out").mkdir()

    def start(code: str) -> subprocess.Popen[str]:
        script = textwrap.dedent(PROLOGUE) + textwrap.dedent(code)
        inputs = [tmp_path / "out" / "run.h5", tmp_path / "session", tmp_path / "samples.npy"]
        command = [sys.executable, "-W", "error", "-c", script, *map(str, inputs)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def test_a_full_disk_is_an_error_and_not_a_crash(run: Callable[..., Any], tmp_path: Path) -> None:
    """HDF5 by itself crashes when it cannot write while it closes a file."""
    process = run(
        """
        for limit in (3_000, 60_000, 700_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                write()
            except RecordingWriteError as error:
                print(error.errno, os.listdir(path.parent))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        write()
        """
    )
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert out.splitlines() == [f"{errno.EFBIG} []"] * 3
    with open_recording(tmp_path / "out" / "run.h5") as recording:
        assert recording.sample_count == 40_000


def test_a_killed_writer_leaves_only_a_part_and_does_not_stand_in_the_way(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    process = run(
        """
        writer = RecordingWriter(path, decoder.recording_info("x"))
        for turn in range(8):
            writer.append({**columns, "seq": columns["seq"] + turn * len(samples)})
        print("written", flush=True)
        sys.stdin.read()
        """
    )
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert os.listdir(tmp_path / "out") == ["run.h5.part"]
    with pytest.raises((RecordingFormatError, RecordingIncompleteError)):
        open_recording(tmp_path / "out" / "run.h5.part")
    again = run("write()")
    _, err = again.communicate(timeout=100)
    assert again.returncode == 0, err
    assert os.listdir(tmp_path / "out") == ["run.h5"]


def test_a_writer_forgotten_at_the_end_of_a_program(run: Callable[..., Any]) -> None:
    process = run(
        """
        writer = RecordingWriter(path, decoder.recording_info("x"))
        writer.append(columns)
        sys.exit(7)
        """
    )
    _, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (7, "")
