"""From samples to plateaus: the mean current of a segment of constant speed, or why there is none.

What is averaged and how, `window` knows; what speaks against it, `rejection`.
"""

from __future__ import annotations

import math

import numpy as np

from daq.robot.velocity_gains import advice, choose_gains
from estimation.bench.record import JointRecord
from estimation.bench.rejection import Rejection, find_problem
from estimation.bench.result import Plateau
from estimation.bench.window import PlateauWindow


def find_plateaus(record: JointRecord) -> list[Plateau]:
    """Average every plateau of a test, in order, and say why one is not used."""
    is_held = not record.behaviour.is_reference_advanced
    gains = choose_gains(record.joint, record.motor, is_reference_held=is_held)
    per_repetition = max(1, record.header.plateaus // record.header.repetitions)
    plateaus = []
    for number, span in enumerate(record.plateaus, 1):
        window = PlateauWindow(record, span)
        plateaus.append(
            _average(
                window,
                Rejection(span.cause, span.remark)
                if span.cause
                else find_problem(window, advice(gains)),
                number=number,
                repetition=(number - 1) // per_repetition + 1,
            )
        )
    return plateaus


def _average(
    window: PlateauWindow, rejection: Rejection | None, *, number: int, repetition: int
) -> Plateau:
    """Return the plateau with everything that is known of it."""
    record, span, rows = window.record, window.span, window.rows
    has_values = window.is_settled and window.turns > 0
    iq_a = sigma_a = velocity_rad_s = acceleration_rad_s2 = None
    correction_a = 0.0
    speeds_rad_s: tuple[float, ...] = ()
    window_s = None
    if has_values:
        angle_rad, t_s = record.angle_rad[rows], record.t_s[rows]
        window_s = float(t_s[0]), float(t_s[-1])
        velocity_rad_s = float((angle_rad[-1] - angle_rad[0]) / (t_s[-1] - t_s[0]))
        speeds_rad_s = window.speeds_rad_s()
        correction_a = window.correction_a(velocity_rad_s)
        iq_a = window.mean_iq_a() + correction_a
        acceleration_rad_s2 = window.mean_acceleration_rad_s2()
        blocks = window.blocks()
        if len(blocks) > 1:  # less is left where the encoder jumps
            sigma_a = float(np.std(blocks, ddof=1) / math.sqrt(len(blocks)))
    power_w = window.mean(record.input_power_w) if has_values else None
    settle_s = None
    if span.settled is not None:
        settle_s = float(record.t_s[span.settled] - record.t_s[span.begin])
    return Plateau(
        number=number,
        repetition=repetition,
        start_s=float(record.t_s[span.begin]),
        settle_s=settle_s,
        window_s=window_s,
        joint_velocity_rad_s=window.target_rad_s / record.drive.reduction,
        motor_velocity_rad_s=velocity_rad_s,
        motor_speeds_rad_s=speeds_rad_s,
        acceleration_rad_s2=acceleration_rad_s2,
        turns=window.turns,
        iq_a=iq_a,
        iq_sigma_a=sigma_a,
        iq_correction_a=correction_a,
        motor_torque_nm=None if iq_a is None else record.drive.k_i_nm_per_a * iq_a,
        is_used=rejection is None,
        reason=rejection.reason if rejection else "",
        cause=rejection.cause if rejection else None,
        winding_temperature_degc=window.mean(record.temperature_degc),
        bus_voltage_v=window.mean(record.bus_voltage_v),
        input_power_w=power_w,
        energy_j=(
            None if power_w is None or window_s is None else power_w * (window_s[1] - window_s[0])
        ),
    )
