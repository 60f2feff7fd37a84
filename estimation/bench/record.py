"""One joint of a recorded bench test as arrays, and what was driven when.

Everything is seen at the motor, but turning in the joint's direction, so that no sign is lost
between the two sides. Reads; computes nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from daq.recording import BoardBehaviour, RecordedEvent, Recording
from daq.recording import bench_events as ev
from daq.recording.bench_events import BenchHeader
from daq.robot import DrivenJoint, DrivenRobot, Motor
from estimation.bench.result import Cause
from estimation.errors import DatasetError
from estimation.recordings.board_effects import board_of, cut_of, untruncated
from estimation.recordings.torn import mended
from estimation.types import FloatArray, Rows

SAMPLES_MAX = 5_000_000
_SPEED = re.compile(r": ([+-][0-9.e+-]+) rad/s$")
"""In the text of a plateau's event: all that recordings of version 0.1 say of its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveConstants:
    """The constants between current and load.

    Attributes:
        k_i_nm_per_a: Torque constant (equation 4.3).
        reduction: 1/k_g, motor turns per joint turn.
        load_to_motor: Torque at the motor per torque at the load, k_g/η.
        pole_pairs: Of the motor.
        count_rad: One encoder count at the motor.
    """

    k_i_nm_per_a: float
    reduction: float
    load_to_motor: float
    pole_pairs: int
    count_rad: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of the test, by rows of the arrays."""

    begin: int
    settled: int | None
    end: int
    remark: str = ""
    cause: Cause | None = None
    """Of what kind the remark is."""
    target_rad_s: float | None = None
    """Speed at the joint that was commanded; in recordings of version 0.1 to four digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRecord:
    """The joint's samples; arrays of shape (samples,), NaN where a reply was not valid.

    Attributes:
        profile: Of the joint's board.
        behaviour: What that board's firmware does.
        seq: Number of each sample; of those that are missing nobody knows what was sent.
        t_s: Since the first sample.
        transfer_s: Time that each exchange took.
        angle_rad: Of the motor, unwrapped.
        velocity_rad_s: Of the motor, as the board measures it.
        iq_a: Quadrature current.
        reference_rad: Commanded motor angle.
        reference_rad_s: Commanded motor speed.
        kp_a_per_rad: Gain on the position error.
        kd_a_s_per_rad: Gain on the velocity error.
        limit_a: Current limit; 0 for the board's own.
        temperature_degc: Of the winding; None where the board does not send it.
        bus_voltage_v: Of the supply; None where the board does not send it.
        input_power_w: Electrical; None where the board does not send it.
    """

    header: BenchHeader
    robot: DrivenRobot
    joint: DrivenJoint
    motor: Motor
    drive: DriveConstants
    profile: str
    behaviour: BoardBehaviour
    seq: Rows
    t_s: FloatArray
    transfer_s: FloatArray
    angle_rad: FloatArray
    velocity_rad_s: FloatArray
    iq_a: FloatArray
    reference_rad: FloatArray
    reference_rad_s: FloatArray
    kp_a_per_rad: FloatArray
    kd_a_s_per_rad: FloatArray
    limit_a: FloatArray
    temperature_degc: FloatArray | None
    bus_voltage_v: FloatArray | None
    input_power_w: FloatArray | None
    plateaus: tuple[Span, ...]
    ramps: tuple[Span, ...]
    steps: tuple[Span, ...]
    swings: tuple[Span, ...]
    problem: str
    missing: int
    skipped: int

    @property
    def rad_s2_per_a(self) -> float:
        """How fast a current speeds the motor up, by the robot file; 0 if it is not free to turn.

        The link of a mounted joint is not known well enough.
        """
        if self.header.kind != "free":
            return 0.0
        drive, load_kg_m2 = self.joint.drive, self.joint.load_inertia_kg_m2 or 0.0
        inertia_kg_m2 = drive.rotor_inertia_kg_m2 + load_kg_m2 / drive.gear_reduction**2
        return self.drive.k_i_nm_per_a / inertia_kg_m2 if inertia_kg_m2 > 0.0 else 0.0


def read_record(recording: Recording) -> JointRecord:
    """Take a bench test out of its recording.

    Raises:
        DatasetError: The recording is not of a bench test, or was damaged.
    """
    events = recording.events
    plans = [event for event in events if event.kind == ev.PLAN]
    if not plans:
        raise DatasetError(
            f"{recording.path}: not the recording of a bench test (there is no plan among its "
            "events); `armature bench friction` makes one",
            code="not-a-bench-test",
        )
    try:
        header = msgspec.json.decode(plans[-1].text, type=BenchHeader)
    except msgspec.MsgspecError as error:
        raise DatasetError(
            f"{recording.path}: its bench plan cannot be read: {error}", code="unreadable-plan"
        ) from error
    if header.joint not in recording.joint_names:
        raise DatasetError(f"{recording.path}: has no joint {header.joint}", code="no-such-joint")
    if recording.sample_count > SAMPLES_MAX:
        raise DatasetError(
            f"{recording.path}: {recording.sample_count} samples, a bench test has at most "
            f"{SAMPLES_MAX}",
            code="too-many-samples",
        )
    t_s = recording.t_s
    if len(t_s) > 1 and not np.min(np.diff(t_s)) > 0.0:
        raise DatasetError(
            f"{recording.path}: its times do not rise: the file is damaged",
            code="times-do-not-rise",
        )
    place = recording.joint_names.index(header.joint)
    robot = recording.robot.driven()
    joint = next(joint for joint in robot.joints if joint.name == header.joint)
    motor, drive = robot.motor_of(joint), joint.drive
    behaviour = board_of(recording, drive.board)
    board = recording.board_names.index(drive.board)

    def column(name: str, number: int = place) -> FloatArray:
        return np.asarray(recording[name][:, number], np.float64)

    def optional(name: str, number: int = place) -> FloatArray | None:
        values = column(name, number) if name in recording else None
        return None if values is None or np.isnan(values).all() else values

    seq = np.asarray(recording["seq"][:], np.int64)
    problems = [event.text for event in events if event.kind == ev.PROBLEM]
    driven = sum(event.kind == ev.PLATEAU for event in events)
    if driven > header.plateaus:
        raise DatasetError(
            f"{recording.path}: {driven} plateaus among its events, its plan has {header.plateaus}",
            code="plateaus-differ-from-plan",
        )
    angle_rad = column("joint_position_rad") * drive.gear_reduction
    velocity_rad_s = column("joint_velocity_rad_s") * drive.gear_reduction
    angle_rad = mended(
        angle_rad,
        velocity_rad_s,
        t_s,
        step_rad=behaviour.torn_step_rad,
        output=drive.output,
        lag_s=behaviour.velocity_lag_s,
    )
    velocity_cut_rad_s = cut_of(behaviour, behaviour.motor_velocity_lsb_rad_s)
    return JointRecord(
        header=header,
        robot=robot,
        joint=joint,
        motor=motor,
        drive=DriveConstants(
            k_i_nm_per_a=motor.torque_constant_nm_per_a,
            reduction=drive.gear_reduction,
            load_to_motor=1.0 / drive.torque_ratio,
            pole_pairs=motor.pole_pairs,
            count_rad=math.tau / drive.encoder_counts_per_turn,
        ),
        profile=str(recording.attributes["board_profiles"][board]),
        behaviour=behaviour,
        seq=seq,
        t_s=t_s,
        transfer_s=np.asarray(recording["transfer_ns"][:], np.float64) * 1e-9,
        angle_rad=angle_rad,
        velocity_rad_s=untruncated(velocity_rad_s, velocity_cut_rad_s),
        iq_a=untruncated(column("iq_a"), cut_of(behaviour, behaviour.current_lsb_a))
        * drive.direction,
        reference_rad=column("reference_position_rad") * drive.gear_reduction,
        reference_rad_s=column("reference_velocity_rad_s") * drive.gear_reduction,
        kp_a_per_rad=column("kp_a_per_rad"),
        kd_a_s_per_rad=column("kd_a_s_per_rad"),
        limit_a=column("isat_a"),
        temperature_degc=optional("winding_temperature_degc"),
        bus_voltage_v=optional("bus_voltage_v", board),
        input_power_w=optional("input_power_w"),
        plateaus=_find_spans(events, seq, ev.PLATEAU, ev.PLATEAU_END),
        ramps=_find_spans(events, seq, ev.RAMP, ev.RAMP_END),
        steps=_find_spans(events, seq, ev.STEP, ev.STEP_END),
        swings=_find_spans(events, seq, ev.SWING, ev.SWING_END),
        problem=problems[-1] if problems else "",
        missing=sum(gap.count for gap in recording.gaps),
        skipped=int(np.sum(recording["skipped"][:], dtype=np.int64)),
    )


def _speed(text: str) -> float | None:
    """Return the speed at the end of a plateau's text, if it is one."""
    found = _SPEED.search(text)
    try:
        speed_rad_s = float(found[1]) if found else math.nan
    except ValueError:
        return None
    return speed_rad_s if math.isfinite(speed_rad_s) else None


def _find_spans(
    events: Sequence[RecordedEvent], seq: Rows, kind: str, end_kind: str
) -> tuple[Span, ...]:
    """Find all parts of a kind; one that was interrupted ends where the next event is."""
    last = len(seq) - 1
    if last < 0:
        return ()
    spans: list[Span] = []
    span: Span | None = None
    for event in events:
        row = min(int(np.searchsorted(seq, event.seq)), last)
        if event.kind == kind:
            if span is not None:
                spans.append(_interrupted(span, row))
            span = Span(begin=row, settled=None, end=row, target_rad_s=_speed(event.text))
        elif span is None:
            continue
        elif event.kind == ev.PLATEAU_DATA:
            span = _with_data(span, event.text)
        elif event.kind == ev.SETTLED:
            span = replace(span, settled=row)
        elif event.kind in (end_kind, ev.UNSETTLED, ev.PROBLEM):
            span = replace(span, end=row)
            if event.kind == ev.UNSETTLED:
                remark = span.remark or _remark_of_0_1(event.text)
                cause = Cause.NOT_SETTLED if remark else None
                span = replace(span, remark=remark, cause=cause)
            elif event.kind == ev.PROBLEM:
                span = _interrupted(span, row, "the test ended there")
            spans.append(span)
            span = None
    if span is not None:
        spans.append(_interrupted(span, last))
    return tuple(spans)


def _with_data(span: Span, text: str) -> Span:
    """Return a plateau with what the recording says of it; as it is if that cannot be read."""
    try:
        data = msgspec.json.decode(text, type=ev.PlateauData)
    except msgspec.MsgspecError:
        return span
    if not math.isfinite(data.joint_velocity_rad_s):
        return span
    return replace(span, target_rad_s=data.joint_velocity_rad_s, remark=data.remark)


def _remark_of_0_1(text: str) -> str:
    """Return the remark behind number and speed in the text for people."""
    return text.partition(": ")[2] or text


def _interrupted(span: Span, end: int, remark: str = "it was not finished") -> Span:
    return replace(span, settled=None, end=end, remark=remark, cause=Cause.INTERRUPTED)
