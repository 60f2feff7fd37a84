"""Recordings as earlier versions of armature wrote them: they state less of their boards."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from daq.recording import BoardBehaviour
from daq.recording.layout import ATTRIBUTES, BEHAVIOUR_SINCE_MINOR
from daq.samples.columns import behaviour_of
from firmware_protocol.profiles import profile_named


def behaviour_in_1_1(profile: str) -> BoardBehaviour:
    """What a recording of format 1.1 states of a board; replies are of the exchange before."""
    stated = behaviour_of(profile_named(profile), wire_s=0.0)
    names = [
        item.name.removeprefix("board_")
        for item in ATTRIBUTES
        if item.since_minor == BEHAVIOUR_SINCE_MINOR
    ]
    return BoardBehaviour(**{name: getattr(stated, name) for name in names})


def as_format(path: Path, minor: int) -> Path:
    """The same file, without what later minor versions added."""
    with h5py.File(path, "r+") as file:
        for item in ATTRIBUTES:
            if item.since_minor > minor:
                del file.attrs[item.name]
        file.attrs["version_minor"] = np.int64(minor)
    return path
