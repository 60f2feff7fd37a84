"""Compression that pays, and that tools other than ours undo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daq.recording import open_recording, summarise
from daq.samples.columns import ColumnDecoder

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def long_recording(
    tmp_path_factory: pytest.TempPathFactory,
    decoder: ColumnDecoder,
    run_mock: Callable[..., Array],
    write: Callable[..., Path],
) -> Path:
    samples = run_mock(decoder.session, 8_000)
    return write(tmp_path_factory.mktemp("long") / "run.h5", decoder, samples)


def test_a_recording_is_at_most_40_percent_of_its_datasets(long_recording: Path) -> None:
    with open_recording(long_recording) as recording:
        facts = summarise(recording)
    assert facts["uncompressed_bytes"] == 8_000 * 303
    assert facts["size_bytes"] <= 0.4 * facts["uncompressed_bytes"]
    assert facts["compression_ratio"] < 0.4


@pytest.mark.system
def test_h5repack_reads_it_and_finds_little_to_gain(long_recording: Path, tmp_path: Path) -> None:
    """Another build of HDF5, usually a much older one, undoes and redoes the filters."""
    if shutil.which("h5repack") is None:
        if os.environ.get("CI"):
            pytest.fail("no h5repack in CI (Debian package hdf5-tools)")
        pytest.skip("no h5repack (Debian package hdf5-tools)")
    repacked = tmp_path / "repacked.h5"
    subprocess.run(["h5repack", long_recording, repacked], check=True)
    assert long_recording.stat().st_size <= 1.1 * repacked.stat().st_size
    with open_recording(long_recording) as one, open_recording(repacked) as other:
        assert set(one) == set(other)
        for name in one:
            assert one[name][:].tobytes() == other[name][:].tobytes()
        assert one.attributes == other.attributes
        assert one.robot_text == other.robot_text
