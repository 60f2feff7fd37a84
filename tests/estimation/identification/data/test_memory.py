"""Ten minutes at 1 kHz are identified in memory that does not depend on how long they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.identification_memory import identify_elsewhere
from tests.support.long_recording import make_long_recording

SAMPLES = 600_000
EXTRA_MAX_MB = 250.0


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc: not Linux")
def test_ten_minutes(tmp_path: Path) -> None:
    taken = identify_elsewhere(make_long_recording(tmp_path / "long.h5", SAMPLES))
    assert taken.rows == SAMPLES
    assert taken.floor_percent < 0.2
    assert taken.extra_mb < EXTRA_MAX_MB
