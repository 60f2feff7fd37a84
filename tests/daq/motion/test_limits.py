"""Rows of a trajectory against the robot file's limits."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given

from daq.motion.errors import MotionError, MotionLimitError
from daq.motion.limits import RowChecker
from daq.robot import load_robot
from daq.robot.description import DrivenRobot

ARM = load_robot("laas4")
CHECKER = RowChecker(ARM)
JOINTS = 4


def sine(
    *, amplitude: float = 1.0, rad_s: float = 2.0, rows: int = 300, first: int = 0
) -> np.ndarray[Any, np.dtype[np.float64]]:
    t = (first + np.arange(rows))[:, np.newaxis] * 1e-3 + np.arange(JOINTS)
    q, dq = amplitude * np.sin(rad_s * t), rad_s * amplitude * np.cos(rad_s * t)
    return np.hstack([q, dq, q])


@given(amplitude=st.floats(0, 2.25), first=st.integers(0, 10_000), has_torque=st.booleans())
def test_what_is_inside_is_accepted(amplitude: float, first: int, has_torque: bool) -> None:
    rows = sine(amplitude=amplitude, first=first)[:, : JOINTS * (3 if has_torque else 2)]
    CHECKER.check(rows[:1])
    CHECKER.check(rows[1:], first_row=1, previous_row=rows[0].tolist())
    RowChecker(ARM).check(rows)


@given(
    row=st.integers(0, 299),
    column=st.integers(0, 3 * JOINTS - 1),
    value=st.sampled_from([math.nan, math.inf, -math.inf, 1e9, -1e9]),
)
def test_the_first_violation_is_named(row: int, column: int, value: float) -> None:
    rows = sine(rows=300)
    rows[row, column] = value
    rows[row + 1 :, (column + 5) % 12] = 1e12
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(rows, first_row=1000)
    error = caught.value
    assert error.row == 1000 + row
    assert error.joint == f"joint{column % JOINTS + 1}"
    assert error.code == f"{('position', 'speed', 'torque')[column // JOINTS]}-limit"
    assert f"{1000 + row}" in str(error) and f"{1 + row * 1e-3:.3f} s" in str(error)
    assert math.isnan(value) or error.value == value


@given(row=st.integers(1, 299), joint=st.integers(0, 3), jump=st.sampled_from([0.01, -0.01]))
def test_a_jump_of_the_position_is_named(row: int, joint: int, jump: float) -> None:
    rows = sine()
    rows[row:, joint] += jump
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(rows)
    assert caught.value.code == "position-jump"
    assert (caught.value.row, caught.value.joint) == (row, f"joint{joint + 1}")
    assert caught.value.value == pytest.approx(jump, abs=1e-6)


def test_a_jump_between_two_chunks_is_found() -> None:
    rows = sine()
    rows[150:, 2] += 0.01
    CHECKER.check(rows[:150])
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(rows[150:], first_row=150, previous_row=rows[149].tolist())
    assert (caught.value.code, caught.value.row) == ("position-jump", 150)


def test_a_jump_of_the_speed_is_named() -> None:
    rows = sine(amplitude=0.0)
    rows[100:, 5] = 0.3
    rows[100:, 1] = np.arange(200) * 0.3e-3
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(rows)
    error = caught.value
    assert (error.code, error.joint, error.row) == ("speed-jump", "joint2", 100)
    assert error.value == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("row", "joint", "value", "are_degrees"),
    [
        ([7, 0, 0, 0], "joint1", 7.0, True),
        ([0, 0, 0, -400], "joint4", -400.0, False),
        # Inside the file's limit, but nearer to it than may be commanded.
        ([0, math.tau - 0.0199, 0, 0], "joint2", math.tau - 0.0199, True),
        ([0, 0, -math.tau + 0.0199, 0], "joint3", -math.tau + 0.0199, True),
    ],
)
def test_positions(row: list[float], joint: str, value: float, are_degrees: bool) -> None:
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(np.array([[*row, 0, 0, 0, 0]], dtype=float))
    error = caught.value
    assert (error.code, error.joint, error.row) == ("position-limit", joint, 0)
    limit = math.copysign(math.tau - 0.02, value)
    assert (error.value, error.limit) == (value, pytest.approx(limit, abs=1e-12))
    assert f"{joint}: {value:.6g} rad" in str(error) and "6.26319 rad" in str(error)
    assert ("degrees" in str(error)) is are_degrees
    row[int(joint[-1]) - 1] = limit
    CHECKER.check(np.array([[*row, 0, 0, 0, 0]], dtype=float))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_speeds_up_to_nine_tenths_of_the_limit(sign: float) -> None:
    CHECKER.check(np.array([[0, 0, 0, 0, 0, sign * 4.5, 0, 0]]))
    with pytest.raises(MotionLimitError) as caught:
        CHECKER.check(np.array([[0, 0, 0, 0, 0, sign * 4.51, 0, 0]]))
    error = caught.value
    assert (error.code, error.joint) == ("speed-limit", "joint2")
    assert (error.value, error.limit) == (sign * 4.51, pytest.approx(sign * 4.5, abs=1e-12))


@pytest.mark.parametrize(("in_file", "kept"), [(1.0, 1.0), (40.0, 40.0), (None, 200.0)])
def test_speed_changes_no_faster_than_the_acceleration_in_the_file(
    in_file: float | None, kept: float
) -> None:
    checker = RowChecker(_with_limit(ARM, acceleration_max_rad_s2=in_file))

    def rows(acceleration: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        t = np.arange(20) * 1e-3
        rows = np.zeros((20, 8))
        rows[:, 2], rows[:, 6] = 0.5 * acceleration * t**2, acceleration * t
        return rows

    checker.check(rows(kept))
    with pytest.raises(MotionLimitError) as caught:
        checker.check(rows(1.02 * kept))
    error = caught.value
    assert (error.code, error.joint, error.row) == ("speed-jump", "joint3", 1)
    assert error.value == pytest.approx(1.02e-3 * kept)


def test_a_torque_is_limited_by_itself_and_by_the_current_it_needs() -> None:
    nothing = [0.0] * 8
    # joint3: K_i = 0.0276 N·m/A, gear 31, 9 A.
    with pytest.raises(MotionLimitError, match=r"9 N·m .* 10.5\d* A, limit 9 A") as caught:
        CHECKER.check(np.array([[*nothing, 0, 0, 9, 0]]))
    error = caught.value
    assert (error.code, error.joint, error.value) == ("torque-limit", "joint3", 9.0)
    CHECKER.check(np.array([[*nothing, 0, 0, 7.5, 0]]))
    weak = _with_limit(ARM, torque_max_nm=5.0)
    with pytest.raises(MotionLimitError) as caught:
        RowChecker(weak).check(np.array([[*nothing, 0, 0, -6, 0]]))
    error = caught.value
    assert (error.code, error.joint) == ("torque-limit", "joint3")
    assert (error.value, error.limit) == (-6.0, -5.0)


@pytest.mark.parametrize("shape", [(3, 4), (3, 9), (12,), (0, 5)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(MotionError) as caught:
        CHECKER.check(np.zeros(shape))
    assert caught.value.code == "wrong-shape"


def test_no_rows_are_fine() -> None:
    CHECKER.check(np.zeros((0, 8)))


def _with_limit(robot: DrivenRobot, **changes: float | None) -> DrivenRobot:
    joints = tuple(
        msgspec.structs.replace(joint, limits=msgspec.structs.replace(joint.limits, **changes))
        for joint in robot.joints
    )
    return msgspec.structs.replace(robot, joints=joints)
