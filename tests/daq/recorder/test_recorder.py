"""The recorder in this process, fed by hand."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from daq.recorder.contents import read_contents
from daq.recorder.converters import ProcessConverter, conversion_command
from daq.recorder.disk import explain
from daq.recorder.journal import Journal
from daq.recorder.spools import Spools
from daq.recording import open_recording
from daq.samples.batches import BatchError, decode_header, encode_header

MakeRig = Callable[..., Any]


def sentence(directory: Path, number: int) -> str:
    """What is said of a directory that cannot be written for this reason."""
    return explain(directory, OSError(number, os.strerror(number)))


@contextmanager
def failing_disk(monkeypatch: pytest.MonkeyPatch, number: int, *calls: str) -> Iterator[None]:
    def fail(*_arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        for call in calls or ("pwrite", "write"):
            patch.setattr(os, call, fail)
        yield


def journaled(path: Path) -> Any:
    with path.open("rb") as file:
        return read_contents(file.fileno(), path)


def test_every_sample_and_event_is_recorded(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig(robot="laas4", samples=3010)  # the last batch is short
    recorder = rig.make_recorder(file_name="mine.h5")
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 200)
    recorder.finish()

    assert place.recordings == [place.out / "mine.h5"] and not place.journals
    with open_recording(place.out / "mine.h5") as recording:
        assert recording["seq"][:].tolist() == list(range(3010))
        assert recording.name == "run"
        assert [event.text for event in recording.events] == [
            "at 0",
            "at 1000",
            "at 2000",
            "at 3000",
        ]
        at_ns, _ = recording.clock
        assert at_ns.tolist() == [20_000_000, 1_020_000_000, 2_020_000_000, 3_010_000_000]
        assert not recording.gaps
    assert [r.samples for r in recorder._converter.results] == [3010]


def test_without_a_spool_what_was_missed_is_a_gap(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 2, 10)
    rig.feed(recorder, 13, 20)
    rig.feed(recorder, 5, 15)  # late repetitions
    recorder.finish()
    with open_recording(place.out / "run.h5") as recording:
        assert [(gap.first_seq, gap.count) for gap in recording.gaps] == [(0, 40), (200, 60)]
        expected = [*range(40, 200), *range(260, 400)]
        assert recording["seq"][:].tolist() == expected


def test_with_a_spool_nothing_is_missed(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 3, is_heard=False)
    rig.feed(recorder, 3, 10)  # the session is in the spool
    rig.feed(recorder, 10, 50, is_heard=False)
    rig.feed(recorder, 50, 60)
    rig.feed(recorder, 60, 70, is_heard=False)  # and then silence
    rig.tick(recorder, 1.0)
    assert recorder.status().next_seq == 1400
    recorder.finish()
    assert place.samples().tolist() == list(range(1400))
    assert not place.missing()


def test_what_the_spool_has_lost_is_a_gap(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.make_spool(batches=10)
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 5)
    rig.feed(recorder, 5, 45, is_heard=False)
    rig.feed(recorder, 45, 50)
    recorder.finish()
    # The batch that was heard had already taken the place of another.
    assert place.missing() == list(range(100, 720))
    assert place.samples().tolist() == [*range(100), *range(720, 1000)]


def test_recordings_switch_with_the_headers(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig(recordings=((0, None), (100, 1), (300, 2), (500, None), (900, 3)))
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 4)
    rig.feed(recorder, 4, 30, is_heard=False)  # begins and ends while nobody listens
    rig.feed(recorder, 30, 100)
    recorder.finish()
    assert [path.name for path in place.recordings] == ["run.h5", "run_2.h5", "run_3.h5"]
    for path, (first, last) in zip(
        place.recordings, ((100, 300), (300, 500), (900, 2000)), strict=True
    ):
        with open_recording(path) as recording:
            assert recording["seq"][:].tolist() == list(range(first, last))
            assert not recording.gaps


@pytest.mark.parametrize("killed_at", [1, 7, 40, 60])
def test_another_recorder_goes_on_where_one_was_killed(
    place: Any, make_rig: MakeRig, killed_at: int
) -> None:
    rig = make_rig(recordings=((0, 1), (1000, None), (1400, 2)))
    rig.make_spool()
    first = rig.make_recorder()
    rig.feed(first, 0, killed_at)
    if first.files.journal is not None:
        first.files.journal.close()  # as the kernel does it
    second = rig.make_recorder()
    rig.feed(second, killed_at, 90, is_heard=False)
    rig.feed(second, 90, 100)
    second.finish()
    assert [path.name for path in place.recordings] == ["run.h5", "run_2.h5"]
    assert place.samples().tolist() == [*range(1000), *range(1400, 2000)]
    assert not place.missing()


def test_a_recorder_that_is_started_again_does_not_record_twice(
    place: Any, make_rig: MakeRig
) -> None:
    rig = make_rig()
    rig.make_spool()
    first = rig.make_recorder()
    rig.feed(first, 0, 50)
    first.finish()
    second = rig.make_recorder()
    rig.feed(second, 50, 100)
    second.finish()
    assert [path.name for path in place.recordings] == ["run.h5", "run_2.h5"]
    assert place.samples().tolist() == list(range(2000))
    assert not place.missing()


def test_a_new_session_ends_the_old_one(place: Any, make_rig: MakeRig) -> None:
    old, new = make_rig(session="s1"), make_rig(session="s2", name="")
    old.make_spool()
    recorder = old.make_recorder()
    old.feed(recorder, 0, 10)
    old.feed(recorder, 10, 20, is_heard=False)
    old.spool.close(unlink=False)
    new.make_spool()
    new.feed(recorder, 0, 5)
    assert not place.runtime.spool("s1").exists()
    old.spool = None
    old.feed(recorder, 19, 20)  # a straggler
    recorder.finish()
    assert [path.name for path in place.recordings] == ["bench1_s2.h5", "run.h5"]
    assert place.samples().tolist() == sorted([*range(400), *range(100)])


def test_the_end_of_the_loop_ends_the_recording(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    spool = rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 10)
    rig.tick(recorder, 3.0)
    assert recorder.status().state == "recording"  # silent, and alive
    rig.feed(recorder, 10, 12, is_heard=False)
    spool.close(unlink=False)
    rig.spool = None
    rig.tick(recorder, 1.0)
    assert recorder.status().state == "idle"
    assert place.samples().tolist() == list(range(240))
    assert not list(place.runtime.path.iterdir())


def test_silence_without_a_spool_ends_the_recording(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 10)
    rig.tick(recorder, 1.0)
    assert recorder.status().state == "recording"
    rig.tick(recorder, 2.0)
    assert (recorder.status().state, recorder.files.finished) == ("idle", 1)
    assert place.samples().tolist() == list(range(200))


def test_dead_sessions_are_recorded_from_their_spools(place: Any, make_rig: MakeRig) -> None:
    """Loop and recorder were killed together, the journal with them or not."""
    rigs = [make_rig(session=name, name=name) for name in ("s1", "s2")]
    for rig in rigs:
        recorder = rig.make_recorder()
        rig.make_spool()
        rig.feed(recorder, 0, 30, is_heard=rig is rigs[0])
        if recorder.files.journal is not None:
            recorder.files.journal.close()
        rig.feed(recorder, 30, 40, is_heard=False)
        rig.spool.close(unlink=False)
    rigs[0].make_recorder().adopt()
    for name in ("s1", "s2"):
        with open_recording(place.out / f"{name}.h5") as recording:
            assert recording["seq"][:].tolist() == list(range(800))
    assert not list(place.runtime.path.iterdir())


def test_a_recorder_that_is_ended_before_it_heard_of_the_loop(
    place: Any, make_rig: MakeRig
) -> None:
    """A short run: the loop is over, and so shall the recorder be, before it has looked around."""
    rig = make_rig(session="s1", name="short")
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 10, is_heard=False)
    rig.spool.close(unlink=False)
    recorder.finish()
    with open_recording(place.out / "short.h5") as recording:
        assert recording["seq"][:].tolist() == list(range(200))


def test_rotation_loses_nothing(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig(samples=2500)
    recorder = rig.make_recorder(rotate_s=0.5, file_name="long.h5")
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 60)
    rig.feed(recorder, 62, 125)
    recorder.finish()
    names = ["long.h5", "long_002.h5", "long_003.h5", "long_004.h5", "long_005.h5"]
    assert [path.name for path in place.recordings] == names
    assert place.missing() == list(range(1200, 1240))
    assert np.array_equal(place.samples(), [*range(1200), *range(1240, 2500)])
    assert recorder.files.finished == 1


def test_a_rotated_recording_is_continued(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.make_spool()
    for since, until in ((0, 10), (10, 40), (40, 100)):
        recorder = rig.make_recorder(rotate_s=0.4)
        rig.feed(recorder, since, until)
        if until < 100 and recorder.files.journal is not None:
            recorder.files.journal.close()
    recorder.finish()
    assert place.samples().tolist() == list(range(2000))
    assert not place.missing()
    assert "run_003.h5" in [path.name for path in place.recordings]


def test_nothing_is_overwritten(place: Any, make_rig: MakeRig) -> None:
    (place.out / "run.h5").write_text("mine")
    (place.out / "run_2.h5.journal").write_text("mine too")
    rig = make_rig(samples=100)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 5)
    recorder.finish()
    assert (place.out / "run.h5").read_text() == "mine"
    assert (place.out / "run_2.h5.journal").read_text() == "mine too"
    assert (place.out / "run_3.h5").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", ".hidden", "x" * 250])
def test_names_from_the_stream_stay_in_the_directory(
    place: Any, make_rig: MakeRig, name: str
) -> None:
    rig = make_rig(samples=100, name=name)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 5)
    recorder.finish()
    assert [path.name for path in place.recordings] == ["bench1_s1.h5"]


def test_garbage_on_the_stream_is_said_once_and_changes_nothing(
    place: Any, make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(samples=100)
    recorder = rig.make_recorder()
    for _ in range(5):
        recorder.handle(b"garbage", b"")
        recorder.handle_session(b"\xff\xfe")
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 5)
    recorder.finish()
    assert place.samples().tolist() == list(range(100))
    assert 1 <= len([r for r in caplog.records if r.levelname == "ERROR"]) <= 10


def test_what_is_written_is_safe_within_half_a_second(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    synced: list[float] = []
    real = os.fdatasync

    def sync(file: int) -> None:
        synced.append(rig.now_s)
        real(file)

    monkeypatch.setattr(os, "fdatasync", sync)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 100)  # 2 s
    assert len(synced) == 5
    assert max(np.diff([0.0, *synced])) <= 0.5
    recorder.finish()


# --- a bad disk -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "number"),
    [(("pwrite", "write"), errno.ENOSPC), (("fdatasync", "fsync"), errno.EIO)],
)
def test_a_disk_that_fails_for_a_while_costs_nothing(
    make_rig: MakeRig,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    calls: tuple[str, ...],
    number: int,
) -> None:
    rig = make_rig()
    place = rig.place
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 30)

    with failing_disk(monkeypatch, number, *calls):
        rig.feed(recorder, 30, 80)
        rig.tick(recorder, 3.0)
        report = rig.reports[-1]
        assert report.state == "waiting"
        assert report.problem.startswith(f"{place.out}: ")
        (journal,) = place.journals
        assert journaled(journal).torn == 0
    rig.tick(recorder, 2.0)
    assert rig.reports[-1].state == "recording"
    rig.feed(recorder, 80, 100)
    recorder.finish()
    assert place.samples().tolist() == list(range(2000))
    assert not place.missing()
    errors = [r for r in caplog.records if r.levelname == "ERROR"]
    assert len(errors) == 1, [r.getMessage() for r in errors]
    (again,) = [r for r in caplog.records if r.levelname == "WARNING"]
    directory, _, lost = again.args
    assert (directory, lost) == (place.out, 0)


def test_longer_than_the_spool_is_an_exact_gap_also_when_the_recording_ends_meanwhile(
    place: Any, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(recordings=((0, 1), (1200, None)))
    rig.make_spool(batches=10)
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 20)

    with failing_disk(monkeypatch, errno.ENOSPC):
        rig.feed(recorder, 20, 90)
    rig.tick(recorder, 2.0)
    rig.feed(recorder, 90, 100)
    recorder.finish()
    assert place.samples().tolist() == list(range(400))
    assert place.missing() == list(range(400, 1200))


def test_a_session_that_begins_while_the_disk_is_full_waits_for_the_old_one(
    place: Any, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = make_rig(session="s1", name="a"), make_rig(session="s2", name="b")
    old.make_spool()
    recorder = old.make_recorder()
    old.feed(recorder, 0, 10)

    with failing_disk(monkeypatch, errno.EROFS):
        old.feed(recorder, 10, 30)
        old.spool.close(unlink=False)
        new.make_spool()
        new.feed(recorder, 0, 50)
    new.now_s = old.now_s
    old.tick(recorder, 2.0)
    new.feed(recorder, 50, 60)
    recorder.finish()
    for name, count in (("a", 600), ("b", 1200)):
        with open_recording(place.out / f"{name}.h5") as recording:
            assert recording["seq"][:].tolist() == list(range(count))


def test_a_directory_that_is_removed_and_made_again_costs_nothing(
    place: Any, make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    """Even without a spool: the removed journal is still open."""
    rig = make_rig()
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 30)
    shutil.rmtree(place.out)
    rig.feed(recorder, 30, 70)
    assert rig.reports[-1].state == "waiting"
    assert rig.reports[-1].problem == sentence(place.out, errno.ENOENT)
    assert not place.out.exists()
    place.out.mkdir()
    rig.feed(recorder, 70, 100)
    rig.tick(recorder, 0.6)
    assert rig.reports[-1].state == "recording"
    recorder.finish()
    assert place.samples().tolist() == list(range(2000))
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1


def test_without_its_directory_at_the_end_the_journal_is_rescued(
    place: Any, make_rig: MakeRig
) -> None:
    rig = make_rig()
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 30)
    shutil.rmtree(place.out)
    recorder.finish()
    rescued = place.out.parent / "run.h5.journal"
    assert journaled(rescued).samples == 600
    assert recorder.status().problem == sentence(place.out, errno.ENOENT)


def test_the_reserve_is_left_alone(place: Any, make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.make_spool()
    recorder = rig.make_recorder(reserve_bytes=1 << 60)
    rig.feed(recorder, 0, 50)
    assert (rig.reports[-1].state, rig.reports[-1].next_seq) == ("waiting", 0)
    assert rig.reports[-1].problem.startswith(sentence(place.out, errno.ENOSPC))
    assert not list(place.out.iterdir())
    recorder._disk._reserve_bytes = 0
    rig.tick(recorder, 2.0)
    recorder.finish()
    assert place.samples().tolist() == list(range(1000))


def test_a_journal_that_cannot_be_finished_stays_for_a_recovery(
    place: Any, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 30)

    with failing_disk(monkeypatch, errno.ENOSPC):
        recorder.finish()
    assert recorder.status().problem.startswith(sentence(place.out, errno.ENOSPC))
    (path,) = place.journals
    journal = Journal.open(path)  # nobody holds it
    assert journal.written.samples == 600
    journal.close()


def test_headers_of_any_session_name_are_harmless(make_rig: MakeRig, place: Any) -> None:
    rig = make_rig(samples=100)
    recorder = rig.make_recorder()
    header = decode_header(rig.batches[0][0])
    for name in ("../../etc/passwd", "", "/", "\0"):
        recorder.handle(encode_header(msgspec.structs.replace(header, session=name)), b"")
    assert Spools(place.runtime).open("../x") is None
    assert recorder.status().state == "idle"


@pytest.mark.parametrize("payload", [b"", b"short", bytes(20)])
def test_a_batch_without_its_samples_is_ignored_and_said_once(
    place: Any, make_rig: MakeRig, caplog: pytest.LogCaptureFixture, payload: bytes
) -> None:
    rig = make_rig(samples=100)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    for _ in range(3):
        recorder.handle(rig.batches[0][0], payload)
    rig.feed(recorder, 0, 5)
    recorder.finish()
    assert place.samples().tolist() == list(range(100))
    (said,) = [r for r in caplog.records if r.levelname == "ERROR"]
    (error,) = said.args
    assert isinstance(error, BatchError) and error.code == "wrong-size"


@pytest.mark.parametrize(
    "change",
    [{"seq": -1}, {"seq": 1 << 63}, {"count": 0}, {"count": 1001}, {"t_ns": 10**40}],
)
def test_numbers_out_of_bounds_are_refused(make_rig: MakeRig, change: dict[str, int]) -> None:
    header = decode_header(make_rig(samples=20).batches[0][0])
    values = {**msgspec.to_builtins(header), **change}
    with pytest.raises(BatchError) as refused:
        decode_header(json.dumps(values).encode())
    assert refused.value.code == "malformed"
    assert f"$.{next(iter(change))}" in str(refused.value)


@pytest.mark.system
def test_a_conversion_that_cannot_be_started_is_tried_again(
    place: Any,
    make_rig: MakeRig,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = make_rig(recordings=((0, 1), (400, 2)))
    command = conversion_command(place.runtime)
    converter = ProcessConverter(command, now_s=lambda: rig.now_s)
    recorder = rig.make_recorder(converter=converter)
    recorder.handle_session(rig.session_data)

    def fail(*_arguments: object, **_options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as broken:
        broken.setattr(subprocess, "Popen", fail)
        rig.feed(recorder, 0, 100)
        recorder.finish()
        rig.tick(recorder, 70.0)
    assert recorder.files.journal is None and converter.pending == 2
    said = [r for r in caplog.records if r.levelname == "ERROR"]
    assert len(said) == 2  # once for each
    rig.tick(recorder, 200.0)
    converter.finish(lambda: None)
    assert converter.pending == 0
    assert place.samples().tolist() == list(range(2000))
