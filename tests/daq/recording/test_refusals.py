"""Whatever the file is, the answer is one clear error."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.errors import DaqError
from daq.recording import (
    RecordingError,
    RecordingFormatError,
    RecordingIncompleteError,
    RecordingVersionError,
    open_recording,
)
from daq.recording.layout import ATTRIBUTES, COLUMNS, TABLES, VERSION_MAJOR, VERSION_MINOR
from daq.samples.columns import ColumnDecoder

REQUIRED = [f"samples/{name}" for name, column in COLUMNS.items() if not column.is_optional] + [
    f"{group}/{dataset.name}" for group, datasets in TABLES.items() for dataset in datasets
]


@pytest.fixture
def changed(recorded: Path, tmp_path: Path) -> Callable[[Callable[[h5py.File], object]], Path]:
    """A copy of a good recording, with a change."""

    def change(action: Callable[[h5py.File], object]) -> Path:
        path = tmp_path / "changed.h5"
        shutil.copy(recorded, path)
        with h5py.File(path, "r+") as file:
            action(file)
        return path

    return change


@pytest.fixture
def small(tmp_path: Path, decoder: ColumnDecoder, samples: Any, write: Callable[..., Path]) -> Path:
    """A recording of a few samples, to be changed."""
    return write(tmp_path / "small.h5", decoder, samples[:50])


@pytest.fixture
def without(
    small: Path, tmp_path: Path
) -> Callable[[Callable[[h5py.File], object]], RecordingError]:
    """The error for a copy of it with a change."""

    def change(action: Callable[[h5py.File], object]) -> RecordingError:
        path = shutil.copy(small, tmp_path / "without.h5")
        with h5py.File(path, "r+") as file:
            action(file)
        return refused(path)

    return change


def refused(path: Path) -> RecordingError:
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    assert isinstance(caught.value, DaqError)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")
    return caught.value


def test_a_truncated_file(recorded: Path, tmp_path: Path) -> None:
    data = recorded.read_bytes()
    path = tmp_path / "cut.h5"
    last = len(data) - 1
    for size in [last, *range(last - 100, 0, -len(data) // 300), *range(100, -1, -1)]:
        path.write_bytes(data[:size])
        assert isinstance(refused(path), RecordingFormatError)


@given(data=st.binary(max_size=300), is_hdf5=st.booleans())
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, is_hdf5: bool) -> None:
    path = tmp_path_factory.mktemp("bytes") / "bytes.h5"
    path.write_bytes((b"\x89HDF\r\n\x1a\n" if is_hdf5 else b"") + data)
    refused(path)


def test_no_file_a_directory_and_text(tmp_path: Path) -> None:
    missing = refused(tmp_path / "none.h5")
    assert missing.code == "unreadable"
    assert isinstance(missing.__cause__, FileNotFoundError)
    assert refused(tmp_path).code == "not-a-file"
    (tmp_path / "text.h5").write_text("t,q\n0,1\n")
    assert refused(tmp_path / "text.h5").code == "not-hdf5"


@pytest.mark.parametrize("value", [None, "another format", np.arange(3), np.float64(1), b"\xff"])
def test_a_foreign_hdf5_file(tmp_path: Path, value: object) -> None:
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as file:
        file["data"] = [1, 2, 3]
        if value is not None:
            file.attrs["format"] = value
    error = refused(path)
    assert isinstance(error, RecordingFormatError)
    assert error.code == "not-a-recording"


def test_a_newer_major_version_is_refused_with_what_to_do(
    changed: Callable[[Callable[[h5py.File], object]], Path],
) -> None:
    newer = VERSION_MAJOR + 1
    path = changed(lambda file: file.attrs.modify("version_major", newer))
    error = refused(path)
    assert isinstance(error, RecordingVersionError)
    assert error.code == "newer-version"
    assert f"{newer}.{VERSION_MINOR}" in str(error)


def test_an_older_major_version_names_what_wrote_it(
    changed: Callable[[Callable[[h5py.File], object]], Path],
) -> None:
    error = refused(changed(lambda file: file.attrs.modify("version_major", 0)))
    assert isinstance(error, RecordingVersionError)
    assert error.code == "older-version"
    assert "0.1.0" in str(error)


def test_a_newer_minor_version_is_read_with_what_it_adds(
    changed: Callable[[Callable[[h5py.File], object]], Path],
) -> None:
    def extend(file: h5py.File) -> None:
        file.attrs.modify("version_minor", VERSION_MINOR + 7)
        file.attrs["mood"] = "good"
        file["samples/new_column_k"] = np.zeros(5000)

    with open_recording(changed(extend)) as recording:
        assert recording.version == f"{VERSION_MAJOR}.{VERSION_MINOR + 7}"
        assert recording["new_column_k"][:].shape == (5000,)
        assert recording["new_column_k"].unit == ""


@pytest.mark.parametrize("value", [None, 0, "yes"])
def test_a_file_that_was_not_finished(
    changed: Callable[[Callable[[h5py.File], object]], Path], value: object
) -> None:
    def unfinish(file: h5py.File) -> None:
        del file.attrs["complete"]
        if value is not None:
            file.attrs["complete"] = value

    error = refused(changed(unfinish))
    assert isinstance(error, RecordingIncompleteError)
    assert error.code == "unfinished"
    assert "`armature recover`" in str(error)


@pytest.mark.parametrize(
    "names", [[*REQUIRED, "robot"], ["samples"], ["clock"], ["samples/t_ns"], ["gaps/count"]]
)
def test_datasets_are_missing(
    without: Callable[[Callable[[h5py.File], object]], RecordingError], names: list[str]
) -> None:
    def remove(file: h5py.File) -> None:
        for name in names:
            del file[name]

    error = without(remove)
    assert isinstance(error, RecordingIncompleteError)
    assert error.code == "missing-parts"
    assert all(name in str(error) for name in names)


@pytest.mark.parametrize("name", ["format", "version_major", "version_minor", "complete", "host"])
def test_an_attribute_is_missing(
    without: Callable[[Callable[[h5py.File], object]], RecordingError], name: str
) -> None:
    error = without(lambda file: file.attrs.pop(name))
    assert isinstance(error, RecordingIncompleteError | RecordingFormatError)


def test_many_attributes_are_missing(
    without: Callable[[Callable[[h5py.File], object]], RecordingError],
) -> None:
    needed = ("format", "version_major", "version_minor", "complete")
    names = [attribute.name for attribute in ATTRIBUTES if attribute.name not in needed]
    error = without(lambda file: [file.attrs.pop(name) for name in names])
    assert error.code == "missing-parts"
    assert all(name in str(error) for name in names)


def test_a_dataset_has_another_shape_or_type(small: Path) -> None:
    """Every dataset with one wrong value, some with all."""
    values = [np.zeros((4, 9)), np.zeros(4999), 3.0, ["a"], h5py.Empty("f")]
    some = ("samples/seq", "samples/iq_a", "events/kind", "invalid_frames/frame")
    cases = [*zip(REQUIRED, itertools.cycle(values), strict=False)]
    cases += itertools.product(some, values)
    for name, value in cases:
        with h5py.File(small, "r+") as file:
            file.move(name, "kept")
            file[name] = value
        assert refused(small).code in ("wrong-shape", "missing-parts"), (name, value)
        with h5py.File(small, "r+") as file:
            del file[name]
            file.move("kept", name)
    open_recording(small).close()


def test_a_robot_that_is_none(
    changed: Callable[[Callable[[h5py.File], object]], Path],
) -> None:
    def replace(file: h5py.File) -> None:
        del file["robot"]
        file["robot"] = "schema = 1"
        file.attrs["robot_sha256"] = hashlib.sha256(b"schema = 1").hexdigest()

    with (
        open_recording(changed(replace)) as recording,
        pytest.raises(RecordingFormatError) as caught,
    ):
        _ = recording.robot
    assert caught.value.code == "robot-mistakes"


def test_reading_after_closing_says_so(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        column = recording["t_ns"]
    for read in (lambda: column[:], lambda: recording.events, lambda: recording.robot_text):
        with pytest.raises(RecordingError) as caught:
            read()
        assert caught.value.code == "closed"


def _link(file: h5py.File) -> None:
    file["samples/seq"] = h5py.ExternalLink("other.h5", "/seq")


def _soft_link(file: h5py.File) -> None:
    file["samples/seq"] = h5py.SoftLink("/samples/t_ns")


def _external(file: h5py.File) -> None:
    file.create_dataset("samples/seq", (50,), "u8", external=[("/etc/passwd", 0, 400)])


def _virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((50,), "u8")
    layout[:] = h5py.VirtualSource("other.h5", "seq", (50,))
    file.create_virtual_dataset("samples/seq", layout)


@pytest.mark.parametrize("put", [_link, _soft_link, _external, _virtual])
def test_what_is_stored_elsewhere(small: Path, put: Callable[[h5py.File], None]) -> None:
    with h5py.File(small, "r+") as file:
        del file["samples/seq"]
        put(file)
    error = refused(small)
    assert isinstance(error, RecordingFormatError)
    assert error.code == "stored-elsewhere"
    assert "seq" in str(error)
