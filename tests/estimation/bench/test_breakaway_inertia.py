"""Breakaway, inertia and the torque constant, from motions integrated here with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from acceptance import IS_LONG
from bench_records import BenchTest, Fault, Part, Plant, make_robot
from refusals import refused

from daq.recording.bench_events import LoadArm
from estimation.bench.breakaway_inertia import find_breakaway, find_inertia
from estimation.bench.load_arm import LoadArmResult, find_torque_constant
from estimation.bench.result import EstimatedQuantity
from estimation.errors import DatasetError

pytestmark = pytest.mark.chain

NOISE_A = 20e-3
ARM = LoadArm(mass_kg=1.5, length_m=0.2)


def error_of(quantity: EstimatedQuantity | None) -> float:
    assert quantity is not None
    assert quantity.truth is not None
    return quantity.value / quantity.truth - 1.0


def is_covered(quantity: EstimatedQuantity | None) -> bool:
    assert quantity is not None
    assert quantity.low is not None
    assert quantity.high is not None
    assert quantity.truth is not None
    return quantity.low <= quantity.truth <= quantity.high


def lose(part: Part, inside: slice) -> None:
    for name in ("angle_rad", "velocity_rad_s", "iq_a"):
        part[name][:] = math.nan


# --- breakaway ------------------------------------------------------------------------------------


def ramped(plant: Plant, seed: int, count: int = 10, **changes: object) -> BenchTest:
    bench = BenchTest(plant, noise_a=NOISE_A, seed=seed, **changes)  # type: ignore[arg-type]
    for number in range(count):
        bench.ramp(-1.0 if number % 2 else 1.0)
    return bench


def breakaway(bench: BenchTest) -> EstimatedQuantity | None:
    return find_breakaway(bench.record(truth=bench.truth), bench.plant.inertia_kg_m2)


@pytest.mark.parametrize(
    ("plant", "share"),
    [
        (Plant(static_nm=0.15), 0.75),
        (Plant(static_nm=0.15, cogging_nm=1e-3), 0.75),
        # Cogging of half the friction, which fades as soon as the motor moves: a percent too high.
        (Plant(static_nm=0.2, cogging_nm=2e-3, stribeck_rad_s=0.1, inertia_kg_m2=3e-5), 0.375),
    ],
)
def test_breakaway_is_found_wherever_cogging_lets_the_motor_rest(
    plant: Plant, share: float
) -> None:
    found = [breakaway(ramped(plant, seed)) for seed in range(8 if IS_LONG else 4)]
    errors = [error_of(quantity) for quantity in found]
    assert max(map(abs, errors)) < 0.04
    assert abs(np.mean(errors)) < 0.02
    assert np.mean([is_covered(quantity) for quantity in found]) >= share


def test_single_ramps_are_far_off_where_cogging_holds_the_motor() -> None:
    """Which is why all of them are taken together."""
    bench = ramped(Plant(cogging_nm=1e-3), 0)
    record = bench.record()
    at_start = np.array([np.mean(record.iq_a[span.end - 40 : span.end]) for span in record.ramps])
    torque_nm = np.abs(at_start) * bench.drive.k_i_nm_per_a / bench.drive.load_to_motor
    assert np.ptp(torque_nm) > 0.2 * bench.plant.f_nm


def test_breakaway_behind_a_gear_with_losses() -> None:
    text = make_robot(efficiency=0.7, direction=-1)
    assert abs(error_of(breakaway(ramped(Plant(static_nm=0.15), 1, text=text)))) < 0.05


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_ramps_give_no_breakaway(count: int) -> None:
    assert breakaway(ramped(Plant(), 0, count)) is None


def test_five_ramps_are_enough() -> None:
    assert abs(error_of(breakaway(ramped(Plant(), 0, 5)))) < 0.1


def test_ramps_that_never_move_give_no_breakaway() -> None:
    assert breakaway(ramped(Plant(static_nm=0.5), 0)) is None


def test_ramps_that_nothing_is_known_of_do_not_count() -> None:
    for fault, expected in ((lose, 5), (None, 6)):
        bench = BenchTest(Plant(), noise_a=NOISE_A)
        for number in range(6):
            bench.ramp(-1.0 if number % 2 else 1.0, fault=fault if number > 3 else None)
        assert (breakaway(bench) is None) == (expected == 5)


def test_ramps_from_one_and_the_same_place_say_nothing_wrong() -> None:
    bench = BenchTest(Plant(cogging_nm=1e-3), noise_a=NOISE_A)
    for number in range(10):
        bench.ramp(-1.0 if number % 2 else 1.0, rest_rad=number * 2.0 * math.pi)
    quantity = breakaway(bench)
    assert quantity is None or is_covered(quantity) or abs(error_of(quantity)) < 0.05


# --- inertia --------------------------------------------------------------------------------------


def stepped(plant: Plant, seed: int, count: int = 6, fault: Fault | None = None) -> BenchTest:
    bench = BenchTest(plant, noise_a=NOISE_A, seed=seed)
    for number in range(count):
        bench.step(-0.4 if number % 2 else 0.4, fault=fault)
    return bench


def inertia(bench: BenchTest, viscous: float = 1.0) -> EstimatedQuantity | None:
    record = bench.record(truth=bench.truth)
    return find_inertia(record, viscous * bench.plant.b_nms, np.random.default_rng(0))


@pytest.mark.parametrize(
    "plant",
    [
        Plant(),
        Plant(cogging_nm=1e-3),
        Plant(static_nm=0.15, cogging_nm=1e-3, inertia_kg_m2=2e-5),
        Plant(b_nms=1e-5, inertia_kg_m2=4e-5),
    ],
)
def test_inertia_is_found(plant: Plant) -> None:
    found = [inertia(stepped(plant, seed)) for seed in range(6 if IS_LONG else 3)]
    errors = [error_of(quantity) for quantity in found]
    assert max(map(abs, errors)) < 0.02
    assert np.mean([is_covered(quantity) for quantity in found]) >= 0.6


def test_a_wrong_viscous_friction_hardly_matters() -> None:
    bench = stepped(Plant(), 0)
    assert all(abs(error_of(inertia(bench, viscous))) < 0.05 for viscous in (0.0, 2.0))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_steps_give_no_inertia(count: int) -> None:
    assert inertia(stepped(Plant(), 0, count)) is None


def keep_little(part: Part, inside: slice) -> None:
    for name in ("velocity_rad_s", "iq_a"):
        part[name][60:] = math.nan


def lose_driving(part: Part, inside: slice) -> None:
    peak = int(np.argmax(np.abs(part["velocity_rad_s"])))
    for name in ("velocity_rad_s", "iq_a"):
        part[name][: peak - 100] = math.nan


def lose_some(part: Part, inside: slice) -> None:
    for name in ("angle_rad", "velocity_rad_s", "iq_a"):
        part[name][np.arange(len(part[name])) % 4 == 0] = math.nan


@pytest.mark.parametrize("fault", [lose, keep_little])
def test_steps_that_hardly_anything_is_known_of_give_no_inertia(fault: Fault) -> None:
    assert inertia(stepped(Plant(), 0, fault=fault)) is None


def test_coasting_alone_gives_no_inertia() -> None:
    """A bug: inertia and friction were told apart by noise, and J came out negative."""
    assert inertia(stepped(Plant(), 0, fault=lose_driving)) is None


def test_steps_with_lost_replies_still_count() -> None:
    assert abs(error_of(inertia(stepped(Plant(), 0, fault=lose_some)))) < 0.02


def test_a_motor_that_does_not_move_has_no_inertia() -> None:
    """All phases are noise around rest: whatever comes out must not be sold as sure."""
    bench = BenchTest(Plant(static_nm=1.0), noise_a=NOISE_A)
    for number in range(6):
        bench.step(-0.2 if number % 2 else 0.2)
    assert inertia(bench) is None


# --- the torque constant --------------------------------------------------------------------------


def weighed(bench: BenchTest, arm: LoadArm = ARM) -> LoadArmResult:
    return find_torque_constant(bench.record(kind="load_arm", load_arm=arm, truth=bench.truth))


@pytest.mark.parametrize("hangs_rad", [0.0, 0.04, -0.04])
@pytest.mark.parametrize("saturation_per_a2", [0.0, 0.0069, 0.02])
def test_the_torque_constant_and_its_drop_are_found(
    saturation_per_a2: float, hangs_rad: float
) -> None:
    """K·i/√(1 + c·i²) is no polynomial: of a drop by a tenth, half a percent is missed."""
    bench = BenchTest(Plant(saturation_per_a2=saturation_per_a2), noise_a=NOISE_A)
    found = weighed(bench.swings(ARM, hangs_rad=hangs_rad))
    assert abs(error_of(found.torque_constant)) < 0.005
    assert found.drop.truth is not None
    assert found.drop.value == pytest.approx(found.drop.truth, abs=0.005)
    assert found.highest_a == pytest.approx(3.42 * (1.0 + found.drop.value), rel=0.05)
    true_drop = 1.0 - 1.0 / math.sqrt(1.0 + saturation_per_a2 * found.highest_a**2)
    assert found.drop.truth == pytest.approx(true_drop)
    shape = found.current_a.shape
    assert shape == found.torque_nm.shape == found.fit_nm.shape
    assert shape[0] > 40
    np.testing.assert_allclose(found.fit_nm, found.torque_nm, atol=1e-3)


def test_a_constant_other_than_the_robot_files_is_found() -> None:
    """The weight knows nothing of K_v: the motor is stronger than its data sheet says."""
    bench = BenchTest(Plant(), noise_a=NOISE_A)
    bench.swings(LoadArm(mass_kg=1.2, length_m=0.2))
    found = weighed(bench, ARM)  # the same currents lift a quarter more
    assert found.torque_constant.value == pytest.approx(1.25 * bench.drive.k_i_nm_per_a, rel=0.005)
    assert found.drop.value == pytest.approx(0.0, abs=0.005)


def test_gears_with_losses_and_motors_that_turn_the_other_way() -> None:
    bench = BenchTest(Plant(), text=make_robot(efficiency=0.8, direction=-1), noise_a=NOISE_A)
    assert abs(error_of(weighed(bench.swings(ARM)).torque_constant)) < 0.005


def assert_refused(bench: BenchTest, code: str, *values: str, arm: LoadArm | None = ARM) -> None:
    with refused(DatasetError, code, *values):
        find_torque_constant(bench.record(kind="load_arm", load_arm=arm))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_swings_are_refused(count: int) -> None:
    assert_refused(BenchTest().swings(ARM, count=count), "few-swings", f"{count} swings", " 5")


def test_five_swings_are_enough() -> None:
    bench = BenchTest(Plant(), noise_a=NOISE_A).swings(ARM, count=5)
    assert abs(error_of(weighed(bench).torque_constant)) < 0.01


def test_a_test_without_an_arm_is_refused() -> None:
    assert_refused(BenchTest().swings(ARM), "not-a-load-arm", arm=None)


def test_a_swing_that_was_not_recorded_is_refused() -> None:
    assert_refused(BenchTest().swings(ARM, fault=lose), "few-angles", "0 of 60", " 20")


def test_nothing_valid_at_all_is_refused() -> None:
    bench = BenchTest().swings(ARM)
    for part in bench.parts:
        lose(part, slice(0, 0))
    assert_refused(bench, "no-valid-angle")


def test_a_first_reply_that_was_lost_does_not_matter() -> None:
    """A bug: the start was taken for unknown, and SciPy complained of residuals."""
    bench = BenchTest(Plant(), noise_a=NOISE_A).swings(ARM)
    for name in ("angle_rad", "velocity_rad_s", "iq_a"):
        bench.parts[0][name][:3] = math.nan
    assert abs(error_of(weighed(bench).torque_constant)) < 0.005


def test_a_weight_that_friction_hides_is_refused() -> None:
    """A bug: of a weight that was hardly there, a torque constant was computed from noise."""
    light = LoadArm(mass_kg=0.005, length_m=0.2)
    bench = BenchTest(Plant(), noise_a=NOISE_A).swings(light)
    assert_refused(bench, "weight-too-light", " 0.0", " 0.14", arm=light)
