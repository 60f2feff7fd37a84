import dataclasses

import numpy as np
import pytest
from identification_examples import (
    example,
    factors_of,
    fourier_motion,
    model_of,
    simulated,
    true_theta,
)
from refusals import refused

from estimation.errors import DatasetError
from estimation.identification.data import reduction
from estimation.identification.data.factors import folds
from estimation.identification.data.reduction import Reducer
from estimation.identification.estimators.linear import solve


def data(duration_s=20.0, noise_nm=0.05, seed=0):
    part = simulated(true_theta(), fourier_motion(0, duration_s), noise_nm=noise_nm, seed=seed)
    generator = np.random.default_rng(seed)
    raw = part.tau_nm + 0.1 * generator.standard_normal(part.tau_nm.shape)
    return dataclasses.replace(part, tau_raw_nm=raw, use=generator.random(raw.shape) < 0.8)


def direct(part):
    regressor, base = model_of()
    return base.columns(regressor(part.q_rad, part.dq_rad_s, part.ddq_rad_s2))


def test_errors_from_factors_are_those_of_the_rows():
    part = data()
    factors = factors_of([part])
    phi = direct(part)
    beta = np.random.default_rng(1).normal(size=factors.rank)
    for is_raw, tau in ((False, part.tau_nm), (True, part.tau_raw_nm)):
        rest, size = (tau - phi @ beta) * part.use, tau * part.use
        norms, sizes = factors.joint_errors(beta, is_raw=is_raw)
        np.testing.assert_allclose(norms, np.linalg.norm(rest, axis=0), rtol=1e-9)
        np.testing.assert_allclose(sizes, np.linalg.norm(size, axis=0), rtol=1e-9)
        total, each = factors.error_percent(beta, is_raw=is_raw)
        assert total == pytest.approx(100 * np.linalg.norm(rest) / np.linalg.norm(size))
        np.testing.assert_allclose(each, 100 * norms / sizes)
    np.testing.assert_allclose(
        factors.rms_nm(beta),
        np.linalg.norm((part.tau_nm - phi @ beta) * part.use, axis=0)
        / np.sqrt(part.use.sum(axis=0)),
    )


def test_the_solution_is_that_of_all_rows_with_weights_of_joints():
    part = data()
    factors = factors_of([part])
    weights = np.array([1.0, 0.5, 2.0, 3.0])
    scale = part.use * weights
    rows = (direct(part) * scale[..., None]).reshape(-1, factors.rank)
    expected = np.linalg.lstsq(rows, (part.tau_nm * scale).ravel(), rcond=None)[0]
    np.testing.assert_allclose(solve(factors.total(weights), factors.rank), expected, rtol=1e-7)


def test_rows_that_do_not_count_are_kept_apart():
    part = data()
    reducer = Reducer(*model_of())
    reducer.add(part)
    moving, rest = reducer.factors(), reducer.left_out()
    assert moving.sample_count == part.use.sum()
    assert rest.sample_count == (~part.use).sum()
    everything = factors_of([dataclasses.replace(part, use=np.ones_like(part.use))])
    beta = np.zeros(moving.rank)
    assert moving.united(rest).error_percent(beta)[0] == pytest.approx(100.0)
    np.testing.assert_allclose(
        moving.united(rest).joint_errors(beta)[1], everything.joint_errors(beta)[1]
    )


def test_uniting_blocks_keeps_sums(monkeypatch):
    part = data()
    many = factors_of([part])
    monkeypatch.setattr(reduction, "BLOCKS_MAX", 6)
    few = factors_of([part])
    assert many.block_count == 40
    assert few.block_count == 5
    assert few.sample_count == many.sample_count
    np.testing.assert_allclose(few.rows.sum(axis=0), many.rows.sum(axis=0))
    # Signs of rows are free; squares are not.
    left, right = (total.T @ total for total in (few.total(), many.total()))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())


def test_folds_leave_a_gap_beside_what_is_held_out():
    factors = factors_of([data()])
    marked = dataclasses.replace(factors, clusters=np.arange(factors.block_count))
    seen = []
    for training, held in folds(marked, count=5, guard=2):
        distance = np.abs(training.clusters[:, None] - held.clusters[None, :]).min()
        assert distance > 2
        assert np.array_equal(held.clusters, np.arange(held.clusters[0], held.clusters[-1] + 1))
        seen += held.clusters.tolist()
    assert seen == list(range(factors.block_count))


def test_folds_hold_out_a_phase_of_every_period():
    reducer = Reducer(*model_of(), repeats_s=[10.0, None])
    reducer.add(data(20.0), 0)
    reducer.add(data(5.0), 1)
    factors = reducer.factors()
    phases, counts = np.unique(factors.clusters, return_counts=True)
    assert counts.tolist() == [2] * 20 + [1] * 10
    seen = []
    for training, held in folds(factors, count=5, guard=1):
        distance = np.abs(training.clusters[:, None] - held.clusters[None, :]).min()
        assert distance > 1
        for cluster in held.clusters:
            assert (held.clusters == cluster).sum() == counts[cluster]
        seen += held.clusters.tolist()
    assert sorted(seen) == np.repeat(phases, counts).tolist()


def test_a_period_too_short_to_hold_anything_out_is_not_cut():
    reducer = Reducer(*model_of(), repeats_s=[1.0])
    reducer.add(data(20.0))
    assert not list(folds(reducer.factors()))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seconds", [(0.5,) * 9, (0.5, *(1.0,) * 6)])
def test_short_recordings_without_neighbours_to_unite_do_not_hang(monkeypatch, seconds):
    monkeypatch.setattr(reduction, "BLOCKS_MAX", 4)
    factors = factors_of([data(duration_s) for duration_s in seconds])
    assert factors.block_count == len(seconds)
    assert factors.rows.sum() == sum(data(duration_s).use.sum() for duration_s in seconds)


def test_recordings_are_not_united_with_each_other(monkeypatch):
    monkeypatch.setattr(reduction, "BLOCKS_MAX", 12)
    factors = factors_of([data(5.0), data(7.0)])
    counts = np.cumsum(factors.rows.sum(axis=1))
    assert data(5.0).use.sum() in counts
    assert len(np.unique(factors.clusters)) == factors.block_count


def test_periods_of_a_repeated_motion_are_drawn_together():
    regressor, base = model_of()
    reducer = Reducer(regressor, base, repeats_s=[10.0])
    reducer.add(data(20.0))
    factors = reducer.factors()
    assert factors.block_count == 40
    np.testing.assert_array_equal(factors.clusters[:20], factors.clusters[20:])
    assert len(np.unique(factors.clusters)) == 20


def test_long_blocks_are_taken_in_by_pieces(monkeypatch):
    whole = factors_of([data()])
    monkeypatch.setattr(reduction, "PIECE_SAMPLES", 33)
    pieces = factors_of([data()])
    beta = np.ones(whole.rank)
    np.testing.assert_allclose(pieces.joint_errors(beta)[0], whole.joint_errors(beta)[0])


def test_nothing_is_refused():
    part = data(2.0)
    for parts in ([dataclasses.replace(part, use=np.zeros_like(part.use))], []):
        with refused(DatasetError, "no-rows"):
            factors_of(parts)


def test_memory_does_not_depend_on_the_number_of_samples():
    assert example().factors.blocks.shape == (40, 4, 34, 34)
