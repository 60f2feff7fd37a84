"""Whether an HDF5 file is a recording that can be read here, finished and whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from daq.recording.errors import (
    RecordingFormatError,
    RecordingIncompleteError,
    RecordingVersionError,
)
from daq.recording.layout import (
    ATTRIBUTES,
    COLUMNS,
    FORMAT,
    ROBOT,
    SAMPLES,
    TABLES,
    VERSION_MAJOR,
    Axis,
    Dataset,
)

_GROUPS = {SAMPLES: tuple(COLUMNS.values()), **TABLES}


def check_version(path: Path, file: h5py.File) -> None:
    """Checks that the file is a recording of a version that can be read.

    Raises:
        RecordingFormatError: It is something else.
        RecordingVersionError: It is of another major version.
    """
    if plain(file.attrs.get("format")) != FORMAT:
        raise RecordingFormatError(path, f"an HDF5 file, but no {FORMAT}")
    major, minor = int(file.attrs["version_major"]), int(file.attrs["version_minor"])
    if major == VERSION_MAJOR:
        return
    writer = plain(file.attrs.get("armature_version", "unknown"))
    remedy = (
        "install a newer armature"
        if major > VERSION_MAJOR
        else f"convert it with a version of armature that reads both (armature {writer} wrote it)"
    )
    raise RecordingVersionError(
        path, f"format version {major}.{minor}, this armature reads {VERSION_MAJOR}.x: {remedy}"
    )


def check_storage(path: Path, file: h5py.File) -> None:
    """Checks that what is read from the file is in the file.

    Raises:
        RecordingFormatError: Something is in another file, or a link.
    """
    name = stored_elsewhere(file)
    for group in _GROUPS:
        if name is None and isinstance(file.get(group), h5py.Group):
            name = stored_elsewhere(file[group])
    if name is not None:
        raise RecordingFormatError(path, f"{name} is stored elsewhere: no recording has that")


def stored_elsewhere(group: h5py.Group) -> str | None:
    """Name of something in a group that is a link, or has its values in another file.

    Whoever reads that reads any file that this user may. Nothing is read to find out.
    """
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            return str(name)
        item = group[name]
        if isinstance(item, h5py.Dataset) and (item.is_virtual or item.external):
            return str(name)
    return None


def check_content(path: Path, file: h5py.File) -> None:
    """Checks that the recording was finished and that everything is there.

    Raises:
        RecordingIncompleteError: It was not, or something is missing or of another shape.
    """
    if plain(file.attrs.get("complete")) != 1:
        raise RecordingIncompleteError(
            path, "was not finished: `armature recover` makes it anew from its journal"
        )
    missing = [attribute.name for attribute in ATTRIBUTES if attribute.name not in file.attrs]
    if not isinstance(file.get(ROBOT), h5py.Dataset):
        missing.append(ROBOT)
    for group, layouts in _GROUPS.items():
        for layout in layouts:
            name = f"{group}/{layout.name}"
            if not isinstance(file.get(name), h5py.Dataset) and not layout.is_optional:
                missing.append(name)
    if missing:
        raise RecordingIncompleteError(
            path, f"{', '.join(missing)} missing: copy the file again, or recover its journal"
        )
    widths = {
        Axis.JOINTS: len(file.attrs["joint_names"]),
        Axis.BOARDS: len(file.attrs["board_names"]),
        Axis.BYTES: file["invalid_frames/frame"].shape[-1],
    }
    for group, layouts in _GROUPS.items():
        rows = len(file[f"{group}/{layouts[0].name}"])
        for layout in layouts:
            dataset = file.get(f"{group}/{layout.name}")
            if dataset is not None:
                shape = (rows,) if layout.axis is Axis.NONE else (rows, widths[layout.axis])
                _check_dataset(path, dataset, layout, shape)


def _check_dataset(
    path: Path, dataset: h5py.Dataset, layout: Dataset, shape: tuple[int, ...]
) -> None:
    kind = "O" if layout.dtype == "str" else np.dtype(layout.dtype).kind
    if dataset.shape != shape or dataset.dtype.kind != kind:
        raise RecordingIncompleteError(
            path,
            f"{dataset.name} has shape {dataset.shape} and type {dataset.dtype}, expected {shape} "
            f"and {layout.dtype}: copy the file again, or recover its journal",
        )


def plain(value: Any) -> Any:
    """An attribute as Python has it: text, number, or a list of them."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
