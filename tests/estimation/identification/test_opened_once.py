"""A recording is opened once in an identification, and its usable rows are looked for once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import pytest
from identify_recordings import made_recording

from estimation.identification.estimators import instruments
from estimation.identification.output import payload
from estimation.identification.pipeline import identify
from estimation.identification.request import Request
from estimation.recordings import dataset
from estimation.recordings.usable_rows import UsableRows
from tools.running.mock_options import true_robot


def test_each_recording_is_opened_and_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("known.h5", "other.h5", "unknown.h5", "loaded.h5")
    known, other, unknown, loaded = (
        made_recording(tmp_path / name, seed=seed, duration_s=4.0)
        for seed, name in enumerate(names)
    )
    opened: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    start = h5py.File.__init__

    def count_opening(self: h5py.File, name: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(name, str | Path):  # not a second handle of an open file
            opened[Path(name).name] += 1
        start(self, name, *arguments, **options)

    def count_look(recording: Any, **options: Any) -> UsableRows:
        looked[recording.path.name] += 1
        return UsableRows(recording, **options)

    monkeypatch.setattr(instruments, "ROUNDS", 1)
    monkeypatch.setattr(payload, "DRAWS", 10)
    monkeypatch.setattr(h5py.File, "__init__", count_opening)
    monkeypatch.setattr(dataset, "UsableRows", count_look)
    identify(
        Request(
            recordings=(known, other),
            validations=(unknown,),
            payloads=(loaded,),
            methods=("uls", "cls2", "iv"),
            is_simulated=True,
            truth_of=true_robot,
        )
    )
    assert opened == looked == dict.fromkeys(names, 1)
