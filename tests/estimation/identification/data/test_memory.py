"""Minutes at 1 kHz are identified in memory that does not depend on how many they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from acceptance import IS_LONG

from tests.support.identification_memory import identify_elsewhere
from tests.support.long_recording import make_long_recording

SAMPLES, EXTRA_MAX_MB = (600_000, 250.0) if IS_LONG else (180_000, 130.0)
"""The raw columns of three minutes are 50 MB: kept whole, they would be too much."""


@pytest.mark.acceptance
@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc: not Linux")
def test_a_long_recording(tmp_path: Path) -> None:
    taken = identify_elsewhere(make_long_recording(tmp_path / "long.h5", SAMPLES))
    assert taken.rows == SAMPLES
    assert taken.floor_percent < 0.2
    assert taken.extra_mb < EXTRA_MAX_MB
