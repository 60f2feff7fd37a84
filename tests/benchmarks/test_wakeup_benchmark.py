"""The benchmark against cyclictest runs, tiny, and leaves nothing running. Nothing judges speed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.benchmarks import wakeup

HISTOGRAM = """\
# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000011 000003
000012 000006
000999 000001
# Total: 000000010
# Min Latencies: 00011
# Avg Latencies: 00015
# Max Latencies: 02345
# Histogram Overflows: 00002
# Histogram Overflow at cycle number:
# Thread 0: 01556 01557
"""


def children() -> set[str]:
    files = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {number for file in files for number in file.read_text().split()}


def test_histogram() -> None:
    latencies = wakeup.parse_histogram(HISTOGRAM)
    assert latencies == [11] * 3 + [12] * 6 + [999] + [2345] * 2
    assert wakeup.summarise(latencies) == ((12, 2345, 2345), 2)


@pytest.mark.system
def test_rows() -> None:
    before = children()
    rows = list(wakeup.run(cycles=100, repeats=1))
    assert children() == before
    if rows[0].value is None:
        if wakeup.CYCLICTEST is None and os.environ.get("CI"):
            pytest.fail("no cyclictest in CI: the comparison would go untested")
        pytest.skip(rows[0].result)
    assert len(rows) == 8
    for row in rows:
        assert row.value is not None
        assert row.is_met is not None


def test_it_is_skipped_without_cyclictest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "CYCLICTEST", None)
    (row,) = wakeup.run(cycles=10, repeats=1)
    assert row.value is None
    assert row.result.startswith("skipped: cyclictest is not installed")


@pytest.mark.system
def test_nothing_stays_when_cyclictest_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "cyclictest"
    broken.write_text("#!/bin/sh\necho no rights >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(wakeup, "CYCLICTEST", str(broken))
    before = children()
    (row,) = wakeup.run(cycles=10, repeats=1)
    assert row.result.startswith("skipped: ")
    assert children() == before
