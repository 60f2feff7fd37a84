"""Boards of 34-byte frames hold their position reference between frames, which bends the current.

Sampled once per frame it reads Kp·ω·c too little (`estimation.recordings.board_effects`):
uncorrected, that is viscous friction with the wrong sign.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from estimation.identification.data import gathering
from estimation.identification.pipeline import identify
from estimation.identification.request import Request
from estimation.identification.result import BaseParameter
from estimation.recordings.dataset import OpenDataset
from tools.main import main
from tools.running.mock_options import true_robot


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("held")
    trajectory, path = str(folder / "trajectory.h5"), folder / "run.h5"
    # Not any trajectory: on these boards joint2 falls more than 0.5 rad behind some of them.
    found = "excite --robot laas4 --evaluations 100 --seed 1 --out"
    assert main([*found.split(), trajectory]) == 0
    played = "run --robot laas4 --link mock --fast --profile uomodri --seed 1 --home --play"
    assert main([*played.split(), trajectory, "--record", str(path)]) == 0
    return path


def viscous(path: Path) -> list[BaseParameter]:
    """Viscous friction of each joint, unconstrained, and the true one beside it."""
    outcome = identify(Request(recordings=(path,), methods=("uls",), truth_of=true_robot))
    rows = [row for row in outcome.result.base_parameters if row.kind == "viscous"]
    assert len(rows) == 4
    return rows


def test_corrected_the_friction_is_the_true_one(recording: Path) -> None:
    rows = viscous(recording)
    for row in rows:
        assert row.true is not None
        assert row.value == pytest.approx(row.true, rel=0.5)
    assert sum(row.low <= row.true <= row.high for row in rows) >= 3


def test_uncorrected_it_is_negative(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_was = partial(OpenDataset, holds_reference=lambda _profile: False)
    monkeypatch.setattr(gathering, "OpenDataset", as_it_was)
    for row in viscous(recording):
        assert row.true is not None
        assert row.value < -3.0 * row.true  # -6 to -19 times
