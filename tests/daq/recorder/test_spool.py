from __future__ import annotations

import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import make_session

from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    encode_session,
    frame_record,
)
from daq.samples.spool import SpoolError, SpoolReader, SpoolWriter

SESSION = make_session(robot_text="name = 'x'\n" * 2000)
SESSION_RECORD = frame_record(KIND_SESSION, encode_session(SESSION))


def batch(seq: int, size: int = 100, header: bytes = b"{}") -> bytes:
    return frame_record(KIND_BATCH, header, struct.pack("<Q", seq) + bytes(size))


def sequence(reader: SpoolReader, since: int = 0) -> list[int]:
    return [struct.unpack_from("<Q", r.payload)[0] for r in reader.read_from(since)]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SpoolWriter]:
    writer = SpoolWriter(tmp_path / "s.ring", SESSION_RECORD, payload_max=200, batches=10)
    yield writer
    writer.close(unlink=False)


def test_what_was_written_is_read(tmp_path: Path, writer: SpoolWriter) -> None:
    for seq in range(0, 60, 20):
        writer.write(batch(seq))
    with SpoolReader(tmp_path / "s.ring") as reader:
        assert reader.session == SESSION
        assert sequence(reader) == [0, 20, 40]
        assert sequence(reader, 20) == [20, 40]
        # In the middle of a batch: that batch too.
        assert sequence(reader, 25) == [20, 40]
        assert sequence(reader, 1000) == [40]
        writer.write(batch(60))
        assert sequence(reader, 60) == [60]
    assert (tmp_path / "s.ring").stat().st_mode & 0o777 == 0o640


def test_the_oldest_make_way(tmp_path: Path, writer: SpoolWriter) -> None:
    for seq in range(0, 25 * 20, 20):
        writer.write(batch(seq))
    with SpoolReader(tmp_path / "s.ring") as reader:
        assert sequence(reader) == list(range(15 * 20, 25 * 20, 20))


def test_a_large_one_takes_several_slots(tmp_path: Path, writer: SpoolWriter) -> None:
    for number in range(7):
        writer.write(batch(20 * number))
    writer.write(batch(140, header=b" " * 5000))  # does not fit at the end: begins in front
    writer.write(batch(160))
    with SpoolReader(tmp_path / "s.ring") as reader:
        assert sequence(reader)[-2:] == [140, 160]
        (large,) = [r for r in reader.read_from(140) if len(r.header) == 5000]
        assert large.header == b" " * 5000
    assert writer.dropped == 0


def test_what_fits_nowhere_is_counted(tmp_path: Path, writer: SpoolWriter) -> None:
    writer.write(batch(0))
    writer.write(batch(20, size=1 << 20))
    writer.write(frame_record(KIND_BATCH, b"{}"))
    writer.write(batch(40))
    assert writer.dropped == 2
    with SpoolReader(tmp_path / "s.ring") as reader:
        assert sequence(reader) == [0, 40]


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=60))
def test_the_newest_are_always_there(tmp_path_factory: pytest.TempPathFactory, sizes: Any) -> None:
    path = tmp_path_factory.mktemp("spool") / "s.ring"
    writer = SpoolWriter(path, SESSION_RECORD, payload_max=500, batches=12)
    for number, size in enumerate(sizes):
        writer.write(batch(20 * number, size=size))
    with SpoolReader(path) as reader:
        found = sequence(reader)
    assert found == sorted(set(found))
    newest = list(range(20 * max(len(sizes) - 2, 0), 20 * len(sizes), 20))
    assert found[-len(newest) :] == newest
    writer.close(unlink=True)
    assert not path.exists()


def test_a_damaged_slot_is_not_there(tmp_path: Path, writer: SpoolWriter) -> None:
    for seq in (0, 20, 40):
        writer.write(batch(seq))
    path = tmp_path / "s.ring"
    data = path.read_bytes()
    place = data.index(struct.pack("<Q", 20) + bytes(100))
    with path.open("r+b") as file:
        file.seek(place + 50)
        file.write(b"x")
    with SpoolReader(path) as reader:
        assert sequence(reader) == [0, 40]


def test_readers_survive_being_overtaken(tmp_path: Path, writer: SpoolWriter) -> None:
    is_over = threading.Event()

    def write() -> None:
        seq = 0
        while not is_over.is_set():
            writer.write(batch(seq, size=150))
            seq += 20

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with SpoolReader(tmp_path / "s.ring") as reader:
            for _ in range(300):
                found = sequence(reader)
                assert found == sorted(set(found))
    finally:
        is_over.set()
        thread.join()


def test_it_says_whether_its_writer_lives(tmp_path: Path, writer: SpoolWriter) -> None:
    with SpoolReader(tmp_path / "s.ring") as reader:
        assert reader.is_live()
        assert reader.is_live()
        writer.close(unlink=False)
        assert not reader.is_live()


@pytest.mark.parametrize("content", [b"", b"ARMSPL01", b"something else" * 1000])
def test_what_is_no_spool_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ring"
    path.write_bytes(content)
    with pytest.raises(SpoolError) as refused:
        SpoolReader(path)
    assert (refused.value.path, refused.value.code) == (path, "not-a-spool")
    with pytest.raises(SpoolError) as refused:
        SpoolReader(tmp_path / "none")
    assert refused.value.code == "unreadable"
    assert isinstance(refused.value.__cause__, FileNotFoundError)


def test_a_cut_spool_is_refused(tmp_path: Path, writer: SpoolWriter) -> None:
    path = tmp_path / "s.ring"
    data = path.read_bytes()
    (tmp_path / "cut.ring").write_bytes(data[:-1])
    with pytest.raises(SpoolError) as refused:
        SpoolReader(tmp_path / "cut.ring")
    assert refused.value.code == "cut"


@pytest.mark.system
def test_no_room_is_found_at_the_start(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system")
    try:
        with pytest.raises(SpoolError) as refused:
            SpoolWriter(disk / "s.ring", SESSION_RECORD, payload_max=4000)
        assert refused.value.code == "no-room"
        assert "15 MB" in str(refused.value)
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", disk], check=True)
