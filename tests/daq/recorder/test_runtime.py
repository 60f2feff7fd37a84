"""The runtime directory and the recorder's lock, where somebody else was first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from daq.errors import ConfigError
from daq.recorder.daemon import only_recorder
from daq.system.runtime_directory import runtime_directory


def test_a_lock_that_is_a_link_is_not_followed(place: Any, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (place.runtime.path / "recorder.lock").symlink_to(precious)
    with pytest.raises(ConfigError) as refused, only_recorder(place.runtime):
        pass
    assert refused.value.source == f"--runtime {place.runtime.path}"
    assert refused.value.problems[0].startswith("recorder.lock ")
    assert precious.read_text() == "precious"


def test_a_directory_of_another_user_is_refused(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.runtime.path
    owner = 12345
    if os.geteuid() == 0:
        os.chown(path, owner, -1)
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigError) as refused:
        runtime_directory(path, is_made=True)
    assert str(path) in str(refused.value) and str(owner) in refused.value.problems[0]
    assert runtime_directory(path).path == path
