"""Checks that an HDF5 file is a recording that can be read here, finished and whole."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import h5py
import numpy as np

from daq.errors import DaqError
from daq.recording.errors import (
    RecordingFormatError,
    RecordingIncompleteError,
    RecordingVersionError,
    reading,
)
from daq.recording.layout import (
    ATTRIBUTES,
    COLUMNS,
    FORMAT,
    ROBOT,
    SAMPLES,
    TABLES,
    VERSION_MAJOR,
    Attribute,
    ColumnAxis,
    Dataset,
)
from daq.robot.load import FILE_SIZE_MAX

ROWS_MAX = 1 << 32
"""Samples: 50 days at 1 kHz, some 200 GB."""
ENTRIES_MAX = 1_000_000
"""Entries of a table beyond one per sample and board: of damaged replies there are no more."""
CHUNK_BYTES_MAX = 8 << 20
"""Ours have 128 kB, those that h5py and h5repack choose at most 1 MB."""
_INFLATED_MAX = 1032
"""Bytes that deflate makes at most out of one."""
_REFERENCE_BYTES = 16
"""What a text takes in its dataset; itself it is elsewhere in the file."""

_GROUPS = {SAMPLES: tuple(COLUMNS.values()), **TABLES}


@dataclass(frozen=True, slots=True)
class _Stored:
    """A dataset as the file describes it; none of its values is read for that."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None
    stored_bytes: int

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Self:
        """Ask h5py for all of it."""
        return cls(
            str(dataset.name),
            dataset.shape,
            dataset.dtype,
            dataset.chunks,
            dataset.id.get_storage_size(),
        )


Groups = Mapping[str, Mapping[str, h5py.Dataset]]
"""The datasets of a file, by group and name."""
_StoredGroups = Mapping[str, Mapping[str, _Stored]]


def check_version(path: Path, file: h5py.File) -> None:
    """Check that the file is a recording of a version that can be read.

    Raises:
        RecordingFormatError: It is something else.
        RecordingVersionError: It is of another major version.
    """
    with reading(path):
        kind, major, minor, writer = (
            file.attrs.get(name)
            for name in ("format", "version_major", "version_minor", "armature_version")
        )
    if plain(kind) != FORMAT:
        raise RecordingFormatError(
            path, f"an HDF5 file, but not an {FORMAT}", code="not-a-recording"
        )
    for name, value in (("version_major", major), ("version_minor", minor)):
        if not _is_integer(value):
            _refuse_attribute(path, name, value, "a whole number", code="wrong-attribute")
    if int(major) == VERSION_MAJOR:
        return
    is_newer = int(major) > VERSION_MAJOR
    remedy = (
        "install a newer armature"
        if is_newer
        else "convert it with a version of armature that reads both "
        f"(armature {plain(writer) or 'unknown'} wrote it)"
    )
    raise RecordingVersionError(
        path,
        f"format version {major}.{minor}, this armature reads {VERSION_MAJOR}.x: {remedy}",
        code="newer-version" if is_newer else "older-version",
    )


def check_storage(path: Path, file: h5py.File) -> Groups:
    """Check that what is read from the file is in the file; return the datasets of its groups.

    Raises:
        RecordingFormatError: Something is in another file, or a link.
    """
    try:
        with reading(path):
            top = own_items(file)
            groups = {name: own_items(top.get(name)) for name in _GROUPS}
    except StoredElsewhereError as error:
        raise RecordingFormatError(
            path,
            f"{error} is stored elsewhere, as nothing is in a recording: copy it into this file",
            code="stored-elsewhere",
        ) from None
    return {
        group: {name: item for name, item in items.items() if isinstance(item, h5py.Dataset)}
        for group, items in groups.items()
    }


class StoredElsewhereError(DaqError):
    """Something is a link, or has its values in another file; its name is the message."""


def own_items(group: object) -> dict[str, h5py.Group | h5py.Dataset]:
    """Return what is in a group; nothing where there is no group.

    Raises:
        StoredElsewhereError: Some of it is not in the file itself. Reading it could read any file
            that this user may read; nothing is read to find out.
    """
    items: dict[str, h5py.Group | h5py.Dataset] = {}
    if not isinstance(group, h5py.Group):
        return items
    for name in group:
        if group.get(name, getlink=True, getclass=True) is not h5py.HardLink:
            raise StoredElsewhereError(str(name))
        items[str(name)] = item = group[name]
        if isinstance(item, h5py.Dataset) and (item.is_virtual or item.external):
            raise StoredElsewhereError(str(name))
    return items


def check_content(path: Path, file: h5py.File, datasets: Groups) -> dict[str, Any]:
    """Check that the recording was finished and all is there; return its attributes (`plain`).

    Raises:
        RecordingIncompleteError: It was not, or something is missing or of another shape.
        RecordingFormatError: Something is of another type, or cannot be in the file.
    """
    with reading(path):
        attributes = dict(file.attrs.items())
    if plain(attributes.get("complete")) != 1:
        raise RecordingIncompleteError(
            path,
            "was not finished: `armature recover` makes it anew from its journal",
            code="unfinished",
        )
    with reading(path):
        robot = file.get(ROBOT)
        groups = {
            group: {name: _Stored.of(item) for name, item in items.items()}
            for group, items in datasets.items()
        }
    minor = int(attributes["version_minor"])
    expected = [attribute for attribute in ATTRIBUTES if attribute.since_minor <= minor]
    missing = [attribute.name for attribute in expected if attribute.name not in attributes]
    if not isinstance(robot, h5py.Dataset):
        missing.append(ROBOT)
    missing += [
        f"{group}/{layout.name}"
        for group, layouts in _GROUPS.items()
        for layout in layouts
        if not layout.is_optional and layout.name not in groups[group]
    ]
    if missing:
        raise RecordingIncompleteError(
            path,
            f"{', '.join(missing)} missing: copy the file again, or recover its journal",
            code="missing-parts",
        )
    _check_attributes(path, attributes, expected)
    _check_datasets(path, groups, attributes)
    _check_robot(path, robot, attributes["robot_sha256"])
    return {name: plain(value) for name, value in attributes.items()}


def _check_attributes(
    path: Path, attributes: Mapping[str, Any], expected: Sequence[Attribute]
) -> None:
    for attribute in expected:
        value = attributes[attribute.name]
        is_right, wanted = _KINDS[attribute.kind]
        if not is_right(value):
            _refuse_attribute(path, attribute.name, value, wanted, code="wrong-attribute")
    boards = len(attributes["board_names"])
    for attribute in expected:
        value = attributes[attribute.name]
        if attribute.is_per_board and len(value) != boards:
            wanted = f"one for each of the {boards} boards of board_names"
            _refuse_attribute(path, attribute.name, value, wanted, code="board-count")


def _refuse_attribute(path: Path, name: str, value: Any, expected: str, *, code: str) -> NoReturn:
    shown = ascii(plain(value))
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"
    raise RecordingFormatError(
        path,
        f"its attribute {name} is {shown}, expected {expected}: the file is damaged",
        code=code,
    )


def _check_datasets(path: Path, groups: _StoredGroups, attributes: Mapping[str, Any]) -> None:
    boards = len(attributes["board_names"])
    widths = {
        ColumnAxis.JOINTS: len(attributes["joint_names"]),
        ColumnAxis.BOARDS: boards,
        ColumnAxis.BYTES: (groups["invalid_frames"]["frame"].shape or (0,))[-1],
    }
    samples = 0
    for group, layouts in _GROUPS.items():
        rows = (groups[group][layouts[0].name].shape or (0,))[0]
        limit = ENTRIES_MAX + samples * max(boards, 1)
        if group == SAMPLES:
            samples, limit = rows, ROWS_MAX
        for layout in layouts:
            if layout.name in groups[group]:
                shape = (rows,) if layout.axis is ColumnAxis.NONE else (rows, widths[layout.axis])
                _check_dataset(path, groups[group][layout.name], layout, shape)
        if rows > limit:
            raise RecordingFormatError(
                path,
                f"{group} has {rows} rows, limit {limit}: the file is damaged",
                code="too-many-rows",
            )
        for stored in groups[group].values():
            _check_size(path, stored)


def _check_dataset(path: Path, stored: _Stored, layout: Dataset, shape: tuple[int, ...]) -> None:
    is_right = _is_text(stored.dtype) if layout.dtype == "str" else stored.dtype == layout.dtype
    if stored.shape != shape or not is_right:
        raise RecordingIncompleteError(
            path,
            f"{stored.name} has shape {stored.shape} and type {stored.dtype}, expected {shape} "
            f"and {layout.dtype}; the file is damaged: copy it again, or recover its journal",
            code="wrong-shape",
        )


def _check_size(path: Path, stored: _Stored) -> None:
    """Check that a dataset's values can be in the file, before memory is taken for them."""
    item_bytes = _REFERENCE_BYTES if stored.dtype.kind == "O" else stored.dtype.itemsize
    chunk_bytes = math.prod(stored.chunks or (0,)) * item_bytes
    if chunk_bytes > CHUNK_BYTES_MAX:
        raise RecordingFormatError(
            path,
            f"{stored.name} has chunks of {chunk_bytes} bytes, limit {CHUNK_BYTES_MAX}: the file "
            "is damaged, copy it again",
            code="large-chunks",
        )
    declared = math.prod(stored.shape or (0,)) * item_bytes
    if declared > stored.stored_bytes * (_INFLATED_MAX if stored.chunks else 1):
        raise RecordingFormatError(
            path,
            f"{stored.name} declares {declared} bytes and has {stored.stored_bytes}: the file is "
            "damaged, copy it again",
            code="not-stored",
        )


def _check_robot(path: Path, dataset: h5py.Dataset, sha256: str) -> None:
    with reading(path):
        shape, dtype = dataset.shape, dataset.dtype
    if shape != () or not _is_text(dtype):
        raise RecordingFormatError(
            path,
            f"{ROBOT} has shape {shape} and type {dtype}, expected one text of "
            "variable length, the robot file: the file is damaged",
            code="not-a-text",
        )
    with reading(path):
        text = dataset[()]
    if len(text) > FILE_SIZE_MAX:
        raise RecordingFormatError(
            path,
            f"{ROBOT} has {len(text)} bytes, limit {FILE_SIZE_MAX}: the file is damaged",
            code="too-large",
        )
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise RecordingFormatError(
            path, f"{ROBOT} is not UTF-8 text ({error}): the file is damaged", code="not-utf8"
        ) from error
    found = hashlib.sha256(text).hexdigest()
    if found != sha256:
        raise RecordingFormatError(
            path,
            f"{ROBOT} has the SHA-256 {found[:12]}…, expected {ascii(sha256[:12])[1:-1]}… as its "
            "attribute robot_sha256 says: the file is damaged, or its robot was changed",
            code="robot-changed",
        )


def _is_text(dtype: np.dtype[Any]) -> bool:
    kind = h5py.check_string_dtype(dtype)
    return kind is not None and kind.length is None


def _is_integer(value: Any) -> bool:
    return isinstance(value, np.integer) and -(1 << 63) <= int(value) < 1 << 63


def _is_utf8(value: Any) -> bool:
    # What is not UTF-8 comes as surrogates, which cannot be printed.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _are_texts(value: Any) -> bool:
    is_list = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "O"
    return is_list and all(map(_is_utf8, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf"


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "integer": (_is_integer, "a whole number of at most 64 bits"),
    "text": (_is_utf8, "a text (UTF-8)"),
    "numbers": (_are_numbers, "a list of numbers"),
    "texts": (_are_texts, "a list of texts (UTF-8)"),
}
_SHOWN_MAX = 60


def plain(value: Any) -> Any:
    """Return an attribute as Python has it: text, number, or a list of them."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
