"""A made-up identification for tests of figures and pages: plausible, but no real arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from estimation.identification.evaluation.traces import Trace
from estimation.identification.result import (
    BaseParameter,
    ErrorsPercent,
    FailedMethod,
    Identification,
    Interval,
    MethodResult,
    ParameterValue,
    PayloadResult,
    RecordingSummary,
    ResidualTest,
    SimulationCheck,
    Verdict,
)
from estimation.model.parameters import INERTIAL, INERTIAL_UNITS, TERMS

PERIOD_S = 0.01
METHODS = {
    "cad": 41.0,
    "uls": 3.21,
    "wls": 3.29,
    "cls1": 3.27,
    "cls2": 3.4,
    "cls3": 4.7,
    "cls2-prior": 3.6,
    "slsqp": 5.1,
    "sa": 9.8,
}
TERM_NAMES = ("viscous", "coulomb", "drive_inertia", "offset")


def make_payload(*notes: str) -> PayloadResult:
    """A jar in the hand."""

    def around(value: float, half: float) -> Interval:
        return Interval(value=value, low=value - half, high=value + half)

    inertia = (2.1e-4, -1.3e-6, 1.9e-4, 4.0e-6, 0.0, 2.4e-4)
    return PayloadResult(
        mass_kg=around(0.312, 0.011),
        centre_m=(around(0.0102, 0.0009), around(0.0811, 0.0012), around(-0.0098, 0.002)),
        inertia_kg_m2=tuple(around(value, 3.0e-5) for value in inertia),
        misfit=1.13,
        notes=notes,
        files=("loaded-20250612.h5",),
    )


def make_errors(total: float, joints: int) -> ErrorsPercent:
    each = tuple(total * (0.7 + 0.6 * joint / joints) for joint in range(joints))
    return ErrorsPercent(
        moving=total,
        per_joint=each,
        all_rows=1.2 * total,
        all_rows_per_joint=tuple(1.2 * value for value in each),
        raw=1.2 * total + 1.0,
        raw_per_joint=tuple(1.2 * value + 1.0 for value in each),
        rms_nm=tuple(0.02 * value for value in each),
    )


def make_method(name: str, total: float, joints: int, *, has_validation: bool) -> MethodResult:
    known = make_errors(total, joints)
    unknown = make_errors(1.15 * total, joints) if has_validation else None
    is_free = name in {"uls", "wls"}
    return MethodResult(
        name=name,
        summary=f"summary of {name}",
        identification=known,
        validation=unknown,
        cross_validation_percent=None if name in {"cad", "slsqp", "sa"} else 1.05 * total,
        consistent=not is_free,
        min_pseudo_inertia_eigenvalue=-2.1e-3 if is_free else 3.4e-6,
        pseudo_inertia_eigenvalues=tuple(
            (-2.1e-3 if is_free else 3.4e-6) * (1.0 + joint) for joint in range(joints)
        ),
        inertia_matrix_positive=not is_free,
        inertia_matrix_condition=(math.inf, math.inf) if is_free else (4.2, 381.7),
        seconds=0.01 if is_free else 3.2,
        base=(),
        theta=None if is_free else (),
        notes=("5 of 10 starts ended in the same minimum",) if name == "slsqp" else (),
        base_parameters_in_interval=0.91,
    )


def _values(joints: int, terms: Sequence[str]) -> list[tuple[str, str, str, int, float]]:
    """Symbol, kind, unit, joint and CAD's value of all of θ."""
    generator = np.random.default_rng(5)
    sizes = (1.5, *(0.1,) * 3, 0.05, 0.003, 0.05, 0.003, 0.003, 0.02)
    rows = []
    for joint in range(joints):
        for kind, unit, size in zip(INERTIAL, INERTIAL_UNITS, sizes, strict=True):
            value = size * (1.0 if kind in {"m", "Ixx", "Iyy", "Izz"} else generator.normal())
            rows.append((f"{kind}{joint + 1}", kind, unit, joint, value / (1 + 0.4 * joint)))
    each = {
        "viscous": 0.3,
        "coulomb": 0.25,
        "drive_inertia": 0.02,
        "offset": 0.03,
        "asymmetric": 0.02,
        "stribeck": 0.2,
    }
    for term in TERMS:
        if term.name in terms:
            for joint in range(joints):
                value = each[term.name] * generator.uniform(0.6, 1.4)
                rows.append((f"{term.symbol}{joint + 1}", term.name, term.unit, joint, value))
    return rows


def make_parameters(
    joints: int, names: Sequence[str], terms: Sequence[str], *, has_cad: bool, is_mock: bool
) -> tuple[tuple[BaseParameter, ...], tuple[ParameterValue, ...]]:
    generator = np.random.default_rng(7)
    base, everything = [], []
    for symbol, kind, unit, joint, cad in _values(joints, terms):
        true = cad * generator.uniform(0.8, 1.25) + (0.004 if cad == 0.0 else 0.0)
        sigma = abs(true) * 10.0 ** generator.uniform(-2.0, -0.4)
        value = true + sigma * generator.normal()
        is_base = kind not in {"m", "mcz", "Iyy"} or joint == joints - 1
        is_alone = kind not in (*INERTIAL, "drive_inertia")
        everything.append(
            ParameterValue(
                symbol=symbol,
                unit=unit,
                joint=names[joint],
                value=value,
                sigma=sigma if is_alone else None,
                cad=cad if has_cad else None,
                is_identifiable=is_alone,
                kind=kind,
            )
        )
        if is_base:
            relative = 100.0 * sigma / abs(value)
            mixed = f"{symbol} + Iyy{joint + 2} - 0.1056·m{joint + 2} + 0.65·mcz{joint + 2}"
            base.append(
                BaseParameter(
                    expression=symbol if is_alone else mixed,
                    symbol=symbol,
                    unit=unit,
                    value=value,
                    sigma=sigma,
                    sigma_ordinary=sigma / 3.0,
                    low=value - 2.0 * sigma,
                    high=value + 2.0 * sigma,
                    relative_percent=relative,
                    essential=relative < 30.0,
                    cad=cad if has_cad else None,
                    true=true if is_mock else None,
                    joint=names[joint],
                    kind=kind,
                    is_alone=is_alone,
                )
            )
    return tuple(base), tuple(everything)


def make_trace(title: str, joints: int, rows: int = 4000, *, seed: int = 0) -> Trace:
    """A Fourier motion; rows at reversals do not count, and half a second is missing."""
    generator = np.random.default_rng(seed)
    t_s = np.arange(rows) * PERIOD_S
    t_s[rows // 2 :] += 0.5
    shape = (rows, joints)
    dq, torque = np.zeros(shape), np.zeros(shape)
    for harmonic in range(1, 6):
        phase = generator.uniform(0.0, 2.0 * np.pi, joints)
        angle = 2.0 * np.pi * 0.1 * harmonic * t_s[:, np.newaxis] + phase
        dq += np.sin(angle) / harmonic
        torque += 2.0 * np.cos(angle) / np.arange(1, joints + 1)
    torque += 0.4 * np.sign(dq)
    noise = generator.standard_normal(shape)
    slow = np.convolve(generator.standard_normal(rows), np.ones(20) / 20.0, "same")
    predicted = torque + 0.05 * slow[:, np.newaxis]
    use = np.abs(dq) > 0.08
    predicted[~use] += 0.2
    return Trace(
        title=title,
        file=f"{title}-20250612.h5",
        period_s=PERIOD_S,
        t_s=t_s,
        dq_rad_s=dq,
        measured_nm=torque,
        raw_nm=torque + 0.15 * noise,
        predicted_nm=predicted,
        use=use,
    )


def make_example(
    joints: int = 4,
    *,
    has_validation: bool = True,
    has_cad: bool = True,
    is_mock: bool = True,
    methods: Sequence[str] = tuple(METHODS),
    terms: Sequence[str] = TERM_NAMES,
    rows: int = 4000,
    **changes: Any,
) -> tuple[Identification, tuple[Trace, ...]]:
    """An identification and its traces; `changes` replace fields of the result."""
    names = tuple(f"joint{number}" for number in range(1, joints + 1))
    base, parameters = make_parameters(joints, names, terms, has_cad=has_cad, is_mock=is_mock)
    wanted = [name for name in methods if has_cad or name != "cad"]
    recording = RecordingSummary(
        file="identification-20250612.h5",
        rows=20_000,
        rows_used=18_750,
        left_out={"before the motion": 1000, "a frame was lost": 250},
        seconds=20.0,
    )
    checked = msgspec.structs.replace(recording, file="validation-20250612.h5", left_out={})
    result = Identification(
        robot="laas4",
        joint_names=names,
        recordings=(recording,),
        validation_recordings=(checked,) if has_validation else (),
        terms=tuple(terms),
        parameter_count=len(parameters),
        rank=len(base),
        lost=("m1", "mcx1", "mcy1", "mcz1", "Ixx1"),
        condition=812.4,
        condition_scaled=47.3,
        singular_values=tuple(np.geomspace(812.4, 1.0, len(base)).tolist()),
        floor_percent=3.21,
        floor_all_rows_percent=3.85,
        moving_rows_percent=93.2,
        preparation=("low-pass at 15 Hz, forwards and backwards", "every 10th row is kept"),
        cutoff_hz=15.0,
        decimation=10,
        methods=tuple(
            make_method(name, METHODS[name], joints, has_validation=has_validation)
            for name in wanted
        ),
        failed=(FailedMethod(name="tls", reason="the smallest singular value is not single"),),
        chosen="cls2" if "cls2" in wanted else wanted[0],
        base_parameters=base,
        parameters=parameters,
        residuals=tuple(
            ResidualTest(
                joint=name,
                mean_nm=-0.002,
                rms_nm=0.071,
                memory_s=0.21,
                kurtosis=1.4,
                velocity_correlation=0.03,
            )
            for name in names
        ),
        simulation=SimulationCheck(
            closed_loop_position_rms_rad=(0.004,) * joints,
            closed_loop_torque_percent=6.2,
            open_loop_position_rms_rad=(0.05,) * joints,
            open_loop_window_s=0.5,
            notes=("windows that left the limits were not counted",),
        ),
        verdict=Verdict(
            is_usable=True,
            text="cls2: 3.91 % of the torque is left where joints move, 4.69 % over all rows, "
            "1.059 times the floor of unconstrained least squares",
            scope="speeds, accelerations and postures like those of the recordings; nothing was "
            "carried",
        ),
        seconds=12.4,
        armature_version="0.1.0",
        is_mock=is_mock,
        seed=0,
    )
    titles = ("identification", "validation") if has_validation else ("identification",)
    traces = tuple(make_trace(title, joints, rows, seed=i) for i, title in enumerate(titles))
    return msgspec.structs.replace(result, **changes), traces
