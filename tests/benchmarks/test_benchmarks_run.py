"""Each benchmark runs, tiny, and says what it should. Nothing here judges speed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as program
from tests.benchmarks import checksum, exchange, spi_transfer, virtual_time
from tests.benchmarks.measure import Row

TINY = (
    partial(exchange.run, repeats=1, calls=1),
    partial(checksum.run, repeats=1, calls=1),
    partial(virtual_time.run, slices=1, cycles=20, calibration_s=0.2),
)
TINY_SPI = partial(spi_transfer.run, back_to_back=5, rhythm=3)


def check(row: Row) -> None:
    assert row.value is not None
    assert row.value > 0.0
    assert row.unit in row.result
    assert (row.is_met is None) is (row.target == "")


@pytest.mark.parametrize("run", TINY, ids=["exchange", "checksum", "virtual_time"])
def test_rows(run: partial[list[Row]]) -> None:
    rows = list(run())
    assert rows
    for row in rows:
        check(row)


@pytest.mark.compiler
def test_spi_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = list(TINY_SPI())
    assert [row.name for row in rows] == [
        spi_transfer.EMPTY,
        spi_transfer.ARM,
        spi_transfer.ARM_BACK_TO_BACK,
    ]
    for row in rows:
        check(row)


def test_spi_is_skipped_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (row,) = TINY_SPI()
    assert row.value is None
    assert row.result.startswith("skipped: ")


def test_the_table_and_the_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "BENCHMARKS", TINY[:2])
    assert program.main([]) == 0
    text = capsys.readouterr().out
    for name in ("exchange, arm", "exchange, udriver2, against hand-written", "checksum, 34 bytes"):
        assert name in text
    assert "pass" in text or "MISS" in text
    assert program.main(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["rows"]) == 10
    assert set(report["rows"][0]) == {"name", "result", "value", "unit", "target", "is_met"}
