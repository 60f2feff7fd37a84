"""The events that a bench test writes into its recording, so that the file alone describes it.

The kinds of events mark what was driven when, by their sample numbers. The texts of `PLAN` and
`PLATEAU_DATA` are JSON, all others are for people. Recordings of 0.1 have no `PLATEAU_DATA`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PLAN = "bench-plan"
"""The header."""
PLATEAU, SETTLED, UNSETTLED, PLATEAU_END = (
    "bench-plateau",
    "bench-settled",
    "bench-unsettled",
    "bench-plateau-end",
)
"""A speed is commanded; it has settled, or was given up; its measurement is over."""
PLATEAU_DATA = "bench-plateau-data"
"""The plateau that has just begun, or is about to be given up: a `PlateauData`."""
RAMP, RAMP_END = "bench-ramp", "bench-ramp-end"
"""The current rises slowly from rest, until the joint moves."""
STEP, STEP_END = "bench-step", "bench-step-end"
"""A current step from rest, then coasting."""
SWING, SWING_END = "bench-swing", "bench-swing-end"
"""A load arm goes from one side to the other."""
PROBLEM = "bench-problem"
"""Why it ended early."""

_Positive = Annotated[float, Meta(gt=0, le=1e4)]


class LoadArm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known weight on an arm at the joint's output: a reference torque m·g·l·sin q."""

    mass_kg: _Positive
    length_m: _Positive


class MockTruth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The true values of a mock, to judge a result by; no estimator reads them."""

    b_eq_nms: float
    f_nm: float
    breakaway_nm: float
    inertia_kg_m2: float
    torque_constant_nm_per_a: float
    saturation_per_a2: float
    """c in K_i/√(1 + c·iq²): how the torque constant falls with current."""


class PlateauData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a recording says of one plateau.

    Attributes:
        joint_velocity_rad_s: What was commanded.
        cause: Why it was given up, in a word (`daq.bench.settling`); empty if it was not.
        remark: The same for people.
    """

    joint_velocity_rad_s: float
    cause: str = ""
    remark: str = ""


class BenchHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a recording of a bench test says about it.

    Attributes:
        kind: `free` turns without end, `mounted` moves within its range, `load_arm` swings a
            weight.
        joint: Which joint.
        plateaus: How many.
        repetitions: How often all speeds are driven.
        seed: Of their order.
        window_rad: Joint angles between which a mounted joint is measured.
        load_arm: The weight.
        truth: Of a mock.
    """

    kind: Literal["free", "mounted", "load_arm"]
    joint: str
    plateaus: Annotated[int, Meta(ge=0, le=2000)]
    repetitions: Annotated[int, Meta(ge=1, le=1000)]
    seed: int
    window_rad: tuple[float, float] | None = None
    load_arm: LoadArm | None = None
    truth: MockTruth | None = None
