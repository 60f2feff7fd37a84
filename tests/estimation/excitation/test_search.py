from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG, examples
from excitation_examples import QUICK, laas4, seven_joints, with_limits
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from daq.robot import Robot
from estimation.errors import ExcitationError
from estimation.excitation.clearance import Capsules
from estimation.excitation.evolution import Evolution
from estimation.excitation.fourier import SampledMotion
from estimation.excitation.limits import CLEARANCE_M, ArmLimits, Limit
from estimation.excitation.search import Excitation, find_excitation
from estimation.excitation.settings import ExcitationSettings
from estimation.model.base import condition_numbers, find_base
from estimation.model.parameters import cad_vector, choose_parameters
from estimation.model.regressor import Regressor

pytestmark = pytest.mark.chain


def find(robot: Robot | None = None, **options: Any) -> Excitation:
    """One period of the usual frequency, unless the options say otherwise."""
    chosen = {"evaluations": QUICK, "duration_s": 10.0, **options}
    return find_excitation(robot or laas4(), ExcitationSettings(**chosen))


@pytest.fixture(scope="module")
def usual() -> Excitation:
    return find()


def assert_limits_are_kept(found: Excitation, robot: Robot) -> None:
    """Worked out anew, against the robot file's own limits."""
    motion = found.motion
    assert all(limit.is_kept for limit in found.limits)
    for index, joint in enumerate(robot.joints):
        limits, q = joint.limits, motion.q_rad[:, index]
        assert limits.position_min_rad < q.min() <= q.max() < limits.position_max_rad
        assert np.abs(motion.dq_rad_s[:, index]).max() <= 0.9001 * limits.velocity_max_rad_s
        if limits.acceleration_max_rad_s2 is not None:
            acceleration = np.abs(motion.ddq_rad_s2[:, index]).max()
            assert acceleration <= 1.0001 * limits.acceleration_max_rad_s2
    capsules = Capsules(robot, clearance_m=CLEARANCE_M)
    for clearances in capsules.clearances(motion.q_rad[::7]):
        assert clearances.min(initial=np.inf) >= CLEARANCE_M


# --- the figures ----------------------------------------------------------------------------------


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(5) if IS_LONG else [0])
def test_condition_of_the_published_arm(seed: int) -> None:
    """0.1 Hz, 5 harmonics, 20 s: at most 25 ([De Facci 2024] has 47), every limit kept."""
    robot = laas4()
    found = find(robot, seed=seed, evaluations=None if IS_LONG else 1000, duration_s=20.0)
    assert (found.rank, found.parameters) == (32, 52)
    assert found.condition <= (20.0 if IS_LONG else 25.0)
    assert found.motion.t_s[-1] == 20.0
    assert_limits_are_kept(found, robot)


def test_condition_is_that_of_the_base_regressor(usual: Excitation) -> None:
    regressor = Regressor(laas4())
    base = find_base(regressor)
    phi = regressor(*(part[::10] for part in usual.motion[1:]))
    expected = condition_numbers(base.columns(phi).reshape(-1, base.rank))
    assert (usual.condition, usual.condition_scaled) == pytest.approx(expected, rel=1e-2)


def test_searching_longer_is_better_and_drawing_alone_is_worse() -> None:
    assert find(evaluations=1000).condition < 0.8 * find(evaluations=30).condition


def test_d_optimality_looks_for_something_else() -> None:
    by_cond, by_det = find(evaluations=500), find(evaluations=500, objective="dopt")

    def log_det(found: Excitation) -> float:
        regressor = Regressor(laas4())
        base = find_base(regressor)
        phi = regressor(*(part[::20] for part in found.motion[1:]))
        rows = base.columns(phi).reshape(-1, base.rank)
        return float(np.linalg.slogdet(rows.T @ rows)[1])

    assert log_det(by_det) > log_det(by_cond)
    assert by_det.condition > by_cond.condition


# --- limits ---------------------------------------------------------------------------------------


@settings(max_examples=examples(16))
@given(
    seed=st.integers(0, 10**6),
    f0_hz=st.floats(0.05, 0.5),
    harmonics=st.integers(2, 7),
    periods=st.floats(1.0, 2.5),
    ground_z_m=st.one_of(st.none(), st.floats(-1.0, -0.5)),
)
def test_limits_are_kept_whatever_is_asked_for(
    seed: int, f0_hz: float, harmonics: int, periods: float, ground_z_m: float | None
) -> None:
    robot = laas4(ground_z_m=ground_z_m)
    found = find(
        robot,
        **{"seed": seed, "f0_hz": f0_hz, "harmonics": harmonics, "duration_s": periods / f0_hz},
        evaluations=50,
    )
    assert_limits_are_kept(found, robot)


@pytest.mark.parametrize(
    ("limits", "unit"),
    [
        ({"position_min_rad": -0.4, "position_max_rad": 0.3}, "rad"),
        ({"acceleration_max_rad_s2": 2.0}, "rad/s²"),
        ({"velocity_max_rad_s": 0.5}, "rad/s"),
        ({"current_max_a": 9.0}, "A"),
    ],
)
def test_each_limit_binds(limits: dict[str, float], unit: str) -> None:
    robot = with_limits(laas4(ground_z_m=None), **limits)
    found = find(robot, evaluations=100)
    assert_limits_are_kept(found, robot)
    shares = [abs(x.reached / x.limit) for x in found.limits if x.unit == unit]
    assert 0.5 < max(shares) <= 1.0


def test_predicted_torque_and_current_leave_a_reserve(usual: Excitation) -> None:
    robot = laas4()
    regressor = Regressor(robot)
    theta = cad_vector(robot, regressor.parameters)
    torque = np.abs(regressor(*usual.motion[1:]) @ theta).max(axis=0)
    reached = {(x.name, x.joint): x for x in usual.limits}
    for index, joint in enumerate(robot.joints):
        limit = reached["torque", joint.name]
        assert limit.reached == pytest.approx(torque[index])
        assert limit.limit == pytest.approx(0.7 * joint.limits.torque_max_nm)
        current = reached["current", joint.name]
        per_a = robot.motor_of(joint).torque_constant_nm_per_a * joint.drive.gear_reduction
        assert current.reached == pytest.approx(torque[index] / per_a)
        assert current.limit == pytest.approx(0.7 * joint.limits.current_max_a)


def test_seven_joints_without_boards_and_without_cad() -> None:
    robot = seven_joints()
    found = find(robot, evaluations=60)
    assert_limits_are_kept(found, robot)
    names = {limit.name for limit in found.limits}
    assert "torque" in names
    assert "current" not in names
    bare = find(seven_joints(has_links=False), evaluations=20)
    assert {limit.name for limit in bare.limits} == {
        *("position_min", "position_max", "velocity", "acceleration", "link_clearance")
    }


def test_the_way_from_home_counts() -> None:
    """Home is above the ground, and so must be what lies between it and the first sample."""
    robot = laas4(ground_z_m=-0.7)
    limits = ArmLimits(Regressor(robot))
    turned = np.array([0.0, -np.pi / 2 - 2 * np.pi, 0.0, 0.0])
    rest = np.tile(turned, (3, 1))
    still = SampledMotion(np.arange(3.0), rest, 0 * rest, 0 * rest)
    (ground,) = (x for x in limits.check(still) if x.name == "ground_clearance")
    # The arm swings once around, its last link across: lowest while that points down, too.
    way = limits.approach(turned, 500)
    assert ground.reached == pytest.approx(limits.nearest(way)[1].min(), abs=1e-3)
    assert ground.reached < limits.nearest(rest)[1].min() - 0.001


def test_a_home_posture_that_is_too_near_is_no_reason_to_refuse() -> None:
    """A file may state the table that an arm works on, and let it hang over the edge at home."""
    robot = laas4(ground_z_m=0.0)
    found = find(robot, evaluations=200)
    assert_limits_are_kept(found, robot)


def test_no_room_says_which_limit_is_in_the_way() -> None:
    with refused(ExcitationError, "no-trajectory", "current of joint", " 0.0"):
        find(with_limits(laas4(), current_max_a=0.1), evaluations=20)


def test_a_limit_in_words() -> None:
    lower = Limit("ground_clearance", "joint4", 0.02, 0.01, "m", is_lower=True)
    upper = Limit("velocity", "joint1", 4.5, 4.5, "rad/s")
    assert str(lower) == "ground_clearance of joint4: 0.01 m, at least 0.02"
    assert str(upper) == "velocity of joint1: 4.5 rad/s, at most 4.5"
    assert (lower.is_kept, upper.is_kept) == (False, True)


# --- what is asked for ----------------------------------------------------------------------------


def test_one_seed_one_trajectory() -> None:
    first, again, other = (find(seed=seed, evaluations=60) for seed in (3, 3, 4))
    assert np.array_equal(first.motion.q_rad, again.motion.q_rad)
    assert not np.allclose(first.motion.q_rad, other.motion.q_rad)


def test_a_validation_trajectory_is_another_one(usual: Excitation) -> None:
    other = find(is_validation=True)
    assert other.trajectory.f0_hz == pytest.approx(0.8 * usual.trajectory.f0_hz)
    for a, b in zip(usual.motion.dq_rad_s.T, other.motion.dq_rad_s.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.7
    assert not np.allclose(usual.trajectory.sine_rad, other.trajectory.sine_rad, rtol=0.1)
    assert_limits_are_kept(other, laas4())


def test_coverage_is_that_of_the_motion(usual: Excitation) -> None:
    spans = np.ptp(usual.motion.q_rad, axis=0) / (4 * np.pi)
    assert list(usual.coverage.joint_percent.values()) == pytest.approx(100 * spans)
    tip = Capsules(laas4()).segments(usual.motion.q_rad)[1][:, -1]
    assert usual.coverage.tip_min_m == pytest.approx(tip.min(axis=0))
    assert usual.coverage.tip_max_m == pytest.approx(tip.max(axis=0))
    assert 1.0 < usual.coverage.voxel_percent < 60.0


def test_terms_count_and_progress_is_told() -> None:
    robot = laas4()
    told: list[tuple[float, float]] = []
    found = find_excitation(
        robot,
        ExcitationSettings(evaluations=50, duration_s=10.0),
        parameters=choose_parameters(robot, ["viscous", "coulomb"]),
        progress=lambda *x: told.append(x),
    )
    assert (found.rank, found.parameters) == (30, 48)
    assert told[-1] == (50, 50)
    assert told == sorted(told) and len(told) > 1


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"f0_hz": 0.0}, ("f0 0:",)),
        ({"f0_hz": float("nan")}, ("f0 nan:",)),
        ({"harmonics": 1}, ("harmonics 1:", "2")),
        ({"harmonics": 31}, ("harmonics 31:", "2", "30")),
        ({"f0_hz": 3.0}, ("harmonics 5:", "15 Hz", "10 Hz")),
        ({"duration_s": 9.0}, ("duration 9:", "10 s")),
        ({"duration_s": 600.0}, ("duration 600:", "599 s")),
        ({"duration_s": -1.0}, ("duration -1:",)),
        ({"evaluations": 0}, ("evaluations 0:", "1")),
        ({"seed": -1}, ("seed -1:",)),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], values: tuple[str, ...]) -> None:
    with refused(ExcitationError, "bad-settings", *values):
        find(**options)


def test_evolution_finds_the_bottom_of_a_narrow_valley() -> None:
    """Rosenbrock's function in eight dimensions."""
    evolution = Evolution(np.zeros(8), 0.3, 16, np.random.default_rng(0))
    for _ in range(600):
        x = evolution.ask()
        evolution.tell((100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1))
    assert evolution.ask().mean(axis=0) == pytest.approx(np.ones(8), abs=1e-3)
    assert evolution.spread < 1e-3


def test_one_link_moves_too() -> None:
    robot = laas4()
    pendulum = msgspec.structs.replace(robot, joints=robot.joints[1:2])
    found = find(pendulum, evaluations=50)
    assert_limits_are_kept(found, pendulum)
    assert found.rank < 6


@pytest.mark.parametrize(
    ("limits", "tightest"),
    [
        ({"velocity_max_rad_s": 1e-6}, "velocity of joint"),
        ({"position_min_rad": 0.0, "position_max_rad": 1e-7}, "position_m"),
    ],
)
def test_an_arm_that_hardly_moves_is_refused(limits: dict[str, float], tightest: str) -> None:
    with refused(ExcitationError, "no-information", tightest):
        find(with_limits(laas4(), **limits), evaluations=20)


def test_links_that_always_overlap_are_named(usual: Excitation) -> None:
    assert usual.unchecked == ()
    pairs = Capsules(seven_joints(), clearance_m=0.02).joined
    assert pairs == ((0, 2), (2, 4), (4, 6))


def test_many_joints_get_fewer_evaluations() -> None:
    usual = [ExcitationSettings().default_evaluations(joints) for joints in (4, 7, 12, 32)]
    assert usual == [8000, 14000, 2779, 147]
