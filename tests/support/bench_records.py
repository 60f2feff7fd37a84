"""Bench tests that never took place: computed from equation 4.11, so that their truth is known.

Shares nothing with the mock or with the estimators. A plateau is computed over the motor's angle
(whatever current makes it turn as it does), ramps and steps are integrated over time. As in a
`JointRecord`, everything is at the motor and turns in the joint's direction. Files are of format
1.1: nothing is said of what references do between two replies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import scipy.signal
from older_formats import as_format, behaviour_in_1_1

from daq.recording import RecordedEvent, RecordingWriter
from daq.recording import bench_events as ev
from daq.recording.bench_events import BenchHeader, LoadArm, MockTruth
from daq.recording.info import RecordingInfo
from daq.recording.layout import COLUMNS, ColumnAxis
from daq.robot import Joint, Motor, Robot, parse_robot, robot_text
from estimation.bench.record import DriveConstants, JointRecord, Span
from estimation.bench.result import Cause

Array = np.ndarray[Any, np.dtype[np.float64]]
Part = dict[str, Array]
Fault = Callable[[Part, slice], None]
"""Spoils a part; the slice is what lies between settled and end."""

FRESH = ("t_s", "angle_rad", "velocity_rad_s", "iq_a", "reference_rad_s", "kp_a_per_rad", "limit_a")
OPTIONAL = ("temperature_degc", "bus_voltage_v", "input_power_w")
START_T_NS, START_UTC_NS = 5_000_000_000, 1_700_000_000_000_000_000
TRANSFER_S = 1e-4
VELOCITY_FILTER_S = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """What is true of a joint.

    Attributes:
        b_nms: Viscous friction at the motor.
        f_nm: Coulomb friction at the load.
        static_nm: Friction from rest, at the load; None for the same.
        stribeck_rad_s: Speed at the joint at which `static_nm` has faded.
        cogging_nm: Amplitude of the harmonic 6p, at the motor.
        give_way: How much the speed gives way to it at most, as a share; at higher speeds only as
            much as cogging can change it.
        ripple: Relative change of the torque constant, same harmonic.
        inertia_kg_m2: At the motor.
        saturation_per_a2: c in K_i/√(1 + c·iq²).
        gravity_nm: m·g·l of what a mounted joint carries, at the load.
    """

    b_nms: float = 2.42e-6
    f_nm: float = 0.122
    static_nm: float | None = None
    stribeck_rad_s: float = 0.05
    cogging_nm: float = 0.0
    give_way: float = 0.0
    ripple: float = 0.0
    inertia_kg_m2: float = 1.21e-5
    saturation_per_a2: float = 0.0
    gravity_nm: float = 0.0

    def friction_nm(self, velocity_rad_s: Any, drive: DriveConstants) -> Any:
        """Motor torque that friction takes, at motor speeds."""
        faded = np.exp(-np.square(velocity_rad_s / drive.reduction / self.stribeck_rad_s))
        extra_nm = 0.0 if self.static_nm is None else (self.static_nm - self.f_nm) * faded
        coulomb_nm = drive.load_to_motor * (self.f_nm + extra_nm)
        return self.b_nms * velocity_rad_s + coulomb_nm * np.sign(velocity_rad_s)


def make_robot(
    *,
    robot: str = "bench1",
    direction: int = 1,
    efficiency: float = 1.0,
    motor: str = "mn4004",
    changes: Sequence[tuple[str, str]] = (),
) -> str:
    """The text of a robot file with another drive."""
    text = robot_text(robot)
    text = text.replace("direction = 1", f"direction = {direction}\ngear_efficiency = {efficiency}")
    text = text.replace('motor = "mn4004"', f'motor = "{motor}"')
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


class BenchTest:
    """A test, part by part: what was driven, what was measured, and the events.

    Args:
        plant: The truth.
        text: Of the robot file.
        joint: Which joint; the first by default.
        noise_a: Of each sample of the current.
        jitter: Relative change of the periods at random, evenly up to this.
        has_counts: Whether the angle is known to an encoder count only.
        has_optional: Whether the board tells temperature, voltage and power.
        has_plateau_data: Whether there are events that say for programs what a plateau is, as in
            every recording since version 0.1.
        kp_a_per_rad: Gain of the position error.
        kd_a_s_per_rad: Gain with which encoder counts get into the current.
        limit_a: Current limit; 0 for the board's own.
        period_s: Between two samples.
        seed: Of everything at random.
    """

    def __init__(
        self,
        plant: Plant | None = None,
        *,
        text: str | None = None,
        joint: str = "",
        noise_a: float = 2e-3,
        jitter: float = 0.0,
        has_counts: bool = True,
        has_optional: bool = True,
        has_plateau_data: bool = False,
        kp_a_per_rad: float = 0.44,
        kd_a_s_per_rad: float = 0.0,
        limit_a: float = 9.0,
        period_s: float = 1e-3,
        seed: int = 0,
    ) -> None:
        self.plant = plant or Plant()
        self.text = text or make_robot()
        self.robot: Robot = parse_robot(self.text, "test")
        names = [joint.name for joint in self.robot.joints]
        self.place = names.index(joint) if joint else 0
        self.joint: Joint = self.robot.joints[self.place]
        self.motor: Motor = self.robot.motor_of(self.joint)
        gear = self.joint.drive
        self.drive = DriveConstants(
            k_i_nm_per_a=self.motor.torque_constant_nm_per_a,
            reduction=gear.gear_reduction,
            load_to_motor=1.0 / gear.gear_reduction / gear.gear_efficiency,
            pole_pairs=self.motor.pole_pairs,
            count_rad=2.0 * math.pi / gear.encoder_counts_per_turn,
        )
        self.harmonic = 6 * self.motor.pole_pairs
        self.random = np.random.default_rng(seed)
        self.noise_a, self.jitter, self.period_s = noise_a, jitter, period_s
        self.has_counts, self.has_optional = has_counts, has_optional
        self.has_plateau_data = has_plateau_data
        self.kp_a_per_rad, self.kd_a_s_per_rad = kp_a_per_rad, kd_a_s_per_rad
        self.limit_a = limit_a
        self.drift_per_s = 0.0
        self.events: list[tuple[int, str, str]] = []
        self.parts: list[Part] = []
        self._rows = 0
        self._t_s = 0.0
        self._angle_rad = 0.3
        self._spans: dict[str, list[tuple[int, int | None, int, float | None, str]]] = {
            kind: [] for kind in (ev.PLATEAU, ev.RAMP, ev.STEP, ev.SWING)
        }

    # --- plateaus ---------------------------------------------------------------------------------

    def plateau(
        self,
        speed_rad_s: float,
        *,
        turns: float = 1.02,
        dwell_s: float = 0.0,
        settle_s: float = 0.1,
        commanded_rad_s: float | None = None,
        fault: Fault | None = None,
        unsettled: str | None = None,
    ) -> None:
        """Turn the motor at a constant speed on average, other than commanded if that is given.

        With `unsettled`, which is what the log says of it, the plateau was given up.
        """
        measured_s = max(turns * 2.0 * math.pi / abs(speed_rad_s), dwell_s)
        t_s = self._times(settle_s + measured_s)
        angle_rad, velocity_rad_s, iq_a = self._turn(t_s, speed_rad_s)
        target_rad_s = speed_rad_s if commanded_rad_s is None else commanded_rad_s
        settled = int(np.searchsorted(t_s, settle_s))
        part = self._part(t_s, angle_rad, velocity_rad_s, iq_a, target_rad_s)
        number = len(self._spans[ev.PLATEAU]) + 1
        joint_rad_s = target_rad_s / self.drive.reduction
        text = f"plateau {number} of 99: {joint_rad_s:+.4g} rad/s"
        data = ev.PlateauData(joint_velocity_rad_s=joint_rad_s, remark=unsettled or "")
        marks: list[tuple[int, str, str]] = [(0, ev.PLATEAU, text)]
        if self.has_plateau_data:
            marks.append((0, ev.PLATEAU_DATA, msgspec.json.encode(data).decode()))
        if unsettled is None:
            marks += [
                (settled, ev.SETTLED, f"plateau {number} settled after {settle_s:.2f} s"),
                (len(t_s) - 1, ev.PLATEAU_END, f"plateau {number} is over"),
            ]
        else:
            text = f"plateau {number} at {joint_rad_s:+.4g} rad/s: {unsettled}"
            marks.append((len(t_s) - 1, ev.UNSETTLED, text))
        self._add(part, ev.PLATEAU, marks, settled if unsettled is None else None, fault)
        last = self._spans[ev.PLATEAU][-1]
        speed = joint_rad_s if self.has_plateau_data else float(f"{joint_rad_s:+.4g}")
        self._spans[ev.PLATEAU][-1] = (*last[:3], speed, unsettled or "")

    def turn_to(self, angle_rad: float) -> None:
        """Go on from this angle of the motor."""
        self._angle_rad = angle_rad

    def sweep(
        self, speeds_rad_s: Sequence[float], *, repetitions: int = 1, **changes: Any
    ) -> BenchTest:
        """Plateaus at these motor speeds in both directions, in an order at random."""
        both = [sign * speed for speed in speeds_rad_s for sign in (1.0, -1.0)]
        for _ in range(repetitions):
            for speed in self.random.permutation(both).tolist():
                self.plateau(speed, **changes)
        return self

    def _turn(self, t_s: Array, speed_rad_s: float) -> tuple[Array, Array, Array]:
        """Angle, speed and current of a motor whose speed gives way to cogging.

        ω(θ) = ω₀·(1 − g·sgn(ω₀)·sin Nθ), which takes 2π/(N·ω₀·√(1 − g²)) for a period; the current
        is what the equation of motion asks for.
        """
        plant = self.plant
        possible = plant.cogging_nm / (plant.inertia_kg_m2 * self.harmonic * speed_rad_s**2)
        way = math.copysign(min(plant.give_way, possible), speed_rad_s)
        nominal_rad_s = speed_rad_s / math.sqrt(1.0 - way * way)
        # One period of t(θ), then interpolated; x = Nθ.
        x = np.linspace(0.0, 2.0 * math.pi, 4097)
        slowness = 1.0 / (1.0 - way * np.sin(x))
        since = np.concatenate([[0.0], np.cumsum(0.5 * (slowness[1:] + slowness[:-1]))])
        since *= x[1]
        start = (self.harmonic * self._angle_rad) % (2.0 * math.pi)
        elapsed = np.interp(start, x, since) + self.harmonic * nominal_rad_s * t_s
        whole = np.floor(elapsed / since[-1])
        phase = np.interp(elapsed - whole * since[-1], since, x)
        angle_rad = self._angle_rad + (whole * 2.0 * math.pi + phase - start) / self.harmonic
        velocity_rad_s = nominal_rad_s * (1.0 - way * np.sin(phase))
        slope = -nominal_rad_s * way * self.harmonic * np.cos(phase)  # dω/dθ
        torque_nm = (
            plant.friction_nm(velocity_rad_s, self.drive) * (1.0 + self.drift_per_s * self._t_s)
            + plant.inertia_kg_m2 * velocity_rad_s * slope
            + plant.cogging_nm * np.sin(phase)
            + self.drive.load_to_motor * plant.gravity_nm * np.sin(angle_rad / self.drive.reduction)
        )
        constant = self.drive.k_i_nm_per_a * (1.0 + plant.ripple * np.cos(phase))
        return angle_rad, velocity_rad_s, torque_nm / constant

    # --- breakaway, inertia, load arm -------------------------------------------------------------

    def ramp(
        self,
        sign: float,
        *,
        moved_counts: float = 12.0,
        level_max: float = 3.0,
        rest_rad: float | None = None,
        fault: Fault | None = None,
    ) -> None:
        """Raise the current from rest until the motor has moved by so many counts.

        The ramp ends at `level_max` times the current of Coulomb friction.
        """
        plant, drive = self.plant, self.drive
        self._angle_rad += float(self.random.uniform(0.2, 1.2)) * 2.0 * math.pi
        self._angle_rad = self._angle_rad if rest_rad is None else rest_rad
        rest_rad, step_s = self._angle_rad, 4e-5
        coulomb_nm = drive.load_to_motor * plant.f_nm
        static_nm = drive.load_to_motor * (plant.static_nm or plant.f_nm)
        friction_a = coulomb_nm / drive.k_i_nm_per_a
        holds_nm = plant.cogging_nm * math.sin(self.harmonic * rest_rad)
        due_a = (sign * static_nm + holds_nm) / drive.k_i_nm_per_a
        off_s = (abs(due_a) / friction_a - 0.5) / 0.45
        is_moving = sign * due_a > 0.5 * friction_a and abs(due_a) < level_max * friction_a
        until_s = max(off_s, 0.0) if is_moving else (level_max - 0.5) / 0.45
        angle_rad, speed, t_s = rest_rad, 0.0, until_s
        times, angles, speeds = [0.0, until_s], [rest_rad, rest_rad], [0.0, 0.0]
        while is_moving and abs(angle_rad - rest_rad) < 2.0 * moved_counts * drive.count_rad:
            iq_a = sign * friction_a * (0.5 + 0.45 * t_s)
            net_nm = drive.k_i_nm_per_a * iq_a - plant.cogging_nm * math.sin(
                self.harmonic * angle_rad
            )
            faded = math.exp(-((speed / drive.reduction / plant.stribeck_rad_s) ** 2))
            friction_nm = plant.b_nms * speed
            friction_nm += sign * (coulomb_nm + (static_nm - coulomb_nm) * faded)
            speed += step_s * (net_nm - friction_nm) / plant.inertia_kg_m2
            if sign * speed < 0.0:
                speed = 0.0
            angle_rad += step_s * speed
            t_s += step_s
            times.append(t_s)
            angles.append(angle_rad)
            speeds.append(speed)
        sampled_s = self._times(t_s if is_moving else t_s + 0.05)
        part = self._part(
            sampled_s,
            np.interp(sampled_s, times, angles),
            np.interp(sampled_s, times, speeds),
            sign * friction_a * (0.5 + 0.45 * np.minimum(sampled_s, t_s)),
            0.0,
        )
        moved = np.abs(part["angle_rad"] - rest_rad) > moved_counts * drive.count_rad
        end = int(np.argmax(moved)) if is_moving else len(sampled_s) - 50
        number = len(self._spans[ev.RAMP]) + 1
        marks = [
            (0, ev.RAMP, f"current ramp {number} of 10"),
            (end, ev.RAMP_END, f"current ramp {number} is over"),
        ]
        self._add(part, ev.RAMP, marks, None, fault)

    def step(
        self, current_a: float, *, fastest_rad_s: float = 112.0, fault: Fault | None = None
    ) -> None:
        """A current step from rest, which slews within 0.1 s, then coasting.

        It ends at the fastest speed of the motor, or after half a second.
        """
        plant, drive, step_s = self.plant, self.drive, 1e-4
        t_s, speed, angle_rad, off_s = 0.0, 0.0, self._angle_rad, math.inf
        rows: list[tuple[float, float, float, float]] = []
        order, constant = float(self.harmonic), drive.k_i_nm_per_a
        static_nm = drive.load_to_motor * (plant.static_nm or plant.f_nm)
        while t_s < off_s + 1.5:
            if t_s < off_s and (abs(speed) > fastest_rad_s or t_s > 0.5):
                off_s = t_s
            iq_a = current_a * min(t_s / 0.1, 1.0)
            if t_s > off_s:
                iq_a = current_a * max(0.0, min(off_s / 0.1, 1.0) - (t_s - off_s) / 0.1)
            net_nm = constant * iq_a - plant.cogging_nm * math.sin(order * angle_rad)
            friction_nm = plant.b_nms * speed + math.copysign(static_nm, speed or net_nm)
            change = step_s * (net_nm - friction_nm) / plant.inertia_kg_m2
            is_stuck = speed == 0.0 and abs(net_nm) <= static_nm
            is_reversed = speed != 0.0 and (speed + change) * speed < 0.0
            speed = 0.0 if is_stuck or is_reversed else speed + change
            angle_rad += step_s * speed
            t_s += step_s
            rows.append((t_s, angle_rad, speed, iq_a))
            if t_s > off_s + 0.11 and abs(speed) < 0.13 * fastest_rad_s:
                break
        times, angles, speeds, currents = np.array(rows).T
        sampled_s = self._times(t_s)
        part = self._part(
            sampled_s, *(np.interp(sampled_s, times, v) for v in (angles, speeds, currents)), 0.0
        )
        number = len(self._spans[ev.STEP]) + 1
        marks = [
            (0, ev.STEP, f"current step {number} of 6: {current_a:+.3g} A"),
            (len(sampled_s) - 1, ev.STEP_END, f"current step {number} is over"),
        ]
        self._add(part, ev.STEP, marks, None, fault)

    def swings(
        self,
        arm: LoadArm,
        *,
        count: int = 8,
        side_rad: float = math.pi / 2.0,
        speed_rad_s: float = 0.4,
        hangs_rad: float = 0.0,
        fault: Fault | None = None,
    ) -> BenchTest:
        """Lift and lower a weight on an arm; slowly, so that only gravity and friction count.

        Angles and speed are the joint's; the arm would hang `hangs_rad` beside the start. The
        fault is that of the second swing.
        """
        plant, drive = self.plant, self.drive
        start_rad = self._angle_rad / drive.reduction
        here_rad = start_rad
        for number in range(1, count + 1):
            there_rad = start_rad + (side_rad if number % 2 else -side_rad)
            way_s = 1.875 * abs(there_rad - here_rad) / speed_rad_s
            t_s = self._times(way_s)
            x = np.clip(t_s / way_s, 0.0, 1.0)
            joint_rad = here_rad + (there_rad - here_rad) * x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
            joint_rad_s = (there_rad - here_rad) / way_s * 30.0 * (x * (1.0 - x)) ** 2
            load_nm = arm.mass_kg * 9.81 * arm.length_m
            torque_nm = drive.load_to_motor * load_nm * np.sin(joint_rad - start_rad - hangs_rad)
            torque_nm += plant.friction_nm(joint_rad_s * drive.reduction, drive)
            # τ = K·i/√(1 + c·i²), solved for i.
            squared = drive.k_i_nm_per_a**2 - plant.saturation_per_a2 * torque_nm**2
            part = self._part(
                t_s,
                joint_rad * drive.reduction,
                joint_rad_s * drive.reduction,
                torque_nm / np.sqrt(squared),
                0.0,
            )
            marks = [
                (0, ev.SWING, f"swing {number} of {count}"),
                (len(t_s) - 1, ev.SWING_END, f"swing {number} is over"),
            ]
            self._add(part, ev.SWING, marks, None, fault if number == 2 else None)
            here_rad = there_rad
        return self

    def add_samples(self, part: Part, *, settled: int) -> None:
        """A plateau that a test has computed by itself; `part` as in `FRESH`."""
        marks = [
            (0, ev.PLATEAU, "plateau"),
            (settled, ev.SETTLED, "settled"),
            (len(part["t_s"]) - 1, ev.PLATEAU_END, "over"),
        ]
        self._add(dict(part), ev.PLATEAU, marks, settled, None)

    # --- inside -----------------------------------------------------------------------------------

    def _times(self, duration_s: float) -> Array:
        count = math.ceil(duration_s / self.period_s) + 1
        periods = 1.0 + self.jitter * self.random.uniform(-1.0, 1.0, count)
        return self.period_s * np.concatenate([[0.0], np.cumsum(periods)])[:-1]

    def _part(
        self, t_s: Array, angle_rad: Array, velocity_rad_s: Array, iq_a: Array, reference: float
    ) -> Part:
        self._angle_rad = float(angle_rad[-1])
        count = self.drive.count_rad
        seen_rad = np.floor(angle_rad / count) * count if self.has_counts else angle_rad
        # The board takes each count for a short burst of speed, and brakes.
        share = 1.0 - math.exp(-self.period_s / VELOCITY_FILTER_S)
        bursts = np.diff(seen_rad - angle_rad, prepend=seen_rad[0] - angle_rad[0]) / self.period_s
        bursts = scipy.signal.lfilter([share], [1.0, share - 1.0], bursts)
        return {
            "t_s": t_s,
            "angle_rad": seen_rad,
            "velocity_rad_s": velocity_rad_s + bursts,
            "iq_a": iq_a
            - self.kd_a_s_per_rad * bursts
            + self.random.normal(0.0, self.noise_a, len(t_s)),
            "reference_rad_s": np.full(len(t_s), reference),
            "kp_a_per_rad": np.full(len(t_s), self.kp_a_per_rad),
            "limit_a": np.full(len(t_s), self.limit_a),
        }

    def _add(
        self,
        part: Part,
        kind: str,
        marks: list[tuple[int, str, str]],
        settled: int | None,
        fault: Fault | None,
    ) -> None:
        rows = len(part["t_s"])
        begin, end = marks[0][0], marks[-1][0]
        first = self._rows
        part["seq"] = np.arange(first, first + rows)
        part["t_s"] = part["t_s"] + self._t_s
        if self.has_optional:
            part |= {
                "temperature_degc": 25.0 + 0.01 * part["t_s"],
                "bus_voltage_v": 24.0 - 0.1 * np.abs(part["iq_a"]),
                "input_power_w": 0.5 + 2.0 * np.abs(part["iq_a"]),
            }
        if fault is not None:
            fault(part, slice(settled or begin, end))
        self._t_s = float(part["t_s"][-1]) + self.period_s
        self.parts.append(part)
        self._rows += rows
        self.events += [(first + row, name, text) for row, name, text in marks]
        at = None if settled is None else first + settled
        self._spans[kind].append((first + begin, at, first + end, None, ""))

    # --- what comes out ---------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """A column of all samples."""
        return np.concatenate([part[name] for part in self.parts] or [np.empty(0)])

    def header(self, **changes: Any) -> BenchHeader:
        """What the recording says about the test."""
        values: dict[str, Any] = {
            "kind": "free",
            "joint": self.joint.name,
            "plateaus": len(self._spans[ev.PLATEAU]),
            "repetitions": 1,
            "seed": 0,
        }
        return BenchHeader(**(values | changes))

    @property
    def truth(self) -> MockTruth:
        """What is true."""
        return MockTruth(
            b_eq_nms=self.plant.b_nms,
            f_nm=self.plant.f_nm,
            breakaway_nm=self.plant.static_nm or self.plant.f_nm,
            inertia_kg_m2=self.plant.inertia_kg_m2,
            torque_constant_nm_per_a=self.drive.k_i_nm_per_a,
            saturation_per_a2=self.plant.saturation_per_a2,
        )

    def record(self, **header: Any) -> JointRecord:
        """The test as the analysis reads it from a file."""
        seq = self.column("seq")
        spans: dict[str, tuple[Span, ...]] = {}
        for kind, found in self._spans.items():
            spans[kind] = tuple(
                Span(
                    begin=int(np.searchsorted(seq, begin)),
                    settled=None if settled is None else int(np.searchsorted(seq, settled)),
                    end=int(np.searchsorted(seq, end)),
                    target_rad_s=target,
                    remark=remark,
                    cause=Cause.NOT_SETTLED if remark else None,
                )
                for begin, settled, end, target, remark in found
            )
        optional = {name: self.column(name) if self.has_optional else None for name in OPTIONAL}
        return JointRecord(
            header=self.header(**header),
            robot=self.robot,
            joint=self.joint,
            motor=self.motor,
            drive=self.drive,
            profile="arm",
            behaviour=behaviour_in_1_1("arm"),
            seq=seq.astype(np.int64),
            reference_rad=np.zeros(len(seq)),
            kd_a_s_per_rad=np.zeros(len(seq)),
            **{name: self.column(name) for name in FRESH},  # type: ignore[arg-type]
            transfer_s=np.full(len(seq), TRANSFER_S),
            **optional,
            plateaus=spans[ev.PLATEAU],
            ramps=spans[ev.RAMP],
            steps=spans[ev.STEP],
            swings=spans[ev.SWING],
            problem="",
            missing=self._rows - len(seq),
            skipped=0,
        )

    def write(
        self,
        path: Path,
        *,
        plan: str | None = None,
        events: Sequence[tuple[int, str, str]] | None = None,
        more_events: Sequence[tuple[int, str, str]] = (),
        rows: int | None = None,
        **header: Any,
    ) -> Path:
        """The test as a recording of so many rows; `plan` is the text of its event, "" for none."""
        plan = msgspec.json.encode(self.header(**header)).decode() if plan is None else plan
        marks = [(0, ev.PLAN, plan)] if plan else []
        marks += [*(self.events if events is None else events), *more_events]
        writer = RecordingWriter(path, self._info())
        writer.append({name: values[:rows] for name, values in self._columns().items()})
        writer.add_events(
            RecordedEvent(seq, START_T_NS, kind, "info", self.joint.name, text)
            for seq, kind, text in marks
        )
        writer.close()
        return as_format(path, 1)

    def _columns(self) -> dict[str, Any]:
        seq = self.column("seq").astype(np.uint64)
        gear, info = self.drive.reduction, self._info()
        known: dict[str, Array] = {
            "joint_position_rad": self.column("angle_rad") / gear,
            "joint_velocity_rad_s": self.column("velocity_rad_s") / gear,
            "iq_a": self.column("iq_a") * self.joint.drive.direction,
            "reference_velocity_rad_s": self.column("reference_rad_s") / gear,
            "kp_a_per_rad": self.column("kp_a_per_rad"),
            "isat_a": self.column("limit_a"),
        }
        if self.has_optional:
            known["winding_temperature_degc"] = self.column("temperature_degc")
            known["bus_voltage_v"] = self.column("bus_voltage_v")
            known["input_power_w"] = self.column("input_power_w")
        boards = [board.name for board in self.robot.boards]
        board = boards.index(self.joint.drive.board)
        columns: dict[str, Any] = {}
        for name, dataset in COLUMNS.items():
            width = () if dataset.axis is ColumnAxis.NONE else (info.width(dataset.axis),)
            values = np.zeros((len(seq), *width), dataset.dtype)
            if name in known:
                if values.dtype.kind == "f":
                    values[:] = 777.0  # of other joints: never to be seen
                values[:, board if dataset.axis is ColumnAxis.BOARDS else self.place] = known[name]
            elif dataset.is_optional:
                continue
            columns[name] = values
        columns["seq"] = seq
        columns["t_ns"] = START_T_NS + np.rint(self.column("t_s") * 1e9).astype(np.int64)
        columns["transfer_ns"] = np.full(len(seq), round(TRANSFER_S * 1e9), np.uint32)
        return columns

    def _info(self) -> RecordingInfo:
        boards = self.robot.boards
        return RecordingInfo(
            session="20231114T221320-test",
            recording="test",
            robot=self.robot.name,
            robot_text=self.text,
            robot_source="test",
            joint_names=tuple(joint.name for joint in self.robot.joints),
            board_names=tuple(board.name for board in boards),
            board_profiles=tuple(board.profile for board in boards),
            board_devices=tuple(board.spi.device for board in boards),
            board_behaviours=tuple(behaviour_in_1_1(b.profile) for b in boards),
            frame_size=34,
            fingerprint="f" * 16,
            link="mock",
            is_virtual=True,
            period_ns=round(self.period_s * 1e9),
            session_start_utc_ns=START_UTC_NS,
            session_start_t_ns=START_T_NS,
            host="testhost",
            armature_version="0.1.0",
            commit="",
            grids={},
        )
