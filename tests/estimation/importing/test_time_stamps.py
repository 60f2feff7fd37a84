"""Time stamps as loggers write them, and angles that wrap."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from daq.robot import Robot, parse_robot, robot_text
from estimation.errors import DatasetError, OptionError
from estimation.importing.even_rows import unwrap
from estimation.importing.files import read_array_file
from estimation.importing.measurements import ImportOptions, Measurements, measure
from estimation.importing.sampling import find_rate, resample
from estimation.importing.time_stamps import rising_rows

ROWS = 1000
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def bench1() -> Robot:
    return parse_robot(robot_text("bench1"), "bench1")


def arrays(**changes: np.ndarray) -> Arrays:
    t_s = np.arange(ROWS) / 125.0
    return {"t": t_s, "q": 0.5 * np.sin(t_s), "tau": t_s, **changes}


def measured(folder: Path, robot: Robot, given: Arrays, **options: Any) -> Measurements:
    np.savez(folder / "f.npz", **given)
    how = {"mapping": {}, "units": {}, **options}
    return measure([read_array_file(folder / "f.npz")], robot, ImportOptions(**how))


def test_rows_written_twice_are_left_out(tmp_path: Path, bench1: Robot) -> None:
    given = {
        name: np.insert(array, [300, 300, 700], array[[299, 299, 699]])
        for name, array in arrays().items()
    }
    found = measured(tmp_path, bench1, given)
    np.testing.assert_array_equal(found.q_rad[:, 0], arrays()["q"])
    np.testing.assert_array_equal(found.sampling.seq, np.arange(ROWS))
    (note,) = found.notes
    assert ": 3," in note
    assert "row 300" in note


def test_rows_are_counted_as_in_the_file() -> None:
    t_s = np.array([0.0, math.nan, 1.0, 1.0, 2.0, *range(3, 40)])
    rows, notes = rising_rows(t_s, 10)
    assert rows[:5].tolist() == [0, 2, 4, 5, 6]
    assert "row 3)" in notes[1]
    t_s[4] = 0.5
    with refused(DatasetError, "times-do-not-rise", "row 4", "0.5 s", "1 s"):
        rising_rows(t_s, 10)


@pytest.mark.parametrize(
    ("stamps", "values"),
    [
        (np.round(arrays()["t"], 2), ("0.01 s", "125 rows")),
        (np.float32(1.7e9 + arrays()["t"]), ("1000 rows",)),
    ],
)
def test_stamps_that_are_too_coarse(
    tmp_path: Path, bench1: Robot, stamps: np.ndarray, values: tuple[str, ...]
) -> None:
    with refused(DatasetError, "coarse-times", *values, "--map t_s=none --rate HZ"):
        measured(tmp_path, bench1, arrays(t=stamps))
    found = measured(tmp_path, bench1, arrays(t=stamps), mapping={"t_s": "none"}, rate_hz=125.0)
    assert found.sampling.rate_hz == 125.0
    assert "t_s" not in found.taken
    with refused(OptionError, "no-times", "--map t_s=none", "--rate 1000"):
        measured(tmp_path, bench1, arrays(t=stamps), mapping={"t_s": "none"})


@pytest.mark.parametrize(
    ("names", "mapping"),
    [
        (("sec", "nanosec"), {}),
        (("stamp_secs", "stamp_nsecs"), {}),
        (("seconds", "nanoseconds"), {}),
        (("stamp_sec", "stamp_nanosec"), {"t_s": "stamp_sec,stamp_nanosec"}),
    ],
)
def test_seconds_and_nanoseconds_are_one_time(
    tmp_path: Path, bench1: Robot, names: tuple[str, str], mapping: dict[str, str]
) -> None:
    given = arrays()
    t_ns = np.arange(ROWS) * 8_000_000 + 900_000_000
    given = {names[0]: 1_700_000_000 + t_ns // 10**9, names[1]: t_ns % 10**9, **given}
    del given["t"]
    found = measured(tmp_path, bench1, given, mapping=mapping)
    assert found.sampling.rate_hz == pytest.approx(125.0, rel=1e-9)
    assert found.taken["t_s"].source == f"f.npz:{names[0]} + {names[1]}"
    # Whoever writes a time besides means that.
    found = measured(tmp_path, bench1, {**given, "time": np.arange(ROWS) / 100.0})
    assert found.sampling.rate_hz == pytest.approx(100.0)


# --- rates ----------------------------------------------------------------------------------------


def test_a_few_late_rows_are_left_out(tmp_path: Path, bench1: Robot) -> None:
    random = np.random.default_rng(0)
    stamps = np.arange(ROWS) + random.uniform(-0.2, 0.2, ROWS)
    stamps[200] += 0.45 - (stamps[200] - 200)  # far from its place
    stamps[[500, 501]] = 502.9, 502.95  # behind a pause of the logger
    stamps[502:504] = 503.0, 503.05
    found = measured(tmp_path, bench1, arrays(t=np.sort(stamps) / 125.0))
    late = [200, 500, 501, 503]
    np.testing.assert_array_equal(
        found.sampling.seq, np.delete(np.arange(ROWS), [200, 500, 501, 502])
    )
    np.testing.assert_array_equal(found.q_rad[:, 0], np.delete(arrays()["q"], late))
    assert any(": 4," in n and "row 200" in n for n in found.notes)
    assert any("4 samples" in note and "0.032 s in 2 gaps" in note for note in found.notes)


def test_many_late_rows_are_refused() -> None:
    stamps = np.arange(1000.0)
    stamps[::50] += 0.45
    with refused(DatasetError, "uneven-times", "0.33", "1 %"):
        find_rate(stamps / 1000.0)


@pytest.mark.parametrize("rate_hz", [None, 1000.0, 100.0])
def test_irregular_rows_are_not_full_of_holes(
    tmp_path: Path, bench1: Robot, rate_hz: float | None
) -> None:
    # A random half of rows at 1 kHz.
    t_s = np.flatnonzero(np.random.default_rng(3).random(20_000) < 0.5) / 1000.0
    t_s[5000:] += 0.5
    sampling, found = resample(t_s, {"a": t_s[:, np.newaxis]}, rate_hz)
    assert sampling.rate_hz == pytest.approx(rate_hz or 500.0, rel=0.02)
    assert sampling.span_s == pytest.approx(20.5, abs=0.02)
    assert sampling.missing / sampling.rate_hz == pytest.approx(0.5, abs=0.06)
    np.testing.assert_allclose(found["a"][:, 0], t_s[0] + sampling.times_s, atol=1e-9)
    given = {"t": t_s, "q": np.sin(t_s), "tau": t_s}
    notes = measured(tmp_path, bench1, given, is_resampled=True, rate_hz=rate_hz).notes
    assert any(f"{len(t_s)} rows over 20.5 s" in n for n in notes)
    assert any(" 0.5" in n or " 0.4" in n for n in notes if "gap" in n)


def test_a_hole_within_a_wanted_period_is_none() -> None:
    t_s = np.r_[0:1000, 1060:2000] / 1000.0
    assert resample(t_s, {"a": t_s[:, np.newaxis]}, 100.0)[0].missing > 0
    assert resample(t_s, {"a": t_s[:, np.newaxis]}, 10.0)[0].missing == 0


# --- wraps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_resampled", [False, True])
def test_wrapped_angles_are_joined(tmp_path: Path, bench1: Robot, is_resampled: bool) -> None:
    angle = 6.0 * arrays()["t"]
    given = arrays(q=np.angle(np.exp(1j * angle)))
    given["q"][[100, 900]] = math.nan
    found = measured(tmp_path, bench1, given, is_resampled=is_resampled)
    known = np.isfinite(found.q_rad[:, 0])
    np.testing.assert_allclose(found.q_rad[known, 0], angle[known], atol=1e-6)
    (name,) = (joint.name for joint in bench1.joints)
    (note,) = (note for note in found.notes if name in note)  # and no jumps
    assert all(value in note for value in ("q_rad", "8 times", "row 66"))


@pytest.mark.parametrize(
    "steps",
    [
        [0.1, 3.2, 0.1, -3.2],  # half a turn is a fault of something
        [6.2, 6.3, 6.2, 6.3],  # a motor that turns so fast, or degrees
        [0.0, 12.6, 0.0],
    ],
)
def test_other_jumps_stay(steps: list[float]) -> None:
    q_rad = np.cumsum(np.resize(steps, 100))
    assert unwrap(q_rad)[1] == []
    np.testing.assert_array_equal(unwrap(q_rad)[0], q_rad)


@pytest.mark.parametrize("q_rad", [np.array([]), np.array([1.0]), np.full(5, np.nan)])
def test_nothing_to_unwrap(q_rad: np.ndarray) -> None:
    assert unwrap(q_rad)[1] == []
