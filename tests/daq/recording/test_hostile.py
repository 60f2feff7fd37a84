"""Files that state nonsense, or declare what cannot be in them: refused with a code, at once."""

from __future__ import annotations

import hashlib
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from acceptance import IS_LONG
from recording_maker import make_recording

from daq.recording import RecordingError, RecordingFormatError, checks, open_recording
from daq.recording.checks import CHUNK_BYTES_MAX, ROWS_MAX
from daq.recording.layout import ATTRIBUTES, COLUMNS, TABLES

ROWS = 300
TEXT = h5py.string_dtype()
ZEROS = zlib.compress(bytes(1 << 20))


def refusal(path: Path, change: Callable[[h5py.File], object]) -> tuple[str, str]:
    """Code and text of the error that a changed file is refused with."""
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    assert caught.value.path == path
    return caught.value.code, str(caught.value)


def put(file: h5py.File, name: str, **how: Any) -> h5py.Dataset:
    """Another dataset in place of one."""
    del file[name]
    return file.create_dataset(name, **how)


# --- types ----------------------------------------------------------------------------------------

WRONG: dict[str, list[Any]] = {
    "integer": [np.nan, 1e300, "x", [1, 2], [1], True, np.uint64(1 << 63), h5py.Empty("i8")],
    "numbers": [5.0, "x", ["a", "b"], [[1.0], [2.0]], np.array([b"a", b"b"])],
    "text": [5, np.nan, ["a"], np.bytes_(b"a"), h5py.Empty(TEXT)],
    "texts": [[1, 2, 3, 4], 5, "joint1", np.array([b"a", b"b"]), np.zeros((0,)), [["a"], ["b"]]],
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_attribute_of_another_type(file_path: Path, kind: str) -> None:
    """One attribute of each kind with every wrong value, the others with one."""
    names = [
        attribute.name
        for attribute in ATTRIBUTES
        if attribute.kind == kind and attribute.name not in ("format", "complete")
    ]
    values = WRONG[kind] + [WRONG[kind][0]] * (len(names) - 1)
    for name, value in zip([*names[:1] * len(WRONG[kind]), *names[1:]], values, strict=True):
        with h5py.File(file_path) as file:
            right = file.attrs[name]
        code, text = refusal(file_path, lambda file, n=name, v=value: file.attrs.create(n, v))
        assert code == "wrong-attribute"
        assert name in text
        with h5py.File(file_path, "r+") as file:
            file.attrs[name] = right
    open_recording(file_path).close()


def test_an_attribute_that_is_no_utf8(file_path: Path) -> None:
    code, text = refusal(file_path, lambda file: file.attrs.create("host", b"ab\xff", dtype=TEXT))
    assert code == "wrong-attribute"
    assert "host" in text and r"'ab\udcff'" in text


def test_boards_without_a_value(sound: Path, tmp_path: Path) -> None:
    for name in (item.name for item in ATTRIBUTES if item.is_per_board):
        path = shutil.copy(sound, tmp_path / f"{name}.h5")
        code, text = refusal(path, lambda file, n=name: file.attrs.create(n, file.attrs[n][:1]))
        assert code == "board-count"
        assert name in text


def test_joints_that_the_robot_does_not_have(file_path: Path) -> None:
    with h5py.File(file_path, "r+") as file:
        file.attrs.create("joint_names", ["a", "b", "c", "d"], dtype=TEXT)
    with (
        open_recording(file_path) as recording,
        pytest.raises(RecordingFormatError) as refused,
    ):
        _ = recording.robot
    assert refused.value.code == "other-joints"
    assert "a, b, c, d" in str(refused.value)


@pytest.mark.parametrize(
    "value", [5, np.arange(5.0), ["a", "b"], np.bytes_(b"\xff\xfe"), np.zeros(0), h5py.Empty("f")]
)
def test_a_robot_that_is_no_text(file_path: Path, value: Any) -> None:
    code, _ = refusal(file_path, lambda file: put(file, "robot", data=value))
    assert code == "not-a-text"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"\xff\xfe", "not-utf8"), (b"# " + b"x" * 1_000_000, "too-large")],
)
def test_a_robot_text_that_cannot_be(file_path: Path, text: bytes, expected: str) -> None:
    def change(file: h5py.File) -> None:
        put(file, "robot", data=text, dtype=TEXT)
        file.attrs["robot_sha256"] = hashlib.sha256(text).hexdigest()

    code, _ = refusal(file_path, change)
    assert code == expected


def test_a_robot_that_was_changed(file_path: Path) -> None:
    def change(file: h5py.File) -> None:
        text = file["robot"][()].decode()
        put(file, "robot", data=text.replace("gear_reduction = ", "gear_reduction = 1"))

    code, text = refusal(file_path, change)
    assert code == "robot-changed"
    assert len(re.findall(r"\b[0-9a-f]{12}…", text)) == 2


def test_a_column_of_another_size(file_path: Path) -> None:
    smaller = {8: "i1", 4: "i2", 2: "i1", 1: "i2"}
    of_each_type = {c.dtype: name for name, c in COLUMNS.items() if not c.is_optional}
    for name, column in ((name, COLUMNS[name]) for name in of_each_type.values()):
        dtype = np.dtype(column.dtype)
        other = "<f2" if dtype.kind == "f" else dtype.kind + smaller[dtype.itemsize][1]
        with h5py.File(file_path, "r+") as file:
            values = file[f"samples/{name}"][:]
            file.move(f"samples/{name}", "kept")
            file["samples"].create_dataset(name, data=values.astype(other))
        with pytest.raises(RecordingError) as refused:
            open_recording(file_path)
        assert refused.value.code == "wrong-shape"
        assert f"samples/{name}" in str(refused.value)
        with h5py.File(file_path, "r+") as file:
            del file[f"samples/{name}"]
            file.move("kept", f"samples/{name}")
    open_recording(file_path).close()


def test_texts_of_events_that_are_none(file_path: Path) -> None:
    # Arrays of variable length are Python objects to h5py, as texts are.
    numbers = h5py.vlen_dtype(np.uint8)
    code, text = refusal(
        file_path, lambda file: put(file, "events/kind", shape=(0,), dtype=numbers)
    )
    assert code == "wrong-shape"
    assert "events/kind" in text


# --- what is declared -----------------------------------------------------------------------------


def declare(file: h5py.File, group: str, rows: int, chunk: int = 1 << 16) -> None:
    """Rows that were never written."""
    for name, dataset in list(file[group].items()):
        columns, dtype = dataset.shape[1:], dataset.dtype
        how: dict[str, Any] = {} if dtype.kind == "O" else {"compression": "gzip"}
        del file[group][name]
        file[group].create_dataset(
            name, (rows, *columns), dtype, chunks=(chunk, *(1 for _ in columns)), **how
        )


@pytest.mark.parametrize("rows", [10**7, 10**9])
def test_samples_that_were_never_written(file_path: Path, rows: int) -> None:
    code, _ = refusal(file_path, lambda file: declare(file, "samples", rows))
    assert code == "not-stored"


def test_endless_samples(file_path: Path) -> None:
    code, text = refusal(file_path, lambda file: declare(file, "samples", 1 << 40))
    assert code == "too-many-rows"
    assert str(1 << 40) in text and str(ROWS_MAX) in text


@pytest.mark.parametrize("group", TABLES)
def test_endless_tables(file_path: Path, group: str) -> None:
    code, text = refusal(file_path, lambda file: declare(file, group, 10**8))
    assert code == "too-many-rows"
    assert group in text and str(1_000_000 + 2 * ROWS) in text


def test_values_that_were_never_written_without_chunks(file_path: Path) -> None:
    def change(file: h5py.File) -> None:
        put(file, "samples/t_ns", shape=(ROWS,), dtype="<i8")

    code, text = refusal(file_path, change)
    assert code == "not-stored"
    assert "samples/t_ns" in text and "2400" in text


def bomb(file: h5py.File, chunk: int, data: bytes, name: str = "samples/seq") -> None:
    """A column whose only chunk is of `chunk` rows and stored as `data`."""
    if name in file:
        del file[name]
    column = file.create_dataset(
        name, (ROWS,), "<u8", maxshape=(None,), chunks=(chunk,), compression="gzip"
    )
    column.id.write_direct_chunk((0,), data)


def test_chunks_that_fill_the_memory(file_path: Path) -> None:
    code, text = refusal(file_path, lambda file: bomb(file, 3 << 27, ZEROS))
    assert code == "large-chunks"
    assert all(part in text for part in ("samples/seq", str(3 << 30), str(CHUNK_BYTES_MAX)))


def test_an_extra_column_is_looked_at_too(file_path: Path) -> None:
    code, text = refusal(file_path, lambda file: bomb(file, 3 << 27, ZEROS, "samples/new"))
    assert code == "large-chunks"
    assert "samples/new" in text


def test_many_events_and_gaps_are_read(tmp_path: Path) -> None:
    rows = np.arange(3000)
    path = make_recording(tmp_path / "r.h5", {"seq": rows}, dropped=rows[1::2])
    with h5py.File(path, "r+") as file:
        for dataset in TABLES["events"]:
            file[f"events/{dataset.name}"].resize(5000, axis=0)
            values = np.full(5000, b"a" * 9, object) if dataset.dtype == "str" else 7
            file[f"events/{dataset.name}"][:] = values
    with open_recording(path) as recording:
        assert len(recording.gaps) == 1499
        assert len(recording.events) == 5000
        assert recording.events[-1].text == "a" * 9


def test_a_file_that_was_stored_anew_is_read(tmp_path: Path) -> None:
    """As h5repack would: without compression, or with other chunks."""
    noise = np.random.default_rng(0).normal(size=(40_000, 4))
    path = make_recording(tmp_path / "r.h5", {"joint_torque_nm": noise})
    for how in ({}, {"chunks": True}, {"chunks": (50_000, 4), "compression": "lzf"}):
        with h5py.File(path, "r+") as file:
            name = "samples/joint_torque_nm"
            values = file[name][:]
            put(file, name, data=values, maxshape=(None, 4) if how else None, **how)
        with open_recording(path) as recording:
            np.testing.assert_array_equal(recording["joint_torque_nm"][:], values)


def test_times_at_the_ends_of_the_clock(file_path: Path) -> None:
    with h5py.File(file_path, "r+") as file:
        file["samples/t_ns"][0] = -(1 << 63)
        file["samples/t_ns"][-1] = (1 << 63) - 1
    with open_recording(file_path) as recording:
        assert recording.duration_s == pytest.approx(2**64 * 1e-9)


# --- our own mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [TypeError, KeyError])
@pytest.mark.parametrize("name", ["_is_integer", "_check_dataset", "plain"])
def test_a_bug_of_ours_is_not_called_a_damaged_file(
    sound: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception]
) -> None:
    def broken(*_: object) -> None:
        raise error("planted")

    monkeypatch.setattr(checks, name, broken)
    with pytest.raises(error, match="planted"):
        open_recording(sound)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(10 if IS_LONG else 1))
def test_any_damage_gets_a_sentence(file_path: Path, seed: int) -> None:
    """Bytes changed where the file describes itself, and files cut anywhere."""
    content = file_path.read_bytes()
    rng = np.random.default_rng(seed)
    described = [place for place in range(8, len(content)) if any(content[place - 8 : place + 8])]
    refused = 0
    for number in range(40):
        damaged = bytearray(content)
        if number % 4:
            for place in rng.choice(described, size=rng.choice([1, 4, 30])):
                damaged[place] = rng.integers(256)
        else:
            del damaged[rng.integers(len(damaged)) :]
        file_path.write_bytes(damaged)
        try:
            with open_recording(file_path) as recording:
                for column in recording.values():
                    _ = column[:], column.codes, column.bits
                _ = recording.robot, recording.events, recording.gaps
        except RecordingError:
            refused += 1
    assert refused > 15
