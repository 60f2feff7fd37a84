from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import Result, armature
from msgspec.structs import replace

from daq.recorder import contents, convert
from daq.recorder.contents import End, JournalError, Part, read_contents
from daq.recorder.conversion import Conversion, convert_journal
from daq.recorder.converters import conversion_command
from daq.recorder.daemon import only_recorder
from daq.recorder.journal import Journal, end_of
from daq.recorder.recovery import recover
from daq.recorder.spools import Spools
from daq.recording import Recording, open_recording, writer
from daq.samples.batches import (
    KIND_SESSION,
    BatchError,
    Header,
    decode_header,
    decode_session,
    encode_session,
    frame_record,
)

MakeRig = Callable[..., Any]


class Keep:
    """Leaves journals as they are."""

    pending = 0

    def __init__(self) -> None:
        self.results: list[Any] = []

    def start(self, journal: Path) -> None:
        pass

    def poll(self) -> None:
        pass


@pytest.fixture
def journal(place: Any, make_rig: MakeRig) -> Path:
    """A finished journal of 2000 samples."""
    rig = make_rig(robot="laas4")
    recorder = rig.make_recorder(converter=Keep())
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 100)
    recorder.finish()
    (path,) = place.journals
    return Path(path)


@pytest.fixture(name="armature")
def armature_here() -> Callable[..., Result]:
    return armature


def here(place: Any) -> tuple[str | Path, ...]:
    return "--runtime", place.runtime.path


def test_recover_makes_recordings_and_says_so(place: Any, journal: Path, armature: Any) -> None:
    exit_code, out, err = armature("recover", place.out, *here(place))
    assert (exit_code, err) == (0, "")
    assert "2000" in out
    assert place.samples().tolist() == list(range(2000))
    assert armature("recover", place.out, "--json", *here(place))[:2] == (0, '{"journals":[]}\n')
    assert armature("recover", place.out, *here(place))[0] == 0


def test_recover_records_what_no_recorder_has_heard_of(
    place: Any, make_rig: MakeRig, armature: Any
) -> None:
    rig = make_rig(session="s1", name="unheard")
    rig.make_spool()
    rig.feed(rig.make_recorder(), 0, 10, is_heard=False)

    nothing = (0, '{"journals":[]}\n')
    assert armature("recover", place.out, "--json", *here(place))[:2] == nothing, "it lives"
    rig.spool.close(unlink=False)
    with only_recorder(place.runtime):
        assert armature("recover", place.out, "--json", *here(place))[:2] == nothing
    (result,) = json.loads(armature("recover", place.out, "--json", *here(place))[1])["journals"]

    assert (Path(result["file"]).name, result["samples"], result["missing"]) == (
        "unheard.h5",
        200,
        0,
    )
    assert not list(place.runtime.path.glob("spool-*"))


def test_recover_on_garbage_keeps_it_and_says_why(place: Any, armature: Any, journal: Path) -> None:
    whole = journal.read_bytes()
    (place.out / "text.h5.journal").write_text("no journal\n" * 1000)
    (place.out / "zeros.h5.journal").write_bytes(bytes(100_000))
    (place.out / "empty.h5.journal").touch()
    (place.out / "headless.h5.journal").write_bytes(
        whole[whole.rindex(b"ARMJ", 0, len(whole) // 2) :]
    )
    exit_code, out, err = armature("recover", place.out, "--json", *here(place))
    assert exit_code == 1
    results = {Path(r["journal"]).name.split(".")[0]: r for r in json.loads(out)["journals"]}
    codes = {name: result["code"] for name, result in results.items()}
    assert codes == {
        "text": "not-a-journal",
        "zeros": "not-a-journal",
        "headless": "no-session",
        "empty": "no-samples",
        "run": "",
    }
    assert not results["empty"]["problem"]
    assert results["run"]["samples"] == 2000
    assert len(err.splitlines()) == 3
    left = sorted(path.name for path in place.journals)
    assert left == ["headless.h5.journal", "text.h5.journal", "zeros.h5.journal"]


def test_recover_of_a_missing_path_is_a_usage_error(place: Any, armature: Any) -> None:
    exit_code, out, err = armature("recover", place.out / "none", "--json", *here(place))
    assert (exit_code, out) == (2, "")
    assert str(place.out / "none") in err


def test_damage_in_the_middle_is_an_exact_gap(place: Any, journal: Path) -> None:
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    result = recover(journal, Spools(None))
    assert result.samples == 1980 and result.missing == 20 and result.damaged_bytes > 4000
    with open_recording(result.file) as recording:
        (gap,) = recording.gaps
        assert gap.count == 20


def test_a_conversion_that_was_interrupted_at_its_very_end_is_not_done_twice(
    place: Any, journal: Path
) -> None:
    copy = journal.with_suffix(".copy")
    shutil.copy(journal, copy)
    first = convert_journal(journal)
    copy.rename(journal)
    (place.out / "other.h5.part").write_text("left over")
    assert convert_journal(journal) == first
    assert [path.name for path in place.recordings] == ["run.h5"]
    assert not journal.exists()


def test_a_recording_that_is_no_longer_the_same_is_not_touched(place: Any, journal: Path) -> None:
    (place.out / "run.h5").write_text("something else")
    result = convert_journal(journal)
    assert Path(result.file).name == "run_2.h5" and result.samples == 2000
    assert (place.out / "run.h5").read_text() == "something else"


def test_a_held_journal_is_left_alone(place: Any, journal: Path) -> None:
    held = Journal.open(journal)
    result = recover(journal, Spools(None))
    assert result.code == "in-use" and not result.problem
    held.close()
    assert recover(journal, Spools(None)).samples == 2000


def test_info_shows_what_is_in_a_recording(place: Any, journal: Path, armature: Any) -> None:
    file = convert_journal(journal).file
    exit_code, out, _ = armature("record", "info", file)
    assert exit_code == 0
    for text in ("2.000 s, 2000 samples", "joint4", "shoulder", "2000 ok", "wake", "at 1000"):
        assert text in out
    exit_code, out, _ = armature("record", "info", file, "--json")
    facts = json.loads(out)
    assert (facts["samples"], facts["gaps"], facts["robot"]) == (2000, [], "laas4")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "not-hdf5"), (b"text", "not-hdf5"), (b"\x89HDF\r\n\x1a\n" + bytes(100), "damaged")],
)
def test_info_on_garbage_is_a_sentence(
    tmp_path: Path, armature: Any, content: bytes, code: str
) -> None:
    file = tmp_path / "x.h5"
    file.write_bytes(content)
    exit_code, out, err = armature("record", "info", file)
    assert (exit_code, out) == (1, "")
    assert "x.h5" in err and f"[{code}]" in err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--out", "OUT/not/there"), "/not/there"),
        (("--out", "OUT", "--file", "/elsewhere/f.h5"), "/elsewhere/f.h5"),
        (("--out", "OUT", "--rotate-s", "0"), "--rotate-s"),
        (("--out", "OUT", "--reserve-mb", "-1"), "--reserve-mb"),
    ],
)
def test_wrong_options_are_usage_errors(
    place: Any, armature: Any, options: tuple[str, ...], text: str
) -> None:
    words = [word.replace("OUT", str(place.out)) for word in options]
    exit_code, _, err = armature("record", *words, "--runtime", place.runtime.path)
    assert exit_code == 2
    assert text in err


@pytest.mark.parametrize("place_of_damage", [25, 1000, "part"])
@pytest.mark.parametrize("has_spool", [False, True])
def test_a_damaged_head_costs_no_sample(
    place: Any, make_rig: MakeRig, journal: Path, place_of_damage: int | str, has_spool: bool
) -> None:
    if has_spool:
        rig = make_rig(robot="laas4")
        rig.make_spool().close(unlink=False)
    data = bytearray(journal.read_bytes())
    at = data.index(b"ARMJ", 4) + 30 if place_of_damage == "part" else int(place_of_damage)
    data[at] ^= 1
    journal.write_bytes(data)
    result = recover(journal, Spools(place.runtime))
    assert (result.problem, result.samples, result.missing) == ("", 2000, 0)
    assert result.damaged_bytes > 0


@pytest.mark.parametrize("change", ["framing", "profile", "name"])
def test_a_session_that_is_not_understood_is_a_sentence(journal: Path, change: str) -> None:
    file = os.open(journal, os.O_RDONLY)
    session = decode_session(read_contents(file, journal).session_data)
    os.close(file)
    boards = tuple(replace(board, **{change: "nope"}) for board in session.boards)
    old = frame_record(KIND_SESSION, encode_session(session))
    new = frame_record(KIND_SESSION, encode_session(replace(session, boards=boards)))
    journal.write_bytes(journal.read_bytes().replace(old, new))
    assert recover(journal, Spools(None)).code == "not-understood"
    assert journal.exists()


def test_a_finished_journal_is_read_once(
    place: Any, journal: Path, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_rig(robot="laas4").make_spool().close(unlink=False)
    read: list[bytes] = []
    opened: list[Path] = []

    def decode(data: bytes) -> Header:
        read.append(data)
        return decode_header(data)

    def open_counted(path: Path) -> Recording:
        opened.append(path)
        return open_recording(path)

    monkeypatch.setattr(contents, "decode_header", decode)
    monkeypatch.setattr(writer, "open_recording", open_counted)
    assert recover(journal, Spools(place.runtime)).samples == 2000
    # And the first batch once more, beside the session that tells how to read it.
    assert (len(read), len(opened)) == (101, 1)


@pytest.mark.parametrize("cut", [0, 5, 3000])
def test_whether_a_journal_is_finished_shows_at_its_end(journal: Path, cut: int) -> None:
    os.truncate(journal, journal.stat().st_size - cut)
    assert end_of(journal) == (None if cut else End(next_seq=2000))


def test_the_recorder_s_entry_point_converts_a_journal(
    place: Any, journal: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert convert.main(["--runtime", str(place.runtime.path), str(journal)]) == 0
    result = msgspec.json.decode(capfd.readouterr().out, type=Conversion)
    assert (result.samples, result.missing, result.problem) == (2000, 0, "")
    assert Path(result.file) == place.recordings[0] and not journal.exists()
    journal.write_text("no journal\n" * 1000)
    assert convert.main([str(journal)]) == 1
    assert msgspec.json.decode(capfd.readouterr().out, type=Conversion).problem
    assert journal.exists()


@pytest.mark.system
def test_a_recorder_that_was_killed_does_not_spoil_its_conversions(
    place: Any, journal: Path
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [*conversion_command(place.runtime), str(journal)]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=True)
    os.close(write_end)
    assert done.stderr == b""
    assert place.samples().tolist() == list(range(2000))


def test_a_recorder_killed_before_it_noted_the_end_records_nothing_twice(
    place: Any, make_rig: MakeRig, armature: Any
) -> None:
    rig = make_rig(robot="laas4")
    rig.make_spool()
    recorder = rig.make_recorder(converter=Keep())
    recorder.handle_session(rig.session_data)
    rig.feed(recorder, 0, 100)
    recorder.finish()
    rig.spool.close(unlink=False)
    (mark,) = place.runtime.path.glob("*.recorded")
    mark.unlink()
    assert armature("recover", place.out, *here(place))[0] == 0
    assert [path.name for path in place.recordings] == ["run.h5"]
    assert not list(place.runtime.path.glob("spool-*"))


@pytest.mark.parametrize(
    ("change", "code"),
    [({"framing": "smoke"}, "unknown-framing"), ({"name": "b"}, "no-such-board")],
)
def test_a_session_that_is_not_understood_leaves_its_journal(
    place: Any, make_rig: MakeRig, change: dict[str, str], code: str
) -> None:
    rig = make_rig(samples=20)
    session = decode_session(rig.session_data)
    boards = (replace(session.boards[0], **change), *session.boards[1:])
    part = Part(number=1, name="x", part=1, stem="x.h5", first_seq=0, first_t_ns=0)
    data = encode_session(replace(session, boards=boards))
    journal = Journal.create(place.out / "x.h5.journal", data, part)
    header_data, payload = rig.batches[0]
    journal.append(decode_header(header_data), header_data, payload)
    journal.close()
    with pytest.raises(JournalError) as refused:
        convert_journal(journal.path)
    assert refused.value.code == "not-understood"
    assert isinstance(refused.value.__cause__, BatchError)
    assert refused.value.__cause__.code == code
    assert journal.path.exists()
