"""From the recording of a bench test to its result: the same from the file as right after the test.

Puts the parts together (`record`, `plateaus`, `models`, `breakaway_inertia`, `load_arm`) and adds
what goes beyond single plateaus: drift, warnings, the curves of the figure.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from daq.recording import Recording, open_recording
from estimation.bench.breakaway_inertia import find_breakaway, find_inertia
from estimation.bench.load_arm import find_torque_constant
from estimation.bench.models import ModelFit, Points, fit_models, select
from estimation.bench.plateaus import find_plateaus
from estimation.bench.record import JointRecord, read_record
from estimation.bench.rejection import find_encoder_gap, reject_slipping
from estimation.bench.report.curves import make_picture, with_traces
from estimation.bench.report.picture import BenchPicture
from estimation.bench.result import (
    BenchResult,
    BenchWarning,
    Cause,
    EstimatedQuantity,
    FrictionModel,
    Plateau,
)
from estimation.errors import DatasetError

SEED = 20260
"""Of the bootstrap: the same recording always gives the same result."""
_DRIFT_T = 3.0
_REJECTED_MANY = 0.3
_END_S = 1.0
_SKIPPED_MANY = 0.01


class BenchAnalysis(NamedTuple):
    """A result, and what its figure shows beside it."""

    result: BenchResult
    picture: BenchPicture


def analyse_bench(path: str | os.PathLike[str], *, made_by: str = "") -> BenchAnalysis:
    """Analyse the recording of a bench test.

    Raises:
        RecordingError: The file is not a recording.
        DatasetError: It is not of a bench test, or holds too little for a result.
    """
    with open_recording(path) as recording:
        record = read_record(recording)
        make_result = _with_facts(recording, record, made_by)
    if not len(record.t_s):
        raise DatasetError(
            f"{path}: has no samples{_early_end(record)}; repeat the test", code="no-samples"
        )
    if record.header.load_arm is not None:
        try:
            return _analyse_load_arm(record, make_result)
        except DatasetError as error:
            raise DatasetError(f"{path}: {error}{_early_end(record)}", code=error.code) from error
    plateaus = find_plateaus(record)
    if record.header.kind == "free":
        plateaus = reject_slipping(plateaus)
    used = [plateau for plateau in plateaus if plateau.is_used]
    speed, torque, acceleration = (
        np.array([getattr(plateau, name) for plateau in used], np.float64)
        for name in ("motor_velocity_rad_s", "motor_torque_nm", "acceleration_rad_s2")
    )
    is_mounted = record.header.kind == "mounted"
    speeds = np.array([plateau.motor_speeds_rad_s for plateau in used], np.float64)
    points = Points(speed, torque, record.drive, speeds, acceleration if is_mounted else None)
    generator = np.random.default_rng(SEED)
    try:
        fits = fit_models(points, generator)
    except DatasetError as error:
        raise DatasetError(
            f"{path}: {error}{_rejections(plateaus, record)}", code=error.code
        ) from error
    chosen = select(fits)
    drift_percent, is_drifting = _drift(used, chosen, record)
    truth = record.header.truth
    viscous = _quantity(chosen, "b_eq_nms", None if truth is None else truth.b_eq_nms)
    coulomb = _quantity(chosen, "f_nm", None if truth is None else truth.f_nm)
    inertia = find_inertia(record, viscous.value, generator)
    rotor_kg_m2 = record.joint.drive.rotor_inertia_kg_m2
    breakaway = find_breakaway(record, rotor_kg_m2 if inertia is None else inertia.value)
    to_load = 1.0 / record.drive.load_to_motor
    squared = record.drive.reduction * to_load
    warm, volts, energies_j = (
        [value for plateau in plateaus if (value := getattr(plateau, name)) is not None]
        for name in ("winding_temperature_degc", "bus_voltage_v", "energy_j")
    )
    warned = [
        *_warnings(plateaus, chosen, record, drift_percent if is_drifting else 0.0),
        *_left_out(record, breakaway, inertia),
    ]
    result = make_result(
        model=chosen.name,
        b_eq_nms=viscous,
        f_nm=coulomb,
        b_joint_nms=viscous.times(squared),
        f_motor_nm=coulomb.times(record.drive.load_to_motor),
        breakaway_nm=breakaway,
        breakaway_motor_nm=breakaway and breakaway.times(record.drive.load_to_motor),
        inertia_kg_m2=inertia,
        inertia_joint_kg_m2=inertia and inertia.times(squared),
        torque_constant_nm_per_a=EstimatedQuantity(
            value=record.drive.k_i_nm_per_a,
            truth=None if truth is None else truth.torque_constant_nm_per_a,
        ),
        models=tuple(_described(fit, record, is_selected=fit is chosen) for fit in fits),
        plateaus=tuple(plateaus),
        plateaus_used=len(used),
        plateaus_rejected=len(plateaus) - len(used),
        drift_percent=drift_percent,
        drift_is_significant=is_drifting,
        temperature_degc=(warm[0], warm[-1]) if warm else None,
        bus_voltage_v=(min(volts), max(volts)) if volts else None,
        energy_j=sum(energies_j) if energies_j else None,
        warnings=tuple(text for _, text in warned),
        warning_kinds=tuple(kind for kind, _ in warned),
    )
    return BenchAnalysis(result, make_picture(record, plateaus, fits, chosen))


def explain_end(path: str | os.PathLike[str]) -> str:
    """Return what the samples show of the end of a test that failed; empty if nothing."""
    with open_recording(path) as recording:
        record = read_record(recording)
    last_s = record.t_s[-1] if len(record.t_s) else 0.0
    rows = np.flatnonzero(record.t_s > last_s - _END_S)
    fastest_rad_s = record.joint.limits.velocity_max_rad_s * record.drive.reduction
    return find_encoder_gap(record, rows, fastest_rad_s)


# --- the parts of a result ------------------------------------------------------------------------


def _with_facts(recording: Recording, record: JointRecord, made_by: str) -> partial[BenchResult]:
    """Return a result that still lacks all estimates."""
    duration_s = recording.duration_s
    return partial(
        BenchResult,
        joint=record.joint.name,
        robot=str(recording.attributes["robot"]),
        motor=record.joint.drive.motor,
        kind=record.joint.kind or "",
        profile=record.profile,
        link=str(recording.attributes["link"]),
        recording=recording.path.name,
        made_by=made_by,
        recorded_utc=str(recording.attributes["start_utc"]),
        gear_reduction=record.drive.reduction,
        duration_s=duration_s,
        skipped=record.skipped,
        rate_hz=(recording.sample_count - 1) / max(duration_s, 1e-9),
    )


def _quantity(fit: ModelFit, name: str, truth: float | None = None) -> EstimatedQuantity:
    low, high = fit.interval(name)
    return EstimatedQuantity(value=fit.parameters[name], low=low, high=high, truth=truth)


def _described(fit: ModelFit, record: JointRecord, *, is_selected: bool) -> FrictionModel:
    parameters = {}
    to_motor = record.drive.load_to_motor
    for name in fit.parameters:
        parameters[name] = _quantity(fit, name)
        if name.startswith("f_"):  # beside the load-side value the motor-side one
            motor_name = f"{name.removesuffix('_nm')}_motor_nm"
            parameters[motor_name] = parameters[name].times(to_motor)
        elif name.startswith("b_"):
            joint_name = f"{name.removesuffix('_nms')}_joint_nms"
            parameters[joint_name] = parameters[name].times(record.drive.reduction / to_motor)
    return FrictionModel(
        name=fit.name,
        parameters=parameters,
        residual_rms_nm=float(np.sqrt(np.mean(fit.residuals_nm**2))),
        held_out_rms_nm=float(np.sqrt(np.mean(fit.held_out_nm**2))),
        is_selected=is_selected,
    )


def _drift(used: list[Plateau], chosen: ModelFit, record: JointRecord) -> tuple[float, bool]:
    """Change of friction over the test in percent of f, and whether it is more than chance."""
    speed = np.array([plateau.motor_velocity_rad_s for plateau in used], np.float64)
    t_s = np.array([plateau.window_s[0] for plateau in used if plateau.window_s], np.float64)
    more_nm = chosen.residuals_nm * np.sign(speed)
    centred = t_s - np.mean(t_s)
    if len(used) < 4 or not np.any(centred):
        return 0.0, False
    slope = float(centred @ more_nm / (centred @ centred))
    rest = more_nm - np.mean(more_nm) - slope * centred
    error = math.sqrt(float(rest @ rest) / (len(used) - 2) / float(centred @ centred))
    level_nm = abs(chosen.parameters["f_nm"]) * record.drive.load_to_motor
    change = slope * float(t_s[-1] - t_s[0]) / max(level_nm, 1e-12)
    return 100.0 * change, abs(slope) > _DRIFT_T * max(error, 1e-300)


def _warnings(
    plateaus: list[Plateau], chosen: ModelFit, record: JointRecord, drift_percent: float
) -> Iterator[tuple[BenchWarning, str]]:
    rejected = [plateau for plateau in plateaus if not plateau.is_used]
    if len(rejected) > _REJECTED_MANY * len(plateaus):
        text = f"{len(rejected)} of {len(plateaus)} plateaus were rejected: {_why(rejected)}"
        yield BenchWarning.REJECTED, text
    elif slipping := [plateau for plateau in rejected if plateau.cause is Cause.SLIP]:
        yield BenchWarning.SLIP, f"{len(slipping)} of {len(plateaus)} plateaus: {_why(slipping)}"
    if abs(drift_percent) > 1.0:
        yield (
            BenchWarning.DRIFT,
            f"friction drifted by {drift_percent:+.1f} % during the test: let the joint run in, or "
            "repeat it warm",
        )
    low, high = chosen.interval("b_eq_nms")
    if low <= 0.0:
        yield (
            BenchWarning.NO_VISCOUS_FRICTION,
            f"viscous friction is not distinguishable from zero ({low:.2g} to {high:.2g} N·m·s): "
            "drive faster or dwell longer",
        )
    if chosen.profile is not None and chosen.profile.is_open:
        slowest_rad_s = min(abs(p.joint_velocity_rad_s) for p in plateaus if p.is_used)
        yield (
            BenchWarning.STRIBECK_OPEN,
            "too few speeds show how large static friction is and at which velocity it fades; the "
            f"slowest is {slowest_rad_s:.3g} rad/s: add slower ones (--speed-min, --speeds)",
        )
    skipped_share = record.skipped / (len(record.t_s) + record.skipped)
    if skipped_share > _SKIPPED_MANY:
        yield (
            BenchWarning.SKIPPED,
            f"{record.skipped} periods were skipped, {skipped_share:.1%} of all: the computer or "
            "the link was too slow; close other programs, see `armature doctor`",
        )
    if record.missing:
        yield BenchWarning.MISSING, f"{record.missing} samples are missing from the recording"
    if record.problem:
        yield BenchWarning.ENDED_EARLY, f"the test ended early: {record.problem}"
    elif len(plateaus) < record.header.plateaus:
        text = f"the recording ends after {len(plateaus)} of {record.header.plateaus} plateaus"
        yield BenchWarning.ENDED_EARLY, text


def _left_out(
    record: JointRecord, breakaway: EstimatedQuantity | None, inertia: EstimatedQuantity | None
) -> Iterator[tuple[BenchWarning, str]]:
    if record.ramps and breakaway is None:
        text = f"too few of {len(record.ramps)} current ramps set it in motion: no breakaway torque"
        yield BenchWarning.NO_BREAKAWAY, text
    if record.steps and inertia is None:
        text = f"too few of {len(record.steps)} current steps were fast and long enough: no inertia"
        yield BenchWarning.NO_INERTIA, text


def _why(rejected: list[Plateau]) -> str:
    """Return the commonest reason, as its first example puts it."""
    causes = [plateau.cause for plateau in rejected]
    commonest = max(dict.fromkeys(causes), key=causes.count)  # of equals the first
    example = rejected[causes.index(commonest)]
    return f"{causes.count(commonest)} × {example.reason} (plateau {example.number})"


def _rejections(plateaus: list[Plateau], record: JointRecord) -> str:
    rejected = [plateau for plateau in plateaus if not plateau.is_used]
    text = f". {_why(rejected)}" if rejected else ""
    return text + _early_end(record)


def _early_end(record: JointRecord) -> str:
    return f". The test ended early: {record.problem}" if record.problem else ""


# --- a load arm -----------------------------------------------------------------------------------


def _analyse_load_arm(record: JointRecord, make_result: partial[BenchResult]) -> BenchAnalysis:
    found = find_torque_constant(record)
    result = make_result(
        model="",
        torque_constant_nm_per_a=found.torque_constant,
        torque_constant_drop=found.drop,
        torque_constant_current_a=found.highest_a,
        models=(),
        plateaus=(),
        plateaus_used=0,
        plateaus_rejected=0,
        drift_percent=0.0,
        drift_is_significant=False,
        warnings=(f"the test ended early: {record.problem}",) if record.problem else (),
        warning_kinds=(BenchWarning.ENDED_EARLY,) if record.problem else (),
    )
    picture = with_traces(record)(
        load_current_a=found.current_a,
        load_torque_motor_nm=found.torque_nm,
        load_fit_nm=found.fit_nm,
        nominal_torque_constant_nm_per_a=record.drive.k_i_nm_per_a,
    )
    return BenchAnalysis(result, picture)
