"""What recordings hold, gathered for the estimators: the robot, factors, and what was used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from daq.recording import open_recording
from daq.robot import Robot
from daq.robot.geometry import joint_poses
from estimation.dataset import summarise
from estimation.errors import DatasetError
from estimation.identification.judging import Data
from estimation.identification.reduction import Reducer
from estimation.identification.result import RecordingSummary
from estimation.identification.samples import Samples, Wishes
from estimation.model.base import BaseParameters
from estimation.model.regressor import Regressor


def common_text(paths: Sequence[Path]) -> str:
    """The robot file inside recordings, which must be of one arm.

    Raises:
        DatasetError: They are of different robots.
    """
    found: tuple[Path, Robot, str] | None = None
    for path in paths:
        with open_recording(path) as recording:
            robot = recording.robot
            if found is None:
                found = path, robot, recording.robot_text
            elif _kinematics(robot) != _kinematics(found[1]):
                raise DatasetError(
                    f"{path}: was recorded with robot {robot.name}, {found[0]} with "
                    f"{found[1].name}, and their joints differ; identify them apart, or name one "
                    "with --robot"
                )
    if found is None:
        raise DatasetError("there is no recording to identify from")
    return found[2]


def check_joints(robot: Robot, paths: Sequence[Path]) -> None:
    """A robot that is named must have the joints that were recorded.

    Args:
        robot: What the samples are taken to be of.
        paths: Recordings.

    Raises:
        DatasetError: A recording has other joints.
    """
    names = tuple(joint.name for joint in robot.joints)
    for path in paths:
        with open_recording(path) as recording:
            if tuple(recording.joint_names) != names:
                raise DatasetError(
                    f"{path}: has the joints {', '.join(recording.joint_names)}, robot "
                    f"{robot.name} has {', '.join(names)}"
                )


def reduce_samples(
    regressor: Regressor, base: BaseParameters, samples: Samples, *, block_s: float
) -> Data:
    """Factors of the rows that count, and of all rows.

    Args:
        regressor: Of the arm.
        base: Its base parameters.
        samples: Prepared samples, gone through once.
        block_s: Length of a block of time.

    Raises:
        DatasetError: There are no rows.
    """
    reducer = Reducer(regressor, base, block_s=block_s, repeats_s=samples.repeats_s())
    for number, prepared in samples:
        reducer.add(prepared, number)
    moving = reducer.factors()
    if not np.any(moving.of_joints[..., base.rank]):
        names = ", ".join(path.name for path in samples.paths)
        raise DatasetError(f"{names}: the torque is zero throughout: there is nothing to identify")
    return Data(moving, moving.united(reducer.left_out()))


def summary_of(path: Path, wishes: Wishes) -> RecordingSummary:
    """How much of a recording is used, and why not all of it."""
    found = summarise(path, all_modes=wishes.all_modes)
    share = wishes.rows[1] - wishes.rows[0]
    used = round(found.used * (1.0 - share if wishes.is_outside else share))
    left_out = dict(found.left_out)
    if used < found.used:
        left_out["outside the part of the time that is wanted"] = found.used - used
    return RecordingSummary(
        file=path.name,
        rows=found.rows,
        rows_used=used,
        left_out=left_out,
        seconds=used * found.period_s,
        notes=() if found.chosen == "import" else _homing_notes(path, found.not_homed),
    )


def _homing_notes(path: Path, not_homed: int) -> tuple[str, ...]:
    if not not_homed:
        return ()
    return (
        f"{path.name}: joints were not homed in {not_homed} samples; their angles count from where "
        "the robot was switched on, so that gravity is wrong",
    )


def _kinematics(robot: Robot) -> tuple[object, ...]:
    poses = joint_poses(robot)
    return (robot.gravity_m_s2, robot.coupling, *(joint.name for joint in robot.joints), *poses)
