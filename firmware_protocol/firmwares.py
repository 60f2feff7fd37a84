"""How the three firmwares behave: the values of `Behaviour`, and how each is known.

Measured on the public firmwares' own code, run natively, or read in it: for `uomodri`
open-motor-driver-initiative 7c93540, for `udriver2` udriver_firmware c98d229. `arm` is unpublished
and derives from `uomodri`: where nothing else is known it does the same.
"""

from __future__ import annotations

from dataclasses import replace

from firmware_protocol.behaviour import (
    Behaviour,
    Calibration,
    ErrorsClear,
    IdleIntegral,
    SystemBit,
    Unpowered,
    Watchdog,
)

UOMODRI_FIRMWARE = Behaviour(
    position_wrap_turns=128.0,
    position_difference_wraps_turns=None,  # uomodri_shared.h:538-561, in floats
    current_sum_max_a=None,
    law_period_s=25e-6,
    is_reference_advanced=False,
    idle_integrals=(),
    current_max_a=10.0,
    velocity_filter_hz=100.0,
    current_filter_hz=1000.0,
    reply_age_max_s=37e-6,
    is_truncated=True,  # communication.c:85-94
    is_coil_measured=False,
    reply_lag_max=1,
    frame_gap_min_s=0.0,
    torn_share=0.0,
    is_blank_before_commands=True,
    timestamp_step_s=1.001e-3,  # its timer counts 1000 + 1 µs
    clock_overflow_s=None,
    rs485_lag=1,
    is_rs485_blank_first=True,
    is_receiver_shifted=True,  # main.c:539-572
    watchdog=Watchdog.ALWAYS,  # main.c:581-597
    watchdog_slack_s=1e-3,
    errors_clear=ErrorsClear.POWER_CYCLE,
    unpowered=Unpowered.BRAKE,
    are_faults_per_motor=True,
    is_stop_latched=True,
    system_bit=SystemBit.MOTOR_2,  # communication.c:120
    is_ready_after_error=False,
    calibration=Calibration(
        duration_s=3.0,
        late_max_s=1.0,
        apart_max_s=0.04,
        travel_electrical_turns=1.0,
        is_kept=False,
        is_position_live_before=False,
    ),
)
ARM_FIRMWARE = replace(
    UOMODRI_FIRMWARE,
    is_reference_advanced=True,
    idle_integrals=(IdleIntegral.CLEARED, IdleIntegral.KEPT, IdleIntegral.RUNS_ON),
    current_max_a=20.0,
    errors_clear=ErrorsClear.SYSTEM_DISABLED_ONE_FRAME,
)
# Not measured on `udriver2`, and taken from `uomodri`: latch, truncation, tick, RS-485, how late
# its watchdog strikes, faults of one motor, EMx dropped and raised. Nor was a window of another
# length: it asks for 0.7 ms between frames, so it is taken to begin a new one after a pause. A
# board that does not would be deaf, which the host finds (`unconfirmed`, `not-heard`).
UDRIVER2_FIRMWARE = replace(
    UOMODRI_FIRMWARE,
    position_wrap_turns=100.0,
    position_difference_wraps_turns=256.0,  # 32 bits of 2⁻²⁴ turn, dual_motor_torque_ctrl.c:1160
    current_sum_max_a=128.0,  # likewise of 2⁻²⁴ A
    current_max_a=None,
    is_coil_measured=True,
    reply_lag_max=3,
    frame_gap_min_s=0.7e-3,
    torn_share=0.25,  # at 0.5 turn/s: 128 steps of the upper half a second, 2-4 % of replies torn
    is_blank_before_commands=False,
    timestamp_step_s=1e-3,
    clock_overflow_s=17.9 * 60.0,
    is_receiver_shifted=False,
    watchdog=Watchdog.UNDER_CURRENT,  # :1677-1687
    unpowered=Unpowered.COAST,
    system_bit=SystemBit.COMMAND,  # :881
    is_ready_after_error=True,
    calibration=Calibration(
        duration_s=1.0,
        late_max_s=0.0,
        apart_max_s=0.0,
        travel_electrical_turns=0.0,
        is_kept=True,
        is_position_live_before=True,
    ),
)
