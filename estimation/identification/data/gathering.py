"""Gathers what the estimators need from recordings: the robot, factors, which rows were used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from daq.recording import Recording, open_recording
from daq.recording.text import plain
from daq.robot import Robot, parse_robot
from daq.robot.geometry import joint_poses
from estimation.errors import DatasetError
from estimation.identification.data.factors import ReducedSamples
from estimation.identification.data.reduction import Reducer
from estimation.identification.data.samples import Samples, Segments, choose_preparation
from estimation.identification.request import Overrides, Request
from estimation.identification.result import RecordingSummary
from estimation.model.base import BaseParameters, find_base
from estimation.model.parameters import choose_parameters
from estimation.model.regressor import Regressor
from estimation.recordings.dataset import OpenDataset
from estimation.signals.preparation import PreparationSettings
from estimation.signals.spectra import CUTOFF_MIN_HZ

_COMPARED_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is known before anything is estimated.

    Attributes:
        robot: That is to be identified.
        robot_text: Its file.
        truth: The true robot; on the mock only.
        regressor: Of it.
        base: Its base parameters.
        settings: How samples are prepared.
        notes: What was chosen for them and why, and what a reader should know of the recordings.
        segments: Of the identification recordings.
        samples: The same, prepared.
        training: Their factors.
        validation_samples: None where nothing is there to validate with.
        validation: Their factors, likewise.
        recordings: How much of each was used.
        validation_recordings: Likewise.
    """

    robot: Robot
    robot_text: str
    truth: Robot | None
    regressor: Regressor
    base: BaseParameters
    settings: PreparationSettings
    notes: tuple[str, ...]
    segments: Segments
    samples: Samples
    training: ReducedSamples
    validation_samples: Samples | None
    validation: ReducedSamples | None
    recordings: tuple[RecordingSummary, ...]
    validation_recordings: tuple[RecordingSummary, ...]


@contextmanager
def open_datasets(request: Request) -> Iterator[Mapping[Path, OpenDataset]]:
    """Open every recording of a request, once, and find its usable rows.

    Raises:
        RecordingError: A file is not a recording.
        DatasetError: It is damaged.
    """
    paths = dict.fromkeys((*request.recordings, *request.validations, *request.payloads))
    with ExitStack() as files:
        recordings = [files.enter_context(open_recording(path)) for path in paths]
        all_modes = request.overrides.all_modes
        datasets = (OpenDataset(recording, all_modes=all_modes) for recording in recordings)
        yield dict(zip(paths, datasets, strict=True))


def gather(
    request: Request, datasets: Mapping[Path, OpenDataset], progress: Callable[[str], None]
) -> Gathered:
    """Read recordings and reduce them.

    Raises:
        DatasetError: The recordings cannot be used.
    """
    known, unknown = request.recordings, request.validations
    recorded = [datasets[path].recording for path in (*known, *unknown, *request.payloads)]
    text = request.robot_text or common_text(recorded)
    robot = parse_robot(text, "the robot file")
    check_joints(robot, recorded)
    check_distinct(recorded)
    regressor = Regressor(robot, choose_parameters(robot, request.terms))
    base = find_base(regressor)
    progress("reading")
    segments = Segments([datasets[path] for path in known])
    settings, notes = choose_preparation(segments, request.overrides)
    samples = Samples(segments, settings, regressor.switching, request.overrides)
    training = reduce_samples(regressor, base, samples, block_s=request.block_s)
    paths, overrides = _validation_of(request)
    validation, validation_samples = None, None
    if paths:
        progress("reading validation")
        validation_segments = Segments([datasets[path] for path in paths])
        validation_samples = Samples(validation_segments, settings, regressor.switching, overrides)
        found = reduce_samples(regressor, base, validation_samples, block_s=request.block_s)
        validation = ReducedSamples(found.moving.summed(), found.everything)
    recordings = tuple(summary_of(datasets[path], request.overrides) for path in known)
    return Gathered(
        robot=robot,
        robot_text=text,
        truth=_truth(recorded[: len(known) + len(unknown)], request.truth_of),
        regressor=regressor,
        base=base,
        settings=settings,
        notes=(
            *notes,
            *_notes(base, samples),
            *(note for recording in recordings for note in recording.notes),
        ),
        segments=segments,
        samples=samples,
        training=training,
        validation_samples=validation_samples,
        validation=validation,
        recordings=recordings,
        validation_recordings=tuple(summary_of(datasets[path], overrides) for path in paths),
    )


def common_text(recordings: Sequence[Recording]) -> str:
    """Return the robot file inside recordings, which must be of one arm.

    Raises:
        DatasetError: They are of different robots.
    """
    if not recordings:
        raise DatasetError("there is no recording to identify from", code="no-recording")
    first, *others = recordings
    for other in others:
        if _kinematics(other.robot) != _kinematics(first.robot):
            raise DatasetError(
                f"{other.path}: was recorded with robot {other.robot.name}, {first.path} with "
                f"{first.robot.name}, and their joints differ; identify them apart, or name one "
                "with --robot",
                code="different-robots",
            )
    return first.robot_text


def check_joints(robot: Robot, recordings: Sequence[Recording]) -> None:
    """Check that a robot has the joints that were recorded.

    Raises:
        DatasetError: A recording has other joints.
    """
    names = tuple(joint.name for joint in robot.joints)
    for recording in recordings:
        if recording.joint_names != names:
            raise DatasetError(
                f"{recording.path}: has the joints {', '.join(recording.joint_names)}, robot "
                f"{robot.name} has {', '.join(names)}; names and order must be the same: rename "
                "them in the robot file, or import the data again with it",
                code="other-joints",
            )


def check_distinct(recordings: Sequence[Recording]) -> None:
    """Check that no recording is given twice: it would count twice, or validate its own fit.

    Raises:
        DatasetError: One is a copy of another.
    """
    seen: dict[tuple[object, ...], Path] = {}
    for recording in recordings:
        count = recording.sample_count
        middle = slice(count // 2, count // 2 + _COMPARED_ROWS)
        names = ("joint_position_rad", "joint_torque_nm")
        q_rad, tau_nm = (recording[name][middle].tobytes() for name in names)
        samples = (count, recording.period_ns, q_rad, tau_nm)
        if samples in seen:
            raise DatasetError(
                f"{recording.path}: holds the same samples as {seen[samples]}; leave one out",
                code="same-samples",
            )
        seen[samples] = recording.path
        recording.drop_caches()


def reduce_samples(
    regressor: Regressor, base: BaseParameters, samples: Samples, *, block_s: float
) -> ReducedSamples:
    """Return factors of the rows that count, and of all rows.

    Blocks last `block_s` for filters of `CUTOFF_MIN_HZ` and more.

    Raises:
        DatasetError: There are no rows.
    """
    # With a lower cut-off, residuals stay correlated for longer.
    block_s *= max(1.0, CUTOFF_MIN_HZ / samples.settings.cutoff_hz)
    reducer = Reducer(regressor, base, block_s=block_s, repeats_s=samples.repeats_s())
    for number, prepared in samples:
        reducer.add(prepared, number)
    names = ", ".join(path.name for path in samples.paths)
    try:
        moving = reducer.factors()
    except DatasetError as error:
        raise DatasetError(f"{names}: {error}", code=error.code) from error
    if not np.any(moving.of_joints[..., base.rank]):
        raise DatasetError(
            f"{names}: the torque is zero throughout: there is nothing to identify",
            code="zero-torque",
        )
    return ReducedSamples(moving, moving.summed().united(reducer.left_out()).summed())


def summary_of(dataset: OpenDataset, overrides: Overrides) -> RecordingSummary:
    """Return how much of a recording is used, and why the rest is not."""
    found, file = dataset.summary, plain(dataset.path.name)
    share = overrides.rows[1] - overrides.rows[0]
    used = round(found.used * (1.0 - share if overrides.is_outside else share))
    left_out = dict(found.left_out)
    if used < found.used:
        left_out["outside the selected part of the time"] = found.used - used
    homing = (
        f"{file}: joints were not homed in {found.not_homed} samples; their angles count from "
        "where the robot was switched on, so that gravity is wrong"
    )
    return RecordingSummary(
        file=file,
        rows=found.rows,
        rows_used=used,
        left_out=left_out,
        seconds=used * found.period_s,
        notes=(homing,) if found.not_homed and found.chosen != "import" else (),
    )


def _truth(
    recordings: Sequence[Recording], truth_of: Callable[[str, Robot], Robot | None]
) -> Robot | None:
    """Return the true robot, when all recordings are of one mock."""
    first, *others = (truth_of(str(each.attributes["link"]), each.robot) for each in recordings)
    return first if all(robot == first for robot in others) else None


def _validation_of(request: Request) -> tuple[tuple[Path, ...], Overrides]:
    """Return the recordings to validate with, and which of their rows to use."""
    if request.has_split:
        return request.recordings, replace(request.overrides, is_outside=True)
    return request.validations, replace(request.overrides, rows=(0.0, 1.0), is_averaged=False)


def _notes(base: BaseParameters, samples: Samples) -> Iterator[str]:
    if base.rounded:
        yield (
            f"{base.rounded} further combinations would be identifiable only by rounded numbers in "
            "the robot file, such as 1.5708 for a right angle, and do not count"
        )
    if samples.lost_share > 0.0:
        yield (
            f"{100.0 * samples.lost_share:.2g} % of the samples were lost or late: filters run on "
            "across these gaps, but the samples in and beside them do not count"
        )
    if samples.periods:
        yield f"averaged over {samples.periods} periods of the motion"


def _kinematics(robot: Robot) -> tuple[object, ...]:
    poses = np.array(joint_poses(robot)).ravel().tolist()
    return (robot.gravity_m_s2, robot.coupling, *(joint.name for joint in robot.joints), *poses)
