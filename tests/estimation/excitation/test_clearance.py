from __future__ import annotations

import msgspec
import numpy as np
import pinocchio
import pytest
from excitation_examples import laas4, seven_joints
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daq.robot import Robot
from daq.robot.rigid_body import make_model
from estimation.excitation.clearance import Capsules, segment_distances

coordinate = st.one_of(st.floats(-2.0, 2.0, width=32), st.sampled_from([0.0, 1.0, -1.0]))
segments = arrays(np.float64, (4, 3), elements=coordinate)


def by_force(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    """The least distance between points of a grid that is refined around the best ones."""
    low, high = np.zeros(2), np.ones(2)
    best = np.inf
    for _ in range(12):
        s, t = (np.linspace(low[i], high[i], 41) for i in range(2))
        one, other = a + s[:, None] * (b - a), c + t[:, None] * (d - c)
        distances = np.linalg.norm(one[:, None] - other[None], axis=2)
        i, j = np.unravel_index(distances.argmin(), distances.shape)
        best = min(best, float(distances[i, j]))
        centre, width = np.array([s[i], t[j]]), (high - low) / 8
        low, high = np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
    return best


@given(segments)
@example(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]))  # parallel
@example(np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]))  # in one line
@example(np.array([[0.0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 0]]))  # two points
@example(np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]]))  # crossing
@example(np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0.5], [0, 1, 0.5]]))  # passing
@example(np.array([[-1.0, 0, 0], [1, 0, 0], [-1, 1e-7, 0.5], [1, 0, 0.5]]))  # nearly parallel
def test_distance_of_segments(points: np.ndarray) -> None:
    found = segment_distances(*points[:, np.newaxis])
    assert found.shape == (1,)
    # Both are upper bounds of the true distance; the grid is the coarser one.
    assert found[0] <= by_force(*points) + 1e-6
    assert found[0] == pytest.approx(by_force(*points), abs=2e-3)


def test_distances_have_the_shape_of_their_segments() -> None:
    points = np.random.default_rng(0).normal(size=(4, 5, 2, 3))
    distances = segment_distances(*points)
    assert distances.shape == (5, 2)
    for i, j in np.ndindex(5, 2):
        assert distances[i, j] == pytest.approx(by_force(*points[:, i, j]), abs=1e-4)


@pytest.mark.parametrize("robot", [laas4(), seven_joints()], ids=lambda robot: robot.name)
def test_kinematics_are_those_of_pinocchio(robot: Robot) -> None:
    q = np.random.default_rng(1).uniform(-3.0, 3.0, (20, len(robot.joints)))
    model = make_model(robot)
    data = model.createData()
    rotations, origins = Capsules(robot).frames(q)
    for sample, posture in enumerate(q):
        pinocchio.forwardKinematics(model, data, posture)
        for joint, pose in enumerate(data.oMi[1:]):
            assert rotations[sample, joint] == pytest.approx(pose.rotation, abs=1e-12)
            assert origins[sample, joint] == pytest.approx(pose.translation, abs=1e-12)


def test_the_arm_stretched_out() -> None:
    """Its shoulder is 0.167 m high, it is 0.65 m long and ends 0.1 m further."""
    starts, ends = Capsules(laas4()).segments(np.array([[0.0, 0.0, 0.0, np.pi / 2]]))
    assert ends[0, 3] == pytest.approx([0.75, 0.0, 0.167])
    assert starts[0, 2] == pytest.approx([0.325, 0.0, 0.167])


def test_height_above_the_ground() -> None:
    hanging = np.array([[0.3, -np.pi / 2, 0.2, np.pi / 2]])
    _, heights = Capsules(laas4(ground_z_m=-1.0)).clearances(hanging)
    assert heights[0, 3] == pytest.approx(1.0 + 0.167 - 0.75 - 0.04)
    assert np.isinf(heights[0, 0])  # it stands, whatever the arm does
    _, heights = Capsules(laas4(ground_z_m=None)).clearances(hanging)
    assert np.isinf(heights).all()


def test_a_folded_arm_touches_itself() -> None:
    capsules = Capsules(seven_joints())
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (20_000, 7))
    between, _ = capsules.clearances(q)
    sample, pair = np.unravel_index(between.argmin(), between.shape)
    assert between[sample, pair] < 0.0
    first, second = capsules.pairs[int(pair)]
    starts, ends = (points[sample] for points in capsules.segments(q))
    distance = by_force(starts[first], ends[first], starts[second], ends[second])
    assert between[sample, pair] == pytest.approx(distance - 0.08, abs=1e-4)


def test_links_that_always_overlap_are_no_pair() -> None:
    """Around a wrist whose axes meet: between links 1 and 3 there is nothing."""
    pairs = {tuple(pair) for pair in Capsules(seven_joints(), clearance_m=0.02).pairs}
    assert not pairs & {(0, 1), (0, 2), (2, 4), (4, 6)}
    assert {(0, 3), (0, 4), (2, 6)} <= pairs
    assert set(Capsules(laas4()).pairs) == {(0, 2), (0, 3), (1, 3)}


def test_the_far_end_may_be_stated() -> None:
    robot = laas4()
    joints = list(robot.joints)
    link = msgspec.structs.replace(joints[3].link, tip_m=(0.0, 0.3, 0.0))
    joints[3] = msgspec.structs.replace(joints[3], link=link)
    _, ends = Capsules(msgspec.structs.replace(robot, joints=tuple(joints))).segments(
        np.zeros((1, 4))
    )
    assert ends[0, 3] == pytest.approx([0.95, 0.0, 0.167])


def test_links_that_are_not_described_have_a_usual_radius() -> None:
    assert Capsules(seven_joints(has_links=False)).radii_m == pytest.approx(0.04)
