"""Each benchmark runs, tiny, and says what it should. Nothing here judges speed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from acceptance import ONLY

from tests.benchmarks import __main__ as program
from tests.benchmarks import (
    checksum,
    exchange,
    friction_bench,
    identification,
    loop_work,
    recorder_speed,
    recording_size,
    spi_transfer,
    virtual_time,
)
from tests.benchmarks.measure import Row

TINY = {
    "exchange": partial(exchange.run, repeats=1, calls=1),
    "checksum": partial(checksum.run, repeats=1, calls=1),
    "virtual_time": partial(virtual_time.run, slices=1, cycles=20, calibration_s=0.2),
    "friction_bench": partial(
        friction_bench.run,
        words=("--speeds", "3", "--speed-min", "1", "--dwell", "0.1", "--repetitions", "1"),
    ),
}
TINY["identification"] = partial(
    identification.run,
    make=identification.make_known,
    repeats=1,
    environment=None,
    long_samples=20_000,
)
TINY_SPI = partial(spi_transfer.run, back_to_back=5, rhythm=3)
# With real processes, over emulated devices.
TINY_RUNS = {
    "loop_work": partial(loop_work.run, duration_s=0.5, repeats=1),
    "flooded": partial(loop_work.flooded, duration_s=0.5, repeats=1),
    "soak": partial(
        loop_work.soak, duration_s=2.0, window_s=0.5, warm_up_s=0.5, sample_every_s=0.25
    ),
    "recorder_speed": partial(
        recorder_speed.run, made_s=0.2, duration_s=1.0, repeats=1, real_s=1.0
    ),
    "recording_size": partial(recording_size.run, duration_s=0.5, motion="--enable"),
}
# Why a board stopped its motors, as it should, when the machine was away for too long.
AWAY = ("command timeout", "periods skipped within a second")
ROWS_OF_RUNS = {"loop_work": 2, "flooded": 2, "soak": 3, "recorder_speed": 6, "recording_size": 4}


def check(row: Row) -> None:
    assert row.value is not None
    assert row.value > 0.0
    assert row.unit in row.result
    assert (row.is_met is None) is (row.target == "")


def short_ones(names: Iterable[str], *kept: str) -> list[Any]:
    """Some of them stand for the others, which run under `make acceptance`."""
    return [pytest.param(name, marks=() if name in kept else ONLY) for name in names]


@pytest.mark.system
@pytest.mark.parametrize("name", short_ones(TINY, "exchange", "checksum", "virtual_time"))
def test_rows(name: str) -> None:
    rows = list(TINY[name]())
    assert rows
    for row in rows:
        check(row)


@pytest.mark.compiler
@pytest.mark.parametrize("name", short_ones(TINY_RUNS, "loop_work"))
def test_rows_of_runs(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    places = {"XDG_CACHE_HOME": tmp_path / "cache", "TMPDIR": tmp_path / "t"}
    for variable, place in places.items():
        place.mkdir()
        monkeypatch.setenv(variable, str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that TMPDIR is looked at again
    for _ in range(3):
        rows = list(TINY_RUNS[name]())
        reasons = [away for away in AWAY for row in rows if away in row.result]
        if not reasons:
            break
        record_property("repeated", reasons[0])
    assert len(rows) == ROWS_OF_RUNS[name], rows
    for row in rows:
        if row.result.startswith("skipped: h5repack"):
            continue
        assert row.value is not None, row.result
        assert row.unit in row.result
        assert (row.is_met is None) is (row.target == "")
        json.dumps(row.as_dict())
        if row.name.endswith("lost"):
            assert row.value == 0
    assert not list(places["TMPDIR"].iterdir())


@pytest.mark.system
def test_a_run_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no compiler
    (row,) = TINY_RUNS["loop_work"]()
    assert row.value is None
    assert row.result.startswith("skipped: the run failed: ")
    assert "compiler" in row.result


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
    monkeypatch.setattr(program, "BENCHMARKS", TINY)
    words = ["exchange", "checksum"]
    assert program.main(words) == 0
    text = capsys.readouterr().out
    for name in ("exchange, arm", "exchange, udriver2, against hand-written", "checksum, 34 bytes"):
        assert name in text
    assert "pass" in text or "MISS" in text
    assert program.main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["rows"]) == 10
    assert set(report["rows"][0]) == {"name", "result", "value", "unit", "target", "is_met"}


def test_the_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []

    def fake(name: str) -> list[Row]:
        ran.append(name)
        return [Row(f"row of {name}", "1 x", 1.0, "x")]

    monkeypatch.setattr(
        program, "BENCHMARKS", {name: partial(fake, name) for name in program.BENCHMARKS}
    )
    assert program.main(["soak", "checksum"]) == 0
    assert ran == ["soak", "checksum"]
    ran.clear()
    assert program.main([]) == 0
    assert ran == list(program.BENCHMARKS)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        program.main(["soak", "chekcsum"])
    assert "no such benchmark: chekcsum; there are exchange, " in capsys.readouterr().err


def test_a_broken_benchmark_costs_only_its_own_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[Row]:
        raise ValueError("out of order")

    monkeypatch.setattr(program, "BENCHMARKS", {"broken": broken, "checksum": TINY["checksum"]})
    assert program.main([]) == 1
    text = capsys.readouterr().out
    assert "broken: ValueError: out of order" in text
    assert "checksum, 34 bytes" in text
