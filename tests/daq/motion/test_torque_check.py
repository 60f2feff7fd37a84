"""How plans are checked for torque: at few points, and never a motor that is too weak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from daq.control.torque_model import load_torque_model
from daq.motion.errors import MotionLimitError
from daq.motion.playback import Playback
from daq.motion.torque_check import LOAD_SHARE, TorqueCheck
from daq.robot import load_robot
from daq.robot.description import DrivenRobot

POINTS_MAX = 64
TORQUES_NM = (17.0, 9.4, 5.0, 9.4)


class CountedModel:
    """A model that counts how often it is asked for torques."""

    def __init__(self, robot: DrivenRobot) -> None:
        self._model = load_torque_model(robot)
        assert self._model is not None
        self.gravity_nm = self._model.gravity_nm
        self.payload_nm = self._model.payload_nm
        self.inertia_kg_m2 = self._model.inertia_kg_m2
        self.free_inertia_kg_m2 = self._model.free_inertia_kg_m2
        self.asked = 0

    def torque_nm(
        self, q_rad: Sequence[float], dq_rad_s: Sequence[float], ddq_rad_s2: Sequence[float]
    ) -> list[float]:
        self.asked += 1
        assert self._model is not None
        return self._model.torque_nm(q_rad, dq_rad_s, ddq_rad_s2)


@pytest.fixture
def model() -> CountedModel:
    robot = load_robot("laas4")
    assert isinstance(robot, DrivenRobot)
    return CountedModel(robot)


@pytest.fixture
def check(model: CountedModel) -> TorqueCheck:
    robot = load_robot("laas4")
    assert isinstance(robot, DrivenRobot)
    return TorqueCheck(
        robot.joints,
        model,
        TORQUES_NM,
        inertias_max_kg_m2=[0.3] * 4,
        gravities_max_nm=[0.0, 6.0, 0.5, 0.5],
        period_s=1e-3,
    )


def swing(cycles: int, way_rad: float) -> Playback:
    """Joint 2 up from hanging and down again."""
    phase = np.linspace(0.0, 2.0 * np.pi, cycles)
    rows = np.zeros((cycles, 8))
    rows[:, 1] = -np.pi / 2 + 0.5 * way_rad * (1.0 - np.cos(phase))
    rows[:, 5] = np.gradient(rows[:, 1], 1e-3)
    playback = Playback(4, has_torque=False)
    playback.append(rows.astype("<f8").tobytes())
    return playback


@pytest.mark.parametrize("cycles", [2, 100, 20_000])
def test_a_trajectory_is_looked_at_at_no_more_than_64_points(
    check: TorqueCheck, model: CountedModel, cycles: int
) -> None:
    check.check_playback(swing(cycles, 1e-4))
    assert 1 <= model.asked <= POINTS_MAX


@pytest.mark.parametrize("cycles", [10, 300, 60_000])
def test_a_move_is_looked_at_at_no_more_than_64_points(
    check: TorqueCheck, model: CountedModel, cycles: int
) -> None:
    rest = ([0.0, -np.pi / 2, 0.0, 0.0], [0.0] * 4)
    assert check.stretch(lambda _k: rest, cycles) == 1.0
    assert 1 <= model.asked <= POINTS_MAX


def test_a_trajectory_that_takes_more_than_a_motor_gives_is_refused(check: TorqueCheck) -> None:
    with pytest.raises(MotionLimitError) as refusal:
        check.check_playback(swing(400, 1.5))
    assert (refusal.value.code, refusal.value.joint) == ("torque-limit", "joint2")
    assert refusal.value.limit == TORQUES_NM[1]
    check.check_playback(swing(4000, 1.5))


def test_a_move_takes_as_much_longer_as_it_must(check: TorqueCheck, model: CountedModel) -> None:
    """What comes of speed and acceleration falls with the square of the time."""
    peak_rad_s2, cycles = 60.0, 200

    def state(k: int) -> tuple[list[float], list[float]]:
        speed = peak_rad_s2 * cycles * 1e-3 / np.pi * np.sin(np.pi * k / cycles)
        return [0.0, -np.pi / 2, 0.0, 0.0], [0.0, float(speed), 0.0, 0.0]

    stretch = check.stretch(state, cycles)
    assert stretch > 1.05
    accelerated = [0.0, peak_rad_s2 / stretch**2, 0.0, 0.0]
    needed_nm = model.torque_nm([0.0, -np.pi / 2, 0.0, 0.0], [0.0] * 4, accelerated)[1]
    assert needed_nm == pytest.approx(LOAD_SHARE * TORQUES_NM[1], rel=0.08)


def test_where_a_motor_cannot_hold_its_joint_no_time_is_long_enough(check: TorqueCheck) -> None:
    check.gravity_scales[1] = 2.0
    with pytest.raises(MotionLimitError) as refusal:
        check.stretch(lambda _k: ([0.0] * 4, [0.0] * 4), 100)
    assert (refusal.value.code, refusal.value.joint) == ("torque-limit", "joint2")
