from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from estimation.errors import DatasetError, EstimationError
from estimation.regression.bootstrap import student_interval
from estimation.regression.least_squares import bootstrap_blocks, fit_linear

seeds = st.integers(0, 2**32 - 1)


def random_problem(seed: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    regressor = generator.normal(size=(rows, columns)) + 0.3
    truth = generator.normal(size=columns)
    return regressor, regressor @ truth + 0.2 * generator.normal(size=rows)


@given(seeds, st.integers(1, 6), st.integers(0, 60))
def test_agrees_with_numpy_and_the_textbook(seed, columns, spare):
    regressor, target = random_problem(seed, columns + 1 + spare, columns)
    fit = fit_linear(regressor, target)
    condition = np.linalg.cond(regressor)
    near = {"rtol": 1e-12 * condition**2, "atol": 1e-13 * condition}
    np.testing.assert_allclose(
        fit.parameters, np.linalg.lstsq(regressor, target, rcond=None)[0], **near
    )
    assert fit.condition == pytest.approx(condition, rel=1e-9)
    residuals = target - regressor @ fit.parameters
    np.testing.assert_allclose(fit.residuals, residuals, atol=1e-12)
    variance = residuals @ residuals / (spare + 1)
    expected = np.sqrt(variance * np.diag(np.linalg.inv(regressor.T @ regressor)))
    np.testing.assert_allclose(fit.sigma, expected, **near)


@given(seeds, st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_units_of_the_columns_do_not_matter(seed, exponents):
    regressor, target = random_problem(seed, 50, 4)
    units = 10.0 ** np.array(exponents)
    plain, scaled = fit_linear(regressor, target), fit_linear(regressor / units, target)
    np.testing.assert_allclose(scaled.parameters, plain.parameters * units, rtol=1e-9)
    np.testing.assert_allclose(scaled.sigma, plain.sigma * units, rtol=1e-9)
    np.testing.assert_allclose(scaled.residuals, plain.residuals, atol=1e-11)


def test_nearly_dependent_columns_where_normal_equations_fail():
    x = np.linspace(0.0, 1.0, 200)
    regressor = np.column_stack([np.ones_like(x), 1.0 + 1e-8 * x])
    fit = fit_linear(regressor, regressor @ [2.0, 3.0])
    np.testing.assert_allclose(fit.parameters, [2.0, 3.0], rtol=1e-5)
    assert np.linalg.matrix_rank(regressor.T @ regressor) == 1


def test_sigma_is_the_scatter_over_records_with_white_noise():
    regressor, _ = random_problem(1, 80, 3)
    generator = np.random.default_rng(2)
    fits = [
        fit_linear(regressor, regressor @ [1.0, -2.0, 0.5] + generator.normal(size=80))
        for _ in range(1000)
    ]
    scatter = np.std([fit.parameters for fit in fits], axis=0)
    np.testing.assert_allclose(np.mean([fit.sigma for fit in fits], axis=0), scatter, rtol=0.1)


def test_as_many_rows_as_columns_are_solved_without_sigma():
    fit = fit_linear([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0])
    np.testing.assert_allclose(fit.parameters, [2.0, 3.0])
    np.testing.assert_allclose(fit.residuals, 0.0, atol=1e-14)
    assert np.isnan(fit.sigma).all()


@given(seeds, st.permutations(range(5)))
def test_dependent_columns_are_named(seed, order):
    regressor, target = random_problem(seed, 40, 5)
    first, second, third, *others = order
    regressor[:, third] = 3.0 * regressor[:, first] - 1e3 * regressor[:, second]
    named = ", ".join(str(column) for column in sorted([first, second, third]))
    with refused(DatasetError, "rank-deficient", "4 of 5", f" {named} "):
        fit_linear(regressor, target)
    assert set(others).isdisjoint({first, second, third})


@given(seeds, st.integers(0, 3))
def test_a_zero_column_is_named(seed, column):
    regressor, target = random_problem(seed, 40, 4)
    regressor[:, column] = 0.0
    with refused(DatasetError, "rank-deficient", "3 of 4", f" {column} "):
        fit_linear(regressor, target)


def test_nothing_but_zeros_has_rank_0():
    with refused(DatasetError, "rank-deficient", "0 of 2", " 0, 1 "):
        fit_linear(np.zeros((5, 2)), np.ones(5))


@pytest.mark.parametrize(
    ("regressor", "target", "code", "values"),
    [
        (np.ones((1, 2)), np.ones(1), "few-rows", ("1 rows", "2 parameters")),
        (np.ones((3, 0)), np.ones(3), "different-shapes", ("(3, 0)", "(3,)")),
        (np.ones(3), np.ones(3), "different-shapes", ("(3,)",)),
        (np.ones((3, 1)), np.ones(4), "different-shapes", ("(3, 1)", "(4,)")),
        (np.ones((3, 1)), np.ones((3, 1)), "different-shapes", ("(3, 1)",)),
        (
            np.array([[1.0, 2.0], [3.0, np.nan]]),
            np.ones(2),
            "not-finite",
            ("regressor", "1 values", "[1, 1]"),
        ),
        (
            np.ones((3, 1)),
            np.array([1.0, np.inf, np.nan]),
            "not-finite",
            ("target", "2 values", "[1]"),
        ),
    ],
)
def test_unusable_data_are_refused(regressor, target, code, values):
    with refused(DatasetError, code, *values):
        fit_linear(regressor, target)
    with refused(DatasetError, code, *values):
        bootstrap_blocks(
            regressor, target, np.arange(3), replicates=9, generator=np.random.default_rng()
        )


def test_callers_may_catch_either_idiom():
    assert issubclass(DatasetError, EstimationError)
    assert issubclass(DatasetError, ValueError)


def block_numbers(rows: int, rows_per_block: int) -> np.ndarray:
    return np.arange(rows) // rows_per_block


def all_fits(regressor, target, blocks):
    labels = np.unique(blocks)
    for draw in itertools.combinations_with_replacement(labels, labels.size):
        rows = np.concatenate([np.flatnonzero(blocks == label) for label in draw])
        yield draw, np.linalg.lstsq(regressor[rows], target[rows], rcond=None)[0]


@given(seeds, st.integers(2, 4), st.integers(1, 3), st.integers(-6, 6))
def test_every_replicate_is_the_fit_to_some_draw_of_blocks(seed, count, columns, exponent):
    regressor, target = random_problem(seed, 12 * count, columns)
    regressor[:, 0] *= 10.0**exponent
    blocks = block_numbers(12 * count, 12)
    replicates = bootstrap_blocks(
        regressor, target, blocks, replicates=20, generator=np.random.default_rng(seed)
    )
    assert replicates.shape == (20, columns)
    possible = np.array([fit for _, fit in all_fits(regressor, target, blocks)])
    unit = np.abs(possible).max(axis=0)
    distances = np.abs((replicates[:, None] - possible) / unit).max(axis=2)
    assert distances.min(axis=1).max() < 1e-8


def test_draws_come_as_often_as_chance_says():
    regressor, target = random_problem(3, 30, 2)
    blocks = block_numbers(30, 10)
    replicates = bootstrap_blocks(
        regressor, target, blocks, replicates=9000, generator=np.random.default_rng(4)
    )
    draws, fits = zip(*all_fits(regressor, target, blocks), strict=True)
    nearest = np.abs(replicates[:, None] - np.array(fits)).max(axis=2).argmin(axis=1)
    expected = Counter(tuple(sorted(d)) for d in itertools.product(range(3), repeat=3))
    seen = np.bincount(nearest, minlength=len(draws))
    for draw, times in zip(draws, seen, strict=True):
        mean = 9000 * expected[draw] / 27
        assert abs(times - mean) < 5.0 * np.sqrt(mean)


def test_agrees_with_a_naive_loop():
    regressor, target = random_problem(5, 400, 4)
    blocks = block_numbers(400, 10)
    fast = bootstrap_blocks(
        regressor, target, blocks, replicates=2000, generator=np.random.default_rng(6)
    )
    generator, naive = np.random.default_rng(7), []
    for _ in range(2000):
        rows = np.concatenate(
            [np.arange(10 * block, 10 * block + 10) for block in generator.integers(0, 40, 40)]
        )
        naive.append(np.linalg.lstsq(regressor[rows], target[rows], rcond=None)[0])
    spread = np.std(naive, axis=0)
    np.testing.assert_allclose(fast.std(axis=0), spread, rtol=0.1)
    np.testing.assert_allclose(fast.mean(axis=0), np.mean(naive, axis=0), atol=0.15 * spread.max())


@given(seeds)
def test_rows_of_a_block_need_not_stand_together(seed):
    regressor, target = random_problem(seed, 60, 3)
    blocks = np.repeat([7, -2, 40, 3], 15)
    order = np.random.default_rng(seed).permutation(60)
    together = bootstrap_blocks(
        regressor, target, blocks, replicates=50, generator=np.random.default_rng(seed)
    )
    mixed = bootstrap_blocks(
        regressor[order],
        target[order],
        blocks[order],
        replicates=50,
        generator=np.random.default_rng(seed),
    )
    np.testing.assert_allclose(mixed, together, rtol=1e-7, atol=1e-9)


def test_only_blocks_tell_the_scatter_of_records_whose_errors_last():
    generator = np.random.default_rng(8)
    rows, memory = 1000, 0.9
    time = np.arange(rows)
    regressor = np.column_stack([np.ones(rows), np.sin(time / 200.0)])
    blocks = block_numbers(rows, 50)
    parameters, by_blocks, ordinary = [], [], []
    for _ in range(200):
        shocks = generator.normal(size=rows)
        errors = np.empty(rows)
        errors[0] = shocks[0] / np.sqrt(1.0 - memory**2)
        for row in range(1, rows):
            errors[row] = memory * errors[row - 1] + shocks[row]
        target = regressor @ [2.0, 5.0] + errors
        fit = fit_linear(regressor, target)
        parameters.append(fit.parameters)
        ordinary.append(fit.sigma)
        replicates = bootstrap_blocks(
            regressor, target, blocks, replicates=200, generator=generator
        )
        by_blocks.append(replicates.std(axis=0, ddof=1))
    scatter = np.std(parameters, axis=0)
    assert (np.mean(ordinary, axis=0) < 0.4 * scatter).all()
    np.testing.assert_allclose(np.mean(by_blocks, axis=0), scatter, rtol=0.25)


def test_a_draw_that_misses_a_direction_is_drawn_again():
    # Either parameter shows in one of the two blocks only, so both must be in a draw.
    regressor = np.kron(np.eye(2), np.arange(1.0, 6.0)[:, None])
    target = np.arange(10.0)
    replicates = bootstrap_blocks(
        regressor,
        target,
        block_numbers(10, 5),
        replicates=300,
        generator=np.random.default_rng(9),
    )
    expected = np.broadcast_to(fit_linear(regressor, target).parameters, (300, 2))
    np.testing.assert_allclose(replicates, expected)


def test_draws_that_never_determine_all_parameters_are_an_error():
    count = 20
    with refused(DatasetError, "undetermined-draws", "20 blocks"):
        bootstrap_blocks(
            np.kron(np.eye(count), np.ones((2, 1))),
            np.arange(2.0 * count),
            block_numbers(2 * count, 2),
            replicates=10,
            generator=np.random.default_rng(10),
        )


@pytest.mark.parametrize(
    ("blocks", "replicates", "code"),
    [
        (np.zeros(30, int), 10, "one-block"),
        (np.arange(29), 10, "different-shapes"),
        (np.arange(30), 0, "few-replicates"),
    ],
)
def test_too_little_for_a_bootstrap_is_refused(blocks, replicates, code):
    regressor, target = random_problem(11, 30, 2)
    with refused(DatasetError, code):
        bootstrap_blocks(
            regressor, target, blocks, replicates=replicates, generator=np.random.default_rng()
        )


# From printed tables of Student's t.
@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (1e9, 1.960)]
)
def test_interval_is_student_s(degrees, t):
    replicates = np.array([1.0, 3.0, 5.0, 7.0])
    low, high = student_interval(10.0, replicates, degrees=degrees)
    half = t * np.sqrt(20.0 / 3.0)
    assert (low, high) == pytest.approx((10.0 - half, 10.0 + half), abs=2e-3)


def test_intervals_from_blocks_hold_the_truth_about_95_times_of_100():
    generator, held = np.random.default_rng(12), 0
    for _ in range(400):
        regressor = np.column_stack([np.ones(60), generator.normal(size=60)])
        target = regressor @ [1.0, 2.0] + generator.normal(size=60)
        blocks = block_numbers(60, 5)
        replicates = bootstrap_blocks(
            regressor, target, blocks, replicates=200, generator=generator
        )
        value = float(fit_linear(regressor, target).parameters[1])
        low, high = student_interval(value, replicates[:, 1], degrees=11)
        held += low <= 2.0 <= high
    assert 0.91 <= held / 400 <= 0.98


@pytest.mark.parametrize(("count", "degrees"), [(1, 5), (0, 5), (9, 0), (9, -1), (9, np.nan)])
def test_an_interval_from_nothing_is_refused(count, degrees):
    with refused(DatasetError, "few-replicates", count):
        student_interval(1.0, np.arange(float(count)), degrees=degrees)
