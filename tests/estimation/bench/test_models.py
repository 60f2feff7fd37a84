"""Friction models: exact without noise, honest with it, and chosen only when the data speak."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from acceptance import IS_LONG, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from estimation.bench.models import (
    ModelFit,
    Points,
    _fit_linear_model,
    fit_models,
    interval_of,
    predict,
    select,
)
from estimation.bench.record import DriveConstants
from estimation.errors import DatasetError
from estimation.types import FloatArray

pytestmark = pytest.mark.chain

B_NMS, F_NM = 2.42e-6, 0.122
SPEEDS_RAD_S = 1.57 + (147.0 - 1.57) * np.linspace(0.0, 1.0, 9) ** 2
SIGMA_NM = 1.5e-5
DRAWS, MODEL_DRAWS = (200, 100) if IS_LONG else (100, 30)


def make_drive(reduction: float = 31.0, efficiency: float = 1.0) -> DriveConstants:
    return DriveConstants(
        k_i_nm_per_a=0.02757,
        reduction=reduction,
        load_to_motor=1.0 / reduction / efficiency,
        pole_pairs=12,
        count_rad=2.0 * math.pi / 4096,
    )


DRIVE = make_drive()


def both_ways(speeds_rad_s: FloatArray, repetitions: int = 2) -> FloatArray:
    return np.tile(np.concatenate([speeds_rad_s, -speeds_rad_s]), repetitions)


def simple_nm(
    speed: FloatArray, b: float = B_NMS, f: float = F_NM, drive: DriveConstants = DRIVE
) -> FloatArray:
    return np.array([b * v + math.copysign(f * drive.load_to_motor, v) for v in speed])


def asymmetric_nm(
    speed: FloatArray, b: tuple[float, float], f: tuple[float, float], drive: DriveConstants = DRIVE
) -> FloatArray:
    back = [int(v < 0.0) for v in speed]
    pairs = zip(speed, back, strict=True)
    return np.array([b[k] * v + math.copysign(f[k] * drive.load_to_motor, v) for v, k in pairs])


def stribeck_nm(
    speed: FloatArray, static_nm: float, v_s: float, drive: DriveConstants = DRIVE
) -> FloatArray:
    extra = [
        math.copysign((static_nm - F_NM) * math.exp(-((v / drive.reduction / v_s) ** 2)), v)
        for v in speed
    ]
    return simple_nm(speed, drive=drive) + drive.load_to_motor * np.array(extra)


def fitted(points: Points, seed: int = 0) -> dict[str, ModelFit]:
    return {fit.name: fit for fit in fit_models(points, np.random.default_rng(seed))}


def chosen(speed: FloatArray, torque: FloatArray, seed: int) -> str:
    noise = np.random.default_rng(seed).normal(0.0, SIGMA_NM, len(speed))
    fits = fit_models(Points(speed, torque + noise, DRIVE), np.random.default_rng(seed))
    return select(fits).name


# --- without noise --------------------------------------------------------------------------------

drives = st.builds(make_drive, st.floats(1.0, 100.0), st.floats(0.3, 1.0))
viscous = st.floats(1e-7, 1e-4)
coulomb = st.floats(1e-2, 2.0)
sweeps = st.builds(
    lambda slow, factor, count: both_ways(np.geomspace(slow, slow * factor, count)),
    st.floats(0.5, 5.0),
    st.floats(5.0, 100.0),
    st.integers(5, 9),
)


def approx(value: float, rel: float = 1e-6) -> object:
    return pytest.approx(value, rel=rel, abs=1e-13)


@settings(max_examples=examples(30))
@given(sweeps, drives, viscous, coulomb)
def test_coulomb_and_viscous_are_exact(
    speed: FloatArray, drive: DriveConstants, b: float, f: float
) -> None:
    points = Points(speed, simple_nm(speed, b, f, drive), drive)
    fit = fitted(points)["coulomb_viscous"]
    assert fit.parameters == {"b_eq_nms": approx(b), "f_nm": approx(f)}
    assert fit.degrees == len(speed) - 2
    for name in ("b_eq_nms", "f_nm"):
        low, high = fit.interval(name)
        assert low <= fit.parameters[name] <= high
        assert high - low < 1e-6 * fit.parameters[name]


@settings(max_examples=examples(30))
@given(sweeps, drives, st.tuples(viscous, viscous), st.tuples(coulomb, coulomb))
def test_both_directions_are_exact(
    speed: FloatArray, drive: DriveConstants, b: tuple[float, float], f: tuple[float, float]
) -> None:
    fit = fitted(Points(speed, asymmetric_nm(speed, b, f, drive), drive))["asymmetric"]
    assert fit.parameters == {
        "b_eq_forward_nms": approx(b[0]),
        "b_eq_backward_nms": approx(b[1]),
        "f_forward_nm": approx(f[0]),
        "f_backward_nm": approx(f[1]),
        "b_eq_nms": approx(sum(b) / 2.0),
        "f_nm": approx(sum(f) / 2.0),
    }


def grid_of(speed: FloatArray, drive: DriveConstants) -> FloatArray:
    """Where v_s is looked for: 60 steps from half the slowest to half the fastest, at the joint."""
    slow, fast = np.min(np.abs(speed)), np.max(np.abs(speed))
    ratio = (fast / slow) ** (1.0 / 59.0)
    return np.array([0.5 * slow / drive.reduction * ratio**k for k in range(60)])


@settings(max_examples=examples(30))
@given(sweeps, drives, st.floats(1.1, 3.0), st.integers(20, 45))
def test_stribeck_is_exact(
    speed: FloatArray, drive: DriveConstants, static: float, place: int
) -> None:
    v_s = float(grid_of(speed, drive)[place])
    torque = stribeck_nm(speed, static * F_NM, v_s, drive)
    fit = fitted(Points(speed, torque, drive))["stribeck"]
    assert fit.parameters == {
        "b_eq_nms": approx(B_NMS, 1e-4),
        "f_nm": approx(F_NM, 1e-4),
        "f_static_nm": approx(static * F_NM, 1e-4),
        "stribeck_velocity_rad_s": approx(v_s),
    }


@settings(max_examples=examples(20))
@given(st.floats(1.1, 3.0), st.integers(20, 45), st.floats(0.1, 1.0))
def test_stribeck_is_exact_where_speeds_give_way_to_cogging(
    static: float, place: int, depth: float
) -> None:
    """A bug: 30 % too high a velocity was found, far outside its interval."""
    speed = both_ways(SPEEDS_RAD_S)
    waves = 1.0 + depth * np.sin(np.linspace(0.0, math.tau, 20, endpoint=False))
    speeds = speed[:, None] * waves / np.mean(waves)
    v_s = float(grid_of(speed, DRIVE)[place])
    torque = np.mean([stribeck_nm(part, static * F_NM, v_s) for part in speeds.T], axis=0)
    fit = fitted(Points(speed, torque, DRIVE, speeds))["stribeck"]
    assert fit.parameters == {
        "b_eq_nms": approx(B_NMS, 1e-4),
        "f_nm": approx(F_NM, 1e-4),
        "f_static_nm": approx(static * F_NM, 1e-4),
        "stribeck_velocity_rad_s": approx(v_s),
    }


@pytest.mark.parametrize("name", ["coulomb_viscous", "asymmetric", "stribeck"])
def test_what_a_model_predicts_and_leaves_is_what_was_measured(name: str) -> None:
    speed = both_ways(SPEEDS_RAD_S)
    torque = simple_nm(speed) + np.random.default_rng(2).normal(0.0, SIGMA_NM, len(speed))
    fit = fitted(Points(speed, torque, DRIVE))[name]
    predicted = predict(fit.name, fit.parameters, DRIVE, speed)
    np.testing.assert_allclose(predicted + fit.residuals_nm, torque, rtol=1e-7)
    assert predict(fit.name, fit.parameters, DRIVE, np.zeros(1)) == 0.0


# --- plateaus that a fit has not seen -------------------------------------------------------------


def naive_errors(columns: FloatArray, torque: FloatArray) -> FloatArray:
    """Each row predicted from a fit to all others."""
    errors = []
    for row in range(len(torque)):
        others = np.arange(len(torque)) != row
        scale = np.linalg.norm(columns[others], axis=0)
        solution, *_ = np.linalg.lstsq(columns[others] / scale, torque[others], rcond=None)
        errors.append(torque[row] - columns[row] / scale @ solution)
    return np.array(errors)


def design(name: str, speed: FloatArray, v_s: float = 1.0) -> FloatArray:
    sign = np.sign(speed)
    if name == "asymmetric":
        ahead = speed > 0.0
        return np.column_stack([speed * ahead, speed * ~ahead, sign * ahead, sign * ~ahead])
    if name == "stribeck":
        return np.column_stack(
            [speed, sign, sign * np.exp(-((speed / DRIVE.reduction / v_s) ** 2))]
        )
    return np.column_stack([speed, sign])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["coulomb_viscous", "asymmetric"])
def test_held_out_errors_are_those_of_refitting(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    speed = both_ways(SPEEDS_RAD_S[:: seed + 1])[: 36 - seed]
    torque = simple_nm(speed) + random.normal(0.0, SIGMA_NM, len(speed))
    held_out = fitted(Points(speed, torque, DRIVE))[name].held_out_nm
    np.testing.assert_allclose(held_out, naive_errors(design(name, speed), torque), rtol=1e-6)


@pytest.mark.parametrize("static", [1.0, 1.3])
def test_stribeck_by_brute_force(static: float) -> None:
    speed = both_ways(SPEEDS_RAD_S)
    noise = np.random.default_rng(4).normal(0.0, SIGMA_NM, len(speed))
    torque = stribeck_nm(speed, static * F_NM, 0.1) + noise
    fit = fitted(Points(speed, torque, DRIVE))["stribeck"]
    grid = grid_of(speed, DRIVE)

    def squared(v_s: float, rows: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        columns = design("stribeck", speed, v_s)
        scale = np.linalg.norm(columns, axis=0)
        solution, *_ = np.linalg.lstsq(columns[rows] / scale, torque[rows], rcond=None)
        errors = torque - columns / scale @ solution
        return float(np.sum(errors[rows] ** 2)), errors, solution / scale

    everything = np.ones(len(speed), bool)
    best = int(np.argmin([squared(v_s, everything)[0] for v_s in grid]))
    _, residuals, (b, coulomb_nm, extra_nm) = squared(grid[best], everything)
    assert fit.parameters["stribeck_velocity_rad_s"] == pytest.approx(grid[best])
    assert fit.parameters["b_eq_nms"] == pytest.approx(b, rel=1e-4)
    assert fit.parameters["f_nm"] == pytest.approx(coulomb_nm * DRIVE.reduction, rel=1e-5)
    static_nm = (coulomb_nm + extra_nm) * DRIVE.reduction
    assert fit.parameters["f_static_nm"] == pytest.approx(static_nm, rel=1e-5)
    np.testing.assert_allclose(fit.residuals_nm, residuals, atol=1e-9)
    for row in range(len(speed)):
        others = everything.copy()
        others[row] = False
        tried = [squared(v_s, others) for v_s in grid]
        _, errors, _ = min(tried, key=lambda one: one[0])
        assert fit.held_out_nm[row] == pytest.approx(errors[row], rel=1e-5, abs=1e-12)


# --- with noise -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draws() -> list[list[ModelFit]]:
    """The same joint measured again and again, 36 plateaus each; all models for the first ones."""
    speed = both_ways(SPEEDS_RAD_S)
    fits = []
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        torque = simple_nm(speed) + random.normal(0.0, SIGMA_NM, len(speed))
        points = Points(speed, torque, DRIVE)
        is_first = seed < MODEL_DRAWS
        fits.append(
            fit_models(points, random)
            if is_first
            else [_fit_linear_model("coulomb_viscous", points, random)]
        )
    return fits


def test_simple_friction_is_not_taken_for_more(draws: list[list[ModelFit]]) -> None:
    names = [select(fits).name for fits in draws[:MODEL_DRAWS]]
    assert names.count("coulomb_viscous") >= 0.97 * MODEL_DRAWS


@pytest.mark.parametrize(("name", "truth"), [("b_eq_nms", B_NMS), ("f_nm", F_NM)])
def test_intervals_cover_the_truth(draws: list[list[ModelFit]], name: str, truth: float) -> None:
    intervals = [fits[0].interval(name) for fits in draws]
    share = float(np.mean([low <= truth <= high for low, high in intervals]))
    assert 0.90 <= share <= 0.99
    widths = [high - low for low, high in intervals]
    scatter = float(np.std([fits[0].parameters[name] for fits in draws]))
    assert np.mean(widths) == pytest.approx(4.0 * scatter, rel=0.25)


SPEED = both_ways(SPEEDS_RAD_S)
OTHER_FRICTION: dict[str, Callable[[], FloatArray]] = {
    "stribeck": lambda: stribeck_nm(SPEED, 1.3 * F_NM, 0.2),
    "asymmetric": lambda: asymmetric_nm(SPEED, (B_NMS, 1.5 * B_NMS), (F_NM, 1.2 * F_NM)),
}


@pytest.mark.parametrize("name", OTHER_FRICTION)
def test_other_friction_is_recognised(name: str) -> None:
    torque = OTHER_FRICTION[name]()
    assert {chosen(SPEED, torque, seed) for seed in range(8 if IS_LONG else 4)} == {name}


def test_an_interval_grows_when_plateaus_are_few() -> None:
    replicates = np.random.default_rng(0).normal(1.0, 0.1, 1000)
    widths = []
    for degrees in (1, 2, 5, 30, 1000):
        low, high = interval_of(1.0, replicates, degrees)
        assert high - 1.0 == pytest.approx(1.0 - low)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(2.0 * 1.96 * 0.1, rel=0.05)


# --- a mounted joint ------------------------------------------------------------------------------


@settings(max_examples=examples(30))
@given(
    offset_nm=st.floats(-1.0, 1.0), inertia_kg_m2=st.floats(0.0, 1e-3), seed=st.integers(0, 1000)
)
def test_gravity_and_inertia_do_not_disturb_friction(
    offset_nm: float, inertia_kg_m2: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    speed = both_ways(SPEEDS_RAD_S)
    acceleration = random.normal(0.0, 20.0, len(speed))
    noise = random.normal(0.0, SIGMA_NM, len(speed))
    without = simple_nm(speed) + noise
    torque = without + offset_nm + inertia_kg_m2 * acceleration
    fits = [
        fitted(Points(speed, values, DRIVE, acceleration_rad_s2=acceleration))
        for values in (without, torque)
    ]
    assert set(fits[1]) == {"coulomb_viscous", "stribeck"}
    plain, loaded = (fit["coulomb_viscous"] for fit in fits)
    for name in ("b_eq_nms", "f_nm"):
        assert loaded.parameters[name] == pytest.approx(plain.parameters[name], rel=1e-6)
        assert loaded.interval(name) == pytest.approx(plain.interval(name), rel=1e-6)
    added = [
        loaded.parameters[n] - plain.parameters[n] for n in ("offset_motor_nm", "inertia_kg_m2")
    ]
    assert added == [pytest.approx(offset_nm, abs=1e-9), pytest.approx(inertia_kg_m2, abs=1e-9)]


# --- too little -----------------------------------------------------------------------------------


def assert_too_few(speed: FloatArray, plateaus: int, speeds: int, directions: int) -> None:
    found = (f"{plateaus} usable", f"{speeds} speeds", f"{directions} directions")
    with refused(DatasetError, "few-plateaus", *found, " 5 ", "2 speeds"):
        fit_models(Points(speed, simple_nm(speed), DRIVE), np.random.default_rng(0))


def test_too_few_plateaus_are_refused() -> None:
    assert_too_few(np.empty(0), 0, 0, 0)
    assert_too_few(np.array([1.0, -1.0, 5.0, -5.0]), 4, 2, 2)


def test_one_direction_is_refused() -> None:
    assert_too_few(SPEEDS_RAD_S, 9, 9, 1)


@pytest.mark.parametrize("scatter", [0.0, 1e-3])
def test_one_speed_is_refused(scatter: float) -> None:
    """A bug: measured speeds are never quite the same, and were taken for many."""
    speed = both_ways(np.array([50.0]), repetitions=20)
    speed = speed * (1.0 + scatter * np.random.default_rng(0).uniform(-1.0, 1.0, len(speed)))
    assert_too_few(speed, 40, 1, 2)


def test_two_speeds_do_not_tell_stribeck_friction() -> None:
    speed = both_ways(np.array([5.0, 50.0]), repetitions=10)
    speed = speed * (1.0 + 1e-3 * np.random.default_rng(0).uniform(-1.0, 1.0, len(speed)))
    assert set(fitted(Points(speed, simple_nm(speed), DRIVE))) == {"coulomb_viscous", "asymmetric"}


def test_one_speed_backwards_does_not_tell_the_directions_apart() -> None:
    """A bug: the model with both directions was tried, and ended in talk of ranks and columns."""
    speed = np.concatenate([np.tile(SPEEDS_RAD_S, 2), np.full(4, -50.0)])
    fits = fitted(Points(speed, simple_nm(speed), DRIVE))
    assert set(fits) == {"coulomb_viscous", "stribeck"}
    assert fits["coulomb_viscous"].parameters["f_nm"] == approx(F_NM)


def test_the_least_that_is_enough() -> None:
    speed = np.array([5.0, -5.0, 50.0, -50.0, 5.0])
    random = np.random.default_rng(0)
    torque = simple_nm(speed) + random.normal(0.0, SIGMA_NM, len(speed))
    fits = fitted(Points(speed, torque, DRIVE))
    assert set(fits) == {"coulomb_viscous"}
    low, high = fits["coulomb_viscous"].interval("f_nm")
    assert low < F_NM < high
