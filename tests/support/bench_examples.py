"""Results of the friction bench that need no bench: joint 3 of laas4 as Table 4.3 describes it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from estimation.bench.report.picture import BenchPicture
from estimation.bench.result import BenchResult, EstimatedQuantity, FrictionModel, Plateau

GEAR = 31.0
KT_NM_PER_A = 0.02757
B_NMS = 2.42e-6
F_NM = 0.122
VISCOUS = EstimatedQuantity(value=2.404e-6, low=2.336e-6, high=2.472e-6, truth=B_NMS)
COULOMB = EstimatedQuantity(value=0.12181, low=0.12165, high=0.12197, truth=F_NM)
BREAKAWAY = EstimatedQuantity(value=0.1391, low=0.1352, high=0.1430, truth=0.14)
INERTIA = EstimatedQuantity(value=3.35e-5, low=3.29e-5, high=3.41e-5, truth=3.331e-5)
SIGMA_A = 0.6e-3
PLATEAU_S = 5.0
SPEEDS_RAD_S = (0.04, 0.08, 0.16, 0.32, 0.63, 1.25, 2.0, 3.0, 4.0, 4.75)
REPETITIONS = 3
NOT_WITH_A_LOAD_ARM = (
    *("b_eq_nms", "f_nm", "b_joint_nms", "f_motor_nm", "breakaway_nm", "breakaway_motor_nm"),
    *("inertia_kg_m2", "inertia_joint_kg_m2"),
)

Array = np.ndarray[Any, np.dtype[Any]]


def _torque_nm(motor_velocity_rad_s: Array, *, b_nms: float, f_nm: float) -> Array:
    sign = np.where(motor_velocity_rad_s == 0.0, np.nan, np.sign(motor_velocity_rad_s))
    return b_nms * motor_velocity_rad_s + f_nm / GEAR * sign


def _make_plateau(number: int, speed_rad_s: float, random: np.random.Generator) -> Plateau:
    start_s = 3.0 + (number - 1) * PLATEAU_S
    motor_rad_s = speed_rad_s * GEAR * (1.0 + random.normal() * 1e-4)
    warmth = 1.0 - 0.004 * number / 60.0
    torque_nm = float(_torque_nm(np.array(motor_rad_s), b_nms=B_NMS, f_nm=F_NM * warmth))
    iq_a = torque_nm / KT_NM_PER_A + random.normal() * SIGMA_A
    reason = {
        7: "speed off by 4.1 %, more than 2 %: the motor did not follow",
        24: "current drifted by 3.2 σ within the window",
        41: "2.1 % of the samples were lost",
    }.get(number, "")
    if number == 24:
        iq_a *= 1.021
    if number == 41:
        iq_a *= 1.4
    power_w = abs(torque_nm * motor_rad_s) + 0.35 * iq_a**2 + 0.2
    has_window = number != 7
    return Plateau(
        number=number,
        repetition=1 + (number - 1) // (2 * len(SPEEDS_RAD_S)),
        start_s=start_s,
        settle_s=0.6 if has_window else None,
        window_s=(start_s + 0.8, start_s + PLATEAU_S - 0.2) if has_window else None,
        joint_velocity_rad_s=speed_rad_s,
        motor_velocity_rad_s=motor_rad_s if has_window else None,
        acceleration_rad_s2=1e-3 if has_window else None,
        turns=int(abs(motor_rad_s) * 4.0 / (2.0 * np.pi)) if has_window else 0,
        iq_a=iq_a if has_window else None,
        iq_sigma_a=SIGMA_A if has_window else None,
        iq_correction_a=math.copysign(2.1e-5, speed_rad_s),
        motor_torque_nm=KT_NM_PER_A * iq_a if has_window else None,
        is_used=not reason,
        reason=reason,
        winding_temperature_degc=24.0 + 6.0 * (1.0 - math.exp(-number / 30.0)),
        bus_voltage_v=24.02 + random.normal() * 0.01,
        input_power_w=power_w,
        energy_j=power_w * 4.0,
    )


def make_result(**changes: Any) -> BenchResult:
    """A whole run: three passes through ten speeds in both directions, three plateaus rejected."""
    random = np.random.default_rng(3)
    speeds = [
        sign * speed for _ in range(REPETITIONS) for speed in SPEEDS_RAD_S for sign in (1.0, -1.0)
    ]
    plateaus = tuple(_make_plateau(i + 1, speed, random) for i, speed in enumerate(speeds))
    used = sum(plateau.is_used for plateau in plateaus)
    result = BenchResult(
        joint="joint3",
        robot="laas4",
        motor="mn4004",
        kind="axial",
        profile="arm",
        link="serial:///dev/ttyUSB0?baud=2000000",
        recording="/data/bench/20250612T091502-joint3.h5",
        made_by="0.1.0",
        recorded_utc="2025-06-12T09:15:02Z",
        model="coulomb_viscous",
        b_eq_nms=VISCOUS,
        f_nm=COULOMB,
        b_joint_nms=VISCOUS.times(GEAR**2),
        f_motor_nm=COULOMB.times(1.0 / GEAR),
        breakaway_nm=BREAKAWAY,
        breakaway_motor_nm=BREAKAWAY.times(1.0 / GEAR),
        inertia_kg_m2=INERTIA,
        inertia_joint_kg_m2=INERTIA.times(GEAR**2),
        torque_constant_nm_per_a=EstimatedQuantity(value=KT_NM_PER_A),
        gear_reduction=GEAR,
        models=make_models(),
        plateaus=plateaus,
        plateaus_used=used,
        plateaus_rejected=len(plateaus) - used,
        drift_percent=-0.38,
        drift_is_significant=True,
        temperature_degc=(24.2, 29.2),
        bus_voltage_v=(23.98, 24.05),
        energy_j=161.3,
        duration_s=3.0 + PLATEAU_S * len(plateaus) + 2.0,
        rate_hz=999.98,
        skipped=0,
        warnings=("friction fell by 0.38 % while the winding warmed up by 5.0 °C",),
    )
    return msgspec.structs.replace(result, **changes)


def make_models() -> tuple[FrictionModel, ...]:
    """Three models; the simplest wins."""
    b, f = VISCOUS, COULOMB
    return (
        FrictionModel(
            name="coulomb_viscous",
            parameters={"b_eq_nms": b, "f_nm": f},
            residual_rms_nm=1.71e-5,
            held_out_rms_nm=1.76e-5,
            is_selected=True,
        ),
        FrictionModel(
            name="asymmetric",
            parameters={"b_forward_nms": b, "b_backward_nms": b, "f_forward_nm": f},
            residual_rms_nm=1.69e-5,
            held_out_rms_nm=1.83e-5,
            is_selected=False,
        ),
        FrictionModel(
            name="stribeck",
            parameters={
                "b_eq_nms": b,
                "f_nm": f,
                "stribeck_velocity_rad_s": EstimatedQuantity(value=1.9, low=None, high=None),
            },
            residual_rms_nm=1.70e-5,
            held_out_rms_nm=1.99e-5,
            is_selected=False,
        ),
    )


def make_picture() -> BenchPicture:
    """The traces and curves of `make_result`."""
    random = np.random.default_rng(4)
    result = make_result()
    t_s = np.linspace(0.0, result.duration_s, 3000)
    reference = np.zeros_like(t_s)
    for plateau in result.plateaus:
        driven = (t_s >= plateau.start_s) & (t_s < plateau.start_s + PLATEAU_S - 0.1)
        reference[driven] = plateau.joint_velocity_rad_s
    measured = reference + random.normal(size=t_s.size) * 0.01
    measured[(t_s > 33.0) & (t_s < 37.0)] *= 0.96
    measured[(t_s > 204.0) & (t_s < 206.0)] = np.nan
    torque = _torque_nm(reference * GEAR, b_nms=B_NMS, f_nm=F_NM)
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    cogging = 2.1e-4 * np.sin(24.0 * angle) + 0.9e-4 * np.sin(angle + 0.4)
    grid = np.linspace(-4.75 * GEAR, 4.75 * GEAR, 601)
    fit = _torque_nm(grid, b_nms=2.404e-6, f_nm=0.12181)
    half = 1e-5 * np.sqrt(0.25 + 0.75 * (np.abs(grid) / grid.max() - 0.4) ** 2)
    bump = 6e-5 * np.exp(-np.abs(grid) / 4.0) * np.sign(grid)
    return BenchPicture(
        t_s=t_s,
        joint_velocity_rad_s=measured,
        reference_velocity_rad_s=reference,
        iq_a=np.nan_to_num(torque) / KT_NM_PER_A + random.normal(size=t_s.size) * 4e-3,
        band_motor_velocity_rad_s=grid,
        fit_nm=fit,
        band_low_nm=fit - half,
        band_high_nm=fit + half,
        angle_rad=angle,
        forward_residual_nm=cogging + random.normal(size=angle.size) * 1e-5,
        backward_residual_nm=cogging - 4e-5 + random.normal(size=angle.size) * 1e-5,
        model_curves={"asymmetric": fit + 4e-6, "stribeck": fit + bump},
    )


def make_load_result() -> BenchResult:
    """What a load arm finds out: a torque constant that falls off at high current."""
    return make_result(
        **dict.fromkeys(NOT_WITH_A_LOAD_ARM),
        model="",
        torque_constant_nm_per_a=EstimatedQuantity(
            value=0.02731, low=0.02722, high=0.0274, truth=0.0273
        ),
        torque_constant_drop=EstimatedQuantity(value=0.062, low=0.055, high=0.069, truth=0.06),
        torque_constant_current_a=9.0,
        models=(),
        plateaus=(),
        plateaus_used=0,
        plateaus_rejected=0,
        warnings=(),
    )


def make_load_picture() -> BenchPicture:
    """The points of `make_load_result`."""
    random = np.random.default_rng(5)
    current = np.repeat(np.linspace(-9.0, 9.0, 19), 3)
    curve = 0.02731 * current * (1.0 - 0.062 * (current / 9.0) ** 2)
    return BenchPicture(
        load_current_a=current,
        load_torque_motor_nm=curve + random.normal(size=current.size) * 6e-4,
        load_fit_nm=curve,
        nominal_torque_constant_nm_per_a=KT_NM_PER_A,
    )


def make_bare_result(**changes: Any) -> BenchResult:
    """A result in which everything that may be missing is missing."""
    plateaus = tuple(
        msgspec.structs.replace(
            plateau,
            settle_s=None,
            window_s=None,
            motor_velocity_rad_s=None,
            acceleration_rad_s2=None,
            iq_a=None,
            iq_sigma_a=None,
            motor_torque_nm=None,
            is_used=False,
            reason="never settled",
            winding_temperature_degc=None,
            bus_voltage_v=None,
            input_power_w=None,
            energy_j=None,
        )
        for plateau in make_result().plateaus
    )
    bare: dict[str, Any] = {
        "torque_constant_nm_per_a": EstimatedQuantity(value=KT_NM_PER_A),
        "torque_constant_drop": None,
        "torque_constant_current_a": None,
        "plateaus": plateaus,
        "plateaus_rejected": len(plateaus),
        "drift_percent": 0.0,
        "drift_is_significant": False,
        "temperature_degc": None,
        "bus_voltage_v": None,
        "energy_j": None,
    }
    return msgspec.structs.replace(make_load_result(), **(bare | changes))
