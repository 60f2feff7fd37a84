"""What surrounds a fault becomes a recording by itself: by a recorder in this process."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import armature
from msgspec.structs import replace

from daq.recorder.converters import InlineConverter
from daq.recorder.faults.folder import KEPT, FaultFolder, default_folder, name_of
from daq.recorder.faults.saving import FaultSaver, latest_note
from daq.recorder.journal import SUFFIX, Journal
from daq.recorder.recovery import recover
from daq.recorder.spools import Spools
from daq.recording import open_recording
from daq.samples.batches import FaultNote, decode_header, encode_header
from daq.system.locks import FileLock

MakeRig = Callable[..., Any]
SECOND_NS = 10**9
UTC_NS = 1_700_000_000 * SECOND_NS
NAME = "fault-20231114T221320Z-over-speed.h5"
NEVER = ((0, None),)


def make_note(number: int = 1, **changes: Any) -> FaultNote:
    note = FaultNote(number=number, code="over-speed", utc_ns=UTC_NS, first_seq=1000, end_seq=3000)
    return replace(note, **changes)


def with_fault(rig: Any, note: FaultNote, tripped: int) -> Any:
    """A rig whose headers tell of a fault, and of its end as soon as it has come."""
    for number, (data, payload) in enumerate(rig.batches):
        header = decode_header(data)
        if header.seq + header.count <= tripped:
            continue
        is_over = note.end_seq is not None and header.seq + header.count >= note.end_seq
        told = note if is_over else replace(note, end_seq=None)
        rig.batches[number] = encode_header(replace(header, fault=told)), payload
    return rig


@pytest.fixture
def faults(place: Any) -> Path:
    return place.out / "faults"


class NoConverter(InlineConverter):
    """Converts nothing: it was killed."""

    def start(self, journal: Path) -> None:
        self.left = journal


# --- what is saved --------------------------------------------------------------------------------


def test_a_fault_is_saved_while_nothing_is_recorded(
    place: Any, make_rig: MakeRig, faults: Path
) -> None:
    rig = with_fault(make_rig(robot="laas4", samples=6000, recordings=NEVER), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 149)
    rig.tick(recorder, 0.5)
    assert not faults.exists()  # it was not over
    rig.feed(recorder, 149, 200)
    assert recorder.status().fault_file == str(faults / NAME)
    rig.feed(recorder, 200, 300)
    recorder.finish()

    assert not place.recordings
    assert [path.name for path in faults.iterdir()] == [NAME]
    with open_recording(faults / NAME) as recording:
        assert recording["seq"][:].tolist() == list(range(1000, 3000))
        assert recording.gaps == ()
        assert recording.name == NAME.removesuffix(".h5")
        assert [(event.kind, event.source) for event in recording.events] == [
            ("saved", "over-speed"),
            ("mark", ""),
            ("mark", ""),
        ]
    info = armature("record", "info", faults / NAME)
    assert info.exit_code == 0
    assert "saved after the fault over-speed" in " ".join(info.out.split())


def test_what_is_being_recorded_goes_on(place: Any, make_rig: MakeRig, faults: Path) -> None:
    rig = with_fault(make_rig(samples=4000), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 200)
    recorder.finish()
    assert place.samples().tolist() == list(range(4000))
    with open_recording(faults / NAME) as recording:
        assert recording["seq"][:].tolist() == list(range(1000, 3000))


def test_a_loop_that_ends_with_the_fault(place: Any, make_rig: MakeRig, faults: Path) -> None:
    """Its end never comes, and its spool is removed when all of it is recorded."""
    rig = with_fault(make_rig(samples=2510), make_note(end_seq=None), 2480)
    spool = rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 124)
    rig.feed(recorder, 124, 126, is_heard=False)
    spool.close(unlink=False)
    rig.tick(recorder, 1.0)
    assert not list(place.runtime.path.glob("spool-*"))
    with open_recording(faults / NAME) as recording:
        assert recording["seq"][:].tolist() == list(range(1000, 2510))


def test_what_a_dead_loop_left_is_saved_later(place: Any, make_rig: MakeRig, faults: Path) -> None:
    rig = with_fault(make_rig(samples=4000, recordings=NEVER), make_note(), 2500)
    spool = rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 200, is_heard=False)
    spool.close(unlink=False)
    recorder.adopt()
    with open_recording(faults / NAME) as recording:
        assert recording.sample_count == 2000


def test_what_the_spool_has_lost_is_a_gap(make_rig: MakeRig, faults: Path) -> None:
    rig = with_fault(make_rig(samples=4000, recordings=NEVER), make_note(), 2500)
    rig.make_spool(batches=75)
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 200)
    with open_recording(faults / NAME) as recording:
        (gap,) = recording.gaps
        assert gap.first_seq == 1000 and gap.count > 400
        assert recording["seq"][-1] == 2999


def test_without_a_spool_nothing_is_saved(make_rig: MakeRig, faults: Path) -> None:
    """As in virtual time, where all is in one recording or none was asked for."""
    rig = with_fault(make_rig(samples=4000), make_note(), 2500)
    recorder = rig.make_recorder()
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 200)
    recorder.finish()
    assert not faults.exists()


# --- once, and not too often ----------------------------------------------------------------------


def test_a_recorder_that_is_started_again_saves_nothing_twice(
    make_rig: MakeRig, faults: Path
) -> None:
    rig = with_fault(make_rig(samples=6000), make_note(), 2500)
    rig.make_spool()
    rig.feed(rig.make_recorder(), 0, 200)
    (faults / NAME).unlink()
    rig.feed(rig.make_recorder(), 200, 300)
    assert not list(faults.iterdir())


def test_a_recorder_that_was_killed_over_it_saves_it_when_it_is_back(
    make_rig: MakeRig, faults: Path
) -> None:
    rig = with_fault(make_rig(samples=6000), make_note(), 2500)
    rig.make_spool()
    killed = rig.make_recorder()
    rig.feed(killed, 0, 140)
    killed.files.give_up()
    rig.feed(rig.make_recorder(), 140, 300)
    with open_recording(faults / NAME) as recording:
        assert recording.sample_count == 2000


@pytest.mark.parametrize(("apart_s", "files"), [(59, 1), (-59, 1), (61, 2)])
def test_at_most_one_a_minute(
    make_rig: MakeRig, faults: Path, caplog: pytest.LogCaptureFixture, apart_s: int, files: int
) -> None:
    """Whichever loop they are of: those of one loop it tells apart itself."""
    second = {"utc_ns": UTC_NS + apart_s * SECOND_NS, "first_seq": 3000, "end_seq": 5000}
    rig = with_fault(make_rig(samples=8000), make_note(), 2500)
    rig = with_fault(rig, make_note(2, **second), 4500)
    rig.make_spool()
    rig.feed(rig.make_recorder(), 0, 400)
    assert len(list(faults.iterdir())) == files
    assert ("is not saved" in caplog.text) is (files == 1)


def test_two_of_one_second_have_two_names(tmp_path: Path) -> None:
    folder = FaultFolder(tmp_path, reserve_bytes=0)
    folder.new_journal(make_note()).touch()
    assert folder.new_journal(make_note()).name == NAME.replace(".h5", "_2.h5") + SUFFIX


def test_while_another_process_saves_it_nobody_else_does(
    place: Any, make_rig: MakeRig, faults: Path
) -> None:
    rig = with_fault(make_rig(samples=4000), make_note(), 2500)
    rig.make_spool()
    with FileLock(place.runtime.path / "faults.lock"):
        rig.feed(rig.make_recorder(), 0, 200)
    assert not faults.exists()


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_said_once(
    place: Any, make_rig: MakeRig, faults: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults.write_text("somebody's")
    rig = with_fault(make_rig(samples=4000), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 200)
    recorder.finish()
    assert place.samples().tolist() == list(range(4000))
    (said,) = [line for line in caplog.messages if "not saved" in line]
    assert str(faults) in said
    assert faults.read_text() == "somebody's"


def test_a_full_disk_leaves_nothing_behind(
    make_rig: MakeRig, faults: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    rig = with_fault(make_rig(samples=4000, recordings=NEVER), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 149)

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "finish", fail)
        rig.feed(recorder, 149, 160)
    assert "the disk is full" in caplog.text
    assert not list(faults.iterdir())
    assert recorder.status().next_seq == 3200


def test_what_is_gone_from_the_spool_is_said(
    make_rig: MakeRig, faults: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = with_fault(make_rig(samples=8000, recordings=NEVER), make_note(), 2500)
    rig.make_spool(batches=20)
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 390, is_heard=False)
    rig.feed(recorder, 390, 400)
    assert "overwritten" in caplog.text
    assert not list(faults.iterdir())


def test_a_journal_that_a_crash_left_is_recovered_and_says_nothing_of_the_rest(
    place: Any, make_rig: MakeRig, faults: Path
) -> None:
    """Else what is not recorded yet would be taken for recorded, and its spool be removed."""
    rig = with_fault(make_rig(samples=4000), make_note(), 2500)
    spool = rig.make_spool()
    killed = NoConverter()
    rig.feed(rig.make_recorder(converter=killed), 0, 200)
    assert FaultFolder(faults).journals() == [killed.left]
    spool.close(unlink=False)
    spools = Spools(place.runtime)
    result = recover(killed.left, spools)
    assert (result.file, result.samples, result.missing) == (str(faults / NAME), 2000, 0)
    assert spools.recorded_until("s1") == 0 and place.runtime.spools


# --- the folder -----------------------------------------------------------------------------------


def test_the_newest_twenty_are_kept(tmp_path: Path) -> None:
    minutes = [make_note(utc_ns=UTC_NS + minute * 60 * SECOND_NS) for minute in range(25)]
    names = [name_of(note) for note in minutes]
    others = ["run.h5", "fault.h5", "fault-1-x.h5", "fault-20200101T000000Z-x.txt", names[0] + "~"]
    for name in (*names, *others):
        (tmp_path / name).touch()
    FaultFolder(tmp_path).keep_newest()
    assert KEPT == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[-20:], *others])


def test_links_are_neither_followed_nor_removed(
    make_rig: MakeRig, faults: Path, tmp_path: Path
) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_text("mine")
    faults.mkdir()
    old = [name_of(make_note(utc_ns=n * 100 * SECOND_NS)) for n in range(30)]
    for name in (old[0], NAME + ".part"):
        (faults / name).symlink_to(treasure)
    (faults / old[1]).mkdir()
    for name in old[2:]:
        (faults / name).touch()
    rig = with_fault(make_rig(samples=4000, recordings=NEVER), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    rig.feed(recorder, 0, 200)
    # Where a link has taken its name, nothing is written.
    assert treasure.read_text() == "mine"
    assert not (faults / NAME).exists()
    (faults / f"{NAME}.part").unlink()
    recover(faults / f"{NAME}{SUFFIX}", Spools(None))
    assert (
        (faults / NAME).is_file() and (faults / old[0]).is_symlink() and (faults / old[1]).exists()
    )
    kept = [path for path in faults.iterdir() if path.is_file() and not path.is_symlink()]
    assert len(kept) == KEPT
    assert treasure.read_text() == "mine"


@pytest.mark.parametrize(
    ("code", "word"),
    [("over-speed", "over-speed"), ("../../x y", "x-y"), ("", "unknown"), ("Ü" * 99, "unknown")],
)
def test_a_name_is_made_of_the_code_whatever_it_is(code: str, word: str, tmp_path: Path) -> None:
    note = make_note(code=code)
    assert name_of(note) == f"fault-20231114T221320Z-{word}.h5"
    FaultFolder(tmp_path, reserve_bytes=0).new_journal(note).touch()
    assert FaultFolder(tmp_path).has_one_near(note)  # it is known again


def test_where_faults_go_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_folder() == tmp_path / "state" / "armature" / "faults"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "state" / "armature" / "faults"


def test_the_last_note_of_a_spool(place: Any, make_rig: MakeRig, tmp_path: Path) -> None:
    rig = with_fault(make_rig(samples=4000, recordings=NEVER), make_note(), 2500)
    rig.make_spool()
    recorder = rig.make_recorder()
    spools = Spools(place.runtime)
    with spools.open("s1") as spool:
        assert latest_note(spool) is None
        rig.feed(recorder, 0, 200, is_heard=False)
        assert latest_note(spool) == make_note()
        folder = FaultFolder(tmp_path / "deep" / "faults", reserve_bytes=0, has_parents=True)
        saver = FaultSaver(folder, spools, InlineConverter())
        saver.take(latest_note(spool))
        saver.save(spool)
    assert saver.latest == folder.path / NAME and saver.latest.is_file()
    assert spools.faults_saved("s1") == 1
