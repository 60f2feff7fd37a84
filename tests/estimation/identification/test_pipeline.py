"""From recordings to an outcome: the order of things, what is chosen, what is simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from datasets import open_dataset
from identification_examples import example
from identify_recordings import ARM_TEXT, made_recording, text_without_links, two_joints_text
from recording_maker import make_recording
from refusals import refused

from daq.robot import robot_text
from estimation.errors import DatasetError, EstimationError
from estimation.identification.evaluation.simulation_check import simulate_recording
from estimation.identification.pipeline import IdentificationOutcome, Request, identify

QUICK = ("uls", "cls2")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def known(directory: Path) -> Path:
    return made_recording(directory / "known.h5")


@pytest.fixture(scope="module")
def unknown(directory: Path) -> Path:
    return made_recording(directory / "unknown.h5", seed=1)


@pytest.fixture(scope="module")
def outcome(known: Path, unknown: Path) -> IdentificationOutcome:
    return identify(Request(recordings=(known,), validations=(unknown,), version="1.2"))


def test_steps_are_told_in_order(known: Path, unknown: Path) -> None:
    steps: list[str] = []
    request = Request(recordings=(known,), validations=(unknown,), methods=QUICK)
    identify(request, steps.append)
    assert steps == ["reading", "reading validation", "uls", "cls2", "judging"]


def test_an_outcome_holds_together(outcome: IdentificationOutcome) -> None:
    result = outcome.result
    assert outcome.robot_text == ARM_TEXT
    assert outcome.robot.name == result.robot == "laas4"
    assert result.armature_version == "1.2"
    assert not result.is_mock  # nobody said what the truth is
    assert [trace.title for trace in outcome.traces] == ["identification", "validation"]
    assert [trace.file for trace in outcome.traces] == ["known.h5", "unknown.h5"]
    assert len(result.singular_values) == result.rank == outcome.problem.base.rank
    ratio = result.singular_values[0] / result.singular_values[-1]
    assert result.condition == pytest.approx(ratio)
    assert result.floor_percent == result.method("uls").identification.moving
    assert 50.0 < result.moving_rows_percent < 100.0
    beta = np.array(result.method(result.chosen).base)
    assert [row.value for row in result.base_parameters] == beta.tolist()
    left = outcome.traces[1].measured_nm - outcome.traces[1].predicted_nm
    rms = np.sqrt(np.mean(left**2, axis=0))
    used = [test.rms_nm for test in result.residuals]
    assert used == pytest.approx(rms.tolist(), rel=0.2)
    assert result.simulation is None
    assert result.payload is None


def test_what_can_exist_is_chosen_before_what_fits_better(
    known: Path, outcome: IdentificationOutcome
) -> None:
    assert outcome.result.chosen == "cls2"
    base_only = identify(Request(recordings=(known,), methods=("cad", "uls", "wls")))
    assert base_only.result.chosen == "uls"
    assert base_only.result.parameters == ()


def test_methods_that_cannot_be_used_are_named_and_the_others_go_on(known: Path) -> None:
    text = text_without_links()
    request = Request(recordings=(known,), robot_text=text, methods=("cad", "cls2-prior", "uls"))
    result = identify(request).result
    assert [method.name for method in result.methods] == ["uls"]
    assert [method.name for method in result.failed] == ["cad", "cls2-prior"]
    assert [method.code for method in result.failed] == ["no-links", "no-links"]
    assert {row.cad for row in result.base_parameters} == {None}
    with refused(EstimationError, "no-method", "cad"):
        identify(replace(request, methods=("cad",)))


def test_an_arm_of_which_only_bounds_are_known(known: Path) -> None:
    result = identify(
        Request(recordings=(known,), robot_text=text_without_links(), methods=QUICK)
    ).result
    assert result.chosen == "cls2"
    assert result.method("cls2").identification.moving < 1.02 * result.floor_percent


def test_recordings_of_other_joints_are_refused(directory: Path, known: Path) -> None:
    other = made_recording(directory / "two.h5", text=two_joints_text())
    for request in (
        Request(recordings=(known, other)),
        Request(recordings=(known,), validations=(other,)),
        Request(recordings=(known,), payloads=(other,)),
    ):
        with refused(DatasetError, "different-robots", other):
            identify(request)
    for text in (robot_text("bench1"), two_joints_text()):
        with refused(DatasetError, "other-joints", known):
            identify(Request(recordings=(known,), robot_text=text))


def test_the_true_arm_moves_like_the_recording_and_another_does_not(directory: Path) -> None:
    path = made_recording(directory / "cad.h5", link="spi", noise_nm=0.0, duration_s=2.5)
    problem = example()
    assert problem.cad is not None
    heavy = problem.cad.copy()
    heavy[10:20] *= 1.3
    true, other = (
        simulate_recording(problem, tuple(theta.tolist()), open_dataset(path))
        for theta in (problem.cad, heavy)
    )
    assert true.open_loop_position_rms_rad is not None
    assert len(true.open_loop_position_rms_rad) == 4
    # Nobody commanded anything in this recording: what the loop cannot do is said.
    assert (true.closed_loop_position_rms_rad is None) == bool(true.notes)
    assert other.open_loop_position_rms_rad is not None
    assert max(true.open_loop_position_rms_rad) < 0.2 * max(other.open_loop_position_rms_rad)


def test_a_torque_of_zero_is_refused_in_words(tmp_path: Path) -> None:
    rows = 4000
    t_s = np.arange(rows)[:, None] * 1e-3
    columns = {
        "joint_position_rad": np.sin(3.0 * t_s + np.arange(4)),
        "joint_velocity_rad_s": 3.0 * np.cos(3.0 * t_s + np.arange(4)),
        "joint_torque_nm": np.zeros((rows, 4)),
    }
    path = make_recording(tmp_path / "zero.h5", columns)
    with refused(DatasetError, "zero-torque", "zero.h5"):
        identify(Request(recordings=(path,)))


def test_joints_that_were_not_homed_are_said(tmp_path: Path) -> None:
    path = made_recording(tmp_path / "r.h5", duration_s=4.0)
    homed = made_recording(tmp_path / "h.h5", duration_s=4.0)
    with h5py.File(path, "r+") as file:
        file["samples/joint_is_homed"][:] = 0
    for file_path, is_said in ((path, True), (homed, False)):
        result = identify(Request(recordings=(file_path,), methods=("uls",))).result
        (recording,) = result.recordings
        assert bool(recording.notes) == is_said
        assert set(recording.notes) <= set(result.preparation)
        assert ("doubtful-recording" in result.verdict.codes) == is_said
