"""Which rows of recordings are identified from, and how they are prepared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from acceptance import examples
from datasets import open_dataset, open_segments
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_examples import model_of
from identify_recordings import ARM_TEXT, made_recording, two_joints_text
from refusals import refused

import estimation.identification.data.samples as samples_module
from daq.recording import open_recording
from daq.robot import parse_robot
from estimation.errors import DatasetError
from estimation.identification.data.gathering import (
    check_joints,
    common_text,
    reduce_samples,
    summary_of,
)
from estimation.identification.data.samples import Samples, Segments, choose_preparation
from estimation.identification.request import Overrides
from estimation.signals.preparation import PreparationSettings


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def recordings(directory: Path) -> tuple[Path, Path]:
    """Two recordings of one arm; the second has a gap, so that it is of two segments."""
    whole = made_recording(directory / "whole.h5", seed=0)
    holey = made_recording(directory / "holey.h5", seed=1, dropped=range(3000, 3600))
    return whole, holey


def samples_of(source: tuple[Path, ...] | Segments, overrides: Overrides | None = None) -> Samples:
    overrides = Overrides() if overrides is None else overrides
    segments = source if isinstance(source, Segments) else open_segments(source)
    settings_, _ = choose_preparation(segments, overrides)
    return Samples(segments, settings_, model_of()[0].switching, overrides)


def times(samples: Samples) -> list[tuple[int, float]]:
    return [(number, t) for number, part in samples for t in part.t_s.tolist()]


def test_samples_come_again_and_again_in_order(recordings: tuple[Path, Path]) -> None:
    samples = samples_of(recordings)
    first = list(samples)
    assert [number for number, _ in first] == [0, 1, 1]
    assert [part.source for _, part in first] == [recordings[0], *(recordings[1],) * 2]
    assert all(one is other for (_, one), (_, other) in zip(first, samples, strict=True))
    assert [len(part) for part in samples.prepared()] == [len(part) for _, part in first]
    assert times(samples) == sorted(times(samples))


def test_leaving_early_loses_nothing(recordings: tuple[Path, Path]) -> None:
    samples = samples_of(recordings)
    next(iter(samples))
    assert len(list(samples)) == len(list(samples)) == 3


def test_what_is_too_much_for_memory_is_read_again(
    recordings: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = times(samples_of(recordings))
    monkeypatch.setattr(samples_module, "KEPT_ROWS_MAX", 100)
    monkeypatch.setattr(samples_module, "KEPT_RAW_ROWS_MAX", 1000)
    samples = samples_of(recordings)
    assert times(samples) == times(samples) == kept
    one, other = (next(iter(samples))[1] for _ in range(2))
    assert one is not other
    np.testing.assert_array_equal(one.tau_nm, other.tau_nm)


@pytest.fixture(scope="module")
def segments(recordings: tuple[Path, Path]) -> Segments:
    return open_segments(recordings)


@settings(max_examples=examples(20))
@given(cut=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).filter(lambda c: c[0] < c[1]))
def test_a_part_and_the_rest_are_everything(segments: Segments, cut: tuple[float, float]) -> None:
    chosen = PreparationSettings(cutoff_hz=15.0, decimation=16, trim_s=0.5, velocity="measured")
    whole, inside, outside = (
        times(Samples(segments, chosen, model_of()[0].switching, overrides))
        for overrides in (Overrides(), Overrides(rows=cut), Overrides(rows=cut, is_outside=True))
    )
    assert not set(inside) & set(outside)
    assert sorted([*inside, *outside]) == whole
    total_s = 8.0
    for number, t_s in inside:
        if number == 0:
            assert cut[0] * total_s - 0.01 <= t_s <= cut[1] * total_s + 0.01


def test_a_part_has_the_columns_of_the_whole(segments: Segments) -> None:
    (_, whole), *_ = samples_of(segments)
    (_, part), *_ = samples_of(segments, Overrides(rows=(0.25, 0.5)))
    chosen = np.isin(whole.t_s, part.t_s)
    assert 0.2 * len(whole) < len(part) < 0.35 * len(whole)
    for name in ("q_rad", "dq_rad_s", "ddq_rad_s2", "tau_nm", "tau_raw_nm", "use", "switching"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[chosen])


def test_the_period_of_each_recording_is_found(directory: Path) -> None:
    paths = [
        made_recording(directory / f"{seconds}.h5", duration_s=seconds) for seconds in (8.0, 21.0)
    ]
    assert samples_of(tuple(paths)).repeats_s() == [None, pytest.approx(10.0, abs=0.05)]


def test_slow_joints_do_not_count(segments: Segments) -> None:
    chosen, notes = choose_preparation(segments, Overrides())
    assert isinstance(chosen.exclude_slow_rad_s, tuple)
    assert all(0.01 < limit < 0.1 for limit in chosen.exclude_slow_rad_s)
    assert all(f"{limit:g}" in notes[-1] for limit in chosen.exclude_slow_rad_s)
    fixed, _ = choose_preparation(segments, Overrides(slow_rad_s=0.5, cutoff_hz=7.0))
    assert (fixed.exclude_slow_rad_s, fixed.cutoff_hz) == (0.5, 7.0)
    (_, part), *_ = samples_of(segments, Overrides(slow_rad_s=0.0))
    assert part.use.all()


def test_overrides_are_kept(segments: Segments) -> None:
    for velocity in ("measured", "differentiated"):
        chosen, _ = choose_preparation(segments, Overrides(velocity=velocity, method="fft"))
        assert (chosen.velocity, chosen.method) == (velocity, "fft")


def test_recordings_without_anything_usable_are_named(directory: Path) -> None:
    short = made_recording(directory / "short.h5", duration_s=0.25)
    shorter = made_recording(directory / "shorter.h5", duration_s=0.1)
    with refused(DatasetError, "too-short", short):
        choose_preparation(open_segments([short]), Overrides())
    with refused(DatasetError, "no-usable-rows", shorter):
        choose_preparation(open_segments([short, shorter]), Overrides())


def test_recordings_of_different_rates_are_refused(
    directory: Path, recordings: tuple[Path, Path]
) -> None:
    slow = made_recording(directory / "slow.h5", rate_hz=500.0)
    with refused(DatasetError, "different-rates", "1000, 500 Hz"):
        choose_preparation(open_segments([recordings[0], slow]), Overrides())


def test_factors_of_rows_that_count_and_of_all(segments: Segments) -> None:
    samples = samples_of(segments)
    regressor, base = model_of()
    data = reduce_samples(regressor, base, samples, block_s=0.5)
    used = sum(int(part.use.sum()) for part in samples.prepared())
    everything = sum(part.use.size for part in samples.prepared())
    assert data.moving.sample_count == used < everything
    assert data.everything.sample_count == everything


def test_joints_that_are_all_slow_leave_no_rows(segments: Segments) -> None:
    regressor, base = model_of()
    samples = samples_of(segments, Overrides(slow_rad_s=100.0))
    with refused(DatasetError, "no-rows", "holey.h5"):
        reduce_samples(regressor, base, samples, block_s=0.5)


def test_how_much_is_used_is_said(recordings: tuple[Path, Path]) -> None:
    whole = summary_of(open_dataset(recordings[1]), Overrides())
    assert (whole.file, whole.rows) == ("holey.h5", 7400)
    assert whole.rows_used + sum(whole.left_out.values()) == whole.rows
    for is_outside, share in ((False, 0.25), (True, 0.75)):
        part = summary_of(
            open_dataset(recordings[1]), Overrides(rows=(0.25, 0.5), is_outside=is_outside)
        )
        assert part.rows_used == pytest.approx(share * whole.rows_used, abs=1)
        assert part.rows_used + sum(part.left_out.values()) == part.rows
        assert part.seconds == pytest.approx(1e-3 * part.rows_used)


def test_recordings_must_be_of_one_arm(directory: Path, recordings: tuple[Path, Path]) -> None:
    opened = [open_recording(path) for path in recordings]
    assert common_text(opened) == ARM_TEXT
    other = open_recording(made_recording(directory / "two.h5", text=two_joints_text()))
    with refused(DatasetError, "different-robots", "two.h5", "robot two", "laas4"):
        common_text([*opened, other])
    with refused(DatasetError, "no-recording"):
        common_text([])
    with refused(DatasetError, "other-joints", "two.h5", "joint1, joint2", "laas4"):
        check_joints(parse_robot(ARM_TEXT, "arm"), [opened[0], other])


def test_another_mass_is_no_other_arm(directory: Path, recordings: tuple[Path, Path]) -> None:
    """A payload, a changed estimate: the same joints, so that recordings go together."""
    text = ARM_TEXT.replace("mass_kg = 1.29e-1", "mass_kg = 1.30e-1")
    assert text != ARM_TEXT
    paths = (recordings[0], made_recording(directory / "b.h5", text=text))
    assert common_text([open_recording(path) for path in paths]) == ARM_TEXT
