"""Public recordings of real machines: not part of the project, ARMATURE_DATA names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder(name: str) -> Path:
    """The folder of one data set; without it the test is skipped."""
    root = os.environ.get("ARMATURE_DATA")
    if not root:
        pytest.skip("ARMATURE_DATA does not name the folder of the public data sets")
    folder = Path(root) / name
    if not folder.is_dir():
        pytest.skip(f"no recordings of {name}: {folder} is missing")
    return folder
