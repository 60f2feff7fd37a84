"""What the friction bench finds out about a joint: the values that `--json` prints and files keep.

Names carry units. b_eq and f are those of [De Facci 2024], Table 4.3: viscous friction at the
motor, Coulomb friction at the load.
"""

from __future__ import annotations

import enum
import math
from typing import Annotated

import msgspec

RESULT_FORMAT = "armature bench result"
RESULT_VERSION = 1

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class EstimatedQuantity(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval; None where none could be had.
        high: Upper end.
        truth: What it really is; known on a mock only.
    """

    value: float
    low: float | None = None
    high: float | None = None
    truth: float | None = None

    def times(self, factor: float) -> EstimatedQuantity:
        """Return the same in another unit, or seen from the other side of a gear."""
        low, high, truth = (
            None if number is None else factor * number
            for number in (self.low, self.high, self.truth)
        )
        return EstimatedQuantity(value=factor * self.value, low=low, high=high, truth=truth)

    @property
    def half_width(self) -> float | None:
        """Half of the interval, or rather its longer side; None where there is none."""
        if self.low is None or self.high is None:
            return None
        half = max(self.high - self.value, self.value - self.low)
        return half if 0.0 < half < math.inf else None


class Cause(enum.Enum):
    """Why a plateau is not used."""

    INTERRUPTED = "interrupted"
    NOT_SETTLED = "not settled"
    TOO_FEW_SAMPLES = "too few samples"
    ENCODER_GAP = "encoder gap"
    INVALID_SAMPLES = "invalid samples"
    SKIPPED = "periods skipped"
    NO_WHOLE_TURN = "no whole turn"
    SLIP = "slip"
    SATURATION = "saturation"
    SPEED = "speed"
    OSCILLATION = "oscillation"
    DRIFT = "drift"


class BenchWarning(enum.Enum):
    """What a warning of a result is about."""

    REJECTED = "many plateaus rejected"
    SLIP = "slip"
    DRIFT = "drift"
    NO_VISCOUS_FRICTION = "no viscous friction"
    STRIBECK_OPEN = "Stribeck friction undetermined"
    SKIPPED = "periods skipped"
    MISSING = "samples missing"
    ENDED_EARLY = "ended early"
    NO_BREAKAWAY = "no breakaway"
    NO_INERTIA = "no inertia"


class Plateau(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of constant speed.

    Attributes:
        number: In the order in which they were driven, from 1.
        repetition: Which pass through all speeds, from 1.
        start_s: When its speed was commanded, since the beginning of the recording.
        settle_s: How long it then took to settle; None when it never did.
        window_s: Beginning and end of what was averaged; None when nothing was.
        joint_velocity_rad_s: What was commanded.
        motor_velocity_rad_s: What was measured, on average.
        motor_speeds_rad_s: What was measured in each of equal parts of the way, slow ones first;
            empty when nothing was, or the file is of version 0.1.
        acceleration_rad_s2: Of the motor, on average over the turned angle.
        turns: Whole motor turns that were averaged.
        iq_a: Current, averaged over the turned angle.
        iq_sigma_a: Standard deviation of that average, from turn to turn or block to block.
        iq_correction_a: What was added to it because replies do not show what the board's reference
            does between them.
        motor_torque_nm: K_i·iq.
        is_used: Whether the fit uses it.
        reason: Why not, in words; empty if it does.
        cause: Of what kind the reason is; None if it is used, or the file is of version 0.1.
        winding_temperature_degc: On average; None without a sensor.
        bus_voltage_v: On average; None where the board does not send it.
        input_power_w: Electrical, on average; None where the board does not send it.
        energy_j: Electrical, over the window.
    """

    number: int
    repetition: int
    start_s: float
    settle_s: float | None
    window_s: tuple[float, float] | None
    joint_velocity_rad_s: float
    motor_velocity_rad_s: float | None
    acceleration_rad_s2: float | None
    turns: int
    iq_a: float | None
    iq_sigma_a: float | None
    iq_correction_a: float
    motor_torque_nm: float | None
    is_used: bool
    reason: str
    winding_temperature_degc: float | None
    bus_voltage_v: float | None
    input_power_w: float | None
    energy_j: float | None
    cause: Cause | None = None
    motor_speeds_rad_s: tuple[float, ...] = ()


class FrictionModel(msgspec.Struct, frozen=True, kw_only=True):
    """One friction model, fitted to all plateaus that are used.

    Attributes:
        name: `coulomb_viscous`, `asymmetric` or `stribeck`.
        parameters: By name with unit; motor side and load side.
        residual_rms_nm: Of the fit, at the motor.
        held_out_rms_nm: Of predictions of plateaus that the fit had not seen, at the motor.
        is_selected: Whether held-out plateaus speak for it.
    """

    name: str
    parameters: dict[str, EstimatedQuantity]
    residual_rms_nm: float
    held_out_rms_nm: float
    is_selected: bool


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one joint.

    Attributes:
        format: `RESULT_FORMAT`.
        version: `RESULT_VERSION`.
        joint: Its name.
        robot: The robot's name.
        motor: The motor's type.
        kind: Axial or radial.
        profile: Wire format of its board.
        link: Address of the link to it, as on the command line.
        recording: The file that this comes from.
        made_by: Version of the software.
        recorded_utc: When.
        model: The friction model that was selected; empty with a load arm, which measures no
            friction.
        b_eq_nms: Viscous friction at the motor, N·m·s/rad (Table 4.3); None with a load arm.
        f_nm: Coulomb friction at the load, N·m (Table 4.3); None with a load arm.
        b_joint_nms: The same viscous friction, seen at the load.
        f_motor_nm: The same Coulomb friction, seen at the motor.
        breakaway_nm: Torque that sets it in motion from rest, at the load; None when not measured.
        breakaway_motor_nm: The same at the motor.
        inertia_kg_m2: J_eq, rotor and load seen at the motor; None when not measured.
        inertia_joint_kg_m2: The same seen at the load.
        torque_constant_nm_per_a: K_i by equation 4.3 from K_v, or measured with a load arm.
        torque_constant_drop: Relative loss of K_i at `torque_constant_current_a`; with a load arm.
        torque_constant_current_a: Highest current that the load arm asked for.
        gear_reduction: Motor turns per joint turn.
        models: All that were compared.
        plateaus: All that were driven.
        plateaus_used: How many the fit uses.
        plateaus_rejected: How many it does not.
        drift_percent: Change of friction from the first to the last plateau, relative to f.
        drift_is_significant: Whether that is more than chance.
        temperature_degc: Of the winding at the first and last plateau; None without a sensor.
        bus_voltage_v: Lowest and highest; None where the board does not send it.
        energy_j: Electrical, over all plateaus; None where the board does not send it.
        duration_s: Of the recording.
        rate_hz: Samples per second, on average.
        skipped: Periods that the computer, or the link, was too late for.
        warnings: For those who use this result.
        warning_kinds: What each of them is about; empty in files of version 0.1.
    """

    format: str = RESULT_FORMAT
    version: int = RESULT_VERSION
    joint: str
    robot: str
    motor: str
    kind: str
    profile: str
    link: str
    recording: str
    made_by: str
    recorded_utc: str
    model: str
    b_eq_nms: EstimatedQuantity | None = None
    f_nm: EstimatedQuantity | None = None
    b_joint_nms: EstimatedQuantity | None = None
    f_motor_nm: EstimatedQuantity | None = None
    breakaway_nm: EstimatedQuantity | None = None
    breakaway_motor_nm: EstimatedQuantity | None = None
    inertia_kg_m2: EstimatedQuantity | None = None
    inertia_joint_kg_m2: EstimatedQuantity | None = None
    torque_constant_nm_per_a: EstimatedQuantity
    torque_constant_drop: EstimatedQuantity | None = None
    torque_constant_current_a: float | None = None
    gear_reduction: float
    models: tuple[FrictionModel, ...]
    plateaus: tuple[Plateau, ...]
    plateaus_used: Count
    plateaus_rejected: Count
    drift_percent: float
    drift_is_significant: bool
    temperature_degc: tuple[float, float] | None = None
    bus_voltage_v: tuple[float, float] | None = None
    energy_j: float | None = None
    duration_s: float
    rate_hz: float
    skipped: Count
    warnings: tuple[str, ...]
    warning_kinds: tuple[BenchWarning, ...] = ()
