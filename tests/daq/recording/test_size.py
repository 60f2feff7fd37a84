"""Compression that pays, and that tools other than ours undo."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daq.recording import open_recording, summarise

Array = np.ndarray[Any, np.dtype[Any]]


def test_a_recording_is_at_most_40_percent_of_its_datasets(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        facts = summarise(recording)
    assert facts["uncompressed_bytes"] == 5000 * 303
    assert facts["size_bytes"] <= 0.4 * facts["uncompressed_bytes"]
    assert facts["compression_ratio"] < 0.4


@pytest.mark.system
def test_h5repack_reads_it_and_finds_little_to_gain(recorded: Path, tmp_path: Path) -> None:
    """Another build of HDF5, usually a much older one, undoes and redoes the filters."""
    if shutil.which("h5repack") is None:
        if os.environ.get("CI"):
            pytest.fail("no h5repack in CI (Debian package hdf5-tools)")
        pytest.skip("no h5repack (Debian package hdf5-tools)")
    repacked = tmp_path / "repacked.h5"
    subprocess.run(["h5repack", recorded, repacked], check=True)
    assert recorded.stat().st_size <= 1.1 * repacked.stat().st_size
    with open_recording(recorded) as one, open_recording(repacked) as other:
        assert set(one) == set(other)
        for name in one:
            assert one[name][:].tobytes() == other[name][:].tobytes()
        assert one.attributes == other.attributes
        assert one.robot_text == other.robot_text
