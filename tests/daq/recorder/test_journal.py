from __future__ import annotations

import errno
import io
import os
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acceptance import IS_LONG
from hypothesis import given
from hypothesis import strategies as st

from daq.recorder.contents import KIND_PART, End, JournalBusyError, JournalError, Part, Scan
from daq.recorder.journal import Journal, is_journal
from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    Header,
    encode_header,
    frame_record,
    read_record,
)

PART = Part(number=1, name="run", part=1, stem="run.h5", first_seq=0, first_t_ns=0)


def header(seq: int, count: int = 20) -> Header:
    return Header(
        schema=1, session="s", fingerprint="f", seq=seq, count=count, t_ns=seq, utc_ns=seq
    )


def write(path: Path, batches: int, payload_size: int = 3000) -> list[int]:
    """Writes a journal; returns where each record ends."""
    journal = Journal.create(path, b"{}", PART)
    ends = [journal.written.size]
    for number in range(batches):
        batch = header(number * 20)
        payload = bytes([number % 251]) * payload_size
        journal.append(batch, encode_header(batch), payload)
        ends.append(journal.written.size)
    journal.sync()
    journal.close()
    return ends


def scan(data: bytes) -> Scan:
    scanned = Scan(io.BytesIO(data).read)
    scanned.records = [r for r in scanned if r.kind == KIND_BATCH]  # type: ignore[attr-defined]
    return scanned


@pytest.mark.acceptance
def test_cut_anywhere_in_its_last_64_kb_it_gives_every_complete_batch(tmp_path: Path) -> None:
    path = tmp_path / "run.h5.journal"
    ends = write(path, 18, payload_size=4200)
    data = path.read_bytes()
    assert len(data) > 64 << 10
    sizes = range(len(data) - (64 << 10), len(data) + 1)
    if not IS_LONG:  # every byte around the ends of records, and some of the others
        near = {end + offset for end in ends for offset in range(-30, 30)}
        sizes = sorted({*sizes[::50], sizes[-1], *near.intersection(sizes)})
    for size in sizes:
        complete = bisect_right(ends, size) - 1
        scanned = Scan(io.BytesIO(data[:size]).read)
        assert [r.payload[0] for r in scanned if r.kind == KIND_BATCH] == list(range(complete))
        assert (scanned.end, scanned.torn) == (ends[complete], size - ends[complete])


@pytest.mark.parametrize("offset", [0, 1, 3, 19, 20, 21, 200, 1500, -1])
def test_continued_after_a_cut_it_holds_every_complete_batch(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "run.h5.journal"
    ends = write(path, 12)
    os.truncate(path, ends[8] + offset)
    complete = 8 if offset >= 0 else 7

    journal = Journal.open(path)
    assert (journal.written.samples, journal.next_seq) == (20 * complete, 20 * complete)
    batch = header(20 * complete)
    journal.append(batch, encode_header(batch), b"new")
    journal.finish(End(next_seq=20 * complete + 20))
    journal.close()

    scanned = scan(path.read_bytes())
    assert [r.payload[:1] for r in scanned.records] == [  # type: ignore[attr-defined]
        *(bytes([n]) for n in range(complete)),
        b"n",
    ]
    assert (scanned.skipped, scanned.torn) == (0, 0)


@given(st.data())
def test_damage_anywhere_costs_only_the_records_that_it_hits(data: st.DataObject) -> None:
    records = [frame_record(KIND_SESSION, b"{}")]
    sizes = data.draw(st.lists(st.integers(0, 5000), min_size=1, max_size=12))
    for number, size in enumerate(sizes):
        records.append(frame_record(KIND_BATCH, encode_header(header(number)), b"A" * size))
    whole = bytearray(b"".join(records))
    place = data.draw(st.integers(0, len(whole) - 1))
    junk = data.draw(st.binary(max_size=60) | st.just(b"ARMJ") | st.just(records[0][:20]))
    junk = junk[: len(whole) - place]
    before = bytes(whole[place : place + len(junk)])
    whole[place : place + len(junk)] = junk

    found = scan(bytes(whole))

    hit, start = set(), 0
    for number, record in enumerate(records):
        end = start + len(record)
        if place < end and place + len(junk) > start and junk != before:
            hit.add(number)
        start = end
    sound = [record for number, record in enumerate(records) if number and number not in hit]
    texts = [frame_record(r.kind, r.header, r.payload) for r in found.records]  # type: ignore
    assert all(record in texts for record in sound)
    assert found.end + found.torn == len(whole)


@given(st.binary(max_size=3000))
def test_any_bytes_can_be_scanned(data: bytes) -> None:
    scanned = scan(data)
    assert scanned.end + scanned.torn == len(data)


def test_records_across_the_borders_of_reading_are_whole() -> None:
    records = [frame_record(KIND_BATCH, b"{}", bytes(700_001)) for _ in range(7)]
    data = b"".join(records)
    source = io.BytesIO(data)
    scanned = Scan(lambda _size: source.read(4096))
    assert sum(1 for _ in scanned) == 7
    assert (scanned.end, scanned.skipped) == (len(data), 0)


def test_only_one_may_write_it(tmp_path: Path) -> None:
    path = tmp_path / "run.h5.journal"
    journal = Journal.create(path, b"{}", PART)
    with pytest.raises(JournalBusyError) as refused:
        Journal.open(path)
    assert (refused.value.path, refused.value.code) == (path, "in-use")
    with pytest.raises(FileExistsError):
        Journal.create(path, b"{}", PART)
    journal.close()
    Journal.open(path).close()


@pytest.mark.parametrize("content", [b"", b"no journal at all", b"ARMJ" + bytes(50)])
def test_what_is_no_journal_is_not_continued(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.journal"
    path.write_bytes(content)
    with pytest.raises(JournalError) as refused:
        Journal.open(path)
    assert (refused.value.path, refused.value.code) == (path, "not-a-journal")
    assert path.read_bytes() == content


def test_a_failed_write_leaves_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path / "j", b"{}", PART)
    good = journal.path.read_bytes()
    real: Callable[..., Any] = os.pwrite

    def half(file: int, data: memoryview, place: int) -> int:
        if len(data) < 1000:
            raise OSError(28, "No space left on device")
        return int(real(file, data[:1000], place))

    monkeypatch.setattr(os, "pwrite", half)
    batch = header(0)
    with pytest.raises(OSError) as failed:
        journal.append(batch, encode_header(batch), bytes(5500))
    assert failed.value.errno == errno.ENOSPC
    assert journal.path.read_bytes() == good
    assert journal.written.samples == 0


def test_a_failed_sync_goes_back_to_what_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops what it could not write and says so once: it must be written again."""
    journal = Journal.create(tmp_path / "j", b"{}", PART)
    for seq in (0, 20):
        batch = header(seq)
        journal.append(batch, encode_header(batch), bytes(100))
        if seq == 0:
            journal.sync()

    def fail(_file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OSError) as failed:
        journal.sync()
    assert failed.value.errno == errno.EIO
    assert (journal.next_seq, journal.written.samples) == (20, 20)
    assert journal.path.stat().st_size == journal.written.size


def test_a_removed_journal_can_be_put_back(tmp_path: Path) -> None:
    path = tmp_path / "run.h5.journal"
    journal = Journal.create(path, b"{}", PART)
    content = path.read_bytes()
    assert journal.is_in_place()
    path.unlink()
    assert not journal.is_in_place()
    journal.put_back()
    assert journal.is_in_place() and path.read_bytes() == content
    with pytest.raises(JournalBusyError):
        Journal.open(path)


def test_only_what_begins_like_a_journal_is_one(tmp_path: Path) -> None:
    for content, expected in ((b"", True), (b"AR", True), (b"ARMJxx", True), (b"text", False)):
        path = tmp_path / "x"
        path.write_bytes(content)
        file = os.open(path, os.O_RDONLY)
        assert is_journal(file) is expected
        os.close(file)
    assert KIND_PART not in (KIND_BATCH, KIND_SESSION)


@pytest.mark.parametrize("place", range(20))
def test_the_checksum_covers_kind_and_lengths(place: int) -> None:
    record = bytearray(frame_record(KIND_BATCH, b"ab", b"cd"))
    record[place] ^= 1
    assert read_record(bytes(record) + bytes(300)) is None


def test_where_header_ends_is_covered() -> None:
    record = bytearray(frame_record(KIND_BATCH, b"ab", b"cd"))
    record[8:16] = (3).to_bytes(4, "little") + (1).to_bytes(4, "little")
    assert read_record(bytes(record)) is None


def test_a_record_that_is_not_understood_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "run.h5.journal"
    ends = write(path, 4)
    data, strange = path.read_bytes(), frame_record(KIND_BATCH, b"{}", b"x")
    path.write_bytes(data[: ends[2]] + strange + data[ends[2] :])
    journal = Journal.open(path)
    assert journal.written.samples == 80
    journal.close()
    journal.close()  # harmless: its number may be another file's
